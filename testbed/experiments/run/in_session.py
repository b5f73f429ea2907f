"""A run in a session: build, verify, measure, judge, store, whatever carries the frames."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path

from testbed.base.errors import LabError
from testbed.engines.lab.control.client import LabClient
from testbed.engines.session import Session
from testbed.experiments.run.attempts import Attempts
from testbed.experiments.run.checks.fidelity import Finding, Verdict
from testbed.experiments.run.dilation.choose import DilationChoice, choose_dilation
from testbed.experiments.run.engine import Engine, MeasuredRun, Progress, run_loads
from testbed.experiments.run.loads.context import count_flooded, flood_findings
from testbed.planning import Plan
from testbed.results import ResultFolder

_SHOWN_PROBLEMS = 5


# Settles the dilation of a running lab: the plan at it, and how it was chosen, see choose_dilation().
Choose = Callable[[Plan, Session, Progress], tuple[Plan, DilationChoice | None]]


class SessionEngine(Engine):
    """An engine that holds a fabric while loads run on it, one after the other."""

    @abstractmethod
    def open_fabric(self, plan: Plan, progress: Progress) -> AbstractContextManager[Session]:
        """Build what carries a plan's frames; it ends with the block."""

    @abstractmethod
    def describe_environment(self, lab: Session) -> dict[str, object]:
        """What results tell of a fabric and of the machine it runs on."""

    @contextmanager
    def open_checked(self, plan: Plan, folder: ResultFolder, progress: Progress) -> Iterator[Session]:
        """Build a plan's fabric, store what it is, and check its paths; it ends with the block.

        Raises:
            LabError: the lab broke, perhaps in the block; it also says where the folder is.
        """
        try:
            with self.open_fabric(plan, progress) as lab:
                folder.write_plan(self.describe_environment(lab))
                progress("checking the path of every pair")
                check_paths(plan, lab)
                yield lab
        except LabError as error:
            raise LabError(error.lines, folder.path) from error

    def measure(self, plan: Plan, results: Path, progress: Progress, choose: Choose = choose_dilation) -> MeasuredRun:
        """Build the plan's fabric, run its loads, and store all but the report; see Engine."""
        folder = ResultFolder(results, plan)
        with self.open_checked(plan, folder, progress) as lab:
            return measure_on(lab, plan, folder, progress, choose=choose)


class LabEngine(SessionEngine):
    """An engine whose fabric is a lab on this machine, which other programs can use."""

    @abstractmethod
    def build(self, plan: Plan, progress: Progress, *, keep: bool = False) -> LabClient:
        """Build the lab of a plan; with `keep` it outlives this program."""

    def open_fabric(self, plan: Plan, progress: Progress) -> AbstractContextManager[Session]:
        """Build a lab that ends with the block."""
        return self.build(plan, progress)


def measure_on(
    lab: Session,
    plan: Plan,
    folder: ResultFolder,
    progress: Progress,
    findings: Sequence[Finding] = (),
    choose: Choose = choose_dilation,
) -> MeasuredRun:
    """Run the plan's loads in a lab that is there, and store all but the report.

    `findings` are what is known of the lab before.
    """
    settled, choice = choose(plan, lab, progress)
    flooded_before = count_flooded(plan, lab)
    refused_before = lab.frames().refused if lab.facts.pace else {}  # which only a model counts
    attempts = Attempts(settled, lab, folder, progress, choice)
    records = run_loads(settled, folder, attempts.run)
    records.findings += flood_findings(plan, flooded_before, count_flooded(plan, lab))
    records.findings += [*findings, *(found for found in changes_since(plan, lab) if found not in findings)]
    refused = {why: count - refused_before.get(why, 0) for why, count in lab.frames().refused.items()}
    refused = {why: count for why, count in refused.items() if count}
    return records.store(folder, {**lab_facts(settled, choice, lab), **({"refused": refused} if refused else {})})


def changes_since(plan: Plan, lab: Session) -> list[Finding]:
    """What is no longer as it was built."""
    return [(Verdict.INVALID if one.void else Verdict.WARN, one.sentence) for one in lab.deviations(plan)]


def lab_facts(settled: Plan, choice: DilationChoice | None, lab: Session) -> dict[str, object]:
    """What the manifest tells of a lab.

    `settled` is the plan at the dilation that was measured, which `choice` chose; None = the scenario gave it.
    """
    return {
        "engine": settled.scenario.engine,
        "dilation": settled.scenario.lab.chosen_dilation,
        "dilation_choice": asdict(choice) if choice else None,
        "holds_lone_frames": lab.facts.shapes_idle_ports,
        "cpu_share": None if lab.facts.cpu_share is None else asdict(lab.facts.cpu_share),
        **({"pace": lab.facts.pace} if lab.facts.pace else {}),
    }


def check_paths(plan: Plan, lab: Session) -> None:
    """Raise LabError unless every pair's path on the dumped rules is the plan's and every pair answers a ping.

    Switches that learn are taught first.
    """
    problems = lab.verify(plan)
    if problems:
        what = f"the lab is not what the plan says, in {len(problems)} points; no load was run"
        raise LabError([what, *(f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS])])

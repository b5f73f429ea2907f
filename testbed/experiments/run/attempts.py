"""Loads in a running lab, and once more at a larger dilation those that it was too slow for."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.engines.session import Session
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.dilation.choose import DilationChoice, larger_dilation
from testbed.experiments.run.engine import Progress
from testbed.experiments.run.loads.one_load import LoadRecord, load_labels, raw_folder, run_load, title_of
from testbed.planning import Plan
from testbed.planning.rates import at_dilation
from testbed.results import ResultFolder
from testbed.results.samples import changes_file, failures_file, samples_to_csv
from testbed.results.store import AttemptEntry
from testbed.results.telemetry import file_name
from testbed.scenario import Workload
from testbed.scenario.workloads import WORKLOADS


@dataclass(frozen=True, slots=True)
class Attempts:
    """Runs the loads of a scenario."""

    plan: Plan  # at the dilation of the lab
    lab: Session  # the lab
    folder: ResultFolder  # of the run
    progress: Progress  # called with what is going on
    choice: (
        DilationChoice | None
    )  # how the dilation was chosen; None = the scenario says it, and then no load runs at another

    def run(self, load: Workload, number: int, which: str) -> LoadRecord:
        """Run a load; where the lab is too slow for it, and may be slower, a second time, which then counts.

        Afterwards the lab has the dilation it had. The entry of the manifest has that of the load, and what came of the
        first attempt.
        """
        record = self._run_at_dilation(self.plan, load, number, which)
        if self.choice is None or not record.too_slow:
            return record
        sent = WORKLOADS[load.kind].traffic(load.spec)
        failed = self.choice.failed_with_job if sent is not None and sent.bursts else 0.0
        larger = larger_dilation(self.plan, _dilation(self.plan), beyond=failed)
        title = f"{which}, {title_of(load.kind, load_labels(load))}"
        reason = next(reason for verdict, reason in record.findings if verdict is Verdict.INVALID)
        now = f"at dilation {_dilation(self.plan):g} it is {record.entry['verdict']}: {reason.partition(': ')[2]}"
        if larger is None:
            self.progress(f"{title}: {now}; there is no larger one")
            return record
        self.progress(f"{title}: {now}; once more at {larger:g}")
        before = self._archive_attempt(record, number)
        slower = at_dilation(self.plan, larger)
        self.lab.set_rates(slower)
        again = self._run_at_dilation(slower, load, number, which)
        self.lab.set_rates(self.plan)
        self.progress(f"{title}: at dilation {larger:g}: {again.entry['verdict']}")
        again.entry["attempts"] = [before]
        return again

    def _run_at_dilation(self, plan: Plan, load: Workload, number: int, which: str) -> LoadRecord:
        record = run_load(plan, self.lab, self.folder, load, number, self.progress, which)
        record.entry["dilation"] = _dilation(plan)
        record.entry["too_slow"] = record.too_slow
        record.entry["short_of_time"] = record.is_cpu_limited
        return record

    def _archive_attempt(self, record: LoadRecord, number: int) -> AttemptEntry:
        """Make room for another attempt; returns what the manifest says of this one."""
        entry = record.entry
        raw = raw_folder(number, entry["title"])
        kept = f"{raw}-at-{entry['dilation']:g}"
        self.folder.move(raw, kept)
        for name in (naming(str(number)) for naming in (file_name, failures_file, changes_file)):
            self.folder.move(name, f"{kept}/{name}")
        self.folder.write_text(f"{kept}/samples.csv", samples_to_csv(record.samples))
        return {
            "dilation": entry["dilation"], "verdict": entry["verdict"], "reasons": entry["reasons"],
            "seconds": entry["seconds"], "folder": f"{kept}/",
        }  # fmt: skip


def _dilation(plan: Plan) -> float:
    return plan.scenario.lab.chosen_dilation

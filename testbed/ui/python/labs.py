"""A lab on this machine that ends with the block, and commands in its hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.base.errors import InputError, did_you_mean
from testbed.base.model import host_ip
from testbed.ui.python.optional_libraries import PrintedSteps, Progress
from testbed.ui.python.plans import PlannedFabric
from testbed.ui.python.runs import FinishedRun

if TYPE_CHECKING:
    from testbed.engines.lab.control.client import LabClient
    from testbed.engines.lab.control.host_commands import Completed, Started


@contextmanager
def open_lab(plan: PlannedFabric, progress: Progress | None) -> Iterator[RunningLab]:
    """Build a plan's lab, as `testbed.lab` says."""
    from testbed.experiments.run.engines import find_lab_engine
    from testbed.experiments.run.in_session import check_paths

    say, core = progress or PrintedSteps(), plan.core
    core.require_proof()
    engine = find_lab_engine(core.scenario)
    engine.find_missing(replace(core, scenario=replace(core.scenario, workloads=())), say).raise_if_missing()
    with engine.build(core, say) as running:
        say("checking the path of every pair")
        check_paths(core, running)
        yield RunningLab(plan, running)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunningLab:
    """A lab that runs, as tb.lab() yields it."""

    plan: PlannedFabric  # what it was built from
    core: LabClient  # what talks to its agent

    @property
    def dilation(self) -> float:
        """How much slower than in the real world its links are."""
        return self.core.facts.dilation

    def host(self, name: str) -> LabHost:
        """One of its hosts.

        Raises:
            InputError: there is none of that name.
        """
        names = self.plan.hosts
        if name not in names:
            raise InputError.one("host", f'the lab has no host "{name}".{did_you_mean(name, names)}')
        return LabHost(self, name)

    def load(
        self,
        loads: Sequence[Mapping[str, object] | str] | None = None,
        results: str | Path = "results",
        dilation: float | str | None = None,
        progress: Progress | None = None,
        *,
        trust: bool = False,
    ) -> FinishedRun:
        """Run loads in it, as `testbed load` does; the lab goes on.

        Args:
            loads: as `workloads` of a scenario lists them, such as [{"kind": "iperf3", "protocol": "tcp"}]; None =
                those of its scenario.
            results: folder in which the run's own folder is made.
            dilation: to run them at; `auto` = the smallest at which the lab keeps up; None = as it is.
            progress: called with each step; None = steps on standard error.
            trust: whether MPI jobs that its scenario names by a path may be built; those of `loads` may.

        Raises:
            InputError, CapabilityError: nothing was run.
            LabError: the lab broke; the run's folder stays, marked incomplete.
        """
        from testbed.experiments.run.load_lab import load_lab, loads_plan
        from testbed.results import load_run

        plan = loads_plan(self.core, loads, dilation)
        trusted = trust or loads is not None
        outcome = load_lab(self.core, plan, Path(results), progress or PrintedSteps(), trust=trusted)
        return FinishedRun(load_run(outcome.folder))

    def unreachable(self) -> list[tuple[str, str]]:
        """Ping all pairs of hosts: those without an answer."""
        return self.core.reach()

    def __repr__(self) -> str:
        """One line."""
        facts = self.core.facts
        hosts = f"{len(self.plan.switches)} switches, {len(self.plan.hosts)} hosts"
        return f"<lab {self.plan.name}: {hosts}, {facts.datapath} datapath, dilation {facts.dilation:.4g}>"


@dataclass(frozen=True, slots=True, eq=False)
class LabHost:
    """A host of a running lab."""

    lab: RunningLab
    name: str

    @property
    def ip(self) -> str:
        """Its address."""
        return host_ip(self.lab.plan.hosts.index(self.name))

    def run(self, command: Sequence[str], timeout: float = 60.0) -> Completed:
        """Run a command and wait for its end; names of hosts in it become their addresses.

        What it may do, `lab.host_access` of the scenario says; its own files are below /tmp.

        `timeout` in laboratory seconds.

        Raises:
            WorkloadError: it did not end in time, and is ended then, or there is no such program.
        """
        from testbed.engines.lab.control.host_commands import run_inside

        return run_inside(*self._place(), self._substitute_addresses(command), timeout, self.lab.core.facts.host_access)

    def start(self, command: Sequence[str]) -> Started:
        """Start a command that goes on, such as a server; it is ended by its stop(), or with the lab."""
        from testbed.engines.lab.control.host_commands import start_inside

        return start_inside(*self._place(), self._substitute_addresses(command), self.lab.core.facts.host_access)

    def _place(self) -> tuple[int, int, str | None]:
        core = self.lab.core
        core.share_folder(Path.cwd(), [self.name])
        return core.namespaces.init, core.facts.holders[self.name], core.facts.groups.get(self.name)

    def _substitute_addresses(self, command: Sequence[str]) -> list[str]:
        if isinstance(command, str):
            raise InputError.one("command", f'should be a list of words such as ["ping", "h2"], not "{command}"')
        addresses = {name: host_ip(number) for number, name in enumerate(self.lab.plan.hosts)}
        return [addresses.get(word, word) for word in command]

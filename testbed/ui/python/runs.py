"""Run a plan's loads from Python, and read what a run has stored."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.ui.python.optional_libraries import PrintedSteps, Progress, library
from testbed.ui.python.plans import PlannedFabric

if TYPE_CHECKING:
    import pandas

    from testbed.results import Run


def run_loads(plan: PlannedFabric, results: str | Path, progress: Progress | None, *, trust: bool) -> FinishedRun:
    """Run the loads of a plan, as `testbed.run` says."""
    from testbed.base.trust import allow_programs
    from testbed.experiments.run.engines import run_scenario
    from testbed.results import load_run

    with allow_programs(trust):
        outcome = run_scenario(plan.core, Path(results), progress or PrintedSteps())
    return FinishedRun(load_run(outcome.folder))


def read_run(folder: str | Path) -> FinishedRun:
    """Read the results of a run or a simulation, as `testbed.load` says."""
    from testbed.results import load_run

    return FinishedRun(load_run(Path(folder)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FinishedRun:
    """A run and its figures, in real-world units, as tb.run() and tb.load() return them."""

    core: Run  # as read from its folder

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.core.path

    @property
    def plan(self) -> PlannedFabric:
        """What was run."""
        return PlannedFabric(self.core.plan)

    @property
    def verdict(self) -> str:
        """Whether the figures can be used: pass, warn, invalid or fail."""
        return str(self.core.manifest["verdict"])

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why."""
        return tuple(map(str, self.core.manifest["reasons"]))

    @property
    def samples(self) -> pandas.DataFrame:
        """A row a figure: metric, value, unit, predicted, and a column for each label, as in samples.csv."""
        from testbed.results.data_frames import samples_frame

        library("pandas", "samples")
        return samples_frame(self.core.samples)

    @property
    def telemetry(self) -> pandas.DataFrame:
        """A row for each reading of each switch port: load, repeat, time in laboratory s, port, channel, counters."""
        from testbed.results.data_frames import telemetry_frame

        library("pandas", "telemetry")
        return telemetry_frame(self.core)

    def to_parquet(self, folder: str | Path) -> list[Path]:
        """Write samples.parquet, and telemetry.parquet where there is telemetry, into a folder; returns the files."""
        from testbed.base.files import make_folder, write_whole
        from testbed.results.data_frames import parquet

        library("pyarrow", "to_parquet()")
        target = Path(folder)
        make_folder(target)
        frames = {"samples": self.samples, "telemetry": self.telemetry}
        written = []
        for name, frame in frames.items():
            if len(frame):
                written.append(target / f"{name}.parquet")
                write_whole(written[-1], parquet(frame))
        return written

    @property
    def manifest(self) -> dict[str, Any]:
        """All that manifest.json holds."""
        return self.core.manifest

    def __repr__(self) -> str:
        """One line."""
        return f"<run {self.core.path.name}: {self.verdict}, {len(self.core.samples)} figures>"

    def _repr_html_(self) -> str:
        """The fabric by the use of its links, over verdict and reasons."""
        from testbed.experiments.report.drawing import MAX_SWITCHES, draw_topology, link_use

        wiring = self.core.plan.wiring
        drawing = ""
        if wiring.switch_count <= MAX_SWITCHES:
            drawing = draw_topology(wiring, f"run-{self.core.path.name}", link_use(wiring, self.core.samples))
        reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in self.reasons)
        head = f"<b>{html.escape(self.core.path.name)}</b>: {html.escape(self.verdict)}"
        return f"<div>{drawing}<p>{head}</p><ul>{reasons}</ul></div>"

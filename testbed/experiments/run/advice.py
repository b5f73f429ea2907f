"""What to type where a lab was too slow for a load: the run as it was asked for, at a larger dilation."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.local_machine.calibration import first_guess
from testbed.experiments.run.dilation.choose import larger_dilation
from testbed.results import Run
from testbed.results.read_run import load_heads
from testbed.scenario import Scenario, scenario_names

_KEY = "lab.dilation"
_OTHERWISE = "end what else keeps the machine busy, or"


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a run was asked for, as words of `testbed run`."""

    name: str  # of the scenario, or its file
    settings: tuple[str, ...] = ()  # as --set takes them
    more: tuple[str, ...] = ()  # further options

    @classmethod
    def from_scenario(cls, scenario: Scenario, settings: Sequence[str] = ()) -> Invocation:
        """Ask for a scenario by its name, where that is enough, else by its file."""
        file = Path(scenario.source)
        known = scenario_names().get(file.stem)
        same = known is not None and file.is_file() and known.resolve() == file.resolve()
        return cls(file.stem if same else scenario.source, tuple(settings))

    def at_dilation(self, dilation: float) -> str:
        """The command that asks for it at another dilation, as a shell reads it."""
        kept = [text for text in self.settings if text.partition("=")[0].strip() != _KEY]
        words = [word for text in (*kept, f"{_KEY}={dilation:g}") for word in ("--set", text)]
        return shlex.join(["testbed", "run", self.name, *words, *self.more])


@dataclass(frozen=True, slots=True)
class AskedOfLab:
    """How loads of a running lab were asked for, as words of `testbed load`."""

    words: tuple[str, ...]  # the lab, and the loads
    more: tuple[str, ...] = ()  # further options

    def at_dilation(self, dilation: float) -> str:
        """The command that asks for them at another dilation, as a shell reads it."""
        return shlex.join(["testbed", "load", *self.words, "--dilation", f"{dilation:g}", *self.more])


def advice(run: Run, asked: Invocation | AskedOfLab) -> str:
    """One sentence where loads are void, or have a reserve, since the lab had not the time for them; else none."""
    heads = load_heads(run.manifest, ())
    slow = [head for head in heads if head.too_slow] or [head for head in heads if head.short_of_time]
    if not slow:
        return ""
    dilations = {head.title: head.dilation or run.dilation for head in slow}
    what = " and ".join(f"{title} at dilation {dilation:g}" for title, dilation in dilations.items())
    # A guess is nothing for modelled switches, which do more.
    guess = 0.0 if run.plan.scenario.carrier == "realtime" else first_guess(run.plan)[0]
    larger = larger_dilation(run.plan, max(dilations.values()), beyond=guess)
    if larger is None and not slow[0].too_slow:
        return ""
    if larger is None:
        return f"the lab was too slow for {what}, and there is no larger one; {_OTHERWISE} use fewer flows"
    how = "was too slow" if slow[0].too_slow else "had little time left"
    return f"the lab {how} for {what}; {_OTHERWISE} type: {asked.at_dilation(larger)}"

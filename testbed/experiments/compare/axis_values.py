"""The place of a figure on the axis of a swept parameter."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.base.errors import InputError
from testbed.base.model import Sample
from testbed.experiments.compare.variants import value_at
from testbed.fabric.routing.paths import path
from testbed.results import Run
from testbed.scenario.read_scenario import as_dict

SWITCHES_ON_PATH = "switches_on_path"
MESSAGE_SIZE = "message_size"
# Axes on which the place of a figure is one of its labels.
LABELS = {MESSAGE_SIZE: "bytes", "injection_rate": "rate"}


@dataclass(frozen=True, slots=True)
class SweptAxis:
    """Where the figures of a run stand."""

    run: Run
    # `switches_on_path`, `message_size`, `injection_rate`, a key of the scenario whose value is a number, or None
    swept: str | None
    place: float | None  # of every figure of the run, where a key is swept, else None
    _hosts: dict[str, int] = field(repr=False)
    _switches: dict[tuple[int, int], float] = field(default_factory=dict, repr=False)

    @classmethod
    def from_run(cls, run: Run, swept: str | None) -> SweptAxis:
        """Make the axis of a run.

        Raises:
            InputError: the run's scenario has no number at the swept key.
        """
        topology = run.plan.topology
        hosts = {topology.host_name(host): host for host in range(topology.host_count)}
        if swept in (None, SWITCHES_ON_PATH, *LABELS):
            return cls(run, swept, None, hosts)
        value = number_at(as_dict(run.plan.scenario), str(swept))
        if value is None:
            raise InputError.one(str(run.path), f"has no number at {swept} of its scenario, so it has no place there")
        return cls(run, swept, value, hosts)

    def place_sample(self, sample: Sample) -> float | None:
        """Place of a sample; None without an axis, or for a figure that has no place on it."""
        if self.swept in LABELS:
            try:
                return float(sample.labels[LABELS[self.swept]])
            except (KeyError, ValueError):
                return None
        if self.swept != SWITCHES_ON_PATH:
            return self.place
        source, destination = (self._host(sample.labels.get(end, "")) for end in ("src", "dst"))
        if source is None or destination is None:
            return None
        pair = (source, destination)
        if pair not in self._switches:
            self._switches[pair] = 1.0 + len(path(self.run.plan.topology, self.run.plan.routes, *pair))
        return self._switches[pair]

    def _host(self, name: str) -> int | None:
        """Number of a host by its name, or by its rank in a job of one rank a host."""
        if name.isdecimal() and int(name) < len(self._hosts):
            return int(name)
        return self._hosts.get(name)


def number_at(blocks: object, key: str) -> float | None:
    """The number at a key of a scenario; None where there is none."""
    value = value_at(blocks, key)
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)

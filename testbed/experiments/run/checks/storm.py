"""A broadcast storm as a positive control: what the plan's VLANs prevent, for a moment and at a capped rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.base.errors import InputError, Problem, argument
from testbed.base.ethernet import MIN_FRAME, wire_bytes
from testbed.base.units import format_rate, parse_rate
from testbed.engines.lab.build_order import StormReading
from testbed.experiments.run.engines import find_lab_engine
from testbed.fabric.openflow.compile import flooding_rules
from testbed.fabric.openflow.rule_text import format_rule
from testbed.planning import Plan, make_plan
from testbed.scenario.engines import LABS
from testbed.scenario.parameter_models import not_one_of
from testbed.scenario.read_scenario import scenario_of_blocks

INTERVAL = 0.2
MIN_SWITCHES, MAX_SWITCHES = 3, 16
MIN_SECONDS, MAX_SECONDS = 0.4, 10.0
MIN_RATE, MAX_RATE = 1e5, 1e8
_FRAME_BITS = 8 * wire_bytes(MIN_FRAME)


@dataclass(frozen=True, slots=True)
class StormCounts:
    """What became of one broadcast."""

    seconds: tuple[float, ...]  # of each reading, since it was sent
    frames: tuple[int, ...]  # sent by all switch ports together until then
    busiest: tuple[int, ...]  # likewise by the port that sent most

    @property
    def rate(self) -> float:
        """Frames a second that the busiest port sent between the last two readings."""
        return (self.busiest[-1] - self.busiest[-2]) / (self.seconds[-1] - self.seconds[-2])


@dataclass(frozen=True, slots=True)
class Storm:
    """The same ring twice."""

    switches: int  # of the ring, a host on each
    link_rate: float  # bit/s
    vlans: StormCounts  # with the VLANs of the plan
    without: StormCounts  # with switches that send every frame to every other port

    @property
    def load(self) -> float:
        """Share of a link's rate that the storm takes in the end."""
        return self.without.rate * _FRAME_BITS / self.link_rate

    @property
    def problems(self) -> list[str]:
        """What is not as it should be: with VLANs a frame a port and then silence, without them no end."""
        found = []
        wanted = 2 * (self.switches - 1)  # a tree of the ring's links, and every host but the sender
        if (self.vlans.frames[-1], self.vlans.busiest[-1]) != (wanted, 1):
            found.append(
                f"with VLANs a broadcast took {self.vlans.frames[-1]} frames, up to {self.vlans.busiest[-1]} at a port,"
                f" instead of {wanted}, one at a port"
            )
        if self.without.rate <= 0:
            found.append("without VLANs the broadcast ended by itself; links lose frames, or the ring is open")
        return found


def storm_plan(switches: int, seconds: float, rate: str, engine: str = "ovs") -> Plan:
    """The ring, planned as usual.

    Raises:
        InputError: each of the four that is out of bounds.
    """
    problems = []
    if engine not in LABS:
        problems.append(Problem(argument("engine"), not_one_of(engine, LABS)))
    if not MIN_SWITCHES <= switches <= MAX_SWITCHES:
        problems.append(
            Problem(argument("switches"), f"should be from {MIN_SWITCHES} to {MAX_SWITCHES}, not {switches}")
        )
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        problems.append(
            Problem(argument("seconds"), f"should be from {MIN_SECONDS:g} to {MAX_SECONDS:g}, not {seconds:g}")
        )
    try:
        if not MIN_RATE <= parse_rate(rate) <= MAX_RATE:
            sentence = f'should be from {format_rate(MIN_RATE)} to {format_rate(MAX_RATE)}, not "{rate}"'
            problems.append(Problem(argument("rate"), sentence))
    except ValueError as error:
        problems.append(Problem(argument("rate"), str(error)))
    if problems:
        raise InputError(problems)
    blocks = {
        "topology": {"kind": "ring", "switches": switches},
        "links": {"rate": rate},
        "lab": {"dilation": 1.0},
        "engine": engine,
    }
    return make_plan(scenario_of_blocks(blocks, "storm"))


def run_storm(plan: Plan, seconds: float, progress: Callable[[str], None]) -> Storm:
    """Build the ring in a lab of its own, send one broadcast with VLANs and one without, and end it.

    Args:
        plan: storm_plan().
        seconds: that either is watched.
        progress: called with one line on what is going on.

    Raises:
        CapabilityError: nothing was started.
        LabError: the lab broke; nothing is left of it.
    """
    engine = find_lab_engine(plan.scenario)
    engine.find_missing(plan, progress).raise_if_missing()
    rules: dict[str, list[str]] = {}
    for rule in flooding_rules(plan.topology):
        rules[plan.topology.switch_name(rule.switch)] = [format_rule(rule)]
    with engine.build(plan, progress) as lab:
        progress("one broadcast with the VLANs of the plan")
        vlans = lab.run_broadcast_storm(seconds, INTERVAL)
        progress("one broadcast without VLANs and without a spanning tree")
        without = lab.run_broadcast_storm(seconds, INTERVAL, rules)
    return Storm(plan.topology.switch_count, plan.scenario.links.rate, storm_counts(vlans), storm_counts(without))


def storm_counts(readings: Sequence[StormReading]) -> StormCounts:
    """Readings of the agent, summed up."""
    return StormCounts(
        tuple(reading.seconds for reading in readings),
        tuple(reading.frames for reading in readings),
        tuple(reading.busiest for reading in readings),
    )

"""What is asked of a simulation, and whether it makes sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.base.model import Topology
from testbed.base.synonyms import find_looked_for
from testbed.fabric.collectives import COLLECTIVES
from testbed.fabric.traffic import PatternError, flows, is_pattern, no_pattern

UNIFORM = "uniform"
ALL_TO_ALL = "all_to_all"
MAX_CYCLES = 1_000_000_000
MAX_SEEDS = 1000
MIN_HEADER = 3
MAX_CHANNELS = 16
_LARGEST = 1 << 24  # flits of a packet or a buffer


@dataclass(frozen=True, slots=True)
class Settings:
    """The switches and the traffic of a simulation. The defaults are those of Koibuchi et al. 2003, Table 4."""

    # `uniform`, where each packet goes to a host drawn anew, or one that gives each host one destination
    pattern: str = UNIFORM
    clocks: int = 1_000_000  # cycles of a run, the warm-up included
    warm_up: int = 50_000  # cycles at the beginning that are not measured
    packet: int = 128  # flits of a packet
    buffer: int = 256  # flits of the buffer of each virtual channel; the paper does not say
    header: int = MIN_HEADER  # cycles that a header takes from one switch to the next
    channels: int = 1  # copies of each virtual channel of the plan, of which a packet takes any that is free
    # cycles after a packet has left a buffer in which the one behind it does not; None: as long as that is routed
    buffer_gap: int | None = None
    output_gap: int = 0  # cycles after a packet in which its virtual channel is given to no other

    @property
    def idle_cycles(self) -> int:
        """Cycles in which a buffer sends nothing between two packets."""
        return max(self.header - 2, 0) if self.buffer_gap is None else self.buffer_gap


def parse_loads(text: str, most: str = "up to 1 flit per host and cycle") -> tuple[float, ...]:
    """Read `0.1,0.2,0.3`.

    `most` is what 1 means, for messages.

    Raises:
        InputError: what is not a number from above 0 to 1, or is listed twice; all of it.
    """
    loads: list[float] = []
    problems = []
    for word in text.split(","):
        try:
            load = float(word)
        except ValueError:
            problems.append(Problem(argument("loads"), f'should be numbers such as 0.1,0.2,0.3, not "{word.strip()}"'))
            continue
        if not 0 < load <= 1:
            problems.append(Problem(argument("loads"), f"should be above 0 and {most}, not {word.strip()}"))
        elif load in loads:
            problems.append(Problem(argument("loads"), f"{word.strip()} is listed twice"))
        loads.append(load)
    if problems:
        raise InputError(problems)
    return tuple(loads)


def settings_problems(settings: Settings, seeds: int) -> list[Problem]:
    """Everything that is wrong with the numbers."""
    found: list[Problem] = []
    for name, value, least, most in (
        (argument("cycles"), settings.clocks, 1, MAX_CYCLES),
        (argument("warm_up"), settings.warm_up, 0, MAX_CYCLES),
        (argument("packet"), settings.packet, 1, _LARGEST),
        (argument("buffer"), settings.buffer, 1, _LARGEST),
        (argument("header"), settings.header, MIN_HEADER, 1000),
        (argument("channels"), settings.channels, 1, MAX_CHANNELS),
        (argument("buffer_gap"), settings.idle_cycles, 0, 1000),
        (argument("output_gap"), settings.output_gap, 0, 1000),
        (argument("seeds"), seeds, 1, MAX_SEEDS),
    ):
        if not least <= value <= most:
            found.append(Problem(name, f"should be from {least:,} to {most:,}, not {value:,}"))
    if found:
        return found
    if settings.buffer < settings.packet:
        found.append(
            Problem(
                argument("buffer"),
                f"holds {settings.buffer} flits and a packet has {settings.packet}; cut-through takes an output only "
                f"if the next buffer has room for the whole packet, so give it {settings.packet} or more",
            )
        )
    if settings.warm_up >= settings.clocks:
        found.append(
            Problem(
                argument("warm_up"), f"takes {settings.warm_up:,} of {settings.clocks:,} cycles, so none is measured"
            )
        )
    return found


def pattern_problems(pattern: str, topology: Topology, seed: int) -> list[Problem]:
    """What is wrong with the pattern on this fabric."""
    place = argument("pattern")
    if pattern == ALL_TO_ALL:
        return [Problem(place, f"{ALL_TO_ALL} is no order of packets; {UNIFORM} draws each packet's destination anew")]
    if not is_pattern(pattern):
        return [Problem(place, f"{no_pattern(pattern, without=ALL_TO_ALL)}{_name_collectives(pattern)}")]
    if topology.host_count < 2:
        return [Problem(place, "a load needs two hosts or more and this topology has one")]
    try:
        if destinations(pattern, topology, seed):
            return []
    except PatternError as error:
        return [Problem(place, str(error))]
    return [Problem(place, f'"{pattern}" maps each of {topology.host_count} hosts to itself; use another pattern')]


def _name_collectives(pattern: str) -> str:
    """What the sentence on an unknown pattern says of collectives, which are replays of the flit level."""
    meant = find_looked_for(pattern, COLLECTIVES) or did_you_mean(pattern, COLLECTIVES, 0.7)
    return f"; collectives, on the flit level: {', '.join(COLLECTIVES)}.{meant}"


def destinations(pattern: str, topology: Topology, seed: int) -> Sequence[tuple[int, int]]:
    """(source, destination) of a pattern; for `uniform` each host with itself, as it draws anew for each packet."""
    if pattern == UNIFORM:
        return [(host, host) for host in range(topology.host_count)]
    return flows(pattern, topology, seed)

"""What is asked of a packet-level simulation, and the thresholds that come of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from testbed.base.errors import Problem, argument
from testbed.base.ethernet import CHECK_SEQUENCE, MIN_FRAME, wire_bytes
from testbed.base.model import Routes
from testbed.engines.simulate.flit_settings import MAX_SEEDS, UNIFORM
from testbed.scenario import Scenario

FlowControl = Literal["none", "pause", "pfc"]
FLOW_CONTROLS: tuple[FlowControl, ...] = ("none", "pause", "pfc")
# 802.1Q has three bits for the priority, and 802.1Qbb a timer for each.
PRIORITIES = 8
# A MAC control frame is as short as frames get (802.3, clause 31B).
CONTROL_BYTES = MIN_FRAME + CHECK_SEQUENCE
PICOSECONDS = 1e12
_LONGEST = 60_000.0  # ms of a run
MAX_TIE_ORDERS = 1000


@dataclass(frozen=True, slots=True)
class PacketSettings:
    """The switches and the traffic of a packet-level simulation."""

    # `uniform`, where each frame goes to a host drawn anew, or one that gives each host one destination
    pattern: str = UNIFORM
    # `none` drops what finds no memory, `pause` stops a whole link (802.3x), `pfc` one priority of it (802.1Qbb)
    flow_control: FlowControl = "pause"
    duration: float = 200.0  # ms, the warm-up included
    warm_up: float = 50.0  # ms at the beginning that are not measured
    frame: int = 1522  # bytes of a frame in memory, with header and check sequence, without preamble and gap
    # bytes of memory for each port and priority; of the port of arrival with flow control, else of the port of
    # departure
    buffer: int = 65536
    xoff: int | None = None  # bytes at which a sender is paused; None = as late as loses no frame
    xon: int | None = None  # bytes at which it may go on; None = half of `xoff`
    shared: bool = False  # whether the ports of a switch share their memory; each may then take as much as is free
    delay: float = 1.0  # µs from a link's sending the last bit of a frame to the frame's standing in its next queue
    # other orders of events of one time that each run is repeated with, the first one against the documented order
    tie_orders: int = 0

    @property
    def lossless(self) -> bool:
        """Whether receivers pause senders."""
        return self.flow_control != "none"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Memory of a port and priority, in frames."""

    buffer: int  # frames that it holds
    headroom: int  # frames that can arrive after it has asked for a pause
    xoff: int  # frames at which it asks for one
    xon: int  # frames at which it takes that back


def settings_of(scenario: Scenario, frame: int, pattern: str = UNIFORM) -> PacketSettings:
    """What a scenario says of its switches.

    Args:
        scenario: whose watchdog is not among them, since it looks at switches from beside, nor what only real hosts'
            switches do.
        frame: bytes of a full frame between switches.
        pattern: of the traffic.
    """
    asked = dataclasses.asdict(scenario.simulator)
    del asked["watchdog"], asked["cut_through"]
    if asked["buffer"] is None:
        lossy = scenario.simulator.flow_control == "none"
        asked["buffer"] = scenario.links.queue_frames * frame if lossy else PacketSettings().buffer
    return PacketSettings(pattern=pattern, frame=frame, **asked)


def in_scenario(problems: Sequence[Problem], scenario: Scenario) -> list[Problem]:
    """Problems by keys of the scenario, where they are by arguments."""
    return [dataclasses.replace(one, key=_key(one.key), file=scenario.source) for one in problems]


def _key(option: str) -> str:
    return option if "." in option else f"simulator.{option.removeprefix('--').replace('-', '_')}"


def time_of(size: int, rate: float) -> int:
    """Picoseconds that a frame of some bytes in memory, tag and check sequence included, takes at a rate in bit/s."""
    return round(wire_bytes(size - CHECK_SEQUENCE) * 8 * PICOSECONDS / rate)


def headroom(settings: PacketSettings, rate: float) -> int:
    """Frames that can arrive over a link of a rate, in bit/s, after its receiver has decided for a pause.

    Until the sender knows, a frame of the other direction is sent to its end, then the PAUSE frame, which takes the
    delay. What the sender has begun by then it sends to its end, which takes the delay as well.
    """
    frame, control = time_of(settings.frame, rate), time_of(CONTROL_BYTES, rate)
    delay = round(settings.delay * 1e6)
    return (max(frame, control) + control + delay + frame + delay) // frame


def thresholds(settings: PacketSettings, rate: float, edge_rate: float, *, mixed: bool = False) -> Thresholds:
    """The memory of every port and priority.

    Args:
        settings: of the switches.
        rate: of links between switches, bit/s.
        edge_rate: of links of hosts, bit/s.
        mixed: whether there are shorter frames too. What arrives after a pause was asked for is then no whole number of
            full ones, and neither is what was there when it was: a frame more for each.
    """
    buffer = settings.buffer // settings.frame
    if not settings.lossless:
        return Thresholds(buffer, 0, buffer, buffer)
    spare = max(headroom(settings, rate), headroom(settings, edge_rate)) + 2 * mixed
    xoff = buffer - spare if settings.xoff is None else settings.xoff // settings.frame
    return Thresholds(buffer, spare, xoff, xoff // 2 if settings.xon is None else settings.xon // settings.frame)


def packet_problems(settings: PacketSettings, seeds: int) -> list[Problem]:
    """Everything that is wrong with the numbers, whatever the fabric."""
    found: list[Problem] = []
    for name, value, least, most in (
        (argument("duration"), settings.duration, 0.01, _LONGEST),
        (argument("warm_up"), settings.warm_up, 0, _LONGEST),
        (argument("frame"), settings.frame, 64, 9600),
        (argument("buffer"), settings.buffer, 1, 1 << 30),
        (argument("delay"), settings.delay, 0, 1000),
        (argument("seeds"), seeds, 1, MAX_SEEDS),
        (argument("tie_orders"), settings.tie_orders, 0, MAX_TIE_ORDERS),
    ):
        if not least <= value <= most:
            found.append(Problem(name, f"should be from {least:,} to {most:,}, not {value:,}"))
    if settings.flow_control not in FLOW_CONTROLS:
        sentence = f'should be one of {", ".join(FLOW_CONTROLS)}, not "{settings.flow_control}"'
        found.append(Problem(argument("flow_control"), sentence))
    if found:
        return found
    if settings.warm_up >= settings.duration:
        sentence = f"takes {settings.warm_up:g} of {settings.duration:g} ms, so none is measured"
        found.append(Problem(argument("warm_up"), sentence))
    if settings.buffer < settings.frame:
        sentence = (
            f"holds {settings.buffer:,} bytes and a frame has {settings.frame:,}; a switch that stores and forwards "
            f"needs room for a whole one, so give it {settings.frame:,} or more"
        )
        found.append(Problem(argument("buffer"), sentence))
    return found + _threshold_problems(settings)


def _threshold_problems(settings: PacketSettings) -> list[Problem]:
    given = [(argument(name), value) for name in ("xoff", "xon") if (value := getattr(settings, name)) is not None]
    if not settings.lossless:
        return [
            Problem(name, "is a threshold of PAUSE frames, and without flow control there are none")
            for name, _ in given
        ]
    if settings.shared:
        sentence = "follows what is free of the memory where ports share it; leave it out, or have memory of each port"
        return [Problem(name, sentence) for name, _ in given]
    found = [
        Problem(name, f"should be {least:,} bytes or more, not {value:,}")
        for name, value in given
        for least in (settings.frame if name == argument("xoff") else 0,)
        if value < least
    ]
    xoff, xon = settings.xoff, settings.xon
    if xoff is not None and xoff >= settings.buffer:
        sentence = (
            f"of {xoff:,} bytes is not below the buffer of {settings.buffer:,}; no memory would be left for the frames "
            "that still arrive after a pause was asked for"
        )
        found.append(Problem(argument("xoff"), sentence))
    if xoff is not None and xon is not None and xon >= xoff:
        found.append(Problem(argument("xon"), f"of {xon:,} bytes should be below the XOFF threshold of {xoff:,}"))
    return found


def fabric_problems(
    settings: PacketSettings, routes: Routes, rate: float, edge_rate: float, *, mixed: bool = False
) -> list[Problem]:
    """What is wrong with the settings on this fabric: layers that are no priorities, memory that PAUSE would overrun.

    Args:
        settings: without problems of their own.
        routes: of the plan.
        rate: of a link between switches, bit/s.
        edge_rate: of a host's link, bit/s.
        mixed: as in thresholds().
    """
    found: list[Problem] = []
    if settings.flow_control == "pause" and routes.layers > 1:
        sentence = (
            f"PAUSE stops a whole link with all priorities on it, and the plan is proved for {routes.layers} layers "
            "that wait on their own; use pfc"
        )
        found.append(Problem(argument("flow_control"), sentence))
    elif routes.layers > PRIORITIES:
        sentence = (
            f"Ethernet has {PRIORITIES} priorities and the plan has {routes.layers} layers; route with {PRIORITIES} "
            "layers or fewer"
        )
        found.append(Problem("routing.layers", sentence))
    if not settings.lossless:
        return found
    limits = thresholds(settings, rate, edge_rate, mixed=mixed)
    least = max(limits.xoff, 1) if settings.xoff is not None else 1
    least += limits.headroom + settings.shared
    if limits.buffer < least:
        asked = "" if settings.xoff is None else ", or a lower XOFF threshold"
        sentence = (
            f"has room for {limits.buffer} frames; {limits.headroom} can arrive after a pause was asked for, so "
            f"frames would be dropped. Give it {least * settings.frame:,} bytes or more{asked}"
        )
        found.append(Problem(argument("buffer"), sentence))
    elif settings.xon is not None and settings.xoff is None and limits.xon >= limits.xoff:
        sentence = f"of {settings.xon:,} bytes should be below the XOFF threshold of {limits.xoff * settings.frame:,}"
        found.append(Problem(argument("xon"), sentence))
    return found


def as_asked(settings: PacketSettings) -> dict[str, object]:
    """The settings as they are stored."""
    stored = {"level": "packet", **dataclasses.asdict(settings)}
    if not settings.tie_orders:
        del stored["tie_orders"]  # which simulations have not that were stored before there were any
    return stored

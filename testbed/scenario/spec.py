"""What a scenario says, after validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import BeforeValidator, WithJsonSchema

from testbed.base.errors import did_you_mean
from testbed.base.messages import Access
from testbed.base.units import RATE_PATTERN, format_rate, parse_rate
from testbed.fabric.topologies.faults import Faults
from testbed.scenario.engines import Simulator, VmOptions
from testbed.scenario.parameter_models import format_value

KEYS = (
    "name", "description", "plugins", "topology", "faults", "routing", "assignment", "switch_model", "expect", "links",
    "engine", "lab", "vm", "simulator", "workloads",
)  # fmt: skip
EXPECTATIONS = ("deadlock_free", "deadlock")
# Above this a rate is no longer a link's but a typing error.
_HIGHEST_RATE = 1e13
# Below this a second carries too few frames to count them; bit/s.
SLOWEST_LAB_LINK = 1e5
MOST_MTU = 9000
MAX_DILATION = 1e6
# Linux hands out processor time in no less than 1 ms a second.
MIN_SHARE = 1e-3
_MAX_SHARE = 1024.0
# Each is two processes.
MAX_SWITCH_DAEMONS = 64


def _rate(value: object) -> float:
    if not isinstance(value, str):
        raise ValueError(f'{format_value(value)} is not a rate; write a number and a unit, such as "1 Gbit/s"')
    rate = parse_rate(value)
    if rate > _HIGHEST_RATE:
        raise ValueError(f'should be {format_rate(_HIGHEST_RATE)} or less, not "{value}"')
    return rate


Rate = Annotated[float, BeforeValidator(_rate), WithJsonSchema({"type": "string", "pattern": f"^{RATE_PATTERN}$"})]


def _number_or(words: Sequence[str], least: float, most: float) -> Callable[[object], float | str]:
    """Return a check for pydantic's BeforeValidator; what it refuses, it refuses with a sentence."""
    wanted = f"should be {', '.join(['a number', *words[:-1]])} or {words[-1]}"

    def check(value: object) -> float | str:
        if isinstance(value, str):
            if value not in words:
                meant = did_you_mean(value, words)
                raise ValueError(f"{wanted}, not {format_value(value)}{'.' if meant else ''}{meant}")
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{wanted}, not {format_value(value)}")
        if isinstance(value, float) and not math.isfinite(value):  # a whole number may be too large for one
            raise ValueError(f"should be a finite number, not {format_value(value)}")
        if value < least:
            raise ValueError(f"should be {least:.15g} or more, not {format_value(value)}")
        if value > most:
            raise ValueError(f"should be {most:.15g} or less, not {format_value(value)}")
        return float(value)

    return check


def _number_schema(words: Sequence[str], least: float, most: float) -> dict[str, object]:
    """Return the JSON schema of the same values."""
    return {"anyOf": [{"enum": [*words]}, {"type": "number", "minimum": least, "maximum": most}]}


_DILATIONS = (("auto",), 1.0, MAX_DILATION)
Dilation = Annotated[
    float | Literal["auto"], BeforeValidator(_number_or(*_DILATIONS)), WithJsonSchema(_number_schema(*_DILATIONS))
]
_SHARES = (("none", "auto"), MIN_SHARE, _MAX_SHARE)
Share = Annotated[
    float | Literal["none", "auto"], BeforeValidator(_number_or(*_SHARES)), WithJsonSchema(_number_schema(*_SHARES))
]


# Shorter ones would be telemetry of the telemetry; ms.
_MIN_INTERVAL, _MAX_INTERVAL, _INTERVAL = 20, 10_000, 100


def _interval(value: object) -> int:
    if isinstance(value, bool):
        return _INTERVAL if value else 0
    if isinstance(value, int) and (value == 0 or _MIN_INTERVAL <= value <= _MAX_INTERVAL):
        return value
    raise ValueError(
        f"should be whole milliseconds from {_MIN_INTERVAL} to {_MAX_INTERVAL}, or false for none, "
        f"not {format_value(value)}"
    )


Interval = Annotated[
    int,
    BeforeValidator(_interval),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": _MIN_INTERVAL, "maximum": _MAX_INTERVAL},
                {"type": "integer", "const": 0},
                {"type": "boolean"},
            ]
        }
    ),
]


def _switch_daemons(value: object) -> object:
    if value == "auto":
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SWITCH_DAEMONS:
        return value
    raise ValueError(f"should be auto or a whole number from 1 to {MAX_SWITCH_DAEMONS}, not {format_value(value)}")


SwitchDaemons = Annotated[
    int | Literal["auto"],
    BeforeValidator(_switch_daemons),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MAX_SWITCH_DAEMONS}]}),
]


@dataclass(frozen=True, slots=True)
class Links:
    """Real-world links."""

    rate: Rate = 1e9  # of a link between switches; bit/s
    host_rate: Rate | None = None  # of a host's link; none = the same
    queue_frames: Annotated[int, Ge(1), Le(100000)] = 100  # frames that wait at a switch's port before one is lost
    mtu: Annotated[int, Ge(1500), Le(MOST_MTU)] = 1500  # bytes of IP in a frame at most
    # whether the parallel links of two switches are one logical link, over whose members a hash of addresses and ports
    # spreads the frames, or a channel each
    aggregate: bool = False
    # links that the topology has not by itself, such as a chord of a torus, as pairs of switches; one that is there
    # gets a parallel one
    add: tuple[tuple[str, str], ...] = field(
        default=(), metadata={"wanted": "a list such as [[s1, s11]]", "entry": "two switches such as [s1, s11]"}
    )
    # links that it has by itself and that shall not be there, likewise, with a plane if only that one of parallel links
    remove: tuple[tuple[str, str] | tuple[str, str, Annotated[int, Ge(0)]], ...] = field(
        default=(), metadata={"wanted": "a list such as [[s1, s2]]", "entry": "two switches such as [s1, s2]"}
    )

    # rates of single links, by their names such as s1-s2 (s1-s2#1 on plane 1 of parallel ones); others have `rate`
    rates: dict[str, Rate] | None = field(default=None, metadata={"wanted": "a block such as {s1-s2: 100 Mbit/s}"})

    @property
    def slowest(self) -> float:
        """Rate of the slowest link in bit/s."""
        return min(self.rate, self.edge_rate, *(self.rates or {}).values())

    @property
    def edge_rate(self) -> float:
        """Rate of a host's link in bit/s."""
        return self.rate if self.host_rate is None else self.host_rate


def _auto_or_off(value: object) -> object:
    if value is False:  # as YAML reads off
        return "off"
    if value in ("auto", "off") and isinstance(value, str):
        return value
    raise ValueError(f"should be auto or off, not {format_value(value)}")


AutoOrOff = Annotated[
    Literal["auto", "off"],
    BeforeValidator(_auto_or_off),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"const": "off"}, {"const": False}]}),
]


@dataclass(frozen=True, slots=True)
class LabSettings:
    """How the lab is built."""

    # the lab's links run at their real-world rate divided by this; `auto` = the smallest at which the lab keeps up,
    # found by trying
    dilation: Dilation = "auto"
    # `kernel` or `userspace` Open vSwitch; `auto` takes the kernel's where it works
    datapath: Literal["auto", "kernel", "userspace"] = "auto"
    arp: Literal["static", "broadcast"] = "static"  # `static` entries in every host, or `broadcast` in the VLAN's tree
    seed: Annotated[int, Ge(0)] = 1  # of every random choice
    # milliseconds between two readings of all counters while a load runs; 0 or false = none
    telemetry: Interval = _INTERVAL
    # processors that a host's programs get together; `none` = as many as are free, `auto` = 1/dilation, so that hosts
    # compute as much slower as their links are
    cpu_share: Share = "none"
    # how many Open vSwitch daemons share the switches; `auto` takes one a processor where that pays
    switch_daemons: SwitchDaemons = "auto"
    # whether frames of known hosts stay in the kernel under a userspace datapath; `auto` = where that works
    fast_path: AutoOrOff = "auto"
    # who installs the rules: `none` = the lab itself, once; else the OpenFlow controller of that name, which runs
    # inside the lab and keeps them there
    controller: Literal["none", "switch_tagged", "learning", "segment_manager"] = "none"
    # how many segment managers there are: one steers, and when it dies the next takes over
    managers: Annotated[int, Ge(1), Le(8)] = 1
    # what programs in hosts may do with the machine's files: `read` all, or `none` but what programs need, and in both
    # cases without the rights that could change the machine; `write` leaves them those of root
    host_access: Access = "read"
    # whether hosts' TCP hands its segments over whole, as to a card that cuts them (TSO), and so sends frames in rows:
    # `auto` = on modelled switches; on Open vSwitch none does
    tso: AutoOrOff = "auto"
    # whether a switch takes from a host's port only what the host sends from its own address (port security); by
    # default from any, as switches do
    port_security: bool = False

    @property
    def chosen_dilation(self) -> float:
        """The dilation, of a lab whose dilation is a number.

        Raises:
            ValueError: it is `auto`, and nothing has been chosen yet.
        """
        if isinstance(self.dilation, str):
            raise ValueError("the dilation is auto and has not been chosen yet")
        return self.dilation

    @property
    def processors_a_host(self) -> float | None:
        """What `cpu_share` comes to; None = no limit.

        Raises:
            ValueError: both are `auto`, and no dilation has been chosen yet.
        """
        if isinstance(self.cpu_share, float):
            return self.cpu_share
        return 1 / self.chosen_dilation if self.cpu_share == "auto" else None


@dataclass(frozen=True, slots=True)
class PluginParameters:
    """Parameters of a kind that this program does not have, of a stored plan that was made with a plug-in."""

    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """One load: its kind and the dataclass of its parameters."""

    kind: str
    spec: Any


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a run is made from."""

    name: str  # from the file's name unless the file says otherwise
    description: str  # free text
    source: str  # the file it came from, for messages
    topology_kind: str  # key of TOPOLOGIES, with its parameters in `topology`
    topology: Any
    faults: Faults  # what of it is dead
    routing_kind: str  # key of ROUTINGS, with its options in `routing`
    routing: Any
    assignment_kind: str  # key of ASSIGNMENTS, with its options in `assignment`
    assignment: Any
    switch_model: str | None  # key of SWITCH_MODELS whose limits hold, or None
    expect: Literal["deadlock_free", "deadlock"]  # what verification must find; `deadlock` declares a cyclic dependency
    links: Links  # rates and queues
    engine: str  # what runs it; key of ENGINES
    lab: LabSettings  # how it is emulated
    vm: VmOptions  # the virtual machine
    simulator: Simulator  # switches of the simulator
    workloads: tuple[Workload, ...]  # loads in the order they run
    plugins: tuple[str, ...] = ()  # absolute paths of the files that kinds above are from
    # how files that it names were read where that is not plain, in sentences; no part of what it is
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def carrier(self) -> str:
        """What carries frames: the engine, or what does so in its virtual machine."""
        return self.vm.engine if self.engine == "vm" else self.engine


def largest_dilation(links: Links, lab: LabSettings) -> float:
    """The dilation above which a link would be too slow to measure, or a host's share of the processors too small."""
    most = links.slowest / SLOWEST_LAB_LINK
    return min(most, MAX_DILATION, 1 / MIN_SHARE if lab.cpu_share == "auto" else MAX_DILATION)

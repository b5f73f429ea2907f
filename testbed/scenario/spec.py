"""What a scenario says, after validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import BeforeValidator, WithJsonSchema

from testbed.scenario.models import shown
from testbed.topologies.faults import Faults
from testbed.units import RATE_PATTERN, format_rate, parse_rate

KEYS = (
    "name", "description", "topology", "faults", "routing", "assignment", "switch_model", "expect", "links", "lab",
    "workloads",
)  # fmt: skip
EXPECTATIONS = ("deadlock_free", "deadlock")
# Above this a rate is no longer a link's but a typing error.
_HIGHEST_RATE = 1e13
# Below this a second carries too few frames to count them; bit/s.
SLOWEST_LAB_LINK = 1e5
# Each is two processes.
MOST_SWITCH_DAEMONS = 64


def _rate(value: object) -> float:
    if not isinstance(value, str):
        raise ValueError(f'{shown(value)} is not a rate; write a number and a unit, such as "1 Gbit/s"')
    rate = parse_rate(value)
    if rate > _HIGHEST_RATE:
        raise ValueError(f'should be {format_rate(_HIGHEST_RATE)} or less, not "{value}"')
    return rate


Rate = Annotated[float, BeforeValidator(_rate), WithJsonSchema({"type": "string", "pattern": f"^{RATE_PATTERN}$"})]


def _switch_daemons(value: object) -> object:
    if value == "auto":
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_SWITCH_DAEMONS:
        return value
    raise ValueError(f"should be auto or a whole number from 1 to {MOST_SWITCH_DAEMONS}, not {shown(value)}")


SwitchDaemons = Annotated[
    int | Literal["auto"],
    BeforeValidator(_switch_daemons),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MOST_SWITCH_DAEMONS}]}),
]


@dataclass(frozen=True, slots=True)
class Links:
    """Real-world links.

    Attributes:
        rate: of a link between switches; bit/s.
        host_rate: of a host's link; none = the same.
        queue_frames: frames that wait at a sending port before the next is lost.
        aggregate: whether the parallel links of two switches are one logical link, over whose members a hash of
            addresses and ports spreads the frames, or a channel each.
    """

    rate: Rate = 1e9
    host_rate: Rate | None = None
    queue_frames: Annotated[int, Ge(1), Le(100000)] = 100
    aggregate: bool = False

    @property
    def edge_rate(self) -> float:
        """Rate of a host's link in bit/s."""
        return self.rate if self.host_rate is None else self.host_rate


@dataclass(frozen=True, slots=True)
class Lab:
    """How the lab is built.

    Attributes:
        dilation: the lab's links run at their real-world rate divided by this.
        datapath: `kernel` or `userspace` Open vSwitch; `auto` takes the kernel's where it works.
        arp: `static` entries in every host, or `broadcast` in the VLAN's tree.
        seed: of every random choice.
        switch_daemons: how many Open vSwitch daemons share the switches; `auto` takes one a processor where that pays.
    """

    dilation: Annotated[float, Ge(1), Le(1e6)] = 200.0
    datapath: Literal["auto", "kernel", "userspace"] = "auto"
    arp: Literal["static", "broadcast"] = "static"
    seed: Annotated[int, Ge(0)] = 1
    switch_daemons: SwitchDaemons = "auto"


@dataclass(frozen=True, slots=True)
class Workload:
    """One load: its kind and the dataclass of its parameters."""

    kind: str
    spec: Any


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a run is made from.

    Attributes:
        name: from the file's name unless the file says otherwise.
        description: free text.
        source: the file it came from, for messages.
        topology_kind: key of TOPOLOGIES, with its parameters in `topology`.
        faults: what of it is dead.
        routing_kind: key of ROUTINGS, with its options in `routing`.
        assignment_kind: key of ASSIGNMENTS, with its options in `assignment`.
        switch_model: key of SWITCH_MODELS whose limits hold, or None.
        expect: what verification must find; `deadlock` declares a cyclic dependency.
        links: rates and queues.
        lab: how it is emulated.
        workloads: loads in the order they run.
    """

    name: str
    description: str
    source: str
    topology_kind: str
    topology: Any
    faults: Faults
    routing_kind: str
    routing: Any
    assignment_kind: str
    assignment: Any
    switch_model: str | None
    expect: Literal["deadlock_free", "deadlock"]
    links: Links
    lab: Lab
    workloads: tuple[Workload, ...]


def slowest_lab_rate(links: Links, lab: Lab) -> float:
    """Lowest rate of any lab link in bit/s."""
    return min(links.rate, links.edge_rate) / lab.dilation

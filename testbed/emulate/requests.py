"""What a lab's agent can be asked, one record an operation, each with the type of its answer.

One JSON object a line each way over a Unix socket: a request is `{"op": name, "request": {…}}`; answers are any number
of `{"progress": text}` and then one `{"result": …}` or `{"error": sentence}`. Agent and client both take names and
types from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, get_args

from testbed.messages import (
    Access,
    ControllerStatus,
    CpuShare,
    Disturbance,
    Disturbed,
    Facts,
    FrameCounts,
    LinkReadings,
    LinkState,
    LoadRequest,
    Observation,
    PairReadings,
    PlanMove,
    ShortCuts,
    Status,
)

R = TypeVar("R")


@dataclass(frozen=True)
class Request(Generic[R]):
    """A request whose answer is an R; subclasses with fields are frozen dataclasses of their own."""

    op: ClassVar[str]

    @classmethod
    def answer(cls) -> type[R]:
        """The type of its answer."""
        (base,) = cls.__orig_bases__  # type: ignore[attr-defined]
        found: type[R] = get_args(base)[0]
        return found


@dataclass(frozen=True, slots=True)
class HostOrder:
    """A host and the port it hangs on."""

    name: str
    ip: str
    mac: str
    switch: str
    port: int


@dataclass(frozen=True, slots=True)
class LinkOrder:
    """A link between two switches."""

    switch_a: str
    port_a: int
    switch_b: str
    port_b: int

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Switch and port of either end: the sending ports of its two channels."""
        return (self.switch_a, self.port_a), (self.switch_b, self.port_b)


@dataclass(frozen=True, slots=True)
class FarLink:
    """The end of a link whose other end is on another machine."""

    switch: str
    port: int
    tunnel: str  # interface in the lab's network that leads there


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """What is to be built: the plan with every name, address and rule text settled.

    Attributes:
        name: of the lab.
        hosts: in host order.
        switches: names in switch order.
        links: in link order; channels 2n and 2n + 1 are the directions of link n.
        rules: for each switch the lines for `ovs-ofctl add-flows`.
        groups: for each switch the lines for `ovs-ofctl add-groups`.
        link_rate: lab bit/s between switches.
        host_rate: lab bit/s of host links.
        queue_frames: frames a sending port holds.
        datapath: `auto`, `kernel` or `userspace`.
        switch_daemons: how many share the switches, or `auto`.
        static_arp: whether hosts know all addresses beforehand.
        prefix: length of the hosts' IP prefix.
        tagged_trunks: whether frames between switches carry a VLAN tag.
        dilation: links run at their real-world rate divided by this.
        cpu_share: processors that the programs of a host get together; None = no limit.
        controller: name of the one that installs the rules, from a plan file in the lab's folder; None = they are
            installed from `rules`.
        speeds: share of its rate at which a link between switches runs, by the link's number; others at all of it.
        alone: switches that get a daemon each, so that one can be killed.
        fast_path: `auto` or `off`: whether the userspace datapath gets one under it where that works.
        stock: run Open vSwitch as it is installed; for benchmarks, which compare with it.
        model: whether switches are a model, which the lab's folder holds, and not Open vSwitch.
        mtu: bytes of IP in a frame at most; only a model's is another than 1500.
        watchdog: real-world s after which a model drops what a pause holds back; 0 = never.
        far: ends of links that lead to other machines, where this is a part of a fabric on several.
        others: hosts there.
        everywhere: names of the fabric's switches in switch order; empty where all are here.
        controller_at: IP address at which the controller listens.
        controller_here: whether it runs in this lab, and not in that of the first machine.
        managers: how many of it there are, one of which steers.
        host_access: what programs in hosts may do with the machine's files.
    """

    name: str
    hosts: tuple[HostOrder, ...]
    switches: tuple[str, ...]
    links: tuple[LinkOrder, ...]
    rules: Mapping[str, Sequence[str]]
    groups: Mapping[str, Sequence[str]]
    link_rate: float
    host_rate: float
    queue_frames: int
    datapath: str
    switch_daemons: int | str
    static_arp: bool
    prefix: int
    tagged_trunks: bool
    dilation: float
    cpu_share: float | None
    controller: str | None = None
    speeds: Mapping[int, float] = field(default_factory=dict)
    alone: tuple[str, ...] = ()
    fast_path: str = "off"
    stock: bool = False
    model: bool = False
    mtu: int = 1500
    watchdog: float = 0.0
    host_access: Access = "read"
    far: tuple[FarLink, ...] = ()
    others: tuple[HostOrder, ...] = ()
    everywhere: tuple[str, ...] = ()
    controller_at: str = "127.0.0.1"
    controller_here: bool = True
    managers: int = 1

    @property
    def collects(self) -> bool:
        """Whether the controller asks switches by LLDP what is joined, before it installs anything."""
        return self.controller == "segment_manager"

    @property
    def ends(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Ports here that send into each link: both ends of `links`, then the one of each of `far`."""
        return (*(link.ends for link in self.links), *(((one.switch, one.port),) for one in self.far))


@dataclass(frozen=True, slots=True)
class LabState:
    """What another program needs to adopt a running lab: as what it was built, and pids and files as in Facts."""

    order: BuildOrder
    holders: Mapping[str, int]
    groups: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Build(Request[Facts]):
    """Make the network; once a lab."""

    op: ClassVar[str] = "build"
    order: BuildOrder


class TellFacts(Request[Facts]):
    """What was built."""

    op: ClassVar[str] = "facts"


class TellStatus(Request[Status]):
    """What the lab is and does; answered at any time."""

    op: ClassVar[str] = "status"


class Shutdown(Request[str]):
    """End the switches; whoever asks then kills the agent, and with it the rest."""

    op: ClassVar[str] = "shutdown"


@dataclass(frozen=True, slots=True)
class SetRates(Request[CpuShare | None]):
    """Give all links other rates, and the hosts another share of the processors, while the lab runs.

    Attributes:
        link_rate: lab bit/s between switches.
        host_rate: lab bit/s of host links.
        cpu_share: as in BuildOrder; without effect where the lab was built without shares.
        dilation: as there.
    """

    op: ClassVar[str] = "rates"
    link_rate: float
    host_rate: float
    cpu_share: float | None
    dilation: float


@dataclass(frozen=True, slots=True)
class SetSpeeds(Request[None]):
    """Let links run at shares of their rate, by the link's number; others keep theirs."""

    op: ClassVar[str] = "speeds"
    speeds: Mapping[int, float]


class CheckShaping(Request[list[str]]):
    """Differences between the shaping and the shares of processors asked for and the kernel's now."""

    op: ClassVar[str] = "shaping"


@dataclass(frozen=True, slots=True)
class RunLoad(Request[Observation]):
    """Run a load, and count, record and disturb meanwhile."""

    op: ClassVar[str] = "load"
    load: LoadRequest


@dataclass(frozen=True, slots=True)
class Disturb(Request[Disturbed]):
    """Let something die or come back, or links change, now."""

    op: ClassVar[str] = "disturb"
    disturbance: Disturbance


class TellLinks(Request[dict[int, LinkState]]):
    """Links between switches that are not as planned, by number."""

    op: ClassVar[str] = "links"


class CountFrames(Request[FrameCounts]):
    """Everything that counts frames: links, switches, queues, sockets."""

    op: ClassVar[str] = "frames"


class ReadLinks(Request[LinkReadings]):
    """What all links have carried until now, and what waits for them."""

    op: ClassVar[str] = "read links"


class ReadPairs(Request[PairReadings]):
    """Bytes between hosts; where they are not counted yet, from now on."""

    op: ClassVar[str] = "read pairs"


class DumpFlows(Request[dict[str, list[str]]]):
    """The rules of all running switches, a line each, by switch."""

    op: ClassVar[str] = "flows"


class DumpShortCuts(Request[ShortCuts]):
    """The fast path's entries, as the kernel has them."""

    op: ClassVar[str] = "short cuts"


class DumpGroups(Request[dict[str, list[str]]]):
    """The groups of all running switches, a line each, by switch."""

    op: ClassVar[str] = "groups"


@dataclass(frozen=True, slots=True)
class Trace(Request[list[str]]):
    """Ask switches what they would do with frames.

    Attributes:
        frames: (switch, flow) as `ofproto/trace` takes them.
    """

    op: ClassVar[str] = "trace"
    frames: tuple[tuple[str, str], ...]


class Reach(Request[list[tuple[str, str]]]):
    """Ping all pairs of hosts: names of those without an answer."""

    op: ClassVar[str] = "reach"


@dataclass(frozen=True, slots=True)
class Learn(Request[str]):
    """Let every host send a broadcast in each of some VLANs: how the frames were made.

    Attributes:
        vlans: identifiers.
        datagrams: whether they are UDP from an address in a network of each VLAN, or of no protocol.
    """

    op: ClassVar[str] = "learn"
    vlans: tuple[int, ...]
    datagrams: bool


@dataclass(frozen=True, slots=True)
class StormReading:
    """Counters of a storm.

    Attributes:
        seconds: since the broadcast.
        frames: sent since then by all switch ports together.
        busiest: likewise by the port that sent most.
    """

    seconds: float
    frames: int
    busiest: int


@dataclass(frozen=True, slots=True)
class WatchStorm(Request[list[StormReading]]):
    """One broadcast, watched; afterwards the switches have no rules.

    Attributes:
        seconds: from the broadcast on.
        every: s between two readings.
        rules: replace those of the switches; None = those stay that are there.
    """

    op: ClassVar[str] = "storm"
    seconds: float
    every: float
    rules: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class WriteFile(Request[str]):
    """Write a file into the lab's folder: its path there."""

    op: ClassVar[str] = "write"
    name: str
    text: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class CopyFile(Request[str]):
    """Copy a file into the lab's folder: its path there, which has neither spaces nor colons."""

    op: ClassVar[str] = "copy"
    source: str
    name: str


@dataclass(frozen=True, slots=True)
class TakeFile(Request[str]):
    """Text of a file of the lab's folder, which is then gone; empty where there is none."""

    op: ClassVar[str] = "take"
    name: str


@dataclass(frozen=True, slots=True)
class ShowFolder(Request[None]):
    """Let programs in hosts, in all or some, read a folder of the machine, where they may read it and it is hidden."""

    op: ClassVar[str] = "show"
    folder: str
    hosts: tuple[str, ...] | None = None


class TellController(Request[ControllerStatus]):
    """The controller's status."""

    op: ClassVar[str] = "controller"


@dataclass(frozen=True, slots=True)
class WaitForController(Request[ControllerStatus]):
    """Wait until all switches are in step, up to `limit` s."""

    op: ClassVar[str] = "controller wait"
    limit: float


class StopController(Request[None]):
    """Kill the controller, of several managers the master, as a crash would; switches keep their rules."""

    op: ClassVar[str] = "controller stop"


class StartController(Request[None]):
    """Start the controller anew, or managers that do not run, from the plan the lab was built from."""

    op: ClassVar[str] = "controller start"


@dataclass(frozen=True, slots=True)
class MoveToPlan(Request[PlanMove]):
    """Have the controller carry the switches over to another plan.

    Attributes:
        plan: its JSON text.
        off: links that are off afterwards.
        limit: s that it may take.
        wake_up: s from a link's being switched on until it carries frames.
        pause: s after each step, to look at the states in between.
    """

    op: ClassVar[str] = "controller move"
    plan: str
    off: tuple[int, ...]
    limit: float
    wake_up: float = 0.0
    pause: float = 0.0


OPERATIONS: dict[str, type[Request[Any]]] = {
    kind.op: kind
    for kind in (
        Build, TellFacts, TellStatus, Shutdown, SetRates, SetSpeeds, CheckShaping, RunLoad, Disturb, TellLinks,
        CountFrames, ReadLinks, ReadPairs, DumpFlows, DumpShortCuts, DumpGroups, Trace, Reach, Learn,
        WatchStorm, WriteFile, CopyFile, TakeFile, ShowFolder, TellController, WaitForController, StopController,
        StartController, MoveToPlan,
    )
}  # fmt: skip

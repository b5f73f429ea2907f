"""What a lab's agent can be asked, one record an operation, each with the type of its answer.

One JSON object a line each way over a Unix socket: a request is `{"op": name, "request": {…}}`; answers are any number
of `{"progress": text}` and then one `{"result": …}` or `{"error": sentence}`. Agent and client both take names and
types from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, get_args

from testbed.base.messages import (
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
    """What is to be built: the plan with every name, address and rule text settled."""

    name: str  # of the lab
    hosts: tuple[HostOrder, ...]  # in host order
    switches: tuple[str, ...]  # names in switch order
    links: tuple[LinkOrder, ...]  # in link order; channels 2n and 2n + 1 are the directions of link n
    rules: Mapping[str, Sequence[str]]  # for each switch the lines for `ovs-ofctl add-flows`
    groups: Mapping[str, Sequence[str]]  # for each switch the lines for `ovs-ofctl add-groups`
    link_rate: float  # lab bit/s between switches
    host_rate: float  # lab bit/s of host links
    queue_frames: int  # frames that a sending port of a switch holds
    datapath: str  # `auto`, `kernel` or `userspace`
    switch_daemons: int | str  # how many share the switches, or `auto`
    static_arp: bool  # whether hosts know all addresses beforehand
    prefix: int  # length of the hosts' IP prefix
    tagged_trunks: bool  # whether frames between switches carry a VLAN tag
    dilation: float  # links run at their real-world rate divided by this
    cpu_share: float | None  # processors that the programs of a host get together; None = no limit
    # name of the one that installs the rules, from a plan file in the lab's folder; None = they are installed from
    # `rules`
    controller: str | None = None
    # share of its rate at which a link between switches runs, by the link's number; others at all of it
    speeds: Mapping[int, float] = field(default_factory=dict)
    alone: tuple[str, ...] = ()  # switches that get a daemon each, so that one can be killed
    fast_path: str = "off"  # `auto` or `off`: whether the userspace datapath gets one under it where that works
    stock: bool = False  # run Open vSwitch as it is installed; for benchmarks, which compare with it
    model: bool = False  # whether switches are a model, which the lab's folder holds, and not Open vSwitch
    mtu: int = 1500  # bytes of IP in a frame at most; only a model's is another than 1500
    watchdog: float = 0.0  # real-world s after which a model drops what a pause holds back; 0 = never
    host_access: Access = "read"  # what programs in hosts may do with the machine's files
    tso: bool = True  # whether hosts hand TCP's segments over whole, where the model cuts them
    port_security: bool = False  # whether the rules take from a host only what it sends from its own address
    # ends of links that lead to other machines, where this is a part of a fabric on several
    far: tuple[FarLink, ...] = ()
    others: tuple[HostOrder, ...] = ()  # hosts there
    everywhere: tuple[str, ...] = ()  # names of the fabric's switches in switch order; empty where all are here
    controller_at: str = "127.0.0.1"  # IP address at which the controller listens
    controller_here: bool = True  # whether it runs in this lab, and not in that of the first machine
    managers: int = 1  # how many of it there are, one of which steers

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

    order: BuildOrder


class GetFacts(Request[Facts]):
    """What was built."""


class GetStatus(Request[Status]):
    """What the lab is and does; answered at any time."""


class Shutdown(Request[str]):
    """End the switches; whoever asks then kills the agent, and with it the rest."""


@dataclass(frozen=True, slots=True)
class SetRates(Request[CpuShare | None]):
    """Give all links other rates, and the hosts another share of the processors, while the lab runs."""

    link_rate: float  # lab bit/s between switches
    host_rate: float  # lab bit/s of host links
    cpu_share: float | None  # as in BuildOrder; without effect where the lab was built without shares
    dilation: float  # as there


@dataclass(frozen=True, slots=True)
class SetSpeeds(Request[None]):
    """Let links run at shares of their rate, by the link's number; others keep theirs."""

    speeds: Mapping[int, float]


class CheckShaping(Request[list[str]]):
    """Differences between the shaping and the shares of processors asked for and the kernel's now."""


@dataclass(frozen=True, slots=True)
class RunLoad(Request[Observation]):
    """Run a load, and count, record and disturb meanwhile."""

    load: LoadRequest


@dataclass(frozen=True, slots=True)
class Disturb(Request[Disturbed]):
    """Let something die or come back, or links change, now."""

    disturbance: Disturbance


class GetLinks(Request[dict[int, LinkState]]):
    """Links between switches that are not as planned, by number."""


class CountFrames(Request[FrameCounts]):
    """Everything that counts frames: links, switches, queues, sockets."""


class ReadLinks(Request[LinkReadings]):
    """What all links have carried until now, and what waits for them."""


class ReadPairs(Request[PairReadings]):
    """Bytes between hosts; where they are not counted yet, from now on."""


class DumpFlows(Request[dict[str, list[str]]]):
    """The rules of all running switches, a line each, by switch."""


class DumpShortCuts(Request[ShortCuts]):
    """The fast path's entries, as the kernel has them."""


class DumpGroups(Request[dict[str, list[str]]]):
    """The groups of all running switches, a line each, by switch."""


@dataclass(frozen=True, slots=True)
class ChangeSwitches(Request[None]):
    """Change rules and groups of switches, each switch's rules as one bundle; answered when frames go by them.

    Attributes:
        rules: switch → lines as `ovs-ofctl add-flows` takes them.
        groups: switch → lines of groups that take the place of those of their numbers.
    """

    rules: Mapping[str, Sequence[str]]
    groups: Mapping[str, Sequence[str]]


class ForgetFlows(Request[None]):
    """Have switches look frames up in their rules anew, and not go by what they once found there."""


@dataclass(frozen=True, slots=True)
class Trace(Request[list[str]]):
    """Ask switches what they would do with frames."""

    frames: tuple[tuple[str, str], ...]  # (switch, flow) as `ofproto/trace` takes them


class Reach(Request[list[tuple[str, str]]]):
    """Ping all pairs of hosts: names of those without an answer."""


@dataclass(frozen=True, slots=True)
class Learn(Request[str]):
    """Let every host send a broadcast in each of some VLANs: how the frames were made."""

    vlans: tuple[int, ...]  # identifiers
    datagrams: bool  # whether they are UDP from an address in a network of each VLAN, or of no protocol


@dataclass(frozen=True, slots=True)
class StormReading:
    """Counters of a storm."""

    seconds: float  # since the broadcast
    frames: int  # sent since then by all switch ports together
    busiest: int  # likewise by the port that sent most


@dataclass(frozen=True, slots=True)
class WatchStorm(Request[list[StormReading]]):
    """One broadcast, watched; afterwards the switches have no rules."""

    seconds: float  # from the broadcast on
    every: float  # s between two readings
    rules: Mapping[str, Sequence[str]] | None = None  # replace those of the switches; None = those stay that are there


@dataclass(frozen=True, slots=True)
class WriteFile(Request[str]):
    """Write a file into the lab's folder: its path there."""

    name: str
    text: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class CopyFile(Request[str]):
    """Copy a file into the lab's folder: its path there, which has neither spaces nor colons."""

    source: str
    name: str


@dataclass(frozen=True, slots=True)
class TakeFile(Request[str]):
    """Text of a file of the lab's folder, which is then gone; empty where there is none."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowFolder(Request[None]):
    """Let programs in hosts, in all or some, read a folder of the machine, where they may read it and it is hidden."""

    folder: str
    hosts: tuple[str, ...] | None = None


class TellController(Request[ControllerStatus]):
    """The controller's status."""


@dataclass(frozen=True, slots=True)
class WaitForController(Request[ControllerStatus]):
    """Wait until all switches are in step, up to `limit` s."""

    limit: float


class StopController(Request[None]):
    """Kill the controller, of several managers the master, as a crash would; switches keep their rules."""


class StartController(Request[None]):
    """Start the controller anew, or managers that do not run, from the plan the lab was built from."""


@dataclass(frozen=True, slots=True)
class MoveToPlan(Request[PlanMove]):
    """Have the controller carry the switches over to another plan."""

    plan: str  # its JSON text
    off: tuple[int, ...]  # links that are off afterwards
    limit: float  # s that it may take
    wake_up: float = 0.0  # s from a link's being switched on until it carries frames
    pause: float = 0.0  # s after each step, to look at the states in between


OPERATIONS: dict[str, type[Request[Any]]] = {
    "build": Build, "facts": GetFacts, "status": GetStatus, "shutdown": Shutdown, "rates": SetRates,
    "speeds": SetSpeeds, "shaping": CheckShaping, "load": RunLoad, "disturb": Disturb, "links": GetLinks,
    "frames": CountFrames, "read links": ReadLinks, "read pairs": ReadPairs, "flows": DumpFlows,
    "short cuts": DumpShortCuts, "groups": DumpGroups, "change switches": ChangeSwitches,
    "forget flows": ForgetFlows, "trace": Trace,
    "reach": Reach, "learn": Learn,
    "storm": WatchStorm, "write": WriteFile, "copy": CopyFile, "take": TakeFile, "show": ShowFolder,
    "controller": TellController, "controller wait": WaitForController, "controller stop": StopController,
    "controller start": StartController, "controller move": MoveToPlan,
}  # fmt: skip
OP = {kind: name for name, kind in OPERATIONS.items()}  # what each is called

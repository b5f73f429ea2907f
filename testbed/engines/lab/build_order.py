"""What a lab is built from, with every name and address settled; and records that it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from testbed.base.messages import Access


@dataclass(frozen=True, slots=True)
class HostOrder:
    """A host and the port it hangs on."""

    name: str
    ip: str
    mac: str
    switch: str
    port: int
    vlans: tuple[int, ...] = ()  # those that it has a tagged interface in; none where it does not tag
    tags: Mapping[str, int] = field(
        default_factory=dict, hash=False
    )  # address of each other host → VLAN that it is sent to in


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
    def collects_links(self) -> bool:
        """Whether the controller asks switches by LLDP what is joined, before it installs anything."""
        return self.controller == "segment_manager"

    @property
    def tagging(self) -> tuple[HostOrder, ...]:
        """Hosts that tag their frames."""
        return tuple(host for host in self.hosts if host.vlans)

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
class StormReading:
    """Counters of a storm."""

    seconds: float  # since the broadcast
    frames: int  # sent since then by all switch ports together
    busiest: int  # likewise by the port that sent most

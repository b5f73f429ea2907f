"""What is said to a running session of a lab, and what it answers: plain records, whatever carries the frames.

Switches, hosts, links and channels have the numbers of the plan's wiring; a lab's own names of interfaces, rules and
queues stay with the engine. Times are s; `monotonic` ones are of the machine's monotonic clock.

The lab's agent imports this module, so it needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# What programs in hosts may do with the machine's files; see docs/reliability.md.
Access = Literal["none", "read", "write"]
# Folder of a lab's own that all its hosts see and may write to.
SHARED = "shared"

# s: upper ends of the bins that lateness is counted in, but for the last, which has none.
LATE_BINS = tuple(round(10e-6 * 2 ** (step / 2), 9) for step in range(24))


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a load."""

    id: str  # its name in the outputs
    host: str | None  # name of the host it runs in; None = beside the switches
    argv: tuple[str, ...]  # program and arguments
    server_port: int | None = None  # TCP port that must be open before clients start; None for clients
    # additions to the environment, or all of it where `only_env` is set
    env: Mapping[str, str] = field(default_factory=dict)
    only_env: bool = False  # the process gets nothing of the lab's own environment
    to_hosts: bool = False  # whether it starts programs in hosts, by itself, which then are hosts' programs, too
    # for one beside the switches of a fabric over several machines, a host of the machine where it runs; None = the
    # first machine
    beside: str | None = None


@dataclass(frozen=True, slots=True)
class LinkChange:
    """What becomes of a link between switches, in both directions; figures are of the real world."""

    link: int  # number of the physical link
    rate: float | None = None  # bit/s; None = as it is
    delay: float | None = None  # s that every frame takes longer; None = as it is
    loss: float | None = None  # share of the frames that get lost at random; None = as it is
    reset: bool = False  # whether all three are as planned first


@dataclass(frozen=True, slots=True)
class LinkState:
    """How a link between switches differs from the plan; figures are of the real world, see LinkChange."""

    rate: float | None = None  # bit/s; None = the planned one
    delay: float = 0.0  # s
    loss: float = 0.0  # share of the frames
    up: bool = True  # whether it carries anything

    def apply_change(self, change: LinkChange) -> LinkState:
        """How it is after a change."""
        old = LinkState(up=self.up) if change.reset else self
        return LinkState(
            old.rate if change.rate is None else change.rate,
            old.delay if change.delay is None else change.delay,
            old.loss if change.loss is None else change.loss,
            self.up,
        )


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Something that dies or comes back, or links that change."""

    up: bool  # whether it comes back
    channels: tuple[int, ...] = ()  # whose sending ports go down or up; both channels of a link are both of its ends
    hosts: tuple[int, ...] = ()  # whose switch ports do
    switches: tuple[int, ...] = ()  # that are killed or started
    at: float = 0.0  # s after the start of a load; of no meaning for one that is to happen now
    links: tuple[LinkChange, ...] = ()  # what changes of links, whatever `up` is
    pausing: tuple[int, ...] = ()  # hosts that pause their switch for ever, or no more
    # links whose end on another machine goes down or up, so that the end here loses or gets its signal
    far: tuple[int, ...] = ()
    # whether the manager that steers is killed, or those that were are started. A kill has ended when the next one has
    # taken over.
    manager: bool = False


@dataclass(frozen=True, slots=True)
class Disturbed:
    """When a disturbance was carried out."""

    began: float  # s, monotonic
    ended: float  # likewise
    error: str = ""  # why it failed; empty where it did not


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A load to run."""

    processes: tuple[Process, ...]  # servers are started first, and must listen before the others start
    limit: float  # s after which what still runs is ended
    # (start, end) s after each client's start, in the part of which that all have in common counters are taken; None =
    # around the whole load
    window: tuple[float, float] | None = None
    telemetry: float = 0.0  # s between readings of all counters beside the load; 0 = none
    # s after the last start at which the busiest ports are watched frame by frame; None = never
    departures: float | None = None
    timeline: tuple[Disturbance, ...] = ()  # what dies and comes back meanwhile, in the order of `at`
    # folder in the lab's own where the parts of a fabric on several machines wait for each other; empty where the
    # fabric is whole
    gate: str = ""
    # whether programs on other machines are no servers, and servers end when those have ended; where there are none
    # anywhere, servers end by themselves
    clients_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """What became of a process."""

    code: int | None  # exit code; that of the signal, negative, where it was ended
    stdout: str  # what it printed
    stderr: str  # likewise
    seconds: float = 0.0  # that it ran, to a fiftieth of a second


@dataclass(frozen=True, slots=True)
class Count:
    """Frames, and their bytes with Ethernet header, without preamble, check sequence and gap."""

    bytes: int
    frames: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters and clocks at one moment."""

    time: float  # s, monotonic
    wall: float  # s by the system clock
    channels: tuple[Count, ...]  # (physical C,) what each channel between switches has carried
    hosts: tuple[Count, ...]  # (H,) what each host has sent into the fabric
    idle: int  # processor time in ticks
    network: int  # likewise, in interrupts of the network and others
    total: int  # likewise, all
    pressure: int | None  # µs that some task waited for a processor (PSI `some`); None where it is not counted
    # processor seconds of the lab's processes: `switches` (each), `agent`, `programs` (the load)
    processes: Mapping[str, tuple[float, ...]]
    # of a model that keeps to the clock, how often what was how late, by the bins of LATE_BINS: `delivery` of frames to
    # hosts, `reading` of what idle hosts sent, `loop` itself; empty for others
    late: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    frame_seconds: float = 0.0  # of such a model, lab s that a full frame takes on its slowest link
    stalled: float = 0.0  # likewise, s for which nobody computed it, beyond what hosts' cards have ahead
    delivered: int = 0  # likewise, frames that have arrived at hosts
    transit: float = 0.0  # s that these took from their host's card to there, together
    # (physical C,) s, monotonic, when each channel was counted, by the clock of its machine; empty where all were at
    # `time`
    counted: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of a load."""

    outputs: Mapping[str, Output]  # process id → what became of it
    before: Snapshot  # counters at the start of the window
    after: Snapshot  # counters at its end
    timed_out: tuple[str, ...]  # ids of processes that were ended
    start: float  # when the last process had started; s, monotonic
    window: tuple[float, float] | None  # what the figures are counted over, s after that; None = all of it
    seconds: float  # that the load took
    disturbed: tuple[Disturbed, ...] = ()  # for each event of the timeline that was carried out
    record: str = ""  # file with the telemetry, see LabClient.read(); empty where there is none
    no_matrix: str = ""  # why that has no traffic matrix; empty where it has one
    # s that times of different machines may be off beside each other; 0 on one machine, and where no times were
    # recorded
    clock_error: float = 0.0
    # host → s that the monotonic clock of its machine is ahead of the one that times here are by; empty where it is the
    # same
    ahead: Mapping[str, float] = field(default_factory=dict)
    # virtual channels, `layer * C + channel`, that were paused for ever, each by frames that wait for the one after it;
    # the load was then ended. Empty without a deadlock.
    deadlock: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """Frames since the lab was built."""

    arrived: int  # that links brought to switches
    # where → frames that got lost there outside a queue, as differences of counters: only their increases mean
    # something, and negative ones are no losses
    lost: Mapping[str, int]
    flooded: int  # sent along the tree of a VLAN, counted at every switch on it
    channels: tuple[int, ...]  # (physical C,) sent into each channel between switches
    to_hosts: tuple[int, ...]  # (H,) sent to each host
    admitted: tuple[int, ...]  # (S,) that each switch took in
    # why → frames that switches have not forwarded for what they are, which is no loss; engine: realtime alone counts
    # them
    refused: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinkReadings:
    """What all links have carried until a moment, and what waits for them then, in lab time.

    The directions of links are the physical C channels between switches, then those to the H hosts, then those from
    them. The switches' ports send into the first C + H.
    """

    time: float  # s, monotonic
    dilation: float  # of the lab now
    bytes: tuple[int, ...]  # (C + 2H,) carried, with Ethernet header, without preamble, check sequence and gap
    frames: tuple[int, ...]  # (C + 2H,) likewise
    rates: tuple[float, ...]  # (C + H,) lab bit/s that a port sends at most
    waiting: tuple[int, ...]  # (C + H,) frames in its queue
    drops: tuple[int, ...]  # (C + H,) frames that found it full, so far
    # (C + 2H,) s that the sender has been paused, so far, of all priorities together; empty where there is no flow
    # control
    paused: tuple[float, ...] = ()
    deadlock: tuple[int, ...] = ()  # virtual channels that wait for each other for ever now, as in Observation


@dataclass(frozen=True, slots=True)
class PairReadings:
    """Bytes between hosts so far, Ethernet header included, counted where they entered the fabric."""

    time: float  # s, monotonic
    pairs: tuple[tuple[int, int, int], ...] = ()  # source, destination and bytes of each pair that has sent something
    why_not: str = ""  # why pairs cannot be counted; else empty


@dataclass(frozen=True, slots=True)
class PathTrace:
    """Where a frame of one host for another goes now, by the forwarding state, whether its links are up or not."""

    # the channels that carry it, in order; of aggregated links the physical ones, one of which does
    hops: tuple[tuple[int, ...], ...]
    vlans: tuple[int, ...]  # tag on each, -1 = untagged
    priorities: tuple[int, ...]  # likewise; of no meaning without a tag
    arrives: bool  # whether the destination gets it, once, and nobody else does


@dataclass(frozen=True, slots=True)
class CpuShare:
    """The share of the processors that a host has, as the kernel has it."""

    processors: float
    quota_us: int
    period_us: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What a lab is."""

    datapath: str  # what forwards frames
    version: str  # of the program that does
    head_drop: bool  # whether a full queue of a switch loses its first frame, and not the one that comes
    switch_daemons: tuple[tuple[str, ...], ...]  # names of the switches that each process carries
    controller: str | None  # name of the one that installs the rules; None = they were installed once
    holders: Mapping[str, int]  # host → pid, in the lab, of a process in its namespaces
    # host → file by which processes join its share of the processors; empty where hosts have none
    groups: Mapping[str, str]
    cpu_share: CpuShare | None  # of each host; None = no limit
    dilation: float  # links run at their real-world rate divided by this
    seconds: Mapping[str, float]  # that each step of building took
    kernel: str  # release of the kernel
    folder: str  # of the lab, as its programs see it
    interface: str  # of each host, by which its programs reach the fabric
    fast_path: bool = False  # whether frames are forwarded by a fast path under the switches
    why_slow: str = ""  # why not, where one was wanted; else empty
    tsq_backpressure_reason: str = ""  # why hosts' sockets wait for queues of switches, too; empty where they do not
    pace: str = ""  # how a model keeps to the clock: its priority, and why none, if it has none; empty for others
    shapes_idle_ports: bool = False  # whether a port keeps a frame that finds it idle for its time on the wire, too
    host_access: Access = "read"  # what programs in hosts may do with the machine's files
    machines: Mapping[str, int] = field(default_factory=dict)  # host → number of its machine; empty where there is one
    most_share: float = 1.0  # largest share of a host, in processors, that leaves the switches enough on every machine


@dataclass(frozen=True, slots=True)
class FastPathEntries:
    """What a fast path under the switches holds."""

    # for each switch that is on, its entries as the kernel has them; see pipeline.entry.Entry
    entries: Mapping[str, tuple[str, ...]]
    off: Mapping[str, str]  # for each other switch the reason
    map_id: int  # number of the kernel's map with the entries; 0 where there is no fast path


@dataclass(frozen=True, slots=True)
class Status:
    """What a lab is doing."""

    doing: str  # name of the operation, such as `load`, or `idle`
    hosts: int  # how many
    switches: int  # likewise
    links: int  # likewise, between switches
    datapath: str  # what forwards frames; empty until that is known
    controller: str | None  # its name, or None
    link_rate: float | None  # lab bit/s between switches; None until it is known
    killed: tuple[str, ...] = ()  # names of switches that were killed and not started since


@dataclass(frozen=True, slots=True)
class SwitchState:
    """What a controller knows of a switch."""

    state: str  # `in step`, `not in step`, `checking`, `collecting`, `standby`, `gone` or `not seen`
    since: float = 0.0  # when that began; s since the epoch
    problem: str = ""  # why it is not in step
    rules: int = 0  # that it has
    changed: int = 0  # rules that had to be changed when it was last checked


@dataclass(frozen=True, slots=True)
class RefusedSwitch:
    """A switch that speaks no OpenFlow that the controller does."""

    sentence: str
    address: str = ""
    speaks: tuple[str, ...] = ()
    times: int = 0


@dataclass(frozen=True, slots=True)
class TransitionState:
    """How far a change of plans is: its steps, or why it is being undone."""

    step: int = 0
    of: int = 0
    action: str = ""
    done: bool = False
    undoing: str = ""


@dataclass(frozen=True, slots=True)
class FailureEvent:
    """A failure or repair as the controller saw it; times in s, monotonic, None where it is yet to come."""

    detected: float  # when it heard of it
    diverted: float  # when hosts that it hits had been given their backup VLANs
    recovered: float | None  # when new paths were installed
    settled: float | None  # when the tables of those were all that was left
    hosts_moved: int  # hosts that were diverted
    down: tuple[str, ...] = ()  # names of what failed
    up: tuple[str, ...] = ()  # names of what was repaired
    pairs_hit: int = 0  # pairs of hosts whose path it took
    without_backup: tuple[str, ...] = ()  # pairs for which there was no backup path
    cut_off: tuple[str, ...] = ()  # pairs that nothing connects any more


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """What a controller says of itself; from `phase` on only one that overcomes failures."""

    switches: Mapping[str, SwitchState]  # by name
    in_step: int = 0  # how many switches have the rules of the plan
    plan: str = ""  # digest of the plan it keeps
    scenario: str = ""  # name of that plan's scenario
    off: tuple[str, ...] = ()  # links that are off, by name
    # share of its rate at which a link runs, by name, where that is not all of it
    slower: Mapping[str, float] = field(default_factory=dict)
    transition: TransitionState | None = None  # how far the change of plans is that is under way
    rate: float = 0.0  # bit/s of a link now
    refused: tuple[RefusedSwitch, ...] = ()  # switches that speak another OpenFlow
    phase: str = ""  # `steady`, or what it is doing
    down: tuple[str, ...] = ()  # names of what is dead
    cut_off: int = 0  # pairs that nothing connects
    without_backup: int = 0  # pairs that wait for new paths, since no backup path remains
    diverted: tuple[str, ...] = ()  # hosts that use a backup VLAN
    routing: str = ""  # of the paths in use
    vlans: tuple[int, ...] = ()  # identifiers of the VLANs in use
    backup_vlans: tuple[int, ...] = ()  # likewise, of backups
    problem: str = ""  # what it could not do
    events: tuple[FailureEvent, ...] = ()  # failures and repairs so far
    links: tuple[str, ...] = ()  # ports that are joined, as switches tell by LLDP; empty where nobody asks them
    wiring: tuple[str, ...] = ()  # how that differs from the plan, a sentence each
    role: str = ""  # of one of several managers, `master` or `standby`; empty for others
    master_since: float | None = None  # when it became master; s, monotonic
    manager: int = 1  # its number, from 1


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of a change of plans, as the controller tells it."""

    action: str
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class PlanMove:
    """What a controller did to carry switches over to another plan."""

    steps: tuple[PlanStep, ...]  # in their order
    deadlock: tuple[str, ...]  # sentences about cycles that old and new paths could close together


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something that is no longer as it was built; whether that makes the figures measured meanwhile void."""

    void: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow of a load: hosts, protocol (`tcp` or `udp`), and the ports its data come from and go to."""

    source: int
    destination: int
    protocol: str
    source_port: int
    destination_port: int


@dataclass(frozen=True, slots=True)
class Tap:
    """Where frames are captured: a physical link between switches, or the link of a host; the other one is None."""

    link: int | None = None  # number of the link; outbound frames go along its first channel, 2 link
    host: int | None = None  # number of the host; outbound frames are those that it sends


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that was captured."""

    time: int  # ns since the epoch
    outbound: bool  # which way it went, see Tap
    data: bytes  # from the Ethernet header on, with the VLAN tag that it has on the wire and without check sequence
    length: int  # bytes of all of it, where `data` was cut

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
    """A process of a load.

    Attributes:
        id: its name in the outputs.
        host: name of the host it runs in; None = beside the switches.
        argv: program and arguments.
        server_port: TCP port that must be open before clients start; None for clients.
        env: additions to the environment, or all of it where `only_env` is set.
        only_env: the process gets nothing of the lab's own environment.
        to_hosts: whether it starts programs in hosts, by itself, which then are hosts' programs, too.
        beside: for one beside the switches of a fabric over several machines, a host of the machine where it runs;
            None = the first machine.
    """

    id: str
    host: str | None
    argv: tuple[str, ...]
    server_port: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    only_env: bool = False
    to_hosts: bool = False
    beside: str | None = None


@dataclass(frozen=True, slots=True)
class LinkChange:
    """What becomes of a link between switches, in both directions; figures are of the real world.

    Attributes:
        link: number of the physical link.
        rate: bit/s; None = as it is.
        delay: s that every frame takes longer; None = as it is.
        loss: share of the frames that get lost at random; None = as it is.
        reset: whether all three are as planned first.
    """

    link: int
    rate: float | None = None
    delay: float | None = None
    loss: float | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class LinkState:
    """How a link between switches differs from the plan; figures are of the real world, see LinkChange.

    Attributes:
        rate: bit/s; None = the planned one.
        delay: s.
        loss: share of the frames.
        up: whether it carries anything.
    """

    rate: float | None = None
    delay: float = 0.0
    loss: float = 0.0
    up: bool = True

    def after(self, change: LinkChange) -> LinkState:
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
    """Something that dies or comes back, or links that change.

    Attributes:
        up: whether it comes back.
        channels: whose sending ports go down or up; both channels of a link are both of its ends.
        hosts: whose switch ports do.
        switches: that are killed or started.
        at: s after the start of a load; of no meaning for one that is to happen now.
        links: what changes of links, whatever `up` is.
        pausing: hosts that pause their switch for ever, or no more.
        far: links whose end on another machine goes down or up, so that the end here loses or gets its signal.
        manager: whether the manager that steers is killed, or those that were are started. A kill has ended when the
            next one has taken over.
    """

    up: bool
    channels: tuple[int, ...] = ()
    hosts: tuple[int, ...] = ()
    switches: tuple[int, ...] = ()
    at: float = 0.0
    links: tuple[LinkChange, ...] = ()
    pausing: tuple[int, ...] = ()
    far: tuple[int, ...] = ()
    manager: bool = False


@dataclass(frozen=True, slots=True)
class Disturbed:
    """When a disturbance was carried out.

    Attributes:
        began: s, monotonic.
        ended: likewise.
        error: why it failed; empty where it did not.
    """

    began: float
    ended: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A load to run.

    Attributes:
        processes: servers are started first, and must listen before the others start.
        limit: s after which what still runs is ended.
        window: (start, end) s after each client's start, in the part of which that all have in common counters are
            taken; None = around the whole load.
        telemetry: s between readings of all counters beside the load; 0 = none.
        departures: s after the last start at which the busiest ports are watched frame by frame; None = never.
        timeline: what dies and comes back meanwhile, in the order of `at`.
        gate: folder in the lab's own where the parts of a fabric on several machines wait for each other; empty where
            the fabric is whole.
        clients_elsewhere: whether programs on other machines are no servers, and servers end when those have ended;
            where there are none anywhere, servers end by themselves.
    """

    processes: tuple[Process, ...]
    limit: float
    window: tuple[float, float] | None = None
    telemetry: float = 0.0
    departures: float | None = None
    timeline: tuple[Disturbance, ...] = ()
    gate: str = ""
    clients_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """What became of a process.

    Attributes:
        code: exit code; that of the signal, negative, where it was ended.
        stdout: what it printed.
        stderr: likewise.
        seconds: that it ran, to a fiftieth of a second.
    """

    code: int | None
    stdout: str
    stderr: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Count:
    """Frames, and their bytes with Ethernet header, without preamble, check sequence and gap."""

    bytes: int
    frames: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters and clocks at one moment.

    Attributes:
        time: s, monotonic.
        wall: s by the system clock.
        channels: (physical C,) what each channel between switches has carried.
        hosts: (H,) what each host has sent into the fabric.
        idle: processor time in ticks.
        network: likewise, in interrupts of the network and others.
        total: likewise, all.
        pressure: µs that some task waited for a processor (PSI `some`); None where it is not counted.
        processes: processor seconds of the lab's processes: `switches` (each), `agent`, `programs` (the load).
        late: of a model that keeps to the clock, how often what was how late, by the bins of LATE_BINS: `delivery` of
            frames to hosts, `reading` of what idle hosts sent, `loop` itself; empty for others.
        frame_seconds: of such a model, lab s that a full frame takes on its slowest link.
        stalled: likewise, s for which nobody computed it, beyond what hosts' cards have ahead.
        delivered: likewise, frames that have arrived at hosts.
        transit: s that these took from their host's card to there, together.
        counted: (physical C,) s, monotonic, when each channel was counted, by the clock of its machine; empty where all
            were at `time`.
    """

    time: float
    wall: float
    channels: tuple[Count, ...]
    hosts: tuple[Count, ...]
    idle: int
    network: int
    total: int
    pressure: int | None
    processes: Mapping[str, tuple[float, ...]]
    late: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    frame_seconds: float = 0.0
    stalled: float = 0.0
    delivered: int = 0
    transit: float = 0.0
    counted: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of a load.

    Attributes:
        outputs: process id → what became of it.
        before: counters at the start of the window.
        after: counters at its end.
        timed_out: ids of processes that were ended.
        start: when the last process had started; s, monotonic.
        window: what the figures are counted over, s after that; None = all of it.
        seconds: that the load took.
        disturbed: for each event of the timeline that was carried out.
        record: file with the telemetry, see LabClient.read(); empty where there is none.
        no_matrix: why that has no traffic matrix; empty where it has one.
        clock_error: s that times of different machines may be off beside each other; 0 on one machine, and where no
            times were recorded.
        ahead: host → s that the monotonic clock of its machine is ahead of the one that times here are by; empty where
            it is the same.
        deadlock: virtual channels, `layer * C + channel`, that were paused for ever, each by frames that wait for the
            one after it; the load was then ended. Empty without a deadlock.
    """

    outputs: Mapping[str, Output]
    before: Snapshot
    after: Snapshot
    timed_out: tuple[str, ...]
    start: float
    window: tuple[float, float] | None
    seconds: float
    disturbed: tuple[Disturbed, ...] = ()
    record: str = ""
    no_matrix: str = ""
    clock_error: float = 0.0
    ahead: Mapping[str, float] = field(default_factory=dict)
    deadlock: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """Frames since the lab was built.

    Attributes:
        arrived: that links brought to switches.
        lost: where → frames that got lost there outside a queue, as differences of counters: only their increases mean
            something, and negative ones are no losses.
        flooded: sent along the tree of a VLAN, counted at every switch on it.
        channels: (physical C,) sent into each channel between switches.
        to_hosts: (H,) sent to each host.
        admitted: (S,) that each switch took in.
        refused: why → frames that switches have not forwarded for what they are, which is no loss; engine: realtime
            alone counts them.
    """

    arrived: int
    lost: Mapping[str, int]
    flooded: int
    channels: tuple[int, ...]
    to_hosts: tuple[int, ...]
    admitted: tuple[int, ...]
    refused: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinkReadings:
    """What all links have carried until a moment, and what waits for them then, in lab time.

    The directions of links are the physical C channels between switches, then those to the H hosts, then those from
    them. The switches' ports send into the first C + H.

    Attributes:
        time: s, monotonic.
        dilation: of the lab now.
        bytes: (C + 2H,) carried, with Ethernet header, without preamble, check sequence and gap.
        frames: (C + 2H,) likewise.
        rates: (C + H,) lab bit/s that a port sends at most.
        waiting: (C + H,) frames in its queue.
        drops: (C + H,) frames that found it full, so far.
        paused: (C + 2H,) s that the sender has been paused, so far, of all priorities together; empty where there is no
            flow control.
        deadlock: virtual channels that wait for each other for ever now, as in Observation.
    """

    time: float
    dilation: float
    bytes: tuple[int, ...]
    frames: tuple[int, ...]
    rates: tuple[float, ...]
    waiting: tuple[int, ...]
    drops: tuple[int, ...]
    paused: tuple[float, ...] = ()
    deadlock: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PairReadings:
    """Bytes between hosts so far, Ethernet header included, counted where they entered the fabric.

    Attributes:
        time: s, monotonic.
        pairs: source, destination and bytes of each pair that has sent something.
        why_not: why pairs cannot be counted; else empty.
    """

    time: float
    pairs: tuple[tuple[int, int, int], ...] = ()
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """Where a frame of one host for another goes now, by the forwarding state, whether its links are up or not.

    Attributes:
        hops: the channels that carry it, in order; of aggregated links the physical ones, one of which does.
        vlans: tag on each, -1 = untagged.
        priorities: likewise; of no meaning without a tag.
        arrives: whether the destination gets it, once, and nobody else does.
    """

    hops: tuple[tuple[int, ...], ...]
    vlans: tuple[int, ...]
    priorities: tuple[int, ...]
    arrives: bool


@dataclass(frozen=True, slots=True)
class CpuShare:
    """The share of the processors that a host has, as the kernel has it."""

    processors: float
    quota_us: int
    period_us: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What a lab is.

    Attributes:
        datapath: what forwards frames.
        version: of the program that does.
        head_drop: whether a full queue of a switch loses its first frame, and not the one that comes.
        switch_daemons: names of the switches that each process carries.
        controller: name of the one that installs the rules; None = they were installed once.
        holders: host → pid, in the lab, of a process in its namespaces.
        groups: host → file by which processes join its share of the processors; empty where hosts have none.
        cpu_share: of each host; None = no limit.
        dilation: links run at their real-world rate divided by this.
        seconds: that each step of building took.
        kernel: release of the kernel.
        folder: of the lab, as its programs see it.
        interface: of each host, by which its programs reach the fabric.
        fast_path: whether frames are forwarded by a fast path under the switches.
        why_slow: why not, where one was wanted; else empty.
        pace: how a model keeps to the clock: its priority, and why none, if it has none; empty for others.
        holds_lone_frames: whether a port keeps a frame that finds it idle for its time on the wire, too.
        host_access: what programs in hosts may do with the machine's files.
        machines: host → number of its machine; empty where there is one.
        most_share: largest share of a host, in processors, that leaves the switches enough on every machine.
    """

    datapath: str
    version: str
    head_drop: bool
    switch_daemons: tuple[tuple[str, ...], ...]
    controller: str | None
    holders: Mapping[str, int]
    groups: Mapping[str, str]
    cpu_share: CpuShare | None
    dilation: float
    seconds: Mapping[str, float]
    kernel: str
    folder: str
    interface: str
    fast_path: bool = False
    why_slow: str = ""
    pace: str = ""
    holds_lone_frames: bool = False
    host_access: Access = "read"
    machines: Mapping[str, int] = field(default_factory=dict)
    most_share: float = 1.0


@dataclass(frozen=True, slots=True)
class ShortCuts:
    """What a fast path under the switches holds.

    Attributes:
        entries: for each switch that is on, its entries as the kernel has them; see pipeline.entry.Entry.
        off: for each other switch the reason.
        map_id: number of the kernel's map with the entries; 0 where there is no fast path.
    """

    entries: Mapping[str, tuple[str, ...]]
    off: Mapping[str, str]
    map_id: int


@dataclass(frozen=True, slots=True)
class Status:
    """What a lab is doing.

    Attributes:
        doing: name of the operation, such as `load`, or `idle`.
        hosts: how many.
        switches: likewise.
        links: likewise, between switches.
        datapath: what forwards frames; empty until that is known.
        controller: its name, or None.
        link_rate: lab bit/s between switches; None until it is known.
        killed: names of switches that were killed and not started since.
    """

    doing: str
    hosts: int
    switches: int
    links: int
    datapath: str
    controller: str | None
    link_rate: float | None
    killed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchState:
    """What a controller knows of a switch.

    Attributes:
        state: `in step`, `not in step`, `checking`, `collecting`, `standby`, `gone` or `not seen`.
        since: when that began; s since the epoch.
        problem: why it is not in step.
        rules: that it has.
        changed: rules that had to be changed when it was last checked.
    """

    state: str
    since: float = 0.0
    problem: str = ""
    rules: int = 0
    changed: int = 0


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
    """A failure or repair as the controller saw it; times in s, monotonic, None where it is yet to come.

    Attributes:
        detected: when it heard of it.
        diverted: when hosts that it hits had been given their backup VLANs.
        recovered: when new paths were installed.
        settled: when the tables of those were all that was left.
        hosts_moved: hosts that were diverted.
        down: names of what failed.
        up: names of what was repaired.
        pairs_hit: pairs of hosts whose path it took.
        without_backup: pairs for which there was no backup path.
        cut_off: pairs that nothing connects any more.
    """

    detected: float
    diverted: float
    recovered: float | None
    settled: float | None
    hosts_moved: int
    down: tuple[str, ...] = ()
    up: tuple[str, ...] = ()
    pairs_hit: int = 0
    without_backup: tuple[str, ...] = ()
    cut_off: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """What a controller says of itself; from `phase` on only one that overcomes failures.

    Attributes:
        switches: by name.
        in_step: how many switches have the rules of the plan.
        plan: digest of the plan it keeps.
        scenario: name of that plan's scenario.
        off: links that are off, by name.
        slower: share of its rate at which a link runs, by name, where that is not all of it.
        transition: how far the change of plans is that is under way.
        rate: bit/s of a link now.
        refused: switches that speak another OpenFlow.
        phase: `steady`, or what it is doing.
        down: names of what is dead.
        cut_off: pairs that nothing connects.
        without_backup: pairs that wait for new paths, since no backup path remains.
        diverted: hosts that use a backup VLAN.
        routing: of the paths in use.
        vlans: identifiers of the VLANs in use.
        backup_vlans: likewise, of backups.
        problem: what it could not do.
        events: failures and repairs so far.
        links: ports that are joined, as switches tell by LLDP; empty where nobody asks them.
        wiring: how that differs from the plan, a sentence each.
        role: of one of several managers, `master` or `standby`; empty for others.
        master_since: when it became master; s, monotonic.
        manager: its number, from 1.
    """

    switches: Mapping[str, SwitchState]
    in_step: int = 0
    plan: str = ""
    scenario: str = ""
    off: tuple[str, ...] = ()
    slower: Mapping[str, float] = field(default_factory=dict)
    transition: TransitionState | None = None
    rate: float = 0.0
    refused: tuple[RefusedSwitch, ...] = ()
    phase: str = ""
    down: tuple[str, ...] = ()
    cut_off: int = 0
    without_backup: int = 0
    diverted: tuple[str, ...] = ()
    routing: str = ""
    vlans: tuple[int, ...] = ()
    backup_vlans: tuple[int, ...] = ()
    problem: str = ""
    events: tuple[FailureEvent, ...] = ()
    links: tuple[str, ...] = ()
    wiring: tuple[str, ...] = ()
    role: str = ""
    master_since: float | None = None
    manager: int = 1


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of a change of plans, as the controller tells it."""

    action: str
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class PlanMove:
    """What a controller did to carry switches over to another plan.

    Attributes:
        steps: in their order.
        deadlock: sentences about cycles that old and new paths could close together.
    """

    steps: tuple[PlanStep, ...]
    deadlock: tuple[str, ...]


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
    """Where frames are captured: a physical link between switches, or the link of a host; the other one is None.

    Attributes:
        link: number of the link; outbound frames go along its first channel, 2 link.
        host: number of the host; outbound frames are those that it sends.
    """

    link: int | None = None
    host: int | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that was captured.

    Attributes:
        time: ns since the epoch.
        outbound: which way it went, see Tap.
        data: from the Ethernet header on, with the VLAN tag that it has on the wire and without check sequence.
        length: bytes of all of it, where `data` was cut.
    """

    time: int
    outbound: bool
    data: bytes
    length: int

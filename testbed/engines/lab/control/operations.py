"""What a lab can be asked, one class an operation.

One JSON object a line each way over a Unix socket: a request is `{"op": name, "request": {…}}`, with the fields of the
operation; answers are any number of `{"progress": text}` and then one `{"result": …}` or `{"error": sentence}`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.base.errors import LabError
from testbed.base.files import read_bytes
from testbed.base.messages import (
    ControllerStatus,
    CpuShare,
    Disturbance,
    Disturbed,
    Facts,
    FastPathEntries,
    FrameCounts,
    LinkReadings,
    LinkState,
    LoadRequest,
    Observation,
    PairReadings,
    PlanMove,
    Status,
)
from testbed.engines.lab.build_order import BuildOrder, StormReading
from testbed.engines.lab.control import merge_answers
from testbed.engines.lab.control.operation import ControllerOperation, Operation, PartwiseOperation, Progress
from testbed.engines.lab.control.split_requests import divide_disturbance, divide_load
from testbed.engines.lab.fabric_part import Part

if TYPE_CHECKING:
    from testbed.engines.lab.control.running_lab import RunningLab

# ---------------------------------------------------------------------------------------------- what it is and does


@dataclass(frozen=True)
class Build(Operation[Facts], name="build"):
    """Make the network; once a lab."""

    order: BuildOrder

    def carry_out(self, lab: RunningLab, progress: Progress) -> Facts:
        """Start the switches and make the network."""
        return lab.build(self.order, progress)

    def for_parts(self, parts: Sequence[Part]) -> Sequence[Build]:
        """Its own order for each."""
        return [Build(part.order) for part in parts]

    def merge(self, parts: Sequence[Part], answers: Sequence[Facts]) -> Facts:
        """Facts of the whole."""
        return merge_answers.merge_facts(parts, answers)


class GetFacts(PartwiseOperation[Facts], name="facts", concurrent=True):
    """What was built."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> Facts:
        """Return it, or raise LabError where nothing is built yet."""
        if lab.facts is None:
            raise LabError("the lab is not built yet")
        return lab.facts

    def merge(self, parts: Sequence[Part], answers: Sequence[Facts]) -> Facts:
        """Facts of the whole."""
        return merge_answers.merge_facts(parts, answers)


class GetStatus(PartwiseOperation[Status], name="status", concurrent=True):
    """What the lab is and does; answered at any time."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> Status:
        """Count what there is."""
        return lab.status()

    def merge(self, parts: Sequence[Part], answers: Sequence[Status]) -> Status:
        """Sums of the counts."""
        return merge_answers.merge_status(parts, answers)


class Shutdown(Operation[str], name="shutdown", concurrent=True):
    """End the switches; whoever asks then kills the agent, and with it the rest."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> str:
        """Stop the switches."""
        lab.doing = "ending"
        lab.stop_switches()
        return "stopped"


@dataclass(frozen=True)
class SetRates(PartwiseOperation[CpuShare | None], name="rates"):
    """Give all links other rates, and the hosts another share of the processors, while the lab runs."""

    link_rate: float  # lab bit/s between switches
    host_rate: float  # lab bit/s of host links
    cpu_share: float | None  # as in BuildOrder; without effect where the lab was built without shares
    dilation: float  # as there

    def carry_out(self, lab: RunningLab, progress: Progress) -> CpuShare | None:
        """Shape the links anew."""
        return lab.set_rates(self.link_rate, self.host_rate, self.cpu_share, self.dilation)

    def merge(self, parts: Sequence[Part], answers: Sequence[CpuShare | None]) -> CpuShare | None:
        """The first share; all machines with hosts have the same."""
        return next((one for one in answers if one is not None), None)


@dataclass(frozen=True)
class SetSpeeds(Operation[None], name="speeds", concurrent=True):
    """Let links run at shares of their rate, by the link's number; others keep theirs."""

    speeds: Mapping[int, float]

    def carry_out(self, lab: RunningLab, progress: Progress) -> None:
        """Shape these links anew."""
        with lab.speeds_lock:
            lab.need_fabric().set_speeds(self.speeds)

    def for_parts(self, parts: Sequence[Part]) -> Sequence[SetSpeeds]:
        """To each its links, by its own numbers."""
        speeds = self.speeds
        return [
            SetSpeeds({here: speeds[link] for here, link in enumerate(part.links) if link in speeds}) for part in parts
        ]


class CheckShaping(PartwiseOperation[list[str]], name="shaping"):
    """Differences between the shaping and the shares of processors asked for and the kernel's now."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> list[str]:
        """Read the kernel's."""
        return lab.need_fabric().shaping_problems() + lab.shares.problems()

    def merge(self, parts: Sequence[Part], answers: Sequence[list[str]]) -> list[str]:
        """Sentences with their machine."""
        return merge_answers.merge_shaping(parts, answers)


# ----------------------------------------------------------------------------------------------- loads and counters


@dataclass(frozen=True)
class RunLoad(Operation[Observation], name="load"):
    """Run a load, and count, record and disturb meanwhile."""

    load: LoadRequest

    def carry_out(self, lab: RunningLab, progress: Progress) -> Observation:
        """Run it; it ends when nobody waits for it any more: then a word to who asked cannot be sent."""
        return lab.run_load(self.load, lambda: progress(""))

    def for_parts(self, parts: Sequence[Part]) -> Sequence[RunLoad]:
        """To each the processes of its hosts, and its share of what happens."""
        return [RunLoad(load) for load in divide_load(self.load, parts)]


@dataclass(frozen=True)
class Disturb(Operation[Disturbed], name="disturb", concurrent=True):
    """Let something die or come back, or links change, now."""

    disturbance: Disturbance

    def carry_out(self, lab: RunningLab, progress: Progress) -> Disturbed:
        """Do it, or raise LabError with what failed."""
        done = lab.disturb(self.disturbance)
        if done.error:
            raise LabError(f"that could not be carried out: {done.error}")
        return done

    def for_parts(self, parts: Sequence[Part]) -> Sequence[Disturb]:
        """To each its share."""
        return [Disturb(its) for its in divide_disturbance(self.disturbance, parts)]


class GetLinks(
    PartwiseOperation[dict[int, LinkState]], name="links", concurrent=True
):  # fmt: skip
    """Links between switches that are not as planned, by number."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> dict[int, LinkState]:
        """Read their states."""
        return lab.need_fabric().link_states()

    def merge(self, parts: Sequence[Part], answers: Sequence[dict[int, LinkState]]) -> dict[int, LinkState]:
        """By numbers of the whole."""
        return merge_answers.merge_links(parts, answers)


class CountFrames(PartwiseOperation[FrameCounts], name="frames"):
    """Everything that counts frames: links, switches, queues, sockets."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> FrameCounts:
        """Read all counters."""
        return lab.count_frames()

    def merge(self, parts: Sequence[Part], answers: Sequence[FrameCounts]) -> FrameCounts:
        """Sums, and each channel's in the order of the whole."""
        return merge_answers.merge_frames(parts, answers)


class ReadLinks(PartwiseOperation[LinkReadings], name="read links", concurrent=True):
    """What all links have carried until now, and what waits for them."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> LinkReadings:
        """Read the counters of ports."""
        return lab.need_fabric().read_links()

    def merge(self, parts: Sequence[Part], answers: Sequence[LinkReadings]) -> LinkReadings:
        """In the order of the whole."""
        return merge_answers.merge_link_readings(parts, answers)


class ReadPairs(PartwiseOperation[PairReadings], name="read pairs", concurrent=True):
    """Bytes between hosts; where they are not counted yet, from now on."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> PairReadings:
        """Read the counters of pairs."""
        return lab.need_fabric().read_pairs()

    def merge(self, parts: Sequence[Part], answers: Sequence[PairReadings]) -> PairReadings:
        """All pairs."""
        return merge_answers.merge_pair_readings(parts, answers)


class Reach(PartwiseOperation[list[tuple[str, str]]], name="reach"):
    """Ping all pairs of hosts: names of those without an answer."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> list[tuple[str, str]]:
        """Ping from every host here."""
        return lab.ping_all_pairs()

    def merge(self, parts: Sequence[Part], answers: Sequence[list[tuple[str, str]]]) -> list[tuple[str, str]]:
        """The pairs of all."""
        return list(chain.from_iterable(answers))


@dataclass(frozen=True)
class Learn(PartwiseOperation[str], name="learn", in_turn=True):
    """Let every host send a broadcast in each of some VLANs: how the frames were made."""

    vlans: tuple[int, ...]  # identifiers
    datagrams: bool  # whether they are UDP from an address in a network of each VLAN, or of no protocol

    def carry_out(self, lab: RunningLab, progress: Progress) -> str:
        """Send them, one host after the other."""
        return lab.teach_switches(self.vlans, datagrams=self.datagrams)

    def merge(self, parts: Sequence[Part], answers: Sequence[str]) -> str:
        """All ways in which frames were made."""
        return merge_answers.join_words(answers)


@dataclass(frozen=True)
class WatchStorm(Operation[list[StormReading]], name="storm"):
    """One broadcast, watched; afterwards the switches have no rules."""

    seconds: float  # from the broadcast on
    every: float  # s between two readings
    rules: Mapping[str, Sequence[str]] | None = None  # replace those of the switches; None = those stay that are there

    def carry_out(self, lab: RunningLab, progress: Progress) -> list[StormReading]:
        """Send it and read the counters of ports."""
        return lab.watch_storm(self.seconds, self.every, self.rules)


# ----------------------------------------------------------------------------------------------------- Open vSwitch


class DumpFlows(
    PartwiseOperation[dict[str, list[str]]], name="flows", concurrent=True
):  # fmt: skip
    """The rules of all running switches, a line each, by switch."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> dict[str, list[str]]:
        """Ask the switches."""
        fabric = lab.need_fabric()
        return fabric.open_vswitch.dump(fabric.order.switches)

    def merge(self, parts: Sequence[Part], answers: Sequence[dict[str, list[str]]]) -> dict[str, list[str]]:
        """Of all switches."""
        return merge_answers.merge_maps(answers)


class DumpShortCuts(PartwiseOperation[FastPathEntries], name="short cuts", concurrent=True):
    """The fast path's entries, as the kernel has them."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> FastPathEntries:
        """Read them."""
        return lab.need_fabric().dump_short_cuts()

    def merge(self, parts: Sequence[Part], answers: Sequence[FastPathEntries]) -> FastPathEntries:
        """Of all switches."""
        entries, off = (merge_answers.merge_maps(getattr(one, what) for one in answers) for what in ("entries", "off"))
        return FastPathEntries(entries, off, 0)


class DumpGroups(
    PartwiseOperation[dict[str, list[str]]], name="groups", concurrent=True
):  # fmt: skip
    """The groups of all running switches, a line each, by switch."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> dict[str, list[str]]:
        """Ask the switches."""
        fabric = lab.need_fabric()
        return fabric.open_vswitch.dump_groups(fabric.order.switches)

    def merge(self, parts: Sequence[Part], answers: Sequence[dict[str, list[str]]]) -> dict[str, list[str]]:
        """Of all switches."""
        return merge_answers.merge_maps(answers)


@dataclass(frozen=True)
class ChangeSwitches(Operation[None], name="change switches", concurrent=True):
    """Change rules and groups of switches, each switch's rules as one bundle; answered when frames go by them.

    Attributes:
        rules: switch → lines as `ovs-ofctl add-flows` takes them.
        groups: switch → lines of groups that take the place of those of their numbers.
    """

    rules: Mapping[str, Sequence[str]]
    groups: Mapping[str, Sequence[str]]

    def carry_out(self, lab: RunningLab, progress: Progress) -> None:
        """Send them to the switches."""
        lab.need_fabric().open_vswitch.change(self.rules, self.groups)


class ForgetFlows(PartwiseOperation[None], name="forget flows", concurrent=True):
    """Have switches look frames up in their rules anew, and not go by what they once found there."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> None:
        """Empty the datapath's cache."""
        lab.need_fabric().open_vswitch.forget_flows()


@dataclass(frozen=True)
class Trace(Operation[list[str]], name="trace", concurrent=True):
    """Ask switches what they would do with frames."""

    frames: tuple[tuple[str, str], ...]  # (switch, flow) as `ofproto/trace` takes them

    def carry_out(self, lab: RunningLab, progress: Progress) -> list[str]:
        """Ask each frame's switch."""
        lab.need_fabric()
        return lab.need_fabric().open_vswitch.trace(self.frames)

    def for_parts(self, parts: Sequence[Part]) -> Sequence[Trace]:
        """To each the frames of its switches."""
        return [Trace(tuple(frame for frame in self.frames if frame[0] in part.order.switches)) for part in parts]

    def merge(self, parts: Sequence[Part], answers: Sequence[list[str]]) -> list[str]:
        """In the order of the frames."""
        lines = [iter(its) for its in answers]
        part_of = {switch: number for number, part in enumerate(parts) for switch in part.order.switches}
        return [next(lines[part_of[switch]]) for switch, _ in self.frames]


# -------------------------------------------------------------------------------------------------------- controller


class TellController(ControllerOperation[ControllerStatus], name="controller",
                     concurrent=True):  # fmt: skip
    """The controller's status."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> ControllerStatus:
        """Ask it."""
        return lab.controller.status()


@dataclass(frozen=True)
class WaitForController(ControllerOperation[ControllerStatus], name="controller wait",
                        concurrent=True):  # fmt: skip
    """Wait until all switches are in step, up to `limit` s."""

    limit: float

    def carry_out(self, lab: RunningLab, progress: Progress) -> ControllerStatus:
        """Ask it until they are."""
        return lab.controller.wait(self.limit, progress)


class StopController(ControllerOperation[None], name="controller stop", concurrent=True):
    """Kill the controller, of several managers the master, as a crash would; switches keep their rules."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> None:
        """Kill it."""
        lab.controller.stop()


class StartController(ControllerOperation[None], name="controller start", concurrent=True):
    """Start the controller anew, or managers that do not run, from the plan the lab was built from."""

    def carry_out(self, lab: RunningLab, progress: Progress) -> None:
        """Start those that do not run."""
        lab.controller.start()


@dataclass(frozen=True)
class MoveToPlan(ControllerOperation[PlanMove], name="controller move", concurrent=True):
    """Have the controller carry the switches over to another plan."""

    plan: str  # its JSON text
    off: tuple[int, ...]  # links that are off afterwards
    limit: float  # s that it may take
    wake_up: float = 0.0  # s from a link's being switched on until it carries frames
    pause: float = 0.0  # s after each step, to look at the states in between

    def carry_out(self, lab: RunningLab, progress: Progress) -> PlanMove:
        """Tell the controller to."""
        return lab.controller.move(self.plan, self.off, self.limit, self.wake_up, self.pause)


# ------------------------------------------------------------------------------------------------------------- files


@dataclass(frozen=True)
class WriteFile(PartwiseOperation[str], name="write", concurrent=True):
    """Write a file into the lab's folder: its path there."""

    file: str
    text: str
    mode: int = 0o644

    def carry_out(self, lab: RunningLab, progress: Progress) -> str:
        """Write it beside its place, then put it there."""
        place = lab.folder / self.file
        place.parent.mkdir(parents=True, exist_ok=True)
        with lab.replace_atomically(place) as partial:
            partial.write_text(self.text)
            partial.chmod(self.mode)
        return str(place)


@dataclass(frozen=True)
class CopyFile(Operation[str], name="copy"):
    """Copy a file into the lab's folder: its path there, which has neither spaces nor colons."""

    source: str
    file: str

    def carry_out(self, lab: RunningLab, progress: Progress) -> str:
        """Copy it into the folder that hosts see."""
        place = lab.shared_folder / self.file
        with lab.replace_atomically(place) as partial:
            shutil.copy(self.source, partial)
        return str(place)


@dataclass(frozen=True)
class TakeFile(PartwiseOperation[str], name="take"):
    """Text of a file of the lab's folder, which is then gone; empty where there is none."""

    file: str

    def carry_out(self, lab: RunningLab, progress: Progress) -> str:
        """Read it, as a load has left it, and remove it."""
        place = lab.folder / self.file
        if place.is_symlink():
            raise LabError(f"{place}, which a load has left, leads elsewhere")
        text = read_bytes(place, lab.folder).decode(errors="replace") if place.exists() else ""
        place.unlink(missing_ok=True)
        return text

    def merge(self, parts: Sequence[Part], answers: Sequence[str]) -> str:
        """One after the other."""
        return "".join(answers)


@dataclass(frozen=True)
class ShowFolder(Operation[None], name="show", concurrent=True):
    """Let programs in hosts, in all or some, read a folder of the machine, where they may read it and it is hidden."""

    folder: str
    hosts: tuple[str, ...] | None = None

    def carry_out(self, lab: RunningLab, progress: Progress) -> None:
        """Mount it in the hosts."""
        with lab.showing_lock:
            lab.need_fabric().share_folder(Path(self.folder), self.hosts)

    def for_parts(self, parts: Sequence[Part]) -> Sequence[ShowFolder]:
        """To each its hosts."""
        wanted = [[host.name for host in part.order.hosts] for part in parts]
        if self.hosts is not None:
            wanted = [[name for name in its if name in self.hosts] for its in wanted]
        return [replace(self, hosts=tuple(its)) for its in wanted]

"""Process 1 of a lab: builds it when told, then serves requests until the namespaces end with it.

`requests` says what it can be asked, and how it is said.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from testbed.base.errors import LabError
from testbed.base.files import read_bytes
from testbed.base.limits import WHOLE_FILE, allowed
from testbed.base.messages import (
    CpuShare,
    Disturbance,
    Disturbed,
    Facts,
    FrameCounts,
    LinkReadings,
    LinkState,
    Observation,
    PairReadings,
    ShortCuts,
    Status,
)
from testbed.engines.lab.control import requests as ask
from testbed.engines.lab.control.agent_memory import presize_intern_table, trim_heap, use_single_arena
from testbed.engines.lab.control.agent_socket import Progress, listen
from testbed.engines.lab.control.controller import LabController
from testbed.engines.lab.control.disturb import carry_out
from testbed.engines.lab.control.wire import encode
from testbed.engines.lab.hosts import cgroup, frames, mounts
from testbed.engines.lab.hosts.commands import allow_files, allow_long_files
from testbed.engines.lab.hosts.fabric import LabNetwork
from testbed.engines.lab.hosts.host_shares import HostShares, most_share
from testbed.engines.lab.hosts.host_view import SHARED
from testbed.engines.lab.hosts.interfaces import set_interfaces
from testbed.engines.lab.hosts.loads import LoadRunner
from testbed.engines.lab.hosts.names import HOST_INTERFACE, OPEN_VSWITCH, PLAN
from testbed.engines.ovs.openvswitch import OpenVSwitch
from testbed.engines.ovs.switch_daemon import daemon_count, divide, open_files, switch_ports
from testbed.engines.ovs.switches import SwitchBackend
from testbed.engines.ovs.table_limits import datapath_flows, forwarding_entries

FOLDER = Path("/run/lab")
SOCKET = FOLDER / "agent.sock"
GROUPS = FOLDER / "cpu"
STATE = FOLDER / "state.json"
_SHORT = 16 << 20  # bytes that a request may have in any lab
_PLANS = 4  # and in a large one, as so many of its plan: another plan, or all rules
_MODEL_FILES, _FILES_A_HOST = 100, 3  # a tap, a queue, and what its programs print

Operation = Callable[[Any, Progress], Any]


class Agent:
    """State and operations of one lab.

    Attributes:
        operations: what it can be asked → method.
        beside: likewise, of operations that are carried out while another one is under way.
        longest: bytes of a request; until it is built only who builds it knows the lab.
    """

    def __init__(self, began_in: str = "/") -> None:
        self.switches: SwitchBackend = OpenVSwitch(FOLDER / OPEN_VSWITCH)
        self.fabric: LabNetwork | None = None
        self.facts: Facts | None = None
        self.longest = allowed(WHOLE_FILE)
        self.shares = HostShares()
        self.controller = LabController(FOLDER)
        self.lock = threading.Lock()
        self.speeds_lock = threading.Lock()
        self.showing_lock = threading.Lock()
        self.doing = "starting"
        self.loads = LoadRunner(self.shares.files, self.switch, FOLDER, began_in)
        self.beside: dict[type[ask.Request[Any]], Operation] = {
            ask.GetStatus: self.status,
            ask.Shutdown: self.shutdown,
            ask.GetFacts: self.tell_facts,
            ask.DumpFlows: self.flows,
            ask.DumpShortCuts: self.short_cuts,
            ask.DumpGroups: self.groups,
            ask.ChangeSwitches: self.change_switches,
            ask.ForgetFlows: self.forget_flows,
            ask.Trace: self.trace,
            ask.WriteFile: self.write,
            ask.ShowFolder: self.show,
            ask.Disturb: self.disturb,
            ask.SetSpeeds: self.set_speeds,
            ask.GetLinks: self.link_states,
            ask.ReadLinks: self.read_links,
            ask.ReadPairs: self.read_pairs,
            **self.controller.operations,
        }
        self.operations: dict[type[ask.Request[Any]], Operation] = {
            **self.beside,
            ask.Build: self.build,
            ask.CountFrames: self.frames,
            ask.Reach: self.reach,
            ask.Learn: self.learn,
            ask.WatchStorm: self.storm,
            ask.SetRates: self.set_rates,
            ask.CheckShaping: self.shaping,
            ask.CopyFile: self.copy,
            ask.TakeFile: self.take,
            ask.RunLoad: self.load,
        }

    def need_fabric(self) -> LabNetwork:
        """Return the network, or raise LabError when it is not built or its switches or hosts died."""
        if self.fabric is None:
            raise LabError("the lab is not built yet")
        self.check_alive()
        return self.fabric

    def check_alive(self) -> None:
        """Raise LabError when switches or hosts have died."""
        self.switches.check_alive()
        if self.fabric is not None:
            self.fabric.check_hosts()

    def build(self, request: ask.Build, progress: Progress) -> Facts:
        """Start the switches and make the network."""
        started = time.monotonic()
        order = request.order
        groups = self.shares.give(order)
        if order.model:
            return self.build_model(order, groups, progress)
        progress("open vswitch")
        self.controller.choose(order)  # it comes up beside the switches
        datapath = self.switches.choose_datapath(order.datapath)
        ports = switch_ports(order)
        shared = {name: number for name, number in ports.items() if name not in order.alone}
        count = daemon_count(order.switch_daemons, datapath, len(os.sched_getaffinity(0)), shared) if shared else 0
        shares = [*divide(shared, count), *([name] for name in order.alone)]
        allow_files(max(open_files([ports[name] for name in share]) for share in shares), f"the lab {order.name}")
        with ThreadPoolExecutor(1) as pool:
            everywhere = order.everywhere or order.switches
            flows = [datapath_flows(order, share) for share in shares]
            starting = pool.submit(
                self.switches.start, shares, stock=order.stock, order=everywhere, flows=flows,
                entries=forwarding_entries(order),
            )  # fmt: skip
            fabric = LabNetwork(order, groups=groups)
            starting.result()
        ready = round(time.monotonic() - started, 4)
        made = fabric.make(self.switches, progress, lambda: self.controller.bring_rules(order, self.switches, progress))
        self.fabric = fabric
        self.facts = Facts(
            datapath=datapath,
            version=self.switches.version(),
            head_drop=datapath == "userspace",
            switch_daemons=tuple(tuple(share) for share in self.switches.shares),
            controller=order.controller,
            holders=fabric.holders,
            groups=groups,
            cpu_share=self.shares.read_back(),
            dilation=order.dilation,
            seconds={"open vswitch": ready, **made},
            kernel=os.uname().release,
            folder=str(FOLDER),
            interface=HOST_INTERFACE,
            fast_path=fabric.fast_path is not None,
            why_slow=fabric.why_slow,
            tsq_backpressure_reason=fabric.tsq_backpressure_reason,
            host_access=order.host_access,
            most_share=most_share(len(order.hosts)),
        )
        self.write_state(fabric)
        return self.facts

    def build_model(self, order: ask.BuildOrder, groups: dict[str, str], progress: Progress) -> Facts:
        """Make hosts, and start the model that is their network."""
        # It needs numpy, and numba's types.
        from testbed.engines.realtime.fabric import ModelFabric, ModelSwitches  # noqa: PLC0415

        allow_files(_MODEL_FILES + _FILES_A_HOST * len(order.hosts), f"the lab {order.name}")
        fabric = ModelFabric(order, FOLDER, groups=groups)
        switches = ModelSwitches(fabric)
        self.switches = cast(SwitchBackend, switches)
        self.controller.choose(order)  # it gets ready beside the hosts
        made = fabric.make(self.switches, progress, self.controller.wait_until_it_answers)
        self.fabric = fabric
        self.facts = Facts(
            datapath=switches.datapath,
            version=switches.version(),
            head_drop=False,
            switch_daemons=(),
            controller=order.controller,
            holders=fabric.holders,
            groups=groups,
            cpu_share=self.shares.read_back(),
            dilation=order.dilation,
            seconds=made,
            kernel=os.uname().release,
            folder=str(FOLDER),
            interface=HOST_INTERFACE,
            pace=fabric.pace,
            shapes_idle_ports=True,
            host_access=order.host_access,
            most_share=most_share(len(order.hosts)),
        )
        self.write_state(fabric)
        return self.facts

    def tell_facts(self, request: ask.GetFacts, progress: Progress) -> Facts:
        """What was built."""
        del request, progress
        if self.facts is None:
            raise LabError("the lab is not built yet")
        return self.facts

    def set_rates(self, request: ask.SetRates, progress: Progress) -> CpuShare | None:
        """Give the links other rates, and the hosts another share of the processors, while the lab runs."""
        del progress
        fabric = self.need_fabric()
        fabric.reshape(request.link_rate, request.host_rate, request.dilation)
        if self.shares.given:
            fabric.order = replace(fabric.order, cpu_share=request.cpu_share)
            self.shares.give(fabric.order)
        self.controller.tell_dilation(request.dilation)
        share = self.shares.read_back()
        if self.facts is not None:
            self.facts = replace(self.facts, cpu_share=share, dilation=request.dilation)
        self.write_state(fabric)
        return share

    def set_speeds(self, request: ask.SetSpeeds, progress: Progress) -> None:
        """Let links run at shares of their rate."""
        del progress
        with self.speeds_lock:
            self.need_fabric().set_speeds(request.speeds)

    def write_state(self, fabric: LabNetwork) -> None:
        """Store what Mininet's command line needs to adopt the lab, which is built now."""
        plan = (FOLDER / PLAN).stat().st_size if (FOLDER / PLAN).exists() else 0
        self.longest = max(_SHORT, _PLANS * plan)
        STATE.write_text(encode(ask.LabState(fabric.order, fabric.holders, self.shares.files())))

    def flows(self, request: ask.DumpFlows, progress: Progress) -> dict[str, list[str]]:
        """Dump the rules of all running switches."""
        del request, progress
        return self.switches.dump(self.need_fabric().order.switches)

    def short_cuts(self, request: ask.DumpShortCuts, progress: Progress) -> ShortCuts:
        """Dump the entries of the fast path."""
        del request, progress
        return self.need_fabric().dump_short_cuts()

    def groups(self, request: ask.DumpGroups, progress: Progress) -> dict[str, list[str]]:
        """Dump the groups of all running switches."""
        del request, progress
        return self.switches.dump_groups(self.need_fabric().order.switches)

    def change_switches(self, request: ask.ChangeSwitches, progress: Progress) -> None:
        """Change rules and groups of running switches."""
        del progress
        self.need_fabric()
        self.switches.change(request.rules, request.groups)

    def forget_flows(self, request: ask.ForgetFlows, progress: Progress) -> None:
        """Empty what switches keep beside their rules."""
        del request, progress
        self.need_fabric()
        self.switches.forget_flows()

    def trace(self, request: ask.Trace, progress: Progress) -> list[str]:
        """Ask switches what they would do with frames."""
        del progress
        self.need_fabric()
        return self.switches.trace(request.frames)

    def frames(self, request: ask.CountFrames, progress: Progress) -> FrameCounts:
        """Everything that counts frames."""
        del request, progress
        return self.need_fabric().frame_counts(self.switches)

    def read_links(self, request: ask.ReadLinks, progress: Progress) -> LinkReadings:
        """What all links have carried until now."""
        del request, progress
        return self.need_fabric().read_links()

    def read_pairs(self, request: ask.ReadPairs, progress: Progress) -> PairReadings:
        """Bytes between hosts."""
        del request, progress
        return self.need_fabric().read_pairs()

    def reach(self, request: ask.Reach, progress: Progress) -> list[tuple[str, str]]:
        """Ping all pairs."""
        del request, progress
        fabric = self.need_fabric()
        return frames.unreachable_pairs(fabric.order.hosts, fabric.order.others, fabric.holders)

    def learn(self, request: ask.Learn, progress: Progress) -> str:
        """Let every host send a broadcast in each of some VLANs."""
        del progress
        fabric = self.need_fabric()
        slowest = min(fabric.order.link_rate, fabric.order.host_rate)
        order, vlans = fabric.order, request.vlans
        return frames.teach(order.hosts, order.others, fabric.holders, vlans, slowest, datagrams=request.datagrams)

    def storm(self, request: ask.WatchStorm, progress: Progress) -> list[ask.StormReading]:
        """One broadcast, watched."""
        del progress
        return frames.watch_storm(self.switches, self.need_fabric(), request)

    def shaping(self, request: ask.CheckShaping, progress: Progress) -> list[str]:
        """Differences between the shaping and the shares of processors asked for and the kernel's now."""
        del request, progress
        return self.need_fabric().shaping_problems() + self.shares.problems()

    def load(self, request: ask.RunLoad, progress: Progress) -> Observation:
        """Run the processes of a load; count, record and disturb meanwhile.

        It ends when nobody waits for it any more: then a word to who asked cannot be sent.
        """
        self.need_fabric().settle()
        try:
            return self.loads.run(request.load, self.need_fabric(), self.switches, lambda: progress(""))
        finally:
            gc.collect()  # of itself, it happens seldom
            trim_heap()

    def disturb(self, request: ask.Disturb, progress: Progress) -> Disturbed:
        """Let one thing die or come back now."""
        del progress
        done = self.switch(request.disturbance)
        if done.error:
            raise LabError(f"that could not be carried out: {done.error}")
        return done

    def switch(self, disturbance: Disturbance) -> Disturbed:
        """Carry out a disturbance."""
        if disturbance.manager:
            return self.controller.disturb(up=disturbance.up)
        with self.speeds_lock:
            return carry_out(disturbance, self.need_fabric(), self.switches)

    def link_states(self, request: ask.GetLinks, progress: Progress) -> dict[int, LinkState]:
        """Links between switches that are not as planned."""
        del request, progress
        return self.need_fabric().link_states()

    def write(self, request: ask.WriteFile, progress: Progress) -> str:
        """Write a file into the lab's folder; returns its path."""
        del progress
        file = FOLDER / request.name
        file.parent.mkdir(parents=True, exist_ok=True)
        with replace_atomically(file) as partial:
            partial.write_text(request.text)
            partial.chmod(request.mode)
        return str(file)

    def copy(self, request: ask.CopyFile, progress: Progress) -> str:
        """Copy a file into the folder that hosts see; returns its path."""
        del progress
        file = SHARED / request.name
        with replace_atomically(file) as partial:
            shutil.copy(request.source, partial)
        return str(file)

    def take(self, request: ask.TakeFile, progress: Progress) -> str:
        """Text of a file of the lab's folder, written by a load; empty where there is none. The file is taken away."""
        del progress
        file = FOLDER / request.name
        if file.is_symlink():
            raise LabError(f"{file}, which a load has left, leads elsewhere")
        text = read_bytes(file, FOLDER).decode(errors="replace") if file.exists() else ""
        file.unlink(missing_ok=True)
        return text

    def show(self, request: ask.ShowFolder, progress: Progress) -> None:
        """Let hosts read a folder of the machine."""
        del progress
        with self.showing_lock:
            self.need_fabric().show(Path(request.folder), request.hosts)

    def status(self, request: ask.GetStatus, progress: Progress) -> Status:
        """What the lab is and does; answered at any time."""
        del request, progress
        order, datapath = self.fabric.order if self.fabric else None, self.switches.datapath
        if order is None:
            return Status(self.doing, 0, 0, 0, datapath, None, None)
        counts = len(order.hosts), len(order.switches), len(order.links)
        killed = tuple(self.fabric.killed(self.switches)) if self.fabric else ()
        return Status(self.doing, *counts, datapath, order.controller, order.link_rate, killed)

    def shutdown(self, request: ask.Shutdown, progress: Progress) -> str:
        """End the switches; whoever asked then kills this process, and with it the rest."""
        del request, progress
        self.doing = "ending"
        self.switches.stop()
        return "stopped"

    def answer(self, name: str, request: ask.Request[Any], progress: Progress) -> Any:
        """Carry out one request, which has that name."""
        beside = self.beside.get(type(request))
        if beside is not None:  # for instance while a load runs
            try:
                return beside(request, progress)
            except (LabError, OSError):
                self.check_alive()
                raise
        with self.lock:
            self.doing = name
            try:
                return self.operations[type(request)](request, progress)
            except (LabError, OSError):
                self.check_alive()  # what died, rather than what failed for it
                raise
            finally:
                self.doing = "idle"


@contextmanager
def replace_atomically(file: Path) -> Iterator[Path]:
    """A path to write to, whose file takes a place in the end: no link that a host's program has put there counts."""
    partial = FOLDER / f".{threading.get_ident()}.partial"
    try:
        yield partial
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _hold(leash: int) -> None:
    """End the lab when the program that started it ends without a word: then nobody knows of it."""
    os.set_inheritable(leash, False)
    if not os.read(leash, 1):
        os._exit(1)
    os.close(leash)


def main() -> None:
    """Prepare the namespaces, then listen.

    The last words of the command line, after what `launch.labs` reads, are the folder that the lab was started from and
    the descriptor of a pipe, or `-`.
    """
    if sys.argv[-1].isdecimal():
        threading.Thread(target=_hold, args=(int(sys.argv[-1]),), daemon=True).start()
    use_single_arena()
    presize_intern_table()
    try:
        allow_long_files()
    except LabError as error:
        sys.exit(str(error))  # whoever waits for the socket tells what was printed last
    hierarchy = cgroup.find_hierarchy()
    mounts.mount("tmpfs", "lab", "/run", options="mode=755")
    SHARED.mkdir(parents=True)
    SHARED.chmod(0o1777)
    agent = Agent(sys.argv[-2])
    if hierarchy is not None:  # kept in sight before the lab's own /sys hides it
        GROUPS.mkdir()
        mounts.mount("", str(hierarchy.root), str(GROUPS), mounts.BIND)
        agent.shares.hierarchy = cgroup.Hierarchy(GROUPS, hierarchy.version)
    mounts.mount("sysfs", "lab", "/sys")
    set_interfaces(["lo"], up=True)
    socket.sethostname("localhost")  # a name that is found without any network
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listen(SOCKET, agent)


if __name__ == "__main__":
    main()

"""A running lab as its process 1 has it: switches, network, hosts' shares of the processors, controller."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from testbed.base.errors import LabError
from testbed.base.limits import WHOLE_FILE, scaled_limit
from testbed.base.messages import CpuShare, Disturbance, Disturbed, Facts, FrameCounts, LoadRequest, Observation, Status
from testbed.engines.lab.build_order import BuildOrder, LabState, StormReading
from testbed.engines.lab.control.agent_memory import trim_heap
from testbed.engines.lab.control.controller import LabController, Progress
from testbed.engines.lab.control.fault_injection import carry_out
from testbed.engines.lab.control.json_lines import encode
from testbed.engines.lab.hosts import probe_frames
from testbed.engines.lab.hosts.commands import allow_files
from testbed.engines.lab.hosts.host_shares import HostShares, most_share
from testbed.engines.lab.hosts.host_view import SHARED
from testbed.engines.lab.hosts.interface_names import HOST_INTERFACE, OPEN_VSWITCH, PLAN
from testbed.engines.lab.hosts.lab_network import LabNetwork
from testbed.engines.lab.hosts.run_processes import LoadRunner
from testbed.engines.ovs.openvswitch import OpenVSwitch
from testbed.engines.ovs.switch_daemon import daemon_count, divide, open_files, switch_ports
from testbed.engines.ovs.table_limits import datapath_flows, forwarding_entries

FOLDER = Path("/run/lab")
STATE = FOLDER / "state.json"
_SHORT = 16 << 20  # bytes that a request may have in any lab
_PLANS = 4  # and in a large one, as so many of its plan: another plan, or all rules
_MODEL_FILES, _FILES_A_HOST = 100, 3  # a tap, a queue, and what its programs print


class RunningLab:
    """Switches, network, shares and controller of one lab, and what operations do with them.

    Attributes:
        folder: of the lab's files.
        shared_folder: its part that programs in hosts see.
        max_request: bytes of a request; until it is built only who builds it knows the lab.
        doing: the operation that is under way, for who asks.
    """

    def __init__(self, began_in: str = "/") -> None:
        self.folder, self.shared_folder = FOLDER, SHARED
        self.switches = OpenVSwitch(FOLDER / OPEN_VSWITCH)
        self.fabric: LabNetwork | None = None
        self.facts: Facts | None = None
        self.max_request = scaled_limit(WHOLE_FILE)
        self.shares = HostShares()
        self.controller = LabController(FOLDER)
        self.speeds_lock = threading.Lock()
        self.showing_lock = threading.Lock()
        self.doing = "starting"
        self._check_switches: Callable[[], None] = self.switches.check_alive
        self._loads = LoadRunner(self.shares.files, self.disturb, FOLDER, began_in)

    def need_fabric(self) -> LabNetwork:
        """Return the network, or raise LabError when it is not built or its switches or hosts died."""
        if self.fabric is None:
            raise LabError("the lab is not built yet")
        self.check_alive()
        return self.fabric

    def check_alive(self) -> None:
        """Raise LabError when switches or hosts have died."""
        self._check_switches()
        if self.fabric is not None:
            self.fabric.check_hosts()

    def stop_switches(self) -> None:
        """End what forwards frames."""
        if self.fabric is not None:
            self.fabric.stop_switches()
        else:
            self.switches.stop()

    def build(self, order: BuildOrder, progress: Progress) -> Facts:
        """Start the switches and make the network."""
        started = time.monotonic()
        groups = self.shares.give(order)
        if order.model:
            return self._build_model(order, groups, progress)
        # Modelled switches do without Mininet, so it need not be installed.
        from testbed.engines.lab.hosts.mininet_network import MininetNetwork  # noqa: PLC0415

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
            fabric = MininetNetwork(order, groups=groups, switches=self.switches)
            starting.result()
        ready = round(time.monotonic() - started, 4)
        made = fabric.make(progress, lambda: self.controller.bring_rules(order, self.switches, progress))
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
        self._write_state(fabric)
        return self.facts

    def _build_model(self, order: BuildOrder, groups: dict[str, str], progress: Progress) -> Facts:
        """Make hosts, and start the model that is their network."""
        # It needs numpy, and numba's types.
        from testbed.base.version import __version__  # noqa: PLC0415
        from testbed.engines.realtime.model_network import ModelNetwork  # noqa: PLC0415

        allow_files(_MODEL_FILES + _FILES_A_HOST * len(order.hosts), f"the lab {order.name}")
        fabric = ModelNetwork(order, FOLDER)
        self._check_switches = fabric.check_switches
        self.controller.choose(order)  # it gets ready beside the hosts
        made = fabric.make(progress, self.controller.wait_until_answering)
        self.fabric = fabric
        self.facts = Facts(
            datapath=fabric.datapath,
            version=f"testbed {__version__}",
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
        self._write_state(fabric)
        return self.facts

    def set_rates(
        self, link_rate: float, host_rate: float, cpu_share: float | None, dilation: float
    ) -> CpuShare | None:
        """Give the links other rates, and the hosts another share of the processors; arguments as of SetRates."""
        fabric = self.need_fabric()
        fabric.reshape(link_rate, host_rate, dilation)
        if self.shares.has_shares:
            fabric.order = replace(fabric.order, cpu_share=cpu_share)
            self.shares.give(fabric.order)
        self.controller.tell_dilation(dilation)
        share = self.shares.read_back()
        if self.facts is not None:
            self.facts = replace(self.facts, cpu_share=share, dilation=dilation)
        self._write_state(fabric)
        return share

    def _write_state(self, fabric: LabNetwork) -> None:
        """Store what Mininet's command line needs to adopt the lab, which is built now."""
        plan = (FOLDER / PLAN).stat().st_size if (FOLDER / PLAN).exists() else 0
        self.max_request = max(_SHORT, _PLANS * plan)
        STATE.write_text(encode(LabState(fabric.order, fabric.holders, self.shares.files())))

    def ping_all_pairs(self) -> list[tuple[str, str]]:
        """Names of hosts that do not hear each other; of all pairs whose first host is here."""
        fabric = self.need_fabric()
        return probe_frames.unreachable_pairs(fabric.order.hosts, fabric.order.others, fabric.holders)

    def teach_switches(self, vlans: Sequence[int], *, datagrams: bool) -> str:
        """Let every host here send a broadcast in each of some VLANs; how the frames were made."""
        fabric = self.need_fabric()
        order, slowest = fabric.order, min(fabric.order.link_rate, fabric.order.host_rate)
        return probe_frames.teach(order.hosts, order.others, fabric.holders, vlans, slowest, datagrams=datagrams)

    def watch_storm(
        self, seconds: float, every: float, rules: Mapping[str, Sequence[str]] | None
    ) -> list[StormReading]:
        """One broadcast, watched; arguments as of WatchStorm."""
        return probe_frames.watch_storm(self.need_fabric(), seconds, every, rules)

    def count_frames(self) -> FrameCounts:
        """Everything that counts frames, while no LLDP frames are sent."""
        fabric = self.need_fabric()
        if fabric.order.model or not fabric.order.collects_links:
            return fabric.frame_counts()
        with self.controller.without_lldp():
            return fabric.frame_counts()

    def run_load(self, load: LoadRequest, wanted: Callable[[], None]) -> Observation:
        """Run the processes of a load; count, record and disturb meanwhile.

        `wanted` fails when nobody waits for the load any more.
        """
        self.need_fabric().settle()
        try:
            return self._loads.run(load, self.need_fabric(), wanted)
        finally:
            gc.collect()  # of itself, it happens seldom
            trim_heap()

    def disturb(self, disturbance: Disturbance) -> Disturbed:
        """Carry out a disturbance; what failed is in its answer."""
        if disturbance.manager:
            return self.controller.disturb(up=disturbance.up)
        with self.speeds_lock:
            return carry_out(disturbance, self.need_fabric())

    @contextmanager
    def replace_atomically(self, file: Path) -> Iterator[Path]:
        """A path to write to, whose file takes a place in the end: links that a program put there are not followed."""
        partial = FOLDER / f".{threading.get_ident()}.partial"
        try:
            yield partial
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)

    def status(self) -> Status:
        """What the lab is and does."""
        if self.fabric is None:
            return Status(self.doing, 0, 0, 0, self.switches.datapath, None, None)
        order = self.fabric.order
        counts = len(order.hosts), len(order.switches), len(order.links)
        killed = tuple(self.fabric.list_killed())
        return Status(self.doing, *counts, self.fabric.datapath, order.controller, order.link_rate, killed)

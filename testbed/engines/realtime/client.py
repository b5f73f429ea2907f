"""A lab whose switches are a model, seen from outside: its memory is read, where Open vSwitch would be asked."""

from __future__ import annotations

import struct
import time
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from socket import inet_aton

import numpy as np

from testbed.base.errors import LabError, WorkloadError
from testbed.base.messages import Deviation, Disturbance, Flow, LoadRequest, PathTrace, PlanMove, Process, Tap
from testbed.base.model import LearningPlan, host_ip, host_mac
from testbed.base.python_isolation import make_code_command
from testbed.dataplane.kernels.packets_hash import frame_hash, member_by_hash
from testbed.dataplane.kernels.packets_state import PacketModel
from testbed.dataplane.switch_tables import flooding_tables, silent_tables
from testbed.engines.lab.build_order import StormReading
from testbed.engines.lab.control import operations as ask
from testbed.engines.lab.control.build import build_with
from testbed.engines.lab.control.client import LabClient, ignore_progress
from testbed.engines.lab.control.launch import Namespaces
from testbed.engines.lab.control.operation import Progress
from testbed.engines.lab.hosts.interface_names import MODEL
from testbed.engines.ovs.change_plan import installed_plan, note_installed
from testbed.engines.ovs.check_tables import by_datagrams, changed_links, of_controller, silent_pairs
from testbed.engines.realtime.capture import ModelFrames
from testbed.engines.realtime.change_plan import Mover, put_tables, tables_now
from testbed.engines.realtime.check_paths import spared_problems, trace_path, walked_problems
from testbed.engines.realtime.installer import table_differences
from testbed.engines.realtime.shared_memory import attach, write
from testbed.fabric.routing.paths import path
from testbed.planning import Plan
from testbed.planning.failover.model_tables import all_tables
from testbed.planning.failures import first_tables
from testbed.planning.store import plan_from_json

_ROUNDS = 3
_SENT_LIMIT = 20.0  # s until a broadcast is sent
_BROADCAST = """
import socket, sys
door = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
door.bind(("eth0", 0))
door.send((bytes.fromhex("ff" * 6 + sys.argv[1]) + b"\\x88\\xb5").ljust(60, b"\\0"))
"""
_MOVE_LIMIT = 120.0  # s
_PROTOCOLS = {"tcp": 6, "udp": 17}


def build_model_lab(
    plan: Plan, model: PacketModel, *, keep: bool = False, progress: Progress = ignore_progress
) -> ModelClient:
    """Build the lab of a proved plan on the model of its switches; see build_with()."""
    return build_with(plan, lambda lab: ModelClient(lab, model), keep=keep, progress=progress, model=True)


class ModelClient(LabClient):
    """As LabClient.

    Args:
        namespaces: of the lab's process 1.
        model: to be computed in it; None = it is there.
    """

    def __init__(self, namespaces: Namespaces, model: PacketModel | None = None) -> None:
        super().__init__(namespaces)
        self._file = namespaces.socket.parent / MODEL
        if model is not None:
            write(self._file, model)

    @cached_property
    def model(self) -> PacketModel:
        """The model as it is computed now; what is in it changes all the time."""
        return attach(self._file, PacketModel)

    def capture(self, tap: Tap) -> ModelFrames:
        """Listen at a link of the model; see Session."""
        fabric, topology = self.model.fabric, self.plan().wiring
        if tap.host is not None:
            name = topology.host_name(tap.host)
            links = fabric.channels + tap.host, fabric.channels + fabric.hosts + tap.host
            about = f"outbound frames are those that {name} sends"
        elif tap.link is not None:
            name = topology.channel_name(2 * tap.link).replace("→", "-")
            links, about = (2 * tap.link, 2 * tap.link + 1), f"outbound frames go {topology.channel_name(2 * tap.link)}"
        else:
            raise LabError("a tap is at a link or at a host")
        return ModelFrames(self.model, links, name, about, self.namespaces.is_alive)

    def verify(self, plan: Plan) -> list[str]:
        """Teach, walk the tables of the running model, and ping all pairs; see Session."""
        if isinstance(plan.vlans, LearningPlan):
            for _ in range(_ROUNDS):
                self.learn(plan.vlans.vlan_ids.tolist(), datagrams=by_datagrams(plan))
                if not self.walk(plan):
                    break
        return self.walk(plan) or silent_pairs(self)

    def walk(self, plan: Plan, off: Collection[int] | None = None) -> list[str]:
        """Walk the tables of the running model; see Session."""
        problems = walked_problems(plan, tables_now(self._file.parent, self.model))
        if off is None:
            return problems
        down, spared = self.model.live.down, self.model.live.spared
        carrying = [link for link in off if not (down[2 * link] and down[2 * link + 1])]
        problems += [f"link {link} is off and carries frames" for link in carrying]
        return problems if plan.bundles is None else problems + spared_problems(plan.bundles, spared, off)

    def trace_path(self, plan: Plan, source: int, destination: int) -> PathTrace:
        """Follow a frame by the tables of the running model; see Session."""
        tables = tables_now(self._file.parent, self.model)
        tag = plan.vlans.host_tag(source, destination)
        return trace_path(tables, self.model.live.spared, plan.wiring, source, destination, tag)

    def deviations(self, plan: Plan) -> list[Deviation]:
        """What is no longer as it was built; see Session."""
        found = [Deviation(True, f"rates changed: {problem}") for problem in self.shaping_problems()]
        if not isinstance(plan.vlans, LearningPlan):
            found += [Deviation(True, problem) for problem in self.walk(plan)[:1]]
        found += changed_links(plan, self.link_states(), controlled=False)
        managed = first_tables(plan)
        if managed is None:
            return found
        changed = table_differences(all_tables(plan.topology, managed), tables_now(self._file.parent, self.model))
        if changed:
            sentence = (
                f"the switches' tables differ from the plan's and its backups' in {changed} places after the loads"
            )
            found.append(Deviation(True, sentence))
        return found + of_controller(self)

    def move_to(
        self, plan: str, off: Sequence[int], *, limit: float = _MOVE_LIMIT, wake_up: float = 0.0, pause: float = 0.0
    ) -> PlanMove:
        """Put other tables into the model, make before break; see Session. A segment manager refuses others."""
        if self.facts.controller is not None:
            return self._ask(ask.MoveToPlan(plan, tuple(off), limit, wake_up, pause))
        installed, were_off = installed_plan(self)

        def switch(links: Collection[int], up: bool) -> None:
            self.disturb(Disturbance(up=up, channels=tuple(2 * one + way for one in links for way in (0, 1))))

        mover = Mover(self._file.parent, self.model, installed, plan_from_json(plan), (were_off, off), switch)
        steps = mover.carry_out(limit, wake_up, pause)
        note_installed(self, plan, off)
        return PlanMove(steps, mover.deadlock)

    def run_broadcast_storm(
        self, seconds: float, every: float, rules: Mapping[str, Sequence[str]] | None = None
    ) -> list[StormReading]:
        """Likewise, by the counters of the model and by tables that flood everything in place of `rules`."""
        folder, model, topology = self._file.parent, self.model, self.plan().topology
        if rules is not None:
            put_tables(folder, model, flooding_tables(topology))
        by_switches = np.ones(len(model.state.sent), dtype=np.bool_)
        by_switches[model.fabric.channels : model.fabric.channels + model.fabric.hosts] = False  # those are hosts'
        argv = make_code_command(_BROADCAST, host_mac(0).replace(":", ""))
        zero, started = model.state.sent.copy(), time.monotonic()
        readings = [StormReading(0.0, 0, 0)]
        try:
            sent = self.run_load(LoadRequest((Process("broadcast", topology.host_name(0), argv),), _SENT_LIMIT))
            if sent.outputs["broadcast"].code:
                raise LabError(f"the broadcast was not sent: {sent.outputs['broadcast'].stderr.strip()}")
            for number in range(1, int(seconds / every + 0.5) + 1):
                time.sleep(max(0.0, started + number * every - time.monotonic()))
                frames = (model.state.sent - zero)[by_switches]
                readings.append(StormReading(time.monotonic() - started, int(frames.sum()), int(frames.max())))
        finally:
            put_tables(folder, model, silent_tables(tables_now(folder, model)))
        return readings

    def taken_channels(self, plan: Plan, flows: Sequence[Flow]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Ask the hash of the model; see Session."""
        if plan.bundles is None:
            raise LabError("the links of this lab are not aggregated")
        return [
            (
                self._channels_taken(plan, flow, flow.source, flow.destination),
                self._channels_taken(plan, flow, flow.destination, flow.source) if flow.protocol == "tcp" else (),
            )
            for flow in flows
        ]

    def _channels_taken(self, plan: Plan, flow: Flow, start: int, end: int) -> tuple[int, ...]:
        assert plan.bundles is not None
        ports = (flow.source_port, flow.destination_port)
        frame = np.frombuffer(
            _first_bytes(flow.protocol, start, end, *ports[:: 1 if start == flow.source else -1]), np.uint8
        )
        mixed = frame_hash(frame, len(frame))
        logical = path(plan.topology, plan.routes, start, end)
        taken = [member_by_hash(self.model.live, mixed, plan.bundles.channels(channel)[0]) for channel in logical]
        if -1 in taken:
            name = plan.topology.channel_name(logical[taken.index(-1)])
            raise WorkloadError(f"every link of {name} is down, so no flow goes by it")
        return tuple(taken)


def _first_bytes(protocol: str, start: int, end: int, from_port: int, to_port: int) -> bytes:
    """A frame of a flow, up to its ports."""
    ethernet = bytes.fromhex((host_mac(end) + host_mac(start)).replace(":", "")) + b"\x08\x00"
    number = _PROTOCOLS[protocol]
    packet = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, number, 0, *(inet_aton(host_ip(h)) for h in (start, end))
    )
    return ethernet + packet + struct.pack("!HH", from_port, to_port)

"""Talk to a lab's agent."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from testbed.base.errors import CapabilityError, LabError
from testbed.base.messages import (
    ControllerStatus,
    Deviation,
    Disturbance,
    Disturbed,
    Facts,
    FastPathEntries,
    Flow,
    FrameCounts,
    LinkReadings,
    LinkState,
    LoadRequest,
    Observation,
    PairReadings,
    PathTrace,
    PlanMove,
    Status,
    Tap,
)
from testbed.base.units import TimeScale
from testbed.engines.lab.build_order import BuildOrder, StormReading
from testbed.engines.lab.control import operations as ask
from testbed.engines.lab.control.json_lines import decode, encode
from testbed.engines.lab.control.launch import NOT_YOURS, Namespaces
from testbed.engines.lab.control.operation import Operation, Progress
from testbed.engines.lab.counters.capture import InterfaceFrames
from testbed.engines.lab.counters.packet_socket import open_in_lab
from testbed.engines.lab.hosts.interface_names import HOST_INTERFACE, PLAN, port_interface

if TYPE_CHECKING:
    from testbed.engines.session import Frames
    from testbed.planning import Plan

_SHUTDOWN_LIMIT = 5.0
_LOOK, _LOOKS = 1.0, 3  # seconds of silence after which one looks at process 1; and how often it is found stopped
_IN_STEP_LIMIT = 60.0

R = TypeVar("R")
L = TypeVar("L", bound="LabClient")


def ignore_progress(text: str) -> None:
    """Say nothing."""
    del text


class LabClient:
    """A running lab; use as a context manager to end it however the block ends.

    This module is light on purpose: `testbed down` needs nothing of the planner. All operations raise LabError where
    the agent refuses, or is gone.

    Args:
        namespaces: of its process 1.

    Attributes:
        namespaces: of its process 1.
    """

    def __init__(self, namespaces: Namespaces) -> None:
        self.namespaces = namespaces
        self._facts: Facts | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(namespaces.socket))
        except PermissionError as error:
            self._socket.close()
            raise CapabilityError(NOT_YOURS) from error
        except OSError as error:
            self._socket.close()
            raise LabError(f"the lab (process {namespaces.init}) does not answer: {error.strerror}") from error
        self._stream = self._socket.makefile("w", encoding="utf-8")
        self._said = bytearray()  # by the agent, and not read yet

    def _ask(self, request: Operation[R], progress: Progress = ignore_progress) -> R:
        """Send a request and return its answer."""
        try:
            self._stream.write(encode({"op": request.name, "request": request}) + "\n")
            self._stream.flush()
            while line := self._line():
                message = json.loads(line)
                if "progress" in message:
                    progress(message["progress"])
                elif "error" in message:
                    raise LabError(message["error"].split("\n"))
                else:
                    return decode(type(request).answer_type(), message["result"])
        except (BrokenPipeError, ConnectionResetError):
            pass
        raise LabError("the lab ended while it was in use")

    def _line(self) -> bytes:
        """The next line of an answer, however long that takes while process 1 can run; empty where it has hung up."""
        while b"\n" not in self._said:
            looks = 0
            while not select.select([self._socket], [], [], _LOOK)[0]:
                looks = looks + 1 if self.namespaces.is_stopped() else 0
                if looks == _LOOKS:
                    raise LabError(
                        f"the lab does not answer: its process {self.namespaces.init} is stopped, as by SIGSTOP; "
                        f"kill -CONT {self.namespaces.init} lets it go on, testbed down ends it"
                    )
            heard = self._socket.recv(1 << 20)
            if not heard:
                return b""
            self._said += heard
        line, _, rest = bytes(self._said).partition(b"\n")
        self._said = bytearray(rest)
        return line

    @contextmanager
    def second_connection(self) -> Iterator[LabClient]:
        """Another connection, for questions while this one waits for a load; the lab outlives it.

        Only `status` and what the agent does BESIDE others is answered before the load has ended.
        """
        other = self.__class__(self.namespaces)
        try:
            yield other
        finally:
            other.close()

    def abort(self) -> None:
        """From another thread: whoever waits for an answer is told that there is none; what was asked for ends."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up; the lab goes on."""
        with self._socket, suppress(OSError):
            self._stream.close()  # fails where a question to an agent that is gone was never sent

    def end(self) -> None:
        """Hang up and end the lab: its switches by the agent, which is quick at it, then everything by the kernel."""
        try:
            # A connection of its own: this one may be in the middle of an answer.
            with socket.socket(socket.AF_UNIX) as ending:
                ending.settimeout(_SHUTDOWN_LIMIT)
                ending.connect(str(self.namespaces.socket))
                ending.sendall((encode({"op": ask.Shutdown.name, "request": ask.Shutdown()}) + "\n").encode())
                ending.recv(4096)
        except OSError:
            pass  # the agent is gone or stuck; killing it ends the rest as surely
        self.close()
        self.namespaces.end()

    # ------------------------------------------------------------------------------------------- what it is and does

    def build(self, order: BuildOrder, progress: Progress = ignore_progress) -> Facts:
        """Make the network; `progress` is called with the name of each step."""
        self._facts = self._ask(ask.Build(order), progress)
        return self._facts

    @property
    def facts(self) -> Facts:
        """What was built, at the dilation it has now."""
        if self._facts is None:
            self._facts = self._ask(ask.GetFacts())
        return self._facts

    def plan(self) -> Plan:
        """What it was built from."""
        from testbed.planning.store import plan_from_json  # noqa: PLC0415 - `testbed down` needs nothing of the planner

        return plan_from_json(self.read(PLAN).decode())

    def status(self) -> Status:
        """What the lab is and does; answered at any time."""
        return self._ask(ask.GetStatus())

    def set_rates(self, plan: Plan) -> None:
        """Give the links, and the hosts their shares of the processors, what the plan's dilation says."""
        scenario = plan.scenario
        dilation = scenario.lab.chosen_dilation
        scale = TimeScale(dilation)
        rate, edge_rate = scale.lab_rate(scenario.links.rate), scale.lab_rate(scenario.links.edge_rate)
        share = self._ask(ask.SetRates(rate, edge_rate, scenario.lab.processors_a_host, dilation))
        self._facts = replace(self.facts, cpu_share=share, dilation=dilation)

    def set_speeds(self, speeds: Mapping[int, float]) -> None:
        """Let links run at shares of their rate, by the link's number; others keep theirs."""
        self._ask(ask.SetSpeeds(speeds))

    def shaping_problems(self) -> list[str]:
        """Differences between rates, queues and shares of processors asked for and the kernel's; a sentence each."""
        return self._ask(ask.CheckShaping())

    # ------------------------------------------------------------------------------------------ loads and counters

    def run_load(self, load: LoadRequest) -> Observation:
        """Run the processes of a load; count, record and disturb meanwhile."""
        return self._ask(ask.RunLoad(load))

    def disturb(self, disturbance: Disturbance) -> Disturbed:
        """Let something die or come back, or links change, now."""
        return self._ask(ask.Disturb(disturbance))

    def link_states(self) -> dict[int, LinkState]:
        """Links between switches that are not as planned, by number."""
        return self._ask(ask.GetLinks())

    def frames(self) -> FrameCounts:
        """Everything that counts frames."""
        return self._ask(ask.CountFrames())

    def read_links(self) -> LinkReadings:
        """What all links have carried until now, and what waits for them."""
        return self._ask(ask.ReadLinks())

    def read_pairs(self) -> PairReadings:
        """Bytes between a host and each other one; where they are not counted yet, from now on."""
        return self._ask(ask.ReadPairs())

    def capture(self, tap: Tap) -> AbstractContextManager[Frames]:
        """Listen at the port of the first switch of a link, or at the card of a host; asks nothing of the agent."""
        topology, init = self.plan().wiring, self.namespaces.init
        scale = f"in laboratory time, which is {self.facts.dilation:.4g} times real time"
        if tap.host is not None:
            name = topology.host_name(tap.host)
            pid, interface, proc = self.facts.holders[name], HOST_INTERFACE, self.namespaces.proc
            shown, about = f"{name}-{interface}", f"outbound frames are those that {name} sends; {scale}"
        elif tap.link is not None:
            channel = 2 * tap.link
            switch = topology.switch_name(int(topology.channel_source[channel]))
            interface = shown = port_interface(switch, int(topology.out_port[channel]))
            pid, proc = init, Path("/proc")
            about = f"outbound frames are those of {topology.channel_name(channel)}; {scale}"
        else:
            raise LabError("a tap is at a link or at a host")
        try:
            ear = open_in_lab(init, pid, interface, proc)
        except OSError as error:
            raise LabError(f"{shown} of the lab cannot be listened to: {error.strerror}") from error
        return InterfaceFrames(ear, shown, about, self.namespaces.is_alive)

    def reach(self) -> list[tuple[str, str]]:
        """Ping all pairs of hosts: names of those without an answer."""
        return self._ask(ask.Reach())

    # ------------------------------------------------------------------------------------------- against the plan

    def verify(self, plan: Plan) -> list[str]:
        """Teach, dump the rules and walk them, and ping all pairs; see Session."""
        from testbed.engines.ovs import check_tables  # noqa: PLC0415 - `testbed down` needs nothing of the planner

        return check_tables.verify(plan, self)

    def walk(self, plan: Plan, off: Collection[int] | None = None) -> list[str]:
        """Dump the rules and walk them; see Session."""
        from testbed.engines.ovs import check_tables  # noqa: PLC0415 - as above

        return check_tables.walk(plan, self, off)

    def trace_path(self, plan: Plan, source: int, destination: int) -> PathTrace:
        """Dump the rules and follow a frame; see Session."""
        from testbed.engines.ovs import check_tables  # noqa: PLC0415 - as above

        return check_tables.trace_path(plan, self, source, destination)

    def deviations(self, plan: Plan) -> list[Deviation]:
        """What is no longer as it was built; see Session."""
        from testbed.engines.ovs import check_tables  # noqa: PLC0415 - as above

        return check_tables.deviations(plan, self)

    def taken_channels(self, plan: Plan, flows: Sequence[Flow]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Ask the running switches which members flows take; see Session."""
        from testbed.engines.ovs import check_tables  # noqa: PLC0415 - as above

        return check_tables.taken_channels(plan, self, flows)

    # ------------------------------------------------------------------------------------------------ Open vSwitch

    def flows(self) -> dict[str, list[str]]:
        """The rules of all running switches by switch: lines of `ovs-ofctl --no-stats --no-names dump-flows`."""
        return self._ask(ask.DumpFlows())

    def short_cuts(self) -> FastPathEntries:
        """What the fast path holds."""
        return self._ask(ask.DumpShortCuts())

    def groups(self) -> dict[str, list[str]]:
        """The groups of all running switches, by switch: lines of `ovs-ofctl dump-groups`."""
        return self._ask(ask.DumpGroups())

    def change_switches(self, rules: Mapping[str, Sequence[str]], groups: Mapping[str, Sequence[str]]) -> None:
        """Change rules and groups; see operations.ChangeSwitches."""
        self._ask(ask.ChangeSwitches(rules, groups))

    def trace(self, frames: Sequence[tuple[str, str]]) -> list[str]:
        """What `ofproto/trace` says of each (switch, flow)."""
        return self._ask(ask.Trace(tuple(frames)))

    def learn(self, vlans: Sequence[int], *, datagrams: bool) -> str:
        """Let every host send a broadcast in each of some VLANs; returns how the frames were made."""
        return self._ask(ask.Learn(tuple(vlans), datagrams))

    def run_broadcast_storm(
        self, seconds: float, every: float, rules: Mapping[str, Sequence[str]] | None = None
    ) -> list[StormReading]:
        """One broadcast of the first host, counted for `seconds` each `every`; then switches have no rules.

        `rules` are those of switches that flood everything; None = by the plan's.
        """
        return self._ask(ask.WatchStorm(seconds, every, rules))

    # -------------------------------------------------------------------------------------------------- controller

    def controller(self) -> ControllerStatus:
        """What the controller says of itself."""
        return self._ask(ask.TellController())

    def wait_for_controller(self, limit: float = _IN_STEP_LIMIT) -> ControllerStatus:
        """Wait until all switches are in step, up to `limit` s."""
        return self._ask(ask.WaitForController(limit))

    def stop_controller(self) -> None:
        """Kill the controller, as a crash would; switches keep their rules."""
        self._ask(ask.StopController())

    def start_controller(self) -> None:
        """Start the controller anew, from the plan the lab was built from."""
        self._ask(ask.StartController())

    def move_to(
        self, plan: str, off: Sequence[int], *, limit: float = _IN_STEP_LIMIT, wake_up: float = 0.0, pause: float = 0.0
    ) -> PlanMove:
        """Have the controller carry the switches over to another plan; see operations.MoveToPlan.

        Where links are aggregated there is none, and rules and groups are changed from here.
        """
        from testbed.engines.ovs.change_plan import move_lab  # noqa: PLC0415 - `testbed down` needs nothing of the planner

        if self.facts.controller is None and self.plan().bundles is not None:
            return move_lab(self, plan, off, limit, wake_up, pause)
        # Those of VLANs that were there before would drop frames for a moment when they are there again.
        self._ask(ask.ForgetFlows())
        return self._ask(ask.MoveToPlan(plan, tuple(off), limit, wake_up, pause))

    # ------------------------------------------------------------------------------------------------------- files

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        """Write a file into the lab's own folder; returns its path inside the lab."""
        return Path(self._ask(ask.WriteFile(name, text, mode)))

    def copy(self, source: Path) -> str:
        """Copy a file into the lab's folder; returns its path inside the lab, which has neither spaces nor colons."""
        return self._ask(ask.CopyFile(str(source), source.name))

    def read(self, name: str) -> bytes:
        """Content of a file in the lab's own folder."""
        return (self.namespaces.socket.parent / name).read_bytes()

    def count_files(self, pattern: str) -> int:
        """How many files of a name with wildcards are in the lab's own folder."""
        return len(list(self.namespaces.socket.parent.glob(pattern)))

    def pop_file(self, name: str) -> str:
        """Text of a file that a load has left in the lab's folder, which is then gone; empty where there is none."""
        return self._ask(ask.TakeFile(name))

    def share_folder(self, folder: Path, hosts: Sequence[str] | None = None) -> None:
        """Let programs in hosts, in all or some, read a folder of the machine, as far as they may; see Session."""
        self._ask(ask.ShowFolder(str(folder), None if hosts is None else tuple(hosts)))

    def __enter__(self: L) -> L:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the lab."""
        self.end()

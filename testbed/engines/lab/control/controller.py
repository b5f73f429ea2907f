"""The controller inside a lab: a program of its own, asked over HTTP on the lab's loopback.

It is a child of the lab's process 1, and dies with it. Switches keep their rules without it. Modelled switches have
one of their own, which writes tables where others speak OpenFlow.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.base.errors import LabError
from testbed.base.messages import ControllerStatus, Disturbed, PlanMove, SwitchState
from testbed.base.python_isolation import make_module_command
from testbed.base.resources import CONTROLLERS
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.control.json_lines import decode
from testbed.engines.lab.hosts.commands import FIRST
from testbed.engines.lab.hosts.interface_names import OPEN_VSWITCH, PLAN
from testbed.engines.ovs.switch_backend import SwitchBackend

_SWITCH_PORT, _STATUS_PORT = 6653, 8080
_START_LIMIT = 30.0
_IN_STEP_LIMIT = 60.0
_ANSWER_LIMIT = 60.0
_HOLD_LLDP = 60.0  # s for which no LLDP frames are sent at most while counters are read
_POLL = 0.05
_TAKEOVER_LIMIT = 10.0
_PATIENCE = 10.0  # in which a controller that goes by LLDP hears of all links of a new lab
_LOG_TAIL = 3
_SHOWN = 4

Progress = Callable[[str], None]


class Controller:
    """A controller and the way to ask it.

    `name` is of the program, as in `python -m controllers NAME`; `folder` has its plan, and gets its log; `at` is the
    IP address where it listens. With `model` it is that of modelled switches. `number` is its own, from 1, of several.
    `all_here` says that the daemons of all its switches are those of this lab.
    """

    def __init__(
        self, name: str, folder: Path, at: str, *, model: bool = False, number: int = 1, all_here: bool = True
    ) -> None:
        self.name, self._at, self._number = name, at, number
        daemons = ("--daemons", str(folder / OPEN_VSWITCH)) if all_here else ()
        self._program = ("testbed.engines.realtime.manager_program",) if model else (
            CONTROLLERS, name, "--host", at, "--port", str(_switch_port(number)), *daemons
        )  # fmt: skip
        self._status_port = _STATUS_PORT + number - 1
        self._plan, self._log = (
            folder / PLAN,
            folder / ("controller.log" if number == 1 else f"controller-{number}.log"),
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, dilation: float) -> None:
        """Start it; it takes a second until it answers.

        Links run at the plan's rate divided by the dilation.

        Raises:
            LabError: it runs already.
        """
        if self.runs:
            raise LabError(f"the controller {self.name} runs already; stop it first")
        command = [
            *FIRST,
            *make_module_command(
                *self._program, "--plan", str(self._plan), "--dilation", f"{dilation:.17g}",
                "--status-port", str(self._status_port),
            ),
        ]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def runs(self) -> bool:
        """Whether its process does."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Kill it, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def check_alive(self) -> None:
        """Raise LabError, with the end of its log, if it does not run."""
        if self._process is None:
            raise LabError(f"the controller {self.name} was stopped; start it first")
        code = self._process.poll()
        if code is not None:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            tail = self._log.read_text(errors="replace").splitlines()[-_LOG_TAIL:]
            raise LabError(f"the controller {self.name} {how}. " + " | ".join(tail))

    def status(self) -> ControllerStatus:
        """What it says of itself.

        Raises:
            LabError: it does not answer.
        """
        return replace(decode(ControllerStatus, self._ask("GET", "/"), more_keys=True), manager=self._number)

    def tell_dilation(self, dilation: float) -> None:
        """Tell it how fast the links are from now on; it waits for frames to arrive."""
        self._ask("POST", "/dilation", {"dilation": dilation})

    def hold_lldp(self, seconds: float) -> None:
        """Have it send no LLDP frames for as long; 0 = go on."""
        self._ask("POST", "/lldp", {"seconds": seconds})

    def move(self, plan: str, off: Sequence[int], limit: float, wake_up: float, pause: float) -> PlanMove:
        """Have it carry the switches over to another plan.

        Raises:
            LabError: it refuses, with its reason, or a step failed; nothing has changed then.
        """
        body = {"plan": plan, "off": tuple(off), "wake_up": wake_up, "pause": pause}
        return decode(PlanMove, self._ask("POST", "/plan", body, limit), more_keys=True)

    def _ask(self, method: str, path: str, body: object = None, limit: float = _ANSWER_LIMIT) -> Any:
        """Send a request and return the answer's JSON.

        `limit`: s that the answer may take.

        Raises:
            LabError: it refuses, with its reason, or does not answer.
        """
        import http.client  # noqa: PLC0415 - labs without a controller start sooner

        self.check_alive()
        connection = http.client.HTTPConnection(self._at, self._status_port, timeout=limit)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException) as error:
            self.check_alive()
            raise LabError(f"the controller {self.name} does not answer {method} {path}: {error}") from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise LabError(f"the controller {self.name} refuses: {answer['error']}")
        return answer

    def wait_until_answering(self) -> None:
        """Return when it answers.

        Raises:
            LabError: it ended, or does not answer in time.
        """
        until = time.monotonic() + _START_LIMIT
        while True:
            try:
                self.status()
                return
            except LabError:
                self.check_alive()
                if time.monotonic() > until:
                    raise
            time.sleep(_POLL)

    def wait_in_step(
        self, limit: float = _IN_STEP_LIMIT, progress: Progress = lambda text: None, patience: float = 0.0
    ) -> ControllerStatus:
        """Return its status when all switches have the rules of the plan, or of what is alive of its fabric.

        `limit`: s; `progress` is called with how many there are; what is dead may take `patience` s to come up.

        Raises:
            LabError: names the switches that do not, and why.
        """
        self.wait_until_answering()
        until, whole_by = time.monotonic() + limit, time.monotonic() + patience
        told = -1
        while True:
            status = self.status()
            count, of = status.in_step, len(status.switches)
            settled = not status.phase or status.phase.startswith("steady")
            if count == of and settled and (not status.down or time.monotonic() > whole_by):
                return status
            if time.monotonic() > until:
                raise LabError(describe_late_switches(self.name, status, limit))
            if count != told:
                progress(f"rules, by the controller {self.name}: {count} of {of} switches")
                told = count
            time.sleep(_POLL)


def describe_late_switches(name: str, status: ControllerStatus, limit: float) -> str:
    """A sentence that names the switches of a status that are not in step."""
    behind = {switch: state for switch, state in status.switches.items() if state.state != "in step"}
    if not behind:
        return f'the controller {name} is in the phase "{status.phase}" after {limit:g} s. {status.problem}'.rstrip()
    shown = [_why(switch, state) for switch, state in list(behind.items())[:_SHOWN]]
    more = f" and {len(behind) - _SHOWN} more" if len(behind) > _SHOWN else ""
    refused = "".join(f". Refused: {one.sentence}" for one in status.refused)
    return (
        f"{len(behind)} of {len(status.switches)} switches are not in step with the controller {name} after "
        f"{limit:g} s: {', '.join(shown)}{more}{refused}"
    )


def _why(switch: str, state: SwitchState) -> str:
    return f"{switch} ({state.state}{': ' + state.problem if state.problem else ''})"


def _switch_port(number: int) -> int:
    return _SWITCH_PORT + number - 1


class LabController:
    """The controller of a lab, if it has one: what the agent can be asked about it, at any time.

    Of several managers it is the one that steers.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._controllers: list[Controller] = []
        self._dilation = 1.0
        self._lock = threading.Lock()

    def choose(self, order: BuildOrder) -> None:
        """Start the controller that is to install the rules, or to look after a model, if it is to run here."""
        if order.controller is not None and order.controller_here:
            self._controllers = [
                Controller(
                    order.controller, self._folder, order.controller_at, model=order.model, number=number,
                    all_here=not order.everywhere,
                )
                for number in range(1, order.managers + 1)
            ]  # fmt: skip
            self._dilation = order.dilation
            for one in self._controllers:
                one.start(order.dilation)

    def wait_until_answering(self) -> None:
        """Return when the controller answers, if there is one; raises as Controller.wait_until_answering()."""
        for one in self._controllers:
            one.wait_until_answering()

    def bring_rules(self, order: BuildOrder, switches: SwitchBackend, progress: Progress) -> None:
        """Install the rules on bridges that are there, or let the controller do it."""
        if order.controller is None:
            switches.install(order.rules)
            return
        self.wait_until_answering()
        ports = (_switch_port(number) for number in range(1, order.managers + 1))
        switches.set_controllers([f"tcp:{order.controller_at}:{port}" for port in ports])
        if self._controllers:  # where it runs elsewhere, it is waited for there
            self._need().wait_in_step(progress=progress, patience=_PATIENCE)

    def tell_dilation(self, dilation: float) -> None:
        """Tell a controller how fast the links are from now on."""
        self._dilation = dilation
        for one in self._controllers:
            if one.runs or len(self._controllers) == 1:
                one.tell_dilation(dilation)

    @contextmanager
    def without_lldp(self) -> Iterator[None]:
        """No LLDP frames are sent until the block ends, so that counters are read of hosts' frames alone."""
        running = [one for one in self._controllers if one.runs]
        for one in running:
            with suppress(LabError):  # it has just ended; whoever takes over is held too
                one.hold_lldp(_HOLD_LLDP)
        try:
            yield
        finally:
            for one in running:
                with suppress(LabError):
                    one.hold_lldp(0.0)

    def status(self) -> ControllerStatus:
        """What the controller says of itself."""
        return self._need().status()

    def wait(self, limit: float, progress: Progress) -> ControllerStatus:
        """Wait until all switches are in step, up to `limit` s."""
        return self._need().wait_in_step(limit, progress)

    def stop(self) -> None:
        """Kill the controller, of several managers the master, as a crash would; switches keep their rules."""
        with self._lock:
            self._need().stop()

    def start(self) -> None:
        """Start the controller anew, or managers that do not run, from the plan the lab was built from."""
        with self._lock:
            self._need_some()
            for one in [one for one in self._controllers if not one.runs] or self._controllers:
                one.start(self._dilation)

    def disturb(self, *, up: bool) -> Disturbed:
        """Kill the manager that steers, or start those that were killed; a kill has ended when the next one steers."""
        began, error = time.monotonic(), ""
        ended = began
        try:
            if up:
                self.start()
                ended = time.monotonic()
            else:
                with self._lock:
                    master = self._need()
                    began = time.monotonic()
                    master.stop()
                # By the clock of the successor, which is that of this machine.
                ended = self._need().status().master_since or time.monotonic()
        except LabError as problem:  # the load must end and tell it
            error = str(problem)
        return Disturbed(began, ended, error)

    def move(self, plan: str, off: Sequence[int], limit: float, wake_up: float, pause: float) -> PlanMove:
        """Have the controller carry the switches over to another plan; arguments as of MoveToPlan."""
        return self._need().move(plan, off, limit, wake_up, pause)

    def _need_some(self) -> None:
        if not self._controllers:
            raise LabError(
                "this lab has no controller: its rules were installed once; use lab.controller: switch_tagged"
            )

    def _need(self) -> Controller:
        """The controller; of several managers the master, which may have to take over first."""
        self._need_some()
        if len(self._controllers) == 1:
            return self._controllers[0]
        until = time.monotonic() + _TAKEOVER_LIMIT
        while running := [one for one in self._controllers if one.runs]:
            for one in running:
                with suppress(LabError):  # it has just ended, or does not answer yet
                    if one.status().role == "master":
                        return one
            if time.monotonic() > until:
                raise LabError(f"none of {len(running)} managers has become master in {_TAKEOVER_LIMIT:g} s")
            time.sleep(_POLL)
        self._controllers[0].check_alive()
        return self._controllers[0]

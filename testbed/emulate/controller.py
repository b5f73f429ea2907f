"""The OpenFlow controller inside a lab: a program of its own, asked over HTTP on the lab's loopback.

It is a child of the lab's process 1, and dies with it. Switches keep their rules without it.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.emulate.commands import FIRST
from testbed.emulate.names import PLAN
from testbed.errors import LabError

_HOST, _SWITCH_PORT, _STATUS_PORT = "127.0.0.1", 6653, 8080
_START_LIMIT = 30.0
_IN_STEP_LIMIT = 60.0
_ANSWER_LIMIT = 60.0
_POLL = 0.05
_LOG_TAIL = 3
_SHOWN = 4

Progress = Callable[[str], None]


class Controller:
    """A controller and the way to ask it.

    Args:
        name: of the program, as in `python -m controllers NAME`.
        folder: has its plan, and gets its log.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._plan, self._log = folder / PLAN, folder / "controller.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> str:
        """What switches connect to."""
        return f"tcp:{_HOST}:{_SWITCH_PORT}"

    def start(self, dilation: float) -> None:
        """Start it; it takes a second until it answers.

        Args:
            dilation: links run at the plan's rate divided by this.

        Raises:
            LabError: it runs already.
        """
        if self._process is not None and self._process.poll() is None:
            raise LabError(f"the controller {self.name} runs already; stop it first")
        command = [
            *FIRST, sys.executable, "-m", "controllers", self.name, "--plan", str(self._plan),
            "--dilation", f"{dilation:.17g}", "--port", str(_SWITCH_PORT), "--status-port", str(_STATUS_PORT),
        ]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

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

    def ask(
        self, method: str = "GET", path: str = "/", body: dict[str, Any] | None = None, limit: float = _ANSWER_LIMIT
    ) -> Any:
        """Send a request and return the answer's JSON.

        Args:
            method: GET or POST.
            path: what is asked; `/` is the status.
            body: of the request.
            limit: s that the answer may take.

        Raises:
            LabError: it refuses, with its reason, or does not answer.
        """
        self.check_alive()
        connection = http.client.HTTPConnection(_HOST, _STATUS_PORT, timeout=limit)
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

    def wait_until_it_answers(self) -> None:
        """Return when it answers.

        Raises:
            LabError: it ended, or does not answer in time.
        """
        until = time.monotonic() + _START_LIMIT
        while True:
            try:
                self.ask()
                return
            except LabError:
                self.check_alive()
                if time.monotonic() > until:
                    raise
            time.sleep(_POLL)

    def wait_in_step(self, limit: float = _IN_STEP_LIMIT, progress: Progress = lambda text: None) -> dict[str, Any]:
        """Return its status when all switches have the rules of the plan.

        Args:
            limit: s to wait.
            progress: called with how many there are.

        Raises:
            LabError: names the switches that do not, and why.
        """
        self.wait_until_it_answers()
        until = time.monotonic() + limit
        told = -1
        while True:
            status: dict[str, Any] = self.ask()
            count, of = status["in_step"], len(status["switches"])
            if count == of:
                return status
            if time.monotonic() > until:
                raise LabError(late(self.name, status, limit))
            if count != told:
                progress(f"rules, by the controller {self.name}: {count} of {of} switches")
                told = count
            time.sleep(_POLL)


def late(name: str, status: dict[str, Any], limit: float) -> str:
    """A sentence that names the switches of a status that are not in step."""
    behind = {switch: state for switch, state in status["switches"].items() if state["state"] != "in step"}
    shown = [
        f"{switch} ({state['state']}{': ' + state['problem'] if 'problem' in state else ''})"
        for switch, state in list(behind.items())[:_SHOWN]
    ]
    more = f" and {len(behind) - _SHOWN} more" if len(behind) > _SHOWN else ""
    refused = "".join(f". Refused: {one['sentence']}" for one in status["refused"])
    return (
        f"{len(behind)} of {len(status['switches'])} switches are not in step with the controller {name} after "
        f"{limit:g} s: {', '.join(shown)}{more}{refused}"
    )

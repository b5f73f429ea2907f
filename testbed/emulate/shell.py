"""Mininet's command line in a running lab, or one command there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.emulate.confine import forbid, own_places, program_in
from testbed.emulate.requests import LabState
from testbed.emulate.wire import decode
from testbed.errors import CapabilityError
from testbed.messages import Access
from testbed.shipped import setup

_STATE = Path("/run/lab/state.json")
# Entering leaves the folder that one was in.
_BACK = 'cd "$0" 2>/dev/null || cd /; exec "$@"'


def enter(init: int) -> None:
    """Replace this process by Mininet's command line inside the lab of a process 1; does not return."""
    package = str(Path(__file__).resolve().parents[2])
    _become(*_entering(init, [sys.executable, "-m", "testbed.emulate.shell"], PYTHONPATH=package))


def execute_in(
    init: int, holder: int | None, group: str | None, command: Sequence[str], access: Access = "write"
) -> None:
    """Replace this process by a command inside the lab of a process 1; does not return.

    Args:
        init: pid of process 1.
        holder: of the host, as the lab counts processes; None = beside the switches.
        group: the file by which programs join the host's share of the processors; None where it has none.
        command: program and arguments.
        access: what programs in hosts may do.
    """
    entering = inside(init, holder, group, command, access)
    if holder is not None and access != "write":
        forbid()
    _become(*entering)


def inside(
    init: int, holder: int | None, group: str | None, command: Sequence[str], access: Access
) -> tuple[list[str], dict[str, str]]:
    """The command that runs another one inside a lab, and its environment; see execute_in().

    Raises:
        CapabilityError: not root.
    """
    back = ["sh", "-c", _BACK, str(Path.cwd()), *command]
    if holder is None:
        return _entering(init, back)
    return _entering(init, program_in(holder, back, group, access), **own_places(access))


def _entering(init: int, inside: Sequence[str], **variables: str) -> tuple[list[str], dict[str, str]]:
    if os.geteuid() != 0:
        raise CapabilityError("entering a lab needs root; run the command with sudo")
    command = [
        "nsenter",
        "--target",
        str(init),
        "--pid",
        "--net",
        "--mount",
        "--uts",
        "--ipc",
        "--",
        # A signal to nsenter alone ends nsenter, which passes none on.
        *("setpriv", "--pdeathsig", "TERM", "--"),
        *inside,
    ]
    return command, {**os.environ, **variables, "OVS_RUNDIR": "/run/lab/ovs"}


def _become(command: list[str], environment: dict[str, str]) -> None:
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError as error:
        raise CapabilityError(f"nsenter is not installed (package util-linux); {setup()}") from error


def main() -> None:
    """Adopt the lab's hosts and switches, and read commands until `exit`; the lab goes on."""
    from mininet.log import setLogLevel  # noqa: PLC0415 - only inside the lab

    from testbed.emulate.fabric import Fabric  # noqa: PLC0415
    from testbed.emulate.prompt import Prompt  # noqa: PLC0415

    state = decode(LabState, json.loads(_STATE.read_text()))
    if state.order.host_access != "write":
        forbid()  # for all that the hosts' shells start
    setLogLevel("info")
    Prompt(Fabric(state.order, state.holders, state.groups))


if __name__ == "__main__":
    main()

"""Mininet's command line in a running lab, or one command there."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from testbed.base.errors import CapabilityError, LabError
from testbed.base.messages import Access
from testbed.base.python_isolation import clean_environment, make_module_command
from testbed.base.resources import setup
from testbed.engines.lab.build_order import LabState
from testbed.engines.lab.control.json_lines import decode
from testbed.engines.lab.control.launch import NOT_YOURS, SYSTEM_FOLDERS
from testbed.engines.lab.hosts.seccomp import forbid, own_places, program_in
from testbed.engines.local_machine import user_namespace

_STATE = Path("/run/lab/state.json")
# A signal to what waits for the command alone ends only that, which passes none on.
_ENDING_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM", "--")
# Entering leaves the folder that one was in.
_BACK = 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"'


def enter(init: int) -> None:
    """Replace this process by Mininet's command line inside the lab of a process 1; does not return.

    Raises:
        CapabilityError: there is no Mininet, or this is not root.
    """
    if find_spec("mininet") is None or shutil.which("mnexec") is None:
        raise CapabilityError(
            f"the prompt is Mininet's, which is not installed; {setup()}, or type: testbed exec LAB HOST -- COMMAND"
        )
    prompt = [*_ENDING_WITH_PARENT, *make_module_command("testbed.engines.lab.control.mininet_shell")]
    command, environment = _entering(init, prompt, {})
    # Ctrl-C goes to all that the terminal has in front. nsenter, which waits, would end, and the prompt with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _become(command, clean_environment(environment))


def execute_in(
    init: int, holder: int | None, group: str | None, command: Sequence[str], access: Access = "write"
) -> int:
    """Run a command inside the lab of a process 1, on a terminal of its own where the caller has one.

    Args:
        init: pid of process 1.
        holder: of the host, as the lab counts processes; None = beside the switches.
        group: the file by which programs join the host's share of the processors; None where it has none.
        command: program and arguments.
        access: what programs in hosts may do.

    Returns:
        its exit code; where a signal ended it, this process ends by that signal.

    Raises:
        CapabilityError: the lab is another user's.
        LabError: the lab is gone, or the command cannot be started there.
    """
    from testbed.engines.lab.control.pty_relay import run_program  # noqa: PLC0415 - other commands need none
    from testbed.engines.lab.control.pty_session import Program  # noqa: PLC0415

    inner, variables = _build_inner_command(holder, group, command, access)
    confined = holder is not None and access != "write"
    place = Path(f"/proc/{init}/root", f"proc/{holder}/root" if confined else "", "dev/pts/ptmx")
    status = run_program(Program(init, inner, _environment(variables), confined, str(place)))
    if os.WIFSIGNALED(status):
        _die_by(os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


def build_lab_command(
    init: int, holder: int | None, group: str | None, command: Sequence[str], access: Access
) -> tuple[list[str], dict[str, str]]:
    """The command that runs another one inside a lab, and its environment; see execute_in().

    Raises:
        CapabilityError: the lab is another user's.
        LabError: the lab is gone.
    """
    inner, variables = _build_inner_command(holder, group, command, access)
    return _entering(init, inner, variables)


def _build_inner_command(
    holder: int | None, group: str | None, command: Sequence[str], access: Access
) -> tuple[list[str], dict[str, str]]:
    """What becomes the command when it is started in the lab's own namespaces, and what it finds in its environment."""
    back = ["sh", "-c", _BACK, "testbed", str(Path.cwd()), *command]
    if holder is None:
        return [*_ENDING_WITH_PARENT, *back], {}
    return [*_ENDING_WITH_PARENT, *program_in(holder, back, group, access)], own_places(access)


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    path = f"{os.environ.get('PATH', '')}:{SYSTEM_FOLDERS}"
    return {**os.environ, "PATH": path, **variables, "OVS_RUNDIR": "/run/lab/ovs"}


def _entering(init: int, inner: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    try:
        own = user_namespace.nsenter_options(init)
    except PermissionError as error:
        raise CapabilityError(NOT_YOURS) from error
    except OSError as error:
        raise LabError("the lab has ended") from error
    command = ["nsenter", "--target", str(init), *own, "--pid", "--net", "--mount", "--uts", "--ipc", "--", *inner]
    return command, _environment(variables)


def _die_by(number: int) -> None:
    """End as the command has ended, so that a shell or a supervisor sees how; without a dump of memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _become(command: list[str], environment: dict[str, str]) -> None:
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError as error:
        raise CapabilityError(f"nsenter is not installed (package util-linux); {setup()}") from error


def main() -> None:
    """Adopt the lab's hosts and switches, and read commands until `exit`; the lab goes on."""
    from mininet.log import setLogLevel  # noqa: PLC0415 - only inside the lab

    from testbed.engines.lab.control.mininet_prompt import Prompt  # noqa: PLC0415
    from testbed.engines.lab.hosts.mininet_network import MininetNetwork  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.default_int_handler)  # which Python leaves ignored where it was, see enter()
    state = decode(LabState, json.loads(_STATE.read_text()))
    if state.order.host_access != "write":
        forbid()  # for all that the hosts' shells start
    setLogLevel("info")
    Prompt(MininetNetwork(state.order, state.holders, state.groups))


if __name__ == "__main__":
    main()

"""Mininet's command line in a running lab."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from testbed.emulate.requests import LabState
from testbed.emulate.wire import decode
from testbed.errors import CapabilityError

_STATE = Path("/run/lab/state.json")


def enter(init: int) -> None:
    """Replace this process by Mininet's command line inside the lab of a process 1; does not return."""
    if os.geteuid() != 0:
        raise CapabilityError("entering a lab needs root; run the command with sudo")
    package_root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": package_root, "OVS_RUNDIR": "/run/lab/ovs"}
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
        sys.executable,
        "-m",
        "testbed.emulate.shell",
    ]
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError as error:
        raise CapabilityError("nsenter is not installed (package util-linux); run `make setup`") from error


def main() -> None:
    """Adopt the lab's hosts and switches, and read commands until `exit`; the lab goes on."""
    from mininet.cli import CLI  # noqa: PLC0415 - only inside the lab
    from mininet.log import setLogLevel  # noqa: PLC0415

    from testbed.emulate.fabric import Fabric  # noqa: PLC0415

    state = decode(LabState, json.loads(_STATE.read_text()))
    setLogLevel("info")
    CLI(Fabric(state.order, state.holders, state.groups))


if __name__ == "__main__":
    main()

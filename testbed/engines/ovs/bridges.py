"""The VLAN-filtering bridges of this machine, as iproute2 shows them. Nothing is changed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping

from testbed.base.errors import CapabilityError, InputError, argument

# What is asked, by the name under which readers of saved configurations look for it.
_ASKED = {
    "vlan.json": ("bridge", "-j", "vlan", "show"),
    "fdb.json": ("bridge", "-j", "fdb", "show"),
    "link.json": ("bridge", "-j", "-d", "link", "show"),
    "bridge.json": ("ip", "-j", "-d", "link", "show", "type", "bridge"),
}
_PATIENCE = 30.0  # s


def running_bridges(switches: Mapping[str, str]) -> dict[str, str]:
    """What the bridges of this machine show, file → text, a folder a switch.

    Args:
        switches: bridge → name of the switch that it is.

    Raises:
        CapabilityError: iproute2 is not here, or does not answer.
        InputError: a bridge is not there.
    """
    said = {file: _ask(command) for file, command in _ASKED.items()}
    bridges = {str(link["ifname"]): link for link in said["bridge.json"] if "ifname" in link}
    missing = [bridge for bridge in switches if bridge not in bridges]
    if missing:
        there = f"there are {', '.join(sorted(bridges))}" if bridges else "this machine has none"
        raise InputError.one(argument("bridge"), f"{missing[0]} is not a bridge of this machine; {there}")
    return {
        f"{switch}/{file}": json.dumps([bridges[bridge]] if file == "bridge.json" else rows)
        for bridge, switch in switches.items()
        for file, rows in said.items()
    }


def _ask(command: tuple[str, ...]) -> list[dict[str, object]]:
    where = shutil.which(command[0]) or shutil.which(command[0], path="/usr/sbin:/sbin")
    if where is None:
        raise CapabilityError(f"{command[0]} is not here, so no bridge can be read; install iproute2")
    try:
        done = subprocess.run([where, *command[1:]], capture_output=True, text=True, timeout=_PATIENCE, check=True)
        rows = json.loads(done.stdout or "[]")
    except (subprocess.SubprocessError, ValueError) as error:
        shown = getattr(error, "stderr", "") or str(error)
        raise CapabilityError(f"{' '.join(command)} did not say what there is: {str(shown).strip()}") from error
    return rows if isinstance(rows, list) else []

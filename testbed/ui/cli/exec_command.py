"""`testbed exec`: one command in a host of a running lab."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.base.errors import InputError, did_you_mean
from testbed.ui.cli.app import app


@app.command(
    "exec",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True},
    epilog="Examples:\ntestbed exec torus4x4 h1 -- ping -c 3 h16\ntestbed exec h1 -- ip neigh\n"
    "testbed exec s3 -- ovs-ofctl -O OpenFlow13 dump-flows s3",
)
def execute(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[LAB] HOST -- CMD",
            help="lab (may be left out while only one is running); a host, or a switch: beside all switches; command",
        ),
    ],
) -> None:
    """Run a command in a host of a running lab, with its own exit code.

    Names of hosts in the command become their IP addresses, as at the prompt of `testbed shell`.
    """
    from testbed.base.model import host_ip
    from testbed.engines.lab.control import registry
    from testbed.engines.lab.control.client import LabClient
    from testbed.engines.lab.control.mininet_shell import execute_in

    running = [entry.name for entry in registry.running()]
    # Without a name a lab that was left running is meant, also where a program measures in another.
    meant = [entry.name for entry in registry.entries()] or running
    named = words[0] in running
    if not named and len(meant) > 1 and not did_you_mean(words[0], running):
        listed, rest = ", ".join(meant), " ".join(words[:2])
        sentence = f"is missing, and several are running: {listed}; name one first: testbed exec {meant[0]} {rest} …"
        raise InputError.one("LAB", sentence)
    entry = registry.find(words[0] if named or len(meant) != 1 else None)
    where, command = "", words[named:]
    command = [word for at, word in enumerate(command) if (at, word) != (1, "--")]
    if command:
        where, *command = command
    if not command:
        raise InputError.one("CMD", "is missing; write a host and a command, such as h1 -- ping -c 3 h2")
    lab = LabClient(entry.namespaces)
    try:
        topology, facts = lab.plan().topology, lab.facts
        if where in facts.holders:
            lab.share_folder(Path.cwd(), [where])
    finally:
        lab.close()
    addresses = {topology.host_name(host): host_ip(host) for host in range(topology.host_count)}
    switches = [topology.switch_name(switch) for switch in range(topology.switch_count)]
    if where not in (*addresses, *switches):
        near = did_you_mean(where, [*addresses, *switches, *running])
        raise InputError.one("HOST", f'the lab {entry.name} has no host or switch "{where}".{near}')
    command = [addresses.get(word, word) for word in command]
    code = execute_in(entry.init, facts.holders.get(where), facts.groups.get(where), command, facts.host_access)
    raise typer.Exit(code)

"""A plan carried out by Linux bridges: what `testbed export` writes, in a network namespace a switch."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.export import Options, export_plan
from testbed.model import host_mac
from testbed.plan import Plan

from .observe import Network, switch_ports

_LIMIT = 30.0


@dataclass(frozen=True)
class Bridges:
    """Bridges that stand.

    Attributes:
        network: where they are.
        switch: process in each switch's namespace.
    """

    network: Network
    switch: list[int]

    def run(self, switch: int, *command: str, text: str | None = None) -> str:
        """Run a command beside one bridge and return what it printed."""
        return _run(self.switch[switch], *command, text=text)


def _run(pid: int, *command: str, text: str | None = None) -> str:
    entering = ["nsenter", f"--net=/proc/{pid}/ns/net", *command]
    done = subprocess.run(entering, input=text, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@contextmanager
def bridges(plan: Plan) -> Iterator[Bridges]:
    """Build them by the very scripts that a user would run on the switches; all ends with the block."""
    topology = plan.wiring
    holders = [
        subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up; echo up; exec sleep infinity"],
                         stdout=subprocess.PIPE)
        for _ in range(topology.switch_count + topology.host_count)
    ]  # fmt: skip
    try:
        for holder in holders:
            assert holder.stdout.readline() == b"up\n"
        pids = [holder.pid for holder in holders]
        switch, host = pids[: topology.switch_count], pids[topology.switch_count :]
        _links(plan, switch, host)
        exported = export_plan(plan, Options("linux-bridge-iproute2", ports="swp{}", flow_control="keep"))
        ports: dict[int, dict[str, tuple[int, int]]] = {pid: {} for pid in switch}
        for number, port in switch_ports(plan):
            ports[switch[number]][f"swp{port}"] = (number, port)
        standing = Bridges(Network(host, ports), switch)
        for number in range(topology.switch_count):
            standing.run(number, "sh", "-s", text=exported.files[f"{topology.switch_name(number)}.sh"])
        _wait(standing)
        yield standing
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()


def _wait(standing: Bridges) -> None:
    """Until every port forwards and every host sends: both hear of a carrier late, and drop frames until then."""
    until = time.monotonic() + _LIMIT
    asked = [(pid, ["bridge", "-j", "link", "show"], "state", "forwarding") for pid in standing.switch]
    asked += [(pid, ["ip", "-j", "link", "show", "eth0"], "operstate", "UP") for pid in standing.network.host]
    for pid, command, key, wanted in asked:
        while True:
            states = {row["ifname"]: row[key] for row in json.loads(_run(pid, *command))}
            if set(states.values()) == {wanted}:
                break
            assert time.monotonic() < until, f"interfaces that are not {wanted}: {states}"
            time.sleep(0.1)


def _links(plan: Plan, switch: list[int], host: list[int]) -> None:
    topology, lines = plan.wiring, []
    for link in range(topology.link_count):
        there, back = 2 * link, 2 * link + 1
        ends = [(switch[topology.channel_source[c]], f"swp{topology.out_port[c]}") for c in (there, back)]
        lines.append(f"link add {ends[0][1]} netns {ends[0][0]} type veth peer name {ends[1][1]} netns {ends[1][0]}")
    for number, pid in enumerate(host):
        lines.append(
            f"link add eth0 netns {pid} address {host_mac(number)} type veth peer name swp{topology.host_port[number]} "
            f"netns {switch[topology.host_switch[number]]}"
        )
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True, timeout=120)
    for pid in host:
        subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link", "set", "eth0", "up"], check=True)

"""A plan carried out by Linux bridges: what `testbed export` writes, in a network namespace a switch."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base.model import host_mac
from testbed.devices import Options, export_plan
from testbed.engines.lab.hosts.commands import in_network_of
from testbed.planning import Plan

from .observe import Network, switch_ports

_LIMIT = 30.0
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8913, 0x8914, 0x1, 0x40


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
    nodes = range(topology.switch_count + topology.host_count)
    holders = [subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) for _ in nodes]
    try:
        pids = [holder.pid for holder in holders]
        for pid in pids:
            _wait_for_namespace(pid)
            # Else hosts talk of their own accord for seconds, and frames do not come to rest.
            in_network_of(pid, lambda: Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1"))
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


def _wait(standing: Bridges) -> None:
    """Until every port forwards and every host sends: both hear of a carrier late, and drop frames until then."""
    until = time.monotonic() + _LIMIT
    for pid in standing.switch:
        while set((states := _port_states(pid)).values()) != {"forwarding"}:
            assert time.monotonic() < until, f"ports that do not forward: {states}"
            time.sleep(0.1)
    for host, pid in enumerate(standing.network.host, 1):
        while not _flags(pid) & _IFF_RUNNING:
            assert time.monotonic() < until, f"h{host} does not hear of its carrier"
            time.sleep(0.1)


def _port_states(pid: int) -> dict[str, str]:
    return {row["ifname"]: row["state"] for row in json.loads(_run(pid, "bridge", "-j", "link", "show"))}


def _wait_for_namespace(pid: int) -> None:
    own, until = Path("/proc/self/ns/net").readlink(), time.monotonic() + _LIMIT
    while Path(f"/proc/{pid}/ns/net").readlink() == own:
        assert time.monotonic() < until, f"process {pid} got no network namespace of its own"
        time.sleep(0.005)


def _flags(pid: int, add: int = 0) -> int:
    """Flags of a host's interface, with some more if asked; by the kernel, since starting programs takes long here."""

    def inside() -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            request = fcntl.ioctl(one, _SIOCGIFFLAGS, struct.pack("16sH14x", b"eth0", 0))
            flags: int = struct.unpack("16sH14x", request)[1] | add
            if add:
                fcntl.ioctl(one, _SIOCSIFFLAGS, struct.pack("16sH14x", b"eth0", flags))
            return flags

    return in_network_of(pid, inside)


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
        _flags(pid, add=_IFF_UP)

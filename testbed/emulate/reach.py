"""Real pings between all pairs of hosts."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from testbed.emulate.commands import in_host
from testbed.emulate.requests import HostOrder
from testbed.errors import LabError

_HOSTS_AT_ONCE = 8
_GAP_MS = "2"
_WAIT_MS = "1000"
_RETRIES = "2"


def unreachable_pairs(hosts: Sequence[HostOrder], holders: Mapping[str, int]) -> list[tuple[str, str]]:
    """Ping every host from every other; return the (source, destination) names without an answer."""
    name_of = {host.ip: host.name for host in hosts}

    def ping(source: HostOrder) -> list[tuple[str, str]]:
        targets = [host.ip for host in hosts if host.name != source.name]
        if not targets:
            return []
        command = in_host(holders[source.name], ["fping", "-i", _GAP_MS, "-t", _WAIT_MS, "-r", _RETRIES, *targets])
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise LabError("fping is not installed; run `make setup`") from error
        alive = {line.split()[0] for line in done.stdout.splitlines() if line.endswith("is alive")}
        return [(source.name, name_of[ip]) for ip in targets if ip not in alive]

    with ThreadPoolExecutor(_HOSTS_AT_ONCE) as pool:
        return [pair for pairs in pool.map(ping, hosts) for pair in pairs]

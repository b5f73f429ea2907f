"""Mininet's prompt, with those of its commands mended that do not work with this lab or with today's tools.

Mininet waits for two lines of iperf 2 of which new versions print one, so that its `iperf` never ends; here iperf3 does
it. Its `links` asks each node for its interfaces by a program that is not there.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from mininet.cli import CLI
from mininet.log import error, output

from testbed.base.errors import LabError
from testbed.base.units import format_rate
from testbed.engines.lab.hosts.commands import first_line, in_host
from testbed.engines.lab.hosts.mininet_network import MininetNetwork

_SECONDS = 4
_LIMIT = 60.0
_RATE = re.compile(r"\d+(\.\d+)?[KMG]?$")


class Prompt(CLI):  # type: ignore[misc]
    """Mininet's command line."""

    mn: MininetNetwork

    def do_iperf(self, line: str) -> None:
        """Simple TCP test of some seconds between two hosts, by iperf3; usage: iperf [node1 node2]."""
        words = line.split()
        if words and len(words) != 2:
            error("invalid number of args: iperf src dst\n")
            return
        pair = self._pair(words)
        if pair:
            self._test("TCP", pair)

    def do_iperfudp(self, line: str) -> None:
        """Simple UDP test of some seconds between two hosts, by iperf3; usage: iperfudp [bw node1 node2]."""
        words = line.split()
        if words and (len(words) != 3 or not _RATE.match(words[0])):
            error("usage: iperfudp bw src dst\nbw is a rate of the lab, such as 10M\n")
            return
        pair = self._pair(words[1:])
        if pair:
            self._test("UDP", pair, "-u", "-b", words[0] if words else str(round(self.mn.order.host_rate)))

    def do_links(self, line: str) -> None:
        """Report on links: whether the interfaces at both ends are up."""
        del line
        at_switches = _states(["ip", "-j", "link"])
        of_hosts = {name: _states(in_host(holder, ["ip", "-j", "link"])) for name, holder in self.mn.holders.items()}
        for link in self.mn.links:
            names, found = [], []
            for intf in (link.intf1, link.intf2):
                node = intf.node.name
                names.append(f"{node}-{intf.name}" if node in of_hosts else intf.name)
                found.append(of_hosts.get(node, at_switches).get(intf.name, "MISSING"))
            output(f"{names[0]}<->{names[1]} ({found[0]} {found[1]})\n")

    def _pair(self, names: Sequence[str]) -> tuple[Any, Any] | None:
        """The hosts of these names; without names the first and the last."""
        hosts = {host.name: host for host in self.mn.hosts}
        if not names:
            return self.mn.hosts[0], self.mn.hosts[-1]
        strangers = [name for name in names if name not in hosts]
        for name in strangers:
            error(f"'{name}' is not a host of this lab\n")
        return None if strangers else (hosts[names[0]], hosts[names[1]])

    def _test(self, kind: str, pair: tuple[Any, Any], *options: str) -> None:
        client, server = pair
        output(f"*** Iperf: testing {kind} bandwidth between {client.name} and {server.name}\n")
        try:
            sent, received = _iperf3(client, server, options)
        except LabError as failure:
            error(f"{failure.sentence}\n")
            return
        output(f"*** Results: {[_mininets(sent), _mininets(received)]}\n")
        dilation = self.mn.order.dilation
        if dilation != 1:
            real = f"{format_rate(sent * dilation)} sent, {format_rate(received * dilation)} received"
            output(f"    in the real world, at dilation {dilation:g}: {real}\n")


def _mininets(rate: float) -> str:
    """A rate as Mininet prints it."""
    return f"{rate / 1e6:.3g} Mbits/sec"


def _states(command: Sequence[str]) -> dict[str, str]:
    """Interface → OK or DOWN."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "[]")
    return {one["ifname"]: "OK" if "LOWER_UP" in one["flags"] and "UP" in one["flags"] else "DOWN" for one in found}


def _iperf3(client: Any, server: Any, options: Sequence[str]) -> tuple[float, float]:
    """Rates sent and received, in lab bit/s, of one test.

    Raises:
        LabError: iperf3 is missing, or says why it failed.
    """
    listening = ["iperf3", "--server", "--one-off", "--forceflush"]
    asking = ["iperf3", "--client", server.IP(), "--json", "--time", str(_SECONDS), *options]
    try:
        with server.popen(listening, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as listener:
            try:
                first_line(listener, "iperf3", _LIMIT)
                with client.popen(asking, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as talker:
                    try:
                        text, _ = talker.communicate(timeout=_LIMIT)
                    finally:
                        talker.kill()
            finally:
                listener.kill()
    except FileNotFoundError as failure:
        raise LabError("iperf3 is not installed") from failure
    except subprocess.TimeoutExpired as failure:
        raise LabError(
            f"iperf3 did not end in {_LIMIT:g} s; is there a way from {client.name} to {server.name}?"
        ) from failure
    try:
        found = json.loads(text)
    except ValueError as failure:
        said = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise LabError(f"iperf3: {said.strip() or 'it printed nothing'}") from failure
    if "error" in found:
        raise LabError(f"iperf3: {found['error']}")
    end = found["end"]
    sent = end["sum_sent"] if "sum_sent" in end else end["sum"]
    received = end.get("sum_received") or {
        "bits_per_second": end["sum"]["bits_per_second"] * (1 - end["sum"]["lost_percent"] / 100)
    }
    return float(sent["bits_per_second"]), float(received["bits_per_second"])

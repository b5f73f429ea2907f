"""Frames that a lab sends to look at itself: pings, broadcasts that teach switches, and one that storms.

The learning procedure (Koibuchi et al. 2011, section 3.3): each host sends one broadcast in each VLAN. The paper makes
a virtual interface a VLAN on every host, gives it an address in a network of its own, and broadcasts ICMP or UDP from
it. With datagrams so does this where the kernel has 802.1Q interfaces; where it has none, the host sends the same
frame, tag, addresses and all, through a packet socket. Without datagrams frames carry no protocol, and interfaces no
address.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Interface

from testbed.base.errors import LabError
from testbed.base.ethernet import MIN_FRAME, VLAN_TAG, wire_bytes
from testbed.base.resources import setup
from testbed.base.vlan_networks import vlan_address
from testbed.engines.lab.build_order import HostOrder, StormReading
from testbed.engines.lab.counters.counters import BUSY, idle_share, processor_ticks
from testbed.engines.lab.hosts.commands import in_host, in_network_of, run
from testbed.engines.lab.hosts.interface_names import HOST_INTERFACE, vlan_interface
from testbed.engines.lab.hosts.lab_network import LabNetwork

_HOSTS_AT_ONCE, _FEW_AT_ONCE = 8, 2
_FEW = 8  # pairs
_GAP_MS = "2"
_WAIT_MS, _PATIENT_MS = "1000", "5000"
_RETRIES = "2"


def unreachable_pairs(
    hosts: Sequence[HostOrder], others: Sequence[HostOrder], holders: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Ping every host, `others` on other machines, too, from each of `hosts`.

    Where the machine had hardly anything left for it, those that are silent are asked again, with more patience and
    fewer at a time.

    Returns:
        the (source, destination) names without an answer.
    """
    name_of = {host.ip: host.name for host in (*hosts, *others)}
    before = processor_ticks()
    targets = {host.name: [ip for ip, name in name_of.items() if name != host.name] for host in hosts}
    silent = _find_silent_targets(targets, holders, _WAIT_MS, _HOSTS_AT_ONCE)
    count = sum(map(len, silent.values()))
    # Where many are silent, that is no matter of patience.
    if 0 < count <= max(_FEW, len(hosts) * len(name_of) / 20) and idle_share(before, processor_ticks()) < BUSY:
        silent = _find_silent_targets(silent, holders, _PATIENT_MS, _FEW_AT_ONCE)
    return [(source, name_of[ip]) for source, ips in silent.items() for ip in ips]


def _find_silent_targets(
    targets: Mapping[str, Sequence[str]], holders: Mapping[str, int], wait: str, at_once: int
) -> dict[str, list[str]]:
    """Host → addresses of its targets that do not answer its pings in `wait` ms; so many hosts ping at once."""

    def ping(source: str) -> list[str]:
        if not targets[source]:
            return []
        command = in_host(holders[source], ["fping", "-i", _GAP_MS, "-t", wait, "-r", _RETRIES, *targets[source]])
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise LabError(f"fping is not installed; {setup()}") from error
        alive = {line.split()[0] for line in done.stdout.splitlines() if line.endswith("is alive")}
        return [ip for ip in targets[source] if ip not in alive]

    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(targets, pool.map(ping, targets), strict=True))


INTERFACES, RAW, DATAGRAMS = "802.1Q interfaces", "raw tagged frames", "UDP broadcasts"
_IPV4, _DISCARD = 0x0800, 9
# Experimental Ethernet type (IEEE 802, 9.2.3): no host answers, or looks into it.
_TYPE = 0x88B5
_BROADCAST = b"\xff" * 6
_MIN_GAP = 1e-3  # each frame is new to every switch it comes to


def teach(
    hosts: Sequence[HostOrder],
    others: Sequence[HostOrder],
    holders: Mapping[str, int],
    vlans: Sequence[int],
    rate: float,
    *,
    datagrams: bool,
) -> str:
    """Let every host send a broadcast in every VLAN, one after the other, so that no queue fills.

    `others`: on other machines, which send there; `holders`: host → pid; `rate`: bit/s of the slowest link;
    `datagrams`: whether broadcasts are UDP from an address in a network of each VLAN, or of no protocol.

    Returns:
        how the frames were made: INTERFACES or RAW, with DATAGRAMS before it.

    Raises:
        OSError: a host's interface cannot send.
        LabError: there are not addresses enough.
    """
    gap = max(_MIN_GAP, 2 * wire_bytes(MIN_FRAME, VLAN_TAG) * 8 / rate)
    ways = set()
    everybody = sorted(host.mac for host in (*hosts, *others))  # which are numbered in the order of hosts
    for host in hosts:
        number = everybody.index(host.mac)
        networks = [vlan_address(place, number, len(everybody)) for place in range(len(vlans))] if datagrams else None
        ways.add(_teach_one(host, holders[host.name], vlans, networks, gap))
    way = INTERFACES if ways == {INTERFACES} else RAW
    return f"{DATAGRAMS} by {way}" if datagrams else way


def _teach_one(
    host: HostOrder, holder: int, vlans: Sequence[int], networks: Sequence[IPv4Interface] | None, gap: float
) -> str:
    mac = bytes.fromhex(host.mac.replace(":", ""))
    made = make_interfaces(holder, vlans)
    if made is None:
        with _open_packet_socket(holder, HOST_INTERFACE) as sending:
            for place, vlan in enumerate(vlans):
                sending.send(frame(mac, vlan, networks[place] if networks is not None else None))
                time.sleep(gap)
        return RAW
    try:
        for place, name in enumerate(made):
            if networks is None:
                with _open_packet_socket(holder, name) as sending:
                    sending.send(frame(mac))  # the interface tags it
            else:
                _broadcast(holder, name, networks[place])
            time.sleep(gap)
    finally:
        run(in_host(holder, ["ip", "-batch", "-"]), "".join(f"link del {name}\n" for name in made))
    return INTERFACES


def _broadcast(holder: int, name: str, address: IPv4Interface) -> None:
    """Give an interface its address and broadcast a datagram from it, as any program would."""
    run(in_host(holder, ["ip", "-batch", "-"]), f"address add {address} broadcast + dev {name}\n")

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
        return made

    with in_network_of(holder, make) as sending:
        sending.sendto(b"", (str(address.network.broadcast_address), _DISCARD))


def make_interfaces(holder: int, vlans: Sequence[int]) -> list[str] | None:
    """An 802.1Q interface a VLAN in a host, up; None where the kernel has no such thing, and then nothing is left."""
    made: list[str] = []
    for vlan in vlans:
        name = vlan_interface(vlan)
        try:
            run(
                in_host(holder, ["ip", "-batch", "-"]),
                f"link add link {HOST_INTERFACE} name {name} type vlan id {vlan}\nlink set {name} up\n",
            )
        except LabError:
            shown = json.loads(run(in_host(holder, ["ip", "-j", "link", "show"])))
            left = [link["ifname"] for link in shown if link["ifname"] in (*made, name)]
            run(in_host(holder, ["ip", "-batch", "-"]), "".join(f"link del {one}\n" for one in left))
            return None
        made.append(name)
    return made


def send_from(holder: int, mac: str) -> None:
    """Let a host send one untagged broadcast."""
    with _open_packet_socket(holder, HOST_INTERFACE) as sending:
        sending.send(frame(bytes.fromhex(mac.replace(":", ""))))


def _open_packet_socket(holder: int, interface: str) -> socket.socket:
    """A packet socket on an interface of a host."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        made.bind((interface, 0))
        return made

    return in_network_of(holder, make)


def frame(mac: bytes, vlan: int | None = None, address: IPv4Interface | None = None) -> bytes:
    """A broadcast of a host, tagged with a VLAN or untagged; with an address an empty datagram to its network."""
    tag = b"" if vlan is None else struct.pack("!HH", 0x8100, vlan)
    content = struct.pack("!H", _TYPE) if address is None else struct.pack("!H", _IPV4) + _datagram(address)
    return (_BROADCAST + mac + tag + content).ljust(MIN_FRAME + len(tag), b"\0")


def _datagram(address: IPv4Interface) -> bytes:
    """An IPv4 packet with an empty UDP datagram from an address to the broadcast address of its network."""
    udp = struct.pack("!HHHH", _DISCARD, _DISCARD, 8, 0)  # without a checksum, as UDP may be over IPv4
    ends = address.ip.packed + address.network.broadcast_address.packed
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0) + ends
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:] + udp


def watch_storm(
    fabric: LabNetwork, seconds: float, every: float, rules: Mapping[str, Sequence[str]] | None
) -> list[StormReading]:
    """Let the first host send one broadcast and read the counters of all switch ports until the time is up.

    However it ends, the switches have no rules afterwards, so that nothing goes on circulating.

    Args:
        fabric: on Open vSwitch.
        seconds: from the broadcast on.
        every: s between two readings.
        rules: replace those of the switches; None = those stay that are there.

    Returns:
        readings; the first is 0.
    """
    # It needs numpy, without which a lab is there a tenth of a second sooner.
    from testbed.engines.lab.counters.rtnetlink import FIGURES, PortCounters  # noqa: PLC0415

    # Not by a program, which a busy machine would let wait: rates follow from the clock beside each reading.
    ports = PortCounters(list(fabric.port_rates()))
    sent = FIGURES.index("tx_packets")
    sender = fabric.order.hosts[0]
    switches = fabric.open_vswitch
    if rules is not None:
        switches.install(rules)
        # What Open vSwitch had cached while there were no rules drops the broadcast for some milliseconds more.
        switches.flush_statistics()
        fabric.settle()
    try:
        zero = ports.read()[:, sent]
        readings = [StormReading(0.0, 0, 0)]
        started = time.monotonic()
        send_from(fabric.holders[sender.name], sender.mac)
        for number in range(1, int(seconds / every + 0.5) + 1):
            time.sleep(max(0.0, started + number * every - time.monotonic()))
            frames = ports.read()[:, sent] - zero
            readings.append(StormReading(time.monotonic() - started, int(frames.sum()), int(frames.max())))
    finally:
        ports.close()
        switches.install({switch: [] for switch in fabric.order.switches})
    return readings

"""Doors: a tap in each host, whose other end is a file that the model reads and writes frames by.

A tap takes whatever its host sends and drops what it has no room for, so nobody in the host feels that the fabric
pauses. Where it may, packets are therefore held by netfilter (NFQUEUE) before they come to the tap. They stay accounted
to their sockets until the model takes them: UDP senders block, and TCP waits without sending anything twice.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from testbed.base.errors import CapabilityError, LabError
from testbed.base.model import Bools, Ints, Longs, Octets
from testbed.base.vlan_networks import VLAN_NETWORKS
from testbed.engines.lab.counters.socket_buffers import set_buffer
from testbed.engines.lab.hosts.commands import in_network_of, run
from testbed.engines.lab.hosts.interface_names import HOST_INTERFACE, vlan_interface
from testbed.engines.realtime.segmentation import HELD, TCP_HEADERS
from testbed.engines.realtime.shared_memory import attach

_TUN = Path("/dev/net/tun")
_TUNSETIFF, _SIOCSIFHWADDR, _ETHERNET = 0x400454CA, 0x8924, 1
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
# linux/netlink.h, linux/netfilter/nfnetlink_queue.h: subsystem 3; a message's head, then attributes.
_NETLINK_NETFILTER = 12
_HEAD, _ATTRIBUTE = struct.Struct("=IHHIIBBH"), struct.Struct("=HH")
_CONFIG, _VERDICT_BATCH = 0x302, 0x303
_COMMAND, _PARAMETERS, _LONGEST, _MASK, _FLAGS = 1, 2, 3, 4, 5
_WHOLE = struct.pack("!I", 4)  # NFQA_CFG_F_GSO: large segments are not cut by the kernel
# Netfilter's queues go in pairs, one for each interface of a host; packets of all come by one socket in their order.
_TCP_QUEUE, _OTHERS, _QUEUES = range(3)
_MESSAGE = 0x10000 + 256  # bytes of one: a packet, and what is said of it
_REQUEST, _ACKNOWLEDGE = 0x1, 0x5
_PACKETS = 1 << 16
_RECEIVE_BUFFER = 32 << 20
# Receivers' work is done by another processor than the one the model computes on; before the tap is made.
_STEERING = Path("/proc/sys/net/core/rps_default_mask")

# Histograms of lateness have bins of so many ns; the last one takes what is later.
BIN, BINS = 10_000, 4096
DELIVERY, READING, LOOP = range(3)
PS_A_NS = 1000
# Full frames whose bytes wait in the model for a host's link, and free frames that are kept for copies of broadcasts.
TX_AHEAD, RESERVED = 3, 1024
_AT_ONCE = 200  # descriptors in a message; the kernel takes 253
TAP, QUEUE, PART = 1, 2, 4  # bits of `ready`
# Places in `control`. STALLED_NS is how long the loop was away, beyond what hosts' cards have ahead; WATCHDOG_NS the
# laboratory time for which a node may be paused, 0 = for ever; MTU bytes of IP in a frame at most. The loop sleeps for
# GRAIN ns at least, and FRAME_NS is the time of a full frame on the fastest link. VLAN_HOSTS masks the number of a host
# in its addresses in networks of VLANs.
(
    STOP, REFUSED_BY_HOST, GRAIN, FRAME_NS, DEADLOCKED, EMPTY, WATCHDOG_NS, KICK, STALLED_NS, MTU, VLAN_HOSTS, CONTROLS,
) = range(12)  # fmt: skip


def _verdicts(queues: int) -> bytes:
    """Drop, that is: take from netfilter, all packets of a queue up to a number, which stands in the last bytes."""
    return b"".join(
        _HEAD.pack(32, _VERDICT_BATCH, _REQUEST, 0, 0, 0, 0, socket.htons(queue)) + _ATTRIBUTE.pack(12, 2) + bytes(8)
        for queue in range(queues)
    )


class HostPorts(NamedTuple):
    """Where frames come from and go to."""

    epoll: int  # descriptor that says which taps have frames
    taps: Ints  # (H,) descriptors
    queues: Ints  # (H,) descriptors of the sockets by which netfilter hands packets over; -1 = it holds none
    ready: Ints  # (H,) bits: whether a tap may have a frame, whether a queue may, whether a packet is there in part
    # (3, BINS) how late hosts were given frames, how late doors were looked at whose host's card was idle, and how late
    # the loop woke
    late: Longs
    events: Ints  # room for what epoll says
    clock: Longs  # (4,) room for times
    message: Octets  # (H, B) what netfilter has said, with the packet that is cut
    held: Longs  # (H, HELD) about that packet, see segmentation.py
    segment: Longs  # (H,) bytes of a TCP's segment at most, as hosts have asked for
    vlans: Ints  # (H, N) VLAN that what comes by a pair of netfilter's queues is tagged with; -1 = by no tag
    verdict: Octets  # (2 N, 32) what each of netfilter's queues is answered
    answers: Bools  # (2 N,) room for which of them are to be
    control: Longs  # (CONTROLS,) what the loop is asked and tells
    zero: Longs  # (1,) ns of the monotonic clock at the model's time 0
    cycle: Ints  # (N,) nodes that wait for each other for ever, then -1


def new_doors(hosts: int, nodes: int, mtu: int, vlans: Sequence[Sequence[int]] = (), vlan_hosts: int = 0) -> HostPorts:
    """Doors that are not open yet.

    Args:
        hosts: H.
        nodes: N of the model.
        mtu: bytes of IP in a frame at most.
        vlans: those that each host has an interface in; none for hosts that do not tag.
        vlan_hosts: mask of a host's number in its addresses in networks of VLANs.
    """
    control = np.zeros(CONTROLS, dtype=np.int64)
    control[MTU], control[VLAN_HOSTS] = mtu, vlan_hosts
    of_queue = np.full((hosts, 1 + max(map(len, vlans), default=0)), -1, dtype=np.int32)
    for host, own in enumerate(vlans):
        of_queue[host, 1 : 1 + len(own)] = own
    queues = _QUEUES * of_queue.shape[1]
    return HostPorts(
        epoll=-1,
        taps=np.full(hosts, -1, dtype=np.int32),
        queues=np.full(hosts, -1, dtype=np.int32),
        ready=np.full(hosts, TAP | QUEUE, dtype=np.int32),
        late=np.zeros((3, BINS), dtype=np.int64),
        events=np.zeros(4 * 64, dtype=np.int32),
        clock=np.zeros(4, dtype=np.int64),
        message=np.zeros((hosts, _MESSAGE), dtype=np.uint8),
        held=np.zeros((hosts, HELD), dtype=np.int64),
        segment=np.full(hosts, mtu - TCP_HEADERS, dtype=np.int64),
        vlans=of_queue,
        verdict=np.frombuffer(_verdicts(2 * of_queue.shape[1]), dtype=np.uint8)
        .reshape(2 * of_queue.shape[1], -1)
        .copy(),
        answers=np.zeros(queues, dtype=np.bool_),
        control=control,
        zero=np.zeros(1, dtype=np.int64),
        cycle=np.full(nodes, -1, dtype=np.int32),
    )


def send_descriptors(process: socket.socket, taps: Sequence[int], queues: Sequence[int]) -> None:
    """Send open doors to the process that computes the model: a tap for each host, and as many queues or none."""
    process.sendall(struct.pack("!II", len(taps), len(queues)))
    every = [*taps, *queues]
    for start in range(0, len(every), _AT_ONCE):
        socket.send_fds(process, [b"."], every[start : start + _AT_ONCE])


def receive_descriptors(sender: socket.socket, doors: Path) -> HostPorts:
    """Receive them, and what else is known of doors from a file.

    Raises:
        EOFError: whoever was to send them has ended.
    """
    head = sender.recv(8, socket.MSG_WAITALL)
    if len(head) < 8:
        raise EOFError
    taps, queues = struct.unpack("!II", head)
    every: list[int] = []
    while len(every) < taps + queues:
        said, got, _, _ = socket.recv_fds(sender, 1, _AT_ONCE)
        if not said:
            raise EOFError
        every += got
    found = attach(doors, HostPorts)
    found.taps[:] = every[:taps]
    found.queues[:queues] = every[taps:]
    return found


def open_taps(macs: Mapping[int, str], receivers: int) -> list[int]:
    """Make a tap in each host, down and without an address.

    Args:
        macs: of each host, by a pid in its namespaces.
        receivers: mask of the processors that receive what the model delivers; 0 = whichever.

    Returns:
        a file descriptor each, in the order of the hosts; reading does not block.

    Raises:
        CapabilityError: this machine has no taps.
        LabError: one could not be made.
    """
    if not _TUN.exists():
        raise CapabilityError(
            f"{_TUN} is missing, so hosts cannot be joined to the model and engine: realtime does not run; load the "
            "kernel's module (modprobe tun), or give the container this device"
        )
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda pid: in_network_of(pid, _make_tap_opener(macs[pid], receivers)), macs))


def _make_tap_opener(mac: str, receivers: int) -> Callable[[], int]:
    def make() -> int:
        if receivers and _STEERING.exists():
            _STEERING.write_text(f"{receivers:x}")
        try:
            tap = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", HOST_INTERFACE.encode(), _IFF_TAP | _IFF_NO_PI))
            address = struct.pack("16sH6s16x", HOST_INTERFACE.encode(), _ETHERNET, bytes.fromhex(mac.replace(":", "")))
            fcntl.ioctl(tap, _SIOCSIFHWADDR, address)
        except OSError as error:
            raise LabError(f"a host's tap cannot be made: {error.strerror}") from error
        return tap

    return make


def open_queues(holders: Mapping[str, int], vlans: Mapping[str, Sequence[int]]) -> list[int]:
    """Let netfilter hold what each host sends to others.

    Args:
        holders: host → pid in its namespaces.
        vlans: host → those that it has an interface in.

    Returns:
        a file descriptor each, in the order of the hosts; reading does not block.

    Raises:
        LabError: this machine cannot.
    """
    with ThreadPoolExecutor(8) as pool:
        return list(
            pool.map(lambda name: in_network_of(holders[name], lambda: _queue_packets(vlans.get(name, ()))), holders)
        )


def _queue_packets(vlans: Sequence[int]) -> int:
    interfaces = [HOST_INTERFACE, *(vlan_interface(vlan) for vlan in vlans)]
    try:
        made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETLINK_NETFILTER)
        made.bind((0, 0))
        set_buffer(made, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        for queue in range(_QUEUES * len(interfaces)):
            _configure(made, queue, _COMMAND, struct.pack("!BBH", 1, 0, socket.AF_INET))
            _configure(made, queue, _PARAMETERS, struct.pack("!IB", 0xFFFF, 2))
            _configure(made, queue, _LONGEST, struct.pack("!I", _PACKETS))
        # Of other packets the kernel makes the checksums, and cuts those that a program has joined (UDP_SEGMENT),
        # whose parts' length nobody else knows.
        for pair in range(len(interfaces)):
            _configure(made, _QUEUES * pair + _TCP_QUEUE, _FLAGS, _WHOLE, _MASK, _WHOLE)
    except OSError as error:
        raise LabError(f"{NO_QUEUE} ({error.strerror})") from error
    # Not with --queue-bypass. Whoever listens to the queue also holds the tap, so without a listener there is no
    # interface either. Were the queue alone lost, packets would come by the tap, hosts would feel no pause, and nobody
    # would notice; so they are lost, and the next ping finds it.
    rule = "-A POSTROUTING -d {} -o {} {} -j NFQUEUE --queue-num {}\n"
    rules = [
        rule.format(network, name, protocol, _QUEUES * pair + queue)
        for pair, name in enumerate(interfaces)
        for network in (("10.0.0.0/8", str(VLAN_NETWORKS)) if pair else ("10.0.0.0/8",))
        for protocol, queue in (("-p tcp", _TCP_QUEUE), ("! -p tcp", _OTHERS))
    ]
    run(["iptables-restore", "-w", "--noflush"], "*mangle\n" + "".join(rules) + "COMMIT\n")
    return made.detach()


NO_QUEUE = (
    "netfilter does not hold packets for the model, so hosts do not feel that the fabric pauses, and lose what finds "
    "their own queue full; load the modules nfnetlink_queue and xt_NFQUEUE"
)


def _configure(made: socket.socket, queue: int, *told: int | bytes) -> None:
    """Tell netfilter of a queue: kinds of attributes and their values, in turn."""
    body = b""
    for kind, value in zip(told[::2], told[1::2], strict=True):
        assert isinstance(value, bytes)
        body += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value.ljust(-(-len(value) // 4) * 4, b"\0")
    head = _HEAD.pack(_HEAD.size + len(body), _CONFIG, _ACKNOWLEDGE, 0, 0, 0, 0, socket.htons(queue))
    made.send(head + body)
    made.setblocking(True)
    answer = made.recv(4096)
    made.setblocking(False)
    error = struct.unpack_from("=i", answer, 16)[0]
    if error:
        raise OSError(-error, os.strerror(-error))

"""802.1Q interfaces of hosts that tag: one a VLAN, with an address in a network of that VLAN, and routes through them.

A host keeps its own address, to which programs send: it has a route to each other host through the interface of the
VLAN that holds their path. Whoever wants another tree sends to the address that the other host has in its network.

Where the kernel has no such interfaces (8021q), a pair of veth stands in for each, and two classifiers do the tagging:
what leaves by the interface gets its tag and goes to the card, what comes to the card with a tag goes to the interface.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from testbed.base.errors import LabError
from testbed.base.vlan_networks import vlan_address
from testbed.engines.lab.build_order import HostOrder
from testbed.engines.lab.hosts.commands import in_host, in_network_of, run
from testbed.engines.lab.hosts.interface_names import HOST_INTERFACE, vlan_interface
from testbed.engines.ovs import bpf
from testbed.engines.ovs.bpf import Assembler
from testbed.engines.ovs.fast_programs import INTERFACE, VLAN_PRESENT, VLAN_TCI

# Number of the interface of VLAN n where it is a veth: this and n.
_FIRST = 1 << 16
_8021Q = socket.htons(0x8100)
_ARRIVES = 1  # BPF_F_INGRESS
_DROP = 2  # TC_ACT_SHOT
_AT_ONCE = 8


def has_8021q(holder: int) -> bool:
    """Whether the kernel makes 802.1Q interfaces, tried in a host whose card is there."""
    probe = f"link add link {HOST_INTERFACE} name probe.1 type vlan id 1\nlink del probe.1\n"
    try:
        run(in_host(holder, ["ip", "-batch", "-"]), probe)
    except LabError:
        return False
    return True


def host_lines(
    host: HostOrder, everybody: Sequence[HostOrder], *, mtu: int, segments: int, static: bool, kernel: bool
) -> list[str]:
    """Lines for `ip -batch` that make a host's interfaces, addresses, routes and static neighbours.

    Args:
        host: one that tags.
        everybody: all hosts, in their order.
        mtu: bytes of IP in a frame at most.
        segments: of a TCP that its card takes at once.
        static: whether it knows all addresses beforehand.
        kernel: whether the kernel makes 802.1Q interfaces.
    """
    number = [other.name for other in everybody].index(host.name)
    lines = [f"addr add {host.ip}/32 dev {HOST_INTERFACE}"]
    for place, vlan in enumerate(host.vlans):
        name = vlan_interface(vlan)
        if kernel:
            lines.append(f"link add link {HOST_INTERFACE} name {name} type vlan id {vlan}")
        else:
            far = f"tag{vlan}"
            lines += [
                f"link add {name} index {_FIRST + vlan} address {host.mac} numtxqueues 1 numrxqueues 1 type veth "
                f"peer name {far} numtxqueues 1 numrxqueues 1",
                f"link set {far} addrgenmode none",
                f"link set {far} up",
            ]
        lines += [
            f"link set {name} addrgenmode none",
            f"link set {name} mtu {mtu} gso_max_segs {segments} up",
            f"addr add {vlan_address(place, number, len(everybody))} dev {name}",
        ]
    for other_number, other in enumerate(everybody):
        if other.name == host.name:
            continue
        name = vlan_interface(host.tags[other.ip])
        lines.append(f"route replace {other.ip}/32 dev {name} src {host.ip}")
        if static:
            lines.append(f"neigh replace {other.ip} lladdr {other.mac} dev {name} nud permanent")
            lines += [
                f"neigh replace {vlan_address(place, other_number, len(everybody)).ip} lladdr {other.mac} "
                f"dev {vlan_interface(vlan)} nud permanent"
                for place, vlan in enumerate(host.vlans)
                if vlan in other.vlans
            ]
    return lines


# A reply may come by another interface than the one its request left by.
ANY_INTERFACE = "for one in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$one; done\n"


def tag_by_classifiers(hosts: Sequence[HostOrder], holders: Mapping[str, int]) -> None:
    """Put the classifiers on the interfaces of hosts.

    Raises:
        LabError: the kernel takes no such programs.
    """
    try:
        takes = bpf.load(untagging_program())
    except OSError as error:
        raise LabError(
            f"hosts cannot tag: the kernel has neither 802.1Q interfaces (modprobe 8021q) nor takes classifiers "
            f"({error.strerror}); use an assignment in which switches tag, such as fixed"
        ) from error
    gives: dict[int, int] = {}
    try:
        cards = {host.name: in_network_of(holders[host.name], _card) for host in hosts}
        gives = {card: bpf.load(tagging_program(card)) for card in set(cards.values())}
        with bpf.pinned([takes, *gives.values()]) as (taking, *giving):
            of_card = dict(zip(gives, giving, strict=True))

            def attach(host: HostOrder) -> None:
                lines = [
                    f"qdisc add dev {HOST_INTERFACE} clsact",
                    f"filter add dev {HOST_INTERFACE} ingress pref 1 handle 1 bpf direct-action object-pinned {taking}",
                ]
                for vlan in host.vlans:
                    name, program = vlan_interface(vlan), of_card[cards[host.name]]
                    lines += [
                        f"qdisc add dev {name} clsact",
                        f"filter add dev {name} egress pref 1 handle 1 bpf direct-action object-pinned {program}",
                    ]
                # Not by a program of the host: it does not see where the classifiers are.
                in_network_of(holders[host.name], lambda: run(["tc", "-batch", "-"], "\n".join(lines) + "\n"))

            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(attach, hosts))
    finally:
        for program in (takes, *gives.values()):
            os.close(program)


def _card() -> int:
    return socket.if_nametoindex(HOST_INTERFACE)


def tagging_program(card: int) -> bytes:
    """The classifier of what leaves by an interface of a VLAN: it gets its tag and goes to the card, by its number."""
    p = Assembler()
    p.op(bpf.COPY, 6, 1)
    p.op(bpf.LOAD_32, 3, 6, INTERFACE)
    p.op(bpf.SUBTRACT_32, 3, value=_FIRST)
    p.op(bpf.COPY, 1, 6)
    p.op(bpf.SET, 2, value=_8021Q)
    p.call(bpf.PUSH_VLAN)
    p.jump("drop", bpf.IF_NOT, 0, 0)
    p.op(bpf.SET, 1, value=card)
    p.op(bpf.SET, 2, value=0)
    p.call(bpf.REDIRECT)
    p.exit()
    p.label("drop")
    p.leave(_DROP)
    return p.assemble()


def untagging_program() -> bytes:
    """The classifier of what comes to a card: what has a tag loses it, and arrives at the interface of its VLAN."""
    p = Assembler()
    p.op(bpf.COPY, 6, 1)
    p.op(bpf.LOAD_32, 1, 6, VLAN_PRESENT)
    p.jump("go on", bpf.IF_EQUAL, 1, 0)
    p.op(bpf.LOAD_32, 7, 6, VLAN_TCI)
    p.op(bpf.AND, 7, value=0xFFF)
    p.op(bpf.COPY, 1, 6)
    p.call(bpf.POP_VLAN)
    p.jump("drop", bpf.IF_NOT, 0, 0)
    p.op(bpf.COPY_32, 1, 7)
    p.op(bpf.ADD, 1, value=_FIRST)
    p.op(bpf.SET, 2, value=_ARRIVES)
    p.call(bpf.REDIRECT)
    p.exit()
    p.label("drop")
    p.leave(_DROP)
    p.label("go on")
    p.leave(bpf.GO_ON)
    return p.assemble()

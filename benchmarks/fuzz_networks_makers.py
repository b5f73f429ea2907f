"""Random switches of six makers more, for `make fuzz`; see fuzz_networks_dialects.

A port of all of them has at most one VLAN without a tag, so what it is to do is drawn first and then said in the words
of its maker, in one of the ways that there are. What is not said has the maker's default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.fuzz_networks_dialects import Asked, Drawn
from benchmarks.fuzz_networks_model import Port


@dataclass
class _Wish:
    """What a port is to be.

    Attributes:
        number: of the port.
        trunk: whether it may carry tagged frames.
        native: VLAN without a tag, 0 for none.
        tagged: VLANs with a tag.
        shut: whether it is switched off.
    """

    number: int
    trunk: bool
    native: int
    tagged: set[int]
    shut: bool


def _wish(chance: Random, asked: Asked, number: int) -> _Wish:
    trunk = number in asked.to_switch and not asked.odd(chance, 0.2)
    native = asked.vlan(chance)
    tagged = asked.some(chance) - {native} if trunk else set()
    return _Wish(number, trunk, native, tagged, asked.odd(chance, 0.07))


def _listed(vlans: set[int]) -> str:
    return ",".join(map(str, sorted(vlans)))


def _switchport(
    chance: Random, asked: Asked, wish: _Wish, made: set[int], *, always: bool = False
) -> tuple[list[str], Port]:
    """Lines of `switchport` and what they make."""
    if not wish.trunk:
        said = [] if wish.native == 1 and not always else [f"switchport access vlan {wish.native}"]
        said += ["switchport mode access"] * (chance.random() < 0.5)
        own = {wish.native} & made
        return said, Port(not wish.shut, wish.native if own else 0, own, own)
    allowed = wish.tagged | ({wish.native} if not asked.odd(chance, 0.3) else set())
    said = ["switchport mode trunk"]
    if wish.native != 1:
        said.append(f"switchport trunk native vlan {wish.native}")
    form = chance.randrange(4)
    if form == 0:
        allowed = set(made)
    elif form == 1 or not allowed:
        said.append(f"switchport trunk allowed vlan {_listed(allowed) or 'none'}")
    elif form == 2:
        said += ["switchport trunk allowed vlan none", f"switchport trunk allowed vlan add {_listed(allowed)}"]
    else:
        said += [f"switchport trunk allowed vlan remove {_listed(allowed)}"]
        allowed = set(made) - allowed
    members = allowed & made
    native = {wish.native} & members
    return chance.sample(said, len(said)) if form < 2 else said, Port(
        not wish.shut, wish.native if native else 0, members, native
    )


def _commands(chance: Random, asked: Asked, head: Sequence[str], called: str, *, indent: str, always: bool) -> Drawn:
    """A file of `interface` sections."""
    drawn = Drawn({}, {})
    named = asked.some(chance) | {10}
    made = named | {1}
    lines = [*head, f"vlan {_listed(named)}"]
    for vlan in sorted(named - {1}):
        if asked.odd(chance, 0.1):
            lines += [f"vlan {vlan}", f"{indent}state suspend"]
            made.discard(vlan)
    for number in asked.ports:
        wish = _wish(chance, asked, number)
        said, port = _switchport(chance, asked, wish, made, always=always)
        said += ["shutdown"] * wish.shut
        said += [chance.choice(("description to 10", "mtu 9000", "spanning-tree portfast"[:0] or "load-interval 5"))]
        if chance.random() < 0.02:
            said.append(chance.choice(("frobnicate 3", "switchport trunk group x", "ip access-group 7 in")))
            drawn.unknown = True
        lines += [f"interface {called.format(number)}", *(f"{indent}{line}" for line in said), "!"]
        drawn.ports[number] = port
    for host, mac, number in asked.entries:
        vlan = asked.vlan(chance)
        drawn.entries[vlan, host] = number
        digits = mac.replace(":", "")
        dotted = f"{digits[:4]}.{digits[4:8]}.{digits[8:]}"
        lines.append(f"mac address-table static {dotted} vlan {vlan} interface {called.format(number)}")
    lines += [
        f"interface {called.format(99)}",
        f"{indent}shutdown",
        "interface Vlan10",
        f"{indent}ip address 1.2.3.4/8",
    ]
    drawn.files[f"{asked.name}.txt"] = "\n".join([*lines, ""])
    return drawn


def eos(chance: Random, asked: Asked) -> Drawn:
    """Arista's running configuration."""
    return _commands(
        chance, asked, ["! device: x (DCS-7050, EOS-4.28)", "spanning-tree mode none"], "Ethernet{}", indent="   ",
        always=False,
    )  # fmt: skip


def nxos(chance: Random, asked: Asked) -> Drawn:
    """A Nexus' running configuration."""
    head = ["!Command: show running-config", "feature lacp", "system default switchport", "spanning-tree mode none"]
    return _commands(chance, asked, head, "Ethernet1/{}", indent="  ", always=False)


def procurve(chance: Random, asked: Asked) -> Drawn:
    """A ProCurve's running configuration: members by VLAN."""
    drawn = Drawn({}, {})
    wishes = [_wish(chance, asked, number) for number in asked.ports]
    lines = ["; J9625A Configuration Editor; Created on release #RA.16.04", 'hostname "x"']
    for wish in wishes:
        bare = asked.odd(chance, 0.1)  # in no VLAN without a tag
        native = 0 if bare else wish.native
        drawn.ports[wish.number] = Port(
            not wish.shut, native, wish.tagged | ({native} if native else set()), {native} if native else set()
        )
        lines += [f"interface {wish.number}", '   name "x"', *(["   disable"] * wish.shut), "   exit"]
    for vlan in (1, 10, 20, 30):
        bare_of = [n for n, port in drawn.ports.items() if port.untagged == {vlan}]
        gone = [n for n, port in drawn.ports.items() if vlan == 1 and port.untagged != {1}]
        tagged = [n for n, port in drawn.ports.items() if vlan in port.members - port.untagged]
        lines += [f"vlan {vlan}", '   name "x"']
        lines += [f"   no untagged {','.join(map(str, gone))}"] * bool(gone)
        lines += [f"   untagged {','.join(map(str, bare_of))}"] * bool(bare_of and (vlan > 1 or chance.random() < 0.5))
        lines += [f"   tagged {','.join(map(str, tagged))}"] * bool(tagged)
        if chance.random() < 0.02:
            lines.append("   forbid 4")
            drawn.unknown = True
        lines.append("   exit")
    lines += ["interface 99", "   exit"]
    drawn.files[f"{asked.name}.txt"] = "\n".join([*lines, ""])
    return drawn


def junos(chance: Random, asked: Asked) -> Drawn:
    """A Juniper EX: in braces or as lines of set."""
    drawn = Drawn({}, {})
    named = asked.some(chance) | {10}
    made = named | {1}
    tree: list[str] = []
    for vlan in sorted(named - {1}):
        tree.append(f"vlans v{vlan} vlan-id {vlan}")
    tree.append("interfaces irb unit 10 family inet address 10.0.0.1/8")
    for number in [*asked.ports, 99]:
        here = f"interfaces ge-0/0/{number}"
        unit = f"{here} unit 0 family ethernet-switching"
        wish = _wish(chance, asked, number)
        if not wish.trunk:
            inside = wish.native in made
            native = wish.native if inside else 1
            said = [unit] if native == 1 else [f"{unit} vlan members {chance.choice(('v', ''))}{native}"]
            port = Port(not wish.shut, native, {native}, {native})
        else:
            members = (wish.tagged | {wish.native}) & made
            said = [f"{unit} interface-mode trunk"]
            if members == made and chance.random() < 0.5:
                said.append(f"{unit} vlan members all")
            else:
                said += [
                    f"{unit} vlan members {f'v{one}' if one > 1 and chance.random() < 0.5 else one}" for one in members
                ]
            bare = {wish.native} & members if chance.random() < 0.8 else set()
            said += [f"{here} native-vlan-id {one}" for one in bare]
            port = Port(not wish.shut, max(bare, default=0), members, bare)
        said += [f"{here} disable"] * wish.shut
        if number != 99:
            drawn.ports[number] = port
            if chance.random() < 0.02:
                said.append(f"{unit} filter input x")
                drawn.unknown = True
        tree += said
    braces = chance.random() < 0.5
    text = "".join(f"{_braced(line.split(' '))}\n" for line in tree) if braces else "".join(f"set {x}\n" for x in tree)
    drawn.files[f"{asked.name}.conf"] = text
    return drawn


def _braced(words: list[str]) -> str:
    return f"{words[0]} {{\n{_braced(words[1:])}\n}}" if words[0] in ("interfaces", "vlans") else f"{' '.join(words)};"


def mikrotik(chance: Random, asked: Asked) -> Drawn:
    """RouterOS's export."""
    drawn = Drawn({}, {})
    lines = ["# by RouterOS 7.12", "/interface bridge", "add name=br protocol-mode=none \\", "    vlan-filtering=yes"]
    lines += ["/interface bridge port"]
    table: dict[int, list[str]] = {}
    for number in asked.ports:
        wish = _wish(chance, asked, number)
        said = [f"interface=ether{number}"] + [f"pvid={wish.native}"] * (wish.native > 1)
        only = wish.trunk and asked.odd(chance, 0.2)
        own = set() if only else {wish.native}
        said += ["frame-types=admit-only-vlan-tagged"] * only
        for vlan in wish.tagged:
            table.setdefault(vlan, []).append(f"ether{number}")
        stops = set()
        if asked.odd(chance, 0.05):
            said.append("broadcast-flood=no")
            stops.add("broadcast")
        if asked.odd(chance, 0.05):
            said.append("unknown-unicast-flood=no")
            stops.add("unknown unicast")
        filters = not asked.odd(chance, 0.05)
        said += ["ingress-filtering=no"] * (not filters)
        said += ["disabled=yes"] * wish.shut
        if chance.random() < 0.02:
            said.append("tag-stacking=yes")
            drawn.unknown = True
        lines.append(f"add bridge=br {' '.join(said)}")
        drawn.ports[number] = Port(
            not wish.shut, max(own, default=0), wish.tagged | own, own, filters=filters, stops=stops
        )
    lines += ["/interface bridge vlan"]
    lines += [f"add bridge=br tagged=br,{','.join(ports)} vlan-ids={vlan}" for vlan, ports in sorted(table.items())]
    if asked.entries:
        lines.append("/interface bridge host")
    for host, mac, number in asked.entries:
        vlan = asked.vlan(chance)
        drawn.entries[vlan, host] = number
        lines.append(f"add bridge=br interface=ether{number} mac-address={mac.upper()} vid={vlan}")
    drawn.files[f"{asked.name}.rsc"] = "\n".join([*lines, ""])
    return drawn


def openwrt(chance: Random, asked: Asked) -> Drawn:
    """/etc/config/network."""
    drawn = Drawn({}, {})
    lines = ["config device", "\toption name 'br-lan'", "\toption type 'bridge'"]
    lines += [f"\tlist ports 'lan{number}'" for number in asked.ports]
    table: dict[int, list[str]] = {1: []}
    for number in asked.ports:
        wish = _wish(chance, asked, number)
        table.setdefault(wish.native, []).append(f"lan{number}:u*" if chance.random() < 0.5 else f"lan{number}:*")
        for vlan in wish.tagged:
            table.setdefault(vlan, []).append(f"lan{number}:t")
        drawn.ports[number] = Port(not wish.shut, wish.native, wish.tagged | {wish.native}, {wish.native})
        if wish.shut:
            lines += ["config device", f"\toption name 'lan{number}'", "\toption enabled '0'"]
    for vlan, ports in sorted(table.items()):
        lines += ["", "config bridge-vlan", "\toption device 'br-lan'", f"\toption vlan '{vlan}'"]
        lines += [f"\tlist ports '{port}'" for port in ports]
        if chance.random() < 0.01:
            lines.append("\toption frobnicate '1'")
            drawn.unknown = True
    drawn.files[f"{asked.name}.conf"] = "\n".join([*lines, ""])
    return drawn


# Dialect → what draws a switch, and how its ports are called.
MAKERS: dict[str, tuple[Callable[[Random, Asked], Drawn], tuple[str, ...]]] = {
    "arista-eos": (eos, ("Ethernet{}", "Et{}", "ethernet{}")),
    "cisco-nxos": (nxos, ("Ethernet1/{}", "Eth1/{}")),
    "procurve": (procurve, ("{}",)),
    "junos": (junos, ("ge-0/0/{}", "ge-0/0/{}.0")),
    "mikrotik": (mikrotik, ("ether{}",)),
    "openwrt": (openwrt, ("lan{}",)),
}

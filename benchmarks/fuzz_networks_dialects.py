"""Random switches in the forms of their makers, for `make fuzz`: what is said of each port, left out, or not known.

Each function draws the files of one switch and says what its ports do then, from the makers' rules and not from the
readers that are judged. Of VLANs only a few are looked at; the last of them is one that no file names by its number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks.fuzz_networks_model import Port

VLANS = (1, 10, 20, 30, 77)
_NAMED = (1, 10, 20, 30)


@dataclass
class Drawn:
    """One switch.

    Attributes:
        files: name → text, without the switch's name in front of those of a folder.
        ports: number → what it does, before any negotiation.
        entries: (VLAN, host) → port.
        dtp: number → how it negotiates, and what it is as a trunk.
        unknown: whether something is said that no reader can know.
        unsaid: ports that are not in the files; they have their defaults.
    """

    files: dict[str, str]
    ports: dict[int, Port]
    entries: dict[tuple[int, str], int] = field(default_factory=dict)
    dtp: dict[int, tuple[str, Port]] = field(default_factory=dict)
    unknown: bool = False
    unsaid: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Asked:
    """What a switch is drawn for.

    Attributes:
        name: of the switch.
        ports: numbers of those that lead somewhere.
        to_switch: those of them that lead to a switch.
        entries: (host, its address, port) to be registered.
        home: VLAN of most hosts of a calm network, 0 of one in which anything goes.
    """

    name: str
    ports: Sequence[int]
    to_switch: Sequence[int]
    entries: Sequence[tuple[str, str, int]]
    home: int

    def odd(self, chance: Random, share: float) -> bool:
        """Whether something is otherwise than usual; rarely so in a calm network."""
        return chance.random() < (share / 12 if self.home else share)

    def vlan(self, chance: Random) -> int:
        """VLAN of a host."""
        return self.home if self.home and not self.odd(chance, 0.5) else chance.choice(_NAMED)

    def some(self, chance: Random, of: Sequence[int] = _NAMED) -> set[int]:
        """VLANs of a trunk, or that are made."""
        return set(of) if self.home and not self.odd(chance, 0.5) else _some(chance, of)

    def pick(self, chance: Random, usual: Any, others: Sequence[Any]) -> Any:
        """Something usual in a calm network, anything in others."""
        return usual if self.home and not self.odd(chance, 0.6) else chance.choice(others)


def _some(chance: Random, of: Sequence[int] = _NAMED) -> set[int]:
    return {vlan for vlan in of if chance.random() < 0.6}


def _listed(vlans: set[int]) -> str:
    return ",".join(map(str, sorted(vlans)))


# ------------------------------------------------------------------------------------------------------- Cisco IOS


def _allowed(chance: Random, asked: Asked) -> tuple[list[str], set[int]]:
    """Lines of a trunk's VLANs, and which of those that are looked at they leave."""
    some = asked.some(chance) or {10}
    forms: list[tuple[list[str], set[int]]] = [
        ([], set(VLANS)),
        ([f"allowed vlan {_listed(some)}"], some),
        (["allowed vlan 1-4094"], set(VLANS)),
        (["allowed vlan none"], set()),
        (["allowed vlan none", f"allowed vlan add {_listed(some)}"], some),
        ([f"allowed vlan remove {_listed(some)}"], set(VLANS) - some),
        ([f"allowed vlan except {_listed(some)}"], set(VLANS) - some),
        ([f"allowed vlan {_listed(some)}", "no allowed vlan"], set(VLANS)),
        ([f"allowed vlan add {_listed(some)}"], set(VLANS)),
    ]
    lines, vlans = asked.pick(chance, chance.choice(forms[:3]), forms)
    said = [f"{'no ' * line.startswith('no ')}switchport trunk {line.removeprefix('no ')}" for line in lines]
    return said, vlans


_HARMLESS = ("description to 10", "switchport port-security", "spanning-tree portfast", "speed 100", "no cdp enable")
_UNKNOWN = ("switchport protected", "ip access-group 7 in", "switchport mode dot1q-tunnel", "frobnicate 3", "mab")


def cisco_ios(chance: Random, asked: Asked) -> Drawn:
    """A Catalyst's running configuration."""
    lines, listed = ["no spanning-tree vlan 1-4094"], chance.random() < 0.8
    made = set(VLANS)
    if listed:
        named = asked.some(chance) | {10}
        made = named | {1}
        lines.append(f"vlan {_listed(named)}")
        for vlan in sorted(named - {1}):
            if asked.odd(chance, 0.1):
                lines += [f"vlan {vlan}", chance.choice((" state suspend", " shutdown"))]
                made.discard(vlan)
    tags_native = asked.odd(chance, 0.1)
    lines += ["vlan dot1q tag native"] * tags_native
    drawn = Drawn({}, {})
    for number in asked.ports:
        said, port = _ios_port(chance, asked, made, number, drawn, tags_native=tags_native)
        if said is None:
            drawn.unsaid.add(number)
        else:
            lines += [f"interface GigabitEthernet1/0/{number}", *(f" {line}" for line in said), "!"]
        drawn.ports[number] = port
    for host, mac, number in asked.entries:
        vlan = asked.vlan(chance)
        drawn.entries[vlan, host] = number
        dotted = f"{mac[0:2]}{mac[3:5]}.{mac[6:8]}{mac[9:11]}.{mac[12:14]}{mac[15:17]}"
        lines.append(f"mac address-table static {dotted} vlan {vlan} interface GigabitEthernet1/0/{number}")
    # A port that leads nowhere, so that the file has one.
    lines += ["interface AppGigabitEthernet1/0/1", "!", "interface Vlan1", " ip address 10.0.0.1 255.0.0.0", "!", "end"]
    drawn.files[f"{asked.name}.txt"] = "\n".join([*lines, ""])
    return drawn


def _ios_port(
    chance: Random, asked: Asked, made: set[int], number: int, drawn: Drawn, *, tags_native: bool
) -> tuple[list[str] | None, Port]:
    """Lines of a port, None where the file does not have it; and what it does as an access port or trunk."""
    said: list[str] = []
    trunk = number in asked.to_switch
    modes = ("trunk", "trunk", "access", "dynamic auto", "dynamic desirable") if trunk else ("access",) * 3 + ("trunk",)
    mode = asked.pick(chance, chance.choice(("trunk", None) if trunk else ("access", None)), (None, *modes))
    access, native, voice = 1, 1, 0
    if (asked.home > 1 and not trunk) or chance.random() < 0.6:
        access = asked.vlan(chance)
        said.append(f"switchport access vlan {access}")
        if asked.odd(chance, 0.05):
            access = 1
            said.append("no switchport access vlan")
    if trunk and asked.odd(chance, 0.4):
        native = chance.choice(_NAMED)
        said.append(f"switchport trunk native vlan {native}")
    if asked.odd(chance, 0.15):
        voice = chance.choice(_NAMED)
        said.append(f"switchport voice vlan {voice}")
    more, allowed = _allowed(chance, asked) if trunk else ([], set(VLANS))
    said += more
    if mode is not None:
        said.insert(chance.randint(0, len(said)), f"switchport mode {mode}")
    quiet = chance.random() < 0.2 and mode in ("trunk", "access")
    said += ["switchport nonegotiate"] * quiet
    stops = {"unknown unicast"} if asked.odd(chance, 0.1) else set()
    said += ["switchport block unicast"] * bool(stops)
    said += [chance.choice(_HARMLESS)] * (chance.random() < 0.3)
    up = not asked.odd(chance, 0.07)
    said += [chance.choice(("shutdown", "no switchport"))] * (not up)
    if up and chance.random() < 0.015:
        drawn.unknown = True
        said.append(chance.choice(_UNKNOWN))
    if not said and chance.random() < 0.7 and not drawn.unknown:
        return None, _ios_settings(chance, drawn, number, None, made, Port(True, 1, {1}, {1}), set(VLANS), 1,
                                   tags_native=tags_native, quiet=False)  # fmt: skip
    own = {access} & made
    plain = Port(up, access if own else 0, own | ({voice} & made if voice else set()), own, stops=stops)
    return said, _ios_settings(chance, drawn, number, mode, made, plain, allowed, native,
                               tags_native=tags_native, quiet=quiet)  # fmt: skip


def _ios_settings(
    chance: Random, drawn: Drawn, number: int, mode: str | None, made: set[int], plain: Port, allowed: set[int],
    native: int, *, tags_native: bool, quiet: bool,
) -> Port:  # fmt: skip
    del chance
    members = allowed & made
    bare = set() if tags_native else members & {native}
    trunk = Port(plain.up, native if bare else 0, members, bare, stops=plain.stops)
    if mode != "access" and not quiet and plain.up:
        drawn.dtp[number] = ((mode or "dynamic auto").removeprefix("dynamic "), trunk)
    return trunk if mode == "trunk" else plain


# ----------------------------------------------------------------------------------------------------- PowerConnect


def _powerconnect(chance: Random, asked: Asked, called: Callable[[int], str]) -> Drawn:
    lines = ["configure"]
    made = {1}
    if chance.random() < 0.9:
        named = asked.some(chance) | {10}
        made |= named
        lines += ["vlan database", f"vlan {_listed(named)}", "exit"]
    lines += ["no spanning-tree", "interface range ethernet " + called(45), "shutdown", "exit"]
    drawn = Drawn({}, {})
    for number in asked.ports:
        said, port = _powerconnect_port(chance, asked, made, trunk=number in asked.to_switch)
        if port.up and chance.random() < 0.01:
            drawn.unknown = True
            said.append(chance.choice(("switchport protected", "service-acl input x", "frobnicate")))
        if said or chance.random() < 0.3:
            lines += [f"interface ethernet {called(number)}", *said, "exit"]
        drawn.ports[number] = port
    for host, mac, number in asked.entries:
        vlan = asked.vlan(chance)
        drawn.entries[vlan, host] = number
        lines += [f"interface vlan {vlan}", f"bridge address {mac} ethernet {called(number)} permanent", "exit"]
    drawn.files[f"{asked.name}.txt"] = "\n".join([*lines, "exit", ""])
    return drawn


def _powerconnect_port(chance: Random, asked: Asked, made: set[int], *, trunk: bool) -> tuple[list[str], Port]:
    modes = (None, "trunk", "general", "general") if trunk else (None, "access", "access", "general")
    mode = asked.pick(chance, chance.choice(modes[1:3]), modes)
    said = [f"switchport mode {mode}"] if mode else []
    up = not asked.odd(chance, 0.07)
    if mode == "general":
        tagged, bare = asked.some(chance, sorted(made)), set() if asked.home else _some(chance, sorted(made))
        bare -= tagged
        drops_1 = chance.random() < (0.1 if asked.home else 0.5)
        said += [f"switchport general allowed vlan add {_listed(tagged)} tagged"] * bool(tagged)
        said += [f"switchport general allowed vlan add {_listed(bare)}{chance.choice(('', ' untagged'))}"] * bool(bare)
        said += ["switchport general allowed vlan remove 1"] * drops_1
        bare = (bare | ({1} - tagged)) - ({1} if drops_1 else set())
        tagged -= {1} if drops_1 else set()
        pvid = 1
        if asked.odd(chance, 0.6):
            pvid = chance.choice(_NAMED)
            said.append(f"switchport general pvid {pvid}")
        only = asked.odd(chance, 0.2)
        said += ["switchport general acceptable-frame-type tagged-only"] * only
        filters = not asked.odd(chance, 0.1)
        said += ["switchport general ingress-filtering disable"] * (not filters)
        port = Port(up, 0 if only else pvid, tagged | bare, bare, filters=filters)
    elif mode == "trunk":
        allowed = asked.some(chance) or {10}
        said.append(f"switchport trunk allowed vlan add {_listed(allowed)}")
        members = allowed & made
        port = Port(up, 1 if 1 in members else 0, members, members & {1})
    else:
        access = asked.vlan(chance)
        said += [f"switchport access vlan {access}"] * (access > 1 or chance.random() < 0.5)
        own = {access} & made
        port = Port(up, access if own else 0, own, own)
    said += ["shutdown"] * (not up)
    said += ["description x"] * (chance.random() < 0.2)
    return said, port


def powerconnect_6200(chance: Random, asked: Asked) -> Drawn:
    """A PowerConnect 62xx's running configuration."""
    return _powerconnect(chance, asked, lambda number: f"1/g{number}")


def powerconnect_5300(chance: Random, asked: Asked) -> Drawn:
    """A PowerConnect 53xx's running configuration."""
    return _powerconnect(chance, asked, lambda number: f"g{number}")


# ------------------------------------------------------------------------------------------------------------ SONiC


def sonic(chance: Random, asked: Asked) -> Drawn:
    """A config_db.json."""
    drawn = Drawn({}, {})
    ports: dict[str, dict[str, str]] = {}
    members: dict[str, dict[str, str]] = {}
    for number in asked.ports:
        status = asked.pick(chance, "up", ("up",) * 8 + ("down", None))
        ports[f"Ethernet{number}"] = {"lanes": "1"} | ({} if status is None else {"admin_status": status})
        bare = {asked.vlan(chance)} if chance.random() < (0.3 if number in asked.to_switch else 0.9) else set()
        if asked.home and number in asked.to_switch and not asked.odd(chance, 0.5):
            bare = set()
        tagged = (asked.some(chance) if number in asked.to_switch else set()) - bare
        members |= {f"Vlan{vlan}|Ethernet{number}": {"tagging_mode": "untagged"} for vlan in bare}
        members |= {f"Vlan{vlan}|Ethernet{number}": {"tagging_mode": "tagged"} for vlan in tagged}
        drawn.ports[number] = Port(status == "up", max(bare, default=0), tagged | bare, bare)
    tables = {"PORT": ports, "VLAN": {f"Vlan{vlan}": {} for vlan in _NAMED}, "VLAN_MEMBER": members}
    drawn.files["config_db.json"] = json.dumps(tables)
    entries = []
    for host, mac, number in asked.entries:
        vlan = asked.vlan(chance)
        drawn.entries[vlan, host] = number
        row = {"port": f"Ethernet{number}", "type": "static"}
        entries.append({f"FDB_TABLE:Vlan{vlan}:{mac.replace(':', '-')}": row, "OP": "SET"})
    if entries:
        drawn.files["fdb.json"] = json.dumps(entries)
    return drawn


# ------------------------------------------------------------------------------------------------------------ Linux


_FLAGS = {"flood": "unknown unicast", "mcast_flood": "multicast", "bcast_flood": "broadcast"}


def _linux_vlans(chance: Random, asked: Asked, *, trunk: bool) -> tuple[set[int], set[int], int]:
    members = asked.some(chance) if trunk else {asked.vlan(chance)}
    bare = members if not trunk else {vlan for vlan in members if asked.odd(chance, 0.3)}
    pvid = chance.choice((0, *sorted(bare)) if trunk else (*sorted(members),))
    return members, bare, pvid


def running(chance: Random, asked: Asked) -> Drawn:
    """What a running bridge shows."""
    drawn = Drawn({}, {})
    old = chance.random() < 0.2
    vlans: dict[str, list[dict[str, Any]]] = {}
    links = []
    for number in asked.ports:
        members, bare, pvid = _linux_vlans(chance, asked, trunk=number in asked.to_switch)
        stops = {flag for flag in _FLAGS if asked.odd(chance, 0.12)}
        state, flags = "forwarding", ["UP", "LOWER_UP"]
        up = not asked.odd(chance, 0.1)
        if not up:
            state, flags = chance.choice((
                ("disabled", ["NO-CARRIER"]), ("blocking", flags), ("listening", flags), ("learning", flags),
                ("forwarding", ["NO-CARRIER", "UP"]), ("disabled", flags),
            ))  # fmt: skip
        link = {"ifname": f"swp{number}", "master": "br0", "state": state, "flags": flags, "learning": True}
        for flag in _FLAGS:
            if flag in stops or chance.random() < 0.8:  # older ones do not print all
                link[flag] = flag not in stops
        if up and chance.random() < 0.01:
            drawn.unknown = True
            link[chance.choice(("isolated", "hairpin", "locked"))] = True
        links.append(link)
        shown = [
            {"vlan": vlan, "flags": ["PVID"] * (vlan == pvid) + ["Egress Untagged"] * (vlan in bare)}
            for vlan in sorted(members)
        ]
        vlans[f"swp{number}"] = shown
        drawn.ports[number] = Port(up, pvid, members, bare, stops={_FLAGS[flag] for flag in stops})
    fdb: list[dict[str, Any]] = []
    for host, mac, number in asked.entries:
        vlan = asked.vlan(chance)
        drawn.entries[vlan, host] = number
        fdb.append({"mac": mac, "ifname": f"swp{number}", "vlan": vlan, "state": "static", "master": "br0"})
    shape: Any = vlans if old else [{"ifname": port, "vlans": of} for port, of in vlans.items()]
    bridge = {"ifname": "br0", "linkinfo": {"info_data": {"vlan_filtering": 1, "stp_state": chance.choice((0, 1))}}}
    texts = {"vlan.json": shape, "link.json": links, "fdb.json": fdb, "bridge.json": [bridge]}
    drawn.files |= {name: json.dumps(value) for name, value in texts.items()}
    return drawn


def script(chance: Random, asked: Asked) -> Drawn:
    """A shell script of iproute2 commands."""
    drawn = Drawn({}, {})
    default = chance.choice((None, 0, 1, 20))
    option = "" if default is None else f" vlan_default_pvid {default}"
    lines = [f"ip link add name br0 type bridge vlan_filtering 1{option}", "ip link set dev br0 up"]
    start = 1 if default is None else default
    for number in asked.ports:
        name = f"swp{number}"
        lines.append(f"ip link set dev {name} master br0")
        members, bare, pvid = ({start}, {start}, start) if start else (set(), set(), 0)
        between = number in asked.to_switch
        for vlan in sorted(asked.some(chance) if between else {asked.vlan(chance)}):
            is_bare = asked.odd(chance, 0.3) if between else not asked.odd(chance, 0.05)
            is_pvid = not between or asked.odd(chance, 0.4)
            words = ["pvid"] * is_pvid + ["untagged"] * is_bare
            lines.append(" ".join([f"bridge vlan add dev {name} vid {vlan}", *chance.sample(words, len(words))]))
            members, bare = members | {vlan}, bare | {vlan} if is_bare else bare - {vlan}
            pvid = vlan if is_pvid else 0 if pvid == vlan else pvid
        stops = {flag for flag in _FLAGS if asked.odd(chance, 0.1)}
        lines += [f"bridge link set dev {name} " + " ".join(f"{flag} off" for flag in sorted(stops))] * bool(stops)
        state = asked.pick(chance, "up", ("up",) * 8 + ("down", None))
        if state is not None:
            lines.append(f"ip link set {'dev ' * (chance.random() < 0.7)}{name} {state}")
        if state == "down" and chance.random() < 0.3:
            state = "up"
            lines.append(f"ip link set dev {name} up")
        drawn.ports[number] = Port(state != "down", pvid, members, bare, stops={_FLAGS[flag] for flag in stops})
    for host, mac, number in asked.entries:
        vlan = asked.vlan(chance)
        drawn.entries[vlan, host] = number
        lines.append(f"bridge fdb add {mac} dev swp{number} master static vlan {vlan}")
    drawn.files[f"{asked.name}.sh"] = "\n".join([*lines, ""])
    return drawn


def networkd(chance: Random, asked: Asked) -> Drawn:
    """Files of systemd-networkd."""
    drawn = Drawn({}, {})
    default = chance.choice((None, "none", "20"))
    text = "[NetDev]\nName=br0\nKind=bridge\n\n[Bridge]\nVLANFiltering=yes\n"
    drawn.files["a.netdev"] = text + (f"DefaultPVID={default}\n" if default else "")
    start = {"none": 0, None: 1}.get(default, 20)
    for number in asked.ports:
        added, bare, pvid = _linux_vlans(chance, asked, trunk=number in asked.to_switch)
        stops = {flag for flag in ("flood", "mcast_flood") if asked.odd(chance, 0.1)}
        down = asked.odd(chance, 0.07)
        lines = [f"[Match]\nName=swp{number}\n"]
        lines += ["[Link]\nActivationPolicy=always-down\n"] * down
        lines += ["[Network]\nBridge=br0\n\n[Bridge]"]
        lines += ["UnicastFlood=no"] * ("flood" in stops) + ["MulticastFlood=no"] * ("mcast_flood" in stops)
        if not down and chance.random() < 0.01:
            drawn.unknown = True
            lines.append(chance.choice(("Isolated=yes", "HairPin=true", "NeighborSuppression=on")))
        for vlan in sorted(added):
            lines += ["\n[BridgeVLAN]", f"VLAN={vlan}"] + [f"EgressUntagged={vlan}"] * (vlan in bare)
        lines += [f"\n[BridgeVLAN]\nPVID={pvid}"] * bool(pvid)
        drawn.files[f"p{number}.network"] = "\n".join([*lines, ""])
        old = {start} if start else set()
        bare = bare | (old - added)
        own = pvid or (0 if start in added else start)
        stopped = {_FLAGS[flag] for flag in stops}
        drawn.ports[number] = Port(not down, own, added | old, bare, stops=stopped)
    return drawn


def ifupdown2(chance: Random, asked: Asked) -> Drawn:
    """An interfaces file."""
    drawn = Drawn({}, {})
    names = [f"swp{number}" for number in asked.ports]
    if asked.ports and chance.random() < 0.3 and list(asked.ports) == list(range(1, max(asked.ports) + 1)):
        names = [chance.choice((f"glob swp1-{max(asked.ports)}", f"glob swp[1-{max(asked.ports)}]"))]
    lines = ["auto br0", "iface br0", "    bridge-vlan-aware yes"]
    lines += [f"    bridge-ports {part}" for part in (names if names and chance.random() < 0.2 else [" ".join(names)])]
    above = asked.some(chance) if chance.random() < 0.3 else set()  # VLANs of the bridge
    lines += [f"    {chance.choice(('bridge-vids', 'bridge-trunk'))} {' '.join(map(str, sorted(above)))}"] * bool(above)
    usual = asked.vlan(chance) if chance.random() < 0.2 else 1
    lines += [*([f"    bridge-pvid {usual}"] if usual > 1 else []), ""]
    for number in asked.ports:
        said = []
        if number not in asked.to_switch and chance.random() < 0.5:
            vlan = asked.vlan(chance)
            said.append(f"bridge-access {vlan}")
            port = Port(True, vlan, {vlan}, {vlan})
        else:
            tagged = asked.some(chance) if number in asked.to_switch else set()
            said += [f"bridge-vids {' '.join(map(str, sorted(tagged)))}"] * bool(tagged)
            tagged = tagged or above
            pvid = usual
            if asked.home > 1 or asked.odd(chance, 0.5):
                pvid = 30 if asked.home > 1 and number in asked.to_switch else asked.vlan(chance)
                said.append(f"bridge-pvid {pvid}")
            if asked.odd(chance, 0.2):
                said.append("bridge-allow-untagged no")
                port = Port(True, 0, tagged, set())
            else:
                port = Port(True, pvid, tagged | {pvid}, {pvid})
        if asked.odd(chance, 0.07):
            said.append("link-down yes")
            port.up = False
        elif chance.random() < 0.02:
            drawn.unknown = True
            said.append(
                chance.choice(("bridge-arp-nd-suppress on", "bridge-frobnicate 7", "post-up bridge vlan del x"))
            )
        lines += [f"auto swp{number}", f"iface swp{number}", *(f"    {line}" for line in said), ""]
        drawn.ports[number] = port
    drawn.files["interfaces"] = "\n".join(lines)
    return drawn


# ----------------------------------------------------------------------------------------------------- Open vSwitch


def open_vswitch(chance: Random, asked: Asked) -> Drawn:
    """What `ovsdb-client --format=json dump` prints, and static entries; its VLAN of untagged frames is 4095 here."""
    drawn = Drawn({}, {})
    ports, interfaces, fdb = [], [], []
    every = {*VLANS, 4095}
    for number in asked.ports:
        usual = chance.choice(("trunk", None) if number in asked.to_switch else ("access", "native-untagged"))
        mode = asked.pick(chance, usual, ("access", None, "trunk", "native-tagged", "native-untagged"))
        tag = asked.vlan(chance) if mode in ("access", "native-tagged", "native-untagged") else 0
        trunks = set() if chance.random() < 0.3 or mode == "access" or (mode is None and tag) else asked.some(chance)
        up = not asked.odd(chance, 0.08)
        uuid = f"{asked.name}-{number}"
        state = {"admin_state": "up", "link_state": "up"}
        if not up:
            state[chance.choice(("admin_state", "link_state"))] = "down"
        protected = up and chance.random() < 0.01
        drawn.unknown = drawn.unknown or protected
        ports.append([["uuid", uuid], f"swp{number}", tag or ["set", []], ["set", sorted(trunks)], mode or ["set", []],
                      ["uuid", f"i{uuid}"], protected, ["map", []], ["map", []]])  # fmt: skip
        interfaces.append([["uuid", f"i{uuid}"], f"swp{number}", "", number, state["admin_state"], state["link_state"]])
        allowed = trunks or every
        if mode == "access":
            port = Port(up, tag, {tag}, {tag})
        elif tag:
            port = Port(up, tag, allowed | {tag}, {tag} if mode == "native-untagged" else set())
        else:
            bare = allowed & {4095}
            port = Port(up, 4095 if bare else 0, allowed, bare)
        drawn.ports[number] = port
    for host, mac, number in asked.entries:
        vlan = asked.vlan(chance)
        drawn.entries[vlan, host] = number
        fdb.append(f"{number:5} {vlan:5}  {mac}  static")
    none: Any = ["set", []]
    bridge = [["uuid", "b"], "br0", ["set", [row[0] for row in ports]], none, none, none, False, False]
    tables: list[tuple[str, list[str], list[Any]]] = [
        ("Bridge", ["_uuid", "name", "ports", "controller", "fail_mode", "flood_vlans", "stp_enable", "rstp_enable"],
         [bridge]),
        ("Port", ["_uuid", "name", "tag", "trunks", "vlan_mode", "interfaces", "protected", "status", "rstp_status"],
         ports),
        ("Interface", ["_uuid", "name", "type", "ofport", "admin_state", "link_state"], interfaces),
    ]  # fmt: skip
    said = [{"caption": f"{name} table", "headings": headings, "data": rows} for name, headings, rows in tables]
    drawn.files["ovsdb.json"] = "\n".join(json.dumps(one) for one in said)
    drawn.files["fdb.txt"] = "\n".join([" port  VLAN  MAC                Age", *fdb, ""])
    return drawn


# Dialect → what draws a switch, and how its ports are called; several spellings where people write several.
DIALECTS: dict[str, tuple[Callable[[Random, Asked], Drawn], tuple[str, ...]]] = {
    "cisco-ios": (cisco_ios, ("GigabitEthernet1/0/{}", "Gi1/0/{}", "gi1/0/{}", "GI 1/0/{}", "gigabitethernet1/0/{}")),
    "powerconnect-6200": (powerconnect_6200, ("1/g{}", "1/G{}")),
    "powerconnect-5300": (powerconnect_5300, ("g{}", "G{}")),
    "sonic": (sonic, ("Ethernet{}", "ethernet{}")),
    "running-bridge": (running, ("swp{}",)),
    "linux-bridge-iproute2": (script, ("swp{}",)),
    "linux-networkd": (networkd, ("swp{}",)),
    "ifupdown2": (ifupdown2, ("swp{}",)),
    "open-vswitch": (open_vswitch, ("swp{}",)),
}

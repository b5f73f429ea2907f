"""Lines of `spanning-tree` as Cisco IOS and NX-OS, Arista EOS and Dell PowerConnect have them alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from testbed.devices.read_lines import LineError, SwitchLines, vlans_of
from testbed.devices.stp_settings import ANY, BRIDGE_PRIORITY, BY_KIND, Protocol
from testbed.devices.vlan_set import VlanSet

_MODES: dict[str, Protocol] = {
    "pvst": "pvst", "rapid-pvst": "pvst", "rpvst": "pvst", "pv": "pvst", "mst": "mstp", "mstp": "mstp", "rstp": "rstp",
    "stp": "rstp",
}  # fmt: skip
# What `root primary` and `root secondary` set, unless a switch has a lower priority already.
_ROOTS = {"primary": 24576, "secondary": 28672}
# First words of lines that change no tree.
SWITCH_PASSED = frozenset({
    "extend", "logging", "loopguard", "backbonefast", "etherchannel", "transmit", "bridge", "forward-time",
    "hello-time", "max-age", "max-hops", "forward", "bpdu", "root-inconsistency", "optimize", "tx-hold-count",
})  # fmt: skip
PORT_PASSED = frozenset({"link-type", "loopguard", "tcnguard", "auto-portfast", "bpdu", "restricted-tcn"})


def number_of(text: str, high: int = 200_000_000) -> int:
    """A number from 0.

    Raises:
        LineError: it is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= high):
        raise LineError(f'"{text}" is not a number from 0 to {high:,}')
    return int(text)


def read_switch_words(switch: SwitchLines, words: Sequence[str], *, negated: bool) -> bool:
    """Carry out what follows `spanning-tree` outside of an interface, and say whether it is understood.

    Raises:
        LineError: a number or a list of VLANs is none.
    """
    readers = (_read_mode, _read_vlan_words, _read_priority, _read_edge_words)
    if any(read(switch, list(words), negated=negated) for read in readers):
        return True
    return words[0] in SWITCH_PASSED


def _read_mode(switch: SwitchLines, words: list[str], *, negated: bool) -> bool:
    default = BY_KIND[switch.kind]
    match words:
        case ["mode", "none"]:
            switch.stp, switch.says_mode = negated, True
        case ["mode", mode] if mode in _MODES and not negated:
            switch.tree, switch.says_mode = replace(switch.tree, protocol=_MODES[mode]), True
        case ["mode", *_] if negated:
            switch.tree, switch.says_mode = replace(switch.tree, protocol=default.protocol), False
        case ["mst", "configuration"]:
            switch.opened = "region"
        case ["mst", ("hello-time" | "forward-time" | "max-age" | "max-hops"), *_]:
            pass
        case ["pathcost", "method", ("long" | "short") as method]:
            long = default.long_costs if negated else method == "long"
            switch.tree = replace(switch.tree, long_costs=long)
        case _:
            return False
    return True


def _read_vlan_words(switch: SwitchLines, words: list[str], *, negated: bool) -> bool:
    if words[:1] not in (["vlan"], ["vlan-id"]) or len(words) < 2:
        return False
    vlans = vlans_of(words[1])
    match words[2:]:
        case []:
            switch.without_stp = switch.without_stp | vlans if negated else switch.without_stp - vlans
            return True
        case ["priority", *value]:
            _set_priority(switch, vlans, value, negated=negated)
        case ["root", role, *_] if role in _ROOTS:
            _set_priority(switch, vlans, [str(_ROOTS[role])], negated=negated)
        case [("hello-time" | "forward-time" | "max-age"), *_]:
            pass
        case _:
            return False
    if not negated:
        switch.without_stp -= vlans
    return True


def _read_priority(switch: SwitchLines, words: list[str], *, negated: bool) -> bool:
    match words:
        case ["root", role, *_] if role in _ROOTS:
            _set_priority(switch, [ANY], [str(_ROOTS[role])], negated=negated)
        case ["priority", *value]:
            _set_priority(switch, [ANY], value, negated=negated)
        case ["mst", trees, "priority", *value] if trees[:1].isdigit():
            _set_priority(switch, _trees_of(trees), value, negated=negated)
        case ["mst", trees, "root", role, *_] if role in _ROOTS and trees[:1].isdigit():
            _set_priority(switch, _trees_of(trees), [str(_ROOTS[role])], negated=negated)
        case _:
            return False
    return True


def _read_edge_words(switch: SwitchLines, words: list[str], *, negated: bool) -> bool:
    """What holds for all edge ports. One that filters by default stops once it hears a BPDU: that changes no tree."""
    match words:
        case ["portfast", "default"] | ["portfast", "edge", "default"] | ["port", "type", "edge", "default"]:
            switch.tree = replace(switch.tree, edges=not negated)
        case [("portfast" | "port" | "edge-port"), *rest] if rest[-2:] == ["bpduguard", "default"]:
            switch.tree = replace(switch.tree, guards_edges=not negated)
        case ["bpdu-protection"]:
            switch.tree = replace(switch.tree, guards_edges=not negated)
        case [("portfast" | "port" | "edge-port"), *rest] if rest[-2:] == ["bpdufilter", "default"]:
            pass
        case ["port", "type", ("network" | "normal"), "default"] | ["portfast", ("network" | "normal"), "default"]:
            pass
        case _:
            return False
    return True


def _trees_of(text: str) -> list[int]:
    """MST instances of `0-2,5`."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = number_of(first, 4094), number_of(last or first, 4094)
        found += range(low, high + 1)
    return found


def _set_priority(switch: SwitchLines, trees: Sequence[int] | VlanSet, value: Sequence[str], *, negated: bool) -> None:
    priority = BRIDGE_PRIORITY if negated or not value else number_of(value[0], 65535)
    switch.tree = replace(switch.tree, priorities={**switch.tree.priorities, **dict.fromkeys(trees, priority)})


def read_region_words(switch: SwitchLines, words: Sequence[str], text: str, *, negated: bool) -> bool:
    """Carry out a line below `spanning-tree mst configuration`, and say whether it is understood."""
    tree = switch.tree
    match list(words):
        case ["name", *_]:
            name = "" if negated else text.split(" ", 1)[-1].strip('"')
            switch.tree = replace(tree, region=(name, tree.region[1]))
        case ["revision", *value]:
            switch.tree = replace(tree, region=(tree.region[0], 0 if negated else number_of(value[0], 65535)))
        case ["instance", number, *_] if negated:
            left = {tree: vlans for tree, vlans in tree.instances.items() if tree != number_of(number, 4094)}
            switch.tree = replace(tree, instances=left)
        case ["instance", number, ("vlan" | "vlans"), *vlans] if vlans:
            add_instance(switch, number_of(number, 4094), vlans_of("".join(vlans)))
        case ["exit"] | ["abort"] | ["show", *_]:
            pass
        case _:
            return False
    return True


def add_instance(switch: SwitchLines, number: int, vlans: VlanSet) -> None:
    """VLANs become those of an MST instance."""
    tree = switch.tree
    others = {one: there - vlans for one, there in tree.instances.items() if one != number}
    own = tree.instances.get(number, VlanSet()) | vlans
    instances = {one: there for one, there in sorted({**others, number: own}.items()) if there and one}
    switch.tree = replace(tree, instances=instances)


def read_port_words(switch: SwitchLines, name: str, words: Sequence[str], *, negated: bool) -> bool:
    """Carry out what follows `spanning-tree` at an interface, and say whether it is understood.

    Raises:
        LineError: a number or a list of VLANs is none.
    """
    said = list(words)
    if said[:1] in (["cost"], ["port-priority"]) or (
        said[:1] in (["vlan"], ["mst"]) and said[2:3] in (["cost"], ["port-priority"])
    ):
        _set_in_trees(switch, name, said, negated=negated)
        return True
    edge = _read_edge(said, negated=negated)
    if edge is not None:
        on, as_access = edge
        switch.tree = switch.tree.with_port(name, edge=on)
        (switch.access_edges.add if as_access else switch.access_edges.discard)(name)
        return True
    tree = switch.tree
    match said:
        case [("bpduguard" | "bpdu-protection"), *how]:
            switch.tree = tree.with_port(name, guards=None if negated else not _is_off(how))
        case [("bpdufilter" | "bpdu-filter"), *how]:
            switch.tree = tree.with_port(name, filters=None if negated else not _is_off(how))
        case ["guard", *how]:
            switch.tree = tree.with_port(name, guards_root=how == ["root"] and not negated)
        case ["disable"] | ["port", "mode"]:
            switch.tree = tree.with_port(name, filters=(said == ["disable"]) != negated)
        case [first, *_] if first in PORT_PASSED:
            pass
        case _:
            return False
    return True


def _read_edge(words: list[str], *, negated: bool) -> tuple[bool | None, bool] | None:
    """Whether a port is an edge port, None for the default, and whether as an access port alone; None for other words.

    `portfast` without more does nothing at a trunk.
    """
    on = None if negated else True
    match words:
        case ["portfast", ("disable" | "network" | "normal")] | ["port", "type", ("network" | "normal")]:
            return False, False
        case ["portfast"] | ["portfast", ("edge" | "auto")] | ["edgeport"]:
            return on, True
        case ["portfast", "trunk"] | ["portfast", "edge", "trunk"] | ["port", "type", "edge", *_]:
            return on, False
        case ["port", "type"] if negated:
            return None, False
        case _:
            return None


def _is_off(how: Sequence[str]) -> bool:
    return bool(how) and how[0].startswith("disable")


def _set_in_trees(switch: SwitchLines, name: str, words: Sequence[str], *, negated: bool) -> None:
    trees: list[int] | VlanSet = [ANY]
    if words[0] in ("vlan", "mst"):
        trees = vlans_of(words[1]) if words[0] == "vlan" else _trees_of(words[1])
        words = words[2:]
    if negated or words[1:] == ["auto"]:
        port = switch.tree.port(name)
        said = {"cost": port.costs, "port-priority": port.priorities}[words[0]]
        left = {tree: value for tree, value in said.items() if tree not in trees}
        if words[0] == "cost":
            switch.tree = switch.tree.with_port(name, costs=left)
        else:
            switch.tree = switch.tree.with_port(name, priorities=left)
        return
    value = number_of(words[1] if len(words) > 1 else "")
    for tree in trees:
        switch.tree = (
            switch.tree.with_port(name, tree, cost=value)
            if words[0] == "cost"
            else switch.tree.with_port(name, tree, priority=value)
        )

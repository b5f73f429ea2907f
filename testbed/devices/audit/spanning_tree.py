"""What the spanning tree protocols of a network block: PVST+ by VLAN; STP, RSTP and MSTP for all VLANs or by instance.

A switch on which the protocol is off passes BPDUs on like other frames, so its ports join what is plugged into them.
Switches of PVST+ and of the others, or whose settings are not read, are not computed together: where they are part of
one circle of cables that is told, and nothing is blocked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

from testbed.devices.audit.tree import Order, Tree, TreeBridge, TreePort, compute_tree, list_orders
from testbed.devices.audit.tree_links import Links, Segments, find_core, gather_links
from testbed.devices.bridge import Bridge, BridgePort, Place
from testbed.devices.port_names import format_ranges
from testbed.devices.stp_settings import StpSettings, cost_by_speed
from testbed.devices.vlan_set import ALL_VLANS, VLAN_0, VlanSet

_EVERY = ALL_VLANS | {VLAN_0}
_MOST_CASES, _MOST_ORDERS = 16, 400


@dataclass(frozen=True, slots=True)
class TreeOfVlans:
    """One tree in words."""

    vlans: VlanSet  # those that it is of
    protocol: str
    roots: tuple[str, ...]  # one for each part of the network
    matters: bool  # whether another tree would carry other frames


@dataclass(frozen=True, slots=True)
class Blocks:
    """What is blocked, in one of the cases that unknown addresses leave."""

    vlans: Mapping[Place, VlanSet] = field(default_factory=dict)  # port → VLANs in which it carries nothing
    trees: tuple[TreeOfVlans, ...] = ()
    words: str = ""  # what makes it this case; empty where there is but one

    def as_object(self) -> dict[str, object]:
        """Roots by VLANs, and blocked ports with the VLANs that they are blocked in."""
        return {
            "case": self.words,
            "trees": [
                {"vlans": format_ranges(tree.vlans & ALL_VLANS), "protocol": tree.protocol, "roots": list(tree.roots),
                 "matters": tree.matters}
                for tree in self.trees
            ],
            "blocked": [
                {"port": ":".join(place), "vlans": format_ranges(vlans & ALL_VLANS)}
                for place, vlans in sorted(self.vlans.items())
            ],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpanningTrees:
    """What the protocols do in a network."""

    cases: tuple[Blocks, ...] = (Blocks(),)  # all that differ
    down: Mapping[Place, str] = field(default_factory=dict)  # port → why the protocol has shut it
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()  # what may decide what is blocked and is not known
    uncomputed: Set[str] = frozenset()  # switches whose blocked ports are not known


@dataclass(slots=True)
class _Instance:
    """One tree to compute."""

    protocol: str
    vlans: VlanSet
    number: int  # VLAN or MST instance that settings are said for
    ports: list[TreePort] = field(default_factory=list)
    bridges: dict[str, TreeBridge] = field(default_factory=dict)
    within: _Instance | None = None  # the tree whose states ports to other MST regions have
    borders: list[Place] = field(default_factory=list)  # these ports
    matters: bool = True


def compute_spanning_trees(bridges: Mapping[str, Bridge], cables: Mapping[Place, Place]) -> SpanningTrees:
    """What is blocked.

    Args:
        bridges: by the name of the switch, as they are configured.
        cables: port → port at the other end, both ways.
    """
    links = gather_links(bridges, cables)
    if not links.computed:
        return SpanningTrees(
            down=links.down, doubts=tuple(links.doubts), notes=tuple(links.notes), unclear=tuple(links.unclear),
            uncomputed=frozenset(links.uncomputed),
        )  # fmt: skip
    unclear = list(links.unclear)
    instances = [*_list_pvst(bridges, links), *_list_common(bridges, links)]
    for instance in instances:
        instance.matters = _does_matter(instance, bridges, links)
        if instance.matters:
            unclear += _list_unknown_costs(instance, links)
            if links.mixed & instance.bridges.keys():
                unclear.append(
                    "switches with another kind of spanning tree protocol are beside those that are computed in "
                    f"{_name_vlans(instance.vlans)}; if one of them is root, what is blocked may differ"
                )
    macs = {name: settings.mac for name, settings in links.computed.items() if settings.mac}
    numbers = {
        (name, port): said.number
        for name, settings in links.computed.items()
        for port, said in settings.ports.items()
        if said.number is not None
    }
    any_order = Order(macs, numbers, fixed=True)
    fixed = {id(one): _compute(one, links, any_order) for one in instances if not one.matters}
    cases: dict[Hashable, Blocks] = {}
    complete = True

    def compute(order: Order) -> Blocks:
        found = dict(fixed)
        for one in instances:
            if one.matters:
                found[id(one)] = _compute(one, links, order)
        return _collect(instances, found, links)

    for count, (order, blocks) in enumerate(list_orders(compute, macs, numbers)):
        key = tuple(sorted((place, vlans.bits) for place, vlans in blocks.vlans.items()))
        if key not in cases and len(cases) < _MOST_CASES:
            cases[key] = replace(blocks, words="; ".join(order.words))
        elif key not in cases or count >= _MOST_ORDERS:
            complete = False
            break
    found = tuple(cases.values())
    if len(found) == 1:
        found = (replace(found[0], words=""),)
    if not complete:
        unclear.append(
            f"which switch is root, or nearer to it, depends on addresses that are not known: of the trees that are "
            f"possible {len(found)} were followed; give priorities (spanning-tree vlan 1 priority 4096), or the "
            "addresses in bridges.csv (switch,mac)"
        )
    return SpanningTrees(
        found, links.down, tuple(links.doubts),
        (*links.notes, *_list_tree_notes(found, bridges, any_order.guessed)), tuple(unclear),
        frozenset(links.uncomputed),
    )  # fmt: skip


def block_ports(bridges: Mapping[str, Bridge], trees: SpanningTrees, blocks: Blocks) -> dict[str, Bridge]:
    """Bridges as they forward."""
    found = dict(bridges)
    changed: dict[str, dict[str, VlanSet]] = defaultdict(dict)
    for (switch, port), vlans in blocks.vlans.items():
        changed[switch][port] = vlans
    for switch, port in trees.down:
        changed[switch].setdefault(port, VlanSet())
    for switch, ports in changed.items():
        bridge = found[switch]
        settings, down = dict(bridge.ports), dict(bridge.reading.down)
        for port, vlans in ports.items():
            said = settings.get(port)
            if said is None:
                continue
            left = _remove_vlans(said, vlans)
            if (switch, port) in trees.down:
                down[port] = trees.down[switch, port]
            elif not left.members:
                down[port] = "is blocked by the spanning tree protocol"
            settings[port] = left
            if port in down:
                del settings[port]
        found[switch] = replace(bridge, ports=settings, reading=replace(bridge.reading, down=down))
    return found


def _remove_vlans(port: BridgePort, vlans: VlanSet) -> BridgePort:
    """A port that takes in and sends nothing of some VLANs."""
    members = VlanSet.from_ids(port.members) - vlans
    return replace(
        port, members=members, untagged=VlanSet.from_ids(port.untagged) - vlans, filters=True,
        pvid=None if port.pvid in vlans else port.pvid,
    )  # fmt: skip


def _list_pvst(bridges: Mapping[str, Bridge], links: Links) -> Iterator[_Instance]:
    """A tree for each set of VLANs that all switches treat alike."""
    for vlans in links.group_vlans():
        vlan = min(vlans)
        instance = _Instance("PVST+", vlans, vlan)
        segments = Segments()
        for one, other in links.cables:
            if links.joins(one, other, vlan):
                segments.join(one, other)
        for name, bridge in bridges.items():
            if not links.runs_pvst_in(name, vlan):
                segments.join(*((name, port) for port in bridge.ports if links.carries((name, port), vlan)))
        _add_ports(instance, segments, links, partial(links.runs_pvst_in, vlan=vlan))
        if instance.ports:
            yield instance


def _list_common(bridges: Mapping[str, Bridge], links: Links) -> Iterator[_Instance]:
    """The common tree, and those of MST instances within their regions."""
    segments = Segments()
    for one, other in links.cables:
        segments.join(one, other)
    runs = {name for name, settings in links.computed.items() if settings.protocol != "pvst"}
    for name, bridge in bridges.items():
        if name not in runs:
            for same in links.list_untagged_groups(bridge):
                segments.join(*((name, port) for port in same))
    own = VlanSet()
    for name in runs:
        for vlans in links.computed[name].instances.values():
            own |= vlans
    common = _Instance("RSTP", _EVERY - own, 0)
    _add_ports(common, segments, links, runs.__contains__)
    if any(links.computed[name].protocol == "mstp" for name in runs):
        common.protocol = "MSTP"
    if not common.ports:
        return
    yield common
    yield from _list_inner(common, segments, links, sorted(runs))


def _list_inner(common: _Instance, segments: Segments, links: Links, runs: Sequence[str]) -> Iterator[_Instance]:
    """Trees of MST instances. A port to another region has the state that it has in the common tree."""
    regions: dict[Hashable, list[str]] = defaultdict(list)
    for name in runs:
        if links.computed[name].instances:
            regions[_region_of(name, links.computed[name])].append(name)
    there: dict[int, set[str]] = defaultdict(set)
    for port in common.ports:
        there[port.segment].add(port.place[0])
    for names in regions.values():
        inside = {port.place for port in common.ports if there[port.segment] <= {*names}}
        for number, vlans in links.computed[names[0]].instances.items():
            instance = _Instance("MSTP", vlans, number, within=common)
            _add_ports(instance, segments, links, names.__contains__)
            own = {port.place for port in common.ports if port.place[0] in names}
            instance.borders = sorted(own - inside)
            instance.ports = [port for port in instance.ports if port.place in inside]
            yield instance


def _add_ports(instance: _Instance, segments: Segments, links: Links, runs: Callable[[str], bool]) -> None:
    """Ports of switches that run the protocol, each with its segment; those of which one segment has two or more."""
    found: dict[int, list[Place]] = defaultdict(list)
    for place, segment in segments.list_places():
        if runs(place[0]) and not links.ignores_bpdus(place):
            found[segment].append(place)
    for segment, places in found.items():
        if len(places) < 2:
            continue
        for place in places:
            name, port = place
            settings = links.computed[name]
            cost = links.cost_of(place, instance.number)
            priority = settings.port_priority_in(port, instance.number)
            instance.ports.append(TreePort(place, segment, cost or cost_by_speed(10_000, long=True), priority))
            instance.bridges.setdefault(
                name, TreeBridge(settings.priority_in(instance.number), _region_of(name, settings))
            )


def _region_of(name: str, settings: StpSettings) -> Hashable:
    if settings.protocol != "mstp":
        return name
    return (*settings.region, frozenset((tree, vlans.bits) for tree, vlans in settings.instances.items()))


def _compute(instance: _Instance, links: Links, order: Order) -> tuple[Tree, frozenset[Place]]:
    """The tree, and what it blocks: also ports that must not lead to the root."""
    guarded = {port.place for port in instance.ports if links.computed[port.place[0]].port(port.place[1]).guards_root}
    ports, shut = instance.ports, set[Place]()
    while True:
        tree = compute_tree(ports, instance.bridges, order)
        wrong = guarded & (tree.blocked | set(tree.root_ports.values())) - shut
        if not wrong:
            return tree, tree.blocked | shut
        shut |= wrong
        ports = [port for port in ports if port.place not in shut]


def _collect(
    instances: Sequence[_Instance], found: Mapping[int, tuple[Tree, frozenset[Place]]], links: Links
) -> Blocks:
    vlans: dict[Place, VlanSet] = dict(links.inconsistent)
    trees = []
    for one in instances:
        tree, blocked = found[id(one)]
        of_common = found[id(one.within)][1] if one.within is not None else frozenset()
        for place in (*blocked, *(place for place in one.borders if place in of_common)):
            vlans[place] = vlans.get(place, VlanSet()) | one.vlans
        trees.append(TreeOfVlans(one.vlans, one.protocol, tuple(sorted(set(tree.roots.values()))), one.matters))
    return Blocks(vlans, tuple(trees))


def _does_matter(instance: _Instance, bridges: Mapping[str, Bridge], links: Links) -> bool:
    """Whether two trees of an instance could carry different frames.

    They cannot where all links of its circles carry the same VLANs alike: then any tree takes every frame everywhere.
    """
    core = find_core([(port.place, port.segment) for port in instance.ports])
    kinds = {links.kind_of(place, instance.vlans) for place in core}
    entries = any(vlan in instance.vlans for name in instance.bridges for vlan, _ in bridges[name].fdb)
    guards = any(links.computed[name].port(port).guards_root for name, port in core)
    return bool(core) and (len(kinds) > 1 or None in kinds or entries or guards)


def _list_unknown_costs(instance: _Instance, links: Links) -> Iterator[str]:
    core = find_core([(port.place, port.segment) for port in instance.ports])
    unknown = sorted(place for place in core if links.cost_of(place, instance.number) is None)
    if unknown:
        names = ", ".join(":".join(place) for place in unknown[:3]) + " …" * (len(unknown) > 3)
        yield (
            f"the path cost of {names} is not known, since nothing tells its speed or its table, and what the "
            f"spanning tree protocol blocks in {_name_vlans(instance.vlans)} may depend on it; say its cost or speed"
        )


def _name_vlans(vlans: VlanSet) -> str:
    real = vlans & ALL_VLANS
    if len(real) > len(ALL_VLANS) // 2:
        return "all VLANs" if len(real) == len(ALL_VLANS) else f"all VLANs but {format_ranges(ALL_VLANS - real)}"
    return f"VLAN{'s' * (len(real) > 1)} {format_ranges(real)}"


def _list_tree_notes(cases: Sequence[Blocks], bridges: Mapping[str, Bridge], guessed: Set[object]) -> Iterator[str]:
    """Who is root, a line for all trees that have the same one."""
    told: dict[tuple[str, tuple[str, ...], bool], VlanSet] = {}
    for tree in cases[0].trees:
        key = (tree.protocol, tree.roots, tree.matters or not guessed & {*tree.roots})
        told[key] = told.get(key, VlanSet()) | tree.vlans
    for (protocol, roots, known), vlans in told.items():
        names = " and ".join(roots[:3]) + (f" and {len(roots) - 3} more" if len(roots) > 3 else "")
        yield f"{protocol} is computed in {_name_vlans(vlans)}: root {names}" + (
            "" if known else " or another with that priority; any tree would carry the same frames"
        )
    if len(cases) > 1:
        yield (
            f"addresses of switches are not known, and {len(cases)} trees are possible; all were followed "
            "(bridges.csv with switch,mac tells addresses)"
        )
    for (switch, port), vlans in sorted(cases[0].vlans.items()):
        said = bridges[switch].ports.get(port)
        if said is not None and VlanSet.from_ids(said.members) - vlans:
            yield f"{switch} {port} is blocked in {_name_vlans(vlans)} by the spanning tree protocol"

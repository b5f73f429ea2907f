"""VLANs for what is alive of a fabric, and backup VLANs beside them, in the numbers of the whole fabric."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Bools, Ints, Routes, Topology, Violation, VlanPlan
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.channel_lookup import host_switches, leaving_channels
from testbed.fabric.routing.relation import Conflict, as_source_trees
from testbed.fabric.topologies.faults import find_surviving_part
from testbed.fabric.transition import successor
from testbed.fabric.verify import verify
from testbed.fabric.vlans.fixed import LAST_VLAN_ID, FixedOptions, assign_fixed
from testbed.planning.failover.backup_trees import backup_trees
from testbed.planning.failover.failed_elements import FailedElements, failed_elements, find_islands

_GRIDS = ("mesh", "torus")


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What switches should have while some things are dead."""

    routes: Routes  # paths between all hosts that are connected, one tree a source
    vlans: VlanPlan  # the VLANs that carry them
    backups: VlanPlan  # spanning trees, a VLAN each; no host has one as PVID until something dies
    dead: Bools  # (L,) links that they all do without
    routing: str  # the routing that made the paths


def whole_tables(topology: Topology, routes: Routes, vlans: VlanPlan, routing: str) -> Tables:
    """The tables of a plan of the whole fabric, with backups.

    Raises:
        InputError: the paths of a source are no tree, or there are too few VLAN identifiers for the backups.
    """
    trees = as_source_trees(topology, routes)
    if isinstance(trees, Conflict):
        raise InputError.one("routing", trees.sentence(topology))
    dead = np.zeros(topology.link_count, dtype=bool)
    return Tables(trees, vlans, _backups(topology, dead, (vlans,)), dead, routing)


def recovered_tables(
    topology: Topology, whole: Tables, now: Tables, failed: FailedElements, ways: Routings, taken: Collection[int] = ()
) -> Tables:
    """Tables for what is alive, which can be installed beside those there are now.

    The routing of the whole fabric is tried first, then others that take a damaged one; each part of a divided fabric
    is routed by itself and its proof is required.

    `whole` comes back when nothing is dead; `now` is installed; VLAN identifiers `taken` may not be used.

    Raises:
        InputError: too few VLAN identifiers.
    """
    if not failed.links.any():
        return whole
    refusals = []
    for name, route in ways:
        try:
            routes = _routes_of_parts(topology, failed.links, route)
            vlans = assign_fixed(topology, routes, FixedOptions(first_vlan=int(whole.vlans.vlan_ids.min())))
        except InputError as error:
            refusals.append(error)
            continue
        found = _assign_identifiers(topology, whole, now, (name, routes, vlans, failed.links), taken)
        if not prove(topology, found):
            return found
    raise refusals[0] if refusals else InputError.one("routing", "no routing of what is left could be proved")


Routings = tuple[tuple[str, Callable[[Topology], Routes]], ...]


def routings(topology: Topology, kind: str, options: Any) -> Routings:
    """Routings to try on a damaged fabric, by name, the plan's own first."""
    tried: list[tuple[str, Any]] = [(kind, options)]
    if topology.kind in _GRIDS:
        tried.append(("north_last", ROUTINGS["north_last"].options()))
    tried.append(("sr", ROUTINGS["sr"].options(selection="tree", backup=False)))
    tried.append(("stp", ROUTINGS["stp"].options()))
    return tuple((name, _router(name, chosen)) for name, chosen in tried)


def compile_ahead(topology: Topology, whole: Tables, ways: Routings) -> None:
    """Make tables once by each routing, so that none has to be compiled when something has died."""
    if not topology.link_count:
        return
    failed = failed_elements(topology, [0])
    for way in ways:
        with suppress(InputError):  # a routing that does not take this failed
            recovered_tables(topology, whole, whole, failed, (way,))


def _router(name: str, options: Any) -> Callable[[Topology], Routes]:
    def route(topology: Topology) -> Routes:
        return ROUTINGS[name].route(topology, options)

    return route


def _assign_identifiers(
    topology: Topology, whole: Tables, now: Tables, made: tuple[str, Routes, VlanPlan, Bools], taken: Collection[int]
) -> Tables:
    """Tables with identifiers of their own where they differ from those of now, and from those of the whole fabric.

    So what comes back at the end is exactly what there was in the beginning.
    """
    name, routes, vlans, dead = made
    there = (whole.vlans, now.vlans, whole.backups, now.backups)
    others = np.array(sorted(set(taken) - {int(number) for plan in there for number in plan.vlan_ids}), dtype=np.int32)
    known = replace(
        now.vlans,
        vlan_ids=np.concatenate([now.vlans.vlan_ids, whole.vlans.vlan_ids, others]),
        # All links are no tree, so none of the VLANs is the same.
        tagged_links=np.concatenate(
            [now.vlans.tagged_links, whole.vlans.tagged_links, np.ones((len(others), topology.link_count), dtype=bool)]
        ),
        untagged_hosts=np.concatenate(
            [
                now.vlans.untagged_hosts,
                whole.vlans.untagged_hosts,
                np.ones((len(others), topology.host_count), dtype=bool),
            ]
        ),
    )
    following = successor(known, vlans)
    backups = _backups(topology, dead, (known, following), (whole.backups, now.backups))
    if {int(number) for plan in there[2:] for number in plan.vlan_ids} & set(following.vlan_ids.tolist()):
        raise _too_many()
    return Tables(routes, following, backups, dead.copy(), name)


def _too_many() -> InputError:
    return InputError.one("assignment", "too few VLAN identifiers are left for backup paths; plan fewer VLANs")


def _backups(
    topology: Topology, dead: Bools, vlans: tuple[VlanPlan, ...], earlier: tuple[VlanPlan, ...] = ()
) -> VlanPlan:
    """Backup trees as VLANs from the highest identifier down; those of earlier ones that stay keep theirs."""
    trees = backup_trees(topology, dead)
    known = {
        tree.tobytes(): number
        for plan in earlier
        for tree, number in zip(plan.tagged_links, plan.vlan_ids.tolist(), strict=True)
    }
    taken = {number for plan in (*vlans, *earlier) for number in plan.vlan_ids.tolist()}
    free = (number for number in range(LAST_VLAN_ID, 0, -1) if number not in taken)
    ids: list[int] = []
    for tree in trees:
        number = known.pop(tree.tobytes(), None)
        number = next(free, None) if number is None else number
        if number is None:
            raise _too_many()
        ids.append(number)
    return VlanPlan(
        vlan_ids=np.array(ids, dtype=np.int32),
        pvid=np.zeros(topology.host_count, dtype=np.int32),
        tagged_links=trees,
        untagged_hosts=np.ones((len(ids), topology.host_count), dtype=bool),
        entry_rule="all",
    )


def _parts(topology: Topology, dead: Bools) -> Iterator[tuple[Topology, Ints, Ints, Ints]]:
    """Each part that has hosts: its topology, and which switches, hosts and links of the whole are its own."""
    island = find_islands(topology, dead)
    for first in np.unique(island[topology.host_switch]).tolist():
        switches = island == first
        links = ~dead & switches[topology.links].all(axis=1) if len(dead) else dead
        # A word makes routings that need a whole fabric say so.
        faults = () if switches.all() and links.all() else ("dead links",)
        part = find_surviving_part(topology, switches, links, faults)
        yield part, _numbers(switches), _numbers(switches[topology.host_switch]), _numbers(links)


def _numbers(chosen: Bools) -> Ints:
    return np.flatnonzero(chosen).astype(np.int32)


def _channels(links: Ints) -> Ints:
    channels: Ints = (2 * links[:, None] + np.arange(2)).reshape(-1).astype(np.int32)
    return channels


def _routes_of_parts(topology: Topology, dead: Bools, route: Callable[[Topology], Routes]) -> Routes:
    """Source trees of all parts, in channels of the whole; -1 where a source reaches nothing."""
    rows: list[Ints] = []
    roots: list[int] = []
    host_tree = np.zeros(topology.host_count, dtype=np.int32)
    for part, switches, hosts, links in _parts(topology, dead):
        trees = as_source_trees(part, route(part) if part.link_count else _route_single_switch(part))
        if isinstance(trees, Conflict):
            raise InputError.one("routing", trees.sentence(part))
        channel = np.append(_channels(links), -1)  # the last one is for -1
        host_tree[hosts] = len(roots) + trees.host_tree
        for root, tree in zip(trees.tree_root.tolist(), trees.tree_channel, strict=True):
            row = np.full(topology.switch_count, -1, dtype=np.int32)
            row[switches] = channel[tree]
            rows.append(row)
            roots.append(int(switches[root]))
    order = np.argsort(roots, kind="stable")
    place = np.argsort(order, kind="stable").astype(np.int32)
    return Routes(
        "source_trees",
        host_switches(topology),
        np.array(rows, dtype=np.int32)[order],
        np.array(roots, dtype=np.int32)[order],
        place[host_tree],
    )


def _route_single_switch(part: Topology) -> Routes:
    """Routes of a switch without links."""
    none = np.full((1, 1), -1, dtype=np.int32)
    zeros = np.zeros(part.host_count, dtype=np.int32)
    return Routes("source_trees", np.zeros(1, dtype=np.int32), none, np.zeros(1, dtype=np.int32), zeros)


# ---------------------------------------------------------------------------------------------------------- proof


def prove(topology: Topology, tables: Tables) -> list[Violation]:
    """What does not hold of the tables: of their VLANs and paths, and of each backup VLAN by itself.

    Every part is proved by itself: all pairs of its hosts on the paths of the routes, no loop, no cycle of channels.
    What no VLAN's links lead to cannot be reached either way.
    """
    found = [
        Violation("dead link", f"a VLAN takes {topology.channel_name(2 * link).replace('→', '–')}, which is dead")
        for plan in (tables.vlans, tables.backups)
        for link in np.flatnonzero(plan.tagged_links[:, tables.dead].any(axis=0)).tolist()
    ]
    for part, switches, hosts, links in _parts(topology, tables.dead):
        routes = _restricted(topology, tables.routes, switches, hosts, links)
        found += verify(part, routes, _vlans_of(tables.vlans, hosts, links), None)
        for backup in range(tables.backups.vlan_count):
            on_backup = replace(tables.backups, pvid=np.full_like(tables.backups.pvid, backup))
            vlans = _vlans_of(on_backup, hosts, links)
            found += verify(part, tree_routes(part, vlans.tagged_links[0]), vlans, None)
    return found


def _restricted(topology: Topology, routes: Routes, switches: Ints, hosts: Ints, links: Ints) -> Routes:
    """Source trees of a part, in its own numbers."""
    channel = np.full(len(topology.channel_source) + 1, -1, dtype=np.int32)
    channel[_channels(links)] = np.arange(2 * len(links))
    number = np.full(topology.switch_count, -1, dtype=np.int32)
    number[switches] = np.arange(len(switches))
    rows = np.unique(routes.host_tree[hosts])
    return Routes(
        "source_trees",
        np.unique(number[topology.host_switch[hosts]]),
        channel[routes.tree_channel[np.ix_(rows, switches)]],
        number[routes.tree_root[rows]],
        np.searchsorted(rows, routes.host_tree[hosts]).astype(np.int32),
    )


def _vlans_of(plan: VlanPlan, hosts: Ints, links: Ints) -> VlanPlan:
    """The VLANs that a part's hosts send in, in its own numbers."""
    used = np.unique(plan.pvid[hosts])
    return replace(
        plan,
        vlan_ids=plan.vlan_ids[used],
        pvid=np.searchsorted(used, plan.pvid[hosts]).astype(np.int32),
        tagged_links=plan.tagged_links[np.ix_(used, links)],
        untagged_hosts=plan.untagged_hosts[np.ix_(used, hosts)],
    )


def tree_routes(topology: Topology, tree: Bools) -> Routes:
    """The paths of all sources along one tree (L,); -1 where it does not lead."""
    from testbed.fabric.kernels.vlans import spread

    start, leaving = leaving_channels(topology)
    roots = host_switches(topology)
    rows = np.full((len(roots), topology.switch_count), -1, dtype=np.int32)
    order = np.empty(topology.switch_count, dtype=np.int32)
    for row, root in enumerate(roots.tolist()):
        spread(root, tree, start, leaving, topology.channel_target, rows[row], order)
    host_tree = np.searchsorted(roots, topology.host_switch).astype(np.int32)
    return Routes("source_trees", roots, rows, roots, host_tree)

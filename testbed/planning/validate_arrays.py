"""Whether the tables of a plan that was read are tables of a fabric: shapes, types, numbers of things that exist.

Verification and compiled loops take that for granted; of a plan from a file it must be shown first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from testbed.base.model import (
    Bundles,
    HostTaggedPlan,
    LocalPlan,
    Longs,
    NextHops,
    PairTrees,
    Routes,
    Topology,
    VlanPlan,
)

_DTYPES = {"Ints": "int32", "Longs": "int64", "Bools": "bool", "Floats": "float64"}
_MAX_LAYERS = 4096
_MAX_VLAN = 4094
_MAX_ID = 1 << 20

# Of an array: its name, its shape (None = any extent), and the numbers it may hold, the second excluded.
_Check = tuple[str, tuple[int | None, ...], int | None, int | None]


def validate_arrays(topology: Any, routes: Any, vlans: Any, bundles: Any) -> list[str]:
    """What is wrong, one sentence each; nothing else may be done with the plan then."""
    for value, kind, name in (
        (topology, Topology, "topology"), (routes, Routes, "routes"), (vlans, (VlanPlan, LocalPlan), "vlans"),
        (bundles, (Bundles, type(None)), "bundles"),
    ):  # fmt: skip
        if not isinstance(value, kind):
            return [f"its {name} is a {type(value).__name__}"]
    found = list(_of_topology(topology, "topology"))
    if found:
        return found
    found = list(_of_routes(topology, routes))
    found += _of_vlans(topology, vlans) if isinstance(vlans, VlanPlan) else _of_local(topology, routes, vlans)
    if bundles is not None:
        found += _of_bundles(topology, bundles)
    return found


def _arrays(value: Any, place: str, checks: tuple[_Check, ...]) -> Iterator[str]:
    """Every array of a record by the type of its field, and those of `checks` by shape and range."""
    if not dataclasses.is_dataclass(value):
        yield f"{place} is no record"
        return
    for field in dataclasses.fields(value):
        array, dtype = getattr(value, field.name), _DTYPES.get(str(field.type))
        if dtype is not None and (not isinstance(array, np.ndarray) or array.dtype != dtype):
            yield f"{place}.{field.name} is no array of {dtype}"
            return
        if dtype == "float64" and not np.isfinite(array).all():
            yield f"{place}.{field.name} holds a number that is not finite"
            return
    for name, shape, low, high in checks:
        array = getattr(value, name)
        if array.ndim != len(shape) or any(
            wanted not in (None, there) for wanted, there in zip(shape, array.shape, strict=True)
        ):
            wanted = "×".join("any" if extent is None else str(extent) for extent in shape)
            yield f"{place}.{name} has the shape {'×'.join(map(str, array.shape))} and should have {wanted}"
        elif array.size and ((low is not None and array.min() < low) or (high is not None and array.max() >= high)):
            yield f"{place}.{name} holds a number that is not from {low} to {high if high is None else high - 1}"


def _count(value: object, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= high


def _of_topology(topology: Topology, place: str) -> Iterator[str]:
    switches = topology.switch_count
    links: Any = topology.links
    hosts: Any = topology.host_switch
    if not _count(switches, _MAX_ID) or not switches:
        yield f"{place}.switch_count is {switches!r}"
        return
    if not isinstance(links, np.ndarray) or not isinstance(hosts, np.ndarray) or links.ndim != 2:
        yield f"{place} has no links and hosts"
        return
    channels, count = 2 * len(links), hosts.size
    found = list(_arrays(topology, place, (
        ("links", (None, 2), 0, switches), ("plane", (len(links),), 0, _MAX_ID),
        ("host_switch", (count,), 0, switches), ("coordinates", (switches, None), None, None),
        ("levels", (switches,), None, None), ("positions", (switches, 2), None, None),
        ("host_port", (count,), 1, _MAX_ID), ("channel_source", (channels,), 0, switches),
        ("channel_target", (channels,), 0, switches), ("out_port", (channels,), 1, _MAX_ID),
        ("port_count", (switches,), 0, _MAX_ID),
    )))  # fmt: skip
    yield from found
    if found:
        return
    if not count:
        yield f"{place} has no host"
    if (topology.channel_source != links.reshape(-1)).any() or (
        topology.channel_target != links[:, ::-1].reshape(-1)
    ).any():
        yield f"{place}: its channels are not the two directions of its links"
    for names, wanted in ((topology.switch_names, switches), (topology.host_names, count)):
        read: object = names  # from a file, whatever the type says
        texts = [name for name in read if isinstance(name, str)] if isinstance(read, tuple) else []
        if not isinstance(read, tuple) or (read and not len(read) == len(texts) == len(set(texts)) == wanted):
            yield f"{place}: its names are not one for each"
    at = np.concatenate([hosts, topology.channel_source]).astype(np.int64)
    port = np.concatenate([topology.host_port, topology.out_port])
    if len(np.unique(at * _MAX_ID + port)) != len(at):
        yield f"{place}: two cables are in one port"
    if (port > topology.port_count[at]).any():
        yield f"{place}: a port is above the number of its switch's ports"


def _of_routes(topology: Topology, routes: Routes) -> Iterator[str]:
    channels, hosts = len(topology.channel_source), topology.host_count
    if not _count(routes.layers, _MAX_LAYERS) or routes.layers < 1:
        yield f"routes.layers is {routes.layers!r}"
        return
    if routes.relation not in ("source_trees", "destination_trees", "paths"):
        yield f"routes.relation is {routes.relation!r}"
        return
    by_path = routes.relation == "paths"
    if by_path != (routes.paths is not None):
        yield "routes have paths and trees at once, or neither"
        return
    hint: object = routes.trees  # from a file, whatever the type says
    if hint is not None and not isinstance(hint, PairTrees):
        yield f"routes.trees is a {type(hint).__name__}"
        return
    trees = 0 if by_path else len(np.atleast_1d(routes.tree_root))
    checks: tuple[_Check, ...] = (("ends", (None,), 0, topology.switch_count),)
    if not by_path:
        checks += (
            ("tree_channel", (trees, topology.switch_count), -1, channels),
            ("tree_root", (trees,), 0, topology.switch_count),
            ("host_tree", (hosts,), 0, trees),
        )
    found = list(_arrays(routes, "routes", checks))
    if not found and not np.array_equal(routes.ends, np.unique(topology.host_switch)):
        found.append("routes.ends are not the switches that have hosts")
    yield from found
    if found:
        return
    if not by_path:
        yield from _trees(topology, routes)
    hops = routes.layers * channels
    for name, paths in (("paths", routes.paths), ("backup", routes.backup)):
        if paths is not None:
            checks = (("start", (len(routes.ends) ** 2 + 1,), 0, None), ("hop", (None,), 0, hops))
            wrong = list(_arrays(paths, f"routes.{name}", checks))
            yield from wrong or _offsets(paths.start, len(paths.hop), f"routes.{name}.start")
    if routes.allowed is not None:
        checks = (("start", (hops + 1,), 0, None), ("following", (None,), 0, hops), ("entry", (hops,), None, None))
        wrong = list(_arrays(routes.allowed, "routes.allowed", checks))
        yield from wrong or _offsets(routes.allowed.start, len(routes.allowed.following), "routes.allowed.start")
    if routes.choices is not None:
        yield from _of_choices(topology, routes.choices)


def _of_choices(topology: Topology, hops: Any) -> Iterator[str]:
    place, channels = "routes.choices", len(topology.channel_source)
    if not isinstance(hops, NextHops):
        yield f"{place} is a {type(hops).__name__}"
        return
    goals, classes = (len(np.atleast_1d(array)) for array in (hops.goal, hops.class_vlan))
    found = list(_arrays(hops, place, (
        ("goal", (None,), 0, topology.switch_count), ("host", (goals,), -1, topology.host_count),
        ("class_vlan", (None,), 0, _MAX_VLAN + 1), ("class_layer", (classes,), 0, _MAX_LAYERS),
        ("start", (None,), 0, None), ("hop", (None,), 0, classes * channels),
        ("table", (classes * topology.switch_count, goals), -2, max(len(np.atleast_1d(hops.start)) - 1, 0)),
    )))  # fmt: skip
    yield from found or _offsets(hops.start, len(hops.hop), f"{place}.start")
    if found:
        return
    of_set = np.repeat(np.arange(len(hops.start) - 1), np.diff(hops.start))
    leaves = topology.channel_source[hops.hop % max(channels, 1)] if channels else hops.hop
    if (np.diff(hops.start) < 1).any() or (np.diff(leaves)[np.diff(of_set) == 0] != 0).any():
        yield f"{place} has a set that is empty or leaves several switches"
        return
    at = np.arange(len(hops.table)) % topology.switch_count
    state, key = np.nonzero(hops.table >= 0)
    if len(state) and (leaves[hops.start[hops.table[state, key]]] != at[state]).any():
        yield f"{place}.table has a set at another switch than it leaves"


def _offsets(start: Longs, length: int, place: str) -> Iterator[str]:
    if not len(start) or start[0] != 0 or start[-1] != length or (np.diff(start) < 0).any():
        yield f"{place} does not divide what it should"


def _trees(topology: Topology, routes: Routes) -> Iterator[str]:
    """Who follows a tree from any switch to its root must arrive: there is no way round in it."""
    channel = routes.tree_channel
    here, there = topology.channel_target, topology.channel_source
    if routes.relation == "destination_trees":
        here, there = there, here
    if not len(here):
        return
    inside = channel >= 0
    own = np.broadcast_to(np.arange(topology.switch_count, dtype=np.int32), channel.shape)
    if (here[channel[inside]] != own[inside]).any():
        yield "routes.tree_channel names a channel that is not at its switch"
        return
    onward = np.where(inside, there[np.maximum(channel, 0)], own)
    for _ in range(int(topology.switch_count).bit_length()):
        onward = np.take_along_axis(onward, onward, axis=1)
    if inside[np.arange(len(channel))[:, None], onward].any():
        yield "routes.tree_channel goes round in a circle"


def _of_vlans(topology: Topology, vlans: VlanPlan) -> Iterator[str]:
    count, hosts = np.size(vlans.vlan_ids), topology.host_count
    wide = 1 if np.shape(vlans.untagged_hosts)[-1:] == (1,) else hosts
    found = list(_arrays(vlans, "vlans", (
        ("vlan_ids", (count,), 1, 4095), ("pvid", (hosts,), 0, count),
        ("tagged_links", (count, topology.link_count), None, None),
        ("untagged_hosts", (count, wide), None, None),
    )))  # fmt: skip
    if not found and isinstance(vlans, HostTaggedPlan):
        found += _arrays(vlans, "vlans", (
            ("pair_vlan", (hosts, hosts), 0, count), ("tagged_hosts", (count, hosts), None, None),
        ))  # fmt: skip
    yield from found
    if vlans.entry_rule not in ("used", "all", "listed") or (vlans.entry_rule == "listed") != (
        vlans.entries is not None
    ):
        yield f"vlans.entry_rule is {vlans.entry_rule!r}"
    if vlans.entries is not None:
        rows = np.size(vlans.entries.vlan)
        yield from _arrays(vlans.entries, "vlans.entries", (
            ("vlan", (rows,), 0, count), ("switch", (rows,), 0, topology.switch_count), ("host", (rows,), 0, hosts),
            ("port", (rows,), None, None),
        ))  # fmt: skip
    if not found and len(np.unique(vlans.vlan_ids)) != count:
        yield "vlans.vlan_ids has a number twice"


def _of_local(topology: Topology, routes: Routes, vlans: LocalPlan) -> Iterator[str]:
    """The numbers in it are checked by verification, but for ports."""
    del routes
    if vlans.kind not in ("renamed", "static", "openflow", "model"):
        yield f"vlans.kind is {vlans.kind!r}"
    ports = int(topology.port_count.max(initial=0)) + 1
    yield from _arrays(vlans, "vlans", (
        ("member_port", (None,), 1, ports), ("host_key", (topology.host_count,), 0, topology.host_count),
    ))  # fmt: skip
    floods: Any = vlans.flood_links
    if floods is not None and (not isinstance(floods, np.ndarray) or floods.dtype != np.bool_):
        yield "vlans.flood_links is no array of bool"


def _of_bundles(topology: Topology, bundles: Bundles) -> Iterator[str]:
    if not isinstance(bundles.wiring, Topology):
        yield "bundles.wiring is no topology"
        return
    wiring = list(_of_topology(bundles.wiring, "bundles.wiring"))
    yield from wiring
    if wiring:
        return
    found = list(_arrays(bundles, "bundles", (("start", (topology.link_count + 1,), 0, None),)))
    yield from found
    if found:
        return
    yield from _offsets(bundles.start, bundles.wiring.link_count, "bundles.start")
    if bundles.wiring.switch_count != topology.switch_count or bundles.wiring.host_count != topology.host_count:
        yield "bundles.wiring has other switches or hosts than the topology"

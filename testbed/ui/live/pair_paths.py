"""Paths as the page tells them: where frames of a pair go now, whether that is the plan's path, and what stands by."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from testbed.base.messages import PathTrace
from testbed.base.model import VlanPlan
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.routing.paths import end_index, path
from testbed.planning import Plan
from testbed.planning.failover.tables import whole_tables

_MOST = 8  # backup paths that are told


class Hop(TypedDict, total=False):
    """A step of a path: what may carry the frame, and the tag that it has there."""

    channels: list[int]
    vlan: int
    priority: int


class Backup(TypedDict):
    """A path that stands by."""

    vlan: int | None  # identifier; None where it is the plan's second path
    channels: list[list[int]]


class SharedBackup(Backup):
    """Likewise beside the path in use."""

    shared: int  # links that they have in common


class PairPath(TypedDict):
    """What the page shows of a pair of hosts."""

    source: int
    destination: int
    hops: list[Hop]
    arrives: bool
    planned: bool  # whether the path is the plan's
    backups: list[SharedBackup]


class PairPaths:
    """Paths of a plan; channels are the physical ones."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def planned_channels(self, source: int, destination: int) -> list[list[int]]:
        """The channels of a pair's path by the plan, one of which carries a frame, hop by hop."""
        plan = self._plan
        return [self._members(channel) for channel in path(plan.topology, plan.routes, source, destination)]

    def describe(self, way: PathTrace | None, source: int, destination: int) -> PairPath:
        """What the page shows of a pair; without a way, which only a running lab has, the plan's path."""
        planned = self.planned_channels(source, destination)
        hops: list[Hop] = [{"channels": channels} for channels in planned]
        if way is not None:
            hops = [
                {"channels": list(channels), "vlan": vlan, "priority": priority}
                if vlan >= 0
                else {"channels": list(channels)}
                for channels, vlan, priority in zip(way.hops, way.vlans, way.priorities, strict=True)
            ]
        return {
            "source": source,
            "destination": destination,
            "hops": hops,
            "arrives": way is None or way.arrives,
            "planned": way is None or [set(channels) for channels in way.hops] == [set(one) for one in planned],
            "backups": self._rank_backups(self.backups(source, destination), hops),
        }

    def backups(self, source: int, destination: int) -> list[Backup]:
        """Paths of a pair that stand by: the plan's second one, or those of backup VLANs, with their identifiers."""
        plan = self._plan
        if plan.routes.backup is not None:
            ends = end_index(plan.topology, plan.routes)
            pair = int(ends[source]) * len(plan.routes.ends) + int(ends[destination])
            start = plan.routes.backup.start
            hops = plan.routes.backup.hop[start[pair] : start[pair + 1]] % len(plan.topology.channel_source)
            return [{"vlan": None, "channels": [self._members(int(hop)) for hop in hops]}] if len(hops) else []
        if self._trees is None:
            return []
        first, last = (int(plan.topology.host_switch[host]) for host in (source, destination))
        return [
            {"vlan": int(vlan), "channels": [self._members(channel) for channel in found]}
            for vlan, links in zip(self._trees.vlan_ids, self._trees.tagged_links, strict=True)
            if (found := self._in_tree(links, first, last))
        ]

    @cached_property
    def _trees(self) -> VlanPlan | None:
        """The backup VLANs that the lab's controller keeps."""
        plan = self._plan
        if plan.scenario.lab.controller != "segment_manager" or not isinstance(plan.vlans, VlanPlan):
            return None
        return whole_tables(plan.topology, plan.routes, plan.vlans, plan.scenario.routing_kind).backups

    @cached_property
    def _egress_channels(self) -> tuple[list[int], list[int]]:
        start, channels = leaving_channels(self._plan.topology)
        return start.tolist(), channels.tolist()

    def _in_tree(self, links: np.ndarray[Any, Any], start: int, end: int) -> list[int]:
        """Channels between two switches in a tree; none where it does not join them."""
        topology = self._plan.topology
        first, channels = self._egress_channels
        came: dict[int, int] = {start: -1}
        waiting = [start]
        for switch in waiting:
            for channel in channels[first[switch] : first[switch + 1]]:
                target = int(topology.channel_target[channel])
                if links[channel // 2] and target not in came:
                    came[target] = channel
                    waiting.append(target)
        found: list[int] = []
        while end in came and came[end] >= 0:
            found.append(came[end])
            end = int(topology.channel_source[came[end]])
        return found[::-1]

    def _members(self, channel: int) -> list[int]:
        return [channel] if self._plan.bundles is None else list(self._plan.bundles.channels(channel))

    @staticmethod
    def _rank_backups(backups: list[Backup], hops: list[Hop]) -> list[SharedBackup]:
        """Those first that have fewest links in common with a path."""
        taken = {channel // 2 for hop in hops for channel in hop["channels"]}

        def count_shared(backup: Backup) -> int:
            return len(taken & {channel // 2 for channels in backup["channels"] for channel in channels})

        return [{**one, "shared": count_shared(one)} for one in sorted(backups, key=count_shared)[:_MOST]]

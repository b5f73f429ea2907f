"""Segments of a fabric whose links and switches come and go: what stays, and what is made anew.

"As a result of SR's use of segments the number of switches involved in reconfiguration will be reduced because many
changes can be handled locally within a segment" (Mejia et al. 2007, section 4). An ear that has lost a link prohibits
nothing: what is left of it hangs on its two ends, so every other segment stays as it is. When the link comes back, so
does the prohibited turn. Only switches that hang on neither end, as where an ear has lost two links, are searched for
ears again, with all segments that end on them. Links that are left over become unitary segments. What is new comes
after what stays.

Why no cycle is left: an ear is crossed from end to end, or not at all, by a closed walk over it and earlier segments,
so the walk takes its prohibited turn, as in segment_turns(); over what is left of a broken one it would have to come
back. A unitary segment made here prohibits every turn between its link and all links that were there before it at one
end, bridges as well, so no walk goes on there at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.model import AllowedTurns, Bools, Ints, Topology
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.routing.segment_based import found_segments
from testbed.fabric.routing.turns import all_turns, allow

_Turn = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Segment:
    """A way between two switches of earlier segments, and the turns it prohibits."""

    channels: tuple[int, ...]  # from end to end; a single one for a unitary segment
    # channel that enters a switch and channel that leaves it; the turn back, from the reverse of the second to the
    # reverse of the first, is prohibited with it
    prohibited: tuple[_Turn, ...]

    @property
    def links(self) -> frozenset[int]:
        """Its links."""
        return frozenset(channel // 2 for channel in self.channels)

    def ends(self, topology: Topology) -> tuple[int, int]:
        """The switches it begins and ends at."""
        return int(topology.channel_source[self.channels[0]]), int(topology.channel_target[self.channels[-1]])

    def inner_switches(self, topology: Topology) -> tuple[int, ...]:
        """The switches between them."""
        return tuple(topology.channel_target[list(self.channels[:-1])].tolist())


@dataclass(frozen=True, slots=True)
class Segmentation:
    """Segments in the order in which they were made."""

    start: int  # switch from which they were searched
    segments: tuple[Segment, ...]
    stayed: int = 0  # how many of them, the first, were there before the last change


def segmentation(topology: Topology, start: int, unitary: Literal["last", "soon"] = "last") -> Segmentation:
    """The segments of a whole fabric, whose turns are those of segment_turns()."""
    ear_start, ear, prohibited = found_segments(topology, start, unitary=unitary)
    number = np.repeat(np.arange(len(ear_start) - 1), np.diff(ear_start)).tolist()
    ear_of = {channel // 2: at for channel, at in zip(ear.tolist(), number, strict=True)}
    turns: dict[tuple[bool, int], list[_Turn]] = {}
    for entering, leaving in prohibited.tolist():
        link = entering // 2
        # An ear prohibits a turn of its own; a link of no ear turns to others.
        key = (True, ear_of[link]) if link in ear_of else (False, entering)
        turns.setdefault(key, []).append((entering, leaving))
    made = [
        Segment(tuple(ear[ear_start[at] : ear_start[at + 1]].tolist()) if is_ear else (at,), tuple(found))
        for (is_ear, at), found in turns.items()
    ]
    return Segmentation(start, tuple(made))


def after_change(topology: Topology, before: Segmentation, alive: Bools) -> Segmentation:
    """The segments when other links are there; `alive` (L,) says which. A link that was not there before is new.

    Parts that nothing connects have segments of their own.
    """
    around: list[list[int]] = [[] for _ in range(topology.switch_count)]
    leaving_start, leaving = leaving_channels(topology)
    for switch in range(topology.switch_count):
        channels = leaving[leaving_start[switch] : leaving_start[switch + 1]].tolist()
        around[switch] = [channel for channel in channels if alive[channel // 2]]
    search = _Search(topology, around, before.start)
    used = frozenset[int]().union(*(segment.links for segment in before.segments))
    stayed = search.keep_intact(before.segments, [link for link in np.flatnonzero(alive).tolist() if link not in used])
    made = search.fill()
    return Segmentation(before.start, (*stayed, *made), len(stayed))


class _Search:
    """Ears through switches that are not visited yet."""

    def __init__(self, topology: Topology, around: Sequence[Sequence[int]], start: int) -> None:
        self._source, self._target = topology.channel_source.tolist(), topology.channel_target.tolist()
        self._topology, self._around = topology, around
        self._visited = {start}
        self._placed: set[int] = set()  # links of segments, and bridges

    def keep_intact(self, segments: Iterable[Segment], others: Sequence[int]) -> list[Segment]:
        """Segments that stay. `others`: living links of no segment, by which a part may have been entered."""
        stayed = []
        for segment in segments:
            self._enter(others)
            living = [channel for channel in segment.channels if self._is_alive(channel)]
            one, other = (end in self._visited for end in segment.ends(self._topology))
            if one and other and len(living) == len(segment.channels):
                self._visited.update(segment.inner_switches(self._topology))
                self._placed |= segment.links
                stayed.append(segment)
                continue
            hanging = self._list_dangling(segment.channels) if one else []
            if other:
                hanging += self._list_dangling([channel ^ 1 for channel in reversed(segment.channels)])
            self._visited.update(self._target[channel] for channel in hanging)
            self._placed.update(channel // 2 for channel in hanging)
            if len(living) == len(hanging) and (len(segment.channels) > 1 or (one and other)):
                stayed.append(segment)
        self._enter(others)
        return stayed

    def _is_alive(self, channel: int) -> bool:
        return channel in self._around[self._source[channel]]

    def _list_dangling(self, channels: Sequence[int]) -> list[int]:
        """Channels of an ear from one end to the first that is not there; never the last."""
        found = []
        for channel in channels[:-1]:
            if not self._is_alive(channel):
                break
            found.append(channel)
        return found

    def _enter(self, links: Sequence[int]) -> None:
        """Go over links of no segment, which were bridges or are new, where that was the way into a part."""
        for link in links:
            one, other = self._target[2 * link + 1], self._target[2 * link]
            if (one in self._visited) != (other in self._visited) and self._only_way(link):
                self._visited |= {one, other}
                self._placed.add(link)

    def _only_way(self, link: int) -> bool:
        """Whether nothing else leads from visited switches to what is behind a link."""
        one, other = self._target[2 * link + 1], self._target[2 * link]
        behind = {other if one in self._visited else one}
        waiting = list(behind)
        while waiting:
            for channel in self._around[waiting.pop()]:
                target = self._target[channel]
                if channel // 2 == link or target in behind:
                    continue
                if target in self._visited:
                    return False
                behind.add(target)
                waiting.append(target)
        return True

    def fill(self) -> list[Segment]:
        """New segments, until every switch that can be reached is visited and every link is placed."""
        made = []
        while True:
            ear = self._shortest_ear()
            if ear is not None:
                middle = (len(ear) - 1) // 2
                made.append(Segment(ear, ((ear[middle], ear[middle + 1]),)))
                self._visited.update(self._target[channel] for channel in ear[:-1])
                self._placed.update(channel // 2 for channel in ear)
            elif not self._next_part():
                break
        links = sorted({channel // 2 for channels in self._around for channel in channels} - self._placed)
        made += [self._make_unitary(link) for link in links]
        return made

    def _next_part(self) -> bool:
        """Go over a bridge, or begin anew where nothing leads from what is visited."""
        rest = [switch for switch in range(len(self._around)) if switch not in self._visited and self._around[switch]]
        if not rest:
            return False
        ways = [channel for switch in self._visited for channel in self._around[switch]]
        bridges = [channel for channel in ways if self._target[channel] not in self._visited]
        if bridges:
            self._placed.add(min(bridges) // 2)
        self._visited.add(self._target[min(bridges)] if bridges else rest[0])
        return True

    def _shortest_ear(self) -> tuple[int, ...] | None:
        """Breadth first from all visited switches through others, until two branches meet or one comes back."""
        came: dict[int, tuple[int, int]] = {}  # switch → channel it was entered by, and first channel of its branch
        waiting = deque[int]()
        for switch in sorted(self._visited):
            for channel in self._around[switch]:
                target = self._target[channel]
                if target not in self._visited and target not in came:
                    came[target] = (channel, channel)
                    waiting.append(target)
        best: tuple[int, ...] | None = None
        while waiting:
            switch = waiting.popleft()
            entered, branch = came[switch]
            there = self._trace_back(came, switch)
            if best is not None and 2 * len(there) >= len(best):
                break
            for channel in self._around[switch]:
                target = self._target[channel]
                if channel == entered ^ 1:
                    continue
                if target in self._visited:
                    found = (*there, channel)
                elif target not in came:
                    came[target] = (channel, branch)
                    waiting.append(target)
                    continue
                elif came[target][1] != branch:
                    found = (*there, channel, *(back ^ 1 for back in reversed(self._trace_back(came, target))))
                else:
                    continue
                if best is None or len(found) < len(best):
                    best = found
        return best

    def _trace_back(self, came: dict[int, tuple[int, int]], switch: int) -> tuple[int, ...]:
        way = []
        while switch in came:
            way.append(came[switch][0])
            switch = self._source[way[-1]]
        return tuple(reversed(way))

    def _make_unitary(self, link: int) -> Segment:
        """A link as a segment of its own; the turns go where there are fewer links yet."""
        ends = [(channel, self._placed_channels(self._target[channel])) for channel in (2 * link, 2 * link + 1)]
        entering, others = min(ends, key=lambda end: (len(end[1]), self._target[end[0]]))
        self._placed.add(link)
        return Segment((entering,), tuple((entering, other) for other in others))

    def _placed_channels(self, switch: int) -> list[int]:
        return [channel for channel in self._around[switch] if channel // 2 in self._placed]


def list_allowed_turns(topology: Topology, found: Segmentation, alive: Bools) -> AllowedTurns:
    """Every turn between living links but those that whole segments prohibit, each both ways."""
    before, after = all_turns(topology)
    whole = [segment for segment in found.segments if alive[list(segment.links)].all()]
    rows = [turn for segment in whole for turn in segment.prohibited]
    pairs: Ints = np.array(rows, dtype=np.int32).reshape(-1, 2)
    pairs = np.concatenate([pairs, pairs[:, ::-1] ^ 1])
    channels = max(len(topology.channel_source), 1)
    key = before.astype(np.int64) * channels + after
    free = ~np.isin(key, pairs[:, 0].astype(np.int64) * channels + pairs[:, 1])
    turns = allow(topology, free & alive[before // 2] & alive[after // 2], before, after)
    return AllowedTurns(turns.start, turns.following, np.repeat(alive, 2))

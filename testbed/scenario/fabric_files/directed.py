"""Graphs whose edges have a direction, as links, which carry frames both ways."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from testbed.base.units import count_noun
from testbed.scenario.fabric_files.listing import Listing


def as_undirected(found: Listing, directed: list[bool]) -> Listing:
    """Make a link of each directed edge, or of each pair of opposite ones where every edge has its opposite.

    `directed`: whether each link of the listing was, in its order. What was done is added to the notes.
    """
    if not any(directed):
        return found
    edges = Counter(link.ends for link, one_way in zip(found.links, directed, strict=True) if one_way)
    edges = Counter({ends: count for ends, count in edges.items() if ends[0] != ends[1]})
    opposite = sum(min(count, edges[ends[::-1]]) for ends, count in edges.items()) // 2
    said = f"{count_noun(sum(directed), 'edge')} with a direction"
    if opposite and 2 * opposite == sum(edges.values()):
        left, links = Counter(edges), []
        for link, one_way in zip(found.links, directed, strict=True):
            if not one_way or link.ends[0] == link.ends[1]:
                links.append(link)
            elif left[link.ends] and left[link.ends[::-1]]:
                left[link.ends] -= 1
                left[link.ends[::-1]] -= 1
                links.append(link)
        note = f"{said}: every one has its opposite, and each pair of these is one link, which carries frames both ways"
        return replace(found, links=links, notes=[*found.notes, note])
    note = f"{said}: each is one link, which carries frames both ways"
    if opposite:
        note += f"; {count_noun(opposite, 'pair')} of opposite edges are parallel links"
    return replace(found, notes=[*found.notes, note])

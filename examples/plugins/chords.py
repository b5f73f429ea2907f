"""A torus of two dimensions with a chord from every switch to the one half of the way round in both.

The fabric keeps sizes and coordinates, so that patterns such as transpose and tornado mean what they mean on a torus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from testbed.base.model import Topology
from testbed.fabric.topologies import TopologyKind
from testbed.fabric.topologies.build_topology import Extent, count_pairs, make_topology
from testbed.fabric.topologies.grid import Torus, torus


@dataclass(frozen=True, slots=True)
class ChordTorus:
    """A torus of side times side switches, side even, with a chord for every two switches that are farthest apart."""

    side: Annotated[int, Ge(2)]
    hosts_per_switch: Annotated[int, Ge(0)] = 1

    def extent(self) -> Extent:
        plain = Torus((self.side, self.side)).extent()
        return Extent(plain.switches, plain.links + len(chords(self.side)), plain.switches * self.hosts_per_switch)


def chords(side: int) -> list[tuple[int, int]]:
    far = side // 2
    ends = [(x + side * y, (x + far) % side + side * ((y + far) % side)) for y in range(side) for x in range(side)]
    return sorted({(min(pair), max(pair)) for pair in ends})


def build(spec: ChordTorus) -> Topology:
    plain = torus(Torus((spec.side, spec.side)))
    pairs, parallel = count_pairs([*map(tuple, plain.links.tolist()), *chords(spec.side)])
    return make_topology(
        "chord_torus", pairs, [spec.hosts_per_switch] * plain.switch_count, plain.positions,
        parallel_links=parallel, sizes=plain.sizes, coordinates=plain.coordinates,
    )  # fmt: skip


TOPOLOGIES = {"chord_torus": TopologyKind(ChordTorus, build, "updown", "torus with chords across")}

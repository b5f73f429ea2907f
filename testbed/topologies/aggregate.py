"""Link aggregation: the parallel links of two switches as one logical link (Watanabe et al. 2009, section IV)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from testbed.model import Bundles, Topology


def aggregate(wiring: Topology) -> tuple[Topology, Bundles | None]:
    """Fold parallel links into bundles.

    Args:
        wiring: the physical topology, the links of a pair in consecutive rows.

    Returns:
        The logical topology, with one link a pair and the ports of the first member of each, and what it stands for;
        None where no pair has more than one link, since nothing is folded then. `port_count` stays that of the
        physical switch.
    """
    first = np.flatnonzero(wiring.plane == 0)
    if len(first) == wiring.link_count:
        return wiring, None
    channels = (2 * first[:, None] + np.arange(2)).reshape(-1)
    topology = replace(
        wiring,
        links=np.ascontiguousarray(wiring.links[first]),
        plane=np.zeros(len(first), dtype=np.int32),
        channel_source=wiring.channel_source[channels],
        channel_target=wiring.channel_target[channels],
        out_port=wiring.out_port[channels],
    )
    return topology, Bundles(wiring, np.append(first, wiring.link_count).astype(np.int64))

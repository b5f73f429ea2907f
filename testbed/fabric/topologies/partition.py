"""Cut a fabric into parts of about the same size, with few links between them."""

from __future__ import annotations

import numpy as np

from testbed.base.errors import CapabilityError, InputError, argument
from testbed.base.model import Ints, Topology
from testbed.base.resources import install_extra

_CUTS = 8  # that METIS makes, of which the best counts; each takes milliseconds


def cut(topology: Topology, parts: int) -> Ints:
    """Divide the switches among parts by METIS: hosts and ports evenly, and as few links cut as it finds.

    Returns:
        (S,) number of the part of each switch; the same for the same fabric. Parts have numbers in the order of their
        first switches.

    Raises:
        InputError: there are fewer switches than parts, or METIS leaves a part empty.
        CapabilityError: METIS is not installed.
    """
    if parts > topology.switch_count:
        raise InputError.one(
            argument("machines"), f"names {parts}, but the fabric has {topology.switch_count} switches"
        )
    if parts == 1:
        return np.zeros(topology.switch_count, dtype=np.int32)
    try:
        import pymetis
    except ImportError as error:
        raise CapabilityError(
            f"a fabric is cut into parts by METIS, which is not installed: {error}; {install_extra('cluster')}"
        ) from None
    neighbours: list[list[int]] = [[] for _ in range(topology.switch_count)]
    weights: list[list[int]] = [[] for _ in range(topology.switch_count)]
    pairs, links = np.unique(np.sort(topology.links, axis=1), axis=0, return_counts=True)
    for (a, b), count in zip(pairs.tolist(), links.tolist(), strict=True):
        for one, other in ((a, b), (b, a)):
            neighbours[one].append(other)
            weights[one].append(count)
    hosts = np.bincount(topology.host_switch, minlength=topology.switch_count)
    _, part = pymetis.part_graph(
        parts,
        adjacency=neighbours,
        vweights=(hosts + topology.port_count).tolist(),
        eweights=[weight for its in weights for weight in its],
        options=pymetis.Options(seed=1, ncuts=_CUTS),
    )
    first = {label: number for number, label in enumerate(dict.fromkeys(part))}
    if len(first) < parts:
        raise InputError.one(
            argument("machines"), f"METIS finds no cut into {parts} parts that all have switches; name fewer"
        )
    return np.array([first[label] for label in part], dtype=np.int32)

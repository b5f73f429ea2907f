"""The fabric of a scenario, without what of it is dead, and with its links aggregated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Bundles, Topology
from testbed.fabric.topologies import TOPOLOGIES
from testbed.fabric.topologies.faults import apply_faults
from testbed.fabric.topologies.link_changes import change_links
from testbed.scenario import Scenario


def whole_fabric(scenario: Scenario) -> Topology:
    """Build the topology, with links that the scenario adds, and without those it removes.

    Raises:
        InputError: these do not fit the topology, by key of the scenario.
    """
    built = TOPOLOGIES[scenario.topology_kind].build(scenario.topology)
    return change_links(built, scenario.links.add, scenario.links.remove)


def build_fabric(scenario: Scenario) -> Topology:
    """Build the topology and take out what is dead.

    Raises:
        InputError: the faults do not fit the topology, each problem with the scenario's file.
    """
    try:
        return apply_faults(whole_fabric(scenario), scenario.faults)
    except InputError as error:
        raise InputError([p.in_file(scenario.source) for p in error.problems]) from error


def logical_fabric(scenario: Scenario) -> tuple[Topology, Bundles | None]:
    """Build the fabric that is routed: where links are aggregated, one link a pair, and the physical ones behind it.

    A bundle that has lost some of its members is still a link, so a fabric all of whose bundles live counts as whole.

    Raises:
        InputError: as build_fabric().
    """
    wiring = build_fabric(scenario)
    if not scenario.links.aggregate:
        return wiring, None
    topology, bundles = aggregate(wiring)
    if bundles is not None and topology.faults:
        whole = whole_fabric(scenario)
        pairs = int(np.count_nonzero(whole.plane == 0))
        if (topology.switch_count, topology.link_count) == (whole.switch_count, pairs):
            topology = replace(topology, faults=())
    return topology, bundles


def aggregate(wiring: Topology) -> tuple[Topology, Bundles | None]:
    """Fold the parallel links of two switches into one logical link (Watanabe et al. 2009, section IV).

    Links of a pair are in consecutive rows.

    Returns:
        The logical topology, with one link a pair and the ports of the first member of each, and the links behind it;
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

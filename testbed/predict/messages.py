"""Least time of an exchange of messages: that of the fullest channel."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from testbed.model import Floats, Routes, Topology
from testbed.predict.frames import Transport
from testbed.routing.paths import path


def exchange_bound(
    topology: Topology,
    routes: Routes,
    sent: Mapping[tuple[int, int], float],
    wire: Transport,
    link_rate: float | Floats,
    host_rate: float,
    *,
    tagged: bool = True,
    at_once: float = 0.0,
) -> float:
    """Least seconds in which all bytes between hosts can arrive, whatever the order they are sent in.

    Args:
        topology: the network.
        routes: its paths.
        sent: (source, destination) hosts → bytes of payload.
        wire: cost of payload and headers; acknowledgements are left out.
        link_rate: bit/s of a link between switches, or (C,) of each channel.
        host_rate: bit/s of a host's link.
        tagged: whether frames between switches carry a VLAN tag.
        at_once: bytes that a channel lets pass at once after a pause, as a token bucket does.
    """
    channels, hosts = len(topology.channel_source), topology.host_count
    # Channels between switches, then host → switch, then switch → host; bytes on the wire.
    load = np.zeros(channels + 2 * hosts)
    for (source, destination), payload in sent.items():
        if source == destination:
            continue
        load[list(path(topology, routes, source, destination))] += payload * wire.cost(tagged=tagged)
        edge = payload * wire.cost(tagged=False)
        load[channels + source] += edge
        load[channels + hosts + destination] += edge
    load -= at_once
    trunk, edges = (load[:channels] / link_rate).max(initial=0), load[channels:].max(initial=0) / host_rate
    return float(8 * max(trunk, edges))

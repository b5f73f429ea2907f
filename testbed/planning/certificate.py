"""The certificate of a proved plan: an order of its channels and the walk of every pair, for certificate_check.py."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np

from testbed.base.errors import InputError, argument
from testbed.base.model import LearningPlan
from testbed.fabric.routing.paths import all_paths, destination_keys, key_switches, source_keys
from testbed.fabric.verify.deadlock import adjacency
from testbed.planning import Plan

SCHEMA_VERSION = 1


def certificate_of(plan: Plan) -> str:
    """Return the certificate as JSON text.

    Raises:
        VerificationError: the plan is not proved.
        InputError: it can deadlock, as it declares, or its switches learn; then there is no certificate.
    """
    plan.require_proof()
    plan.require_tables()
    if not plan.deadlock_free:
        raise InputError.one(
            argument("certificate"), "the plan can deadlock, as it says, so no order of its channels exists"
        )
    if isinstance(plan.vlans, LearningPlan):
        sentence = "switches of this plan learn where hosts are, and rules alone show no walk; use registration: static"
        raise InputError.one(argument("certificate"), sentence)
    return json.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "digest": plan.digest,
            "scenario": plan.scenario.name,
            "order": channel_order(plan),
            "walks": walks_of(plan),
        },
        separators=(",", ":"),
    )


def channel_order(plan: Plan) -> list[list[int]]:
    """Virtual channels as switch, port and layer, each after all that may wait for it; members of bundles in a row.

    Channels on a cycle are left out.
    """
    from testbed.fabric.kernels.local_classes import topological_order

    topology, paths = plan.topology, all_paths(plan.topology, plan.routes)
    channels = len(topology.channel_source)
    inner = np.ones(len(paths.hop), dtype=bool)
    inner[paths.start[:-1][np.diff(paths.start) > 0]] = False
    after = np.flatnonzero(inner)
    pairs = np.unique(np.stack([paths.hop[after - 1], paths.hop[after]], axis=1), axis=0).astype(np.int32)
    order = topological_order(*adjacency(channels * plan.routes.layers, pairs.reshape(-1, 2)))
    found = []
    for hop in order.tolist():
        layer, channel = divmod(hop, max(channels, 1))
        members = [channel] if plan.bundles is None else plan.bundles.channels(channel)
        wiring = plan.wiring
        found += [[int(wiring.channel_source[one]), int(wiring.out_port[one]), layer] for one in members]
    return found


def walks_of(plan: Plan) -> list[list[str]]:
    """For each host the walk to each: ports by which frames leave one switch after the other, with dots between."""
    topology, paths = plan.topology, all_paths(plan.topology, plan.routes)
    channels = max(len(topology.channel_source), 1)
    ports = [str(port) for port in topology.out_port.tolist()]
    texts: list[str] = []
    hops, start = (paths.hop % channels).tolist(), paths.start.tolist()
    for first, end in pairwise(start):
        texts.append(".".join([ports[hop] for hop in hops[first:end]]))
    columns = len(key_switches(plan.routes)[1])
    ends = destination_keys(topology, plan.routes).tolist()
    return [
        [texts[row * columns + column] if host != end else "" for end, column in enumerate(ends)]
        for host, row in enumerate(source_keys(topology, plan.routes).tolist())
    ]

"""Rates of a plan's links, the shares of them that flows take, what loads ask of switches, and a plan slowed down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from testbed.base.model import Floats, HostTaggedPlan, Topology
from testbed.dataplane.predict import Transport, Ways, Wires, fair_goodput, proportional_goodput, routed_ways, transport
from testbed.dataplane.predict.bounds import alltoall_frame_hops, frame_hops
from testbed.dataplane.predict.wire_overhead import MTU
from testbed.fabric.traffic import flows, weights
from testbed.planning import Plan
from testbed.scenario.workloads import WORKLOADS, Traffic
from testbed.scenario.workloads.spec import Iperf3, times


def channel_rates(plan: Plan) -> float | Floats:
    """Real-world bit/s of a link between switches, or (C,) of each channel where they are not all alike."""
    rate = plan.scenario.links.rate
    if plan.bundles is None:
        return wire_rates(plan)
    shares = np.ones(plan.wiring.link_count) if plan.speeds is None else plan.speeds
    if plan.powered_off is not None:
        shares = np.where(plan.powered_off, 0.0, shares)
    return np.repeat(rate * np.add.reduceat(shares, plan.bundles.start[:-1]), 2)


def wire_rates(plan: Plan) -> float | Floats:
    """Real-world bit/s of a physical link between switches, or (physical C,) of each channel where speeds differ."""
    rate = plan.scenario.links.rate
    return rate if plan.speeds is None else rate * np.repeat(plan.speeds, 2)


def wires_of(plan: Plan, wire: Transport) -> Wires:
    """The wires of a plan for frames of one kind, each bundle of links taken for one; real-world rates."""
    return _wires(plan, plan.topology, wire, channel_rates(plan))


def member_wires(plan: Plan, wire: Transport) -> Wires:
    """As wires_of(), each member of a bundle by itself."""
    return _wires(plan, plan.wiring, wire, wire_rates(plan))


def _wires(plan: Plan, topology: Topology, wire: Transport, rate: float | Floats) -> Wires:
    tagging = plan.vlans.tagging if isinstance(plan.vlans, HostTaggedPlan) else None
    edge_rate = plan.scenario.links.edge_rate
    return Wires(topology, wire, rate, edge_rate, plan.vlans.tagged_trunks, tagging=tagging)


def logical_ways(plan: Plan, pairs: Sequence[tuple[int, int]]) -> Ways:
    """Logical channels of each flow and of its acknowledgements."""
    return routed_ways(plan.topology, plan.routes, pairs)


def fair_rates(plan: Plan, pairs: Sequence[tuple[int, int]], wire: Transport) -> Floats:
    """(F,) max-min fair goodput of flows between hosts, bit/s (real world)."""
    return fair_goodput(wires_of(plan, wire), pairs, logical_ways(plan, pairs))


def offered_rates(plan: Plan, pattern: str, pairs: Sequence[tuple[int, int]], wire: Transport) -> Floats:
    """(F,) goodput that flows of a pattern can have together, bit/s (real world).

    Of pairs with amounts, in their ratio, as much as fills the fullest wire; else the max-min fair share.
    """
    amounts = weights(pattern, plan.topology)
    if amounts is None:
        return fair_rates(plan, pairs, wire)
    shares = np.array([amounts[pair] for pair in pairs])
    return proportional_goodput(wires_of(plan, wire), pairs, logical_ways(plan, pairs), shares)


def imbalance(use: Sequence[float]) -> float | None:
    """Maximum over mean utilisation of link directions; None where nothing was used.

    1 = all alike; with C directions at most C.
    """
    total = sum(use)
    return max(use) * len(use) / total if total > 0 else None


def at_dilation(plan: Plan, dilation: float | Literal["auto"], **settings: Any) -> Plan:
    """Return the plan with another dilation, and other keys of its `lab` block, whatever its scenario says."""
    lab = replace(plan.scenario.lab, dilation=dilation, **settings)
    return replace(plan, scenario=replace(plan.scenario, lab=lab))


# The lab for which the seconds of loads are written that do not say theirs: 1 Gbit/s at dilation 150.
_WRITTEN_RATE, _WRITTEN_FRAMES = 1e9 / 150, 100
# How many times slower links may be before those seconds hold too few frames: of 1 Gbit/s at dilation 1,000 they hold
# 400 full ones, so that one more or less, as counters are read between frames, is a quarter of a percent.
_FEWEST_FRAMES = 1000 / 150


def link_slowness(plan: Plan) -> float:
    """How long a full frame takes on the lab's slowest link, over what it does where the seconds of loads are written.

    Round trips and the filling of queues take as many times longer. A flow of TCP that loses frames takes as many times
    the square of its queue to come round, so that longer queues than usual count as slower links.
    """
    return max(1.0, plan.scenario.links.queue_frames / _WRITTEN_FRAMES) ** 2 * _frame_slowness(plan)


def time_limit_factor(plan: Plan) -> float:
    """How many times the seconds of a time limit a load has in the plan's lab; 1 or more.

    Limits that no scenario names are written for the links that the seconds of loads are written for. Where the lab's
    are slower, what a load sends takes as many times longer.
    """
    return max(1.0, _frame_slowness(plan))


def _frame_slowness(plan: Plan) -> float:
    links = plan.scenario.links
    used = np.atleast_1d(wire_rates(plan))
    rate = min(links.edge_rate, float(used.min(initial=links.rate))) / plan.scenario.lab.chosen_dilation
    return _WRITTEN_RATE / rate * _full_frame(links.mtu) / _full_frame(MTU)


def _full_frame(mtu: int) -> int:
    """Bytes on an untagged wire."""
    return transport("tcp", 0, mtu).forward


def timed(plan: Plan, spec: Iperf3) -> Iperf3:
    """The load with the seconds that it has in the plan's lab."""
    longer = max(1.0, _frame_slowness(plan) / _FEWEST_FRAMES)
    return replace(spec, **times(spec, link_slowness(plan), longer)._asdict())


# What a lab is measured by when nothing else is asked: one flow from each host, short paths.
STANDARD = Iperf3("udp", "neighbour")


def demand(plan: Plan) -> float:
    """Frames a second times switches, of the load that needs most; of the standard load where none sends much.

    An MPI job counts as an all-to-all among all hosts, or as its pattern: what it needs at its busiest.
    """
    return max((demand_of(plan, sent) for sent in all_sent(plan)), default=0.0) or demand_of(
        plan, iperf3_traffic(STANDARD)
    )


def steady_frames(plan: Plan) -> float:
    """Segments and datagrams a second that all hosts together send, of the load that sends most at a steady rate.

    Of the standard load where none does. This is what modelled switches and hosts' cards are asked for: they take a
    frame through any number of switches in about the same time, and large segments of TCP whole.
    """
    steady = [sent for sent in all_sent(plan) if not sent.bursts]
    return max((frames_of(plan, sent) for sent in steady), default=0.0) or frames_of(plan, iperf3_traffic(STANDARD))


def all_sent(plan: Plan) -> list[Traffic]:
    """What the scenario's loads send, of those that send much."""
    traffic = (WORKLOADS[load.kind].traffic(load.spec) for load in plan.scenario.workloads)
    return [sent for sent in traffic if sent is not None]


def iperf3_traffic(spec: Iperf3) -> Traffic:
    """What an iperf3 load sends."""
    sent = WORKLOADS["iperf3"].traffic(spec)
    assert sent is not None
    return sent


def demand_of(plan: Plan, sent: Traffic) -> float:
    """Frames a second times switches of what a load sends when it sends most."""
    wire = transport(sent.protocol, sent.payload, plan.scenario.links.mtu)
    if sent.pattern is None:
        return alltoall_frame_hops(wires_of(plan, wire), plan.routes)
    pairs = flows(sent.pattern, plan.topology, plan.scenario.lab.seed, amounts=True)
    rates = offered_rates(plan, sent.pattern, pairs, wire)
    return sent.share * frame_hops(wires_of(plan, wire), plan.routes, pairs, rates)


def frames_of(plan: Plan, sent: Traffic) -> float:
    """Segments and datagrams a second of what a load sends when it sends most by a pattern, of all hosts together."""
    if sent.pattern is None:
        return 0.0
    wire = transport(sent.protocol, sent.payload, plan.scenario.links.mtu)
    pairs = flows(sent.pattern, plan.topology, plan.scenario.lab.seed, amounts=True)
    return sent.share * float(offered_rates(plan, sent.pattern, pairs, wire).sum()) / (8 * wire.payload)

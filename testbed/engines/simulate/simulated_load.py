"""An iperf3 load of a scenario in the packet-level simulator: the samples of its repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from testbed.base.errors import InputError
from testbed.base.ethernet import GAP, PREAMBLE, VLAN_TAG
from testbed.base.model import Floats, HostTaggedPlan, Longs, Sample
from testbed.dataplane.kernels.packets_state import PacketState, PacketTcp
from testbed.dataplane.predict import TcpLoad, Transport, tcp_goodput, transport
from testbed.engines.simulate.detail_levels import packet_network
from testbed.engines.simulate.flit_point import latency_of
from testbed.engines.simulate.packet_network import PacketNetwork, TcpFrames, new_packet_state, packet_fabric, start_tcp
from testbed.engines.simulate.packet_point import Counters, check_frames, go_on
from testbed.engines.simulate.packet_settings import (
    PICOSECONDS,
    fabric_problems,
    in_scenario,
    packet_problems,
    settings_of,
)
from testbed.fabric.traffic import flows
from testbed.fabric.verify.deadlock import hop_name
from testbed.planning import Plan
from testbed.planning.rates import imbalance, logical_ways, offered_rates, wires_of
from testbed.scenario.workloads.spec import Iperf3


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """How one repeat of a load went."""

    samples: tuple[Sample, ...]  # what was counted after the warm-up; none where packets wait for each other
    reached: Floats  # (F,) goodput of each flow as a share of its prediction; likewise
    cycle: tuple[str, ...]  # channels that wait for each other, each for the one after it; empty without a deadlock


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """Counters of a repeat at a time."""

    of: Counters  # what both protocols have
    arrived: Longs  # (F,) datagrams or segments that arrived, each counted once
    dropped: Longs  # (F,) datagrams that were dropped; retransmissions of TCP
    acks: Longs  # (K,) acknowledgements that went over each link
    area: Longs  # (N,) frames in each queue times ps; only of TCP
    drops: Longs  # (N,) frames that found no memory on their way into it; likewise

    @classmethod
    def read(cls, state: PacketState, tcp: PacketTcp | None) -> _Reading:
        now, none = Counters.from_state(state), np.zeros(0, dtype=np.int64)
        if tcp is None:
            return cls(now, state.delivered.copy(), state.dropped.copy(), none, none, none)
        area = tcp.area + tcp.waiting * (now.now - tcp.changed)
        repeated = tcp.ends.made - tcp.ends.next
        return cls(now, tcp.ends.arrived.copy(), repeated, tcp.acks.copy(), area, tcp.drops.copy())


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedLoad:
    """What all repeats of a load share."""

    plan: Plan  # at real-world rates
    spec: Iperf3  # what is asked for
    network: PacketNetwork  # what its runs start from
    labels: Mapping[str, str]  # of all its samples
    pairs: tuple[tuple[int, int], ...]  # hosts of each flow
    wire: Transport  # cost of its payload
    fair: Floats  # (F,) max-min fair goodput of each flow, bit/s

    @classmethod
    def from_load(cls, plan: Plan, spec: Iperf3, labels: Mapping[str, str]) -> SimulatedLoad:
        """Look at the load once.

        Raises:
            InputError: the scenario's switches do not go with the fabric or the frames; all problems.
        """
        pairs = tuple(sorted(flows(spec.pattern, plan.topology, plan.scenario.lab.seed, amounts=True)))
        wire = transport(spec.protocol, spec.payload)
        network = _network(plan, spec, wire, len(pairs))
        return cls(plan, spec, network, labels, pairs, wire, offered_rates(plan, spec.pattern, pairs, wire))

    def predict_goodput(self) -> Floats:
        """(F,) goodput that each flow should have, bit/s.

        Of datagrams the max-min fair share, or what is offered where that is less. Of TCP what a simulation of its
        segments over the same queues gives; where receivers pause senders nothing is lost, no window closes, and it is
        the max-min fair share.
        """
        settings = self.network.settings
        if self.spec.protocol == "udp":
            return self.fair * min(1.0, self.spec.offered_load)
        if settings.lossless:
            return self.fair
        begun = self._starts
        load = TcpLoad(
            omit=settings.warm_up / 1000 - begun, seconds=(settings.duration - settings.warm_up) / 1000, slower=1.0,
            queue_frames=self.network.thresholds.buffer, head_drop=False, starts=begun,
        )  # fmt: skip
        return tcp_goodput(wires_of(self.plan, self.wire), self.pairs, logical_ways(self.plan, self.pairs), load)

    @property
    def _starts(self) -> float:
        """Seconds within which TCP's flows begin: a second, or half of the warm-up."""
        return min(1.0, self.network.settings.warm_up / 2000)

    def run(self, number: int, predicted: Floats) -> Repeat:
        """Simulate a repeat.

        Its number is the seed.

        Raises:
            LostFramesError: the simulator has a fault.
        """
        network, settings, udp = self.network, self.network.settings, self.spec.protocol == "udp"
        gaps = 8 * self.wire.payload * PICOSECONDS / (self.fair * self.spec.offered_load)
        fabric = packet_fabric(network, self.pairs, gaps, paced=True)
        state = new_packet_state(network, fabric, number)
        sources = [source for source, _ in self.pairs]
        tcp = None if udp else start_tcp(network, fabric, state, sources, number, self._starts)
        before = _Reading.read(state, tcp)
        for end in (settings.warm_up, settings.duration):
            cycle = go_on(network, fabric, state, round(end * 1e9), lambda: False, tcp)
            if cycle:
                check_frames(network, fabric, state, tcp)
                names = tuple(hop_name(network.topology, hop, network.priorities) for hop in cycle)
                return Repeat((), np.empty(0), names)
            if end == settings.warm_up:
                before = _Reading.read(state, tcp)
                state.histogram[:] = 0
                state.latencies[:] = 0
                if tcp is not None:
                    tcp.peak[:] = tcp.waiting
        check_frames(network, fabric, state, tcp)
        after = _Reading.read(state, tcp)
        seconds = (after.of.now - before.of.now) / PICOSECONDS
        arrived, dropped = after.arrived - before.arrived, after.dropped - before.dropped
        goodput = 8 * self.wire.payload * arrived / seconds
        name, of_repeat = network.topology.host_name, {"repeat": str(number)}
        samples = []
        for flow, (source, goal) in enumerate(self.pairs):
            ends = {**of_repeat, "src": name(source), "dst": name(goal)}
            samples.append(self._sample("goodput", float(goodput[flow]), "bit/s", ends, float(predicted[flow])))
            if udp:
                lost = float(dropped[flow]) / max(int(arrived[flow] + dropped[flow]), 1)
                samples.append(self._sample("loss", lost, "ratio", ends))
                samples.append(self._sample("jitter", round(float(state.jitter[flow])) / PICOSECONDS, "s", ends))
            else:
                samples.append(self._sample("retransmits", float(dropped[flow]), "", ends))
        mean = float(predicted.mean())
        samples.append(self._sample("goodput_mean", float(goodput.mean()), "bit/s", of_repeat, mean))
        if state.histogram.any():
            latency = latency_of(state.histogram, float(state.latencies[0]))
            samples += [
                self._sample("latency_mean", latency.mean / PICOSECONDS, "s", of_repeat),
                self._sample("latency_p99", latency.p99 / PICOSECONDS, "s", of_repeat),
            ]
        samples += self._pauses(after.of, before.of, seconds, of_repeat)
        if tcp is not None:
            samples += self._queues(tcp, after, before, of_repeat)
        time = (after.of.sent - before.of.sent)[: fabric.channels] * network.channel_time
        if not udp:
            time += (after.acks - before.acks)[: fabric.channels] * (network.ack_times[0] - network.channel_time)
        shares = wires_of(self.plan, self.wire).channel_shares(logical_ways(self.plan, self.pairs), predicted)
        samples += self._links(time / (after.of.now - before.of.now), shares, of_repeat)
        return Repeat(tuple(samples), goodput / predicted, ())

    def _queues(self, tcp: PacketTcp, after: _Reading, before: _Reading, labels: Mapping[str, str]) -> list[Sample]:
        """Frames that waited at each port of a switch, the most of a priority, and those that found no memory."""
        topology, virtual = self.network.topology, self.network.priorities * len(self.network.topology.channel_source)
        channels, hosts = len(topology.channel_source), topology.host_count
        mean = (after.area - before.area) / (after.of.now - before.of.now)
        names = [topology.channel_name(channel) for channel in range(channels)]
        names += [
            f"{topology.switch_name(int(switch))}→{topology.host_name(host)}"
            for host, switch in enumerate(topology.host_switch.tolist())
        ]
        found = []
        for metric, of_node, join in (
            ("queue_frames", mean, np.sum),
            ("queue_max", tcp.peak, np.max),
            ("queue_drops", after.drops - before.drops, np.sum),
        ):
            of_channel = join(of_node[:virtual].reshape(-1, channels), axis=0) if channels else of_node[:0]
            values = [*of_channel.tolist(), *of_node[virtual + hosts :].tolist()]
            found += [
                self._sample(metric, float(value), "frames", {**labels, "channel": name})
                for name, value in zip(names, values, strict=True)
            ]
        return found

    def _sample(
        self, metric: str, value: float, unit: str, labels: Mapping[str, str], predicted: float | None = None
    ) -> Sample:
        return Sample(metric, value, unit, {**self.labels, **labels}, predicted)

    def _pauses(self, after: Counters, before: Counters, seconds: float, labels: Mapping[str, str]) -> list[Sample]:
        """How long hosts and channels were paused; nothing without flow control."""
        if not self.network.settings.lossless:
            return []
        still = (after.still - before.still) / PICOSECONDS / seconds
        virtual = self.network.priorities * len(self.network.topology.channel_source)
        hosts = still[virtual : virtual + self.network.topology.host_count]
        found = [self._sample("host_paused", float(hosts.mean()), "ratio", labels)]
        if virtual:
            found.append(self._sample("channel_paused", float(still[:virtual].mean()), "ratio", labels))
        return found

    def _links(self, use: Floats, predicted: Floats, labels: Mapping[str, str]) -> list[Sample]:
        """What each channel carried, as a share of its rate, and how uneven that was."""
        name = self.network.topology.channel_name
        found = [
            self._sample("link_use", float(use[c]), "ratio", {**labels, "channel": name(c)}, float(predicted[c]))
            for c in range(len(use))
        ]
        uneven, expected = imbalance(use.tolist()), imbalance(predicted.tolist())
        return found if uneven is None else [*found, self._sample("link_imbalance", uneven, "", labels, expected)]


def edge_tag(plan: Plan) -> int:
    """Bytes of the tag that frames have on hosts' links.

    Raises:
        InputError: some hosts tag and some do not, and the simulator has frames of one length on these links.
    """
    if not isinstance(plan.vlans, HostTaggedPlan):
        return 0
    if not plan.vlans.tagging.all():
        sentence = (
            "leaves hosts without tags among others, and the simulator gives all hosts' links frames of one length; "
            "leave it out, or run it on engine: realtime"
        )
        raise InputError.one("assignment.untagged", sentence, plan.scenario.source)
    return VLAN_TAG


def _network(plan: Plan, spec: Iperf3, wire: Transport, connections: int) -> PacketNetwork:
    """What runs of a load start from.

    Raises:
        InputError: all that is wrong, by keys of the scenario.
    """
    edge_frame = wire.forward - PREAMBLE - GAP + edge_tag(plan)  # before a switch has tagged it
    frame = wire.forward - PREAMBLE - GAP + (VLAN_TAG if plan.vlans.tagged_trunks else 0)
    settings = settings_of(plan.scenario, frame, spec.pattern)
    links, tcp = plan.scenario.links, None
    if spec.protocol == "tcp":
        ack = int(wire.ack) - PREAMBLE - GAP + edge_tag(plan)
        tcp = TcpFrames(ack + settings.frame - edge_frame, ack, connections, links.queue_frames)
    try:
        problems = packet_problems(settings, 1) or fabric_problems(
            settings, plan.routes, links.rate, links.edge_rate, mixed=tcp is not None
        )
        if problems:
            raise InputError(problems)
        return packet_network(plan, settings, edge_frame, tcp)
    except InputError as error:
        raise InputError(in_scenario(error.problems, plan.scenario)) from error

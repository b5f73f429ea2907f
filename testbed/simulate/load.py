"""An iperf3 load of a scenario in the packet-level simulator: the samples of its repeats."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from testbed.errors import InputError
from testbed.model import Floats, Longs, Sample
from testbed.plan import Plan
from testbed.plan.rates import fair_rates, imbalance, logical_ways, wires_of
from testbed.predict import Transport, transport
from testbed.predict.frames import VLAN_TAG
from testbed.simulate.levels import PACKET, packet_network
from testbed.simulate.packet_network import PacketNetwork, new_packet_state, packet_fabric
from testbed.simulate.packet_point import Counters, check_frames, go_on
from testbed.simulate.packet_settings import GAP_BYTES, PICOSECONDS, PacketSettings
from testbed.simulate.point import latency_of
from testbed.traffic import flows
from testbed.verify.deadlock import hop_name
from testbed.workloads.spec import Iperf3


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """How one repeat of a load went.

    Attributes:
        samples: what was counted after the warm-up; none where packets wait for each other.
        reached: (F,) goodput of each flow as a share of its prediction; likewise.
        cycle: channels that wait for each other, each for the one after it; empty without a deadlock.
    """

    samples: tuple[Sample, ...]
    reached: Floats
    cycle: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedLoad:
    """What all repeats of a load share.

    Attributes:
        plan: at real-world rates.
        spec: what is asked for.
        network: what its runs start from.
        labels: of all its samples.
        pairs: hosts of each flow.
        wire: cost of its payload.
        fair: (F,) max-min fair goodput of each flow, bit/s.
    """

    plan: Plan
    spec: Iperf3
    network: PacketNetwork
    labels: Mapping[str, str]
    pairs: tuple[tuple[int, int], ...]
    wire: Transport
    fair: Floats

    @classmethod
    def of(cls, plan: Plan, spec: Iperf3, labels: Mapping[str, str]) -> SimulatedLoad:
        """Look at the load once.

        Raises:
            InputError: the scenario's switches do not go with the fabric or the frames; all problems.
        """
        pairs = tuple(sorted(flows(spec.pattern, plan.topology, plan.scenario.lab.seed)))
        wire = transport(spec.protocol, spec.payload)
        return cls(plan, spec, _network(plan, spec, wire), labels, pairs, wire, fair_rates(plan, pairs, wire))

    @property
    def predicted(self) -> Floats:
        """(F,) goodput of each flow: a sender of datagrams cannot get through more than it offers; bit/s."""
        return self.fair * min(1.0, self.spec.offered)

    def run(self, number: int) -> Repeat:
        """Simulate a repeat; its number is the seed.

        Raises:
            LostFramesError: the simulator has a fault.
        """
        network, settings = self.network, self.network.settings
        gaps = 8 * self.spec.payload * PICOSECONDS / (self.fair * self.spec.offered)
        fabric = packet_fabric(network, self.pairs, gaps, paced=True)
        state = new_packet_state(network, fabric, number)
        before = Counters.of(state)
        flow_before: Longs = np.zeros((2, len(self.pairs)), dtype=np.int64)
        for end in (settings.warm_up, settings.duration):
            cycle = go_on(network, fabric, state, round(end * 1e9), lambda: False)
            if cycle:
                check_frames(network, fabric, state)
                names = tuple(hop_name(network.topology, hop, network.priorities) for hop in cycle)
                return Repeat((), np.empty(0), names)
            if end == settings.warm_up:
                before, flow_before = Counters.of(state), np.stack([state.delivered, state.dropped])
                state.histogram[:] = 0
                state.latencies[:] = 0
        check_frames(network, fabric, state)
        after = Counters.of(state)
        seconds = (after.now - before.now) / PICOSECONDS
        delivered, dropped = np.stack([state.delivered, state.dropped]) - flow_before
        goodput = 8 * self.spec.payload * delivered / seconds
        name, label, goals = network.topology.host_name, str(number), self.predicted
        samples = []
        for flow, (source, goal) in enumerate(self.pairs):
            ends = {"repeat": label, "src": name(source), "dst": name(goal)}
            lost = float(dropped[flow]) / max(int(delivered[flow] + dropped[flow]), 1)
            samples += [
                self._sample("goodput", float(goodput[flow]), "bit/s", ends, float(goals[flow])),
                self._sample("loss", lost, "ratio", ends),
                self._sample("jitter", round(float(state.jitter[flow])) / PICOSECONDS, "s", ends),
            ]
        of_repeat = {"repeat": label}
        samples.append(self._sample("goodput_mean", float(goodput.mean()), "bit/s", of_repeat, float(goals.mean())))
        if state.histogram.any():
            latency = latency_of(state.histogram, float(state.latencies[0]))
            samples += [
                self._sample("latency_mean", latency.mean / PICOSECONDS, "s", of_repeat),
                self._sample("latency_p99", latency.p99 / PICOSECONDS, "s", of_repeat),
            ]
        samples += self._pauses(after, before, seconds, of_repeat)
        use = (after.sent - before.sent)[: fabric.channels] * network.channel_time / (after.now - before.now)
        shares = wires_of(self.plan, self.wire).channel_shares(logical_ways(self.plan, self.pairs), goals)
        samples += self._links(use, shares, of_repeat)
        return Repeat(tuple(samples), goodput / goals, ())

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


def _network(plan: Plan, spec: Iperf3, wire: Transport) -> PacketNetwork:
    """What runs of a load start from.

    Raises:
        InputError: all that is wrong, by keys of the scenario.
    """
    settings, edge_frame = _settings(plan, spec, wire)
    try:
        problems = PACKET.problems(plan, settings, 1)
        if problems:
            raise InputError(problems)
        return packet_network(plan, settings, edge_frame)
    except InputError as error:
        raise InputError([replace(p, key=_key(p.key), file=plan.scenario.source) for p in error.problems]) from error


def _key(option: str) -> str:
    """The key of a scenario for an option of the command."""
    return f"simulator.{option[2:].replace('-', '_')}" if option.startswith("--") else option


def _settings(plan: Plan, spec: Iperf3, wire: Transport) -> tuple[PacketSettings, int]:
    """Settings for the datagrams of a load, and bytes of a frame before a switch has tagged it."""
    scenario = plan.scenario
    asked = dataclasses.asdict(scenario.simulator)
    edge_frame = wire.forward - GAP_BYTES
    frame = edge_frame + (VLAN_TAG if plan.vlans.tagged_trunks else 0)
    if asked["buffer"] is None:
        lossy = scenario.simulator.flow_control == "none"
        asked["buffer"] = scenario.links.queue_frames * frame if lossy else PacketSettings().buffer
    return PacketSettings(pattern=spec.pattern, frame=frame, **asked), edge_frame

"""A scenario's loads in the packet-level simulator, stored as those of a lab are."""

from __future__ import annotations

import dataclasses
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testbed import __version__
from testbed.errors import InputError, Problem
from testbed.model import Floats, Longs, Sample
from testbed.plan import Plan
from testbed.plan.dilated import at_dilation
from testbed.plan.rates import channel_rates
from testbed.predict import Transport, fair_goodput, transport
from testbed.predict.frames import VLAN_TAG
from testbed.results import ResultFolder
from testbed.run.bundles import logical_ways, shares_by_members
from testbed.run.fidelity import Finding, Judgement, Verdict, judge_prediction
from testbed.run.one_load import load_labels
from testbed.run.run import Outcome, finish
from testbed.run.watched import imbalance
from testbed.scenario import Scenario, Workload
from testbed.simulate.levels import PACKET, packet_network
from testbed.simulate.packet_network import PacketNetwork, new_packet_state, packet_fabric
from testbed.simulate.packet_point import Counters, check_frames, go_on
from testbed.simulate.packet_settings import GAP_BYTES, PICOSECONDS, PacketSettings
from testbed.simulate.point import latency_of
from testbed.simulate.runs import bundle_problems
from testbed.traffic import flows
from testbed.verify.deadlock import hop_name
from testbed.workloads.spec import Iperf3, Probe, failures_of

_WHY_NOT = {
    "ping": "it measures programs and processors, which the simulator has none of; testbed simulate gives latencies",
    "iperf3": "TCP's control of its rate is not modelled; datagrams are (protocol: udp)",
    "mpi": "the program would have to run",
    "npb": "the program would have to run",
}


def run_in_simulator(plan: Plan, results: Path, progress: Callable[[str], None]) -> Outcome:
    """Simulate the plan's UDP loads at real-world rates, and store everything.

    Args:
        plan: proved or not; nothing is started without proof.
        results: folder that gets the run's folder.
        progress: called with one line on what is going on.

    Raises:
        InputError, VerificationError: nothing was started.
    """
    plan.require_proof()
    plan = at_dilation(plan, 1.0)
    networks = simulated_networks(plan)
    folder = ResultFolder(results, plan)
    folder.write_plan(_environment(plan))
    samples: list[Sample] = []
    loads: list[dict[str, Any]] = []
    everything: list[Finding] = []
    for number, load in enumerate(plan.scenario.workloads, 1):
        told_apart = load_labels(load)
        title, started = " ".join([load.kind, *told_apart.values()]), time.monotonic()
        findings: list[Finding] = [(Verdict.WARN, f"not simulated: {_WHY_NOT[load.kind]}")]
        if number in networks:
            labels = {"load": str(number), "kind": load.kind, **told_apart}
            loaded = _Load(plan, load.spec, networks[number], labels)
            count = f"load {number} of {len(plan.scenario.workloads)}, {title}"
            found, findings = loaded.run(lambda text, count=count: progress(f"{count}: {text}"))  # type: ignore[misc]
            samples += found
        judgement = Judgement.of(findings)
        everything += [(verdict, f"{title}: {reason}") for verdict, reason in findings]
        loads.append(
            {
                "load": str(number),
                "title": title,
                "kind": load.kind,
                "verdict": judgement.verdict.word,
                "reasons": list(judgement.reasons),
                "seconds": round(time.monotonic() - started, 2),
            }
        )
        folder.write_samples(samples)
    judgement = Judgement.of(everything)
    folder.write_manifest(judgement.verdict.word, judgement.reasons, loads, {"dilation": 1.0, "engine": "simulate"})
    return finish(folder, judgement.verdict, judgement.reasons, tuple(samples), progress)


def simulated_networks(plan: Plan) -> dict[int, PacketNetwork]:
    """Number of each load that can be simulated → what its runs start from.

    Raises:
        InputError: there is none, the switches do not go with the fabric or the frames, or a load asks for what the
            simulator cannot do; all problems.
    """
    scenario = plan.scenario
    problems = [*bundle_problems(plan), *_failure_problems(scenario)]
    found: dict[int, PacketNetwork] = {}
    wanted = [number for number, load in enumerate(scenario.workloads, 1) if _is_udp(load)]
    if not wanted:
        sentence = "none can be simulated: that takes {kind: iperf3, protocol: udp}; leave engine: simulate out"
        problems.append(Problem(f"{scenario.source}: workloads", sentence))
    for number in wanted:
        settings, edge_frame = _settings(plan, scenario.workloads[number - 1].spec)
        wrong = [] if problems else PACKET.problems(plan, settings, 1)
        problems += [Problem(_place(scenario.source, problem.place), problem.sentence) for problem in wrong]
        if not problems:
            try:
                found[number] = packet_network(plan, settings, edge_frame)
            except InputError as error:
                problems += [Problem(_place(scenario.source, p.place), p.sentence) for p in error.problems]
    if problems:
        raise InputError(problems)
    return found


def _failure_problems(scenario: Scenario) -> list[Problem]:
    """A sentence for each load with failures, without which a result would look as if the fabric had borne them."""
    return [
        Problem(
            f"{scenario.source}: workloads.{index}.failures",
            "links and switches do not fail in the simulator; take "
            f"{'the load' if isinstance(load.spec, Probe) else 'it'} out, or leave engine: simulate out",
        )
        for index, load in enumerate(scenario.workloads)
        if failures_of(load.spec)
    ]


def _is_udp(load: Workload) -> bool:
    return isinstance(load.spec, Iperf3) and load.spec.protocol == "udp"


def _place(source: str, place: str) -> str:
    """The key of a scenario for an option of the command."""
    key = f"simulator.{place[2:].replace('-', '_')}" if place.startswith("--") else place
    return f"{source}: {key}"


def _settings(plan: Plan, spec: Iperf3) -> tuple[PacketSettings, int]:
    """Settings for the datagrams of a load, and bytes of a frame before a switch has tagged it."""
    scenario = plan.scenario
    asked = dataclasses.asdict(scenario.simulator)
    edge_frame = transport("udp", spec.payload).forward - GAP_BYTES
    frame = edge_frame + (VLAN_TAG if plan.vlans.tagged_trunks else 0)
    if asked["buffer"] is None:
        lossy = scenario.simulator.flow_control == "none"
        asked["buffer"] = scenario.links.queue_frames * frame if lossy else PacketSettings().buffer
    return PacketSettings(pattern=spec.pattern, frame=frame, **asked), edge_frame


def _environment(plan: Plan) -> dict[str, Any]:
    """What a run was made with."""
    return {
        "testbed": __version__,
        "engine": "simulate",
        "simulator": dataclasses.asdict(plan.scenario.simulator),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }


@dataclass(frozen=True, slots=True)
class _Load:
    """What all repeats of a load share."""

    plan: Plan
    spec: Iperf3
    network: PacketNetwork
    labels: Mapping[str, str]

    def run(self, progress: Callable[[str], None]) -> tuple[list[Sample], list[Finding]]:
        """Simulate `spec.repeats` times, each with a seed of its own; judge each flow's median."""
        plan, links = self.plan, self.plan.scenario.links
        pairs = sorted(flows(self.spec.pattern, plan.topology, plan.scenario.lab.seed))
        wire = transport("udp", self.spec.payload)
        even = fair_goodput(
            plan.topology, plan.routes, pairs, wire, channel_rates(plan), links.edge_rate,
            tagged=plan.vlans.tagged_trunks,
        )  # fmt: skip
        goals = even * min(1.0, self.spec.offered)
        gaps = 8 * self.spec.payload * PICOSECONDS / (even * self.spec.offered)
        samples: list[Sample] = []
        findings: list[Finding] = []
        reached: list[Floats] = []
        for repeat in range(1, self.spec.repeats + 1):
            progress(f"{len(pairs)} flows, repeat {repeat} of {self.spec.repeats}")
            found, cycle = self._repeat(pairs, gaps, goals, wire, repeat)
            samples += found
            if cycle:
                declared = plan.scenario.expect == "deadlock"
                ring = " waits for ".join((*cycle, cycle[0]))
                word = "deadlock as declared" if declared else "deadlock"
                findings.append((Verdict.PASS if declared else Verdict.FAIL, f"{word} in repeat {repeat}: {ring}"))
            else:
                reached.append(np.array([sample.value for sample in found if sample.metric == "goodput"]))
        if reached:
            medians = (np.median(reached, axis=0) / goals).tolist()
            findings += judge_prediction("udp", medians, [1.0] * len(medians))
        return samples, findings

    def _repeat(
        self, pairs: list[tuple[int, int]], gaps: Floats, goals: Floats, wire: Transport, repeat: int
    ) -> tuple[list[Sample], tuple[str, ...]]:
        """Samples of a repeat, or the channels that waited for each other."""
        network, settings = self.network, self.network.settings
        fabric = packet_fabric(network, pairs, gaps, paced=True)
        state = new_packet_state(network, fabric, repeat)
        before = Counters.of(state)
        flow_before: Longs = np.zeros((2, len(pairs)), dtype=np.int64)
        for end in (settings.warm_up, settings.duration):
            cycle = go_on(network, fabric, state, round(end * 1e9), lambda: False)
            if cycle:
                check_frames(network, fabric, state)
                return [], tuple(hop_name(network.topology, hop, network.priorities) for hop in cycle)
            if end == settings.warm_up:
                before, flow_before = Counters.of(state), np.stack([state.delivered, state.dropped])
                state.histogram[:] = 0
                state.latencies[:] = 0
        check_frames(network, fabric, state)
        after = Counters.of(state)
        seconds = (after.now - before.now) / PICOSECONDS
        delivered, dropped = np.stack([state.delivered, state.dropped]) - flow_before
        goodput = 8 * self.spec.payload * delivered / seconds
        name, label = network.topology.host_name, str(repeat)
        samples = []
        for flow, (source, goal) in enumerate(pairs):
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
        predicted = shares_by_members(self.plan, logical_ways(self.plan, pairs), goals, wire)
        return samples + self._links(use, predicted, of_repeat), ()

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

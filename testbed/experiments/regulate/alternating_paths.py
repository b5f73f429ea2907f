"""Paths that change every few seconds beside paths that stay (Koibuchi et al. 2011, Tables 6 and 7, Fig. 4 to 6)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from testbed.base.errors import LabError
from testbed.base.model import Floats, Sample, host_ip
from testbed.dataplane.predict import transport
from testbed.engines.session import Session
from testbed.experiments.regulate.before_after import change_findings, loss_findings, loss_samples
from testbed.experiments.regulate.choose_links import Detour, find_detour, links_behind
from testbed.experiments.regulate.figure import Stretch, draw_rates
from testbed.experiments.regulate.plan_changes import Change
from testbed.experiments.regulate.run import Stage, require_regulable
from testbed.experiments.run.dilation.choose import choose_dilation
from testbed.experiments.run.engine import RunOutcome
from testbed.experiments.run.engines import find_session_engine
from testbed.experiments.run.in_session import changes_since, lab_facts
from testbed.experiments.run.loads.context import Context, LoadOutcome
from testbed.experiments.run.loads.one_load import record_outcome
from testbed.fabric.power import PowerModel
from testbed.fabric.topologies.faults import link_called
from testbed.planning import Plan
from testbed.planning.rates import fair_rates
from testbed.results import ResultFolder
from testbed.results.telemetry import Telemetry
from testbed.scenario.workloads import iperf3
from testbed.scenario.workloads.spec import Iperf3, times

FIXED, CHANGING = "fixed path", "changing path"
PROBES_A_SECOND = 1000.0
# s that a path that stays is watched at most: it gets no better by watching.
_FIXED_SECONDS = 20.0
_BANDWIDTH_SECONDS = 10
# When a link goes off and comes back under TCP, and the whole of it; laboratory s.
_OFF_AT, _ON_AT, _SERIES_SECONDS = 5.0, 12.0, 22
_SPARE_SECONDS = 60.0
_OMIT = 1


def watch_changes(
    plan: Plan,
    results: Path,
    model: PowerModel,
    every: float,
    count: int,
    pair: str | None,
    progress: Callable[[str], None],
) -> tuple[RunOutcome, tuple[Change, ...]]:
    """Measure latency, bandwidth and losses of a pair of hosts while its path changes so often, and while it stays.

    `every` are the laboratory s from one change to the next; `pair` is two hosts, with a comma, or None for the first
    and the one half the fabric on.

    Raises:
        InputError, VerificationError, CapabilityError: nothing was started.
        LabError: the lab broke, or a change was refused; the folder stays, marked incomplete.
    """
    plan.require_proof()
    require_regulable(plan)
    detour = find_detour(plan, pair)
    engine = find_session_engine(plan.scenario)
    engine.find_missing(plan, progress).raise_if_missing()
    folder = ResultFolder(results, plan)
    with engine.open_checked(plan, folder, progress) as lab:
        settled, dilation = choose_dilation(plan, lab, progress)
        stage = Stage(settled, lab, folder, model, progress)
        watch = _Watch(stage, detour, every, count)
        watch.frames()
        watch.bandwidth()
        watch.series()
        stage.records.findings += changes_since(settled, lab)
    return stage.finish(lab_facts(settled, dilation, lab)), tuple(stage.changes)


class _Watch:
    """The parts of it, one after the other in a running lab."""

    def __init__(self, stage: Stage, detour: Detour, every: float, count: int) -> None:
        self.stage, self.detour, self.every, self.count = stage, detour, every, count
        self.plans = (stage.plan, detour.plan)

    def _change_until(self, other: Session, count: int, name: str) -> list[Change]:
        """Change so often, in turn to the second way and back; the last one leads back."""
        changes = []
        start = time.monotonic()
        for number in range(1, count + 1):
            time.sleep(max(start + number * self.every - time.monotonic(), 0.0))
            if number % max(count // 10, 1) == 1 % max(count // 10, 1):
                self.stage.progress(f"{name}: change {number} of {count}")
            # Of these plans the same two are installed again and again: walked when first there, and at the end.
            walk = number in (1, 2, count)
            changes.append(self.stage.session.move(other, name, self.plans[number % 2], (), walk=walk))
        if count % 2:
            changes.append(self.stage.session.move(other, f"{name}: back", self.plans[0], ()))
        return changes

    def frames(self) -> None:
        """Numbered datagrams both ways, and a TCP connection each: losses and one-way times."""
        pairs = [(self.detour.source, self.detour.destination), (self.detour.destination, self.detour.source)]
        session = self.stage.session

        def fixed(context: Context) -> LoadOutcome:
            seconds = min(self.every * self.count, _FIXED_SECONDS)
            context.progress(f"a path that stays, {seconds:g} s")
            _, losses, _ = session.while_probing(context, pairs, PROBES_A_SECOND, lambda other: time.sleep(seconds))
            return LoadOutcome(loss_samples(context, losses), loss_findings(losses))

        def changing(context: Context) -> LoadOutcome:
            changes, losses, _ = session.while_probing(
                context, pairs, PROBES_A_SECOND, lambda other: self._change_until(other, self.count, "paths change")
            )
            self.stage.changes += changes
            samples = loss_samples(context, losses)
            samples.append(context.sample("path_changes", len(changes), "count", {}))
            findings = [finding for change in changes for finding in change_findings(change)]
            return LoadOutcome(samples, [*findings, *loss_findings(losses)])

        for path_kind, run in ((FIXED, fixed), (CHANGING, changing)):
            context = self.stage.context(self.stage.plan, "frames", path=path_kind)
            self.stage.add(record_outcome(context, self.stage.folder, run))

    def bandwidth(self) -> None:
        """One UDP flow as fast as its path carries it, by what reaches the receiver in each reading of telemetry."""
        spec = Iperf3("udp", "neighbour", seconds=_BANDWIDTH_SECONDS, omit=_OMIT)
        flow = [(self.detour.source, self.detour.destination)]

        def run(context: Context, *, changing: bool) -> LoadOutcome:
            outcome = LoadOutcome()
            count = int((_BANDWIDTH_SECONDS - 1) / self.every)

            def changes(other: Session) -> list[Change]:
                return self._change_until(other, count, "paths change under UDP") if changing else []

            made, telemetry, _ = self._iperf3(context, spec, flow, changes, outcome)
            self.stage.changes += made
            outcome.findings += [finding for change in made for finding in change_findings(change)]
            received = frame_bandwidth(telemetry, self.detour.destination)
            counted = received[telemetry.increases_of(0)] if received.size else received
            if counted.size:
                for name, value in (("min", counted.min()), ("mean", counted.mean()), ("max", counted.max())):
                    outcome.samples.append(context.sample(f"frame_bandwidth_{name}", float(value), "bit/s", {}))
            return outcome

        for path_kind, changing in ((FIXED, False), (CHANGING, True)):
            context = self.stage.context(self.stage.plan, "bandwidth", path=path_kind)
            self.stage.add(record_outcome(context, self.stage.folder, partial(run, changing=changing)))

    def series(self) -> None:
        """TCP between all hosts and those opposite while the link goes off and comes back, in steps of telemetry."""
        stage, detour = self.stage, self.detour
        topology = stage.plan.topology
        half = topology.host_count // 2
        flows = [(host, (host + half) % topology.host_count) for host in range(topology.host_count)]
        spec = Iperf3("tcp", "neighbour", seconds=_SERIES_SECONDS, omit=_OMIT)
        name = link_called(topology, detour.link)

        def run(context: Context) -> LoadOutcome:
            context.progress(f"{name} goes off and comes back under TCP")
            outcome = LoadOutcome()

            def changes(other: Session) -> list[Change]:
                start = time.monotonic()
                time.sleep(_OFF_AT)
                off = stage.session.move(other, f"{name} off", detour.plan, links_behind(stage.plan, detour.link))
                time.sleep(max(start + _ON_AT - time.monotonic(), 0.0))
                return [off, stage.session.move(other, f"{name} on", stage.plan, ())]

            made, telemetry, start = self._iperf3(context, spec, flows, changes, outcome)
            stage.changes += made
            outcome.findings += [finding for change in made for finding in change_findings(change)]
            rates = {
                f"{topology.host_name(s)}→{topology.host_name(d)}": frame_bandwidth(telemetry, d) for s, d in flows
            }
            scale = context.scale.dilation
            marks = [mark for change in made for mark in _marks(change, start)]
            drawn = draw_rates(telemetry.time, {pair: scale * rate for pair, rate in rates.items()}, marks)
            stage.folder.write_bytes("series.svg", drawn)
            return outcome

        context = stage.context(stage.plan, "series", link=name)
        stage.add(record_outcome(context, stage.folder, run))

    def _iperf3(
        self,
        context: Context,
        spec: Iperf3,
        flows: Sequence[tuple[int, int]],
        changes: Callable[[Session], list[Change]],
        outcome: LoadOutcome,
    ) -> tuple[list[Change], Telemetry, float]:
        """Run flows while changes are made; adds the goodput of each, returns the changes, telemetry and its zero."""
        plan = self.stage.plan
        topology = plan.topology
        fair = fair_rates(plan, flows, transport(spec.protocol, spec.payload, plan.scenario.links.mtu))
        named = [(topology.host_name(s), topology.host_name(d), host_ip(d)) for s, d in flows]
        servers, clients = iperf3.commands(spec, named, [context.scale.lab_rate(float(rate)) for rate in fair])
        omit, seconds = times(spec)
        made, result = self.stage.session.change_under_load(
            context, [*servers, *clients], omit + seconds + _SPARE_SECONDS, changes,
            window=(omit, omit + seconds), watched=True,
        )  # fmt: skip
        if result.telemetry is None:
            raise LabError("the scenario records no telemetry, so there is no series; leave lab.telemetry out")
        outcome.add_recording(result)
        for (source, destination, _), server, client in zip(named, servers, clients, strict=True):
            received, sent = (result.outputs[process.id].stdout for process in (server, client))
            context.keep_raw(f"{source}-{destination}-server.json", received)
            context.keep_raw(f"{source}-{destination}-client.json", sent)
            found = iperf3.parse(spec, received, sent)
            labels = {"src": source, "dst": destination}
            outcome.samples.append(context.sample("goodput", found.goodput, "bit/s", labels))
            if found.loss is not None:
                outcome.samples.append(context.sample("loss", found.loss, "ratio", labels))
            if found.retransmits is not None:
                outcome.samples.append(context.sample("retransmits", found.retransmits, "", labels))
        outcome.samples += context.machine(result)
        return made, result.telemetry, result.start


def frame_bandwidth(telemetry: Telemetry, host: int) -> Floats:
    """(T,) laboratory bit/s of frames, headers included, that a host was sent between two readings."""
    port = int(np.flatnonzero(telemetry.port_host == host)[0])
    seconds = np.diff(telemetry.time, prepend=telemetry.time[:1])
    rate: Floats = 8 * telemetry.sent_bytes[:, port] / np.maximum(seconds, 1e-9)
    return np.where(seconds > 0, rate, 0.0)


def _marks(change: Change, zero: float) -> list[Stretch]:
    """Beginning and end of a change on the axis of a load's telemetry."""
    begin = change.started - zero
    return [Stretch(begin, begin + change.seconds, change.name)]


def table7(samples: Sequence[Sample]) -> list[tuple[str, str, float, float, float]]:
    """Rows of Table 7: path, what, least, mean and most; one-way s of the pair's frames, bit/s of frames."""
    rows = []
    for path_kind in (FIXED, CHANGING):
        for what, names in (("one-way latency", "one_way"), ("frame bandwidth", "frame_bandwidth")):
            values = [
                [s.value for s in samples if s.metric == f"{names}_{name}" and s.labels.get("path") == path_kind]
                for name in ("min", "mean", "max")
            ]
            if all(values):
                rows.append((path_kind, what, min(values[0]), sum(values[1]) / len(values[1]), max(values[2])))
    return rows

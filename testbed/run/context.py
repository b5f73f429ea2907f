"""What every load runner gets and gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from testbed.emulate.client import Lab
from testbed.emulate.names import port_interface
from testbed.errors import WorkloadError
from testbed.model import Sample, Topology
from testbed.plan import Plan
from testbed.predict.frames import WIRE_OVERHEAD
from testbed.run.fidelity import Finding, judge_losses, processor
from testbed.units import TimeScale
from testbed.workloads.process import Process


@dataclass(frozen=True, slots=True)
class Context:
    """One load of a run.

    Attributes:
        plan: what the lab was built from.
        lab: the lab.
        labels: labels that all samples of this load carry.
        keep_raw: stores a tool's raw output under a file name.
        progress: called with what is going on.
    """

    plan: Plan
    lab: Lab
    labels: Mapping[str, str]
    keep_raw: Callable[[str, str], None]
    progress: Callable[[str], None]

    @property
    def scale(self) -> TimeScale:
        """Conversion of laboratory figures."""
        return TimeScale(self.plan.scenario.lab.dilation)

    def sample(
        self, metric: str, lab_value: float, unit: str, labels: Mapping[str, str], predicted: float | None = None
    ) -> Sample:
        """Return a sample in real-world units from a laboratory figure; `predicted` is in real-world units already."""
        return Sample(metric, self.scale.to_real(lab_value, unit), unit, {**self.labels, **labels}, predicted)

    def real_world(self, sample: Sample, **labels: str) -> Sample:
        """Return a laboratory sample in real-world units, with this load's labels."""
        value = self.scale.to_real(sample.value, sample.unit)
        return replace(sample, value=value, labels={**self.labels, **sample.labels, **labels})

    def run(
        self,
        processes: Sequence[Process],
        limit: float,
        window: tuple[float, float] | None = None,
        failure: Callable[[str], str] = lambda text: "",
    ) -> LoadResult:
        """Run processes in the lab.

        Args:
            processes: what is started.
            limit: laboratory seconds after which they are ended.
            window: between which seconds the counters are read; None = around all.
            failure: what the standard output of a process that failed says of it; empty = its last line shall say it.

        Raises:
            WorkloadError: some did not end in time, or failed; their output is kept.
        """
        raw = self.lab.ask("load", processes=[asdict(p) for p in processes], limit=limit, window=window)
        result = LoadResult(raw["outputs"], raw["snapshots"][0], raw["snapshots"][1], raw["seconds"])
        failed = [name for name, output in result.outputs.items() if output["code"] != 0]
        if failed:
            for name in failed:
                self.keep_raw(f"failed-{name}.txt", result.outputs[name]["stdout"] + result.outputs[name]["stderr"])
            output = result.outputs[failed[0]]
            said = failure(output["stdout"]) or output["stderr"].strip() or output["stdout"].strip()
            last = (said or "it printed nothing").splitlines()[-1]
            how = f"did not end in {limit:g} s" if failed[0] in raw["timed_out"] else f"exit code {output['code']}"
            raise WorkloadError(f"{len(failed)} of {len(result.outputs)} processes failed; {failed[0]}: {how}: {last}")
        return result

    def link_use(self, result: LoadResult, predicted: Mapping[int, float], **labels: str) -> list[Sample]:
        """Share of each channel's rate that was used between the two snapshots; of a bundle, that of all members.

        Args:
            result: of run().
            predicted: channel → predicted share, where there is a prediction.
            labels: further labels.
        """
        topology, bundles = self.plan.topology, self.plan.bundles
        rate = self.scale.lab_rate(self.plan.scenario.links.rate)
        samples = []
        for channel in range(len(topology.channel_source)):
            members = (channel,) if bundles is None else bundles.channels(channel)
            share = sum(result.wire_rate(self.plan.wiring, member) for member in members) / (len(members) * rate)
            labels_of = {**labels, "channel": topology.channel_name(channel)}
            samples.append(self.sample("link_use", share, "ratio", labels_of, predicted.get(channel)))
        return samples

    def machine(self, result: LoadResult, **labels: str) -> list[Sample]:
        """Samples of the processors while the load ran."""
        idle, pressure = processor(result.before, result.after)
        samples = [self.sample("cpu_idle", idle, "ratio", labels)]
        if pressure is not None:
            samples.append(self.sample("cpu_pressure", pressure, "ratio", labels))
        return samples


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What came back from the lab.

    Attributes:
        outputs: process id → `code`, `stdout`, `stderr`.
        before: counters at the start of the window.
        after: counters at its end.
        seconds: laboratory seconds the load took.
    """

    outputs: Mapping[str, Mapping[str, Any]]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    seconds: float

    def wire_rate(self, wiring: Topology, channel: int) -> float:
        """Laboratory bit/s that a physical channel carried between the snapshots, as on a real wire."""
        name = port_interface(wiring.switch_name(int(wiring.channel_source[channel])), wiring.out_port[channel])
        old, new = self.before["ports"][name], self.after["ports"][name]
        wire = new["tx_bytes"] - old["tx_bytes"] + WIRE_OVERHEAD * (new["tx_packets"] - old["tx_packets"])
        return float(8 * wire / (self.after["time"] - self.before["time"]))


@dataclass(slots=True)
class LoadOutcome:
    """What a load gave.

    Attributes:
        samples: in real-world units.
        findings: about fidelity.
    """

    samples: list[Sample] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


class FrameLedger:
    """Counts frames along their way; what one counter has and the next has not was lost outside a queue."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._before = lab.ask("frames")

    def close(self) -> list[Finding]:
        """Findings since the ledger was opened."""
        after = self._lab.ask("frames")

        def gain(kind: str, key: str | None = None) -> int:
            new, old = after[kind], self._before[kind]
            values = ((new[name], old.get(name, 0)) for name in new)
            if key is not None:
                values = ((new[name][key], old.get(name, {}).get(key, 0)) for name in new)
            return int(sum(now - then for now, then in values))

        arrived, admitted = gain("ports", "rx_packets"), gain("admitted")
        # A unicast frame that is admitted is sent once; a broadcast more often, which only hides losses here.
        sent = gain("ports", "tx_packets") + gain("queue_drops")
        lost = {
            "before a switch took them in": max(0, arrived - admitted),
            "in a switch": max(0, admitted - sent),
            "at a port": gain("ports", "rx_dropped") + gain("ports", "tx_dropped"),
            "in a receiving program's socket": gain("socket_drops"),
        }
        return judge_losses(lost, arrived)

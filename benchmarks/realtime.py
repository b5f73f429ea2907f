"""What real hosts on modelled switches give, by parts: flows, latency, the dilation that `auto` takes, a shared link.

Each case is a run of its own in a folder that is thrown away; `auto` and `shared` run both engines in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.table import Figure, progress
from testbed.base.messages import LoadRequest, Process
from testbed.base.model import Sample
from testbed.experiments.run import realtime
from testbed.experiments.run.engine import RunOutcome
from testbed.experiments.run.engines import run_scenario
from testbed.planning import make_plan
from testbed.results import load_run
from testbed.scenario import find_scenario, load_scenario, parse_scenario

_FABRICS = ("mesh4x4", "torus4x4", "fattree14", "myri-clos", "mtree4x4", "flat16")
_FLOWS = "topology: {{kind: torus, sizes: [{size}, {size}]}}\nengine: realtime\nlab: {{dilation: {dilation}}}\n"
_FLOWS += "workloads: [{{kind: iperf3, protocol: {protocol}, repeats: 1}}]"
_CASES = (
    ("udp", 4, 20),
    ("udp", 4, 10),
    ("udp", 4, 5),
    ("tcp", 4, 20),
    ("tcp", 4, 15),
    ("tcp", 4, 10),
    ("tcp", 4, 5),
    ("udp", 8, 60),
)
_CHAIN = "topology: {kind: mesh, sizes: [8]}\nengine: realtime\nlab: {dilation: 20}"
_PINGS = 200
_WIRE = 24  # bytes that a frame takes on the wire beyond its own
_PING, _TAG = 98, 4
_BURNER = "while True: pass"


def _run(plan_of: Callable[[], Any]) -> tuple[RunOutcome, dict[str, Any]]:
    """Run a plan; its outcome and manifest."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_scenario(plan_of(), Path(folder), progress)
        return outcome, load_run(outcome.folder).manifest


def _of(samples: tuple[Sample, ...], metric: str, **labels: str) -> list[Sample]:
    return [one for one in samples if one.metric == metric and labels.items() <= one.labels.items()]


def _spread(values: list[float], unit: str = "") -> str:
    return f"median {statistics.median(values):.4g}{unit} ({min(values):.4g} – {max(values):.4g})"


def _flow_text(outcome: RunOutcome) -> str:
    ratios = [one.value / one.predicted for one in _of(outcome.samples, "goodput") if one.predicted]
    late = _of(outcome.samples, "lateness", quantile="p99")
    lost = [one.value for one in _of(outcome.samples, "loss")]
    words = [
        f"mean {statistics.mean(ratios):.4f}, worst {min(ratios):.4f} of the prediction",
        f"lost {100 * max(lost):.3g} % at most" if lost else "",
        f"p99 late by {max(one.value for one in late) * 1e6:.3g} µs" if late else "",
        outcome.verdict.word,
    ]
    return "; ".join(word for word in words if word)


@contextmanager
def _burning() -> Iterator[None]:
    """A process that uses a processor while the block runs."""
    with subprocess.Popen([sys.executable, "-c", _BURNER]) as burner:
        try:
            yield
        finally:
            burner.kill()


def udp(runs: int) -> list[Figure]:
    """Datagrams of every host to its neighbour beside their prediction; also beside a process that burns a core."""
    figures = _flows("udp", runs)
    with _burning():
        text = _FLOWS.format(size=4, dilation=25, protocol="udp")
        outcome, _ = _run(lambda: make_plan(parse_scenario(text, "flows")))
        figures.append(Figure("4×4 torus, 16 UDP flows, dilation 25, beside a busy process", _flow_text(outcome)))
    return figures


def tcp(runs: int) -> list[Figure]:
    """Likewise streams."""
    return _flows("tcp", runs)


def _flows(kind: str, runs: int) -> list[Figure]:
    figures = []
    for protocol, size, dilation in _CASES:
        if protocol != kind:
            continue
        text = _FLOWS.format(size=size, dilation=dilation, protocol=protocol)
        name = f"{size}×{size} torus, {size * size} {protocol.upper()} flows, dilation {dilation}"
        for run in range(1, runs + 1):
            outcome, _ = _run(lambda text=text: make_plan(parse_scenario(text, "flows")))  # type: ignore[misc]
            figures.append(Figure(f"{name}, run {run}", _flow_text(outcome)))
    return figures


def latency(runs: int) -> list[Figure]:
    """Round trips of lone echoes over one to eight switches, beside what the wire takes; laboratory time."""
    plan = make_plan(parse_scenario(_CHAIN, "chain"))
    dilation, figures = 20, []
    with realtime.RealtimeEngine().build(plan, progress) as lab:
        lab.verify(plan)
        delay = float(lab.model.live.delay[0]) * 1e-12
        byte = float(lab.model.live.byte_time[0]) * 1e-12
        for switches in range(2, 9):
            measured = []
            for _ in range(runs):
                argv = ("ping", "-c", str(_PINGS), "-i", "0.005", "-q", f"10.0.0.{switches}")
                text = lab.run_load(LoadRequest((Process("ping", "h1", argv),), 60.0)).outputs["ping"].stdout
                measured.append(float(text.rpartition("= ")[2].split("/")[1]))
            edge, trunk = byte * (_PING + _WIRE), byte * (_PING + _TAG + _WIRE)
            wire = 2 * (2 * edge + (switches - 1) * trunk + (switches + 1) * delay) * 1e3
            beyond = statistics.median(measured) - wire
            text = f"mean {_spread(measured, ' ms')}, wire {wire:.3f} ms, {beyond:+.3f} ms"
            figures.append(Figure(f"echo over {switches} switches, dilation {dilation}", text))
    return figures


def auto(runs: int) -> list[Figure]:
    """The dilation that `auto` takes for UDP to neighbours, Open vSwitch and the model in turn."""
    del runs
    figures = []
    for name in _FABRICS:
        taken = {}
        for engine in ("ovs", "realtime"):
            words = [f"engine={engine}", "lab.dilation=auto", "workloads=[{kind: iperf3, protocol: udp, repeats: 1}]"]
            _, manifest = _run(lambda name=name, words=words: make_plan(load_scenario(find_scenario(name), words)))  # type: ignore[misc]
            taken[engine] = manifest["dilation"], manifest["dilation_choice"]["seconds"]
        text = ", ".join(f"{engine} {dilation:g} in {took:.0f} s" for engine, (dilation, took) in taken.items())
        figures.append(Figure(f"{name}, auto", f"{text}; ratio {taken['ovs'][0] / taken['realtime'][0]:.3g}"))
    return figures


def shared(runs: int) -> list[Figure]:
    """Eight pairs over one link (Koibuchi 2011, Fig. 7): the model with PAUSE and without, and Open vSwitch."""
    figures = []
    for engine, control in (("realtime", "pause"), ("realtime", "none"), ("ovs", "none")):
        for protocol in ("udp", "tcp"):
            words = [
                f"engine={engine}", f"lab.dilation={20 if engine == 'realtime' else 150}",
                f"workloads=[{{kind: iperf3, protocol: {protocol}, repeats: {runs}}}]",
                *([f"simulator.flow_control={control}"] if engine == "realtime" else []),
            ]  # fmt: skip
            outcome, _ = _run(lambda words=words: make_plan(load_scenario(find_scenario("pairs8"), words)))  # type: ignore[misc]
            sums = [8 * one.value / 1e6 for one in _of(outcome.samples, "goodput_mean")]
            lost = [100 * one.value for one in _of(outcome.samples, "loss")]
            again = [one.value for one in _of(outcome.samples, "retransmits")]
            more = f"lost {_spread(lost, ' %')}" if lost else f"retransmitted {_spread(again)}"
            text = f"each way {_spread(sums, ' Mbit/s')}; {more}; {outcome.verdict.word}"
            figures.append(Figure(f"eight pairs, {engine}, flow control {control}, {protocol.upper()}", text))
    return figures


def start(runs: int) -> list[Figure]:
    """Seconds until a lab stands with every path checked, and what one ends in."""
    figures = []
    for size in (4, 8):
        plan = make_plan(
            parse_scenario(f"topology: {{kind: torus, sizes: [{size}, {size}]}}\nlab: {{dilation: 100}}", "up")
        )
        up, down = [], []
        for _ in range(runs):
            began = time.monotonic()
            with realtime.RealtimeEngine().build(plan, lambda text: None) as lab:
                up.append(time.monotonic() - began)
                assert lab.verify(plan) == []
                began = time.monotonic()
            down.append(time.monotonic() - began)
        figures.append(Figure(f"{size}×{size} torus, up", f"{_spread(up, ' s')}; down {_spread(down, ' s')}"))
    return figures


def same(runs: int) -> list[Figure]:
    """One UDP load over a shared link, simulated and sent by real hosts over the same switches."""
    figures = []
    for pairs, offered in ((2, 0.6), (4, 0.9), (4, 1.25)):
        found: dict[str, dict[str, list[float]]] = {}
        for run in range(runs):
            for engine in ("simulate", "realtime"):
                load = f"{{kind: iperf3, protocol: udp, offered_load: {offered}, seconds: 5, omit: 2, repeats: 1}}"
                text = f"topology: {{kind: mesh, sizes: [2], hosts_per_switch: {pairs}}}\nengine: {engine}\n"
                text += f"lab: {{dilation: 20, seed: {run + 1}}}\nworkloads: [{load}]"
                outcome, _ = _run(lambda text=text: make_plan(parse_scenario(text, "same")))  # type: ignore[misc]
                values = found.setdefault(engine, {})
                for metric, scale in (("goodput", 1e-6), ("loss", 100), ("latency_mean", 1e6)):
                    every = [scale * one.value for one in _of(outcome.samples, metric)]
                    values.setdefault(metric, []).append(statistics.mean(every))
        for metric, unit in (("goodput", "Mbit/s"), ("loss", "%"), ("latency_mean", "µs")):
            here, there = (statistics.median(found[engine][metric]) for engine in ("realtime", "simulate"))
            beyond = f"{100 * (here / there - 1):+.2f} %" if there else "–"
            text = f"{here:.4g} {unit}, simulated {there:.4g} {unit}; {beyond}"
            figures.append(Figure(f"{pairs} pairs over one link, {offered:g} of it offered, {metric}", text))
    return figures


def hops(runs: int) -> list[Figure]:
    """Processor time of the switches' process for each packet of a UDP flow, over one switch and over eight."""
    text = "topology: {kind: mesh, sizes: [8], hosts_per_switch: 2}\nengine: realtime\nlab: {dilation: 5}"
    plan = make_plan(parse_scenario(text, "hops"))
    argv = ("-u", "-b", "180M", "-l", "1448", "-t", "4")
    found: dict[int, list[float]] = {1: [], 8: []}
    with realtime.RealtimeEngine().build(plan, progress) as lab:
        lab.verify(plan)
        for _ in range(runs):
            for switches, host in ((1, 2), (8, 16)):
                server = Process("s", f"h{host}", ("iperf3", "-s", "-1"), 5201)
                client = Process("c", "h1", ("iperf3", "-c", f"10.0.0.{host}", *argv))
                seen = lab.run_load(LoadRequest((server, client), 60.0))
                used = seen.after.processes["switches"][0] - seen.before.processes["switches"][0]
                packets = seen.after.hosts[0].frames - seen.before.hosts[0].frames
                found[switches].append(1e6 * used / packets)
    ratio = [eight / one for one, eight in zip(found[1], found[8], strict=True)]
    figures = [
        Figure(f"a packet over {switches} switch{'es' if switches > 1 else ''}", _spread(values, " µs"))
        for switches, values in found.items()
    ]
    return [*figures, Figure("ratio", _spread(ratio))]


def whole(runs: int) -> list[Figure]:
    """All of `testbed run torus4x4 --engine realtime`, with kernels and jobs compiled before."""
    took, words = [], []
    for _ in range(runs + 1):
        began = time.monotonic()
        outcome, _ = _run(lambda: make_plan(load_scenario(find_scenario("torus4x4"), ["engine=realtime"])))
        took.append(time.monotonic() - began)
        words.append(outcome.verdict.word)
    return [Figure("torus4x4, whole, warm", f"{_spread(took[1:], ' s')}; {', '.join(words[1:])}")]


PARTS = {
    "udp": udp, "tcp": tcp, "latency": latency, "auto": auto, "shared": shared, "start": start, "same": same,
    "hops": hops, "whole": whole,
}  # fmt: skip


def in_real_time(part: str, runs: int) -> list[Figure]:
    """Measure one part, `runs` times."""
    return PARTS[part](runs)

"""Requests and responses in a lab."""

from __future__ import annotations

import pytest

from testbed.experiments.run.engines import run_scenario
from testbed.planning import make_plan
from testbed.results import load_run
from tests.fabrics import scenario_of

pytestmark = pytest.mark.lab

_LAB = (
    "topology: {kind: mesh, sizes: [3]}\nlab: {dilation: 100}\nworkloads:\n"
    "- {kind: rr, protocol: tcp, pattern: pairwise, response: 4000, repeats: 1}\n"
    "- {kind: rr, protocol: udp, pattern: all_to_all, at_once: true, repeats: 2}\n"
)


def test_every_pair_has_its_figures_in_real_world_units(tmp_path, untouched):
    outcome = run_scenario(make_plan(scenario_of(_LAB)), tmp_path, lambda text: None)
    run = load_run(outcome.folder)
    assert [load["title"] for load in run.manifest["loads"]] == ["rr tcp pairwise", "rr udp all_to_all"]
    for load, protocol, pairs, repeats in (("1", "tcp", 2, 1), ("2", "udp", 6, 2)):
        here = [sample for sample in run.samples if sample.labels.get("load") == load]
        for metric in ("transactions", "rtt_min", "rtt_mean", "rtt_p50", "rtt_p90", "rtt_p99", "rtt_max"):
            found = [sample for sample in here if sample.metric == metric]
            assert len(found) == pairs * repeats, metric
            assert {sample.labels["protocol"] for sample in found} == {protocol}
        times = {sample.value for sample in here if sample.metric == "rtt_mean"}
        # The lab's own time is some 0.1 to 100 ms; a hundredth of it is real-world time.
        assert all(1e-7 < time < 2e-3 for time in times)
        assert all(sample.value == 0 for sample in here if sample.metric == "requests_lost")
    raw = {file.name for file in (outcome.folder / "raw").rglob("*.txt")}
    assert "h1-h3.txt" in raw
    assert "Round trip, 99th percentile" in (outcome.folder / "report.html").read_text()

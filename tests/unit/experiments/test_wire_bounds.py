"""No figure beats the wire: what links allow, and what becomes of figures beyond it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testbed.base.model import Sample
from testbed.dataplane.predict import Least, transport, wire_shares
from testbed.dataplane.predict.bounds import AT_LEAST, AT_MOST
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.checks.wire_bounds import (
    add_wire_bound,
    behind_bounds,
    judge_goodput,
    judge_wire,
    read_unheld_share,
)
from testbed.experiments.run.loads.context import LoadOutcome
from testbed.experiments.run.loads.one_load import record_of
from testbed.planning import make_plan
from testbed.planning.rates import logical_ways, wires_of
from testbed.planning.wire_time import zero_load_latency
from testbed.results import ResultFolder
from tests.fabrics import plan_of, scenario_of

ROW = plan_of("mesh", sizes=[3])


def time(value, predicted=100e-6, **labels):
    return Sample("mpi_latency", value, "s", {"src": "h1", "dst": "h3", "bytes": "65536", **labels}, predicted)


def test_zero_load_latency_is_store_and_forward_over_all_links():
    # 88 bytes on a wire: 22 of payload, 28 + 14 of headers, 4 of check sequence and 8 of preamble; 12 of gap behind.
    assert zero_load_latency(ROW, 0, 2, 22) == pytest.approx(8 * (2 * 76 + 2 * 80) / 1e9)
    assert zero_load_latency(ROW, 0, 2, 22, held=False) == 0
    assert zero_load_latency(ROW, 1, 1, 22) == 0


def test_a_message_over_aggregated_links_takes_one_member():
    alone = plan_of("mesh", sizes=[2])
    bundle = make_plan(scenario_of("topology: {kind: mesh, sizes: [2], parallel_links: 2}\nlinks: {aggregate: true}\n"))
    assert bundle.bundles is not None
    assert zero_load_latency(bundle, 0, 1, 9000, "tcp") == pytest.approx(zero_load_latency(alone, 0, 1, 9000, "tcp"))


def test_shares_of_wires_are_payload_with_its_headers():
    wires = wires_of(ROW, transport("udp", 1470))
    flows = [(0, 2), (1, 2)]
    shares = wire_shares(wires, flows, logical_ways(ROW, flows), np.array([400e6, 500e6]))
    named = {wires.name(wire): share for wire, share in enumerate(shares) if share}
    assert named == {
        "s1→s2": pytest.approx(0.4 * 1540 / 1470),
        "s2→s3": pytest.approx(0.9 * 1540 / 1470),
        "h1→s1": pytest.approx(0.4 * 1536 / 1470),
        "h2→s2": pytest.approx(0.5 * 1536 / 1470),
        "s3→h3": pytest.approx(0.9 * 1536 / 1470),
    }


@pytest.mark.parametrize(("beyond", "found"), [(0.99, 0), (1.019, 0), (1.03, 1)])
def test_goodput_that_no_link_has_room_for_is_invalid(beyond, found):
    wires = wires_of(ROW, transport("udp", 1470))
    flows = [(0, 2), (1, 2), (2, 0)]
    most = 1e9 * 1470 / 1540
    goodput = np.array([0.5 * most * beyond, 0.5 * most * beyond, np.nan])
    findings = judge_goodput(wires, flows, logical_ways(ROW, flows), goodput)
    assert [verdict for verdict, _ in findings] == [Verdict.INVALID] * found
    if found:
        assert findings[0][1] == (
            "what arrived takes 103.0 % of what the link s2→s3 can carry: it was not the links that made it"
        )


def test_a_time_below_that_of_the_links_is_invalid_and_says_so():
    assert judge_wire([time(98.5e-6), time(150e-6)]) == []
    ((verdict, sentence),) = judge_wire([time(97e-6), time(85e-6)])
    assert verdict is Verdict.INVALID
    assert sentence == (
        "mpi_latency h1→h3 65536 B is 85 µs where the links allow at least 100 µs: it was not the links that made it"
    )


def test_a_rate_above_that_of_the_links_is_invalid_and_says_so():
    rate = Sample("mpi_bandwidth", 1.134e9, "bit/s", {"bytes": "65536"}, 0.93e9)
    ((verdict, sentence),) = judge_wire([rate])
    assert verdict is Verdict.INVALID
    assert "mpi_bandwidth 65536 B is 1.134 Gbit/s where the links allow at most 930 Mbit/s" in sentence


def test_what_the_ports_do_not_hold_is_no_fault_but_told():
    lone, long = Least(10e-6, 0.0), Least(100e-6, 92e-6)
    marked = add_wire_bound(Sample("rtt_min", 1e-6, "s"), lone)
    assert (marked.predicted, marked.labels, read_unheld_share(marked)) == (10e-6, {"unheld": "1.00"}, 1.0)
    assert add_wire_bound(Sample("rtt_min", 1e-6, "s"), Least(10e-6, 10e-6)).labels == {}
    assert judge_wire([marked]) == []
    assert judge_wire([add_wire_bound(Sample("mpi_latency", 91e-6, "s"), long)]) == []
    assert len(judge_wire([add_wire_bound(Sample("mpi_latency", 89e-6, "s"), long)])) == 1
    rate = add_wire_bound(Sample("mpi_bandwidth", 1.0, "bit/s"), long, 1000.0)
    assert rate.predicted == pytest.approx(1e7)
    assert "at most 10.87 Mbit/s" in judge_wire([Sample("mpi_bandwidth", 1.2e7, "bit/s", rate.labels, 1e7)])[0][1]


def alltoall(ratio, **labels):
    return Sample("mpi_alltoall_time", ratio * 1e-3, "s", {"statistic": "median", **labels}, 1e-3)


@pytest.mark.parametrize(
    ("samples", "behind"),
    [
        ([], None),
        ([alltoall(1.065)], 0.065),
        ([alltoall(0.99)], -0.01),
        ([alltoall(1.065), alltoall(1.2)], 0.2),
        # The median counts, and of ranks that of the slowest.
        ([alltoall(1.065), alltoall(1.5, statistic="max"), alltoall(0.99, statistic="min")], 0.065),
        ([alltoall(0.99, statistic="min")], None),
        ([alltoall(1.2, statistic="max", over="ranks")], 0.2),
        # Times of lone frames are software's, and show nothing either way.
        ([time(300e-6, unheld="1.00")], None),
        ([alltoall(1.065), time(300e-6, unheld="1.00")], 0.065),
        ([alltoall(1.065), time(300e-6, unheld="0.07")], 2.0),
        ([alltoall(1.065), time(300e-6, unheld="0.20")], 2.0),
        ([Sample("mpi_alltoall_bandwidth", 0.8e9, "bit/s", {}, 1e9)], 0.25),
        ([Sample("mpi_alltoall_bandwidth", 0.0, "bit/s", {}, 1e9)], math.inf),
        ([Sample("npb_lab_time", 5.0, "s"), Sample("goodput", 1e9, "bit/s", {}, 1e9)], None),
        ([Sample("mpi_alltoall_time", 1e-3, "s", {}, None)], None),
    ],
)
def test_how_far_a_job_is_behind_what_its_links_allow(samples, behind):
    found = behind_bounds(samples)
    assert found is None if behind is None else found == pytest.approx(behind)


def test_what_takes_no_time_has_no_bound():
    sample = Sample("mpi_latency", 1e-6, "s")
    assert add_wire_bound(sample, Least(0.0, 0.0)) is sample


@pytest.mark.parametrize(("use", "invalid"), [(1.0075, False), (1.038, True)])
def test_a_link_that_carried_more_than_it_can_is_invalid(use, invalid):
    samples = [Sample("link_use", value, "ratio", {"channel": "s1→s2"}, 0.9) for value in (0.5, use)]
    findings = judge_wire(samples)
    assert bool(findings) is invalid
    if invalid:
        assert findings == [(Verdict.INVALID, "the link s1→s2 carried 103.8 % of what it can")]


def test_an_expectation_is_no_bound():
    assert not AT_LEAST & AT_MOST
    assert judge_wire([Sample("goodput", 2e9, "bit/s", {}, 1e9)]) == []


@pytest.mark.parametrize(("changes", "verdict"), [([], "invalid"), ([{"events": []}], "pass")])
def test_of_a_load_whose_links_change_the_plan_says_nothing(changes, verdict, tmp_path):
    samples = [Sample("link_use", 1.5, "ratio", {"channel": "s1→s2"}, 0.9)]
    folder = ResultFolder(tmp_path, ROW)
    record = record_of(
        {"load": "1", "kind": "iperf3"}, folder, lambda: LoadOutcome(samples=samples, changes=list(changes))
    )
    assert record.entry["verdict"] == verdict

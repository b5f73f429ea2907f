"""The last lines of a run, and how long it is expected to take."""

from __future__ import annotations

from testbed.base.model import Sample
from testbed.experiments.report.key_figures import headline
from testbed.experiments.run.checks.fidelity import OverloadReason, Verdict, is_cpu_limited, too_slow
from testbed.experiments.run.run_duration import expected_seconds
from testbed.planning import make_plan
from tests.fabrics import scenario_of

SIZE = {"topology": {"kind": "ring", "switches": 4}, "routing": "updown", "lab": {"dilation": 100}}


def sample(metric, value, unit, load="1", kind="iperf3", predicted=None):
    return Sample(metric, value, unit, {"load": load, "kind": kind}, predicted)


def test_the_first_figure_of_each_load_then_the_fullest_link():
    samples = [
        sample("goodput", 9e8, "bit/s", predicted=1e9), sample("goodput_mean", 9e8, "bit/s", predicted=1e9),
        sample("rtt_mean", 2e-5, "s", "2", "ping"), sample("link_use", 0.5, "ratio"), sample("link_use", 0.9, "ratio"),
        sample("loss", 0.01, "ratio"),
    ]  # fmt: skip
    assert headline(samples) == [
        "iperf3: Goodput, mean 900 Mbit/s (−10 % from the prediction)", "ping: Round trip, mean 20 µs",
        "fullest link 90 %",
    ]  # fmt: skip
    software = Sample("rtt_mean", 1e-6, "s", {"load": "2", "kind": "ping", "unheld": "0.6"}, 7e-6)
    assert headline([software, samples[0]]) == ["iperf3: Goodput 900 Mbit/s (−10 % from the prediction)"]
    assert headline([sample("script_lab_time", 2.5, "s", kind="script")])[0].startswith("script: Program, all hosts")
    assert headline([]) == []


def test_a_bound_is_called_one():
    for metric, unit, words in (
        ("mpi_allreduce_time", "s", "(+179 % from the lower bound)"),
        ("mpi_bandwidth", "bit/s", "(−50 % from the upper bound)"),
    ):
        value = 2.79 if unit == "s" else 0.5
        (text,) = headline([sample(metric, value, unit, kind="mpi", predicted=1.0)])
        assert text.endswith(words)


def test_how_long_a_run_takes_is_known_where_its_loads_say_it():
    def of(*loads):
        return make_plan(scenario_of({**SIZE, "workloads": list(loads)}))

    udp = {"kind": "iperf3", "protocol": "udp", "seconds": 10, "omit": 0, "repeats": 3}
    built = expected_seconds(of(udp), built=True)
    assert built is not None
    assert 30 < built < 45
    assert (expected_seconds(of(udp)) or 0.0) > built
    assert expected_seconds(of(udp, {"kind": "npb", "kernel": "EP"})) is None


def test_a_reserve_for_want_of_time_alone_is_told_apart():
    warn, slow = (Verdict.WARN, "lost frames"), (Verdict.WARN, OverloadReason("idle only 5 %"))
    assert is_cpu_limited([slow])
    assert not is_cpu_limited([])
    assert not is_cpu_limited([warn])
    assert not is_cpu_limited([slow, warn])
    assert not is_cpu_limited([(Verdict.INVALID, OverloadReason("idle 0 %"))])
    assert not too_slow([slow])

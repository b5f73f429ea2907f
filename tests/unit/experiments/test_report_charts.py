import pytest

from testbed.base.model import Sample
from testbed.experiments.report.charts import Summary, flow_chart, load_charts


def goodput(flows, repeats=3, predicted=950e6):
    return [
        Sample("goodput", (900 + repeat) * 1e6, "bit/s",
               {"repeat": str(repeat), "src": f"h{flow}", "dst": f"h{flow + 1}"}, predicted)
        for flow in range(1, flows + 1)
        for repeat in range(repeats)
    ]  # fmt: skip


def only(drawn):
    (chart,) = drawn
    return chart


@pytest.mark.parametrize("flows", [1, 16, 17, 33, 64])
def test_up_to_64_flows_have_a_bar_each(flows):
    chart = only(load_charts(goodput(flows), "c"))
    for flow in range(1, flows + 1):
        assert f">h{flow}→h{flow + 1}</text>" in chart.svg
    for word in ("measured", "predicted", "min to max"):
        assert f">{word}</text>" in chart.svg
    assert "Goodput (Mbit/s)" in chart.svg
    assert f"each of {flows} flows" in chart.caption
    assert "3 repeats" in chart.caption


@pytest.mark.parametrize("flows", [65, 240, 4032])
def test_more_flows_become_a_distribution(flows):
    chart = only(load_charts(goodput(flows), "c"))
    assert ">h1→h2</text>" not in chart.svg
    assert "Flows, each curve in falling order" in chart.svg
    assert "Measured against predicted (%)" in chart.svg


def test_distribution_without_prediction():
    chart = only(load_charts(goodput(100, predicted=None), "c"))
    assert "predicted" not in chart.svg


def test_one_repeat_has_no_whiskers():
    chart = only(load_charts(goodput(4, repeats=1), "c"))
    assert "min to max" not in chart.svg
    assert "repeats" not in chart.caption


def test_no_prediction_no_bar_for_it():
    assert "predicted" not in only(load_charts(goodput(4, predicted=None), "c")).svg


def test_figures_without_a_flow_or_size_have_no_chart():
    samples = [Sample("cpu_idle", 0.5, "ratio", {}), Sample("mpi_barrier_time", 1e-3, "s", {"kind": "mpi"})]
    assert load_charts(samples, "c") == []
    assert load_charts([], "c") == []


def test_one_message_size_is_no_curve():
    assert load_charts([Sample("mpi_alltoall_time", 1e-3, "s", {"bytes": "20000"}, 9e-4)], "c") == []


def test_curves_by_message_size():
    samples = [
        Sample(metric, value * int(size), unit, {"bytes": size, "from": "0", "to": "1"}, predicted)
        for size in ("64", "1024", "65536")
        for metric, value, unit, predicted in (
            ("mpi_latency", 1e-6, "s", None),
            ("mpi_alltoall_time", 1e-6, "s", 1e-4),
        )
    ]
    chart = only(load_charts(samples, "c"))
    for text in ("64 B", "1 KiB", "64 KiB", "MPI latency", "MPI all-to-all time", "lower bound"):
        assert f">{text}</text>" in chart.svg


def test_round_trips_span_from_min_to_max():
    samples = [
        Sample(metric, value, "s", {"src": "h1", "dst": "h2"})
        for metric, value in (("rtt_min", 1e-4), ("rtt_mean", 2e-4), ("rtt_max", 5e-4))
    ]
    chart = only(load_charts(samples, "c"))
    assert "Round-trip time (µs)" in chart.svg
    assert ">min to max</text>" in chart.svg


def test_times_that_are_softwares_are_marked_where_drawn():
    trips = [Sample("rtt_mean", 2e-4, "s", {"src": "h1", "dst": "h2", "unheld": "1.00"})]
    assert ">Round-trip time † (µs)</text>" in only(load_charts(trips, "c")).svg
    sizes = [Sample("mpi_latency", 1e-6, "s", {"bytes": size, "unheld": "0.06"}) for size in ("64", "1024")]
    assert ">MPI latency †</text>" in only(load_charts(sizes, "c")).svg


def test_zero_goodput_is_drawn():
    assert "<svg" in flow_chart([Summary("h1→h2", 0.0, 0.0, 0.0, 0.0)] * 20, "Goodput", "bit/s", "c")

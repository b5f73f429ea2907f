from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import pytest

from testbed.base.errors import InputError
from testbed.base.model import Sample
from testbed.experiments.compare import compare
from testbed.experiments.compare.comparison_table import COLUMNS, as_csv, as_object, table_text
from testbed.results.store import LoadEntry
from tests.runs import UDP, goodput, head, run_of, text_of

FLAT = "{kind: flat, hosts: 4}"
TORUS = "{kind: torus, sizes: [4]}"
TREE = "{kind: tree, switches: 4}"
MPI = "{kind: mpi, job: fabric_bench}"


def flat(*means, name="flat4", verdict="pass", folder="", **more):
    return run_of(
        text_of(FLAT, UDP, **more),
        goodput(*means),
        [head(verdict=verdict)],
        name=name,
        folder=folder or f"results/{name}",
    )


def torus(*means, verdict="pass", reasons=(), folder="results/torus", name="torus4", **more):
    loads = [head(1, "iperf3 udp transpose", verdict, *reasons)]
    samples = goodput(*means) if verdict != "fail" else []
    return run_of(text_of(TORUS, UDP, **more), samples, loads, name=name, folder=folder)


def spread_of(row):
    assert row.spread is not None
    return row.spread


def rows_of(comparison):
    return {row.scenario: row for row in comparison.rows}


def latencies(load, *sizes, factor=1.0, **labels):
    return [
        Sample("mpi_latency", factor * (1e-5 + size * 1e-9) * share, "s",
               {"load": str(load), "kind": "mpi", "job": "fabric_bench", "bytes": str(size), "statistic": statistic,
                "src": "0", "dst": "3", **labels})
        for size in sizes
        for statistic, share in (("min", 0.9), ("median", 1.0), ("max", 3.0))
    ]  # fmt: skip


def refused(*runs, **options):
    with pytest.raises(InputError) as error:
        compare(list(runs), **options)
    return str(error.value)


def test_figures_are_means_over_flows_and_medians_over_repeats():
    rows = rows_of(compare([flat(9e8, 8e8, 9.4e8), torus(4.5e8, 4.6e8, 4.4e8)]))
    assert rows["flat4"].spread.median == 9e8
    assert rows["flat4"].spread.count == 3
    assert rows["flat4"].over == "repeats"
    assert rows["flat4"].predicted == 1e9
    assert rows["torus4"].relative == 0.5
    assert rows["torus4"].gap == pytest.approx(-0.55)


def test_repeats_of_a_scenario_count_once_a_run():
    runs = [flat(9e8), torus(4e8, 4.2e8, 4.6e8, folder="a"), torus(5e8, 5.2e8, 5.6e8, folder="b")]
    row = rows_of(compare(runs))["torus4"]
    assert (row.spread.count, row.over) == (2, "runs")
    assert (row.spread.minimum, row.spread.maximum) == (4.2e8, 5.2e8)


def test_an_invalid_run_is_never_averaged_in():
    runs = [flat(9e8), torus(4.5e8, folder="a"), torus(8.8e8, verdict="invalid", reasons=["busy"], folder="b")]
    found = compare(runs)
    row = rows_of(found)["torus4"]
    assert (row.spread.median, row.spread.count, row.left_out, row.verdict) == (4.5e8, 1, 1, "pass")
    assert [(one.folder, one.verdict, one.reasons) for one in found.left_out] == [("b", "invalid", ("busy",))]


def test_only_invalid_runs_are_shown_but_have_no_relation():
    runs = [flat(9e8), torus(4.5e8, verdict="invalid")]
    row = rows_of(compare(runs))["torus4"]
    assert (row.verdict, row.is_usable, row.spread.median, row.relative) == ("invalid", False, 4.5e8, None)
    assert "(450)" in table_text(compare(runs))


def test_an_invalid_baseline_is_no_baseline():
    found = compare([flat(9e8, verdict="invalid"), torus(4.5e8)])
    assert rows_of(found)["torus4"].relative is None
    assert any("Not relative, for flat4 has no usable figure beside it" in note for note in found.notes)


def test_a_failed_run_is_listed_and_has_no_figure():
    found = compare([flat(9e8), torus(verdict="fail", reasons=["server-3: did not end in 20 s"])])
    row = rows_of(found)["torus4"]
    assert (row.verdict, row.spread, row.relative) == ("fail", None, None)
    assert found.left_out[0].reasons == ("server-3: did not end in 20 s",)
    assert "left out: torus4, iperf3 udp transpose: fail: server-3: did not end in 20 s" in table_text(found)


def test_a_run_worse_than_its_loads_is_worse_in_all_of_them():
    shaped = run_of(
        text_of(TORUS, UDP), goodput(4e8), [head()], name="torus4", verdict="invalid", reasons=["shaping changed: s1"]
    )
    found = compare([flat(9e8), shaped])
    assert rows_of(found)["torus4"].verdict == "invalid"
    assert found.left_out[0].reasons == ("shaping changed: s1",)


def test_a_reserve_is_kept_and_told():
    found = compare([flat(9e8), torus(4.5e8, verdict="warn", reasons=["busy"])])
    assert (rows_of(found)["torus4"].verdict, rows_of(found)["torus4"].relative) == ("warn", 0.5)
    assert [one.verdict for one in found.warned] == ["warn"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("torus", "tree", "flat"), "flat"), (("torus", "tree"), "tree"), (("torus", "torus2"), "torus")],
)
def test_the_baseline_is_flat_or_tree_or_the_first(names, expected):
    kinds = {"flat": FLAT, "tree": TREE, "torus": TORUS, "torus2": TORUS}
    runs = [run_of(text_of(kinds[name], UDP), goodput(9e8), name=name) for name in names]
    found = compare(runs)
    assert found.baseline == expected
    assert found.variants[0].label == expected


def test_a_baseline_can_be_named_by_scenario_or_folder():
    runs = [flat(9e8), torus(4.5e8, folder="results/20260101-torus")]
    assert rows_of(compare(runs, baseline="torus4"))["flat4"].relative == 2.0
    assert compare(runs, baseline="20260101-torus").baseline == "torus4"
    assert refused(*runs, baseline="torus5") == (
        "baseline='torus5': no run is of this scenario. Did you mean \"torus4\"? Known: flat4, torus4"
    )


def test_settings_that_differ_are_in_the_name_and_have_a_match():
    runs = [flat(9e8, dilation=100), flat(8e8, dilation=200), torus(4.5e8, dilation=100), torus(2e8, dilation=200)]
    found = compare(runs)
    assert [row.scenario for row in found.rows] == [
        "flat4 dilation=100", "flat4 dilation=200", "torus4 dilation=100", "torus4 dilation=200",
    ]  # fmt: skip
    assert [row.relative for row in found.rows] == [1.0, 1.0, 0.5, 0.25]
    assert [row.dilation for row in found.rows] == [100, 200, 100, 200]
    assert any(note.startswith("Dilations differ: 100 in flat4 dilation=100") for note in found.notes)
    assert "dilation" in table_text(found).splitlines()[0]


def test_a_load_that_ran_again_has_the_dilation_it_had():
    loads: list[LoadEntry] = [{**head(1, "iperf3 udp transpose"), "dilation": 400.0}]
    again = run_of(text_of(TORUS, UDP, dilation=200), goodput(4.5e8), loads, name="torus4")
    found = compare([flat(9e8, dilation=200), again])
    assert [row.dilation for row in found.rows] == [200, 400]
    assert any("Dilations differ: 200 in flat4; 200 and 400 in torus4." in note for note in found.notes)


def test_what_has_no_counterpart_in_the_baseline_is_not_relative():
    runs = [flat(9e8, dilation=100), flat(8e8, dilation=200), torus(4.5e8, dilation=400)]
    found = compare(runs)
    assert rows_of(found)["torus4"].relative is None
    one = compare(runs, baseline="flat4 dilation=100")
    assert rows_of(one)["torus4"].relative == 0.5


def by_routing(*kinds):
    texts = {kind: text_of(TORUS, UDP) + f"routing: {kind}\n" for kind in kinds}
    return [
        run_of(texts[kind], goodput(4e8 + 1e8 * number), [head(1, "iperf3 udp transpose")], name="torus4", folder=kind)
        for number, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize("baseline", [None, "torus4"])
def test_settings_of_one_scenario_are_compared_with_its_first(baseline):
    found = compare(by_routing("dor", "updown", "sr"), baseline=baseline)
    assert found.baseline == "torus4 dor"
    assert {row.scenario: row.relative for row in found.rows} == {
        "torus4 dor": 1,
        "torus4 updown": 1.25,
        "torus4 sr": 1.5,
    }
    assert "relative to torus4 dor" in table_text(found)
    named = compare(by_routing("dor", "updown", "sr"), baseline="torus4 sr")
    assert rows_of(named)["torus4 dor"].relative == pytest.approx(2 / 3)


def test_settings_of_scenarios_are_compared_at_equal_settings():
    runs = [flat(8e8, dilation=100), flat(9e8, dilation=200), torus(4e8, dilation=100), torus(3e8, dilation=200)]
    found = rows_of(compare(runs))
    assert found["torus4 dilation=100"].relative == 0.5
    assert found["torus4 dilation=200"].relative == pytest.approx(1 / 3)


def test_an_equal_scenario_with_another_plan_is_no_repeat():
    one, other = torus(4e8, folder="a"), torus(5e8, folder="b")
    other = replace(other, plan=replace(other.plan, digest="0123"))
    found = compare([one, other])
    assert [row.scenario for row in found.rows] == [f"torus4 plan={one.plan.digest}", "torus4 plan=0123"]


def test_loads_are_equal_by_what_they_ask_not_by_their_place():
    first = run_of(
        text_of(FLAT, MPI, UDP), [*latencies(1, 1), *goodput(9e8, load=2)], [head(1, "mpi"), head(2)], name="flat4"
    )
    found = compare([first, torus(4.5e8)])
    assert [(row.load, row.metric) for row in found.rows] == [("iperf3 udp transpose", "goodput")] * 2
    assert any("Only one scenario has these loads, so they are not compared: mpi" in note for note in found.notes)


def test_what_is_offered_makes_another_load_its_length_does_not():
    longer = "{kind: iperf3, protocol: udp, pattern: transpose, seconds: 30, repeats: 1}"
    offered = "{kind: iperf3, protocol: udp, pattern: transpose, offered_load: 0.5}"
    one = run_of(text_of(FLAT, longer), goodput(9e8), name="flat4")
    assert compare([one, torus(4.5e8)]).rows
    two = run_of(text_of(FLAT, offered), goodput(9e8), name="flat4")
    assert refused(two, torus(4.5e8)) == (
        "these runs cannot be compared, no load is common to two of them: flat4 has iperf3 udp transpose; torus4 has "
        "iperf3 udp transpose. Equal titles are different loads where their settings differ"
    )
    both = [
        run_of(text_of(kind, UDP, offered), [*goodput(9e8), *goodput(5e8, load=2)], [head(1), head(2)], name=name)
        for kind, name in ((FLAT, "flat4"), (TORUS, "torus4"))
    ]
    assert list(dict.fromkeys(row.load for row in compare(both).rows)) == [
        "iperf3 udp transpose, offered_load 1.0", "iperf3 udp transpose, offered_load 0.5",
    ]  # fmt: skip


def test_runs_without_a_common_load_are_refused_with_theirs():
    other = run_of(text_of(FLAT, MPI), latencies(1, 1), [head(1, "mpi fabric_bench")], name="flat4")
    assert refused(other, torus(4.5e8)) == (
        "these runs cannot be compared, no load is common to two of them: flat4 has mpi fabric_bench; torus4 has "
        "iperf3 udp transpose"
    )


def test_one_run_and_repeats_of_one_scenario_are_no_comparison():
    assert refused(torus(4e8)) == "a comparison needs two result folders or more"
    assert refused(torus(4e8, folder="a"), torus(5e8, folder="b")) == (
        "all 2 runs are repeats of torus4; each=True compares them one by one"
    )
    found = compare([torus(4e8, folder="r/a"), torus(5e8, folder="r/b")], each=True)
    assert [(row.scenario, row.relative) for row in found.rows] == [("a", 1.0), ("b", 1.25)]


def test_nothing_but_failures_is_refused_with_their_reasons():
    one = run_of(text_of(FLAT, UDP), [], [head(1, "iperf3 udp transpose", "fail", "no iperf3")], name="flat4")
    other = torus(verdict="fail", reasons=["no iperf3"])
    assert refused(one, other) == "no run has a figure to compare: iperf3 udp transpose fail: no iperf3"


def test_metrics_beside_others_are_shown_when_asked_for():
    def with_use(run, use):
        run_samples = [*run.samples, Sample("link_use", use, "ratio", {"load": "1", "channel": "s1→s2"}, 0.5)]
        return run_of(text_of(FLAT if run.plan.scenario.name == "flat4" else TORUS, UDP), run_samples, [head()],
                      name=run.plan.scenario.name)  # fmt: skip

    runs = [with_use(flat(9e8), 0.4), with_use(torus(4.5e8), 0.2)]
    assert {row.metric for row in compare(runs).rows} == {"goodput"}
    assert {row.metric for row in compare(runs, metrics=["link_use"]).rows} == {"link_use"}
    assert refused(*runs, metrics=["goodputs", "link_use"]) == (
        'goodputs: no run has this metric. Did you mean "goodput"? There are: goodput, link_use'
    )


def test_of_a_jobs_own_statistics_the_median_stands_for_it():
    runs = [
        run_of(text_of(kind, MPI), latencies(1, 1, 1024, factor=factor), [head(1, "mpi fabric_bench")], name=name)
        for kind, name, factor in ((FLAT, "flat4", 1.0), (TORUS, "torus4", 1.5))
    ]
    found = compare(runs)
    assert [(row.detail, row.scenario, row.relative) for row in found.rows] == [
        ("1 B", "flat4", 1.0), ("1 B", "torus4", pytest.approx(1.5)),
        ("1 KiB", "flat4", 1.0), ("1 KiB", "torus4", pytest.approx(1.5)),
    ]  # fmt: skip
    assert spread_of(found.rows[0]).median == pytest.approx(1e-5 + 1e-9)
    assert spread_of(found.rows[0]).interval is None
    assert any(note.startswith("A single value has no interval") for note in found.notes)


def test_over_ranks_the_slowest_stands_for_the_job():
    def times(factor):
        return [
            Sample("mpi_allreduce_time", factor * seconds, "s",
                   {"load": "1", "bytes": "64", "over": "ranks", "statistic": statistic},
                   1e-5 if statistic == "max" else None)
            for statistic, seconds in (("min", 1e-5), ("mean", 2e-5), ("max", 4e-5))
        ]  # fmt: skip

    runs = [
        run_of(text_of(kind, MPI), times(factor), [head(1, "mpi collectives")], name=name)
        for kind, name, factor in ((FLAT, "flat4", 1.0), (TORUS, "torus4", 2.0))
    ]
    assert [(spread_of(row).median, row.predicted) for row in compare(runs).rows] == [(4e-5, 1e-5), (8e-5, 1e-5)]


def test_other_labels_that_vary_are_kept_apart():
    def groups(load, *ranks):
        return [sample for rank in ranks for sample in latencies(load, 4, ranks=str(rank))]

    runs = [
        run_of(text_of(kind, MPI), groups(1, 2, 4), [head(1, "mpi fabric_bench")], name=name)
        for kind, name in ((FLAT, "flat4"), (TORUS, "torus4"))
    ]
    assert [row.detail for row in compare(runs).rows] == ["4 B, ranks 2"] * 2 + ["4 B, ranks 4"] * 2


def test_figures_that_are_no_numbers_are_left_out():
    broken = run_of(text_of(TORUS, UDP), [*goodput(4e8), *goodput(math.nan, load=1)], name="torus4")
    assert rows_of(compare([flat(9e8), broken]))["torus4"].spread.median == 4e8


def test_along_a_key_runs_are_one_line_and_repeats_stay_repeats():
    load = "{kind: iperf3, protocol: udp}"
    runs = [
        run_of(
            text_of(f"{{kind: mesh, sizes: [2], hosts_per_switch: {pairs}}}", load),
            goodput(9e8 / pairs, predicted=None),
            [head(1, "iperf3 udp neighbour")], name="pairs", folder=f"{pairs}-{repeat}",
        )
        for pairs in (4, 1, 2)
        for repeat in range(2)
    ]  # fmt: skip
    found = compare(runs, swept="topology.hosts_per_switch")
    assert [(row.scenario, row.x, spread_of(row).median, spread_of(row).count) for row in found.rows] == [
        ("pairs", 1.0, 9e8, 2), ("pairs", 2.0, 4.5e8, 2), ("pairs", 4.0, 2.25e8, 2),
    ]  # fmt: skip
    assert not any("Numbers of hosts differ" in note for note in found.notes)
    assert refused(*runs, swept="topology.hosts").startswith("4-0: has no number at topology.hosts of its scenario")


def test_along_paths_figures_stand_at_the_switches_passed():
    def pings(far):
        return [
            Sample("rtt_mean", seconds, "s", {"load": "1", "kind": "ping", "src": source, "dst": destination})
            for source, destination, seconds in (("h1", "h2", 1e-5), ("h1", "h3", 2e-5), ("h2", far, 2.2e-5))
        ]

    chain = text_of("{kind: mesh, sizes: [4], hosts_per_switch: 2}", "{kind: ping}")
    runs = [run_of(chain, pings("h4"), [head(1, "ping")], name="chain")]
    found = compare(runs, swept="switches_on_path", alone=True)
    assert [(row.x, spread_of(row).median) for row in found.rows] == [(1.0, 1e-5), (2.0, pytest.approx(2.1e-5))]
    by_rank = run_of(
        text_of("{kind: mesh, sizes: [4], hosts_per_switch: 2}", MPI), latencies(1, 64), [head(1, "mpi")], name="chain"
    )
    assert [row.x for row in compare([by_rank], swept="switches_on_path", alone=True).rows] == [2.0]


def test_along_the_message_size_a_size_is_a_place_and_no_detail():
    run = run_of(text_of(TORUS, MPI), latencies(1, 1, 1024), [head(1, "mpi")], name="torus4")
    assert [(row.x, row.detail) for row in compare([run], swept="message_size", alone=True).rows] == [
        (1.0, ""), (1024.0, ""),
    ]  # fmt: skip


def test_different_machines_and_numbers_of_hosts_are_told():
    other = run_of(text_of("{kind: torus, sizes: [6]}", "{kind: iperf3, protocol: udp}"), goodput(4e8),
                   [head(1, "iperf3 udp neighbour")], name="torus6",
                   environment={"kernel": "Linux 6.8", "datapath": "kernel", "processors": 2})  # fmt: skip
    one = run_of(
        text_of(FLAT, "{kind: iperf3, protocol: udp}"), goodput(9e8), [head(1, "iperf3 udp neighbour")], name="f"
    )
    notes = compare([one, other]).notes
    assert "The runs were not made under equal conditions: kernel differ." in notes
    assert any(note.startswith("Numbers of hosts differ: 4 in f; 6 in torus6.") for note in notes)


def test_a_verdict_that_is_none_is_damage():
    odd = torus(4e8)
    odd.manifest["loads"][0]["verdict"] = "maybe"
    assert refused(flat(9e8), odd) == (
        'results/torus/manifest.json: is damaged: "maybe" is not a verdict; there are pass, warn, invalid, fail'
    )


GOLDEN = """\
  scenario  verdict             repeats  median     95 % interval  predicted     gap  relative

iperf3 udp transpose: Goodput (Mbit/s)
  flat4     warn              3 repeats     940    935.6 to 947.1      1,000  −6.0 %     ×1.00
  torus4    pass, 1 left out   1 repeat   455.5                        1,000   −54 %    ×0.485
  tree4     invalid           2 repeats   (301)  (288.3 to 313.7)      1,000   −70 %
  ring4     fail

relative to flat4; figures in brackets must not be used
note: 95 % confidence intervals are Student's t over the repeats (2 to 5 of them), for their mean.
note: A single value has no interval: repeat the run, or the load in it.
left out: torus4, iperf3 udp transpose: invalid: busy (results/torus-2)
left out: tree4, iperf3 udp transpose: invalid: 12 frames were lost; and more (results/tree)
left out: ring4, iperf3 udp transpose: fail: no reason given (results/ring4)
with warnings: flat4, iperf3 udp transpose: warn: tasks waited (results/flat4)
"""


def golden_runs():
    tree = run_of(text_of(TREE, UDP), goodput(3e8, 3.02e8),
                  [head(1, "iperf3 udp transpose", "invalid", "12 frames were lost", "and more")], name="tree4",
                  folder="results/tree")  # fmt: skip
    ring = run_of(text_of("{kind: ring, switches: 4}", UDP), [], [head(verdict="fail")], name="ring4")
    base = run_of(text_of(FLAT, UDP), goodput(9.4e8, 9.44e8, 9.4e8), [head(1, "iperf3 udp transpose", "warn",
                  "tasks waited")], name="flat4")  # fmt: skip
    return [
        torus(4.555e8), torus(8e8, verdict="invalid", reasons=["busy"], folder="results/torus-2"), tree, ring, base,
    ]  # fmt: skip


def test_the_table_as_text():
    assert table_text(compare(golden_runs())) == GOLDEN


def test_csv_and_object_hold_every_figure_unrounded():
    found = compare(golden_runs())
    lines = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert tuple(lines[0]) == COLUMNS
    assert [(line["scenario"], line["verdict"], line["usable"]) for line in lines] == [
        ("flat4", "warn", "True"), ("torus4", "pass", "True"), ("tree4", "invalid", "False"),
        ("ring4", "fail", "False"),
    ]  # fmt: skip
    torus_line = lines[1]
    assert float(torus_line["median"]) == 4.555e8
    assert float(torus_line["relative"]) == 4.555e8 / 9.4e8
    assert (torus_line["ci95_low"], torus_line["ci95_method"], torus_line["baseline"]) == ("", "none", "flat4")
    assert (lines[3]["median"], lines[3]["repeats"]) == ("", "0")
    plain = json.loads(json.dumps(as_object(found), allow_nan=False))
    assert plain["rows"][0]["median"] == 9.4e8
    assert plain["left_out"][0]["folder"] == "results/torus-2"
    assert plain["baseline"] == "flat4"


def test_a_bound_is_marked_as_one():
    samples = [Sample("mpi_alltoall_time", 3e-3, "s", {"load": "1", "bytes": "20000", "statistic": "median"}, 2e-3)]
    runs = [
        run_of(text_of(kind, MPI), samples, [head(1, "mpi")], name=name) for kind, name in ((FLAT, "f"), (TORUS, "t"))
    ]
    assert "≥ 2" in table_text(compare(runs))
    assert json.loads(json.dumps(as_object(compare(runs))))["rows"][0]["bound"] == "≥"


def test_the_order_of_runs_changes_only_the_order_of_rows():
    runs = golden_runs()
    one = {(row.scenario, row.spread, row.relative) for row in compare(runs, baseline="flat4").rows}
    assert one == {(row.scenario, row.spread, row.relative) for row in compare(runs[::-1], baseline="flat4").rows}


def kernel_run(name, topology, seconds, *, code="testbed", text="{kind: npb, kernel: CG}"):
    labels = {"load": "1", "kind": "npb", "kernel": "CG", "class": "S", "code": code, "time": "laboratory"}
    of_ranks = {**labels, "over": "ranks"}
    samples = [
        Sample("npb_lab_time", seconds, "s", labels),
        Sample("npb_lab_communication_time", 0.5 * seconds, "s", {**of_ranks, "statistic": "median"}),
        Sample("npb_lab_communication_time", 0.8 * seconds, "s", {**of_ranks, "statistic": "max"}),
        Sample("npb_lab_rate", 1e6, "op/s", labels),
        Sample("mpi_bytes_sent", 5.0, "B", {**labels, "src": "h1", "dst": "h2"}),
    ]
    return run_of(text_of(topology, text), samples, [head(1, "npb CG S")], name=name)


def test_kernels_are_compared_by_time_and_slowest_communication():
    traced = kernel_run("torus4", TORUS, 3.0, text="{kind: npb, kernel: CG, trace: true}")  # no other load
    found = compare([kernel_run("flat4", FLAT, 2.0), traced])
    assert [(row.metric, row.detail, row.scenario, row.relative and round(row.relative, 9)) for row in found.rows] == [
        ("npb_lab_time", "", "flat4", 1.0),
        ("npb_lab_time", "", "torus4", 1.5),
        ("npb_lab_communication_time", "", "flat4", 1.0),
        ("npb_lab_communication_time", "", "torus4", 1.5),
    ]
    assert spread_of(found.rows[2]).median == 1.6
    assert not any("Programs of NPB" in note for note in found.notes)


def test_kernels_of_different_programs_are_told_apart_in_a_note():
    found = compare([kernel_run("flat4", FLAT, 2.0), kernel_run("torus4", TORUS, 3.0, code="NPB 3.4.3")])
    note = "Programs of NPB differ: testbed in flat4; NPB 3.4.3 in torus4. Times of different programs are not those of"
    assert any(text.startswith(note) for text in found.notes)


def test_classes_of_a_kernel_are_different_loads():
    other = kernel_run("torus4", TORUS, 3.0, text="{kind: npb, kernel: CG, class: W}")
    with pytest.raises(InputError, match="no load is common"):
        compare([kernel_run("flat4", FLAT, 2.0), other])

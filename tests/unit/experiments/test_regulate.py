"""What a regulation makes of its figures, and what it refuses before anything is built."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError, LabError
from testbed.base.model import Sample
from testbed.experiments.regulate.alternating_paths import table7
from testbed.experiments.regulate.before_after import before_and_after, change_findings, loss_findings, loss_samples
from testbed.experiments.regulate.choose_links import find_detour, links_behind, list_power_levels, with_spared
from testbed.experiments.regulate.figure import Stretch, draw_rates
from testbed.experiments.regulate.plan_changes import Change, pair_opposite_hosts
from testbed.experiments.regulate.run import measured_traffic, regulate, require_regulable
from testbed.experiments.regulate.traffic import of_pattern, uses_of
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import find_session_engine
from testbed.experiments.run.loads.context import Context
from testbed.experiments.run.loads.one_load import LoadRecord
from testbed.fabric.power import POWER_MODELS
from testbed.fabric.routing.paths import path
from testbed.planning import make_plan
from testbed.planning.rates import at_dilation, channel_rates
from testbed.results.store import LoadEntry
from testbed.scenario import parse_scenario
from testbed.scenario.workloads.loss_probe import PairLoss
from testbed.ui.cli import regulate_command
from testbed.ui.cli.app import app
from tests.fabrics import plan_of


def time_of(links: str, turn: int, value: float, metric: str = "npb_lab_time") -> Sample:
    labels = {"kind": "npb", "kernel": "MG", "class": "S", "links": links, "round": str(turn), "load": str(turn)}
    return Sample(metric, value, "s" if metric == "npb_lab_time" else "bit/s", labels)


def loss(lost: int = 0, twice: int = 0, broken: str = "") -> PairLoss:
    one_way = {"min": 1e-4, "mean": 2e-4, "p99": 3e-4, "max": 4e-4}
    return PairLoss("h1", "h3", 1000, 1000 - lost, twice, 0, one_way, 0.002, (0.5,) * lost, 9, 0.01, broken)


def test_figures_of_both_states_stand_side_by_side():
    samples = [
        *(time_of("all", turn, value) for turn, value in enumerate([10.0, 10.2, 10.4])),
        *(time_of("fewer", turn, value) for turn, value in enumerate([11.0, 11.2, 11.4])),
        time_of("all", 1, 9e8, "goodput_mean"),
    ]
    (found,) = before_and_after(samples, "all", "fewer")
    assert (found.title, found.metric) == ("npb MG S", "npb_lab_time")
    assert found.ratio == pytest.approx(11.2 / 10.2)
    assert found.slowdown == pytest.approx(11.2 / 10.2 - 1)
    assert found.spread == pytest.approx(0.4 / 10.2)
    assert not found.within_noise
    (noisy,) = before_and_after([*samples, time_of("fewer", 9, 10.1)], "all", "fewer")
    assert noisy.within_noise


def test_less_goodput_is_slower_and_pairs_count_by_their_mean():
    samples = [time_of(links, 1, rate, "goodput_mean") for links, rate in (("all", 8e8), ("all", 6e8), ("fewer", 5e8))]
    (found,) = before_and_after(samples, "all", "fewer")
    assert found.before == (7e8,)
    assert not found.is_time
    assert found.slowdown == pytest.approx(0.4)


def test_loads_of_one_title_have_a_row_each():
    samples = [
        Sample("npb_lab_time", value, "s", {**time_of(links, 1, value).labels, "load": load})
        for load, links, value in (("1", "all", 10), ("2", "all", 20), ("3", "fewer", 11), ("4", "fewer", 30))
    ]
    found = before_and_after(samples, "all", "fewer")
    assert [(one.title, one.before, one.after) for one in found] == [
        ("npb MG S", (10,), (11,)), ("npb MG S (2)", (20,), (30,)),
    ]  # fmt: skip


def test_lost_frames_and_broken_connections_name_the_pair():
    assert loss_findings([loss(), loss()]) == []
    assert loss_findings([loss(), loss(lost=4)]) == [
        (Verdict.FAIL, "4 of 2000 frames were lost, most from h1→h3, from 0.50, 0.50, 0.50 s on")
    ]
    assert loss_findings([loss(broken="the peer hung up")]) == [
        (Verdict.FAIL, "1 connections broke; h1→h3: the peer hung up")
    ]
    assert loss_findings([loss(twice=2)]) == [(Verdict.FAIL, "2 frames came more than once")]


def test_rules_that_differ_after_a_change_make_figures_void():
    assert change_findings(Change("off", 0.0, 1.0, (), (), ())) == []
    ((verdict, sentence),) = change_findings(Change("off", 0.0, 1.0, (), (), ("h1→h2 takes no path", "more")))
    assert verdict is Verdict.INVALID
    assert "h1→h2 takes no path (2)" in sentence


def test_the_traffic_is_what_mpi_sent():
    plan = plan_of("mesh", sizes=[2])
    sent = [Sample("mpi_bytes_sent", 700.0, "B", {"src": "h1", "dst": "h2"})]
    entry: LoadEntry = {"load": "1", "title": "", "kind": "iperf3", "verdict": "pass", "reasons": []}
    records = [LoadRecord(sent, entry, [], None), LoadRecord(sent, entry, [], None)]
    assert measured_traffic(plan, records).matrix.tolist() == [[0.0, 1400.0], [0.0, 0.0]]
    with pytest.raises(LabError, match="no traffic was recorded, so no link can be chosen by it"):
        measured_traffic(plan, [LoadRecord([], entry, [], None)])


def test_every_host_sends_and_every_host_hears():
    for hosts in (2, 3, 5, 16):
        pairs = pair_opposite_hosts(hosts)
        assert sorted(source for source, _ in pairs) == sorted(to for _, to in pairs) == [*range(hosts)]
        assert all(source != to for source, to in pairs)


def test_a_detour_avoids_the_first_link_of_the_path():
    plan = plan_of("ring", {"kind": "north_last"}, switches=4)
    detour = find_detour(plan, "h2, h4")
    assert (detour.source, detour.destination) == (1, 3)
    first = path(plan.topology, plan.routes, 1, 3)[0]
    assert detour.link == first // 2
    second = path(plan.topology, detour.plan.routes, 1, 3)
    assert detour.link not in {channel // 2 for channel in second}
    assert find_detour(plan, None).destination == 2


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ("h1", r'pair: should be two hosts such as h1,h4, not "h1"'),
        ("h1,h9", r'pair: there is no host "h9", only h1 to h4'),
        ("h3,h3", r"pair: should be two hosts"),
    ],
)
def test_hosts_that_are_no_pair(pair, told):
    with pytest.raises(InputError, match=told):
        find_detour(plan_of("ring", {"kind": "north_last"}, switches=4), pair)


def test_a_pair_without_a_second_way_is_refused():
    with pytest.raises(InputError, match="without s1–s2 some switches have no path to others"):
        find_detour(plan_of("mesh", {"kind": "updown", "selection": "tree"}, sizes=[2]), None)
    with pytest.raises(InputError, match="h1 and h2 hang on one switch"):
        find_detour(plan_of("mesh", sizes=[2], hosts_per_switch=2), "h1,h2")


def test_what_cannot_be_regulated_is_refused_at_once():
    text = "topology: {kind: torus, sizes: [3, 3]}\nrouting: {kind: updown}\n"
    refused = {
        "assignment: {kind: static}": "by which ports change one after the other, fixed or renamed, not static",
        "assignment: {kind: renamed}\nengine: realtime": "fixed, on this engine, not renamed; set assignment",
    }
    for more, told in refused.items():
        with pytest.raises(InputError, match=told):
            require_regulable(make_plan(parse_scenario(text + more, "test")))
    deadlock = "topology: {kind: ring, switches: 5}\nrouting: {kind: dor, ring: shortest}\nexpect: deadlock\n"
    with pytest.raises(InputError, match="routing: its paths can deadlock, and VLANs of one switch change only"):
        require_regulable(make_plan(parse_scenario(deadlock + "assignment: {kind: renamed}", "test")))
    require_regulable(make_plan(parse_scenario(text + "assignment: {kind: renamed}", "test")))
    require_regulable(plan_of("torus", sizes=[3, 3]))


def test_all_that_keeps_a_plan_from_regulation_is_said_at_once():
    text = "topology: {kind: mesh, sizes: [2], parallel_links: 2}\nlinks: {aggregate: true}\n"
    text += "assignment: {kind: openflow}\nengine: vm"
    with pytest.raises(InputError) as refused:
        require_regulable(make_plan(parse_scenario(text, "test")))
    assert str(refused.value).split("\n") == [
        "test: engine: is vm, and this command needs a lab on this machine; leave it out, or make it ovs or realtime",
        "test: assignment.kind: a change of plans without loss needs VLANs by which ports change one after the other, "
        "fixed, with aggregated links, not openflow; set assignment.kind=fixed, with a routing that it can carry",
        "test: lab.fast_path: sends frames by what rules were until then, where links are aggregated; set "
        "lab.fast_path=off",
    ]


def test_links_of_bundles_go_off_but_run_at_no_lower_speed(tmp_path):
    text = "topology: {kind: ring, switches: 4, parallel_links: 2}\nlinks: {aggregate: true}\nengine: realtime\n"
    plan = make_plan(parse_scenario(f"{text}workloads: [{{kind: iperf3, protocol: udp}}]", "test"))
    require_regulable(plan)
    with pytest.raises(InputError) as refused:
        regulate(plan, tmp_path, POWER_MODELS["SF-420"], 1, lambda text: None, slower=True)
    assert str(refused.value) == (
        "test: slower: sets speeds of single links, and links.aggregate makes parallel ones one; leave out one of both"
    )
    assert not list(tmp_path.iterdir())


def test_fewer_links_carry_less_and_a_bundle_off_counts_as_was():
    text = "topology: {kind: ring, switches: 4, parallel_links: 3}\nlinks: {aggregate: true}\nengine: realtime\n"
    plan = make_plan(parse_scenario(text, "test"))
    off = np.zeros(12, dtype=bool)
    off[[0, 1, 2, 4]] = True
    fewer = with_spared(plan, off)
    assert fewer.powered_off is not None
    assert np.flatnonzero(fewer.powered_off).tolist() == [4]
    assert np.asarray(channel_rates(fewer)).tolist() == [3e9, 3e9, 2e9, 2e9, 3e9, 3e9, 3e9, 3e9]
    assert links_behind(plan, 1) == (3, 4, 5)
    # The busiest link is used in the ratio of what it then carries.
    traffic = np.zeros((4, 4))
    traffic[1, 2] = 1.0
    assert uses_of([plan, fewer], 0, traffic, 0.2) == pytest.approx([0.2, 0.3])


def test_a_ladder_takes_links_of_bundles_one_by_one():
    text = "topology: {kind: ring, switches: 4, parallel_links: 2}\nlinks: {aggregate: true}\nengine: realtime\n"
    plan = make_plan(parse_scenario(text, "test"))
    rungs = list_power_levels(plan, of_pattern("all_to_all", plan.topology, 1))
    assert len(rungs) > 1
    assert rungs[0].off_links == ()
    assert all(set(fewer.off_links) > set(more.off_links) for more, fewer in itertools.pairwise(rungs))
    assert max(rungs[-1].off_links) > plan.topology.link_count
    assert rungs[-1].plan.powered_off is not None


def test_aggregated_links_are_regulated_without_a_controller(tmp_path):
    text = "topology: {kind: ring, switches: 4, parallel_links: 2}\nlinks: {aggregate: true}\n"
    loads = "workloads: [{kind: iperf3, protocol: udp}]\n"
    with pytest.raises(InputError) as refused:
        require_regulable(make_plan(parse_scenario(text, "test")))
    assert str(refused.value) == (
        "test: lab.fast_path: sends frames by what rules were until then, where links are aggregated; set "
        "lab.fast_path=off"
    )
    plan = make_plan(parse_scenario(f"{text}{loads}lab: {{fast_path: off}}", "test"))
    require_regulable(plan)
    with pytest.raises(InputError) as refused:
        regulate(
            plan, tmp_path, POWER_MODELS["SF-420"], 1, lambda text: None, engine=find_session_engine(plan.scenario)
        )
    assert str(refused.value) == (
        "test: machines: have switches that only a controller reaches, and none takes aggregated links; use one "
        "machine, or links.aggregate=false"
    )
    single = make_plan(parse_scenario(text.replace(", parallel_links: 2", ""), "test"))
    with pytest.raises(InputError) as refused:
        require_regulable(single)
    assert str(refused.value) == (
        "test: links.aggregate: finds no parallel links to make one, and keeps a controller from the others; leave "
        "it out"
    )
    file = tmp_path / "ring.yaml"
    file.write_text(f"{text}{loads}assignment: {{kind: renamed}}\n")
    with pytest.raises(InputError) as refused:
        CliRunner().invoke(app, ["regulate", str(file)], catch_exceptions=False)
    # Neither the controller nor the fast path stands in the way then.
    assert [problem.key for problem in refused.value.problems] == [f"{file}: assignment.kind"]


@pytest.mark.parametrize(("loads", "told"), [
    ("[]", "there is none"), ("[{kind: ping}, {kind: rr, protocol: tcp}]", "there is no load but pings and requests"),
])  # fmt: skip
def test_loads_without_traffic_are_refused_before_building(tmp_path, loads, told):
    words = ["regulate", "ring4", "--results", str(tmp_path), "--set", f"workloads={loads}"]
    with pytest.raises(InputError, match=f"workloads: {told}, so there is no traffic to go by"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_an_unknown_model_is_refused_before_anything_is_built():
    with pytest.raises(InputError, match=r'there is no switch model "PC5342". Did you mean "PC5324"'):
        CliRunner().invoke(app, ["regulate", "ring4", "--model", "PC5342"], catch_exceptions=False)
    assert regulate_command.regulate in {command.callback for command in app.registered_commands}


def test_slower_links_are_for_links_chosen_by_traffic():
    with pytest.raises(InputError, match="--slower: is for links chosen by traffic, and --every changes one path"):
        CliRunner().invoke(app, ["regulate", "ring4", "--slower", "--every", "1"], catch_exceptions=False)


def test_table_7_is_made_of_both_kinds_of_path():
    samples = [
        Sample(f"one_way_{name}", value, "s", {"path": path_kind, "src": "h1"})
        for path_kind, values in (("fixed path", (1.0, 2.0, 3.0)), ("changing path", (1.0, 4.0, 9.0)))
        for name, value in zip(("min", "mean", "max"), values, strict=True)
    ]
    assert table7(samples) == [
        ("fixed path", "one-way latency", 1.0, 2.0, 3.0),
        ("changing path", "one-way latency", 1.0, 4.0, 9.0),
    ]


@pytest.mark.parametrize("holds", [True, False])
def test_times_of_lone_frames_that_ports_do_not_hold_are_marked(holds):
    plan = at_dilation(plan_of("ring", switches=4), 10)
    lab: Any = SimpleNamespace(facts=SimpleNamespace(shapes_idle_ports=holds))
    context = Context(plan, lab, {"load": "1"}, lambda name, text: None, lambda text: None)
    times = {"min": 2e-7, "mean": 3e-7, "p99": 5e-7, "max": 6e-7}
    loss = PairLoss("h1", "h3", 10, 10, 0, 0, times, 0.1, (), 3, 0.1, "")
    samples = loss_samples(context, [loss])
    marked = {sample.metric for sample in samples if sample.labels.get("unheld")}
    assert marked == (set() if holds else {"one_way_min", "one_way_mean", "one_way_max"})
    table = regulate_command._table_changes([("fixed path", "one-way latency", 1, 2, 3)], 2, 1, unheld=not holds)
    assert list(table.columns[1].cells) == ["one-way latency" if holds else "one-way latency †"]


def test_a_series_shows_the_pairs_that_change_most_and_the_marks():
    time = np.arange(20) / 10
    rates = {f"h{pair}→h{pair + 1}": np.where(time > 1, 1e6 * pair, 0.0) for pair in range(1, 12)}
    drawn = "".join(ElementTree.fromstring(draw_rates(time, rates, [Stretch(0.5, 0.9, "s1–s2 off")])).itertext())
    assert "s1–s2 off" in drawn
    assert "h11→h12" in drawn
    assert "h1→h2\n" not in drawn

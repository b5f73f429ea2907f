"""What a closed loop reads, counts, draws and refuses; what it decides is in tests/property/test_loop.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.base.messages import FrameCounts, LinkReadings, PairReadings
from testbed.experiments.regulate.choose_links import list_power_levels
from testbed.experiments.regulate.figure import Stretch, draw_loop
from testbed.experiments.regulate.loop import LoopResult, LoopRound
from testbed.experiments.regulate.thresholds import Rule, integral
from testbed.experiments.regulate.traffic import bytes_between, compute_peak_utilisation, of_pattern, uses_of
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.loads.context import FrameLedger
from testbed.fabric.power.models import POWER_MODELS
from testbed.ui.cli import regulate_command
from testbed.ui.cli.app import app
from tests.fabrics import plan_of


def refused(*words: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(app, [regulate_command.regulate.__name__, *words], catch_exceptions=False)
    return [str(problem) for problem in caught.value.problems]


def reading(time: float, *sizes: int, drops: int = 0) -> LinkReadings:
    count = len(sizes)
    frames = tuple(size // 1000 for size in sizes)
    return LinkReadings(time, 100.0, sizes, frames, (1e6,) * count, (0,) * count, (drops,) * count, (), ())


def test_the_busiest_link_counts_with_all_that_is_on_the_wire():
    before, after = reading(10.0, 0, 5000, 0), reading(10.5, 10_000, 25_000, 60_000)
    # 20 frames of 1,000 bytes and 24 more each in half a second; the third direction is a host's.
    assert compute_peak_utilisation(before, after, 2) == pytest.approx(20 * 1024 * 8 / 0.5 / 1e6)
    assert compute_peak_utilisation(before, after, 0) == 0.0


def test_bytes_of_pairs_are_those_since_the_reading_before():
    first, last = PairReadings(0.0, ((0, 1, 100), (1, 0, 7))), PairReadings(1.0, ((0, 1, 350), (1, 0, 7), (1, 1, 9)))
    assert bytes_between(first, last, 2).tolist() == [[0, 250], [0, 0]]


def test_what_links_off_save_does_not_depend_on_how_long():
    plan = plan_of("ring", {"kind": "north_last"}, switches=4)
    rungs = tuple(list_power_levels(plan, of_pattern("all_to_all", plan.topology, 1)))
    off = len(rungs[1].off_links)
    loads = (Stretch(0.0, 4.0, "a"), Stretch(5.0, 9.0, "b"))
    turn = LoopRound((), (), loads, ((0.0, 0), (2.0, off), (4.5, 0), (8.0, off)))
    found = LoopResult(Rule(), POWER_MODELS["PC5324"], rungs, (80.0, 60.0), (turn,), ())
    # 3 of the 8 s in which loads ran, at three quarters of the power.
    assert found.off_saved == pytest.approx(3 / 8 / 4)
    assert found.off_share == pytest.approx(3 / 8 * off / 4)


def test_other_rungs_are_foretold_by_the_traffic_of_now():
    plan = plan_of("ring", {"kind": "north_last"}, switches=4)
    rungs = list_power_levels(plan, of_pattern("all_to_all", plan.topology, 1))
    plans = [rung.plan for rung in rungs]
    (off,) = rungs[1].off_links
    traffic = bytes_between(PairReadings(0.0), PairReadings(1.0, ((0, 1, 400), (2, 3, 400))), 4)
    uses = uses_of(plans, 0, traffic, 0.3)
    assert uses[0] == 0.3
    assert uses[1] in (pytest.approx(0.3), pytest.approx(0.6))
    # The other way round it is the same ratio, and without traffic nothing is known but that.
    assert uses_of(plans, 1, traffic, uses[1])[0] == pytest.approx(0.3)
    assert uses_of(plans, 1, 0 * traffic, 0.0) == [0.0, 0.0]
    assert 0 <= off < 4


def test_watts_add_up_to_joules():
    steps = [(0.0, 100.0), (10.0, 60.0), (14.0, 100.0)]
    assert integral(steps, 2.0, 8.0) == pytest.approx(600)
    assert integral(steps, 8.0, 16.0) == pytest.approx(200 + 240 + 200)
    assert integral(steps, 20.0, 21.0) == pytest.approx(100)


def test_all_that_is_wrong_with_a_rule_is_said_at_once():
    assert Rule().problems() == []
    assert [str(problem) for problem in Rule(0.3, 0.6, 0.0, -1.0).problems()] == [
        "period: should be 0.1 s or more, not 0",
        "hold: should be 0 s or more, not -1",
        "off_below: should be above 0 and below on_above, 0.3, or links go off and on for ever; it is 0.6",
    ]
    assert [problem.key for problem in Rule(float("nan"), 0.4, float("nan"), float("inf")).problems()] == [
        "period", "hold", "on_above", "off_below",
    ]  # fmt: skip
    assert Rule(0.5, 0.5).problems() != []


def test_a_wrong_rule_is_refused_before_anything_is_built(tmp_path):
    (told,) = refused("ring4", "--loop", "--on-above", "0.3", "--results", str(tmp_path))
    assert told.startswith("--off-below: should be above 0 and below --on-above, 0.3,")
    (told,) = refused("ring4", "--loop", "--period", "0", "--results", str(tmp_path))
    assert told == "--period: should be 0.1 s or more, not 0"
    assert not list(tmp_path.iterdir())


def test_options_that_do_not_go_with_a_loop():
    assert refused("ring4", "--loop", "--every", "1", "--running") == [
        "--loop: goes without --every and --running; leave out one"
    ]
    assert refused("ring4", "--period", "1", "--off-below", "0.2") == [
        "--period: is for --loop; say that, or leave it out",
        "--off-below: is for --loop; say that, or leave it out",
    ]


def test_engines_that_cannot_are_refused():
    (told, *_) = refused("ring4", "--loop", "--set", "engine=vm")
    assert "is vm, and this command needs a lab on this machine" in told


@pytest.mark.parametrize(("text", "told"), [
    ("topology: {kind: mesh, sizes: [3]}\nrouting: {kind: updown, selection: tree}",
     "no link can be spared: without any link some switches have no path to others; give it more, such as "),
    ("topology: {kind: torus, sizes: [4, 4]}", "dor"),
    ("topology: {kind: ring, switches: 5}\nrouting: {kind: dor, ring: shortest}\nexpect: deadlock",
     "its paths can deadlock"),
])  # fmt: skip
def test_a_fabric_in_which_no_link_can_be_spared_is_refused(tmp_path, text, told):
    file = tmp_path / "fabric.yaml"
    file.write_text(f"{text}\nassignment: {{kind: fixed}}\nworkloads: [{{kind: iperf3, protocol: tcp}}]\n")
    (found,) = refused(str(file), "--loop", "--model", "PC5324", "--results", str(tmp_path / "results"))
    assert told in found
    assert not (tmp_path / "results").exists()


def test_loads_in_which_links_change_are_refused():
    load = "workloads=[{kind: iperf3, protocol: tcp, timeline: [{at: 1 s, link: s1-s2, rate: 100M}]}]"
    (told,) = refused("ring4", "--loop", "--set", load)
    assert "workloads: has links that change, and a loop takes all for as planned" in told


def counts(arrived: int, before: int, within: int, sockets: int = 0) -> FrameCounts:
    lost = {"before a switch took them in": before, "in a switch": within, "in a receiving program's socket": sockets}
    return FrameCounts(arrived, lost, 0, (), (), ())


@pytest.mark.slow
@pytest.mark.parametrize(("moving", "then", "verdicts"), [
    # 400 of 1,000 frames were counted by a rule that is gone: no loss, if rules may go.
    (True, counts(1000, 400, -400), []),
    (False, counts(1000, 400, -400), [Verdict.INVALID]),
    (True, counts(1000, 400, -300), [Verdict.INVALID]),
    (True, counts(1000, 0, 0, sockets=100), [Verdict.INVALID]),
])  # fmt: skip
def test_frames_are_counted_while_rules_go_and_come(moving, then, verdicts):
    seen = iter([counts(0, 0, 0), then, then])
    context: Any = SimpleNamespace(lab=SimpleNamespace(frames=lambda: next(seen)), moving=moving)
    assert [verdict for verdict, _ in FrameLedger(context).close()] == verdicts


def test_what_seems_lost_is_looked_at_again_when_counted(monkeypatch):
    seen = iter([counts(0, 0, 0), counts(1000, 400, 0), counts(1000, 0, 0)])
    slept: list[float] = []
    monkeypatch.setattr("testbed.experiments.run.loads.context.time.sleep", slept.append)
    context: Any = SimpleNamespace(lab=SimpleNamespace(frames=lambda: next(seen)), moving=False)
    assert FrameLedger(context).close() == []
    assert sum(slept) >= 1.0


def test_the_figure_shows_loads_thresholds_and_links():
    looks = [(0.5, 0.1), (1.0, 0.1), (3.0, 0.9)]
    drawn = draw_loop(Rule(), 8, looks, [(0.0, 0), (2.0, 4), (4.0, 0)], [Stretch(0.2, 5.0, "npb MG S")])
    words = "".join(ElementTree.fromstring(drawn).itertext())
    for word in ("npb MG S", "Links on", "all go on above", "may go off below"):
        assert word in words

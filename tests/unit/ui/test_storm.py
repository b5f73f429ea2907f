"""The storm, without any switch: rules that flood forever, what readings come to, bounds, the drawing."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.engines.lab.build_order import StormReading
from testbed.experiments.report.curves import draw_growth
from testbed.experiments.run.checks.storm import Storm, StormCounts, storm_counts, storm_plan
from testbed.fabric.openflow.compile import flooding_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.openflow.rule_text import format_rule, parse_rule
from testbed.ui.cli import load_commands
from testbed.ui.cli.app import app
from tests.fabrics import topology_of


def test_a_broadcast_never_ends_in_a_ring_and_ends_in_a_tree():
    for kind, endless in (("ring", True), ("tree", False)):
        topology = topology_of(kind, switches=5)
        rules = flooding_rules(topology)
        assert Oracle(topology, rules).broadcast(0).endless is endless
        for rule in rules:
            assert parse_rule(rule.switch, format_rule(rule).replace(",actions", " actions")) == rule


def readings(*frames: tuple[int, int]) -> StormCounts:
    return storm_counts([StormReading(0.2 * n, a + b, max(a, b)) for n, (a, b) in enumerate(frames)])


SILENT = StormCounts((0.0, 0.2, 0.4), (0, 6, 6), (0, 1, 1))


def test_readings_are_summed_up():
    found = readings((0, 0), (40, 50), (90, 150))
    assert (found.frames, found.busiest) == ((0, 90, 240), (0, 50, 150))
    assert found.rate == pytest.approx(500)
    assert Storm(4, 1e6, SILENT, found).load == pytest.approx(500 * 672 / 1e6)


def test_what_is_not_as_it_should_be_is_told():
    endless = readings((0, 0), (40, 50), (90, 150))
    ended = readings((0, 0), (4, 5), (4, 5))
    assert Storm(4, 1e6, SILENT, endless).problems == []
    assert Storm(4, 1e6, ended, ended).problems == [
        "with VLANs a broadcast took 9 frames, up to 5 at a port, instead of 6, one at a port",
        "without VLANs the broadcast ended by itself; links lose frames, or the ring is open",
    ]


def test_bounds():
    with pytest.raises(InputError) as error:
        storm_plan(2, 60, "1 Gbit/s")
    assert [str(problem) for problem in error.value.problems] == [
        "switches: should be from 3 to 16, not 2",
        "seconds: should be from 0.4 to 10, not 60",
        'rate: should be from 100 kbit/s to 100 Mbit/s, not "1 Gbit/s"',
    ]
    with pytest.raises(InputError, match='"fast" is not a rate'):
        storm_plan(4, 2, "fast")
    with pytest.raises(InputError, match=r'^engine: .*Did you mean "realtime"\?'):
        storm_plan(4, 2, "1 Mbit/s", "realtim")
    assert storm_plan(4, 2, "1 Mbit/s").is_proved


def test_the_drawing_names_both_courses():
    text = draw_growth({"with": ((0, 1), (0, 6)), "without": ((0, 1), (0, 900))}, "Title", "frames", "svg").decode()
    for word in ("with", "without", "Title", "frames"):
        assert word in text
    assert draw_growth({"with": ((0, 1), (0, 6))}, "T", "frames", "png").startswith(b"\x89PNG")


class Ring:
    """A lab that only counts, and notes which of its broadcasts had rules that flood."""

    def __init__(self) -> None:
        self.flooding: list[bool] = []

    def run_broadcast_storm(self, seconds, interval, rules=None):
        self.flooding.append(rules is not None)
        counts = [(0, 0), (90, 50), (240, 150)] if rules else [(0, 0), (6, 1), (6, 1)]
        return [StormReading(interval * n, frames, busiest) for n, (frames, busiest) in enumerate(counts)]


def test_help_and_table_have_the_order_of_what_runs(monkeypatch):
    ring, nothing_missing = Ring(), SimpleNamespace(raise_if_missing=lambda: None)
    monkeypatch.setattr(
        "testbed.experiments.run.checks.storm.find_lab_engine",
        lambda scenario: SimpleNamespace(
            find_missing=lambda plan, progress: nothing_missing, build=lambda plan, progress: nullcontext(ring)
        ),
    )
    monkeypatch.setattr("testbed.ui.cli.output.results.width", 200)
    load_commands()
    done = CliRunner().invoke(app, ["storm", "--seconds", "0.4"])
    assert done.exit_code == 0, done.output
    assert ring.flooding == [False, True]
    for text in (
        done.stdout,
        " ".join(CliRunner().invoke(app, ["storm", "--help"], env={"COLUMNS": "200"}).stdout.split()),
    ):
        first, second = text.index("with the plan's VLANs"), text.index("without VLANs and STP")
        assert first < second

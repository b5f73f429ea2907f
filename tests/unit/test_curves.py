"""Curves of the papers' figures: throughput, means over drawings, and what is left in a folder."""

from __future__ import annotations

import csv
from statistics import fmean
from xml.etree import ElementTree

import pytest

from benchmarks import curves, sr_figures
from testbed.simulate import Settings
from tests.fabrics import plan_of

LOADS = (0.1, 0.5, 1.0)


@pytest.fixture(scope="module")
def made():
    drawn = [(plan.topology, plan.routes) for plan in (plan_of("mesh", sizes=[4, 4]), plan_of("torus", sizes=[4, 4]))]
    return curves.curve("both", drawn, Settings("uniform", 12_000, 2_000, 16, 64), LOADS)


def test_throughput_is_the_highest_accepted_traffic_of_each_drawing(made):
    accepted = [[point.accepted for point in row] for row in made.points]
    assert made.throughputs == (max(row[0] for row in accepted), max(row[1] for row in accepted))
    assert made.throughputs[0] < made.throughputs[1] < 1  # the torus carries more than the mesh
    assert made.throughput == fmean(made.throughputs)
    assert [[point.seed for point in row] for row in made.points] == [[1, 2]] * 3


def test_dots_are_means_over_drawings(made):
    first = made.points[0]
    assert made.dots[0].accepted == fmean(point.accepted for point in first)
    assert made.dots[0].min == min(point.latency.mean for point in first) < made.dots[0].latency < made.dots[0].max


def test_every_point_and_a_figure_are_kept(made, tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "RESULTS", tmp_path)
    folder = curves.keep("some", [("one", [made]), ("other", [made])], columns=2, unit="clocks")
    rows = list(csv.DictReader((folder / "points.csv").read_text().splitlines()))
    assert len(rows) == 2 * len(LOADS) * 2
    assert {row["panel"] for row in rows} == {"one", "other"}
    assert [float(row["accepted"]) for row in rows[:2]] == [point.accepted for point in made.points[0]]
    assert ElementTree.fromstring((folder / "burton.svg").read_text()).tag.endswith("svg")


def test_a_line_has_each_throughput_and_ratios_beside_those_of_the_paper(made):
    place = sr_figures.Place("mesh", "", {("SR", "TBTP"): 2.4})
    named = [curves.Curve(name, made.loads, made.points) for name in sr_figures.ROUTINGS]
    uniform = sr_figures.line(place, "uniform", named)
    throughput = f"{made.throughput:.3f}"
    assert uniform.startswith(f"SR {throughput}; UD {throughput}; TBTP {throughput}; STP {throughput}; SR/UD 1.00")
    assert "SR/TBTP 1.00 (1.00 – 1.00), paper 2.4" in uniform
    assert "paper" not in sr_figures.line(place, "pairwise", named)


@pytest.mark.parametrize(
    "place", [place for places in sr_figures.PLACES.values() for place in places], ids=lambda place: place.name
)
def test_every_place_of_the_figures_has_a_proved_plan_of_every_routing(place):
    for routing in sr_figures.ROUTINGS.values():
        topology, _ = sr_figures.planned(place, routing, 1)
        assert topology.host_count == topology.switch_count

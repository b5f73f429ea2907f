"""What a soak says of what it has counted."""

import random

import pytest

from benchmarks.soak import _WARM_UP, _drawn, by_chance, judged
from testbed.planning import make_plan
from testbed.scenario import parse_scenario


def _rounds(count, *, rise=0.0, noise=0.1, name="goodput", start=4.0):
    """What rounds count: noise around a level that rises by a share from the first to the last."""
    chance = random.Random(5)
    return [{name: start * (1 + rise * at / (count - 1)) * (1 + chance.gauss(0, noise))} for at in range(count)]


@pytest.mark.parametrize(
    ("rise", "noise", "said"),
    [(0.0, 0.1, []), (-0.2, 0.05, ["goodput"]), (0.2, 0.05, ["goodput"]), (-0.01, 0.0001, [])],
    ids=["noise", "falls", "rises", "hardly falls"],
)
def test_goodput_that_changes_is_told_from_noise(rise, noise, said):
    assert judged(_rounds(60, rise=rise, noise=noise)) == said


def test_goodput_of_a_few_rounds_is_not_judged(capsys):
    assert judged(_rounds(11, rise=-0.3, noise=0.0)) == []
    assert capsys.readouterr().out.endswith("%)  too few rounds to judge\n")


@pytest.mark.parametrize(
    ("name", "start", "rise", "said"),
    [
        ("agent MB", 40.0, 0.05, ["agent MB"]),
        ("agent MB", 40.0, 0.02, []),
        ("agent MB", 8.0, 0.06, []),  # less than half a megabyte
        ("rules", 56.0, 0.1, ["rules"]),
        ("processes", 60.0, -0.1, []),
    ],
)
def test_what_grows_is_told(name, start, rise, said):
    assert judged(_rounds(30, rise=rise, noise=0.0, name=name, start=start)) == said


def test_chance_is_that_of_ranks():
    """The exact figure for eight above eight is 2 of 12,870 ways; for one that stands above four, 20 of 70."""
    assert by_chance([1.0] * 8, [2.0] * 8) == pytest.approx(0.00078, rel=0.01)
    assert by_chance(list(range(8)), list(range(8))) == 1.0
    assert by_chance([1, 2, 3, 8], [4, 5, 6, 7]) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(("kind", "sizes"), [("torus", [8, 8]), ("mesh", [2, 2])])
def test_all_hosts_and_links_have_their_turn_before_judgement(kind, sizes):
    plan = make_plan(parse_scenario(f"topology: {{kind: {kind}, sizes: {sizes}}}\n", "soak.yaml"))
    drawn = [_drawn(plan, random.Random(1), number) for number in range(_WARM_UP)]
    assert {host for hosts, _ in drawn for host in hosts} == set(range(plan.topology.host_count))
    assert {link for _, links in drawn for link in links} == set(range(plan.topology.link_count))
    for hosts, links in [*drawn, _drawn(plan, random.Random(1), _WARM_UP)]:
        assert len(set(hosts)) == len(hosts) == min(16, plan.topology.host_count)
        assert links

"""What `testbed load` makes of its words, and what `testbed watch` makes of two readings."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from testbed.base.errors import InputError, Problem
from testbed.base.messages import LinkReadings, PairReadings
from testbed.experiments.run.advice import AskedOfLab
from testbed.experiments.run.load_arguments import as_typed, read_loads
from testbed.scenario import parse_loads
from testbed.ui.cli.load_command import _dilation
from testbed.ui.cli.watch_command import Direction, FlowRate, Moment, View, picture, view
from tests.fabrics import plan_of


def test_words_are_loads_as_a_scenario_lists_them():
    assert read_loads([], ["a"]) is None
    assert read_loads(["ping"], []) == [{"kind": "ping"}]
    words = ["iperf3", "protocol=udp", "pattern=shift:4", "offered_load=0.5", "seconds=3", "ping", "failures=[a, b]"]
    assert read_loads(words, []) == [
        {"kind": "iperf3", "protocol": "udp", "pattern": "shift:4", "offered_load": 0.5, "seconds": 3},
        {"kind": "ping", "failures": ["a", "b"]},
    ]


@pytest.mark.parametrize(
    ("words", "sentences"),
    [
        (
            ["torus4x5"],
            ['torus4x5: is neither a running lab nor a kind of load. Did you mean "torus4x4"? Known labs: '],
        ),
        (["seconds=3"], ["seconds=3: stands before a kind of load; write one first, such as iperf3"]),
        (["ping", "count=1", "count=2"], ["count: is given twice for ping; write it once"]),
        (["ping", "count=[1", "size=[2"], ["count: line 1, ", "size: line 1, "]),
    ],
)
def test_words_that_are_no_loads_get_a_sentence_each(words, sentences):
    with pytest.raises(InputError) as caught:
        read_loads(words, ["torus4x4"])
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) == len(sentences)
    assert all(text.startswith(start) for text, start in zip(found, sentences, strict=True)), found


def test_problems_of_loads_are_told_by_the_words_that_were_typed():
    with pytest.raises(InputError) as caught:
        parse_loads([{"kind": "pin"}, {"kind": "ping", "count": 0}], "loads")
    assert [str(as_typed(problem)).partition(":")[0] for problem in caught.value.problems] == ["kind", "count"]
    assert str(as_typed(Problem("workloads", "none", "loads"))) == "workloads: none"


def test_a_dilation_is_a_number_or_auto():
    assert (_dilation(None), _dilation("auto"), _dilation("50")) == (None, "auto", 50.0)
    with pytest.raises(InputError, match='--dilation: should be a number or auto, not "fast"'):
        _dilation("fast")


def test_the_advice_is_what_was_typed_at_another_dilation():
    asked = AskedOfLab(("torus4x4", "iperf3", "pattern=pairs:h1>h2"), ("--results", "here"))
    assert asked.at_dilation(300) == (
        "testbed load torus4x4 iperf3 'pattern=pairs:h1>h2' --dilation 300 --results here"
    )


def reading(time, frames, pairs, dropped=0):
    every = (*frames, 0, 0, 0, 0)
    size = tuple(1000 * number for number in every)
    links = LinkReadings(time, 20.0, size, every, (1e7,) * 4, (3, 0, 0, 0), (dropped, 0, 0, 0))
    return Moment(links, PairReadings(time, pairs))


def test_a_view_is_what_happened_between_two_readings():
    plan = plan_of("mesh", sizes=[2])
    before = reading(10.0, (100, 0), ((0, 1, 5000), (1, 0, 700)))
    seen = view(plan, before, reading(12.0, (1100, 0), ((0, 1, 1_005_000), (1, 0, 700)), dropped=4))
    # 1000 frames of 1000 bytes and 24 of preamble, check sequence and gap, in 2 s of a 10 Mbit/s link.
    first = seen.links[0]
    assert (first.direction, first.queue_frames, first.dropped) == ("s1→s2", 3, 4)
    assert (first.use, first.rate) == pytest.approx((0.4096, 20 * 4.096e6))
    assert seen.links[1] == Direction("s2→s1", 0.0, 0.0, 0, 0)
    assert seen.flows == (FlowRate("h1", "h2", 20 * 4e6),)


@pytest.mark.parametrize("count", [0, 3, 200])
def test_a_picture_fits_a_terminal(count):
    links = tuple(Direction(f"s{n}→s{n + 1}#1", 0.5, 1e9, n, 2 * n) for n in range(1000, 1000 + count))
    flows = tuple(FlowRate(f"h{n}", f"h{n + 1}", 2.5e8) for n in range(count))
    out = io.StringIO()
    console = Console(file=out, width=80, height=24, force_terminal=False)
    console.print(picture("torus4x4", "load", View(1.0, 20.0, links, flows, ""), 24))
    lines = out.getvalue().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert "…" not in out.getvalue()
    assert f"{count} directions of links: {count} busy" in out.getvalue()
    assert (f"{count} with traffic, " in out.getvalue()) == (count == 200)


def test_why_there_are_no_flows_is_said():
    out = io.StringIO()
    seen = View(1.0, 1.0, (), (), "pairs of hosts cannot be counted: Operation not permitted")
    Console(file=out, width=80).print(picture("a", "idle", seen, None))
    assert "flows: pairs of hosts cannot be counted: Operation not permitted" in out.getvalue()

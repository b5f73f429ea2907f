"""The table of published numbers: what is wrong with one, how rows are judged, what an interrupt leaves."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import pytest

from testbed.base.errors import InputError, Problem, WorkloadError
from testbed.experiments.paper import run_rows as running
from testbed.experiments.paper.compare_numbers import judge
from testbed.experiments.paper.page import Score, as_csv, as_document, as_object, as_page
from testbed.experiments.paper.published_numbers import Row, choose_items, read_published_numbers
from testbed.experiments.paper.run_rows import Store, run_items
from testbed.experiments.paper.runner_arguments import merge_blocks, read_call
from testbed.experiments.paper.runners import RUNNERS

ITEM = """
paper: A paper
short: a1
items:
  - name: a1-table1
    title: Watts
    unit: W
    tolerance: 0.03
    how: {run: switch_watts}
    rows:
      - {row: PC5324, value: 42.9, how: {model: PC5324}}
      - {row: PC6224, value: 91.1, how: {model: PC6224}}
      - {row: far, value: 1.0, impossible: It is far away.}
"""


def tables(folder: Path, text: str = ITEM):
    (folder / "a.yaml").write_text(text, encoding="utf-8")
    return read_published_numbers(folder)


def refusals(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        tables(folder, text)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def row(published: float, **more) -> Row:
    return Row("i", f"{published}", published, more.pop("unit", "W"), **more)


def states(rows, ours):
    return [result.state for result in judge(rows, ours, [""] * len(rows))]


def ran(items, folder, **more):
    return run_items(items, Store(folder), lambda text: None, quick=more.get("quick", True))


# --- tables ----------------------------------------------------------------------------------------------------------


def test_the_projects_tables_are_whole_with_a_method_or_a_reason():
    items = read_published_numbers()
    rows = [row for item in items for row in item.rows]
    assert {item.name.partition("-")[0] for item in items} == {"k03", "k11", "m07", "mt11", "w09"}
    assert len(rows) > 300
    assert all((row.call is None) == bool(row.impossible) for row in rows)
    obtained = sum(row.call is not None for row in rows)
    assert obtained / len(rows) > 0.7


def test_columns_make_a_row_a_number_and_groups_of_rows(tmp_path):
    text = ITEM.replace(
        "    rows:\n",
        "    columns: [{column: one}, {column: other, how: {figure: ports_percent}, unit: '%'}]\n    rows:\n",
    )
    text = text.replace("value: 42.9", "values: [42.9, 65]").replace("value: 91.1", "values: [null, 53]")
    text = text.replace("value: 1.0", "values: [1.0, null]")
    (item,) = tables(tmp_path, text)
    assert [(row.name, row.published, row.unit, row.group) for row in item.rows] == [
        ("PC5324, one", 42.9, "W", "one"),
        ("PC5324, other", 65, "%", "other"),
        ("PC6224, other", 53, "%", "other"),
        ("far, one", 1.0, "W", "one"),
    ]


def test_all_that_is_wrong_with_a_table_is_said_at_once(tmp_path):
    text = ITEM.replace("unit: W", "unit: Wat").replace("row: PC6224", "row: PC5324").replace("PC6224}", "PC6225}")
    text = text.replace("name: a1-table1", "name: table1").replace("short: a1", "short: a1\nshrot: 2")
    known = "VLANs, switches, links, hops, W, %, ×, Mbit/s, Mbyte/s, µs, s, flits/host/cycle, GFlops, TFlops, Mop/s"
    place = "a.yaml: items.0 (table1)"
    unit = f'there is no unit "Wat". Did you mean "W"? Known: {known}'
    assert refusals(tmp_path, text) == [
        'a.yaml: shrot: unknown key. Did you mean "short"? Known: paper, short, items',
        f'{place}.name: should begin with "a1-", not be "table1"',
        f"{place}.rows.0.unit: {unit}",
        f"{place}.rows.1.unit: {unit}",
        f'{place}.rows.1.how.model: should be one of PC5324, PC6224, PC6248, SF-420, not "PC6225". Did you mean '
        '"PC6224"?',
        f"{place}.rows.2.unit: {unit}",
        f'{place}: two rows are called "PC5324"; each needs a name of its own',
    ]


ROW_0, ROW_2 = (f"a.yaml: items.0 (a1-table1).rows.{number}" for number in (0, 2))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("value: 42.9", "value: 42.9, value: 3", 'a.yaml: line 11, column 36: key "value" is listed twice; remove one'),
        ("value: 42.9, ", "", f"{ROW_0}: should have value, the published number"),
        ("tolerance: 0.03", "tolerance: 2.0", f"{ROW_0}.tolerance: should be from 0 to below 1, not 2"),
        ("run: switch_watts", "run: switch_wats", f"{ROW_0}.how.run: should be one of plan, "),
        (
            "{model: PC5324}", "{model: PC5324, figur: W}",
            f'{ROW_0}.how.figur: unknown key. Did you mean "figure"?',
        ),
        (
            "impossible: It", "how: {model: PC5324}, impossible: It",
            f"{ROW_2}.how: says how to obtain what is impossible; remove one of them",
        ),
        ("paper: A paper", "paper: 3", "a.yaml: paper: should be text, not 3"),
        ("items:", "itms:", 'a.yaml: itms: unknown key. Did you mean "items"?'),
    ],
)  # fmt: skip
def test_one_thing_that_is_wrong_is_named_with_its_place(tmp_path, old, new, sentence):
    assert old in ITEM
    assert refusals(tmp_path, ITEM.replace(old, new))[0].startswith(sentence)


def test_a_name_in_two_files_or_no_tables_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no table"):
        read_published_numbers(tmp_path)
    (tmp_path / "b.yaml").write_text(ITEM, encoding="utf-8")
    assert refusals(tmp_path, ITEM) == ['papers: two items are called "a1-table1"; each needs a name of its own']


def test_items_are_chosen_by_name_or_paper_unknown_ones_named(tmp_path):
    items = tables(tmp_path)
    assert choose_items(items, ["a1"]) == choose_items(items, ["a1-table1"]) == choose_items(items, []) == items
    with pytest.raises(InputError) as caught:
        choose_items(items, ["a1-tabel1", "b"])
    assert str(caught.value.problems[0]) == (
        'only: there is no item "a1-tabel1". Did you mean "a1-table1"? Known: a1-table1'
    )
    assert len(caught.value.problems) == 2


def test_blocks_lie_over_each_other_and_a_kind_replaces():
    below = {"topology": {"kind": "random", "seed": "drawing"}, "routing": {"kind": "sr", "backup": False}}
    found = merge_blocks(below, {"topology": {"switches": 16}, "routing": {"kind": "updown"}})
    assert found["topology"] == {"kind": "random", "seed": "drawing", "switches": 16}
    assert found["routing"] == {"kind": "updown"}


# --- combinations ----------------------------------------------------------------------------------------------------


def test_two_calls_are_combined_drawing_by_drawing():
    problems: list[Problem] = []
    sides = {side: {"run": "switch_watts", "model": model} for side, model in (("of", "PC6248"), ("over", "PC5324"))}
    block = {"run": "ratio", **sides}
    call = read_call(block, "how", problems)
    assert problems == []
    assert call is not None
    given = {call.parts[0].text: [2.0, 9.0], call.parts[1].text: [1.0, 3.0]}
    assert call.value(lambda part: given[part.text]) == pytest.approx(2.5)
    given[call.parts[1].text] = [2.75]
    assert call.value(lambda part: given[part.text]) == pytest.approx(2.0)
    more = read_call({**block, "run": "percent_more"}, "how", problems)
    assert more is not None
    assert more.value(lambda part: given[part.text]) == pytest.approx(100)


def test_a_combination_names_what_it_lacks():
    problems: list[Problem] = []
    assert (
        read_call({"run": "ratio", "of": {"run": "wire", "protocol": "udp"}, "take": "mode"}, "how", problems) is None
    )
    assert [str(problem) for problem in problems] == [
        'how.take: should be one of mean, sd, min, max, not "mode". Did you mean "mean"?',
        "how.over: should be a block of a run, not nothing",
    ]


# --- judging ---------------------------------------------------------------------------------------------------------


def test_within_the_tolerance_is_reproduced_and_else_it_differs():
    assert states([row(10, tolerance=0.1)] * 4, [9.0, 11.0, 11.01, None]) == [
        *("reproduced", "reproduced", "differs", "not run")
    ]
    assert states([row(10)], [10.0001]) == ["differs"]


def test_what_the_paper_only_bounds_is_consistent_on_its_side():
    above, below = row(1, relation="above", unit="×"), row(1, relation="below", unit="×")
    assert states([above, above, below, below], [1.5, 1.0, 0.5, 1.5]) == [
        *("consistent", "differs", "consistent", "differs")
    ]


def test_a_bound_of_ours_reproduces_nothing():
    within = row(19, relation="within", unit="%")
    assert states([within, within, within], [20.67, 33.8, 18.9]) == ["consistent", "consistent", "differs"]


def test_what_follows_from_the_papers_numbers_is_not_reproduced():
    problems: list[Problem] = []
    own = read_call({"run": "own_numbers", "product": [225, 2, 1.8, 2], "over": [1000]}, "how", problems)
    both = read_call(
        {"run": "ratio", "of": {"run": "switch_watts", "model": "PC5324"}, "over": {"run": "wire", "protocol": "udp"}},
        "how",
        problems,
    )
    assert problems == []
    assert own is not None
    assert both is not None
    assert [own.recomputed, both.recomputed] == [True, False]
    assert RUNNERS["own_numbers"].run(own.options) == pytest.approx((1.62,))
    assert states([row(1.62, call=own), row(1.7, call=own), row(1.62, call=both)], [1.62] * 3) == [
        *("recomputed", "differs", "reproduced")
    ]


def test_a_tolerance_of_the_gain_does_not_take_no_gain_for_one():
    of_gain = {"unit": "×", "tolerance": 0.15, "tolerance_of": "gain"}
    assert states([row(1.04, **of_gain)] * 4, [1.0341, 1.0, 0.9, 1.193]) == [
        "reproduced",
        "differs",
        "differs",
        "trend",
    ]
    assert states([row(1.93, **of_gain)] * 2, [2.06, 2.173]) == ["reproduced", "trend"]


def test_a_tolerance_that_takes_no_gain_for_one_is_refused(tmp_path):
    text = ITEM.replace("unit: W", "unit: ×").replace("value: 42.9", "value: 1.04").replace("0.03", "0.15")
    assert refusals(tmp_path, text) == [
        f"{ROW_0}.tolerance: takes a ratio of 1, where neither is ahead, for 1.04; say tolerance_of: gain, or, where "
        "the paper says that neither is ahead, tolerance_of: number"
    ]
    (item,) = tables(tmp_path, text.replace("    unit: ×", "    unit: ×\n    tolerance_of: gain"))
    assert item.rows[0].tolerated_difference == pytest.approx(0.15 * 0.04)


def test_a_caveat_is_shown_beside_a_number_that_agrees(tmp_path):
    items = tables(tmp_path, ITEM.replace("value: 42.9", "value: 42.9, caveat: It could not have failed"))
    document = as_document(Score(items, ran(items, tmp_path / "kept"), "Made today"))
    assert "| PC5324 | 42.9 W | 43.8 | 1.021 | recomputed (1) |" in document
    assert "(1) It could not have failed" in document


def test_a_trend_is_the_groups_order_or_the_side_of_a_change():
    rows = [row(value, group="g") for value in (1, 2, 3)]
    assert states(rows, [2.0, 4.0, 9.0]) == ["trend"] * 3
    assert states(rows, [5.0, 4.0, 9.0]) == ["differs", "differs", "trend"]
    assert states([row(2.0, unit="×"), row(2.0, unit="×")], [1.2, 0.9]) == ["trend", "differs"]
    assert states([row(27, unit="%"), row(27, unit="%")], [3, -3]) == ["trend", "differs"]


# --- running ---------------------------------------------------------------------------------------------------------


def test_what_was_run_is_kept_and_the_unreadable_run_again(tmp_path, monkeypatch):
    items = tables(tmp_path)
    first = ran(items, tmp_path / "kept")
    assert [result.state for result in first["a1-table1"]] == ["recomputed", "recomputed", "impossible"]
    files = sorted((tmp_path / "kept").iterdir())
    assert len(files) == 2
    monkeypatch.setitem(RUNNERS, "switch_watts", _with(RUNNERS["switch_watts"], lambda options: (7.0,)))
    assert ran(items, tmp_path / "kept") == first
    files[0].write_text(files[0].read_text()[:20])  # half a file
    found = [result.ours for result in ran(items, tmp_path / "kept")["a1-table1"]]
    assert sorted(value == 7.0 for value in found) == [False, False, True]


def test_values_of_other_code_are_not_taken(tmp_path, monkeypatch):
    items = tables(tmp_path)
    ran(items, tmp_path / "kept")
    monkeypatch.setattr(running, "code_digest", lambda: "other")
    ran(items, tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 4


def test_a_failing_runner_fails_its_rows_and_leaves_the_others(tmp_path, monkeypatch):
    def broken(options):
        if options.model == "PC5324":
            raise WorkloadError("no current")
        raise ZeroDivisionError("by nought")

    items = tables(tmp_path)
    monkeypatch.setitem(RUNNERS, "switch_watts", _with(RUNNERS["switch_watts"], broken))
    found = ran(items, tmp_path / "kept")["a1-table1"]
    assert [(result.state, result.error) for result in found] == [
        ("failed", "no current"), ("failed", "ZeroDivisionError: by nought"), ("impossible", ""),
    ]  # fmt: skip
    assert [result.unexplained for result in found] == [True, True, False]


def test_an_interrupt_loses_one_run_at_most(tmp_path, monkeypatch):
    items = tables(tmp_path)
    whole = RUNNERS["switch_watts"].run
    calls: list[str] = []

    def interrupted(options):
        calls.append(options.model)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(options)

    monkeypatch.setitem(RUNNERS, "switch_watts", _with(RUNNERS["switch_watts"], interrupted))
    with pytest.raises(KeyboardInterrupt):
        ran(items, tmp_path / "kept")
    ran(items, tmp_path / "kept")
    assert len(calls) == 3


def test_quick_leaves_out_what_is_long_but_shows_what_was_run(tmp_path, monkeypatch):
    items = tables(tmp_path)
    monkeypatch.setitem(RUNNERS, "switch_watts", _with(RUNNERS["switch_watts"], quick=False))
    assert [result.state for result in ran(items, tmp_path / "kept")["a1-table1"]] == [
        "not run",
        "not run",
        "impossible",
    ]
    assert ran(items, tmp_path / "kept", quick=False)["a1-table1"][0].state == "recomputed"
    assert ran(items, tmp_path / "kept")["a1-table1"][0].state == "recomputed"


def _with(runner, run=None, quick=None):
    return dataclasses.replace(runner, run=run or runner.run, quick=runner.quick if quick is None else quick)


# --- pages -----------------------------------------------------------------------------------------------------------


def test_page_document_csv_and_object_have_every_number(tmp_path):
    items = tables(tmp_path, ITEM.replace("PC6224, value: 91.1", "PC6224, value: 50.0, why: A <reason> of ours"))
    score = Score(items, ran(items, tmp_path / "kept"), "Made today")
    assert score.sentence == "3 published numbers: 1 recomputed, 1 differs, 1 impossible"
    assert score.unexplained == ()
    rows = list(csv.DictReader(io.StringIO(as_csv(score))))
    assert [(line["row"], line["published"], line["ours"], line["state"]) for line in rows] == [
        ("PC5324", "42.9", "43.8", "recomputed"), ("PC6224", "50", "90.5", "differs"), ("far", "1", "–", "impossible"),
    ]  # fmt: skip
    page, document = as_page(score), as_document(score)
    assert "A &lt;reason&gt; of ours" in page
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "| PC5324 | 42.9 W | 43.8 | 1.021 | recomputed |" in document
    assert "| far | 1 W | – | – | impossible (2) |" in document
    assert json.loads(json.dumps(as_object(score)))["counts"]["recomputed"] == 1


def test_a_difference_without_a_reason_is_not_explained(tmp_path):
    items = tables(tmp_path, ITEM.replace("value: 91.1", "value: 50.0"))
    score = Score(items, ran(items, tmp_path / "kept"), "Made today")
    assert [result.row.name for result in score.unexplained] == ["PC6224"]
    assert "not explained" in as_document(score)

"""What `make fuzz` has found, and the inputs of that form that it draws: each is answered by a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from benchmarks.fuzz import feed
from benchmarks.fuzz_inputs import smaller
from benchmarks.fuzz_shown import feed_progress, require_text
from benchmarks.fuzz_targets import TARGETS, Target
from testbed.ui.cli import output

FOUND = sorted((Path(__file__).parents[2] / "data" / "fuzz").glob("*.json"))


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
def test_what_was_found_is_mended(file):
    said = json.loads(file.read_text())
    feed(said["target"], said["given"])


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_the_same_seed_draws_the_same_inputs_that_can_be_stored(name):
    drawn = [TARGETS[name].draw(Random(f"1 {name} {number}")) for number in range(5)]
    again = [TARGETS[name].draw(Random(f"1 {name} {number}")) for number in range(5)]
    assert json.dumps(drawn) == json.dumps(again)
    assert len({json.dumps(one) for one in drawn}) > 1


def test_a_finding_is_made_small():
    assert smaller("topology: {kind: mesh}", lambda text: "k" in text and "m" in text) == "km"
    assert smaller({"a": "1", "b": "23"}, lambda files: "3" in files.get("b", "")) == {"b": "3"}


def test_what_is_no_sentence_is_found(monkeypatch):
    monkeypatch.setitem(TARGETS, "broken", Target(lambda chance: "x", {}.__getitem__, 1))
    with pytest.raises(KeyError):
        feed("broken", "x")


@pytest.mark.parametrize("name", ["record", "page", "progress"])
def test_what_is_shown_of_others_is_text(name):
    for number in range(3):
        feed(name, TARGETS[name].draw(Random(number)))


@pytest.mark.parametrize("shown", ["a\x1b[2J", "a\nown: b", "a\u202eb", "a\x9b31m"])
def test_what_steers_a_terminal_or_begins_a_line_is_found(shown):
    with pytest.raises(AssertionError):
        require_text(shown)


def test_progress_that_is_not_escaped_is_found(monkeypatch):
    monkeypatch.setattr(output, "escape_line", str)
    with pytest.raises(AssertionError, match="a name began the line"):
        feed_progress("a\nown: b")

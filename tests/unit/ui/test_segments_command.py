"""`testbed segments`: segments as people read them, what changes take, and what is no change."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.ui.cli import plan_commands, segments_command  # noqa: F401 - a program of one command would take no name
from testbed.ui.cli.app import app


def run(*words):
    return CliRunner().invoke(app, ["segments", *words], catch_exceptions=False)


def test_segments_and_what_a_dead_link_and_a_new_switch_take():
    words = ("sr-irregular16", "--change", "down s1-s5", "--change", "kill s9", "--change", "start s9")
    found = json.loads(run(*words, "--format", "json").stdout)
    assert all(segment["prohibited"] for segment in found["segments"])
    assert len({segment["way"] for segment in found["segments"]}) == len(found["segments"]) > 10
    dead, gone, new = found["changes"]
    assert [change["change"] for change in found["changes"]] == ["down s1-s5", "kill s9", "start s9"]
    assert dead["segments_stay"] == dead["segments"] == len(found["segments"])
    assert 0 < dead["entries"] < dead["entries_anew"]
    assert gone["entries"] > 0
    assert new["entries"] > 0
    text = run(*words).stdout
    assert text.startswith("1. s1–")
    assert "down s1-s5: " in text


@pytest.mark.parametrize(("changes", "expected"), [
    (["dwn s1-s5", "down"], [
        '--change.0: "dwn" is nothing that can happen; there is down, up, kill, start, link. Did you mean "down"?',
        '--change.1: should be a time, what happens and to what, such as "at 5s: down s3-s7", not "at 0s: down"',
    ]),
    (["link s1-s5 rate 100M"], ['--change.0: should be down, up, kill, start, not "link"']),
    (["up s1-s5", "down h3"], [
        "--change.0: s1-s5 is not dead then; down comes before up",
        "--change.1: ports of hosts are in no segment; name links and switches",
    ]),
])  # fmt: skip
def test_what_is_no_change(changes, expected):
    with pytest.raises(InputError) as caught:
        run("sr-irregular16", *(word for change in changes for word in ("--change", change)))
    assert [str(problem) for problem in caught.value.problems] == expected


def test_a_fabric_without_links_has_no_segments():
    with pytest.raises(InputError, match="has no link between switches, so there are no segments"):
        run("flat16")

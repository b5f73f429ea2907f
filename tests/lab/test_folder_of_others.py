"""Labs that are called from a folder with files that Python would take for its own: none of it runs, least as root."""

from __future__ import annotations

import pytest

from tests.planted import Planted, plant

pytestmark = [pytest.mark.timeout(300)]

_LAB = """
name: of-others
topology: {kind: ring, switches: 3}
lab: {dilation: 100, controller: switch_tagged}
workloads: [{kind: rr, protocol: udp, pattern: neighbour, repeats: 1}]
"""


@pytest.fixture
def planted(tmp_path, untouched) -> Planted:
    found = plant(tmp_path / "somebody")
    (found.folder / "it.yaml").write_text(_LAB)
    return found


def test_a_lab_and_what_runs_in_it_take_no_code_from_the_folder(planted):
    calls = (
        ("up", "it.yaml"),
        ("load", "of-others"),
        ("exec", "of-others", "h1", "--", "ls", "json.py"),  # programs of users still begin there
        ("controller", "of-others"),
        ("down", "of-others"),
    )
    for words in calls:
        done = planted.run(*words)
        assert planted.taken() == [], words
        assert done.returncode in (0, 1, 3), (words, done.stderr)  # how the load is judged says nothing here
        assert "Traceback" not in done.stderr, (words, done.stderr)


def test_modelled_switches_take_no_code_from_the_folder(planted):
    words = ("--engine", "realtime", "--set", "lab.controller=none", "--set", "workloads.0.seconds=1")
    done = planted.run("run", "it.yaml", *words)
    assert planted.taken() == []
    assert done.returncode in (0, 1, 3), done.stderr
    done = planted.run("storm", "--switches", "3", "--seconds", "0.5", "--engine", "realtime")
    assert planted.taken() == []
    assert done.returncode == 0, done.stderr

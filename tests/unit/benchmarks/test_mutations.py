"""Faults to plant: what is changed, and what is left alone."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from dataclasses import asdict

import pytest

from benchmarks import mutants
from benchmarks.mutants import JUDGES, PLACES, ROOT, Mutant, candidates, drawn, explained, judges, noticed_before
from benchmarks.mutants_judges import Seen, judging
from benchmarks.mutations import mutations


@pytest.mark.parametrize(("line", "faults"), [
    ("a < b", ["a <= b"]),
    ("a not in b", ["a in b"]),
    ("a < b == c", ["a <= b == c", "a < b != c"]),
    ("x = a + b", ["x = a - b"]),
    ("x = a if b else c", ["x = a if not (b) else c"]),
    ("x[0] += 1", ["x[0] -= 1", "x[0] += 2", "x[1] += 1"]),
    ("x = (a + b) // c", ["x = (a + b) * c", "x = (a - b) // c"]),
    ("x = not a and b", ["x = a and b", "x = not a or b"]),
    ("x = min(a, b.max())", ["x = max(a, b.max())", "x = min(a, b.min())"]),
    ("x = 0.5, True", ["x = 0.55, True", "x = 0.5, False"]),
    ("x.y = 'ä'; z.append(w)", ["pass; z.append(w)", "x.y = 'ä'; pass"]),
    ("while a: break", ["while a: continue"]),
    ("def f(x: int | None = None) -> int | None: ...", []),
    ("X = int | float", []),
    ("progress('text')", []),
    ("x = zip(a, strict=True)", []),
    ("raise ValueError(f'{a + 1}')", []),
    ("x = f'{a + 1:.2f}'", []),
])  # fmt: skip
def test_a_fault_is_a_line_that_could_have_been_written(line, faults):
    source = f"# ü\n{line}\n".encode()
    found = mutations("a.py", source)
    assert sorted(one.of(source).decode().splitlines()[1] for one in found) == sorted(faults)
    for one in found:
        before, after = one.lines(source)
        assert (one.line, before) == (2, line)
        assert after in faults


def test_every_place_has_sources_or_tests():
    assert all(list(ROOT.glob(place)) for place in (*PLACES, *JUDGES))
    assert {one.file for one in candidates()} >= {
        "testbed/fabric/kernels/path_checks.py",
        "testbed/experiments/run/checks/fidelity.py",
    }
    assert {"tests/unit/fabric/test_routing.py", "tests/golden/test_rules_text.py"} <= set(judges())


def test_faults_that_are_explained_can_still_be_planted():
    known = explained()
    files = {file for file, _, _ in known}
    possible = {
        (file, *one.lines(source))
        for file in files
        for source in [(ROOT / file).read_bytes()]
        for one in mutations(file, source)
    }
    assert set(known) <= possible


def test_faults_are_drawn_in_an_order_other_lines_do_not_change():
    every = candidates(["testbed/fabric/verify/"])
    some = [one for one in every if one.file != "testbed/fabric/verify/local_vlans.py"]
    first = drawn(every, 1)
    assert drawn(some, 1) == [one for one in first if one in some]
    assert sorted(first, key=every.index) == every != first != drawn(every, 2)


@pytest.mark.parametrize(
    ("file", "line", "seconds", "tests"),
    [
        ("x.py", 20, 9, ["a"]),
        ("x.py", 12, 9, ["b", "a"]),  # which enters fewer functions comes first
        ("x.py", 12, 2, ["b"]),
        ("x.py", 12, 1, []),
        ("x.py", 1, 9, ["b", "a"]),  # outside of all functions
        ("y.py", 14, 9, ["a"]),
        ("z.py", 1, 9, []),
    ],
)
def test_those_judge_that_enter_a_function_around_the_fault(file, line, seconds, tests):
    seen = {
        "a": Seen(0.5, frozenset({("x.py", 10, 20), ("y.py", 1, 5)})),
        "b": Seen(2.0, frozenset({("x.py", 12, 14)})),
        "c": Seen(None, frozenset({("x.py", 10, 20)})),
    }
    assert judging(seen, file, line, seconds) == tests


def test_what_was_seen_holds_until_something_imported_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    source, kept = tmp_path / "a.py", tmp_path / "kept"
    source.write_text("A = 1")
    kept.write_bytes(pickle.dumps(({"a.py": hashlib.sha256(b"A = 1").digest()}, {})))
    assert mutants._holds(kept)
    source.write_text("A = 2")
    assert not mutants._holds(kept)
    source.unlink()
    assert not mutants._holds(kept)


def test_what_was_noticed_need_not_be_noticed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "FATES", tmp_path / "fates")
    chosen = candidates(["testbed/fabric/verify/deadlock.py"])[:3]
    assert noticed_before(chosen) == []
    lines = [one.lines((ROOT / one.file).read_bytes()) for one in chosen]
    fates = [
        Mutant(chosen[0], *lines[0], "noticed", "FAILED x", 1.0),
        Mutant(chosen[1], *lines[1], "survived", "2 passed", 1.0),
        Mutant(chosen[2], lines[2][0], "another line", "noticed", "FAILED x", 1.0),
    ]
    mutants.FATES.write_text("".join(json.dumps(asdict(one)) + "\n" for one in fates))
    assert noticed_before(chosen) == fates[:1]


JUDGED = """
import sys, pickle
from pathlib import Path
import pytest
from benchmarks.mutants_judges import Judge, Watch
root = Path.cwd()
sys.path.insert(0, str(root))
quiet = ["-q", "-x", "-p", "no:cacheprovider", "-c", "pytest.ini", "tests.py"]
if sys.argv[1:]:
    sys.exit(pytest.main(quiet, plugins=[Judge({name: 0.01 for name in sys.argv[1:]})]))
watch = Watch(root)
code = pytest.main(quiet, plugins=[watch])
sys.settrace(None)
for test, one in sorted(watch.seen().items()):
    print("seen", test, sorted((first, last) for _, first, last in one.entered), one.seconds is not None)
sys.exit(code)
"""
TWO = """
import pytest
from testbed import even, odd, spin
def test_even(): assert even(2)
def test_odd(): assert odd(3)
def test_spin(): spin({})
"""


@pytest.mark.slow
def test_tests_are_watched_and_those_that_hang_noticed_a_fault(tmp_path):
    made = tmp_path / "testbed"
    made.mkdir()
    source = "def even(x):\n    return x % 2 == 0\n\ndef odd(x):\n    return not even(x)\n\ndef spin(n):\n"
    (made / "__init__.py").write_text(source + "    for _ in range(n): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests.py").write_text(TWO.format(10))

    def run(*tests):
        words = [sys.executable, "-c", f"import sys; sys.path.append({str(ROOT)!r})\n{JUDGED}", *tests]
        # The testbed's own pytest plugin is in the real package.
        apart = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=apart)

    watched = run()
    assert [line for line in watched.stdout.splitlines() if line.startswith("seen")] == [
        "seen tests.py::test_even [(1, 2)] True",
        "seen tests.py::test_odd [(1, 2), (4, 5)] True",
        "seen tests.py::test_spin [(7, 8)] True",
    ]
    assert "1 passed" in run("tests.py::test_even").stdout
    (tmp_path / "tests.py").write_text(f"{TWO.format(10)}\ndef test_wrong(): assert odd(2)\n")
    watched = run()
    assert "seen tests.py::test_wrong [(1, 2), (4, 5)] False" in watched.stdout.splitlines()
    assert "3 passed, 1 skipped" in watched.stdout
    (tmp_path / "tests.py").write_text(TWO.format(10**12))
    assert "did not end in 3 s of processor time" in run("tests.py::test_spin").stdout

"""Faults to plant: what is changed, and what is left alone."""

from __future__ import annotations

import pytest

from benchmarks.mutants import PLACES, ROOT, candidates, explained, judges_of
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


def test_every_part_of_the_table_has_sources_and_tests():
    for place, tests in PLACES.items():
        assert list(ROOT.glob(place)), place
        assert all((ROOT / test).is_file() for test in tests), place
    assert {one.file for one in candidates()} >= {"testbed/kernels/check.py", "testbed/run/checks/fidelity.py"}
    assert judges_of("testbed/kernels/packets_hosts.py") == PLACES["testbed/kernels/packets*.py"]
    assert judges_of("testbed/routing/dor.py") == PLACES["testbed/routing/*.py"]


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

"""Mutation testing: plant small faults, one at a time, and see whether a test notices.

`python -m benchmarks.mutants --help`. Faults are drawn from all that benchmarks/mutations.py finds in PLACES. Each is
judged by tests that enter the function with the fault, in a copy of the project. Kernels are interpreted there:
compiling those with the fault anew takes minutes. Faults that change nothing stand in benchmarks/mutants.yaml, each
with the reason.

Exit codes: 0 enough were noticed, 1 not, 2 tests cannot be run without any fault or nothing could be planted, 130
Ctrl-C.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import pickle
import resource
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import cast

import pytest
import yaml

from benchmarks.mutants_judges import Judge, Seen, Watch, judging
from benchmarks.mutations import Mutation, mutations
from benchmarks.table import progress

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".cache" / "mutants"
FATES = FOLDER / "fates.jsonl"  # of the last run, one mutant a line
EXPLAINED = Path(__file__).with_suffix(".yaml")
# Its processes begin with what takes longest to load.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "pytest",
        "_pytest.python",
        "benchmarks.mutants_judges",
        "hypothesis",
        "networkx",
        "numpy",
        "pydantic",
        "typer.testing",
        "yaml",
    ]
)
# What wraps around wherever it is compiled is a warning where it is not.
_UNHEEDED = ("Module already imported:pytest.PytestAssertRewriteWarning", "overflow encountered:RuntimeWarning")
_PATIENCE = 1800.0  # seconds for any tests, whatever else the machine has to do
_MEMORY = 8 << 30  # bytes for the tests of a mutant, which may ask for any


# Where faults are planted.
PLACES = (
    "testbed/fabric/routing/*.py",
    "testbed/fabric/vlans/*.py",
    "testbed/fabric/verify/*.py",
    "testbed/fabric/openflow/*.py",
    "testbed/fabric/kernels/*.py",
    "testbed/engines/simulate/*.py",
    "testbed/experiments/run/checks/fidelity.py",
)
# Who judges: all that need no lab and measure nothing. Of those that a fault concerns, so many seconds at most, and
# a few first, so that few files of tests are read where these notice it.
JUDGES = ("tests/unit/*/test_*.py", "tests/property/test_*.py", "tests/golden/test_*.py")
_NO_JUDGES = "lab or long or alone or quiet"
_SECONDS, _FIRST = 60.0, 30


@dataclass(frozen=True)
class Mutant:
    """A planted fault and what became of it.

    Attributes:
        mutation: the fault.
        before: its line without it.
        after: its line with it.
        fate: `noticed`, `survived` or `explained`.
        said: last line of the tests that noticed it, or why nothing can.
        seconds: that took.
    """

    mutation: Mutation
    before: str
    after: str
    fate: str
    said: str
    seconds: float

    def __str__(self) -> str:
        """Place, line before and line after."""
        return f"{self.mutation.file}:{self.mutation.line}\n  - {self.before}\n  + {self.after}"


def candidates(only: Sequence[str] = ()) -> list[Mutation]:
    """Every fault that can be planted, by file and place; `only` = in files that begin so."""
    files = sorted({file for place in PLACES for file in ROOT.glob(place)})
    names = [str(file.relative_to(ROOT)) for file in files if file.name != "jit.py"]
    wanted = [name for name in names if not only or any(name.startswith(prefix) for prefix in only)]
    return [mutation for name in wanted for mutation in mutations(name, (ROOT / name).read_bytes())]


def drawn(every: Sequence[Mutation], seed: int) -> list[Mutation]:
    """All in an order of the seed, in which those of a line stay where they are if other lines change."""
    sources = {one.file: (ROOT / one.file).read_bytes() for one in every}
    places = {one: f"{seed} {one.file} {one.lines(sources[one.file])}" for one in every}
    return sorted(every, key=lambda one: hashlib.sha256(places[one].encode()).digest())


def judges() -> list[str]:
    """Files of tests that judge."""
    return sorted(str(file.relative_to(ROOT)) for place in JUDGES for file in ROOT.glob(place))


def explained() -> dict[tuple[str, str, str], str]:
    """(file, line before, line after) of faults that change nothing → why."""
    entries = yaml.safe_load(EXPLAINED.read_text(encoding="utf-8")) or []
    return {(entry["file"], entry["line"], entry["becomes"]): entry["why"] for entry in entries}


def run(chosen: Sequence[Mutation], jobs: int, found: list[Mutant]) -> None:
    """Plant each fault and run its tests.

    Args:
        chosen: the faults.
        jobs: how many at a time.
        found: gets the mutants as they are judged; with those that it has already nothing is done.

    Raises:
        SystemExit: tests fail without any fault.
    """
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(jobs):
        copy = FOLDER / str(number)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ROOT, copy, ignore=_not_copied)
        copies.put(copy)
    known, done = explained(), {one.mutation for one in found}
    left = [one for one in chosen if one not in done]
    pool = ThreadPoolExecutor(jobs)  # never waited for: on Ctrl-C what it does ends with this process
    files = judges()
    seen: dict[str, Seen] = {}
    for number, tests in enumerate(pool.map(lambda file: _watched(copies, file), files), 1):
        seen |= tests
        progress(f"{number} of {len(files)} files of tests seen without a fault")
    with FATES.open("a", encoding="utf-8") as fates:
        started = time.monotonic()
        for number, mutant in enumerate(pool.map(lambda one: _judge(one, copies, known, seen), left), 1):
            found.append(mutant)
            fates.write(json.dumps(asdict(mutant)) + "\n")
            fates.flush()
            minutes = (time.monotonic() - started) / number * (len(left) - number) / 60
            progress(
                f"{len(found)} of {len(chosen)}, {minutes:.0f} min left: {mutant.fate} after {mutant.seconds:.0f} s: "
                f"{mutant}"
            )


def noticed_before(chosen: Sequence[Mutation]) -> list[Mutant]:
    """Those of the chosen faults that the last run has found to be noticed."""
    lines = FATES.read_text(encoding="utf-8").splitlines() if FATES.exists() else []
    mutants = [Mutant(**{**one, "mutation": Mutation(**one["mutation"])}) for one in map(json.loads, lines)]
    sources = {one.file: (ROOT / one.file).read_bytes() for one in chosen}
    wanted = {(one, *one.lines(sources[one.file])) for one in chosen}
    found = {one.mutation: one for one in mutants if (one.mutation, one.before, one.after) in wanted}
    return [one for one in found.values() if one.fate == "noticed"]


def _not_copied(folder: str, names: list[str]) -> list[str]:
    unused = ("__pycache__", "results") if Path(folder) == ROOT else ("__pycache__",)
    return [name for name in names if name.startswith(".") or name in unused]


def _watched(copies: SimpleQueue[Path], file: str) -> dict[str, Seen]:
    """The tests of a file, without any fault; kept for as long as nothing changes of what they import."""
    key = b"".join(Path(ROOT, one).read_bytes() for one in (file, "tests/conftest.py", "benchmarks/mutants_judges.py"))
    kept = FOLDER / "seen" / hashlib.sha256(file.encode() + key).hexdigest()
    if not (kept.exists() and _holds(kept)):
        copy = copies.get()
        started = time.monotonic()
        code, said = _pytest(copy, [file], None)
        progress(f"without a fault, {time.monotonic() - started:.0f} s: {file}: {said}")
        if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            progress(f"tests fail without any fault (exit code {code})")
            os._exit(2)
        kept.parent.mkdir(parents=True, exist_ok=True)
        (copy / "seen").rename(kept)
        copies.put(copy)
    _, seen = pickle.loads(kept.read_bytes())
    return cast(dict[str, Seen], seen)


def _holds(kept: Path) -> bool:
    """Whether all that the tests import is as it was when they were seen."""
    sources, _ = pickle.loads(kept.read_bytes())
    return all(Path(ROOT, one).exists() and _digest(ROOT / one) == digest for one, digest in sources.items())


def _digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


def _judge(
    mutation: Mutation, copies: SimpleQueue[Path], known: dict[tuple[str, str, str], str], seen: dict[str, Seen]
) -> Mutant:
    source = (ROOT / mutation.file).read_bytes()
    before, after = mutation.lines(source)
    if (mutation.file, before, after) in known:
        return Mutant(mutation, before, after, "explained", known[mutation.file, before, after], 0.0)
    tests = judging(seen, mutation.file, mutation.line, _SECONDS)
    copy = copies.get()
    started, fate, said = time.monotonic(), "survived", "no test concerns it"
    try:
        (copy / mutation.file).write_bytes(mutation.of(source))
        for some in (tests[:_FIRST], tests[_FIRST:]):
            if some and fate == "survived":
                files = sorted({test.partition("::")[0] for test in some})
                code, said = _pytest(copy, files, {test: cast(float, seen[test].seconds) for test in some})
                fate = "survived" if code == 0 else "noticed"
    finally:
        (copy / mutation.file).write_bytes(source)
        copies.put(copy)
    return Mutant(mutation, before, after, fate, said, time.monotonic() - started)


def _pytest(copy: Path, files: Sequence[str], tests: dict[str, float] | None) -> tuple[int | None, str]:
    """Exit code of the tests, and their first failure or last line."""
    output = copy / "output.txt"
    process = _SERVER.Process(target=_in_child, args=(str(copy), files, tests))
    process.start()
    assert process.pid is not None
    process.join(_PATIENCE)
    if process.exitcode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    if process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL):
        return process.exitcode, "did not end"
    lines = output.read_text(errors="replace").strip().splitlines() if output.exists() else []
    said = next((line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1] if lines else "")
    return process.exitcode, said


def _end_with_main() -> None:
    """End this process, and those it has started, with the one that asked for it; its parent lives as long as it."""
    main = multiprocessing.parent_process()
    assert main is not None
    main.join()
    os.killpg(0, signal.SIGKILL)


def _in_child(copy: str, files: Sequence[str], tests: dict[str, float] | None) -> None:
    """Run tests on the copy, in a process that has loaded all but the project; its exit code is theirs.

    Without a choice of tests, what all of them enter is left in the copy.
    """
    os.setsid()
    threading.Thread(target=_end_with_main, daemon=True).start()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    output = os.open(Path(copy, "output.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.chdir(copy)
    sys.path.insert(0, copy)
    os.environ |= {"PYTHONPATH": copy, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True  # of two faults in one second, the second's would be taken for the first's
    import testbed  # noqa: PLC0415 - the copy's

    assert str(testbed.__file__).startswith(copy)
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no", "--timeout=0"]
    unheeded = [word for text in _UNHEEDED for word in ("-W", f"ignore:{text}")]
    plugin = Judge(tests) if tests is not None else Watch(Path(copy))
    code = pytest.main([*quiet, *unheeded, "-m", f"not ({_NO_JUDGES})", *files], plugins=[plugin])
    if isinstance(plugin, Watch):
        sys.settrace(None)
        imported = {str(getattr(module, "__file__", "")) for module in sys.modules.values()}
        sources = {name[len(copy) + 1 :]: _digest(Path(name)) for name in imported if name.startswith(f"{copy}/")}
        Path(copy, "seen").write_bytes(pickle.dumps((sources, plugin.seen())))
    sys.exit(code)


def main() -> int:
    """Plant, count and tell."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="faults to plant; default 200")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing; default 1")
    parser.add_argument("--only", action="append", default=[], metavar="PATH", help="files that begin so; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time; default one a processor")
    parser.add_argument("--goal", type=float, default=95, help="%% that must be noticed; default 95")
    parser.add_argument("--resume", action="store_true", help="take what the last run saw noticed as noticed")
    parser.add_argument("--list", action="store_true", help="only list what would be planted")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the output")
    asked = parser.parse_args()
    every = candidates(asked.only)
    chosen = drawn(every, asked.seed)[: asked.count]
    progress(f"{len(chosen)} of {len(every)} faults")
    if asked.list:
        for mutation in chosen:
            print(Mutant(mutation, *mutation.lines((ROOT / mutation.file).read_bytes()), "", "", 0.0))
        return 0
    if not chosen:
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = noticed_before(chosen) if asked.resume else []
    FATES.write_text("".join(json.dumps(asdict(one)) + "\n" for one in found), encoding="utf-8")
    try:
        run(chosen, asked.jobs, found)
    except KeyboardInterrupt:
        _tell(found, asked.seed, asked.format)
        sys.stdout.flush()
        os._exit(130)  # and with it, soon, all tests that run
    return 0 if _tell(found, asked.seed, asked.format) >= asked.goal else 1


def _tell(found: Sequence[Mutant], seed: int, form: str) -> float:
    """Print what was found; the share that was noticed, %."""
    counted = [one for one in found if one.fate != "explained"]
    survivors = [one for one in counted if one.fate == "survived"]
    share = 100 * (1 - len(survivors) / len(counted)) if counted else 100.0
    if form == "json":
        print(json.dumps({"share": share, "seed": seed, "mutants": [asdict(one) for one in found]}, indent=1))
        return share
    for one in survivors:
        print(one)
    counts = Counter((str(Path(one.mutation.file).parent), one.fate) for one in found)
    for folder in sorted({folder for folder, _ in counts}):
        fates = (f"{counts[folder, fate]:4d} {fate}" for fate in ("noticed", "survived", "explained"))
        print(f"{folder:20s}" + ", ".join(fates))
    print(
        f"{share:.1f} % noticed: {len(counted) - len(survivors)} of {len(counted)}; {len(survivors)} survived, "
        f"{len(found) - len(counted)} change nothing and are explained in {EXPLAINED.relative_to(ROOT)}"
    )
    return share


if __name__ == "__main__":
    sys.exit(main())

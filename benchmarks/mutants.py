"""Mutation testing: plant small faults, one at a time, and see whether a test notices.

`python -m benchmarks.mutants --help`. Faults are drawn from all that benchmarks/mutations.py finds in PLACES. Each is
judged by the tests that concern its module, in a copy of the project. Kernels are interpreted there: compiling all of
them anew takes minutes. Faults that change nothing stand in benchmarks/mutants.yaml, each with the reason.

Exit codes: 0 enough were noticed, 1 not, 2 the tests fail without any fault or nothing could be planted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import numba
import yaml

from benchmarks.mutations import Mutation, mutations
from benchmarks.table import progress

ROOT = Path(__file__).resolve().parents[1]
# What is compiled there is still there the next time.
FOLDER = ROOT / ".cache" / "mutants"
EXPLAINED = Path(__file__).with_suffix(".yaml")
# Its processes begin with what takes longest to load.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "pytest",
        "_pytest.python",
        "hypothesis",
        "networkx",
        "numpy",
        "pydantic",
        "typer.testing",
        "yaml",
    ]
)
_LOADED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
_PATIENCE = 1800.0  # seconds for any tests; without a fault they may have all to compile
_MEMORY = 8 << 30  # bytes for the tests of a mutant, which may ask for any


def _tests(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/{name}.py" for name in names)


_SIMPLE = _tests("unit/test_routing", "unit/test_routing_trees", "golden/test_torus_numbers")
_TURNS = _tests("unit/test_routing_turns", "unit/test_segments", "golden/test_turn_numbers")
_SELECTION = _tests("unit/test_selection", "golden/test_selection_numbers")
_LAYERS = _tests("unit/test_routing_layers", "golden/test_layer_numbers")
_VLANS = _tests("unit/test_vlans", "unit/test_fewest", "golden/test_assignment_table")
_LOCAL = _tests("unit/test_local_plans", "property/test_planted_faults_local")
_PROOFS = _tests(
    "unit/test_plan", "unit/test_kernels_check", "property/test_planted_faults", "property/test_planted_path_faults"
)
_FLITS = _tests("unit/test_simulate", "unit/test_replay", "unit/test_simulate_command")
_PACKETS = _tests("unit/test_packets", "unit/test_packets_command", "unit/test_run_simulated")
# Kernels that take too long where they are interpreted are compiled anew, which takes long, too.
_COMPILED = ("flits", "packets", "tcp")
# Glob → arguments of pytest that judge a fault there, quick tests first. The longest glob that fits holds.
PLACES: dict[str, tuple[str, ...]] = {
    "testbed/routing/*.py": (*_SIMPLE, *_TURNS),
    "testbed/routing/dl.py": _LAYERS,
    "testbed/routing/layers.py": _LAYERS,
    "testbed/routing/nue.py": _LAYERS,
    "testbed/routing/lturn.py": _TURNS,
    "testbed/routing/selection.py": (*_SELECTION, *_TURNS),
    "testbed/routing/sr.py": _TURNS,
    "testbed/routing/tbtp.py": _TURNS,
    "testbed/routing/turns.py": (*_TURNS, *_SELECTION),
    "testbed/vlans/*.py": (*_VLANS, *_LOCAL),
    "testbed/vlans/fixed.py": (*_VLANS, *_tests("unit/test_learning")),
    "testbed/verify/*.py": (*_PROOFS, *_LOCAL),
    "testbed/verify/bundles.py": _tests("unit/test_aggregation", "property/test_bundles"),
    "testbed/verify/deadlock.py": (*_PROOFS, *_tests("property/test_deadlock")),
    "testbed/pipeline/*.py": _tests(
        "unit/test_oracle", "golden/test_rules_text", "unit/test_learning", "unit/test_aggregation"
    ),
    "testbed/pipeline/bundles.py": _tests("unit/test_aggregation", "property/test_bundles"),
    "testbed/pipeline/compile_local.py": (*_LOCAL, *_tests("golden/test_rules_text")),
    "testbed/kernels/*.py": _tests("unit/test_routing_turns", "unit/test_segments"),
    "testbed/kernels/check.py": _tests("unit/test_kernels_check"),
    "testbed/kernels/conflicts.py": _tests("unit/test_fewest"),
    "testbed/kernels/cycles.py": _tests("unit/test_routing_turns", "unit/test_plan"),
    "testbed/kernels/dependencies.py": _tests("unit/test_routing_layers"),
    "testbed/kernels/distances.py": _tests("unit/test_routing_layers", "unit/test_analyse"),
    "testbed/kernels/flits*.py": _tests("unit/test_simulate"),
    "testbed/kernels/forwarding.py": _tests("unit/test_vlans", "unit/test_local_plans", "unit/test_fewest"),
    "testbed/kernels/layers.py": _tests("unit/test_routing_layers"),
    "testbed/kernels/local.py": _LOCAL,
    "testbed/kernels/nue.py": _tests("unit/test_routing_layers"),
    "testbed/kernels/packets*.py": _tests("unit/test_packets"),
    "testbed/kernels/selection*.py": _tests("unit/test_selection"),
    "testbed/kernels/sssp.py": _tests("unit/test_routing_layers"),
    "testbed/kernels/tcp*.py": _tests("unit/test_predict_tcp"),
    "testbed/kernels/trees.py": _tests("unit/test_routing", "unit/test_fewest", "unit/test_selection"),
    "testbed/kernels/vlans.py": _tests("unit/test_vlans", "unit/test_fewest", "unit/test_plan"),
    "testbed/simulate/*.py": (*_FLITS, *_PACKETS),
    "testbed/simulate/packet_*.py": _PACKETS,
    "testbed/run/checks/fidelity.py": _tests("unit/test_fidelity"),
}


@dataclass(frozen=True)
class Mutant:
    """A planted fault and what became of it.

    Attributes:
        mutation: the fault.
        before: its line without it.
        after: its line with it.
        fate: `noticed`, `endless` (noticed, too), `survived` or `explained`.
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


def judges_of(file: str) -> tuple[str, ...]:
    """Arguments of pytest that judge a fault in a file: those of the longest part of its path that PLACES knows."""
    place = max((place for place in PLACES if (ROOT / file).match(place)), key=len)
    return PLACES[place]


def interpreted(file: str) -> bool:
    """Whether the tests of a fault there are not to compile anything."""
    path = Path(file)
    return path.parent.name == "kernels" and not path.name.startswith(_COMPILED)


def explained() -> dict[tuple[str, str, str], str]:
    """(file, line before, line after) of faults that change nothing → why."""
    entries = yaml.safe_load(EXPLAINED.read_text(encoding="utf-8")) or []
    return {(entry["file"], entry["line"], entry["becomes"]): entry["why"] for entry in entries}


def run(chosen: Sequence[Mutation], jobs: int) -> list[Mutant]:
    """Plant each fault and run its tests.

    Raises:
        SystemExit: tests fail without any fault.
    """
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(jobs):
        copy = FOLDER / str(number)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ROOT, copy, ignore=_not_copied)
        copies.put(copy)
    known = explained()
    found = []
    with ThreadPoolExecutor(jobs) as pool:
        every = sorted(
            {one.file for one in chosen if (one.file, *one.lines((ROOT / one.file).read_bytes())) not in known}
        )
        first = {(judges_of(file), interpreted(file)): file for file in every}
        limits = dict(zip(first, pool.map(lambda file: 30 + 3 * _sound(copies, file), first.values()), strict=True))
        for mutant in pool.map(lambda one: _judge(one, copies, known, limits), chosen):
            found.append(mutant)
            progress(f"{len(found)} of {len(chosen)} {mutant.fate} after {mutant.seconds:.0f} s: {mutant}")
    return found


def _not_copied(folder: str, names: list[str]) -> list[str]:
    unused = ("__pycache__", "results") if Path(folder) == ROOT else ("__pycache__",)
    return [name for name in names if name.startswith(".") or name in unused]


def _sound(copies: SimpleQueue[Path], file: str) -> float:
    """Seconds of processor time that the tests of a file take without any fault."""
    copy = copies.get()
    started = time.monotonic()
    code, said = _pytest(copy, file, _PATIENCE)
    seconds = time.monotonic() - started
    spent = float((copy / "seconds.txt").read_text()) if code == 0 else 0.0
    copies.put(copy)
    progress(f"without a fault, {seconds:.0f} s: {' '.join(judges_of(file))}: {said}")
    if code != 0:
        progress(f"tests fail without any fault (exit code {code})")
        os._exit(2)
    return spent


def _judge(
    mutation: Mutation,
    copies: SimpleQueue[Path],
    known: dict[tuple[str, str, str], str],
    limits: dict[tuple[tuple[str, ...], bool], float],
) -> Mutant:
    source = (ROOT / mutation.file).read_bytes()
    before, after = mutation.lines(source)
    if (mutation.file, before, after) in known:
        return Mutant(mutation, before, after, "explained", known[mutation.file, before, after], 0.0)
    copy = copies.get()
    started = time.monotonic()
    try:
        (copy / mutation.file).write_bytes(mutation.of(source))
        code, said = _pytest(copy, mutation.file, limits[judges_of(mutation.file), interpreted(mutation.file)])
    finally:
        (copy / mutation.file).write_bytes(source)
        copies.put(copy)
    fate = {0: "survived", None: "endless"}.get(code, "noticed")
    return Mutant(mutation, before, after, fate, said, time.monotonic() - started)


def _pytest(copy: Path, file: str, limit: float) -> tuple[int | None, str]:
    """Exit code of the tests of a file, None where they did not end, and their last line."""
    output = copy / "output.txt"
    process = _SERVER.Process(target=_in_child, args=(str(copy), file, limit))
    process.start()
    assert process.pid is not None
    process.join(_PATIENCE)
    if process.exitcode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    ended = process.exitcode not in (-signal.SIGXCPU, -signal.SIGKILL)
    lines = output.read_text(errors="replace").strip().splitlines() if output.exists() else []
    if not ended:
        return None, f"did not end in {limit:.0f} s of processor time"
    noticed = next((line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1] if lines else "")
    return process.exitcode, noticed


def _end_with(parent: int) -> None:
    """End this process, and those it has started, with the one that started it."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(0, signal.SIGKILL)


def _in_child(copy: str, file: str, limit: float) -> None:
    """Run tests on the copy, in a process that has loaded all but the project; its exit code is theirs."""
    os.setsid()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
    output = os.open(Path(copy, "output.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.chdir(copy)
    sys.path.insert(0, copy)
    # Where kernels are changed, those that are not shall stay compiled.
    cache = str(FOLDER / ("numba-changed" if "/kernels/" in file else "numba"))
    os.environ |= {"PYTHONPATH": copy, "NUMBA_CACHE_DIR": cache, "NUMBA_DISABLE_JIT": "1" if interpreted(file) else "0"}
    import pytest  # noqa: PLC0415 - already loaded

    import testbed  # noqa: PLC0415 - the copy's

    assert str(testbed.__file__).startswith(copy)
    numba.config.CACHE_DIR = cache  # type: ignore[attr-defined]  # made by reading the environment, earlier
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-W", _LOADED]
    code = pytest.main([*quiet, *judges_of(file)])
    Path(copy, "seconds.txt").write_text(str(time.process_time()))
    sys.exit(code)


def main() -> int:
    """Plant, count and tell."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="faults to plant; default 200")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing; default 1")
    parser.add_argument("--only", action="append", default=[], metavar="PATH", help="files that begin so; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time; default one a processor")
    parser.add_argument("--goal", type=float, default=95, help="%% that must be noticed; default 95")
    parser.add_argument("--list", action="store_true", help="only list what would be planted")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the output")
    asked = parser.parse_args()
    every = candidates(asked.only)
    chosen = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    progress(f"{len(chosen)} of {len(every)} faults")
    if asked.list:
        for mutation in chosen:
            print(Mutant(mutation, *mutation.lines((ROOT / mutation.file).read_bytes()), "", "", 0.0))
        return 0
    if not chosen:
        return 2
    found = run(chosen, asked.jobs)
    counted = [one for one in found if one.fate != "explained"]
    survivors = [one for one in counted if one.fate == "survived"]
    share = 100 * (1 - len(survivors) / len(counted)) if counted else 100.0
    if asked.format == "json":
        shown = [{**vars(one), "mutation": vars(one.mutation)} for one in found]
        print(json.dumps({"share": share, "seed": asked.seed, "mutants": shown}, indent=1))
    else:
        for one in survivors:
            print(one)
        print(
            f"{share:.1f} % noticed: {len(counted) - len(survivors)} of {len(counted)}; {len(survivors)} survived, "
            f"{len(found) - len(counted)} change nothing and are explained in {EXPLAINED.relative_to(ROOT)}"
        )
    return 0 if share >= asked.goal else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        os._exit(130)  # and with it, soon, all tests that run

"""Whether two runs in virtual time delivered the same: a digest of each, and the files that differ.

    python -m benchmarks virtual-time --part same [--runs PAIRS]   runs pairs of a small scenario and compares them
    python -m benchmarks virtual-time --part same-torus4x4         of the main job
    python -m benchmarks.same_runs FOLDER FOLDER …                 compares result folders that are there

The last ends with exit code 1 where any two differ.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.command import ROOT, testbed
from benchmarks.table import Figure, progress

# What they tell of this machine, its clock and the way there, and what is drawn from that.
_OF_THIS_MACHINE = ("manifest.json", "environment.json", "report.html", "console.log")
_SHOWN = 8
_SMALL = (
    "--set", "topology={kind: mesh, sizes: [2, 2]}",
    "--set", "workloads=[{kind: ping, pattern: complement}, {kind: iperf3, protocol: udp, pattern: neighbour, "
    "repeats: 1}, {kind: iperf3, protocol: tcp, pattern: neighbour, repeats: 1}, {kind: mpi, job: fabric_bench}]",
)  # fmt: skip
SCENARIOS = {"same": _SMALL, "same-torus4x4": ()}


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file that a run delivered, by its place in the folder.

    Raises:
        SystemExit: there are no samples, or no output of programs.
    """
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    found = {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if str(file.relative_to(folder)) not in _OF_THIS_MACHINE
    }
    if "samples.csv" not in found or not any(name.startswith("raw/") for name in found):
        raise SystemExit(f"{folder} holds no samples or no output of programs, so that there is nothing to compare")
    return found


def whole_digest(of_files: Mapping[str, str]) -> str:
    """Twelve hexadecimal digits that change with any of the files."""
    text = "".join(f"{name} {digest}\n" for name, digest in sorted(of_files.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Files that are not the same in both, or in one of them only."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def compared(folders: Sequence[Path]) -> tuple[str, bool]:
    """What the runs in some folders have in common, as text, and whether that is all."""
    first, *others = found = [digests(folder) for folder in folders]
    names = sorted({name for other in others for name in differing(first, other)})
    words = ", ".join(map(whole_digest, found))
    if not names:
        return f"the same {len(first)} files: digests {words}", True
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} of {len(first)} files differ: {', '.join(names[:_SHOWN])}{more}; digests {words}", False


def same_runs(part: str, pairs: int) -> list[Figure]:
    """Run pairs of a scenario in virtual time, the two of each at once, and compare them."""
    words = ("torus4x4", "--engine", "vm", "--virtual-time", *SCENARIOS[part])
    figures, same = [], 0
    for number in range(1, pairs + 1):
        progress(f"pair {number} of {pairs}")
        with ThreadPoolExecutor(2) as pool:
            told = list(pool.map(lambda _: testbed("run", *words), range(2)))
        text, equal = compared([ROOT / one["results"] for one in told])
        same += equal
        figures.append(Figure(f"pair {number}: {', '.join(one['verdict'] for one in told)}", text))
    return [*figures, Figure("pairs that are the same", f"{same} of {pairs}")]


def main(words: Sequence[str] | None = None) -> int:
    """Compare folders; the exit code. None = those of the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.same_runs", description="Whether runs delivered the same.")
    parser.add_argument("folder", type=Path, help="result folder of a run in virtual time")
    parser.add_argument("others", type=Path, nargs="+", help="of runs of the same scenario with the same seed")
    chosen = parser.parse_args(words)
    text, equal = compared([chosen.folder, *chosen.others])
    print(text)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())

"""High Performance Linpack: its data file from a few arguments, and its report."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.base.model import Sample
from testbed.scenario.workloads.mpi_output import JobOutputError, ParsedJob
from testbed.scenario.workloads.mpi_placement import Ranks

_FIGURE = re.compile(r"^W\S+ +(\d+) +(\d+) +(\d+) +(\d+) +([\d.]+) +(\d\.\d+e[+-]\d+)$", re.MULTILINE)
_RESIDUAL = re.compile(r"^\|\|Ax-b\|\|_oo/.*= +(\S+) \.+ (PASSED|FAILED)$", re.MULTILINE)
_GIGA = 1e9
# HPL sends more than the parts of L and U that other process columns and rows need, but blocks are not shared out
# evenly, so only this share of an even part is counted as what must cross.
_SURELY = 0.5

_DATA_FILE = """\
HPLinpack benchmark input file
made from the arguments of an MPI job
-            output file name (not looked at)
6            device out (not looked at)
1            # of problems sizes (N)
{n} Ns
1            # of NBs
{nb} NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p} Ps
{q} Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""


@dataclass(frozen=True, slots=True)
class System:
    """A linear system and how it is shared out."""

    n: int = 512  # order of the matrix
    nb: int = 64  # order of its blocks
    p: int = 1  # rows of the process grid, filled row by row
    q: int = 1  # columns of it


_LIMITS = {"--n": (1, 100_000), "--nb": (1, 1024), "--p": (1, 1024), "--q": (1, 1024)}


def problems(args: Sequence[str], ranks: int) -> list[str]:
    """What is wrong with the arguments `--n`, `--nb`, `--p`, `--q`, each with a number."""
    found = []
    for option, value in _pairs(args):
        if option not in _LIMITS:
            found.append(f'has an option "{option}", but HPL is given {", ".join(_LIMITS)}')
            continue
        low, high = _LIMITS[option]
        if not re.fullmatch(r"\d{1,9}", value) or not low <= int(value) <= high:
            found.append(f'needs a whole number from {low} to {high} after {option}, not "{value}"')
    if found:
        return found
    system = _system(args, ranks)
    if system.p * system.q != ranks:
        found.append(f"has a process grid of {system.p}×{system.q} for {ranks} ranks; --p times --q should be {ranks}")
    return found


def data_file(args: Sequence[str], ranks: int) -> str:
    """Return the text of HPL.dat for arguments without problems.

    Without `--p` and `--q` the grid is as square as the number of ranks allows, with no more rows than columns.
    """
    system = _system(args, ranks)
    fields = {"n": system.n, "nb": system.nb, "p": system.p, "q": system.q}
    return _DATA_FILE.format(**{key: f"{value:<12}" for key, value in fields.items()})


def parse(text: str, ranks: Ranks) -> ParsedJob:
    """Read the report.

    Gives `hpl_lab_time` (s), `hpl_lab_rate` (flop/s) and `hpl_residual`; labels n, nb, p, q. Time and rate are the
    laboratory's and stay so: links are slowed down there and processors are not, so no factor makes them real ones.

    Ranks ran row by row of the process grid.

    Raises:
        JobOutputError: a figure is missing, or a residual is too large.
    """
    figures, residuals = _FIGURE.findall(text), _RESIDUAL.findall(text)
    if not figures or len(figures) != len(residuals):
        raise JobOutputError(f"HPL's report has {len(figures)} figures and {len(residuals)} residuals.")
    samples: list[Sample] = []
    fabric_bytes = 0
    for (n, nb, p, q, seconds, rate), (residual, verdict) in zip(figures, residuals, strict=True):
        if verdict != "PASSED":
            raise JobOutputError(f"HPL's residual for N = {n} is {residual}, so its solution is wrong.")
        if int(p) * int(q) > len(ranks):
            raise JobOutputError(f"HPL's report is of {p}×{q} processes, but there are {len(ranks)} ranks.")
        labels = {"n": n, "nb": nb, "p": p, "q": q, "time": "laboratory"}
        samples += [
            Sample("hpl_lab_time", float(seconds), "s", labels),
            Sample("hpl_lab_rate", float(rate) * _GIGA, "flop/s", labels),
            Sample("hpl_residual", float(residual), "", labels),
        ]
        fabric_bytes += _crossing(int(n), int(p), int(q), ranks)
    return ParsedJob(tuple(samples), fabric_bytes, verified=True)


def _pairs(args: Sequence[str]) -> list[tuple[str, str]]:
    """Options with their values; the last one's is empty where it is missing."""
    return list(zip(args[::2], [*args[1::2], ""], strict=False))


def _system(args: Sequence[str], ranks: int) -> System:
    given = {option.removeprefix("--"): int(value) for option, value in _pairs(args)}
    if "p" not in given and "q" not in given:
        given["p"] = max(p for p in range(1, math.isqrt(ranks) + 1) if ranks % p == 0)
    if "p" not in given:
        given["p"] = max(ranks // given["q"], 1)
    if "q" not in given:
        given["q"] = max(ranks // given["p"], 1)
    return System(**given)


def _crossing(n: int, p: int, q: int, ranks: Ranks) -> int:
    """Bytes between hosts, at least: a row's part of L to its other columns, a column's part of U to its other rows."""
    half = 8 * n * n / 2
    rows = [[row * q + column for column in range(q)] for row in range(p)]
    columns = [[row * q + column for row in range(p)] for column in range(q)]
    copies = (
        sum(ranks.hosts_of(row) - 1 for row in rows) / p + sum(ranks.hosts_of(column) - 1 for column in columns) / q
    )
    return int(_SURELY * half * copies)

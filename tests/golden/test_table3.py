"""The last section of docs/planning.md: the VLANs of Koibuchi et al. 2011, Table 3, and those planned and proved here.

UPDATE_GOLDEN=1 writes it again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from testbed.planning import make_plan
from testbed.planning.summary import summary
from tests.fabrics import scenario_of

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "planning.md"
HEAD = """## Numbers of VLANs

Koibuchi et al. 2011, Table 3, formula by formula, beside the plans made and proved here. Written by
`tests/golden/test_table3.py`, which fails when a number changes. Fixed: VLANs of the fabric. Renamed: VLANs of the
switch that has most.

| fabric | fixed: formula | paper | here | renamed: formula | paper | here |
| --- | --- | ---: | ---: | --- | ---: | ---: |
"""
NOTES = """
- **Fat tree (u, d, r)**: a host's number is the key of its way up, so a leaf's hosts have PVIDs of their own; under the
  renamed assignment each switch keys by its in-port.
- **Mesh, dead link**: one x link away from the border; on three dimensions also one in every plane, which is what the
  paper's formula counts. The renamed assignment needs one VLAN more than the paper says, at the switch where frames
  step round the gap.
- **Torus**: 2k^(n-1) with minimal paths holds for k = 4 alone. For other k `ring: two_trees` keeps the number with
  paths a little longer; with minimal paths the fewest are in brackets: k/2 · k^(n-1) for even k, k^n for odd k.
  Renamed: planes by destination, for k = 4 planes by link.
- **Torus, dead link**: one x link between two switches; with two links a pair, as in the paper, both. Its ring becomes
  a line, along which all sources have one tree, so with `north_last` and `ring: two_trees` 2k^(n-1) - 1 do, within the
  paper's formula for every k. In brackets what takes more: planes by link on two links a pair, then single links,
  whose other rings `dor` goes along without passing coordinate 0. Those are above the formula, but for k = 4 on single
  links: the formula is no upper bound for them. Renamed: `ring: two_trees`, in brackets planes by link.
- Every fixed number above is also the fewest that any assignment of these paths can have: the tree of each source
  reaches all hosts, and no tree holds two different ones of that kind.
"""


class Row(NamedTuple):
    name: str
    fixed_formula: str
    fixed_paper: int
    fixed: list[dict[str, Any]]  # plans; the number of those after the first in brackets
    renamed_formula: str
    renamed_paper: int
    renamed: list[dict[str, Any]]  # likewise


def grid(kind: str, k: int, n: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "sizes": [k] * n, **more}


def dead_x_link(k: int, n: int, *, every_plane: bool = False) -> dict[str, Any]:
    planes = range(k) if every_plane else [k // 2 if n == 3 else 0]
    first = [k * k * plane + k * (k // 2) + k // 2 for plane in planes]
    return {"links": [[f"s{switch}", f"s{switch + 1}"] for switch in first]}


def fat_tree(u: int, d: int, r: int) -> Row:
    topology = {"kind": "fat_tree", "up": u, "down": d, "rounds": r, "hosts_per_leaf": max(d, u**r)}
    name = f"fat tree ({u}, {d}, {r})"
    by_port = {"topology": topology, "routing": {"kind": "fat_tree", "key": "in_port"}}
    return Row(name, "u^r", u**r, [{"topology": topology}], "u", u, [by_port])


def mesh(k: int, n: int) -> Row:
    blocks = {"topology": grid("mesh", k, n)}
    return Row(f"mesh, {k}-ary {n}-cube", "k^(n-1)", k ** (n - 1), [blocks], "n", n, [blocks])


def broken_mesh(k: int, n: int, *, every_plane: bool = False) -> Row:
    blocks = {
        "topology": grid("mesh", k, n),
        "routing": {"kind": "north_last"},
        "faults": dead_x_link(k, n, every_plane=every_plane),
    }
    where = "dead links in all planes" if every_plane else "dead link"
    name, paper = f"mesh, {k}-ary {n}-cube, {where}", (k + 1) * k ** (n - 2)
    return Row(name, "(k+1)k^(n-2)", paper, [blocks], "n", n, [blocks])


def torus(k: int, n: int) -> Row:
    two, renamed = grid("torus", k, n, parallel_links=2), {"kind": "dor", "planes": "dest", "ties": "positive"}
    if k == 4:
        renamed = {"kind": "dor", "planes": "link", "ties": "positive"}
        plans = [{"topology": grid("torus", k, n)}]
    else:
        ways: list[dict[str, Any]] = [{"ring": "two_trees"}, {"planes": "link"}]
        plans = [{"topology": two, "routing": {"kind": "dor", **way}} for way in ways]
    by_port = {"topology": two, "routing": renamed}
    return Row(f"torus, {k}-ary {n}-cube", "2k^(n-1)", 2 * k ** (n - 1), plans, "3n", 3 * n, [by_port])


def broken_torus(k: int, n: int) -> Row:
    def blocks(links: int, **routing: str) -> dict[str, Any]:
        topology = grid("torus", k, n, parallel_links=links)
        return {"topology": topology, "routing": {"kind": "north_last", **routing}, "faults": dead_x_link(k, n)}

    trees, planes, single = blocks(2, ring="two_trees"), blocks(2), blocks(1)
    name, paper = f"torus, {k}-ary {n}-cube, dead link", 2 * (k + 1) * k ** (n - 2)
    return Row(name, "2(k+1)k^(n-2)", paper, [trees, planes, single], "3n", 3 * n, [trees, planes])


ROWS = [
    *(fat_tree(*parameters) for parameters in [(2, 4, 1), (2, 4, 2), (2, 2, 3), (3, 3, 2)]),
    *(mesh(*size) for size in [(4, 2), (8, 2), (16, 2), (4, 3), (3, 4)]),
    *(broken_mesh(*size) for size in [(5, 2), (8, 2), (4, 3)]),
    broken_mesh(4, 3, every_plane=True),
    *(torus(*size) for size in [(4, 2), (5, 2), (8, 2), (4, 3), (5, 3)]),
    *(broken_torus(*size) for size in [(4, 2), (5, 2), (8, 2), (4, 3)]),
]


def count(blocks: dict[str, Any], assignment: str) -> int:
    plan = make_plan(scenario_of(blocks | {"assignment": {"kind": assignment}}))
    assert plan.violations == ()
    return int(summary(plan)["vlans"])


def counts(plans: list[dict[str, Any]], assignment: str) -> str:
    first, *others = [count(blocks, assignment) for blocks in plans]
    return f"{first} ({', '.join(map(str, others))})" if others else str(first)


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [
        f"| {row.name} | {row.fixed_formula} | {row.fixed_paper} | {counts(row.fixed, 'fixed')} "
        f"| {row.renamed_formula} | {row.renamed_paper} | {counts(row.renamed, 'renamed')} |"
        for row in ROWS
    ]


def test_the_document_shows_what_is_planned_today(lines):
    text = HEAD + "\n".join(lines) + "\n" + NOTES
    page = DOCUMENT.read_text(encoding="utf-8")
    begin = page.index(HEAD.splitlines()[0])  # the last section
    if os.environ.get("UPDATE_GOLDEN") == "1":
        DOCUMENT.write_text(page[:begin] + text, encoding="utf-8")
    assert page[begin:] == text

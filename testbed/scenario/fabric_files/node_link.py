"""Node-link JSON, as networkx, D3 and topohub write it."""

from __future__ import annotations

import json
from typing import Any

from testbed.base.errors import InputError, Problem
from testbed.base.limits import LimitError, parse_json
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.fabric_files.directed import as_undirected
from testbed.scenario.fabric_files.listing import PASSED, READ, Link, Listing, Node

CONSTRUCTS = {
    "nodes: id": READ,
    "nodes: kind or type, host": READ,
    "nodes: label or name": READ,
    "nodes: other keys": PASSED,
    "links or edges: source and target": READ,
    "links or edges: other keys": PASSED,
    "directed": READ,
    "graph: demands (topohub)": READ,
    "graph: other keys": PASSED,
    "multigraph": PASSED,
}
_FORM = '{"nodes": [{"id": …}, …], "links": [{"source": …, "target": …}, …]}'


def read_node_link(text: str) -> Listing:
    """Read `{"nodes": [{"id": …}], "links": [{"source": …, "target": …}]}`; `edges` is another word for `links`.

    A node whose attribute `kind` or `type` is "host" is a host, every other a switch, called by its `label` or `name`
    where it has one. What topohub writes as `graph.demands` are demands. Identifiers are texts, whole
    numbers, or lists of these (the nodes of a networkx grid), which are joined by commas.

    Raises:
        InputError: the text is not JSON, or of another form.
    """
    raw = parse_text(text)
    lists = [key for key in ("links", "edges") if isinstance(raw, dict) and key in raw]
    if not isinstance(raw, dict) or "nodes" not in raw or not lists:
        raise InputError.one("", f"should look like {_FORM}")
    found = Listing()
    if len(lists) > 1:
        found.problems.append(Problem("edges", "says what links says too; remove one of them"))
    for place, node in _blocks(raw, "nodes", found):
        name = _name(node, "id", place, found)
        kind = node.get("kind", node.get("type"))
        if name is not None:
            found.nodes.append(Node(place, name, isinstance(kind, str) and kind.lower() == "host", _label(node)))
    for place, link in _blocks(raw, lists[0], found):
        source, target = (_name(link, end, place, found) for end in ("source", "target"))
        if source is not None and target is not None:
            found.links.append(Link(place, (source, target)))
    about = raw.get("graph")
    if isinstance(about, dict) and "demands" in about:
        _read_demands(about["demands"], found)
    return as_undirected(found, [bool(raw.get("directed"))] * len(found.links))


def _label(node: dict[str, object]) -> str:
    return next((value for key in ("label", "name") if isinstance(value := node.get(key), str)), "")


def _read_demands(said: object, found: Listing) -> None:
    """Read `{"source": {"destination": amount}}`."""
    known = {node.name for node in found.nodes}
    rows = said.items() if isinstance(said, dict) else ()
    cells = [(one, other, size) for one, row in rows if isinstance(row, dict) for other, size in row.items()]
    if not isinstance(said, dict) or not all(isinstance(row, dict) for row in said.values()):
        found.problems.append(Problem("graph.demands", 'should look like {"0": {"1": 12.5}}'))
    for one, other, size in cells:
        place = f"graph.demands.{one}.{other}"
        if isinstance(size, bool) or not isinstance(size, int | float) or not 0 <= size < _MOST_DEMAND:
            found.problems.append(Problem(place, "should be a number from 0 up to 10^15"))
        elif one not in known or other not in known:
            found.problems.append(Problem(place, f"there is no node {quote_name(one if one not in known else other)}"))
        else:
            found.demands.append((one, other, float(size)))


_MOST_DEMAND = 1e15


def parse_text(text: str) -> Any:
    """Parse JSON, with a sentence for what is none."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, object]:
        block = dict(pairs)
        if len(block) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError.one("", f'the key "{twice}" is listed twice in one block; remove one')
        return block

    try:
        return parse_json(text, unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError.one(place, f"is not JSON: {error.msg}") from error
    except LimitError as error:
        raise InputError.one("", str(error)) from error
    except ValueError as error:  # a number of thousands of digits
        raise InputError.one("", f"a value cannot be read: {error}") from error


def _blocks(raw: dict[str, Any], key: str, found: Listing) -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(raw[key], list):
        found.problems.append(Problem(key, "should be a list"))
        return []
    blocks = []
    for number, block in enumerate(raw[key]):
        if isinstance(block, dict):
            blocks.append((f"{key}.{number}", block))
        else:
            found.problems.append(Problem(f"{key}.{number}", "should be a block in braces"))
    return blocks


def _name(block: dict[str, object], key: str, place: str, found: Listing) -> str | None:
    parts = block.get(key)
    parts = parts if isinstance(parts, list) and parts else [parts]
    if all(isinstance(part, str | int) and not isinstance(part, bool) for part in parts):
        return ",".join(str(part) for part in parts)
    wrong = "should be text or a whole number" if key in block else "is required: the name of a node"
    found.problems.append(Problem(f"{place}.{key}", wrong))
    return None

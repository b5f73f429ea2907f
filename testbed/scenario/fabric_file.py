"""A topology block that names a file: it is read here, by its format, and the scenario holds the graph it describes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Annotated, Any, Literal

from annotated_types import Ge

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.limits import FABRIC_FILE
from testbed.fabric.topologies import TOPOLOGIES
from testbed.fabric.topologies.any_graph import Graph, Listing, graph_of, quote_name
from testbed.fabric.topologies.graphml import read_graphml
from testbed.fabric.topologies.ibnetdiscover import read_ibnetdiscover
from testbed.fabric.topologies.node_link import read_node_link
from testbed.scenario.named_files import ScenarioFolder


@dataclass(frozen=True, slots=True)
class FabricFile:
    """A file that describes a fabric."""

    # of the file, from the folder of the scenario
    path: str = field(metadata={"wanted": "the file, such as path: fabrics/ring.json"})
    # how it is written; `auto` goes by the ending of its name, then by how it begins
    format: Literal["auto", "node_link", "graphml", "ibnetdiscover"] = "auto"
    hosts_per_switch: Annotated[int, Ge(0)] | None = None  # for a file that names no host; 1 where nothing is said


@dataclass(frozen=True, slots=True)
class TopologyBlock:
    """What a topology block of one kind may hold, and a line about it."""

    spec: type[Any]
    summary: str


TOPOLOGY_BLOCKS: dict[str, TopologyBlock] = {
    **{name: TopologyBlock(kind.spec, kind.summary) for name, kind in TOPOLOGIES.items()},
    "file": TopologyBlock(FabricFile, "a graph read from node-link JSON, GraphML or ibnetdiscover's output"),
}


def read_fabric_file(block: FabricFile, beside: ScenarioFolder, problems: list[Problem]) -> Graph | None:
    """Return the graph of a file, or None after adding every problem found."""
    try:
        return read_fabric(_text(block.path, beside), block.path, block.format, block.hosts_per_switch)
    except InputError as error:
        name = block.path if block.path.isprintable() else quote_name(block.path)
        for problem in error.problems:
            place = f"topology.path: {name}: {problem.place}" if problem.place else f"topology.path: {name}"
            problems.append(Problem(place, problem.sentence))
        return None


def _text(name: str, beside: ScenarioFolder) -> str:
    try:
        return beside.read(name, "topology.path", FABRIC_FILE)
    except FileNotFoundError as error:
        file = beside.folder / name
        others = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        raise InputError.one("", f"there is no file {file}.{did_you_mean(file.name, others)}") from error
    except OSError as error:
        raise InputError.one("", f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError.one("", "cannot be read: it is not UTF-8 text") from error
    except ValueError as error:  # a name that no file can have
        raise InputError.one("", f"cannot be read: {error}") from error


READERS: dict[str, Callable[[str], Listing]] = {
    "node_link": read_node_link,
    "graphml": read_graphml,
    "ibnetdiscover": read_ibnetdiscover,
}
_SUFFIXES = {".json": "node_link", ".graphml": "graphml", ".xml": "graphml", ".ibnetdiscover": "ibnetdiscover"}
_NODE_LINE = re.compile(r'^(Switch|Ca)\s+[0-9]+\s+"', re.MULTILINE)


def read_fabric(text: str, name: str, form: str, hosts_per_switch: int | None) -> Graph:
    """Read a fabric.

    `form`: key of READERS, or `auto`, by the suffix of `name`; `hosts_per_switch` is for files that name no host, None
    is 1.

    Raises:
        InputError: all that is wrong with the text, each problem with its line or key.
    """
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InputError.one("", "is empty")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError.one("", "is not UTF-8 text") from error
    return graph_of(READERS[_form(text, name) if form == "auto" else form](text), hosts_per_switch)


def _form(text: str, name: str) -> str:
    suffix = PurePath(name).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if text.lstrip()[0] == "{":
        return "node_link"
    if text.lstrip()[0] == "<":
        return "graphml"
    if _NODE_LINE.search(text):
        return "ibnetdiscover"
    raise InputError.one("", f"is in no known format; set format: to one of {', '.join(READERS)}")

"""A topology block that names a file: it is read here, by its format, and the scenario holds the graph it describes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.limits import FABRIC_FILE
from testbed.fabric.topologies import TOPOLOGIES
from testbed.fabric.topologies.any_graph import Graph, quote_name
from testbed.scenario.fabric_files.formats import FORMATS, find_format
from testbed.scenario.fabric_files.listing import FileFabric, make_fabric
from testbed.scenario.named_files import ScenarioFolder


@dataclass(frozen=True, slots=True)
class FabricFile:
    """A file that describes a fabric."""

    # of the file, from the folder of the scenario
    path: str = field(metadata={"wanted": "the file, such as path: fabrics/ring.json"})
    # how it is written; `auto` goes by the ending of its name, then by how it begins
    format: Literal[
        "auto", "miniedit", "node_link", "simgrid", "graphml", "ibnetdiscover", "containerlab", "netlab", "anynet"
    ] = "auto"  # fmt: skip
    hosts_per_switch: Annotated[int, Ge(0)] | None = None  # for a file that names no host; 1 where nothing is said


@dataclass(frozen=True, slots=True)
class TopologyBlock:
    """What a topology block of one kind may hold, and a line about it."""

    spec: type[Any]
    summary: str


TOPOLOGY_BLOCKS: dict[str, TopologyBlock] = {
    **{name: TopologyBlock(kind.spec, kind.summary) for name, kind in TOPOLOGIES.items()},
    "file": TopologyBlock(
        FabricFile, "a graph read from a file: node-link JSON, GraphML, ibnetdiscover, containerlab, …"
    ),
}


def read_fabric_file(block: FabricFile, beside: ScenarioFolder, problems: list[Problem]) -> FileFabric | None:
    """Return what a file describes, or None after adding every problem found."""
    try:
        return read_file_fabric(_text(block.path, beside), block.path, block.format, block.hosts_per_switch)
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


READERS = {name: entry.read for name, entry in FORMATS.items()}


def read_fabric(text: str, name: str, form: str, hosts_per_switch: int | None) -> Graph:
    """Read the graph of a fabric; see read_file_fabric()."""
    return read_file_fabric(text, name, form, hosts_per_switch).graph


def read_file_fabric(text: str, name: str, form: str, hosts_per_switch: int | None) -> FileFabric:
    """Read a fabric.

    `form`: key of FORMATS, or `auto`, by the suffix of `name`; `hosts_per_switch` is for files that name no host, None
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
    return make_fabric(FORMATS[find_format(text, name) if form == "auto" else form].read(text), hosts_per_switch)

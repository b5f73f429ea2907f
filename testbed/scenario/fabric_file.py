"""A topology block that names a file: the file is read here, and the scenario holds the graph it describes."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge

from testbed.errors import InputError, Problem, did_you_mean
from testbed.topologies import TOPOLOGIES
from testbed.topologies.fabric_text import read_fabric
from testbed.topologies.graph import Graph, quoted

# A million links in the most verbose format are about as large.
_MAX_BYTES = 256 * 2**20


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


def read_fabric_file(block: FabricFile, folder: Path, problems: list[Problem]) -> Graph | None:
    """Return the graph of a file, or None after adding every problem found."""
    try:
        return read_fabric(_text(folder / block.path), block.path, block.format, block.hosts_per_switch)
    except InputError as error:
        name = block.path if block.path.isprintable() else quoted(block.path)
        for problem in error.problems:
            place = f"topology.path: {name}: {problem.place}" if problem.place else f"topology.path: {name}"
            problems.append(Problem(place, problem.sentence))
        return None


def _text(file: Path) -> str:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError.one("", "is a folder or device, not a file")
        if status.st_size > _MAX_BYTES:
            raise InputError.one("", f"is too large: {status.st_size:,} bytes (at most {_MAX_BYTES:,})")
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        beside = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        raise InputError.one("", f"there is no file {file}.{did_you_mean(file.name, beside)}") from error
    except OSError as error:
        raise InputError.one("", f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError.one("", "cannot be read: it is not UTF-8 text") from error
    except ValueError as error:  # a name that no file can have
        raise InputError.one("", f"cannot be read: {error}") from error

"""The formats in which a file may describe a fabric, and which one a file is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from testbed.base.errors import InputError
from testbed.scenario.fabric_files import (
    anynet,
    containerlab,
    graphml,
    ibnetdiscover,
    miniedit,
    netlab,
    node_link,
    simgrid,
)
from testbed.scenario.fabric_files.listing import Listing


@dataclass(frozen=True, slots=True)
class Format:
    """One entry of the table."""

    read: Callable[[str], Listing]
    constructs: Mapping[str, str]  # of the format → what the reader does with each
    suffixes: tuple[str, ...]  # that names of such files end in
    begins: re.Pattern[str]  # what is in such a file and in none of the formats that come after it
    of: str  # what writes or reads such files


FORMATS: dict[str, Format] = {
    "miniedit": Format(
        miniedit.read_miniedit, miniedit.CONSTRUCTS, (".mn",), re.compile(r'\A\s*\{.*"switches"\s*:', re.DOTALL),
        "MiniEdit",
    ),
    "node_link": Format(
        node_link.read_node_link, node_link.CONSTRUCTS, (".json",), re.compile(r"\A\s*\{"),
        "networkx, D3, topohub",
    ),
    "simgrid": Format(
        simgrid.read_simgrid, simgrid.CONSTRUCTS, (), re.compile(r"\A\s*<.*<platform\b", re.DOTALL),
        "SimGrid, clusters",
    ),
    "graphml": Format(
        graphml.read_graphml, graphml.CONSTRUCTS, (".graphml", ".xml"), re.compile(r"\A\s*<"),
        "networkx, Gephi, yEd, Topology Zoo",
    ),
    "ibnetdiscover": Format(
        ibnetdiscover.read_ibnetdiscover, ibnetdiscover.CONSTRUCTS, (".ibnetdiscover",),
        re.compile(r'^(?:Switch|Ca|Hca)\s+[0-9]+\s+"', re.MULTILINE), "ibnetdiscover, ibsim",
    ),
    "containerlab": Format(
        containerlab.read_containerlab, containerlab.CONSTRUCTS, (".clab.yml", ".clab.yaml"),
        re.compile(r"^topology:", re.MULTILINE), "containerlab",
    ),
    "netlab": Format(
        netlab.read_netlab, netlab.CONSTRUCTS, (), re.compile(r"^(?:links|vlans|nodes):", re.MULTILINE), "netlab",
    ),
    "anynet": Format(
        anynet.read_anynet, anynet.CONSTRUCTS, (),
        re.compile(r"^\s*(?:router|node)\s+[0-9]+\s|^\s*topology\s*=\s*anynet\b", re.MULTILINE), "BookSim",
    ),
}  # fmt: skip


def find_format(text: str, name: str) -> str:
    """The format of a file: what its name ends in, unless what it begins with is more of another of that ending.

    Raises:
        InputError: of none.
    """
    of_name = [form for form, entry in FORMATS.items() if PurePath(name).name.lower().endswith(entry.suffixes or " ")]
    of_text = [form for form, entry in FORMATS.items() if entry.begins.search(text)]
    if of_name and not (of_name[0] in ("node_link", "graphml") and of_text and of_text[0] in ("miniedit", "simgrid")):
        return of_name[0]
    if of_text:
        return of_text[0]
    raise InputError.one("", f"is in no known format; set format: to one of {', '.join(FORMATS)}")

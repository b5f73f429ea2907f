"""The text of a fabric file, in any of the formats there are, as a graph."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

from testbed.errors import InputError
from testbed.topologies.graph import Graph, Listing, graph_of
from testbed.topologies.graphml import read_graphml
from testbed.topologies.ibnetdiscover import read_ibnetdiscover
from testbed.topologies.node_link import read_node_link

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

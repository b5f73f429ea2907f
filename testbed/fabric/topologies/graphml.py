"""GraphML, as networkx, Gephi and the Topology Zoo write it."""

from __future__ import annotations

import re
from xml.parsers import expat

from testbed.base.errors import InputError, Problem
from testbed.base.limits import DEPTH, scaled_limit
from testbed.fabric.topologies.any_graph import Link, Listing, Node

# What may come before a document type declaration. The declaration is refused before anything is parsed, because it
# can define entities that grow without bound.
_PROLOGUE = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_NOT_READ = {"hyperedge": "a hyperedge", "graph": "a graph inside a graph, or a second one"}


def read_graphml(text: str) -> Listing:
    """Read the nodes and edges of one undirected graph.

    A node whose attribute `kind` or `type` is "host" is a host, every other a switch. Names are the `id`s.

    Raises:
        InputError: the text is not XML, has a document type declaration, or is no GraphML.
    """
    match = _PROLOGUE.match(text)
    end = match.end() if match else 0
    if text.startswith("<!DOCTYPE", end):
        place = f"line {text.count(chr(10), 0, end) + 1}"
        raise InputError.one(place, "has a document type declaration, which GraphML does not need; remove it")
    reader = _Reader()
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset + 1}"
        raise InputError.one(place, f"is not XML: {expat.ErrorString(error.code)}") from error
    if not reader.graphs and not reader.found.problems:
        reader.found.problems.append(Problem("", "has no graph"))
    return reader.found


class _Reader:
    """Follows the elements of a GraphML text."""

    def __init__(self) -> None:
        self.found = Listing()
        self.graphs = 0
        self.open: list[str] = []
        self.titles: dict[str, str] = {}  # key → the name of the attribute
        self.defaults: dict[str, str] = {}
        self.attributes: dict[str, str] = {}  # of the open node
        self.node: tuple[str, str | None] = ("", None)  # its place and name
        self.key = ""
        self.texts: list[str] = []  # pieces of the open element's
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data

    @property
    def place(self) -> str:
        return f"line {self.parser.CurrentLineNumber}"

    def _problem(self, sentence: str) -> None:
        self.found.problems.append(Problem(self.place, sentence))

    def _start(self, tag: str, values: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        most = scaled_limit(DEPTH)
        if len(self.open) > most:
            raise InputError.one(self.place, f"elements are nested too deeply: {most} in each other are the most")
        self.open.append(name)
        self.texts.clear()
        if len(self.open) == 1 and name != "graphml":
            self._problem(f"is XML but no GraphML, as it starts with <{name}>")
        elif name == "key":
            self.key = values.get("id", "")
            if values.get("for", "node") in ("node", "all"):
                self.titles[self.key] = values.get("attr.name", self.key)
        elif name == "data":
            self.key = values.get("key", "")
        elif self.open == ["graphml", "graph"] and not self.graphs:
            self.graphs = 1
            if values.get("edgedefault") == "directed":
                self._problem('is a directed graph; a link carries frames both ways, so write edgedefault="undirected"')
        elif name in _NOT_READ and self.open[0] == "graphml":
            self._problem(f"is {_NOT_READ[name]}, which cannot be read")
        elif self.open == ["graphml", "graph", "node"]:
            self.node, self.attributes = (self.place, self._value(values, "id")), {}
        elif self.open == ["graphml", "graph", "edge"]:
            source, target = self._value(values, "source"), self._value(values, "target")
            if values.get("directed") == "true":
                self._problem("is a directed edge; a link carries frames both ways")
            if source is not None and target is not None:
                self.found.links.append(Link(self.place, (source, target)))

    def _end(self, tag: str) -> None:
        del tag
        if self.open == ["graphml", "key", "default"]:
            self.defaults[self.key] = "".join(self.texts)
        elif self.open == ["graphml", "graph", "node", "data"]:
            self.attributes[self.key] = "".join(self.texts)
        elif self.open == ["graphml", "graph", "node"]:
            place, name = self.node
            if name is not None:
                self.found.nodes.append(Node(place, name, self._is_host()))
        self.open.pop()
        self.texts.clear()

    def _data(self, text: str) -> None:
        self.texts.append(text)

    def _value(self, values: dict[str, str], key: str) -> str | None:
        if key not in values:
            self._problem(f'lacks {key}="…"')
        return values.get(key)

    def _is_host(self) -> bool:
        named = {self.titles.get(key, key): value for key, value in (self.defaults | self.attributes).items()}
        return named.get("kind", named.get("type", "")).strip().lower() == "host"

"""GraphML, as networkx, Gephi, yEd and the Topology Zoo write it."""

from __future__ import annotations

import re
from xml.parsers import expat

from testbed.base.errors import InputError, Problem
from testbed.base.limits import DEPTH, scaled_limit
from testbed.scenario.fabric_files.directed import as_undirected
from testbed.scenario.fabric_files.listing import PASSED, READ, REFUSED, Link, Listing, Node

# What may come before a document type declaration. The declaration is refused before anything is parsed, because it
# can define entities that grow without bound.
_PROLOGUE = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_NOT_READ = {"hyperedge": "a hyperedge", "graph": "a graph inside a graph, or a second one"}
_LABELS = ("label", "name")
CONSTRUCTS = {
    "node: id": READ,
    "node: attribute kind or type, host": READ,
    "node: attribute label or name": READ,
    "node: y:NodeLabel (yEd)": READ,
    "node: other attributes": PASSED,
    "edge: source and target": READ,
    "edge: directed": READ,
    "edge: attributes": PASSED,
    "graph: edgedefault": READ,
    "port": PASSED,
    "hyperedge": REFUSED,
    "a graph inside a graph": REFUSED,
    "a document type declaration": REFUSED,
}


def read_graphml(text: str) -> Listing:
    """Read the nodes and edges of one graph; a directed edge is a link too, since links carry frames both ways.

    A node whose attribute `kind` or `type` is "host" is a host, every other a switch. It is called what its attribute
    `label` or `name` says, or what yEd shows in it, else by its `id`.

    Raises:
        InputError: the text is not XML, has a document type declaration, or is no GraphML.
    """
    match = _PROLOGUE.match(text)
    end = match.end() if match else 0
    if text.startswith("<!DOCTYPE", end):
        place = f"line {text.count(chr(10), 0, end) + 1}"
        raise InputError.one(place, "has a document type declaration, which GraphML does not need; remove it")
    reader = _GraphmlElements()
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset + 1}"
        raise InputError.one(place, f"is not XML: {expat.ErrorString(error.code)}") from error
    if not reader.graphs and not reader.found.problems:
        reader.found.problems.append(Problem("", "has no graph"))
    return as_undirected(reader.found, reader.directed)


class _GraphmlElements:
    """Follows the elements of a GraphML text."""

    def __init__(self) -> None:
        self.found = Listing()
        self.graphs = 0
        self.default = False  # whether edges are directed where they do not say
        self.directed: list[bool] = []  # whether each link was
        self.shown = ""  # label of the open node as yEd draws it
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
        self._keep_shown()  # what follows it may be an element inside of the label
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
            self.default = values.get("edgedefault") == "directed"
        elif name in _NOT_READ and self.open[0] == "graphml":
            self._problem(f"is {_NOT_READ[name]}, which cannot be read")
        elif self.open == ["graphml", "graph", "node"]:
            self.node, self.attributes, self.shown = (self.place, self._value(values, "id")), {}, ""
        elif self.open == ["graphml", "graph", "edge"]:
            source, target = self._value(values, "source"), self._value(values, "target")
            if source is not None and target is not None:
                self.found.links.append(Link(self.place, (source, target)))
                said = values.get("directed")
                self.directed.append(self.default if said is None else said == "true")

    def _end(self, tag: str) -> None:
        del tag
        self._keep_shown()
        if self.open == ["graphml", "key", "default"]:
            self.defaults[self.key] = "".join(self.texts)
        elif self.open == ["graphml", "graph", "node", "data"]:
            self.attributes[self.key] = "".join(self.texts)
        elif self.open == ["graphml", "graph", "node"]:
            place, name = self.node
            if name is not None:
                self.found.nodes.append(Node(place, name, *self._describe()))
        self.open.pop()
        self.texts.clear()

    def _keep_shown(self) -> None:
        """Keep the text of a label of yEd that is open."""
        if self.open and self.open[-1] == "NodeLabel" and "node" in self.open and not self.shown:
            self.shown = " ".join("".join(self.texts).split())

    def _data(self, text: str) -> None:
        self.texts.append(text)

    def _value(self, values: dict[str, str], key: str) -> str | None:
        if key not in values:
            self._problem(f'lacks {key}="…"')
        return values.get(key)

    def _describe(self) -> tuple[bool, str]:
        """Whether the open node is a host, and its label."""
        named = {self.titles.get(key, key): value for key, value in (self.defaults | self.attributes).items()}
        label = next((named[key].strip() for key in _LABELS if named.get(key, "").strip()), self.shown)
        return named.get("kind", named.get("type", "")).strip().lower() == "host", label

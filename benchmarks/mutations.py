"""Small faults that can be planted in a Python source: what one could have mistyped, or forgotten."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_OPERATORS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"), ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# What a correct program does not depend on, and what only tells how far it has come.
_LEFT_ALONE, _NOT_CALLED = {"strict", "progress", "fmt"}, {"progress", "say"}


@dataclass(frozen=True)
class Mutation:
    """A change of one place.

    Attributes:
        file: path in the project.
        line: number of the line it begins in.
        start: offset of the bytes that are replaced.
        end: offset behind them.
        new: what comes in their place.
    """

    file: str
    line: int
    start: int
    end: int
    new: str

    def of(self, source: bytes) -> bytes:
        """The source with the fault in it."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def lines(self, source: bytes) -> tuple[str, str]:
        """The line before and after."""
        before, after = (text.decode().split("\n")[self.line - 1].strip() for text in (source, self.of(source)))
        return before, after


_Change = tuple[int, int, str]  # first byte, the byte behind the last, what comes in their place


class _Source:
    """Where nodes stand in a source."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._starts = [0]
        for line in text.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def begin(self, node: ast.expr | ast.stmt) -> int:
        """Its first byte."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """The byte behind its last."""
        return self._starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)

    def instead(self, node: ast.expr | ast.stmt, new: str) -> _Change:
        """Something in place of a node."""
        return self.begin(node), self.end(node), new

    def swapped(self, left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[_Change]:
        """Another operator between two operands."""
        old, new = _OPERATORS[type(operator)]
        between = re.search(
            rb"(?<!\S)%s(?!\S)" % re.escape(old.encode()), self.text[self.end(left) : self.begin(right)]
        )
        if between:
            yield self.end(left) + between.start(), self.end(left) + between.end(), new


def mutations(file: str, text: bytes) -> list[Mutation]:
    """All that can be planted in a source, by place."""
    source = _Source(text)
    changes = {
        change
        for node in _code(ast.parse(text))
        for find in (_operators, _values, _flow)
        for change in find(node, source)
    }
    return [Mutation(file, text.count(b"\n", 0, first) + 1, first, last, new) for first, last, new in sorted(changes)]


def _operators(node: ast.AST, source: _Source) -> Iterator[_Change]:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for left, right, operator in zip(operands, node.comparators, node.ops, strict=False):
            yield from source.swapped(left, right, operator)
    elif isinstance(node, ast.BoolOp):
        for left, right in pairwise(node.values):
            yield from source.swapped(left, right, node.op)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        yield from source.swapped(node.left, node.right, node.op)
    elif isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
        old, new = _OPERATORS[type(node.op)]
        place = source.text.index(f"{old}=".encode(), source.end(node.target))
        yield place, place + len(old), new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield source.begin(node), source.begin(node.operand), ""


def _values(node: ast.AST, source: _Source) -> Iterator[_Change]:
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield source.instead(node, str(not value))
        elif isinstance(value, int):
            yield source.instead(node, str(value + 1))
        elif isinstance(value, float):
            yield source.instead(node, repr(value * 1.1 or 0.1))
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _NAMES:
            end = source.end(node.func)
            yield end - len(name), end, _NAMES[name]


def _flow(node: ast.AST, source: _Source) -> Iterator[_Change]:
    if isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.UnaryOp | ast.Constant):
        text = source.text[source.begin(node.test) : source.end(node.test)].decode()
        yield source.instead(node.test, f"not ({text})")
    elif isinstance(node, ast.Break | ast.Continue):
        yield source.instead(node, "continue" if isinstance(node, ast.Break) else "break")
    elif isinstance(node, ast.stmt) and _is_step(node):
        yield source.instead(node, "pass")


def _is_step(node: ast.AST) -> bool:
    """Whether something else happens without this statement, and not only a name is missing."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        return not (isinstance(function, ast.Name) and function.id in _NOT_CALLED)
    return False


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but types, decorators, texts with values in them, and what a program does not depend on."""
    yield node
    skipped = {"annotation", "returns", "decorator_list", "type_comment"}
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name in skipped or not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.Raise):
                continue
            if isinstance(child, ast.keyword) and child.arg in _LEFT_ALONE:
                continue
            if isinstance(node, ast.Module) and isinstance(child, ast.Assign) and _is_alias(child.value):
                continue
            yield from _code(child)


def _is_alias(value: ast.expr) -> bool:
    """Whether that is a type that is one of several."""
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)

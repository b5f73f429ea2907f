"""GOAL schedules, as LogGOPSim's tools write them."""

from __future__ import annotations

import re
from typing import Literal

from testbed.base.errors import InputError, Problem
from testbed.fabric.schedules import Operation, Schedule, make_schedule
from testbed.fabric.topologies.any_graph import quote_name

MOST_RANKS, MOST_OPERATIONS = 1 << 17, 1 << 22
_RANKS = re.compile(r"num_ranks\s+([0-9]{1,9})")
_RANK = re.compile(r"rank\s+([0-9]{1,9})\s*\{")
_MESSAGE = re.compile(r"(?:(\w+)\s*:)?\s*(send|recv)\s+([0-9]{1,15})b?\s+(?:to|from)\s+([0-9]{1,9})(.*)")
_CALC = re.compile(r"(?:(\w+)\s*:)?\s*calc\s+([0-9]{1,15})(.*)")
_WAIT = re.compile(r"(\w+)\s+(requires|irequires)\s+(\w+)")
_REST = re.compile(r"(?:\s*\b(tag|cpu|nic)\s+([0-9]{1,9}))*\s*")
_PAIR = re.compile(r"\b(tag|cpu|nic)\s+([0-9]{1,9})")
CONSTRUCTS = {
    "num_ranks": "read", "rank N { }": "read", "send, recv: bytes, rank, tag": "read", "calc": "read",
    "requires, irequires": "read", "cpu": "passed over", "nic": "passed over", "remarks": "passed over",
}  # fmt: skip


def read_goal(text: str) -> Schedule:
    """Read the operations of each rank and what they wait for.

    Raises:
        InputError: all that is wrong, each with its line.
    """
    reader = _GoalLines()
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        said = line.partition("//")[0].strip()
        if said:
            reader.read_line(said, f"line {number}")
    return reader.end()


class _GoalLines:
    """Follows the lines of a schedule."""

    def __init__(self) -> None:
        self.count = -1
        self.rank = -1
        self.lists: dict[int, list[Operation]] = {}
        self.labels: dict[str, int] = {}
        self.waits: list[tuple[str, str, str, str]] = []
        self.passed = 0
        self.all = 0
        self.problems: list[Problem] = []

    def read_line(self, said: str, place: str) -> None:
        if match := _RANKS.fullmatch(said):
            self.count = int(match[1])
        elif match := _RANK.fullmatch(said):
            self._begin(int(match[1]), place)
        elif said == "}" and self.rank >= 0:
            self._close()
        elif self.rank < 0:
            self.problems.append(Problem(place, f'should be "num_ranks N" or "rank N {{", not {quote_name(said)}'))
        elif match := _WAIT.fullmatch(said):
            self.waits.append((match[1], match[2], match[3], place))
        elif (match := _MESSAGE.fullmatch(said)) and _REST.fullmatch(match[5]):
            tag = self._rest(match[5])
            kind: Literal["send", "recv"] = "send" if match[2] == "send" else "recv"
            self._add(match[1], Operation(kind, place, int(match[3]), int(match[4]), tag))
        elif (match := _CALC.fullmatch(said)) and _REST.fullmatch(match[3]):
            self._rest(match[3])
            self._add(match[1], Operation("calc", place, int(match[2])))
        else:
            self.problems.append(Problem(place, f"is no operation of GOAL: {quote_name(said)}"))

    def _rest(self, said: str) -> int:
        """The tag; on which of several processors and cards something is done is passed over."""
        pairs = dict(_PAIR.findall(said))
        self.passed += len({"cpu", "nic"} & {key for key, value in pairs.items() if value != "0"})
        return int(pairs.get("tag", 0))

    def _begin(self, rank: int, place: str) -> None:
        if self.rank >= 0:
            self.problems.append(Problem(place, f"begins inside of rank {self.rank}, which lacks its }}"))
            self._close()
        if rank in self.lists or not 0 <= rank < max(self.count, 0):
            why = "is there already" if rank in self.lists else f"is none of num_ranks {max(self.count, 0)}"
            self.problems.append(Problem(place, f"rank {rank} {why}"))
        self.rank, self.labels, self.waits = rank, {}, []
        self.lists.setdefault(rank, [])

    def _add(self, label: str | None, operation: Operation) -> None:
        self.all += 1
        if self.all > MOST_OPERATIONS:
            raise InputError.one(operation.place, f"has more than {MOST_OPERATIONS:,} operations")
        if label is not None:
            if label in self.labels:
                self.problems.append(Problem(operation.place, f"the label {label} is there twice"))
            self.labels[label] = len(self.lists[self.rank])
        self.lists[self.rank].append(operation)

    def _close(self) -> None:
        operations = self.lists[self.rank]
        after: dict[int, list[int]] = {}
        after_start: dict[int, list[int]] = {}
        for later, kind, before, place in self.waits:
            unknown = [name for name in (later, before) if name not in self.labels]
            if unknown:
                self.problems.append(Problem(place, f"rank {self.rank} has no operation {unknown[0]}"))
                continue
            lists = after if kind == "requires" else after_start
            lists.setdefault(self.labels[later], []).append(self.labels[before])
        for at in {*after, *after_start}:
            one = operations[at]
            operations[at] = Operation(
                one.kind, one.place, one.size, one.peer, one.tag, tuple(dict.fromkeys(after.get(at, ()))),
                tuple(dict.fromkeys(after_start.get(at, ()))),
            )  # fmt: skip
        self.rank = -1

    def end(self) -> Schedule:
        if self.rank >= 0:
            self.problems.append(Problem("", f"ends inside of rank {self.rank}; it was cut off, or lacks a }}"))
        if not 0 < self.count <= MOST_RANKS and not self.problems:
            self.problems.append(Problem("", f"should say num_ranks, from 1 to {MOST_RANKS:,}"))
        missing = [rank for rank in range(min(max(self.count, 0), MOST_RANKS)) if rank not in self.lists]
        if missing and not self.problems:
            shown = ", ".join(map(str, missing[:5])) + (" …" if len(missing) > 5 else "")
            sentence = f"says num_ranks {self.count} and has nothing of rank {shown}; add rank {missing[0]} {{ }}"
            self.problems.append(Problem("", sentence))
        if self.problems:
            raise InputError(self.problems[:20])
        notes = [f"passed over: cpu and nic ({self.passed}×); each rank has one of both"] if self.passed else []
        return make_schedule([self.lists[rank] for rank in range(self.count)], notes)

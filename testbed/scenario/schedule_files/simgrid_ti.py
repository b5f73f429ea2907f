"""Time-independent traces of SimGrid: what each rank of an MPI program does, in order."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import PurePath

from testbed.base.errors import InputError, Problem
from testbed.fabric.schedules import Operation, Schedule, make_schedule
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.schedule_files import rank_steps
from testbed.scenario.schedule_files.goal import MOST_OPERATIONS

_ACTION = re.compile(r"p?([0-9]{1,6})\s+([A-Za-z_]+)((?:\s+\S+)*)\s*")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?")
# Bytes of the datatypes, by the numbers that traces give them.
_TYPES = {0: 8, 1: 4, 2: 1, 3: 2, 4: 8, 5: 4, 6: 1, 7: 8, 8: 1, 9: 1, 10: 2, 11: 4, 12: 8, 13: 8, 14: 16, 15: 4, 16: 1}
_COLLECTIVE_TAG = 1 << 40
_PASSED = ("compute", "comm_size", "comm_dup", "finalize", "test", "sleep", "location")
COLLECTIVES = (
    "barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "alltoallv",
)  # fmt: skip
CONSTRUCTS = {
    "init": "read", "send, isend": "read", "recv, irecv": "read", "wait, waitall": "read", "a list of files": "read",
    **{f"{name}": "read, as messages" for name in COLLECTIVES},
    **dict.fromkeys(_PASSED, "passed over"),
    "comm_split, gatherv, allgatherv, reducescatter, …": "refused",
}  # fmt: skip


def read_simgrid_ti(text: str, read_beside: Callable[[str], str] | None = None) -> Schedule:
    """Read the actions of all ranks, or a list of the files that have them.

    A collective becomes messages: barrier by dissemination, broadcast and reduce by binomial trees, all-gather round a
    ring, all-to-all a partner a step. `read_beside` returns the text of a file that the list names.

    Raises:
        InputError: all that is wrong, each with its line.
    """
    lines = [("", number, line) for number, line in enumerate(text.splitlines(), 1)]
    files = [line.strip() for _, _, line in lines if line.strip() and not line.startswith("#")]
    if read_beside is not None and files and not any(len(line.split()) > 1 for line in files):
        lines = []
        for file in files:
            name = PurePath(file).name
            lines += [(f"{name}: ", number, line) for number, line in enumerate(read_beside(file).splitlines(), 1)]
    actions: dict[int, list[tuple[str, str, list[str]]]] = defaultdict(list)
    problems = []
    for before, number, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        match = _ACTION.fullmatch(line.strip())
        if match:
            actions[int(match[1])].append((f"{before}line {number}", match[2].lower(), match[3].split()))
        else:
            problems.append(
                Problem(f"{before}line {number}", f"should be a rank and an action, not {quote_name(line)}")
            )
    missing = [rank for rank in range(max(actions, default=0) + 1) if rank not in actions][:5]
    if missing:
        sentence = f"has nothing of rank {', '.join(map(str, missing))}; a trace has a part of every rank"
        problems.append(Problem("", sentence))
    if problems:
        raise InputError(problems[:20])
    passed: Counter[str] = Counter()
    readers = [_Rank(rank, len(actions), passed, problems) for rank in range(len(actions))]
    for rank, reader in enumerate(readers):
        for place, name, values in actions[rank]:
            reader.read_action(place, name, values)
    problems += _compare_collectives(readers)
    if problems:
        raise InputError(problems[:20])
    notes = [f"passed over: {', '.join(f'{name} ({count:,}×)' for name, count in passed.items())}"] if passed else []
    return make_schedule([reader.operations for reader in readers], notes)


def _compare_collectives(readers: list[_Rank]) -> Iterator[Problem]:
    first = readers[0].collectives
    for reader in readers[1:]:
        for number, (one, other) in enumerate(zip(first, reader.collectives, strict=False)):
            if one[1] != other[1]:
                what = f"collective {number + 1} of rank {reader.rank} is {other[1]}, and that of rank 0 {one[1]}"
                yield Problem(other[0], f"{what} ({one[0]})")
                break
        else:
            if len(first) != len(reader.collectives):
                what = f"rank {reader.rank} takes part in {len(reader.collectives)} collectives, rank 0 in {len(first)}"
                yield Problem("", f"{what}; each rank has to take part in all")


class _Rank:
    """Follows the actions of one rank."""

    def __init__(self, rank: int, ranks: int, passed: Counter[str], problems: list[Problem]) -> None:
        self.rank, self._ranks, self._passed, self._problems = rank, ranks, passed, problems
        self.operations: list[Operation] = []
        self.collectives: list[tuple[str, str]] = []
        self._last: tuple[int, ...] = ()  # what the next action waits for
        self._begun: list[tuple[int, int, int]] = []  # receives under way: source, tag, operation
        self._default = 1  # bytes of what is counted where no datatype is told

    def read_action(self, place: str, name: str, values: list[str]) -> None:
        if name in _PASSED:
            self._passed[name] += 1
            return
        wrong = next((value for value in values if not _NUMBER.fullmatch(value)), None)
        if wrong is not None:
            self._problems.append(Problem(place, f"should have numbers, not {quote_name(wrong)}"))
            return
        numbers = [int(float(value)) for value in values]
        if any(not -1 <= number < 1 << 50 for number in numbers):
            self._problems.append(Problem(place, "has a number beyond 2^50, or a negative one"))
            return
        try:
            self._carry_out(place, name, numbers)
        except (IndexError, KeyError):
            self._problems.append(
                Problem(place, f"{quote_name(name)} lacks a number, or has a datatype that is not known")
            )

    def _carry_out(self, place: str, name: str, numbers: list[int]) -> None:
        if name == "init":
            self._default = 8 if numbers else 1  # doubles, where the trace is of MPE, else bytes
        elif name in ("send", "isend", "recv", "irecv"):
            tag, size = (numbers[1], numbers[2]) if len(numbers) > 2 else (0, numbers[1])
            size *= self._size_of(numbers, 3)
            self._add("send" if name.endswith("send") else "recv", place, numbers[0], size, tag, begun=name == "irecv")
        elif name == "waitall":
            self._last += tuple(at for _, _, at in self._begun)
            self._begun.clear()
        elif name == "wait":
            self._wait(numbers)
        elif name in COLLECTIVES:
            self.collectives.append((place, name))
            tag = _COLLECTIVE_TAG + len(self.collectives)
            for kind, peer, size in self._collective(name, numbers):
                self._add(kind, place, peer, size, tag)
        else:
            self._problems.append(Problem(place, f"the action {quote_name(name)} cannot be read"))

    def _size_of(self, numbers: list[int], at: int) -> int:
        return _TYPES[numbers[at]] if len(numbers) > at else self._default

    def _add(self, kind: str, place: str, peer: int, size: int, tag: int, *, begun: bool = False) -> None:
        if len(self.operations) >= MOST_OPERATIONS:
            raise InputError.one(place, f"rank {self.rank} has more than {MOST_OPERATIONS:,} operations")
        number = len(self.operations)
        word = "send" if kind == "send" else "recv"
        self.operations.append(Operation(word, place, size, peer, tag, self._last))  # type: ignore[arg-type]
        if begun:
            self._begun.append((peer, tag, number))
        else:
            self._last = (number,)

    def _wait(self, numbers: list[int]) -> None:
        """Wait for the receive that is meant, or for the newest one; a send waits for nobody."""
        if len(numbers) >= 3 and numbers[1] != self.rank:
            return
        meant = [one for one in self._begun if len(numbers) < 3 or (one[0], one[1]) == (numbers[0], numbers[2])]
        if meant:
            one = meant[0] if len(numbers) >= 3 else meant[-1]
            self._begun.remove(one)
            self._last += (one[2],)

    def _collective(self, name: str, numbers: list[int]) -> Iterator[rank_steps.Step]:
        rank, ranks, root = self.rank, self._ranks, 0
        if name == "barrier":
            return rank_steps.barrier(rank, ranks)
        if name == "alltoallv":
            sent, received = numbers[1 : 1 + ranks], numbers[2 + ranks : 2 + 2 * ranks]
            sizes = self._size_of(numbers, 2 + 2 * ranks), self._size_of(numbers, 3 + 2 * ranks)
            if len(received) < ranks:
                raise IndexError
            return rank_steps.exchange_all(
                rank, ranks, [one * sizes[0] for one in sent], [one * sizes[1] for one in received]
            )
        size = numbers[0]
        if name == "allreduce":
            return rank_steps.all_reduce(rank, ranks, size * self._size_of(numbers, 2))
        if name in ("alltoall", "allgather"):
            size *= self._size_of(numbers, 2)
            if name == "allgather":
                return rank_steps.all_gather(rank, ranks, size)
            return rank_steps.exchange_all(rank, ranks, [size] * ranks, [size] * ranks)
        at = 1 if name == "bcast" else 2
        root = numbers[at] if len(numbers) > at else 0
        size *= self._size_of(numbers, at + 1)
        if root >= ranks:
            raise IndexError
        make = {
            "bcast": rank_steps.broadcast, "reduce": rank_steps.reduce, "gather": rank_steps.gather,
            "scatter": rank_steps.scatter,
        }[name]  # fmt: skip
        return make(rank, ranks, size, root)

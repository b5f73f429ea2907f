"""Which tests concern a line, and how long they take: plugins of pytest.

Without a fault, Watch writes down which functions of the project each test of a file enters, and its processor time.
With one, Judge runs the tests that enter the function with the fault, and limits their time.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

LONGEST = 5.0  # seconds of processor time of a test of interpreted kernels that may judge; others are left out
_WAITED = 20.0  # seconds that one may take on the clock, with programs that it starts
Function = tuple[str, int, int]  # file, first line, last line


class TooLong(BaseException):
    """A test has used more processor time than it may; no Exception, which it could catch."""


@dataclass(frozen=True)
class Seen:
    """A test without any fault.

    Attributes:
        seconds: processor time that it takes; None if that, or the time on the clock, is more than it may be, or if it
            fails: kernels that are not compiled draw other random numbers, and a test may rest on those.
        entered: functions of the project that it, or what its file makes for all its tests, enters.
    """

    seconds: float | None
    entered: frozenset[Function]

    def concerns(self, file: str, line: int) -> bool:
        """Whether it enters a function around a line."""
        return any(name == file and first <= line <= last for name, first, last in self.entered)


def judging(seen: Mapping[str, Seen], file: str, line: int, seconds: float) -> list[str]:
    """Tests that judge a fault in a line, so many seconds of them at most; those that enter the fewest functions first.

    They enter a function around it; where none does, as of what stands outside of functions, any function of the file.
    """
    narrow = sorted((test for test, one in seen.items() if one.seconds is not None), key=lambda t: len(seen[t].entered))
    around = [test for test in narrow if seen[test].concerns(file, line)]
    concerned = around or [test for test in narrow if any(name == file for name, *_ in seen[test].entered)]
    ended = accumulate(seen[test].seconds or 0.0 for test in concerned)
    return [test for test, end in zip(concerned, ended, strict=True) if end <= seconds]


class _Limiting(ABC):
    """Ends tests that use too much processor time."""

    def __init__(self) -> None:
        signal.signal(signal.SIGPROF, self._end)

    @abstractmethod
    def limit(self, test: str) -> float:
        """Seconds."""

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        raise TooLong

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        signal.setitimer(signal.ITIMER_PROF, self.limit(item.nodeid))
        try:
            return (yield)
        except TooLong:
            self.ended(item.nodeid)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    @abstractmethod
    def ended(self, test: str) -> None:
        """Say what that means."""


class Watch(_Limiting):
    """What the tests of a file enter without a fault, and how long they take.

    Args:
        root: folder of the project.
    """

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = f"{root}/"
        self._codes: dict[int, CodeType] = {}
        self._shared: set[Function] = set()
        self._tests: dict[str, tuple[float | None, set[Function]]] = {}
        self._late: set[str] = set()
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, _event: str, _arg: Any) -> None:
        self._codes[id(frame.f_code)] = frame.f_code

    def _entered(self) -> set[Function]:
        """Since it was last asked."""
        codes, self._codes = self._codes, {}
        return {
            (code.co_filename[len(self._root) :], code.co_firstlineno, max(line or 0 for *_, line in code.co_lines()))
            for code in codes.values()
            if code.co_filename.startswith(f"{self._root}testbed/") and code.co_name != "<module>"
        }

    def limit(self, test: str) -> float:
        """The same for all."""
        return LONGEST

    def ended(self, test: str) -> None:
        """It judges nothing."""
        self._late.add(test)
        pytest.skip("takes too long")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """One that fails without any fault judges nothing either; the counts that a file ends with tell of it."""
        try:
            return (yield from super().pytest_runtest_call(item))
        except Exception as error:
            self._late.add(item.nodeid)
            pytest.skip(f"fails without any fault: {error!r:.60}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        for made in vars(getattr(item, "module", None)).values():
            if hasattr(made, "cache_clear"):  # what a test finds there it would otherwise have made
                made.cache_clear()
        sys.settrace(self._enter)  # another may have taken its place
        began, started = time.monotonic(), time.process_time()
        try:
            return (yield)
        finally:
            late = item.nodeid in self._late or time.monotonic() - began > _WAITED
            seconds = None if late else time.process_time() - started
            self._tests[item.nodeid] = seconds, self._entered()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:  # as is, at the first test, what collecting them has entered
            self._shared |= self._entered()

    def seen(self) -> dict[str, Seen]:
        """By test."""
        return {
            test: Seen(seconds, frozenset(entered | self._shared)) for test, (seconds, entered) in self._tests.items()
        }


class Judge(_Limiting):
    """Runs tests that concern a fault until one notices it.

    Args:
        tests: test → seconds that it takes without a fault; in the order in which they run.
    """

    def __init__(self, tests: Mapping[str, float]) -> None:
        super().__init__()
        self._tests = tests
        # Ends what heeds no signal, as compiled kernels do not.
        spent = time.process_time()
        limit = int(spent + 30 + sum(3 * seconds for seconds in tests.values()))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))

    def limit(self, test: str) -> float:
        """What it took, a few times."""
        return 3 + 4 * self._tests[test]

    def ended(self, test: str) -> None:
        """That notices the fault."""
        pytest.fail(f"did not end in {self.limit(test):.0f} s of processor time")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Only those, in that order; what has another name with the fault is left out."""
        order = {test: number for number, test in enumerate(self._tests)}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

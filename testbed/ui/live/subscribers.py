"""Who looks, and what each of them is told: the newest reading and no backlog, and every line that is said."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_LINES = 64  # said and not yet fetched; of more the oldest are dropped


class Viewer:
    """One open page. A page that fetches slowly misses readings, and costs no memory.

    Attributes:
        missed: readings that a newer one has replaced before they were fetched.
    """

    def __init__(self) -> None:
        self.missed = 0
        self._newest: str | None = None
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._wake = asyncio.Event()
        self._over = False

    def show(self, reading: str) -> None:
        """Replace the reading that is to be fetched next."""
        self.missed += self._newest is not None
        self._newest = reading
        self._wake.set()

    def tell(self, line: str) -> None:
        """Add something that is to be fetched, too, before the next reading."""
        self._lines.append(line)
        self._wake.set()

    def end(self) -> None:
        """There is nothing more to come."""
        self._over = True
        self._wake.set()

    async def next(self, patience: float) -> list[str] | None:
        """What has come, as soon as there is something; nothing after so many s, and None after end()."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wake.wait(), patience)
        self._wake.clear()
        found = [*self._lines, *([] if self._newest is None else [self._newest])]
        self._lines.clear()
        self._newest = None
        if self._over:
            self._wake.set()
            return found or None
        return found


class Hub:
    """All open pages.

    Attributes:
        viewers: of which something may be read; nothing is where there are none.
        somebody: set while there are any.
    """

    def __init__(self) -> None:
        self.viewers: set[Viewer] = set()
        self.somebody = asyncio.Event()

    @contextmanager
    def viewer(self) -> Iterator[Viewer]:
        """Someone looks while the block runs."""
        one = Viewer()
        self.viewers.add(one)
        self.somebody.set()
        try:
            yield one
        finally:
            self.viewers.discard(one)
            if not self.viewers:
                self.somebody.clear()

    def show(self, reading: str) -> None:
        """Give everybody a reading."""
        for one in self.viewers:
            one.show(reading)

    def tell(self, line: str) -> None:
        """Tell everybody something."""
        for one in self.viewers:
            one.tell(line)

    def close(self) -> None:
        """Let all pages end."""
        for one in self.viewers:
            one.end()

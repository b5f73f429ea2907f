"""What memory the machine has left for a program, and whether a plan fits into it."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

from testbed.base.errors import CapabilityError
from testbed.planning.size import BY_TREES, Size, gigabytes

_SMALL = 1 << 28  # bytes of a plan that are not looked for
_MEMORY = Path("/proc/meminfo")
_GROUPS = (  # the most that this group of processes may have, and what it has
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)
# Of it, files that the kernel drops when it is asked for more.
_CACHED = "memory.stat", ("inactive_file", "total_inactive_file")


def require_room(size: Size) -> None:
    """Let only plans pass for which there is memory.

    Raises:
        CapabilityError: there is not enough.
    """
    if size.memory <= _SMALL:
        return
    free = free_memory()
    if free is not None and size.memory > free:
        raise CapabilityError(
            f"{size.source}: {size.sentence}; {gigabytes(free)} are free here, so nothing was planned. Take fewer "
            f"switches, a routing by trees where it goes with the fabric ({', '.join(sorted(BY_TREES))}), or a "
            "machine with more memory"
        )


def free_memory() -> int | None:
    """Bytes that this program can still have, without swapping; None where the machine does not say."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        (line,) = (line for line in _MEMORY.read_text().splitlines() if line.startswith("MemAvailable:"))
        found.append(1024 * int(line.split()[1]))
    for most, now in _GROUPS:
        with suppress(OSError, ValueError):  # "max" where there is no limit
            found.append(int(most.read_text()) - int(now.read_text()) + _droppable(now.parent))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            found.append(limit)
    return max(0, min(found)) if found else None


def _droppable(group: Path) -> int:
    """Bytes of files that a group of processes has read, counted as its own, and would not miss."""
    file, names = _CACHED
    with suppress(OSError, ValueError):
        counts = dict(line.split() for line in (group / file).read_text().splitlines())
        return max(int(counts.get(name, 0)) for name in names)
    return 0

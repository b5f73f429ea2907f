"""How much memory a lab takes in the virtual machine, and whether there is that much."""

from __future__ import annotations

from pathlib import Path

from testbed.errors import CapabilityError

# MiB, an estimate of the system with the program, each host, each port, each MPI rank; four hosts took 249 in all.
_SYSTEM, _HOST, _PORT, _RANK = 400, 6, 1, 40


def needed_memory(hosts: int, ports: int, ranks: int) -> int:
    """Return MiB that a lab takes in the machine, an upper estimate. `ranks` are the most that run at once."""
    return _SYSTEM + _HOST * hosts + _PORT * ports + _RANK * ranks


NEEDED_BY_TESTS = needed_memory(16, 80, 0)


def require_memory(what: str, needed: int, memory: int, free: int) -> None:
    """Raise CapabilityError unless a lab fits the virtual machine and that fits this one.

    All are MiB: what the lab takes, what the virtual machine has, what this machine has left.
    """
    if needed > memory:
        raise CapabilityError(
            f"{what} takes about {needed} MiB in the virtual machine, which has {memory} MiB; nothing was started; "
            f"give it more with --memory {needed}, or choose a smaller scenario"
        )
    if memory > free:
        raise CapabilityError(
            f"the virtual machine takes {memory} MiB, and this machine has {free} MiB left; nothing was started; end "
            f"other programs, or give it less with --memory (this needs about {needed} MiB)"
        )


def free_memory() -> int:
    """Return MiB that this machine can give to programs."""
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(rows["MemAvailable"].split()[0]) // 1024

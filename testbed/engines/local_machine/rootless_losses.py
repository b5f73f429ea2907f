"""What a lab without root does without, said once, with what it costs."""

from __future__ import annotations

import resource
import warnings
from collections.abc import Mapping
from pathlib import Path

from testbed.base.errors import LackWarning
from testbed.engines.local_machine import user_namespace

_PRIORITY = 10  # that the process of a model asks for
_BUFFER = 4 << 20  # bytes of a socket's buffer from which on nothing is worth a word
_BUFFERS = ("rmem_max", "wmem_max")


def warn_of_losses(*, model: bool) -> None:
    """Tell what the lab that is about to be built lacks; nothing where this program is root.

    `model` says whether its switches are one.
    """
    if user_namespace.is_root():
        return
    buffers = {}
    for name in _BUFFERS:
        try:
            buffers[name] = int(Path("/proc/sys/net/core", name).read_text())
        except (OSError, ValueError):
            continue  # a container does not show it
    losses = list_losses(resource.getrlimit(resource.RLIMIT_RTPRIO)[0], buffers, model=model)
    warnings.warn(f"a lab without root: {'; '.join(losses)} ({user_namespace.PAGE})", LackWarning, stacklevel=2)


def list_losses(priority: int, buffers: Mapping[str, int], *, model: bool) -> list[str]:
    """What is missing, each with its consequence.

    Args:
        priority: real-time priority that this user may take; -1 = any.
        buffers: what the kernel allows sockets, by name, in bytes.
        model: whether the switches are one.
    """
    found = []
    if model and 0 <= priority < _PRIORITY:
        found.append("no real-time priority (ulimit -r), so frames are late where other programs want the processor")
    if not model:
        found.append("no fast path under Open vSwitch, so a larger dilation; no traffic matrix in results")
    small = {name: size for name, size in buffers.items() if size < _BUFFER}
    if small and not model:
        told = ", ".join(f"net.core.{name} = {size}" for name, size in small.items())
        found.append(f"small buffers of sockets ({told}), so a burst may be lost in a switch")
    found.append("shares of the processors only where a group of processes is given to you")
    return found

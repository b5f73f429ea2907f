"""What the lab is asked to start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a load.

    Attributes:
        id: its name in the outputs.
        host: host it runs in; None = beside the switches.
        argv: program and arguments.
        server_port: TCP port that must be open before clients start; None for clients.
        env: additions to the environment, or all of it where `only_env` is set.
        only_env: the process gets nothing of the lab's own environment.
    """

    id: str
    host: str | None
    argv: tuple[str, ...]
    server_port: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    only_env: bool = False


class OutputError(ValueError):
    """What a program printed is not what it prints when it worked; the text says what is wrong."""

"""Who runs what a study consists of, as studies see them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol


class LabWorkers(Protocol):
    """Other processes that run functions, on this machine or others; see emulate.cluster.Cluster."""

    @property
    def slots(self) -> int:
        """Functions they run at a time."""

    @property
    def lab_slots(self) -> int:
        """Labs they run at a time."""

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Run a function on some worker."""

    def submit_lab(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Run a function that builds a lab on a worker that may."""

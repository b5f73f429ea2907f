"""The loads of a run as its manifest tells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

UNFAITHFUL = ("invalid", "fail")


@dataclass(frozen=True, slots=True)
class LoadHead:
    """What a load is called and how it went.

    Attributes:
        label: the `load` label of its samples.
        title: in words.
        verdict: empty where none is given.
        reasons: of the verdict.
        no_matrix: why its telemetry has no traffic matrix; empty where it has one, or none was wanted.
    """

    label: str
    title: str
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    no_matrix: str = ""

    @property
    def unfaithful(self) -> bool:
        """Whether its figures must not be used."""
        return self.verdict in UNFAITHFUL


def load_heads(manifest: Mapping[str, object], labels: Iterable[str]) -> list[LoadHead]:
    """Return the loads in the order of a manifest, then those that only samples name by their labels."""
    listed = manifest.get("loads")
    heads = [
        LoadHead(
            str(entry.get("load", "")),
            str(entry.get("title") or entry.get("kind") or "load"),
            str(entry.get("verdict") or ""),
            texts(entry.get("reasons")),
            str(entry.get("no_traffic_matrix") or ""),
        )
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, Mapping)
    ]
    known = {head.label for head in heads}
    return heads + [
        LoadHead(label, "load" if label else "whole run") for label in dict.fromkeys(labels) if label not in known
    ]


def texts(value: object) -> tuple[str, ...]:
    """A list of a manifest as texts; empty where there is none."""
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()

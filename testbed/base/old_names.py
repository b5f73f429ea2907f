"""Names of earlier releases that are still understood, for one release after they were replaced, and the notice."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

# Commands → what each is called now.
COMMANDS = {"import": "check"}
# Options of commands → what each is called now.
OPTIONS = {"--plot": "--output", "--load": "--trace-load"}
# Engines of scenarios and of stored runs → likewise.
ENGINES = {"lab": "ovs", "native": "ovs"}
# Block of a scenario → its keys → likewise.
KEYS: Mapping[str, Mapping[str, str]] = {"workloads": {"offered": "offered_load"}}


class OldNameWarning(UserWarning):
    """Something is called otherwise now."""


def rename_keys(block: str, raw: dict[Any, Any], place: str, *, quiet: bool = False) -> dict[Any, Any]:
    """Return a block of a scenario with the keys of today; one that is there by both names keeps both.

    Args:
        block: what the block is called in a scenario.
        raw: its keys, of any type, and values.
        place: where it is, such as `workloads.0`.
        quiet: give no notice, as for what an earlier release has stored.
    """
    old = {key: new for key, new in KEYS.get(block, {}).items() if key in raw and new not in raw}
    if not quiet:
        for key, new in old.items():
            notice(f"{place}.{key}", new)
    return {old.get(key, key): value for key, value in raw.items()}


def notice(old: str, new: str) -> None:
    """Say that something is called otherwise now."""
    warnings.warn(f"{old} is called {new} now; the old name goes with the next release", OldNameWarning, stacklevel=3)

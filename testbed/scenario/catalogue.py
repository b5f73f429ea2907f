"""What there is to choose from: scenarios and sweeps by name, each with its description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from testbed.base.files import read_text
from testbed.base.limits import DEPTH, YAML, LimitError, scaled_limit
from testbed.scenario.read_blocks import scenario_folders, scenario_names

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where PyYAML has libyaml


def scenario_summaries() -> dict[str, str]:
    """Every scenario that can be named, with its description."""
    return summaries(scenario_names())


def sweep_names() -> dict[str, Path]:
    """Every sweep that can be named, with its file; as of scenarios, those here come before the testbed's own."""
    found: dict[str, Path] = {}
    for folder in reversed(scenario_folders()):
        found.update({file.stem: file for file in sorted((folder / "sweeps").glob("*.yaml"))})
    return dict(sorted(found.items()))


def summaries(files: Mapping[str, Path]) -> dict[str, str]:
    """Name → description of files of YAML; a file that cannot be read, or has none, says so."""
    return {name: _description(file) for name, file in files.items()}


def _description(file: Path) -> str:
    try:
        text = _read_description(read_text(file, file.parent, most=YAML))
    except (OSError, ValueError, yaml.YAMLError):
        return "cannot be read"
    return " ".join(text.split()) or "has no description:"


def _read_description(text: str) -> str:
    """Value of the key `description` of a block of YAML; empty where it has none.

    Events are looked at one by one, because the fast loader of all of them ends the program where blocks are too deep.
    """
    found, depth, names_key, key = "", 0, True, ""
    for event in yaml.parse(text, Loader=_Loader):
        if depth == 1 and isinstance(event, yaml.NodeEvent):
            said = event.value if isinstance(event, yaml.ScalarEvent) else ""
            if names_key:
                key = said
            elif key == "description":
                found = said
            names_key = not names_key
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > scaled_limit(DEPTH):
            raise LimitError("blocks are nested too deeply")
    return found

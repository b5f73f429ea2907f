"""What there is to choose from: scenarios and sweeps by name, each with its description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from testbed.scenario.read import scenario_folders, scenario_names

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
        blocks = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError):
        return "cannot be read"
    text = blocks.get("description") if isinstance(blocks, dict) else None
    return " ".join(text.split()) if isinstance(text, str) and text.strip() else "has no description:"

"""Where a scenario's name leads."""

from __future__ import annotations

from pathlib import Path

from testbed.errors import InputError, did_you_mean

_BESIDE_PACKAGE = Path(__file__).resolve().parents[2] / "scenarios"


def scenario_folders() -> tuple[Path, ...]:
    """Folders searched for names: `scenarios/` here, then the one of the testbed itself."""
    here = Path("scenarios").resolve()
    return (here,) if here == _BESIDE_PACKAGE else (here, _BESIDE_PACKAGE)


def scenario_names() -> dict[str, Path]:
    """Every name that can be given, with its file."""
    found: dict[str, Path] = {}
    for folder in reversed(scenario_folders()):
        found.update({file.stem: file for file in sorted(folder.glob("*.yaml"))})
    return dict(sorted(found.items()))


def find_scenario(name: str) -> Path:
    """Return the file of a scenario given as a file or as a name in `scenarios/`.

    Raises:
        InputError: there is none; suggests the nearest name.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        file = Path(name)
        if file.is_file():
            return file
        raise InputError.one(name, f"no such file.{did_you_mean(file.stem, scenario_names())}")
    names = scenario_names()
    if name in names:
        return names[name]
    known = f" Known: {', '.join(names)}." if names else " There is no scenarios/ folder here."
    raise InputError.one(name, f"no scenario of that name.{did_you_mean(name, names)}{known}")

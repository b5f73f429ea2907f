"""Read a sweep file, gathering every problem."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.base.files import read_text
from testbed.base.limits import YAML
from testbed.experiments.sweep.sweep_spec import KEYS, MAX_REPEATS, MAX_RUNS, Combination, FigureSpec, Sweep
from testbed.scenario import find_scenario, scenario_names
from testbed.scenario.catalogue import sweep_names
from testbed.scenario.named_files import ElsewhereError, leads_out
from testbed.scenario.parameter_models import fill, format_value, unknown_key
from testbed.scenario.read_blocks import read_blocks

_HIDDEN = "workloads"  # a key of its own, since its value is a list


def find_sweep(name: str) -> Path:
    """Return the file of a sweep given as a file or as a name in `scenarios/sweeps/`.

    Raises:
        InputError: there is none of that name; suggests the nearest.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return Path(name)
    names = sweep_names()
    if name in names:
        return names[name]
    if name in scenario_names():
        raise InputError.one(name, f"is a scenario, and no sweep; run it by: testbed run {name}")
    known = f" Known: {', '.join(names)}." if names else ""
    raise InputError.one(name, f"no sweep of that name.{did_you_mean(name, names)}{known}")


def load_sweep(file: Path, repeats: int | None = None) -> tuple[Sweep | None, list[Problem]]:
    """Read a sweep file.

    `repeats`, where given, holds whatever the file says.

    Returns:
        what it says, or None where it does not even say which runs there are; and every problem found.

    Raises:
        InputError: it cannot be read at all.
    """
    try:
        text = read_text(file, most=YAML)
    except FileNotFoundError as error:
        beside = [other.name for other in file.parent.glob("*.yaml")] if file.parent.is_dir() else []
        raise InputError.one(str(file), f"no such file.{did_you_mean(file.name, beside)}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(str(file), f"cannot be read: {reason}") from error
    return parse_sweep(text, file, repeats)


def parse_sweep(text: str, file: Path, repeats: int | None = None) -> tuple[Sweep | None, list[Problem]]:
    """Make a sweep from YAML text; see load_sweep.

    Scenarios given as files are looked for beside `file`.

    Raises:
        InputError: it is no mapping, or `repeats` is out of range.
    """
    try:
        raw, _ = read_blocks(text, str(file), ())
    except InputError as error:
        wanted = ("such as topology: and workloads:", "such as scenarios: and set:")
        raise InputError([replace(p, sentence=p.sentence.replace(*wanted)) for p in error.problems]) from error
    problems = [Problem(key, unknown_key(key, KEYS)) for key in raw if key not in KEYS]
    name = raw.get("name", file.stem)
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        origin = "" if "name" in raw else ", the name of the file; rename it or set name:"
        problems.append(Problem("name", f'should be letters, digits, "-" and "_", not {format_value(name)}{origin}'))
    description = _text(raw, "description", problems) or ""
    scenarios = _scenarios(raw, file.parent, problems)
    settings = _settings(raw, problems)
    if repeats is not None and not 1 <= repeats <= MAX_REPEATS:
        raise InputError.one(argument("repeats"), f"should be a whole number from 1 to {MAX_REPEATS}, not {repeats}")
    written = raw.get("repeats", 1)
    if isinstance(written, bool) or not isinstance(written, int) or not 1 <= written <= MAX_REPEATS:
        problems.append(
            Problem("repeats", f"should be a whole number from 1 to {MAX_REPEATS}, not {format_value(written)}")
        )
        written = 1
    rounds = written if repeats is None else repeats
    figures = _figures(raw, str(name), problems)
    baseline = _text(raw, "baseline", problems)
    labels = _labels(raw, problems)
    combinations: tuple[Combination, ...] = ()
    if scenarios and settings is not None:
        combinations = _combinations(raw, scenarios, settings, rounds, problems)
    placed = [problem.in_file(str(file)) for problem in problems]
    if not combinations:
        return None, placed
    return Sweep(str(name), description, str(file), combinations, rounds, baseline, figures, labels), placed


def _text(raw: Mapping[str, Any], key: str, problems: list[Problem]) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        problems.append(Problem(key, f"should be text (in quotes), not {format_value(value)}"))
        return None
    return value


def _labels(raw: Mapping[str, Any], problems: list[Problem]) -> dict[str, str]:
    given = raw.get("labels", {})
    if isinstance(given, dict) and all(isinstance(value, str) and value.strip() for value in given.values()):
        return {str(key): value for key, value in given.items()}
    wanted = 'should be a block of what is shown and what shall be, such as {updown: "up*/down*", dilation=200: slow}'
    problems.append(Problem("labels", f"{wanted}, not {format_value(given)}"))
    return {}


def _scenarios(raw: Mapping[str, Any], folder: Path, problems: list[Problem]) -> dict[str, Path]:
    """Name as written → file."""
    given = raw.get("scenarios")
    if not isinstance(given, list) or not given:
        problems.append(Problem("scenarios", f"should be a list such as [flat16, torus4x4], not {format_value(given)}"))
        return {}
    found: dict[str, Path] = {}
    for number, name in enumerate(given):
        place = f"scenarios.{number}"
        if not isinstance(name, str):
            problems.append(Problem(place, f"should be a name in scenarios/ or a file, not {format_value(name)}"))
        elif name in found:
            problems.append(Problem(place, f'"{name}" is listed twice; repeats: runs each several times'))
        else:
            is_file = name.endswith((".yaml", ".yml")) or "/" in name
            if is_file and leads_out(name):
                problems.append(Problem(place, f"{name}: {ElsewhereError('sweep', name, '').strerror}"))
                continue
            try:
                found[name] = find_scenario(str(folder / name) if is_file else name)
            except InputError as error:
                problems += [Problem(place, f"{problem.place}: {problem.sentence}") for problem in error.problems]
    return found


def _settings(raw: Mapping[str, Any], problems: list[Problem]) -> dict[str, list[Any]] | None:
    """Key → its values; None where they are not to be had."""
    block: Any = raw.get("set", {})
    if not isinstance(block, dict):
        problems.append(
            Problem("set", f"should be a block such as {{lab.dilation: [100, 200]}}, not {format_value(block)}")
        )
        return None
    before = len(problems)
    found: dict[str, list[Any]] = {}
    for key, given in block.items():
        values = given if isinstance(given, list) else [given]
        if not values:
            problems.append(Problem(f"set.{key}", "has no value; give one or more, or leave the key out"))
        elif len({repr(value) for value in values}) < len(values):
            problems.append(Problem(f"set.{key}", f"has a value twice: {format_value(values)}"))
        elif not all(key.split(".")):
            problems.append(Problem(f"set.{key}", "should be a key of a scenario such as lab.dilation"))
        elif key == _HIDDEN:
            problems.append(Problem(f"set.{key}", "is a key of its own: write workloads: beside set:"))
        else:
            found[key] = values
    return found if len(problems) == before else None


def _figures(raw: Mapping[str, Any], name: str, problems: list[Problem]) -> tuple[FigureSpec, ...]:
    given = raw.get("figures", [{"kind": "bars"}])
    if not isinstance(given, list) or not given:
        problems.append(Problem("figures", f"should be a list such as [{{kind: bars}}], not {format_value(given)}"))
        return ()
    found = []
    for number, block in enumerate(given):
        place = f"figures.{number}"
        figure = fill(FigureSpec, block, place, problems)
        if figure is None:
            continue
        if (figure.kind == "lines") != (figure.x is not None):
            wanted = "is required for lines: switches_on_path, message_size or a key such as topology.hosts_per_switch"
            problems.append(Problem(f"{place}.x", wanted if figure.x is None else "is for kind: lines; bars have none"))
        if figure.name and not figure.name.replace("-", "").replace("_", "").isalnum():
            problems.append(
                Problem(f"{place}.name", f'should be letters, digits, "-" and "_", not {format_value(figure.name)}')
            )
        found.append((figure.name or (name if len(given) == 1 else f"{name}-{number + 1}"), figure))
    names = [known for known, _ in found]
    for known in dict.fromkeys(known for known in names if names.count(known) > 1):
        problems.append(Problem("figures", f'two figures would be called "{known}"; give them different names'))
    return tuple(
        FigureSpec(figure.kind, known, figure.x, figure.x_label, figure.metrics, figure.title)
        for known, figure in found
    )


def _combinations(
    raw: Mapping[str, Any],
    scenarios: Mapping[str, Path],
    settings: Mapping[str, list[Any]],
    repeats: int,
    problems: list[Problem],
) -> tuple[Combination, ...]:
    count = len(scenarios) * repeats
    for values in settings.values():
        count *= len(values)
    if count > MAX_RUNS:
        problems.append(Problem("set", f"makes {count:,} runs with scenarios and repeats; up to {MAX_RUNS:,} are run"))
        return ()
    fixed = [setting(_HIDDEN, raw[_HIDDEN])] if _HIDDEN in raw else []
    found = []
    for name, file in scenarios.items():
        for chosen in itertools.product(*settings.values()):
            pairs = list(zip(settings, chosen, strict=True))
            texts = [*fixed, *(setting(key, value) for key, value in pairs)]
            swept = {key: value for key, value in pairs if len(settings[key]) > 1}
            found.append(Combination(name, file, tuple(texts), swept))
    return tuple(found)


def setting(key: str, value: Any) -> str:
    """A key and its value as `--set` takes them; JSON is YAML."""
    return f"{key}={json.dumps(value, ensure_ascii=False, default=str)}"

"""`--vary KEY=A,B,C`: a command once for each value, or for every combination where there are several keys."""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, EXIT_WARNINGS, InputError, Problem
from testbed.ui.cli.output import Format, print_json, print_lines

VARY = Annotated[
    list[str] | None,
    typer.Option("--vary", help="KEY=A,B,C: repeat for each value, as in routing=dor,updown,sr; repeatable"),
]
_MAX_VARIANTS = 100
# A comma inside brackets or quotes parts nothing.
_VALUES = re.compile(r"""((?:\[[^\]]*\]|\{[^}]*\}|"[^"]*"|[^,\[{"])+)""")


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the values, or of their combinations."""

    label: str  # the values
    settings: tuple[str, ...]  # as --set takes them


def variants(vary: Sequence[str]) -> list[Variant]:
    """What is asked for.

    Raises:
        InputError: everything that is wrong with it.
    """
    problems: list[Problem] = []
    axes: dict[str, list[str]] = {}
    for text in vary:
        key, equals, rest = (part.strip() for part in text.partition("="))
        values = [value.strip() for value in _VALUES.findall(rest)]
        if not (key and equals and values):
            problems.append(Problem("--vary", f'"{text}" should look like routing=dor,updown,sr'))
        elif key in axes:
            problems.append(Problem(f"--vary {key}", "is given twice; write all its values behind one"))
        elif len(set(values)) < len(values):
            problems.append(Problem(f"--vary {key}", f"has a value twice: {rest}"))
        axes.setdefault(key, values)
    found = [
        Variant(" ".join(combination), tuple(f"{key}={value}" for key, value in zip(axes, combination, strict=True)))
        for combination in itertools.product(*axes.values())
    ]
    if len(found) > _MAX_VARIANTS:
        problems.append(Problem("--vary", f"asks for {len(found)} variants (at most {_MAX_VARIANTS}); vary less"))
    if problems:
        raise InputError(problems)
    return found


def named_variants(name: str, settings: Sequence[str], vary: Sequence[str]) -> Iterator[tuple[Variant, list[str]]]:
    """Each variant with all settings of it, also its name, once all of them have been planned.

    Raises:
        InputError: what is wrong with any of them.
    """
    from testbed.engines.lab.hosts.available_memory import require_room
    from testbed.planning import make_plan
    from testbed.scenario import find_scenario, load_scenario

    problems: dict[Problem, None] = {}
    found = []
    for variant in variants(vary):
        texts = [*settings, *variant.settings]
        try:
            plan = make_plan(load_scenario(find_scenario(name), texts), require_room)
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
            continue
        label = re.sub(r"[^0-9A-Za-z_]+", "-", variant.label).strip("-")
        found.append((variant, [*texts, f"name={plan.scenario.name}-{label}"]))
    if problems:
        raise InputError(list(problems))
    yield from found


def each_variant(
    name: str,
    settings: Sequence[str] | None,
    vary: Sequence[str],
    form: Format,
    command: Callable[..., None],
    given: Mapping[str, Any],
) -> int:
    """Call a command once for each variant, and return the worst of the exit codes.

    `command` is called with all that was `given` to it, but for its settings. With JSON the objects that it prints
    become a list.
    """
    codes, objects = [], []
    for variant, texts in named_variants(name, settings or (), vary):
        printed = io.StringIO()
        if form is Format.text:
            print_lines(f"── {variant.label}", "bold")
        with redirect_stdout(printed) if form is Format.json else nullcontext():
            codes.append(_code(command, {**given, "settings": texts, "vary": None}))
        if form is Format.json:
            objects.append(
                {"variant": variant.label, "settings": list(variant.settings), **json.loads(printed.getvalue())}
            )
    if form is Format.json:
        print_json({"variants": objects})
    order = (EXIT_PASS, EXIT_WARNINGS, EXIT_FAIL)
    return max(codes, key=lambda code: order.index(code) if code in order else len(order))


def _code(command: Callable[..., None], given: Mapping[str, Any]) -> int:
    try:
        command(**given)
    except typer.Exit as end:
        return int(end.exit_code)
    return EXIT_PASS

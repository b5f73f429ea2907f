"""Which key of a scenario holds on which engine, as a table for docs/engines.md, made from what refuses them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from testbed.scenario.engines import ENGINES, MODEL_IN_VM, EngineName, Simulator, VmOptions, supports_key
from testbed.scenario.spec import LabSettings, Links
from testbed.scenario.workloads import WORKLOADS

YES, NO = "yes", "refused"
# Head of a column → what it is of.
_COLUMNS = {
    **{f"`{name}`": engine for name, engine in ENGINES.items()},
    "`vm` with `vm.engine: realtime`": MODEL_IN_VM,
}
_EVERYWHERE = "`topology`, `faults`, `routing`, `assignment`, `switch_model`, `expect`"
_BLOCKS = {"links": Links, "lab": LabSettings, "simulator": Simulator, "vm": VmOptions}


def engine_table() -> str:
    """The table in Markdown, a row for keys of a block that hold on the same engines."""
    head = [f"| key | {' | '.join(_COLUMNS)} |", f"| --- |{' --- |' * len(_COLUMNS)}"]
    rows = [(_EVERYWHERE, [YES] * len(_COLUMNS)), *_keys(), *_events(), *_loads()]
    return "\n".join([*head, *(f"| {keys} | {' | '.join(cells)} |" for keys, cells in rows)]) + "\n"


def _keys() -> Iterator[tuple[str, list[str]]]:
    for block, kind in _BLOCKS.items():
        alike: dict[tuple[str, ...], list[str]] = {}
        for key in dataclasses.fields(kind):
            cells = tuple(_cell(engine, block, key) for engine in _COLUMNS.values())
            alike.setdefault(cells, []).append(f"`{block}.{key.name}`")
        yield from ((", ".join(keys), list(cells)) for cells, keys in alike.items())


def _cell(engine: EngineName, block: str, key: dataclasses.Field[Any]) -> str:
    """Whether a key holds on an engine; or the values that do, if it is not all of them."""
    if not supports_key(engine, block, key.name):
        return NO
    able = engine.values.get(block, {}).get(key.name)
    return YES if able is None else " or ".join(f"`{value}`" for value in able if value != key.default)


def _events() -> Iterator[tuple[str, list[str]]]:
    engines = _COLUMNS.values()
    yield "`workloads`: `failures`, which `probe` is for", [YES if engine.changes else NO for engine in engines]
    able = [YES if engine.changes and supports_key(engine, "lab", "managers") else NO for engine in engines]
    yield "`workloads`: `kill manager` among them", able
    yield "`workloads`: `timeline` of links that change", [YES if engine.changes else NO for engine in engines]


def _loads() -> Iterator[tuple[str, list[str]]]:
    alike: dict[tuple[bool, bool], list[str]] = {}
    for name, kind in WORKLOADS.items():
        if name != "probe":
            programs = bool(kind.why_not_simulated(kind.spec))
            alike.setdefault((programs, kind.own_file), []).append(f"`{name}`")
    for (programs, own_file), names in alike.items():
        cells = [
            NO if own_file and not engine.sees_files else "a warning" if programs and not engine.programs else YES
            for engine in _COLUMNS.values()
        ]
        yield f"`workloads`: {', '.join(names)}", cells

"""`testbed list`: what there is to choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from testbed.base.errors import InputError, did_you_mean
from testbed.ui.cli.app import FORMAT, PLUGIN, app
from testbed.ui.cli.output import Format, load_plugins, messages, print_json, print_lines, results, say_entries

KINDS = (
    "scenarios", "sweeps", "topologies", "routings", "assignments", "workloads", "patterns", "mpi_jobs",
    "switch_models", "dialects",
)  # fmt: skip


def _kinds(incomplete: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(incomplete)]


@app.command(
    "list",
    epilog="Examples:\ntestbed list\ntestbed list routings\ntestbed list scenarios torus\ntestbed list deadlock --json",
)
def list_all(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND|WORD]...",
            help=f"kinds to list ({', '.join(KINDS)}), and words that name or description must have",
            autocompletion=_kinds,
        ),
    ] = None,
    plugin: PLUGIN = None,
    form: FORMAT = Format.text,
) -> None:
    """List scenarios, sweeps, routings and everything else that has a name.

    Exit code 2 if nothing is of these kinds with these words.
    """
    load_plugins(plugin)
    kinds = [kind for word in words or () if (kind := word.replace("-", "_").lower()) in KINDS]
    wanted = [word.lower() for word in words or () if word.replace("-", "_").lower() not in KINDS]
    found = {
        kind: kept
        for kind, entries in _listing(kinds or KINDS).items()
        if (kept := {name: text for name, text in entries.items() if _has(f"{name} {text}", wanted)})
    }
    if not found:
        raise InputError.one("list", f"nothing has {' and '.join(wanted)}.{did_you_mean(wanted[-1], KINDS)}")
    if form is Format.json:
        print_json(found)
        return
    for kind, entries in found.items():
        results.print(kind.replace("_", " "), style="bold")
        say_entries(entries)
    from testbed.scenario.plugins import broken_plugins

    for name, why in broken_plugins().items():
        print_lines(f"cannot be used: {name}: {why}", "yellow", to=messages)


def _has(text: str, words: Sequence[str]) -> bool:
    return all(word in text.lower() for word in words)


def _listing(kinds: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Kind → name → what it is."""
    from testbed.devices import DIALECTS
    from testbed.engines.lab.hosts.build_mpi_jobs import job_summaries
    from testbed.fabric.routing import ROUTINGS
    from testbed.fabric.traffic import FAMILIES, PATTERNS
    from testbed.fabric.verify.limits import SWITCH_MODELS
    from testbed.fabric.vlans import ASSIGNMENTS
    from testbed.scenario import TOPOLOGY_BLOCKS
    from testbed.scenario.catalogue import scenario_summaries, summaries, sweep_names
    from testbed.scenario.workloads import WORKLOADS

    makers: dict[str, Callable[[], Mapping[str, str]]] = {
        "scenarios": scenario_summaries,
        "sweeps": lambda: summaries(sweep_names()),
        "topologies": lambda: {name: kind.summary for name, kind in TOPOLOGY_BLOCKS.items()},
        "routings": lambda: {name: routing.summary for name, routing in ROUTINGS.items()},
        "assignments": lambda: {name: assignment.summary for name, assignment in ASSIGNMENTS.items()},
        "workloads": lambda: {name: load.summary for name, load in WORKLOADS.items()},
        "patterns": lambda: {
            **{name: (make.__doc__ or "").strip().split("\n")[0].rstrip(".") for name, make in PATTERNS.items()},
            **{family.example: family.summary for family in FAMILIES.values()},
        },
        "mpi_jobs": job_summaries,
        "switch_models": lambda: {
            name: f"{model.ports} ports, {model.max_vlans:,} VLANs, {model.mac_table:,} MAC entries"
            for name, model in SWITCH_MODELS.items()
        },
        "dialects": lambda: {name: dialect.summary for name, dialect in DIALECTS.items()},
    }
    listed = {kind: makers[kind]() for kind in kinds}
    return {kind: {name: _with_origin(kind, name, text) for name, text in of.items()} for kind, of in listed.items()}


def _with_origin(kind: str, name: str, text: str) -> str:
    """What is known of a kind, and for one of a plug-in where it is from."""
    from testbed.scenario.plugins import origin_of

    origin = origin_of(kind, name)
    return f"{text} ({origin})" if origin else text

"""Analyses as a table for the terminal, one column a scenario."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.experiments.analyse.plan_figures import Analysis
from testbed.fabric.routing.relation import Conflict
from testbed.fabric.vlans.vlan_lower_bound import Bounds

if TYPE_CHECKING:
    from rich.table import Table

_NONE = "–"


def rich_table(analyses: Sequence[Analysis]) -> Table:
    """Return the figures as a table; rows that say nothing of any scenario are left out."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for analysis in analyses:
        table.add_column(analysis.plan.scenario.name, overflow="fold")
    columns = [_cells(analysis) for analysis in analyses]
    for label in dict.fromkeys(label for column in columns for label in column):
        values = [column.get(label, _NONE) for column in columns]
        if any(value != _NONE for value in values):
            table.add_row(label, *values)
    return table


def remarks(analyses: Sequence[Analysis]) -> list[str]:
    """Sentences below the table: what does not hold and where, and the notes of the routings."""
    found = []
    for analysis in analyses:
        plan = analysis.plan
        conflicts = {name: held for name, held in (analysis.relations or {}).items() if held is not None}
        for name, conflict in conflicts.items():
            found.append(f"not {name}: {conflict.sentence(plan.topology)}")
        found += [f"note: {note}" for note in plan.routes.notes]
        if len(analyses) > 1:
            own = len(conflicts) + len(plan.routes.notes)
            found[len(found) - own :] = [f"{plan.scenario.name}: {text}" for text in found[len(found) - own :]]
    return found


def _cells(analysis: Analysis) -> dict[str, str]:
    plan, hops, turns = analysis.plan, analysis.hops, analysis.prohibited_turns
    topology, scenario = plan.topology, plan.scenario
    cells = {
        "topology": scenario.topology_kind,
        "routing": scenario.routing_kind,
        "assignment": scenario.assignment_kind,
        "switches": f"{topology.switch_count:,}",
        "links between switches": f"{plan.wiring.link_count:,}",
        "hosts": f"{topology.host_count:,}",
        "links between two halves": _NONE if analysis.bisection is None else f"{analysis.bisection:,}",
        "hops, mean (same switch 0)": f"{hops.mean:.5g}",
        "hops, max": str(hops.longest),
        "shortest hops, mean": f"{hops.mean_shortest:.5g}",
        "shortest hops, max": str(hops.diameter),
        "pairs on a longer path than the shortest": _share(hops.longer_pairs, hops.pairs),
        "switches on a path, mean (same switch 1)": f"{hops.mean_switches:.5g}",
        "switches on a path, max": str(hops.max_switches),
    }
    for load in analysis.loads:
        saturation = _NONE if load.saturation is None else f"{load.saturation:.3g}"
        cells[f"{load.pattern}: flows on a channel, max"] = f"{load.max:,.6g}" if load.expected else f"{load.max:,}"
        cells[f"{load.pattern}: flows on a channel, mean"] = f"{load.mean:,.5g}"
        cells[f"{load.pattern}: unused channels"] = _share(load.idle_channels, len(load.flows))
        cells[f"{load.pattern}: saturates at (× link rate)"] = saturation
    cells |= {
        "prohibited turns": _NONE if turns is None else _share(*turns),
        "layers": str(plan.routes.layers),
        "deadlock free": "yes" if plan.deadlock_free else "NO",
        "proved": "yes" if plan.is_proved else "NO",
        **{f"relation {name}": text for name, text in _relations(analysis).items()},
        "VLANs, max per switch": f"{analysis.vlans:,}",
        "VLANs, total": f"{analysis.vlans_total:,}",
        "copies of a flooded frame per switch, mean": _copies(analysis.multiplication, 0),
        "copies of a flooded frame per switch, max": _copies(analysis.multiplication, 1),
        "fewest VLANs, fixed": _fewest(analysis, analysis.fewest_fixed),
        "fewest local VLANs of a switch, renamed": _fewest(analysis, analysis.fewest_renamed),
        "MAC entries, max per switch": f"{analysis.mac_entries:,}",
        "OpenFlow rules": f"{analysis.rules:,}",
    }
    for fit in analysis.fits:
        short = f"too few {', '.join(fit.short_of)}" if fit.short_of else "fits"
        cells[fit.model] = short
        cells[f"{fit.model}: max hosts by T/V"] = f"{fit.hosts_estimated:,}"
        cells[f"{fit.model}: max hosts, counted"] = f"{fit.hosts_counted:,}"
    return cells


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)" if whole else f"{part:,} of {whole:,}"


def _copies(found: tuple[float, float] | None, which: int) -> str:
    if found is None:
        return _NONE
    return "unbounded" if math.isinf(found[1]) else f"{found[which]:,.5g}"


def _relations(analysis: Analysis) -> dict[str, str]:
    if analysis.relations is None:
        return dict.fromkeys(("one tree a source", "C×N→C", "N×N→C"), "not tried")
    return {name: "yes" if conflict is None else "no" for name, conflict in analysis.relations.items()}


def _fewest(analysis: Analysis, found: Bounds | Conflict | None) -> str:
    if isinstance(found, Bounds):
        return str(found.lower) if found.exact else f"{found.lower} to {found.upper}"
    if isinstance(found, Conflict):
        return "none carry it"
    return "none carry layers" if analysis.plan.routes.layers > 1 else "not tried"

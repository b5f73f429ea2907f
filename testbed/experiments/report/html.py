"""A run as one page that needs nothing beside itself."""

from __future__ import annotations

import statistics

from testbed.base.model import Sample, Topology, VlanPlan
from testbed.base.units import gap_text
from testbed.experiments.report import figure_tables, run_facts
from testbed.experiments.report.page import template
from testbed.experiments.report.sample_table import MIN_LINK_USE, UNHELD_NOTE, result_rows
from testbed.planning.rates import at_dilation
from testbed.results import Run
from testbed.results.read_run import LoadHead, load_heads, texts
from testbed.results.samples import load_changes, load_failures
from testbed.results.telemetry import load_telemetry

_MAX_FURTHER_USES = 3


def render_report(run: Run) -> str:
    """Return the report of a run as HTML; the same run gives the same bytes."""
    from testbed.experiments.report.charts import failure_charts, load_charts  # noqa: PLC0415 - these import matplotlib
    from testbed.experiments.report.drawing import MAX_PANELS, MAX_SWITCHES, draw_topology, draw_vlans  # noqa: PLC0415 - likewise
    from testbed.experiments.report.heatmaps import telemetry_charts  # noqa: PLC0415 - likewise

    plan, manifest = run.plan, run.manifest
    rows = result_rows(run.samples)
    heads = load_heads(manifest, (row.load for row in rows))
    of_load: dict[str, list[Sample]] = {}
    for sample in run.samples:
        of_load.setdefault(sample.labels.get("load", ""), []).append(sample)
    trees = plan.vlans if isinstance(plan.vlans, VlanPlan) else None
    drawable = plan.topology.switch_count <= MAX_SWITCHES
    uses = _link_uses(plan.topology, heads, of_load) if drawable else []
    verdict = str(manifest.get("verdict") or "")
    sign, meaning = run_facts.describe_verdict(verdict, texts(manifest.get("reasons")))
    files, raw_files = run_facts.result_files(run)
    return template("testbed.experiments.report", "template.html").render(
        plan=plan,
        manifest=manifest,
        verdict=verdict or "not judged",
        sign=sign,
        meaning=meaning,
        reasons=texts(manifest.get("reasons")),
        settings=run_facts.settings(run),
        figures=run_facts.key_figures(plan),
        dilation=run_facts.dilation_sentence(run),
        version=run.environment.get("testbed"),
        again=run_facts.describe_attempts,
        clocks=run_facts.clock_sentence,
        heads=[head for head in heads if head.verdict or any(row.load == head.label for row in rows)],
        rows=rows,
        unheld_note=UNHELD_NOTE,
        gap_text=gap_text,
        charts=[
            (head, drawn)
            for number, head in enumerate(heads)
            if (drawn := load_charts(of_load.get(head.label, []), f"load-{number}"))
        ],
        failures=[
            (head, drawn)
            for number, head in enumerate(heads)
            if (drawn := failure_charts(load_failures(run.path, head.label), f"failures-{number}"))
        ],
        watched=[
            (head, drawn)
            for number, head in enumerate(heads)
            if (telemetry := load_telemetry(run.path, head.label))
            and (
                drawn := telemetry_charts(
                    at_dilation(plan, head.dilation or run.dilation),
                    telemetry,
                    f"watched-{number}",
                    next((one["events"] for one in load_changes(run.path, head.label)), ()),
                )
            )
        ],
        uses=uses,
        topology="" if uses or not drawable else draw_topology(plan.topology, "topology"),
        switches=figure_tables.links(plan.topology),
        trees=figure_tables.trees(plan.topology, trees) if trees else None,
        raw_of=lambda head: run_facts.files_of_load(head.label, files, raw_files),
        vlans=draw_vlans(plan.topology, trees, "vlans") if drawable and trees and trees.vlan_count else "",
        vlans_left_out=max(trees.vlan_count - MAX_PANELS, 0) if trees else 0,
        local_vlans=run_facts.local_vlans(plan),
        drawable=drawable,
        environment=run_facts.environment(run.environment),
        files=files,
        raw_files=raw_files,
        least_link_use=f"{100 * MIN_LINK_USE:g} %",
    )


def _link_uses(
    topology: Topology, heads: list[LoadHead], of_load: dict[str, list[Sample]]
) -> list[tuple[LoadHead, str, figure_tables.Sheet]]:
    """Drawings of the loads that have samples of link use, the busiest first."""
    from testbed.experiments.report.drawing import draw_topology, link_use  # noqa: PLC0415 - imports matplotlib

    found = [(head, use) for head in heads if (use := link_use(topology, of_load.get(head.label, [])))]
    found.sort(key=lambda pair: -statistics.fmean(use.measured for use in pair[1].values()))
    return [
        (head, draw_topology(topology, f"use-{number}", use), figure_tables.link_uses(topology, use))
        for number, (head, use) in enumerate(found[: _MAX_FURTHER_USES + 1])
    ]

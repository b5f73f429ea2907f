"""Failures as text, and their names in a fabric."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.failover.events import changes_of
from testbed.failover.failed import words
from testbed.failover.outlook import failed_after
from testbed.failover.tables import whole_tables
from testbed.model import VlanPlan
from testbed.plan import make_plan
from testbed.plan.failures import failure_outlooks
from testbed.workloads.spec import Probe
from testbed.workloads.timeline import Event, parse_event, timeline_problems
from tests.fabrics import scenario_of, topology_of


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("at 5s: down s3-s7", Event(5.0, "down", ("s3-s7",))),
        ("  AT 0.25 s :Up s1-s2#1 , h3 ", Event(0.25, "up", ("s1-s2#1", "h3"))),
        ("at 9s: kill s2", Event(9.0, "kill", ("s2",))),
    ],
)
def test_an_event_is_read_and_written(text: str, event: Event):
    assert parse_event(text) == event
    assert parse_event(str(event)) == event


def test_yaml_without_quotes_means_the_same():
    texts = ["[at 1s: down s1-s2]", '["at 1s: down s1-s2"]', "\n    - at 1s: down s1-s2\n"]
    blocks = [f"topology: {{kind: torus, sizes: [4, 4]}}\nworkloads:\n- kind: probe\n  failures: {t}" for t in texts]
    specs = {scenario_of(block).workloads[0].spec for block in blocks}
    assert specs == {Probe(("at 1s: down s1-s2",))}


def test_events_of_one_time_are_in_order():
    assert not timeline_problems(["at 1s: down s1-s2", "at 1s: down s2-s3"], 5)
    assert [p.place for p in timeline_problems(["at 2s: down s1-s2", "at 1s: up s1-s2"], 5)] == ["failures.1"]


def test_links_ports_hosts_and_switches_are_found_by_name():
    topology = topology_of("torus", sizes=[4, 4])
    channel = 7
    source, target = (topology.switch_name(int(topology.channel_source[c])) for c in (channel, channel ^ 1))
    port = f"{source}-eth{topology.out_port[channel]}"
    events = [parse_event(f"at 1s: {what}") for what in (f"down {port}", "down h3", "kill s9", f"up {target}-{source}")]
    changes, problems = changes_of(topology, events, "failures")
    assert not problems
    assert changes[0].links == changes[3].links == (channel // 2,)
    assert changes[0].ends == ((int(topology.channel_source[channel]), int(topology.out_port[channel])),)
    assert words(topology, failed_after(topology, changes[:2])) == [
        f"link {topology.channel_name(channel & ~1).replace('→', '–')}", "port of h3",
    ]  # fmt: skip
    left = failed_after(topology, changes)
    assert words(topology, left) == ["switch s9", "port of h3"]
    assert int(left.links.sum()) == 4


def test_names_of_switches_may_have_hyphens():
    blocks = "topology: {kind: graph, switches: [a-b, c, c-d], links: [[a-b, c], [c, c-d], [a-b, c-d]]}"
    topology = make_plan(scenario_of(f"{blocks}\nassignment: {{kind: fixed}}\nrouting: {{kind: stp}}")).topology
    changes, problems = changes_of(topology, [parse_event("at 1s: down a-b-c, c-d-a-b")], "failures")
    assert not problems
    assert changes[0].links == (0, 2)


def test_a_plan_says_what_each_failure_leaves():
    plan = make_plan(
        scenario_of(
            "topology: {kind: ring, switches: 4}\nlab: {controller: segment_manager}\n"
            "workloads:\n- kind: probe\n  failures: [at 1s: down s1-s2, at 2s: down s3-s4, at 3s: up s1-s2]"
        )
    )
    first, second, third = (outlook.as_dict(plan.topology) for outlook in failure_outlooks(plan)[0])
    assert first["cut_off"] == first["without_backup"] == []
    assert first["pairs_diverted"] > 0
    assert second["dead"] == ["link s1–s2", "link s3–s4"]
    assert sorted(second["cut_off"]) == sorted(
        f"{a}→{b}" for x, y in ((("h1", "h4"), ("h2", "h3")), (("h2", "h3"), ("h1", "h4"))) for a in x for b in y
    )
    assert second["pairs_diverted"] == 0
    assert third["cut_off"] == []


def test_pairs_that_no_backup_helps_are_named():
    """One link of each backup tree dies at once, and the fabric stays in one piece."""
    torus = "topology: {kind: torus, sizes: [4, 4]}\nlab: {controller: segment_manager}\n"
    plan = make_plan(scenario_of(torus))
    assert isinstance(plan.vlans, VlanPlan)
    trees = whole_tables(plan.topology, plan.routes, plan.vlans, "dor").backups.tagged_links
    links = {int(np.flatnonzero(tree)[7]) for tree in trees}
    names = ", ".join(plan.topology.channel_name(2 * link).replace("→", "-") for link in sorted(links))
    failing = make_plan(scenario_of(f"{torus}workloads:\n- kind: probe\n  failures: ['at 1s: down {names}']"))
    (left,) = failure_outlooks(failing)[0]
    assert left.diversion.waiting.any()
    assert not left.cut.any()
    assert left.as_dict(plan.topology)["without_backup"]

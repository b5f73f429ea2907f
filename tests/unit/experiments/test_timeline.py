"""Failures as text, and their names in a fabric."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.messages import Disturbance, LinkChange
from testbed.base.model import VlanPlan
from testbed.experiments.run.loads.failure_watch import disturbance
from testbed.experiments.run.loads.link_changes import link_changes
from testbed.planning import make_plan
from testbed.planning.failover.events import changes_of
from testbed.planning.failover.failed_elements import words
from testbed.planning.failover.failure_effects import failed_after
from testbed.planning.failover.tables import whole_tables
from testbed.planning.failures import failure_outlooks
from testbed.scenario.workloads.link_settings import LinkWords
from testbed.scenario.workloads.spec import Probe
from testbed.scenario.workloads.timeline import Event, parse_event, timeline_problems
from tests.fabrics import scenario_of, topology_of


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("at 5s: down s3-s7", Event(5.0, "down", ("s3-s7",))),
        ("  AT 0.25 s :Up s1-s2#1 , h3 ", Event(0.25, "up", ("s1-s2#1", "h3"))),
        ("at 9s: kill s2", Event(9.0, "kill", ("s2",))),
        ("at 2s: link s1-s2 rate 100M", Event(2.0, "link", ("s1-s2",), LinkWords(rate=1e8))),
        (
            "at 2s: Link s1-s2#1, s2-s3 reset delay 20 us loss 0.5% rate 2.5 Gbit/s",
            Event(2.0, "link", ("s1-s2#1", "s2-s3"), LinkWords(2.5e9, 20e-6, 0.005, reset=True)),
        ),
        ("at 2s: link s1-s2 delay 0s loss 0%", Event(2.0, "link", ("s1-s2",), LinkWords(delay=0.0, loss=0.0))),
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


def test_blocks_mean_the_same():
    blocks = [
        "{at: 2 s, link: s1-s2, rate: 100M}", "{at: 2.5, link: s1-s2, loss: 1%, delay: 20us, reset: true}",
        "{at: 3s, link: s1-s2, down: true}", "at 4s: up s1-s2",
    ]  # fmt: skip
    text = "topology: {kind: torus, sizes: [4, 4]}\nworkloads:\n- {kind: iperf3, protocol: udp, timeline: ["
    (load,) = scenario_of(f"{text}{', '.join(blocks)}]}}").workloads
    assert load.spec.timeline == (
        "at 2s: link s1-s2 rate 100M", "at 2.5s: link s1-s2 reset delay 20us loss 1%", "at 3s: down s1-s2",
        "at 4s: up s1-s2",
    )  # fmt: skip


def test_a_link_changes_without_failing():
    """The words of one event hold for all its links, and what changes may die later."""
    topology = topology_of("torus", sizes=[4, 4])
    events = [parse_event(f"at 1s: {what}") for what in ("link s1-s2, s2-s3 rate 1M", "down s1-s2", "link s1-s2 reset")]
    changes, problems = changes_of(topology, events, "timeline")
    assert not problems
    assert [change.fails for change in changes] == [False, True, False]
    assert changes[0].links == (changes[1].links[0], changes[0].links[1])
    assert link_changes(changes[0]) == tuple(LinkChange(link, rate=1e6) for link in changes[0].links)
    assert disturbance(topology, changes[2]) == Disturbance(
        up=True, at=1.0, links=(LinkChange(changes[1].links[0], reset=True),)
    )


def test_events_of_one_time_are_in_order():
    assert not timeline_problems("failures", ["at 1s: down s1-s2", "at 1s: down s2-s3"], 5)
    assert [p.place for p in timeline_problems("failures", ["at 2s: down s1-s2", "at 1s: up s1-s2"], 5)] == [
        "failures.1"
    ]


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


_MANAGERS = "topology: {kind: torus, sizes: [4, 4]}\n%sworkloads:\n- kind: probe\n  failures: %s"


def test_a_manager_is_killed_and_started_by_its_name():
    lab = "lab: {controller: segment_manager, managers: 2, datapath: kernel}\n"  # of which no switch is killed
    events = "[{at: 1 s, kill: manager}, 'at 2s: start manager', 'at 3s: kill manager']"
    plan = make_plan(scenario_of(_MANAGERS % (lab, events)))
    (load,) = plan.scenario.workloads
    assert isinstance(load.spec, Probe)
    assert load.spec.failures[0] == "at 1s: kill manager"
    outlooks = failure_outlooks(plan)[0]
    changes = [outlook.change for outlook in outlooks]
    assert [change.manager for change in changes] == [True] * 3
    assert not any(outlook.failed.has_failed or outlook.diversion.hit.any() for outlook in outlooks)
    assert disturbance(plan.topology, changes[0]) == Disturbance(up=False, at=1.0, manager=True)
    assert disturbance(plan.topology, changes[1]) == Disturbance(up=True, at=2.0, manager=True)


@pytest.mark.parametrize(
    ("lab", "events", "told"),
    [
        ("controller: segment_manager", "['at 1s: kill manager']",
         "0: there is one manager, so nobody would take over; set lab.managers: 2"),
        ("controller: segment_manager, managers: 2", "['at 1s: kill manager', 'at 2s: kill manager']",
         "1: there are 2 managers, 1 of them dead then, so nobody would take over; set lab.managers: 3, or start "
         "manager before"),
        ("controller: segment_manager, managers: 2", "['at 1s: start manager']",
         "0: no manager is dead then; kill comes before start"),
        ("controller: segment_manager, managers: 2", "['at 1s: kill manger']",
         '0: there is no switch "manger". Did you mean "manager"?'),
        ("controller: segment_manager, managers: 2", "['at 1s: kill s3, manager']",
         "0: manager stands alone; make an event of its own of it, which may have the same time"),
    ],
)  # fmt: skip
def test_managers_of_whom_nobody_would_be_left_are_refused(lab, events, told):
    with pytest.raises(InputError) as refused:
        make_plan(scenario_of(_MANAGERS % (f"lab: {{{lab}}}\n", events)))
    assert str(refused.value) == f"test.yaml: workloads.0.failures.{told}"


def test_on_modelled_switches_there_is_one_manager():
    lab = "engine: realtime\nlab: {controller: segment_manager}\n"
    with pytest.raises(InputError, match="nobody would take over; take it out, or use engine: ovs, which has"):
        make_plan(scenario_of(_MANAGERS % (lab, "['at 1s: kill manager']")))


def test_a_switch_may_be_called_manager():
    blocks = "topology: {kind: graph, switches: [manager, c, d], links: [[manager, c], [c, d], [manager, d]]}"
    topology = make_plan(scenario_of(f"{blocks}\nassignment: {{kind: fixed}}\nrouting: {{kind: stp}}")).topology
    (change,), problems = changes_of(topology, [parse_event("at 1s: kill manager")], "failures")
    assert (problems, change.switches, change.manager) == ([], (0,), False)


@pytest.mark.parametrize("block", ["{at: 1 s, kill: manager, rate: 1M}", "{at: 1 s, kill: s3, start: s4}"])
def test_what_is_killed_stands_alone_in_a_block(block):
    with pytest.raises(InputError, match="kill stands alone beside the time"):
        scenario_of(_MANAGERS % ("", f"[{block}]"))

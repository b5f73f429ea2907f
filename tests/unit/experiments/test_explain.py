from __future__ import annotations

import dataclasses
import itertools
import json

import networkx as nx
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import LocalPlan, Paths, VlanPlan
from testbed.experiments.analyse import explain
from testbed.fabric.openflow.oracle import matched_rules
from testbed.fabric.openflow.rule_text import format_rule
from testbed.fabric.routing.paths import all_paths, hops, path
from testbed.fabric.vlans.mac_entries import entries_of
from testbed.planning import make_plan
from tests.fabrics import graph_of, plan_of, scenario_of

RANDOM = "topology: {kind: random, switches: 12, degree: 3, seed: 4, hosts_per_switch: 2}\n"
FABRICS = {
    "fixed": "topology: {kind: torus, sizes: [4, 2], parallel_links: 2, hosts_per_switch: 2}",
    "all entries": "topology: {kind: mesh, sizes: [3, 3]}\nassignment: {entries: all}",
    "PVID a host": "topology: {kind: myrinet_clos, leaves: 3, roots: 2, hosts_per_leaf: 3}",
    "renamed": RANDOM + "routing: {kind: updown}\nassignment: {kind: renamed}",
    "static": "topology: {kind: mesh, sizes: [4, 3]}\nassignment: {kind: static}",
    "openflow": RANDOM + "routing: {kind: updown}\nassignment: {kind: openflow}",
    "layers": RANDOM + "routing: {kind: dl, layers: 2}\nassignment: {kind: openflow}",
    "one switch": "topology: {kind: flat, hosts: 3}",
}


@pytest.fixture(scope="module", params=FABRICS)
def plan(request):
    return make_plan(scenario_of(FABRICS[request.param]))


def names_at(topology):
    """Port of each switch → name of what is at its other end."""
    found = {
        (topology.switch_name(int(switch)), int(port)): topology.host_name(host)
        for host, (switch, port) in enumerate(zip(topology.host_switch, topology.host_port, strict=True))
    }
    for channel, (source, target) in enumerate(zip(topology.channel_source, topology.channel_target, strict=True)):
        found[topology.switch_name(int(source)), int(topology.out_port[channel])] = topology.switch_name(int(target))
    return found


@pytest.mark.slow
def test_steps_are_the_path_and_the_rules_the_fabric_matches(plan):
    topology = plan.topology
    at, rules = names_at(topology), plan.rules
    for source, destination in itertools.permutations(range(topology.host_count), 2):
        found = explain(plan, topology.host_name(source), topology.host_name(destination))
        taken = path(topology, plan.routes, source, destination)
        assert [step.channel for step in found.steps] == [*map(topology.channel_name, taken), ""]
        ends = [found.source, *(step.switch for step in found.steps), found.destination]
        for before, step, after in zip(ends, found.steps, ends[2:], strict=False):
            assert at[step.switch, step.in_port] == step.came_from == before
            assert at[step.switch, step.out_port] == step.goes_to == after
        whole = matched_rules(topology, rules, source, destination)
        assert [step.rules for step in found.steps] == [tuple(map(format_rule, met)) for met in whole]
        assert all(f"output:{step.out_port}" in step.rules[-1] for step in found.steps)
        assert found.hops == len(taken)


@pytest.mark.slow
def test_vlans_and_layers_are_those_of_the_plan(plan):
    topology, vlans = plan.topology, plan.vlans
    channels = 2 * topology.link_count
    for source, destination in itertools.permutations(range(topology.host_count), 2):
        found = explain(plan, topology.host_name(source), topology.host_name(destination))
        taken = hops(topology, plan.routes, source, destination)
        if isinstance(vlans, VlanPlan):
            wanted = [int(vlans.vlan_ids[vlans.pvid[source]])] * len(found.steps)
        else:
            assert isinstance(vlans, LocalPlan)
            local = [vlans.host_vlan[source], *(vlans.channel_vlan[hop] for hop in taken)]
            assert [topology.switch_name(int(vlans.vlan_switch[v])) for v in local] == [s.switch for s in found.steps]
            wanted = [int(vlans.vlan_id[v]) for v in local]
        assert [step.vlan for step in found.steps] == wanted
        layered = plan.scenario.assignment_kind == "openflow"
        assert [step.layer for step in found.steps] == [*(hop // channels if layered else None for hop in taken), None]


@pytest.mark.slow
def test_layers_do_change_on_some_path():
    made = make_plan(scenario_of(FABRICS["layers"]))
    pairs = itertools.permutations(range(made.topology.host_count), 2)
    layers = [{step.layer for step in explain(made, f"h{a + 1}", f"h{b + 1}").steps[:-1]} for a, b in pairs]
    assert any(len(of_path) > 1 for of_path in layers)


def test_a_missing_rule_leaves_the_rest_without_rules():
    made = plan_of("mesh", sizes=[4])
    assert isinstance(made.vlans, VlanPlan)
    entries = entries_of(made.topology, made.vlans)
    kept = ~((entries.switch == 1) & (entries.host == 3))
    broken = dataclasses.replace(
        made.vlans,
        entry_rule="listed",
        entries=type(entries)(*(getattr(entries, field.name)[kept] for field in dataclasses.fields(entries))),
        tagged_links=np.array([[True, False, True]]),
    )
    found = explain(dataclasses.replace(made, vlans=broken), "h1", "h4")
    assert [bool(step.rules) for step in found.steps] == [True, True, False, False]


def shortest_paths(topology, source, destination):
    """Every shortest path as channels; parallel links apart."""
    between: dict[tuple[int, int], list[int]] = {}
    for channel, ends in enumerate(
        zip(topology.channel_source.tolist(), topology.channel_target.tolist(), strict=True)
    ):
        between.setdefault(ends, []).append(channel)
    for switches in nx.all_shortest_paths(graph_of(topology), source, destination):
        yield from itertools.product(*(between[pair] for pair in itertools.pairwise(switches)))


def allowed_hops(routes, channels):
    """How many channels of a path may be taken in one layer before a turn is forbidden."""
    turns = routes.allowed
    for place, (before, after) in enumerate(itertools.pairwise(channels)):
        if after not in turns.following[turns.start[before] : turns.start[before + 1]]:
            return place + 1
    return len(channels)


@pytest.mark.parametrize("routing", ["{kind: updown}", "{kind: updown, root: s5}", "{kind: tbtp}"])
def test_the_shorter_path_gets_farthest_to_a_forbidden_turn(routing):
    made = make_plan(scenario_of(f"{RANDOM}routing: {routing}\nassignment: {{kind: renamed}}"))
    topology, routes, longer = made.topology, made.routes, 0
    assert routes.allowed is not None
    ports = {
        (int(s), int(p)): c for c, (s, p) in enumerate(zip(topology.channel_source, topology.out_port, strict=True))
    }
    for source, destination in itertools.permutations(range(topology.switch_count), 2):
        found = explain(made, f"s{source + 1}", f"s{destination + 1}")
        every = list(shortest_paths(topology, source, destination))
        assert found.shortest == len(every[0])
        assert (found.shorter is not None) == (found.hops > found.shortest)
        if found.shorter is None:
            continue
        longer += 1
        switches = [int(name[1:]) - 1 for name in found.shorter.switches]
        assert (switches[0], switches[-1], found.shorter.hops) == (source, destination, len(every[0]))
        turn = found.shorter.forbidden
        assert turn is not None
        place = switches.index(int(turn.switch[1:]) - 1)
        assert place == max(allowed_hops(routes, channels) for channels in every)
        before, after = ports[switches[place], turn.in_port] ^ 1, ports[switches[place], turn.out_port]
        assert after not in routes.allowed.following[routes.allowed.start[before] : routes.allowed.start[before + 1]]
        assert int(topology.channel_source[before]) == switches[place - 1]
        assert int(topology.channel_target[after]) == switches[place + 1]
        kind = made.scenario.routing_kind
        reason = f"at {turn.switch}, {kind} prohibits the turn from port {turn.in_port} to port {turn.out_port}"
        assert found.shorter.reason == reason + (", from down to up" if kind == "updown" else "")
    assert longer > 5


@pytest.mark.slow
def test_layers_that_forbid_a_turn_are_named():
    made = make_plan(scenario_of(RANDOM + "routing: {kind: dl, layers: 1}\nassignment: {kind: openflow}"))
    two = make_plan(scenario_of(
        "topology: {kind: random, switches: 40, degree: 3, seed: 4}\nrouting: {kind: dl, layers: 2}\n"
        "assignment: {kind: openflow}"))  # fmt: skip
    reasons = {}
    for name, plan in (("one", made), ("two", two)):
        topology = plan.topology
        pairs = itertools.permutations(range(0, topology.host_count, 2), 2)
        found = (explain(plan, topology.host_name(a), topology.host_name(b)).shorter for a, b in pairs)
        reasons[name] = [shorter.reason for shorter in found if shorter is not None]
    assert all("in every layer" not in reason for reason in reasons["one"])
    assert reasons["two"]
    assert all("@0, in every layer" in reason for reason in reasons["two"])


def test_rings_that_go_the_long_way_say_which_rule_sends_them():
    made = plan_of("torus", sizes=[8, 8])
    found = explain(made, "h9", "h64")
    assert (found.hops, found.shortest) == (7, 3)
    assert found.shorter is not None
    assert found.shorter.reason == (
        "in dimension 2 it goes from 1 to 7 in 6 hops and not 2: the short way passes through coordinate 0, and no "
        "path may (ring: no_transit)"
    )
    two_trees = plan_of("torus", {"ring": "two_trees"}, sizes=[8], parallel_links=2)
    reasons = {
        explained.shorter.reason
        for a, b in itertools.permutations(range(1, 9), 2)
        if (explained := explain(two_trees, f"h{a}", f"h{b}")).shorter is not None
    }
    assert reasons
    assert all(reason.endswith("(ring: two_trees)") for reason in reasons)


@pytest.mark.slow
def test_longer_paths_of_a_torus_are_blamed_on_coordinate_0():
    made = plan_of("torus", sizes=[5, 6])
    longer = 0
    for a, b in itertools.permutations(range(1, 31), 2):
        found = explain(made, f"h{a}", f"h{b}")
        assert (found.shorter is not None) == (found.hops > found.shortest)
        if found.shorter is not None:
            longer += 1
            assert "passes through coordinate 0" in found.shorter.reason
            through = [made.topology.coordinates[int(name[1:]) - 1] for name in found.shorter.switches[1:-1]]
            assert any((place == 0).any() for place in through)
    assert longer > 20


def test_links_outside_the_spanning_tree_are_named():
    made = make_plan(scenario_of("topology: {kind: mesh, sizes: [3, 3]}\nrouting: {kind: stp}"))
    tree = {made.topology.channel_name(int(c)) for c in np.unique(all_paths(made.topology, made.routes).hop)}
    reasons = 0
    for a, b in itertools.permutations(range(1, 10), 2):
        found = explain(made, f"h{a}", f"h{b}")
        if found.shorter is not None:
            reasons += 1
            words = found.shorter.reason.split()
            link = words[2]
            assert found.shorter.reason == f"the link {link} is in no path of stp: it is not in the spanning tree"
            assert link.replace("–", "→") not in tree
            assert link in {"–".join(pair) for pair in itertools.pairwise(found.shorter.switches)}
    assert reasons


def changed_tree(made, tree, **hops_by_switch):
    channels = made.routes.tree_channel.copy()
    for switch, channel in hops_by_switch.items():
        channels[tree, int(switch[1:]) - 1] = channel
    return dataclasses.replace(made, routes=dataclasses.replace(made.routes, tree_channel=channels))


def channel_between(topology, source, target):
    return next(
        c for c in range(2 * topology.link_count)
        if (topology.channel_source[c], topology.channel_target[c]) == (source - 1, target - 1)
    )  # fmt: skip


def test_a_tree_that_goes_round_says_where_it_enters():
    made = plan_of("mesh", sizes=[2, 3])  # s1 s2 / s3 s4 / s5 s6
    round_about = changed_tree(
        made, 0, s3=channel_between(made.topology, 4, 3), s4=channel_between(made.topology, 2, 4)
    )
    found = explain(round_about, "h1", "h3")
    assert found.hops == 3
    assert found.shorter is not None
    assert found.shorter.switches == ("s1", "s3")
    entering = [int(made.topology.out_port[channel_between(made.topology, 3, other)]) for other in (4, 1)]
    assert found.shorter.reason == (
        f"paths from h1 are one tree, which enters s3 from s4 (port {entering[0]}) and not from s1 (port {entering[1]})"
    )


def test_next_hops_that_go_round_say_where_they_leave():
    made = plan_of("mesh", {"planes": "dest"}, sizes=[2, 3])
    assert made.routes.relation == "destination_trees"
    topology = made.topology
    round_about = changed_tree(made, 0, s3=channel_between(topology, 3, 4), s4=channel_between(topology, 4, 2))
    found = explain(round_about, "h3", "h1")
    assert found.hops == 3
    leaving = [int(topology.out_port[channel_between(topology, 3, other)]) for other in (4, 1)]
    assert found.shorter is not None
    assert found.shorter.reason == (
        f"frames for h1 leave s3 to s4 (port {leaving[0]}) and not to s1 (port {leaving[1]}), wherever they come from"
    )


def with_path(paths, count, source, end, hop):
    """The same paths but for one pair."""
    rows = [paths.hop[paths.start[pair] : paths.start[pair + 1]] for pair in range(count * count)]
    rows[source * count + end] = np.array(hop, dtype=np.int32)
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Paths(start, np.concatenate(rows).astype(np.int32))


def test_a_path_the_selection_left_out_and_one_without_a_rule():
    made = make_plan(scenario_of(
        "topology: {kind: mesh, sizes: [2, 3]}\nrouting: {kind: updown}\nassignment: {kind: openflow}"))  # fmt: skip
    ways = [channel_between(made.topology, a, b) for a, b in ((1, 2), (2, 4), (4, 3))]
    assert made.routes.paths is not None
    routes = dataclasses.replace(made.routes, paths=with_path(made.routes.paths, 6, 0, 2, ways))
    legal = explain(dataclasses.replace(made, routes=routes), "s1", "s3").shorter
    assert legal is not None
    assert legal.reason == "updown allows every turn of it; the selection of paths (balanced) left it out"
    assert (legal.forbidden, legal.switches) == (None, ("s1", "s3"))
    free = dataclasses.replace(routes, allowed=None)
    ruleless = explain(dataclasses.replace(made, routes=free), "s1", "s3").shorter
    assert ruleless is not None
    assert ruleless.reason == "updown does not use it"
    assert routes.allowed is not None
    closed = dataclasses.replace(routes.allowed, entry=np.zeros_like(routes.allowed.entry))
    barred = explain(dataclasses.replace(made, routes=dataclasses.replace(routes, allowed=closed)), "s1", "s3").shorter
    assert barred is not None
    assert barred.reason == "updown lets no path begin with s1→s3"


def test_backup_paths_are_shown_with_the_links_they_share():
    made = make_plan(scenario_of(
        "topology: {kind: mesh, sizes: [2, 2]}\nrouting: {kind: updown}\nassignment: {kind: openflow}"))  # fmt: skip
    assert explain(made, "h1", "h2").backup is None
    around = [channel_between(made.topology, a, b) for a, b in ((1, 3), (3, 4), (4, 2))]
    none = Paths(np.zeros(17, dtype=np.int64), np.zeros(0, dtype=np.int32))
    backup = with_path(with_path(none, 4, 0, 1, around), 4, 0, 2, [channel_between(made.topology, 1, 3)])
    routes = dataclasses.replace(made.routes, backup=backup)
    found = explain(dataclasses.replace(made, routes=routes), "h1", "h2")
    assert (found.backup, found.shared_links) == (("s1→s3", "s3→s4", "s4→s2"), 0)
    same = explain(dataclasses.replace(made, routes=routes), "h1", "h3")
    assert (same.backup, same.shared_links) == (("s1→s3",), 1)
    assert explain(dataclasses.replace(made, routes=routes), "h1", "h4").backup is None


GRAPH = """\
topology: {kind: graph, switches: [core, left, right], links: [[core, left], [core, right]], hosts: {left: 2, right: 1}}
"""


def test_switches_stand_for_their_first_host():
    made = make_plan(scenario_of(GRAPH))
    found = explain(made, "left", "s3")
    assert (found.source, found.destination) == ("h1", "h3")
    assert found.notes == ("h1 is taken for left, the first of its 2 hosts", "h3 is the host on s3")
    assert explain(made, "h2", "h1").hops == 0


def test_every_wrong_name_is_a_sentence():
    made = make_plan(scenario_of(GRAPH))
    with pytest.raises(InputError) as caught:
        explain(made, "lefft", "core")
    assert [str(problem) for problem in caught.value.problems] == [
        'SRC: there is no host or switch "lefft". Did you mean "left"? Known: hosts h1 to h3, switches s1 to s3, and '
        "the names of the fabric file",
        "DST: core has no host, so no path begins or ends there; name another switch",
    ]
    with pytest.raises(InputError, match=r"^DST: both are h1; name two different hosts$"):
        explain(made, "h1", "s2")
    with pytest.raises(InputError, match=r'^SRC: there is no host or switch "h17"\. Did you mean "h\d+"\? Known: '):
        explain(plan_of("mesh", sizes=[4, 4]), "h17", "h1")
    with pytest.raises(InputError, match=r'there is no host or switch "2"\. Did you mean "h2"\?'):
        explain(plan_of("mesh", sizes=[4, 4]), "2", "h1")


def test_the_object_is_json():
    found = json.loads(json.dumps(dataclasses.asdict(explain(plan_of("torus", sizes=[8, 8]), "h9", "h64"))))
    assert found["shorter"]["switches"] == ["s9", "s16", "s8", "s64"]
    assert found["steps"][0]["vlan"] == 13
    assert found["shorter"]["forbidden"] is None


def test_one_pair_of_a_large_fabric_needs_few_rules():
    made = plan_of("torus", sizes=[20, 20], parallel_links=2)
    found = explain(made, "h1", "h211")
    assert found.hops == found.shortest == 20
    assert all(len(step.rules) == 2 for step in found.steps)

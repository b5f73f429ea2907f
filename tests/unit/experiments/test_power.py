from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import Floats, Routes, Topology
from testbed.experiments.paper.planned_numbers import MostSaved, most_saved, proved_plan
from testbed.fabric.power import POWER_MODELS, Selection, fabric_watts, select_links
from testbed.fabric.power.select import subfabric_without
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.paths import path, traffic_load
from testbed.fabric.traffic import flows
from testbed.fabric.verify.deadlock import check_routes
from testbed.planning import Plan, make_plan
from tests.fabrics import plan_of, scenario_of, topology_of


def matrix(topology: Topology, pattern: str) -> Floats:
    traffic = np.zeros((topology.host_count, topology.host_count))
    for source, destination in flows(pattern, topology, 1):
        traffic[source, destination] = 1e6
    return traffic


def routes_of(plan: Plan) -> Callable[[Topology], Routes]:
    return lambda topology: ROUTINGS[plan.scenario.routing_kind].route(topology, plan.scenario.routing)


def selection(kind: str, routing: str, pattern: str, *, slower: bool = False, **sizes: object) -> Selection:
    plan = plan_of(kind, {"kind": routing}, **sizes)
    return select_links(plan.topology, routes_of(plan), matrix(plan.topology, pattern), slower=slower)


def test_the_largest_power_of_a_model_is_near_the_printed_one():
    """Table 2, "Max": its rows, each rounded to 0.1 W a port, come within 2.2 % of it."""
    ports = {"PC5324": 24, "PC6224": 24, "PC6248": 48, "SF-420": 24}
    printed = {"PC5324": 42.9, "PC6224": 91.1, "PC6248": 155.2, "SF-420": 55.4}
    largest = {name: model.base + ports[name] * model.port["1G"] for name, model in POWER_MODELS.items()}
    assert largest == {name: pytest.approx(watts, rel=0.022) for name, watts in printed.items()}


@pytest.mark.parametrize(
    ("topology", "model", "ports", "most"),
    [
        ({"kind": "torus", "sizes": [4, 2], "hosts_per_switch": 8, "parallel_links": 5}, "PC5324", 23, 33.8),
        ({"kind": "torus", "sizes": [4, 2], "hosts_per_switch": 16, "parallel_links": 5}, "PC6248", 31, 20.7),
        ({"kind": "complete", "switches": 6, "hosts_per_switch": 11, "parallel_links": 2}, "PC6248", 21, 10.4),
        ({"kind": "complete", "switches": 6, "hosts_per_switch": 11, "parallel_links": 4}, "PC6248", 31, 25.8),
    ],
)
def test_what_the_papers_fabrics_can_save_at_most(topology, model, ports, most):
    """Section 5.4.2: 23 ports of a PC5324 are eight for hosts and fifteen for three neighbours, five links each."""
    options = MostSaved(topology=topology, model=model)
    assert proved_plan(options).wiring.port_count.tolist() == [ports] * len(proved_plan(options).wiring.port_count)
    assert most_saved(options) == pytest.approx([most], abs=0.05)


def test_watts_count_hosts_links_and_the_rest_of_a_switch():
    topology = topology_of("mesh", sizes=(3,), hosts_per_switch=2)
    model = POWER_MODELS["PC5324"]
    assert fabric_watts(topology, model, ["1G", "1G"]).tolist() == pytest.approx([18.6, 19.8, 18.6])
    assert fabric_watts(topology, model, ["off", "10M"]).tolist() == pytest.approx([17.4, 17.9, 17.9])


def test_no_channel_carries_more_than_the_fullest_did():
    for kind, routing, sizes in (
        ("torus", "north_last", {"sizes": [4, 4]}),
        ("torus", "updown", {"sizes": [4, 4]}),
        ("complete", "sr", {"switches": 8}),
        ("torus", "dl", {"sizes": [3, 3]}),
    ):
        found = selection(kind, routing, "neighbour", **sizes)
        assert found.off.any()
        assert found.after.max() <= found.bound * (1 + 1e-6)
        assert not (found.after.reshape(-1, 2)[found.off] > 0).any()
        assert [speed == "off" for speed in found.speeds] == found.off.tolist()


def test_links_of_a_tree_all_stay_on():
    found = selection("tree", "updown", "neighbour", switches=7)
    assert not found.off.any()
    assert set(found.speeds) == {"1G"}


def test_a_link_gets_the_lowest_speed_at_which_it_is_not_fullest():
    """A chain of four switches, all traffic over its first link; the second carries a twentieth, the third nothing."""
    plan = plan_of("mesh", {"kind": "updown"}, sizes=[4])
    traffic = np.zeros((4, 4))
    traffic[0, 1], traffic[0, 2] = 95.0, 5.0

    fast = select_links(plan.topology, routes_of(plan), traffic)
    slow = select_links(plan.topology, routes_of(plan), traffic, slower=True)
    assert fast.speeds == ("1G", "1G", "1G")
    assert slow.speeds == ("1G", "100M", "10M")


def test_a_routing_that_needs_every_link_is_refused_by_itself():
    with pytest.raises(InputError, match='"dor" needs a whole torus and here link s1–s5 is dead'):
        selection("torus", "dor", "neighbour", sizes=[4, 4])


def test_progress_counts_the_links():
    plan = plan_of("ring", {"kind": "updown"}, switches=4)
    seen = []

    traffic = matrix(plan.topology, "neighbour")
    select_links(plan.topology, routes_of(plan), traffic, progress=lambda done, links: seen.append((done, links)))
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4)]


@pytest.mark.parametrize(("routing", "relation"), [("north_last", "trees"), ("sr", "paths"), ("dl", "paths")])
def test_routes_of_a_part_are_in_the_numbers_of_the_whole(routing: str, relation: str):
    plan = plan_of("torus", {"kind": routing}, sizes=[4, 3])
    topology = plan.topology
    off = np.zeros(topology.link_count, dtype=bool)
    off[[1, 8]] = True
    part = subfabric_without(topology, off)
    assert part is not None
    inside = ROUTINGS[routing].route(part.topology, plan.scenario.routing)
    routes = part.to_whole(inside)
    assert (routes.paths is not None) == (relation == "paths")
    assert not check_routes(topology, routes)
    for source in range(topology.host_count):
        for destination in range(topology.host_count):
            ours = path(topology, routes, source, destination)
            theirs = path(part.topology, inside, source, destination)
            ends = [topology.channel_name(channel) for channel in ours]
            assert ends == [part.topology.channel_name(channel) for channel in theirs]
            assert not {channel // 2 for channel in ours} & {1, 8}
    if inside.allowed is not None:
        assert routes.allowed is not None
        assert len(routes.allowed.start) == routes.layers * len(topology.channel_source) + 1
        assert int(np.diff(routes.allowed.start).sum()) == len(inside.allowed.following)


def test_a_fabric_that_would_fall_apart_has_no_part():
    topology = topology_of("mesh", sizes=(3,))
    assert subfabric_without(topology, np.array([True, False])) is None


def test_traffic_lies_on_the_paths_of_its_pairs():
    plan = plan_of("mesh", sizes=[3])
    traffic = np.array([[0.0, 2.0, 5.0], [0.0, 9.0, 0.0], [1.0, 0.0, 0.0]])
    load = traffic_load(plan.topology, plan.routes, traffic)
    names = {plan.topology.channel_name(channel): load[channel] for channel in range(4)}
    assert names == {"s1→s2": 7.0, "s2→s3": 5.0, "s3→s2": 1.0, "s2→s1": 1.0}


def three_links(*, aggregate: bool, sizes: list[int]) -> Plan:
    topology = {"kind": "torus", "sizes": sizes, "parallel_links": 3}
    return make_plan(scenario_of({"topology": topology, "links": {"aggregate": aggregate}}))


def test_members_of_a_bundle_go_off_one_by_one():
    """All traffic from s1 to s2, a third of it from s2 to s3: two members of three do for the second bundle."""
    plan = make_plan(scenario_of("topology: {kind: mesh, sizes: [4], parallel_links: 3}\nlinks: {aggregate: true}\n"))
    traffic = np.zeros((4, 4))
    traffic[0, 1], traffic[1, 2], traffic[2, 3] = 90.0, 50.0, 29.0
    found = select_links(plan.topology, routes_of(plan), traffic, bundles=plan.bundles)
    assert found.before.max() == found.bound == 30.0
    assert found.off.tolist() == [False] * 3 + [False, False, True] + [False, True, True]
    assert found.after.max() == 30.0
    assert found.after[2 * 1] == 25.0
    # Every member that is off is a port less at both ends.
    model = POWER_MODELS["PC5324"]
    saved = fabric_watts(plan.wiring, model, ["1G"] * 9) - fabric_watts(plan.wiring, model, found.speeds)
    assert saved.tolist() == pytest.approx([0, 1.2, 3.6, 2.4])


def test_an_idle_bundle_keeps_the_member_that_routing_needs():
    plan = three_links(aggregate=True, sizes=[4, 4])
    traffic = np.zeros((16, 16))
    traffic[0, 1] = 1.0
    found = select_links(plan.topology, routes_of(plan), traffic, bundles=plan.bundles)
    # Dimension order needs every pair of neighbours; s1–s2 carries all there is.
    assert int(found.off.sum()) == 2 * 31
    assert not found.off.reshape(-1, 3)[:, 0].any()


def test_parallel_links_that_are_channels_go_off_one_by_one():
    plan = three_links(aggregate=False, sizes=[4, 4])
    found = select_links(plan.topology, routes_of(plan), matrix(plan.topology, "all_to_all"))
    assert found.after.max() <= found.bound * (1 + 1e-6)
    on = (~found.off).reshape(-1, 3).sum(axis=1)
    assert on.min() >= 1
    assert int(found.off.sum()) == 64
    assert not check_routes(plan.topology, found.routes)
    assert not (found.after.reshape(-1, 2)[found.off] > 0).any()


def test_planes_that_break_a_cycle_stay_on():
    plan = make_plan(scenario_of({"topology": {"kind": "torus", "sizes": [6, 6], "parallel_links": 2}}))
    with pytest.raises(InputError, match=r'"dor" needs a whole torus and here link s1–s2(#1)? is dead'):
        select_links(plan.topology, routes_of(plan), matrix(plan.topology, "neighbour"))


def test_slower_members_carry_what_they_can():
    plan = make_plan(scenario_of("topology: {kind: mesh, sizes: [3], parallel_links: 2}\nlinks: {aggregate: true}\n"))
    traffic = np.array([[0.0, 100.0, 0.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    found = select_links(plan.topology, routes_of(plan), traffic, bundles=plan.bundles, slower=True)
    assert found.speeds == ("1G", "1G", "100M", "off")

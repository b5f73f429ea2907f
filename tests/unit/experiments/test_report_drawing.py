import re
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from testbed.base.model import Sample
from testbed.experiments.report.drawing import MAX_PANELS, LinkUse, draw_topology, draw_vlans, link_use
from testbed.experiments.report.geometry import BOX_HEIGHT, BOX_WIDTH, channel_line, layout, link_line
from testbed.experiments.report.palette import COLOURS, HEAT, heat_colour
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

TOPOLOGIES = {
    "mesh": "{kind: mesh, sizes: [4, 2]}",
    "torus4x4": "{kind: torus, sizes: [4, 4]}",
    "torus8x8": "{kind: torus, sizes: [8, 8]}",
    "torus4x2": "{kind: torus, sizes: [4, 2]}",
    "torus3d": "{kind: torus, sizes: [3, 3, 3]}",
    "parallel": "{kind: torus, sizes: [3, 3], parallel_links: 2}",
    "hypercube": "{kind: hypercube, dimensions: 4}",
    "ring": "{kind: ring, switches: 8}",
    "fat_tree": "{kind: fat_tree, up: 2, down: 4, rounds: 2}",
    "fat_tree_14": "{kind: fat_tree_14}",
    "clos": "{kind: myrinet_clos}",
    "tree": "{kind: tree, switches: 7}",
    "m_tree": "{kind: m_tree, columns: 4, rows: 4}",
    "complete": "{kind: complete, switches: 8}",
    "complete16": "{kind: complete, switches: 16}",
    "flat": "{kind: flat, hosts: 8}",
    "crowd": "{kind: torus, sizes: [3, 3], hosts_per_switch: 12}",
}
every_topology = pytest.mark.parametrize("name", TOPOLOGIES)


@cache
def plan_of(name):
    return make_plan(parse_scenario(f"topology: {TOPOLOGIES[name]}", f"{name}.yaml"))


@cache
def drawn(name):
    """The topology without uses: one drawing for all tests that look at it."""
    return draw_topology(plan_of(name).topology, "t")


@cache
def drawn_in_use(name):
    """Likewise with each channel in use."""
    topology = plan_of(name).topology
    return draw_topology(topology, "t", {channel: LinkUse(0.5, 0.4) for channel in range(2 * topology.link_count)})


@cache
def drawn_vlans(name):
    """Likewise its VLANs."""
    plan = plan_of(name)
    return draw_vlans(plan.topology, plan.vlans, "v")


def group(svg, gid):
    """The content of the group with an id; groups of drawings that are looked for hold no other group."""
    return re.findall(rf'<g id="{gid}">(.*?)</g>', svg, re.DOTALL)[0]


@every_topology
def test_every_link_is_drawn_once(name):
    topology = plan_of(name).topology
    svg = drawn(name)
    assert sorted(map(int, re.findall(r'<g id="t-link-(\d+)">', svg))) == list(range(topology.link_count))


@pytest.mark.slow
@every_topology
def test_every_direction_of_every_link_is_drawn_with_its_use(name):
    topology = plan_of(name).topology
    channels = range(2 * topology.link_count)
    svg = drawn_in_use(name)
    assert sorted(map(int, re.findall(r'<g id="t-channel-(\d+)">', svg))) == list(channels)
    for channel in channels:
        title = f"<title>{topology.channel_name(channel)}: 50 %, predicted 40 %</title>"
        assert title in group(svg, f"t-channel-{channel}")


@every_topology
def test_every_switch_is_a_labelled_box(name):
    topology = plan_of(name).topology
    svg = drawn(name)
    assert group(svg, "t-switches").count("<path") == topology.switch_count
    labels = re.findall(r">(s\d+)</text>", svg)
    assert sorted(labels) == sorted(topology.switch_name(switch) for switch in range(topology.switch_count))


@pytest.mark.slow
@every_topology
def test_vlan_panels_colour_the_tree_and_nothing_else(name):
    plan = plan_of(name)
    svg = drawn_vlans(name)
    panels = min(plan.vlans.vlan_count, MAX_PANELS)
    assert [int(number) for number in re.findall(r">VLAN (\d+)</text>", svg)] == list(plan.vlans.vlan_ids[:panels])
    for vlan in range(panels):
        tree = int(plan.vlans.tagged_links[vlan].sum())
        for part, links in (("tree", tree), ("rest", plan.topology.link_count - tree)):
            if links:
                drawn = group(svg, f"v-vlan-{vlan}-{part}")
                assert drawn.count("<path") + drawn.count("<use") == links
        hosts = int((plan.vlans.pvid == vlan).sum())
        assert f">{hosts} host{'s' * (hosts != 1)}, {tree} link{'s' * (tree != 1)}</text>" in svg


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torus4x4", "parallel", "fat_tree_14", "ring", "crowd"])
def test_drawings_are_deterministic(name):
    plan = plan_of(name)
    use = {channel: LinkUse(0.5, 0.4) for channel in range(2 * plan.topology.link_count)}
    assert draw_topology(plan.topology, "t", use) == drawn_in_use(name)
    assert draw_vlans(plan.topology, plan.vlans, "v") == drawn_vlans(name)


@every_topology
def test_everything_lies_inside_the_drawing(name):
    topology = plan_of(name).topology
    place = layout(topology)
    half = np.array([BOX_WIDTH, BOX_HEIGHT]) / 2
    for points in (place.switches - half, place.switches + half, place.hosts, *place.lines):
        assert (points >= 0).all()
        assert (points <= [place.width, place.height]).all()


@pytest.mark.parametrize("name", [name for name in TOPOLOGIES if name != "torus3d"])
def test_no_line_runs_through_another_switch(name):
    topology = plan_of(name).topology
    place = layout(topology)
    for link, (a, b) in enumerate(topology.links):
        line = link_line(topology, place, link)
        dense = np.concatenate([np.linspace(p, q, 20) for p, q in pairwise(line)])
        inside = abs(dense[:, None] - place.switches[None]) < np.array([BOX_WIDTH, BOX_HEIGHT]) / 2
        crossed = set(np.flatnonzero(inside.all(axis=2).any(axis=0)).tolist())
        assert crossed <= {int(a), int(b)}


@every_topology
def test_no_host_lies_on_a_switch(name):
    topology = plan_of(name).topology
    place = layout(topology)
    apart = abs(place.hosts[:, None] - place.switches[None])
    assert not (apart < np.array([BOX_WIDTH, BOX_HEIGHT]) / 2).all(axis=2).any()


def test_directions_and_parallel_links_have_lines_of_their_own():
    topology = plan_of("parallel").topology
    place = layout(topology)
    middles = [channel_line(topology, place, channel).mean(axis=0) for channel in range(4)]
    assert topology.plane[:2].tolist() == [0, 1]
    for one in range(4):
        for other in range(one):
            assert np.linalg.norm(middles[one] - middles[other]) > 0.05


def test_traffic_keeps_to_the_right():
    topology = plan_of("mesh").topology
    place = layout(topology)
    assert topology.channel_name(0) == "s1→s2"  # from left to right
    assert channel_line(topology, place, 0)[0, 1] < place.switches[0, 1]
    assert channel_line(topology, place, 1)[0, 1] > place.switches[0, 1]


def test_colour_rises_with_use():
    assert [heat_colour(share) for share in (0.0, 1.0, 1.2)] == [HEAT[0], HEAT[-1], HEAT[-1]]
    topology = plan_of("mesh").topology
    svg = draw_topology(topology, "t", {0: LinkUse(1.0, None), 1: LinkUse(0.02, None), 2: LinkUse(0.0, None)})
    assert "var(--heat-11," in group(svg, "t-channel-0")
    assert "var(--heat-0," in group(svg, "t-channel-1")
    assert "unused</title>" in group(svg, "t-channel-2")
    assert "not measured</title>" in group(svg, "t-channel-3")
    assert "var(--link," in group(svg, "t-channel-3")


@pytest.mark.slow
def test_scale_follows_small_uses():
    topology = plan_of("mesh").topology
    assert ">100 %</text>" in draw_topology(topology, "t", {0: LinkUse(0.7, None)})
    small = draw_topology(topology, "t", {0: LinkUse(0.07, None)})
    assert ">10 %</text>" in small
    assert ">100 %</text>" not in small


def test_every_colour_follows_the_page():
    plan = plan_of("torus4x4")
    use = {channel: LinkUse(channel / 64, None) for channel in range(64)}
    for svg in (draw_topology(plan.topology, "t", use), drawn_vlans("torus4x4")):
        assert re.findall(r"(?<!,)#[0-9a-f]{6}", svg) == []


def test_light_colours_tell_their_variable():
    light = [pair[0] for pair in COLOURS.values()]
    assert len(light) == len(set(light))


def test_crowded_switches_say_how_many_hosts_a_dot_stands_for():
    assert drawn("crowd").count(">×12</text>") == 9


def test_link_use_is_the_median_of_known_channels():
    topology = plan_of("ring").topology
    samples = [Sample("link_use", value, "ratio", {"channel": "s1→s2"}, 0.5) for value in (0.1, 0.2, 0.6)]
    samples += [Sample("link_use", 0.3, "ratio", {"channel": "s1→s9"}), Sample("goodput", 1.0, "bit/s", {})]
    assert link_use(topology, samples) == {0: LinkUse(0.2, 0.5)}

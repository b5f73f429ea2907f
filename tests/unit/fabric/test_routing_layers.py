"""DL, LASH, DFSSSP and Nue: what their layers are, and what they refuse."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import Ints
from testbed.fabric.kernels.layers import break_cycles
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.descending_layers import DlOptions, Variant, descending_turns, route_dl
from testbed.fabric.routing.layers import DfssspOptions, LashOptions, minimal_paths, paths_to, route_dfsssp, route_lash
from testbed.fabric.routing.lturn import LturnOptions, route_lturn
from testbed.fabric.routing.nue import NueOptions, route_nue
from testbed.fabric.routing.paths import channel_load, hop_counts
from testbed.fabric.routing.relation import Conflict, forwarding_table
from testbed.fabric.routing.turns import all_turns
from testbed.fabric.routing.updown import UpDownOptions, route_updown, upward_channels
from testbed.fabric.verify.deadlock import check_routes
from testbed.scenario import parse_scenario
from tests.fabrics import fabric_of_pairs, random_fabric, topology_of

LAYERED = ("dl", "lash", "dfsssp", "nue")
VARIANTS: tuple[Variant, ...] = ("ud", "ud_du", "ud_below_du", "lturn")


def route(name, topology, **options):
    return ROUTINGS[name].route(topology, ROUTINGS[name].options(**options))


def irregular(switches=24, degree=4, seed=3):
    return topology_of("random", switches=switches, degree=degree, seed=seed)


def virtual_channels(routes):
    return routes.paths.hop


def every_path(routes):
    return [routes.paths.hop[a:b].tolist() for a, b in pairwise(routes.paths.start.tolist())]


def hops_of(topology, routes):
    return [[divmod(hop, len(topology.channel_source)) for hop in path] for path in every_path(routes)]


@pytest.mark.parametrize("name", LAYERED)
def test_one_switch_needs_no_path(name):
    topology = topology_of("flat", hosts=3)
    routes = route(name, topology)
    assert check_routes(topology, routes) == []
    assert hop_counts(topology, routes).tolist() == [[0]]


@pytest.mark.parametrize("name", LAYERED)
def test_hosts_on_one_switch_of_many_need_no_path(name):
    topology = fabric_of_pairs([(0, 1), (1, 2), (2, 0)], [0, 2, 0])
    assert hop_counts(topology, route(name, topology)).tolist() == [[0]]


@pytest.mark.parametrize("name", LAYERED)
def test_a_cut_fabric_is_refused_with_the_pair(name):
    topology = fabric_of_pairs([(0, 1), (2, 3)], [1, 1, 1, 1])
    with pytest.raises(InputError, match=r"no legal path from (s1 to s3|s3 to s1);"):
        route(name, topology)


@pytest.mark.parametrize("name", LAYERED)
def test_parallel_links_are_links_of_their_own(name):
    topology = topology_of("ring", switches=5, hosts_per_switch=2, parallel_links=3)
    routes = route(name, topology)
    assert check_routes(topology, routes) == []
    assert np.count_nonzero(channel_load(topology, routes)) > len(topology.channel_source) // 3


@pytest.mark.parametrize("name", LAYERED)
@pytest.mark.parametrize(
    ("layers", "sentence"),
    [(0, "should be 1 or more, not 0"), (9, "should be 8 or less, not 9"), ('"2"', "should be a whole number, not")],
)
def test_layers_are_one_to_eight(name, layers, sentence):
    text = f"topology: {{kind: ring, switches: 5}}\nrouting: {{kind: {name}, layers: {layers}}}"
    with pytest.raises(InputError, match=rf"routing\.layers: {sentence}"):
        parse_scenario(text, "test.yaml")


def test_an_unknown_variant_gets_the_near_one():
    text = "topology: {kind: ring, switches: 5}\nrouting: {kind: dl, variant: ud_below}"
    with pytest.raises(
        InputError, match=r'routing\.variant: should be one of ud, ud_du, .* Did you mean "ud_below_du"'
    ):
        parse_scenario(text, "test.yaml")


def test_an_unknown_root_is_refused():
    with pytest.raises(InputError, match=r'routing\.root: there is no switch "s25"'):
        route_dl(irregular(), DlOptions(root="s25"))


@pytest.mark.parametrize("root", [None, "s7"])
def test_one_layer_of_ud_is_up_down_routing(root):
    topology = irregular()
    one, other = route_dl(topology, DlOptions(layers=1, root=root)), route_updown(topology, UpDownOptions(root=root))
    assert np.array_equal(virtual_channels(one), virtual_channels(other))
    assert one.allowed is not None
    assert other.allowed is not None
    assert np.array_equal(one.allowed.following, other.allowed.following)


def test_one_layer_of_lturn_is_lturn_routing():
    topology = irregular()
    one = route_dl(topology, DlOptions(variant="lturn", layers=1))
    assert np.array_equal(virtual_channels(one), virtual_channels(route_lturn(topology, LturnOptions())))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "down_up_forbidden"),
    [("ud", [True, True, True, True]), ("ud_du", [True, False] * 2), ("ud_below_du", [True, False, False, False])],
)
def test_a_path_descends_a_layer_at_each_forbidden_turn_only(variant, down_up_forbidden):
    topology = irregular(40, 3)
    up = upward_channels(topology)
    descents = 0
    for path in hops_of(topology, route_dl(topology, DlOptions(variant=variant, layers=4))):
        for (layer, channel), (next_layer, following) in pairwise(path):
            forbidden = up[channel] != up[following] and up[following] == down_up_forbidden[layer]
            assert next_layer == layer - forbidden
            descents += forbidden
    assert descents > 100


def test_the_turns_of_a_layer_are_those_it_keeps_and_sends_down():
    topology = irregular()
    before, _ = all_turns(topology)
    channels = len(topology.channel_source)
    for variant in VARIANTS:
        turns = descending_turns(topology, variant, 3)
        # In layer 0 forbidden turns are missing; above it each turn of the fabric is there once.
        counts = np.diff(turns.start).reshape(3, channels)
        assert (counts[1:] == np.bincount(before, minlength=channels)).all()
        assert counts[0].sum() < len(before)


def lengths_by_start_layer(topology, turns, layers):
    """(layers, S, S) hops of the shortest legal path that begins in each layer, by a search of its own."""
    channels, switches = len(topology.channel_source), topology.switch_count
    graph = nx.DiGraph()
    for node in range(layers * channels):
        graph.add_edges_from((node, after) for after in turns.following[turns.start[node] : turns.start[node + 1]])
        graph.add_edge(node, ("end", int(topology.channel_target[node % channels])))
        graph.add_edge(("start", node // channels, int(topology.channel_source[node % channels])), node)
    length = np.full((layers, switches, switches), np.inf)
    for layer in range(layers):
        for source in range(switches):
            for node, steps in nx.single_source_shortest_path_length(graph, ("start", layer, source)).items():
                if isinstance(node, tuple) and node[0] == "end":
                    length[layer, source, node[1]] = steps - 1
    return length


@pytest.mark.parametrize("variant", VARIANTS)
def test_candidates_are_those_of_the_papers_search_by_layer(variant):
    """Steps 1–3: the length is that of start layer n−1; once a start layer has no path so long, no lower one has."""
    layers, topology = 3, irregular(16, 3)
    turns = descending_turns(topology, variant, layers)
    assert turns.entry.all()
    length = lengths_by_start_layer(topology, turns, layers)
    assert (length[1:] <= length[:-1]).all()
    routed = hop_counts(topology, route_dl(topology, DlOptions(variant=variant, layers=layers)))
    distinct = ~np.eye(topology.switch_count, dtype=bool)
    assert (length.min(axis=0) == length[-1])[distinct].all()
    assert (routed == length[-1])[distinct].all()


def is_acyclic(edges):
    return nx.is_directed_acyclic_graph(nx.DiGraph(edges))


@pytest.mark.parametrize(
    "topology", [topology_of("torus", sizes=[5, 5]), irregular(32, 3, 2), topology_of("complete", switches=6)]
)
def test_lash_puts_paths_into_the_first_layer_without_a_cycle(topology):
    """Replayed pair by pair on graphs of networkx."""
    layers: list[set[tuple[int, int]]] = [set() for _ in range(8)]
    for path in hops_of(topology, route_lash(topology, LashOptions())):
        turns = {(before, after) for (_, before), (_, after) in pairwise(path)}
        first = next(number for number, taken in enumerate(layers) if is_acyclic(taken | turns))
        layers[first] |= turns
        assert {layer for layer, _ in path} <= {first}


@pytest.mark.parametrize("name", ["lash", "dfsssp"])
def test_paths_without_a_cycle_take_one_layer(name):
    topology = topology_of("complete", switches=6)
    routes = route(name, topology)
    assert routes.layers == 1
    assert routes.notes == ("minimal paths without a cycle took 1 of 8 layers",)


@pytest.mark.parametrize(
    ("name", "options", "needed", "remedy"),
    [
        ("lash", {}, 5, "paths: low_port may need fewer; "),
        ("lash", {"paths": "low_port"}, 3, ""),
        ("dfsssp", {}, 7, ""),
    ],
)
def test_too_few_layers_are_refused_with_the_number_needed(name, options, needed, remedy):
    topology = topology_of("torus", sizes=[8, 8])
    assert route(name, topology, layers=needed, **options).layers == needed
    with pytest.raises(InputError) as error:
        route(name, topology, layers=needed - 1, **options)
    assert str(error.value) == (
        f'routing.layers: "{name}" needs {needed} layers on this fabric and may use {needed - 1}; set layers: '
        f'{needed} or more; {remedy}"dl" and "nue" work with any number of layers'
    )


def test_where_layers_exceed_priorities_no_number_is_proposed():
    topology = topology_of("torus", sizes=[16, 16])
    with pytest.raises(InputError) as error:
        route("dfsssp", topology)
    assert str(error.value) == (
        'routing.layers: "dfsssp" needs 15 layers on this fabric and may use 8; "dl" and "nue" work with any number of '
        "layers"
    )


def test_of_a_cycle_the_paths_of_its_least_used_turn_move_on():
    """Three turns in a cycle; in turn the first, second and last of them has the fewest paths."""
    before, after = np.array([0, 1, 2], dtype=np.int32), np.array([1, 2, 0], dtype=np.int32)
    for turns in ([0, 1, 1, 2, 2], [0, 0, 1, 2, 2], [0, 0, 1, 1, 2]):
        offset = np.arange(len(turns) + 1)
        layers = break_cycles(offset, np.array(turns, dtype=np.int32), 3, before, after)
        assert layers.tolist() == [int(turns.count(turn) == 1) for turn in turns]


def test_dfsssp_and_lash_take_the_same_minimal_paths():
    topology = irregular()
    channels = len(topology.channel_source)
    wanted = minimal_paths(topology).hop
    for routes in (route_lash(topology, LashOptions()), route_dfsssp(topology, DfssspOptions())):
        assert np.array_equal(virtual_channels(routes) % channels, wanted)
        assert routes.layers == virtual_channels(routes).max() // channels + 1 > 1


def test_balance_spreads_the_same_paths_over_all_layers():
    topology = irregular(64)
    channels = len(topology.channel_source)
    plain, spread = (route_dfsssp(topology, DfssspOptions(balance=balance)) for balance in (False, True))
    assert check_routes(topology, spread) == []
    assert (plain.layers, spread.layers) == (5, 8)
    assert np.array_equal(virtual_channels(plain) % channels, virtual_channels(spread) % channels)
    fullest = [np.bincount(virtual_channels(routes) // channels).max() for routes in (plain, spread)]
    assert fullest[1] < fullest[0] / 2


def test_balance_with_few_paths_leaves_no_layer_of_nothing():
    topology = topology_of("complete", switches=2)
    routes = route_dfsssp(topology, DfssspOptions(balance=True))
    assert routes.layers == 2
    assert sorted(virtual_channels(routes).tolist()) == [0, 3]


def test_low_port_takes_the_lowest_port_that_is_nearer():
    topology = topology_of("torus", sizes=[4, 5], parallel_links=2)
    hops = hop_counts(topology, route_lash(topology, LashOptions(paths="low_port")))
    source, target = topology.channel_source, topology.channel_target
    for row, path in enumerate(hops_of(topology, route_lash(topology, LashOptions(paths="low_port")))):
        end = row % topology.switch_count
        for _, channel in path:
            switch = source[channel]
            nearer = [c for c in np.flatnonzero(source == switch) if hops[target[c], end] == hops[switch, end] - 1]
            assert topology.out_port[channel] == topology.out_port[nearer].min()


def test_minimal_paths_share_the_load():
    """On a torus all channels are alike; 4.0 hops × 4,096 pairs over 256 channels are 64 on each."""
    topology = topology_of("torus", sizes=[8, 8])
    load = channel_load(topology, route_lash(topology, LashOptions()))
    assert load.sum() == 64 * len(load)
    assert load.max() <= 1.5 * 64
    assert channel_load(topology, route_updown(topology, UpDownOptions())).max() > 3 * 64


@pytest.mark.parametrize("name", ["lash", "dfsssp", "nue"])
def test_a_path_stays_in_its_layer(name):
    topology = irregular(40)
    layers = [{layer for layer, _ in path} for path in hops_of(topology, route(name, topology))]
    assert max(len(used) for used in layers) == 1
    assert set[int]().union(*layers) == set(range(8 if name == "nue" else max(map(max, filter(None, layers))) + 1))


@pytest.mark.parametrize("name", ["dl", "lash", "dfsssp", "nue"])
def test_the_next_hop_depends_on_arrival_and_destination(name):
    topology = irregular(40)
    assert not isinstance(forwarding_table(topology, route(name, topology), by_arrival=True), Conflict)


@pytest.mark.parametrize("layers", [1, 2, 8])
def test_with_nue_the_next_channel_depends_on_destination_alone(layers):
    topology = irregular(40)
    routes = route_nue(topology, NueOptions(layers=layers))
    assert not isinstance(forwarding_table(topology, routes, by_arrival=False), Conflict)


def test_nue_divides_the_destinations_evenly_among_neighbours():
    topology = topology_of("ring", switches=10)
    routes = route_nue(topology, NueOptions(layers=4))
    layer_of_end: Ints = np.full(10, -1)
    for row, path in enumerate(hops_of(topology, routes)):
        if path:
            layer_of_end[row % 10] = path[0][0]
    # s1 with its neighbours, then s3 with those nearest to it that are left, and so on.
    assert layer_of_end.tolist() == [0, 0, 1, 1, 1, 2, 2, 3, 3, 0]


def test_nue_with_more_layers_than_destinations_keeps_the_number():
    topology = topology_of("ring", switches=3)
    routes = route_nue(topology, NueOptions(layers=8))
    assert routes.layers == 8
    assert set((virtual_channels(routes) // len(topology.channel_source)).tolist()) == {0, 1, 2}


def test_nue_says_how_many_next_hops_are_escape_paths():
    topology = topology_of("torus", sizes=[8, 8])
    routes = route_nue(topology, NueOptions(layers=4))
    assert routes.notes == ("16 of 4032 next hops are those of escape paths, for want of turns",)
    assert check_routes(topology, routes) == []
    assert route_nue(topology, NueOptions(layers=1)).notes == ()


def test_nue_spends_no_turn_on_a_cut_off_hostless_switch():
    """In this fabric twelve escape paths would be needed to reach all switches, none to reach all hosts."""
    topology = random_fabric(42)
    routes = route_nue(topology, NueOptions(layers=1))
    assert check_routes(topology, routes) == []
    assert routes.notes == ()


def test_trees_that_do_not_reach_a_switch_are_refused():
    topology = topology_of("ring", switches=3)
    with pytest.raises(InputError, match="no legal path from s2 to s1"):
        paths_to(topology, np.full((3, 3), -1, dtype=np.int32))

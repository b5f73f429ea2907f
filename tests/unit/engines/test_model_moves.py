"""Tables with the VLANs of two plans: every frame of either goes its way, and PVIDs say by which."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from testbed.base.errors import LabError
from testbed.base.model import Octets
from testbed.dataplane.kernels.packets_hash import frame_hash, member_by_hash
from testbed.dataplane.kernels.packets_state import FREE
from testbed.dataplane.switch_tables import switch_tables
from testbed.dataplane.transition_tables import merge_tables, pvids_of
from testbed.engines.realtime.change_plan import Mover, spare_links, wait_for_empty_links
from testbed.engines.realtime.check_paths import spared_problems, trace_path, walked_problems
from testbed.engines.simulate.switch_model import live_model
from testbed.experiments.regulate.choose_links import plan_without
from testbed.planning import Plan, make_plan
from testbed.scenario import parse_scenario

_RING = "topology: {kind: ring, switches: 5, hosts_per_switch: 2}\nrouting: {kind: north_last}"


def _plan(text: str = _RING) -> Plan:
    return make_plan(parse_scenario(f"{text}\nengine: realtime", "test"))


def _fewer(plan: Plan) -> Plan:
    off = np.zeros(plan.topology.link_count, dtype=bool)
    off[0] = True
    return plan_without(plan, off)


def test_with_vlans_of_two_plans_the_pvids_say_which_is_taken() -> None:
    old = _plan()
    new = _fewer(old)
    before, after = (switch_tables(plan.topology, plan.vlans, None) for plan in (old, new))
    tables = merge_tables(before, after)
    assert set(tables.vlan_id.tolist()) == {*before.vlan_id.tolist(), *after.vlan_id.tolist()}
    assert walked_problems(old, tables) == []
    assert walked_problems(new, tables) != []
    tables.host_class[:] = pvids_of(after, tables)
    assert walked_problems(new, tables) == []
    assert walked_problems(new, after) == []
    # Floods of a VLAN are those of its plan.
    for table in (before, after):
        for vlan, identifier in enumerate(table.vlan_id.tolist()):
            there = int(tables.vlan_of[identifier])
            for switch in range(5):
                rows = [
                    one.flood_channel[one.flood_start[kind] : one.flood_start[kind + 1]].tolist()
                    for one, kind in ((table, vlan * 5 + switch), (tables, there * 5 + switch))
                ]
                assert rows[0] == rows[1]


@pytest.mark.parametrize(("text", "sentence"), [
    (_RING.replace("5", "4"), "this is a plan for another topology; switches, hosts and links must be the same"),
    (f"{_RING}\nassignment: {{kind: renamed}}",
     "a change of plans without loss needs VLANs of the whole fabric with static entries (assignment fixed)"),
    (_RING.replace("switches: 5", "switches: 5, parallel_links: 2") + "\nlinks: {aggregate: true}",
     "this is a plan for another topology; switches, hosts and links must be the same"),
])  # fmt: skip
def test_what_a_model_cannot_be_carried_over_to_is_refused(text: str, sentence: str, tmp_path: object) -> None:
    old = _plan()
    with pytest.raises(LabError) as refused:
        Mover(tmp_path, live_model(old), old, _plan(text), ((), ()), lambda links, up: None)  # type: ignore[arg-type]
    assert refused.value.sentence == sentence


@pytest.mark.slow
def test_a_way_over_a_link_that_is_off_is_refused(tmp_path: object) -> None:
    old = _plan()
    with pytest.raises(LabError, match=r"^the way to this plan is not safe: .* which is off"):
        Mover(tmp_path, live_model(old), old, old, ((), (0,)), lambda links, up: None)  # type: ignore[arg-type]


_BUNDLES = (
    "topology: {kind: ring, switches: 4, parallel_links: 3}\nrouting: {kind: north_last}\nlinks: {aggregate: true}"
)


def _packet(port: int, *, offset: int = 0, protocol: int = 17, words: int = 5) -> Octets:
    """IPv4 from 10.0.0.1 to 10.0.0.2 with two ports, or what stands there in a later fragment."""
    head = bytes.fromhex("020000000002020000000001") + b"\x08\x00" + bytes([0x40 | words]) + bytes(5)
    head += offset.to_bytes(2, "big") + bytes([64, protocol]) + bytes(2) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    head += bytes(4 * (words - 5)) + port.to_bytes(2, "big") + (5001).to_bytes(2, "big")
    return np.frombuffer(head.ljust(80, b"\0"), dtype=np.uint8)


@pytest.mark.parametrize(("more", "ports"), [
    ({}, True), ({"protocol": 6}, True), ({"words": 7}, True), ({"offset": 0x2000}, True),  # the first of fragments
    ({"offset": 1}, False), ({"offset": 0x1F00}, False), ({"protocol": 1}, False),
])  # fmt: skip
def test_ports_count_where_a_packet_has_them(more: dict[str, int], ports: bool) -> None:
    found = {int(frame_hash(_packet(port, **more), 80)) for port in range(1000, 1010)}
    assert len(found) == (10 if ports else 1)
    # Without room for them there are none.
    assert len({int(frame_hash(_packet(port, **more), 34)) for port in range(1000, 1010)}) == 1


def test_a_hash_passes_over_a_spared_link_as_over_a_dead_one() -> None:
    model = live_model(_plan(_BUNDLES))
    live, hashes = model.live, range(0, 1 << 32, 0x1234567)

    def chosen() -> list[int]:
        return [member_by_hash(live, mixed, 0) for mixed in hashes]

    whole = chosen()
    assert set(whole) == {0, 2, 4}
    # Of this hash the first link's score is 0, and it carries it where it is the only one.
    live.down[[2, 3, 4, 5]] = True
    assert member_by_hash(live, 150640, 0) == 0
    live.down[0] = True
    assert member_by_hash(live, 150640, 0) == -1
    live.down[:] = False
    for link in (0, 1, 2):
        live.down[[2 * link, 2 * link + 1]] = True
        dead = chosen()
        live.down[:] = False
        spare_links(model, [link], spared=True)
        assert chosen() == dead
        assert set(dead) == {0, 2, 4} - {2 * link}
        # Frames that another link carried before keep it.
        assert all(now == before for now, before in zip(dead, whole, strict=True) if before != 2 * link)
        spare_links(model, [link], spared=False)
    assert chosen() == whole


def _five_times() -> Callable[[], bool]:
    looks = iter([True] * 5)
    return lambda: next(looks, False)


def test_a_link_that_goes_off_is_waited_for_until_it_is_empty() -> None:
    model = live_model(_plan(_BUNDLES))
    spare_links(model, [1], spared=True)
    assert wait_for_empty_links(model, lambda: True)
    for busy in (model.live.waiting, model.state.busy):
        busy[3] = 1
        assert not wait_for_empty_links(model, _five_times())
        busy[3] = 0
    # The last frame has left the link, and the switch that it goes to has not seen it yet.
    model.state.counts[FREE] -= 1
    assert not wait_for_empty_links(model, _five_times())
    spare_links(model, [1], spared=False)
    assert wait_for_empty_links(model, lambda: False)


def test_the_walk_tells_links_that_a_hash_treats_otherwise() -> None:
    plan = _plan(_BUNDLES)
    model = live_model(plan)
    assert plan.bundles is not None
    spare_links(model, [1], spared=True)
    assert spared_problems(plan.bundles, model.live.spared, [1]) == []
    assert spared_problems(plan.bundles, model.live.spared, []) == [
        "s1→s2#1 is on and is chosen no more by the hash of its bundle",
        "s2→s1#1 is on and is chosen no more by the hash of its bundle",
    ]
    assert spared_problems(plan.bundles, model.live.spared, [1, 2])[0] == (
        "s1→s2#2 is off and is still chosen by the hash of its bundle"
    )
    found = trace_path(model.live.tables, model.live.spared, plan.wiring, 0, 1)
    assert found.hops == ((0, 4),)
    assert found.arrives

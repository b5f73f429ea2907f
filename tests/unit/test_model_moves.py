"""Tables with the VLANs of two plans: every frame of either goes its way, and PVIDs say by which."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.emulate.realtime.move import Mover
from testbed.emulate.realtime.walk import walked_problems
from testbed.errors import LabError
from testbed.plan import Plan, make_plan
from testbed.regulate.choice import plan_without
from testbed.scenario import parse_scenario
from testbed.simulate.live import live_model
from testbed.vlans.both_tables import both, pvids_of
from testbed.vlans.switch_tables import switch_tables

_RING = "topology: {kind: ring, switches: 5, hosts_per_switch: 2}\nrouting: {kind: north_last}"


def _plan(text: str = _RING) -> Plan:
    return make_plan(parse_scenario(f"{text}\nengine: realtime", "test"))


def _fewer(plan: Plan) -> Plan:
    off = np.zeros(plan.topology.link_count, dtype=bool)
    off[0] = True
    return plan_without(plan, off)


def test_with_the_vlans_of_two_plans_the_pvids_say_which_one_is_taken() -> None:
    old = _plan()
    new = _fewer(old)
    before, after = (switch_tables(plan.topology, plan.vlans, None) for plan in (old, new))
    tables = both(before, after)
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
     "a change of plans without loss needs VLANs of the whole fabric with static entries (assignment fixed), and links "
     "that are not aggregated"),
    (_RING.replace("switches: 5", "switches: 5, parallel_links: 2") + "\nlinks: {aggregate: true}",
     "a change of plans without loss needs VLANs of the whole fabric with static entries (assignment fixed), and links "
     "that are not aggregated"),
])  # fmt: skip
def test_what_a_model_cannot_be_carried_over_to_is_refused(text: str, sentence: str, tmp_path: object) -> None:
    old = _plan()
    with pytest.raises(LabError) as refused:
        Mover(tmp_path, live_model(old), old, _plan(text), ((), ()), lambda links, up: None)  # type: ignore[arg-type]
    assert refused.value.sentence == sentence


def test_a_way_over_a_link_that_is_off_is_refused(tmp_path: object) -> None:
    old = _plan()
    with pytest.raises(LabError, match=r"^the way to this plan is not safe: .* which is off"):
        Mover(tmp_path, live_model(old), old, old, ((), (0,)), lambda links, up: None)  # type: ignore[arg-type]

"""Hosts that tag, on both engines: paths by VLAN, the tag on the wire, unmodified programs, another tree by address."""

from __future__ import annotations

import pytest

from testbed.base.messages import Tap
from testbed.base.model import HostTaggedPlan, host_ip
from testbed.base.vlan_networks import vlan_address
from testbed.engines.lab.control.build import build_lab
from testbed.engines.realtime.client import build_model_lab
from testbed.engines.simulate.switch_model import live_model

from .conftest import execute, plan_of

pytestmark = pytest.mark.lab

_MESH = "topology: {kind: mesh, sizes: [2, 2]}\nassignment: {kind: host_tagged}\n"
_ONE_WITHOUT = "topology: {kind: mesh, sizes: [2, 2]}\nassignment: {kind: host_tagged, untagged: [h4]}\n"


def build(plan):
    return build_model_lab(plan, live_model(plan)) if plan.scenario.engine == "realtime" else build_lab(plan)


def tags_seen(frames) -> set[int]:
    """VLANs in the tags of ICMP frames; 0 = none."""
    found = set()
    for frame in frames:
        tagged = frame.data[12:14] == b"\x81\x00"
        if frame.data[12:14] == b"\x08\x00" or frame.data[16:18] == b"\x08\x00":
            found.add(int.from_bytes(frame.data[14:16], "big") & 0xFFF if tagged else 0)
    return found


@pytest.mark.parametrize("engine", ["ovs", "realtime"])
def test_hosts_choose_the_path_by_the_vlan_they_tag_with(engine):
    plan = plan_of(f"{_MESH}engine: {engine}\nlab: {{dilation: 20}}\n")
    assert isinstance(plan.vlans, HostTaggedPlan)
    ids = plan.vlans.vlan_ids.tolist()
    with build(plan) as lab:
        assert lab.verify(plan) == []
        planned = plan.vlans.host_tag(0, 3)
        with lab.capture(Tap(host=0)) as frames:
            execute(lab, "ping", "-n", "-c", "2", "-i", "0.2", host_ip(3), host="h1")
            frames.stop()
            seen = frames.read(1.0)
        # The answer comes in the VLAN that the other host has chosen.
        assert tags_seen(seen) == {planned, plan.vlans.host_tag(3, 0)}
        for place, vlan in enumerate(ids):
            with lab.capture(Tap(host=0)) as frames:
                execute(lab, "ping", "-n", "-c", "2", "-i", "0.2", str(vlan_address(place, 3, 4).ip), host="h1")
                frames.stop()
                seen = frames.read(1.0)
            assert tags_seen(seen) == {vlan}
            # Not even what hosts send by themselves leaves without a tag.
            assert all(frame.data[12:14] == b"\x81\x00" for frame in seen)
        shown = execute(lab, "ip", "-o", "link", "show", host="h1")
        assert all(f"eth0.{vlan}" in shown for vlan in ids)


@pytest.mark.parametrize("engine", ["ovs", "realtime"])
def test_a_host_without_tags_talks_with_those_that_tag(engine):
    plan = plan_of(f"{_ONE_WITHOUT}engine: {engine}\nlab: {{dilation: 20}}\n")
    with build(plan) as lab:
        assert lab.verify(plan) == []
        with lab.capture(Tap(host=3)) as frames:
            execute(lab, "ping", "-n", "-c", "2", "-i", "0.2", host_ip(0), host="h4")
            frames.stop()
            assert tags_seen(frames.read(1.0)) == {0}

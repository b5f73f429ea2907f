"""Classifiers of the fast path are put on ports that Open vSwitch clears meanwhile."""

from __future__ import annotations

import pytest

from testbed.base.errors import LabError
from testbed.engines.ovs import bpf


@pytest.mark.parametrize("failures", [0, 3, 99])
def test_it_is_tried_again_with_what_there_is_then(monkeypatch, failures):
    batches: list[str] = []

    def run(command, text=None):
        if command[:2] == ["tc", "qdisc"]:
            return "qdisc ingress ffff: dev s1-eth1 parent ffff:fff1\n" if not batches else ""
        if command[0] == "tc":
            batches.append(text)
            if len(batches) <= failures:
                raise LabError("Error: Parent Qdisc doesn't exists.")
        return ""

    monkeypatch.setattr(bpf, "run", run)
    monkeypatch.setattr(bpf, "_pin", lambda program, path: None)
    monkeypatch.setattr(bpf, "_BETWEEN", 0.0)
    if failures == 99:
        with pytest.raises(LabError, match="Parent Qdisc"):
            bpf.attach(3, ["s1-eth1"], rank=2)
        return
    bpf.attach(3, ["s1-eth1"], rank=2)
    assert len(batches) == failures + 1
    assert ("qdisc add dev s1-eth1 ingress" in batches[-1]) == (failures > 0)

"""Counters of ports and rules, read while a controller's LLDP frames come and go."""

from __future__ import annotations

from itertools import chain, count, repeat

import pytest

from testbed.base.errors import LabError
from testbed.engines.lab.counters import counters
from testbed.fabric.openflow.tables import Priority


def _rules(told: int) -> dict[str, list[str]]:
    return {"s1": [f"cookie=0x0, table=0, n_packets={told}, n_bytes=0, priority={Priority.LLDP:d},dl_dst=… actions="]}


def test_counters_are_read_again_until_no_lldp_frame_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings that take longer than the time between two rounds of LLDP differ many times before two agree."""
    monkeypatch.setattr(counters, "_port_counters", lambda: {"s1-eth1": {"rx_packets": 70}})
    told = chain(range(3, 33), repeat(33))
    ports, rules, lldp = counters._counters(lambda: _rules(next(told)), tells=True)
    assert (ports["s1-eth1"]["rx_packets"], lldp, rules) == (70, 33, _rules(33))


def test_counters_that_never_agree_are_an_error_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_port_counters", dict)
    monkeypatch.setattr(counters, "_READ_WITHIN", 0.0)
    told = count()
    with pytest.raises(LabError, match=r"LLDP frames came while counters were read.*too busy"):
        counters._counters(lambda: _rules(next(told)), tells=True)

"""What may be asked of the simulators: the bounds themselves are allowed, and nothing beyond."""

from __future__ import annotations

import dataclasses

import pytest

from testbed.engines.simulate.flit_settings import Settings, parse_loads, settings_problems
from testbed.engines.simulate.packet_settings import PacketSettings, packet_problems


def problems(settings, seeds=1):
    check = packet_problems if isinstance(settings, PacketSettings) else settings_problems
    return {problem.place for problem in check(settings, seeds)}


@pytest.mark.parametrize(("settings", "name", "least", "most", "option"), [
    (Settings(warm_up=0, packet=1, buffer=1), "clocks", 1, 10**9, "cycles"),
    (Settings(clocks=10**9), "warm_up", 0, 10**9 - 1, "warm_up"),
    (Settings(buffer=1 << 24), "packet", 1, 1 << 24, "packet"),
    (Settings(packet=1), "buffer", 1, 1 << 24, "buffer"),
    (Settings(), "header", 3, 1000, "header"),
    (Settings(), "channels", 1, 16, "channels"),
    (Settings(), "buffer_gap", 0, 1000, "buffer_gap"),
    (Settings(), "output_gap", 0, 1000, "output_gap"),
    (PacketSettings(duration=60_000, warm_up=0, frame=64), "buffer", 64, 1 << 30, "buffer"),
    (PacketSettings(buffer=1 << 30), "frame", 64, 9600, "frame"),
    (PacketSettings(), "delay", 0, 1000, "delay"),
    (PacketSettings(duration=60_000), "warm_up", 0, 59_999, "warm_up"),
    (PacketSettings(xon=0), "xoff", 1522, 65535, "xoff"),
    (PacketSettings(xoff=30_000), "xon", 0, 29_999, "xon"),
])  # fmt: skip
def test_bounds(settings, name, least, most, option):
    for value in (least, most):
        assert problems(dataclasses.replace(settings, **{name: value})) == set()
    for value in (least - 1, most + 1):
        assert problems(dataclasses.replace(settings, **{name: value})) == {option}


def test_bounds_of_durations():
    assert problems(PacketSettings(duration=0.01, warm_up=0)) == problems(PacketSettings(duration=60_000)) == set()
    for duration in (0.0099, 60_001):
        assert problems(PacketSettings(duration=duration, warm_up=0)) == {"duration"}


@pytest.mark.parametrize("settings", [Settings(), PacketSettings()])
def test_bounds_of_seeds(settings):
    assert problems(settings, 1) == problems(settings, 1000) == set()
    assert problems(settings, 0) == problems(settings, 1001) == {"seeds"}


def test_bounds_of_loads():
    assert parse_loads("1e-9,0.5,1") == (1e-9, 0.5, 1.0)

"""Captures of one lab on modelled switches: one clock, stamps of the first bit, frames in the order of these."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.base.errors import LabError
from testbed.base.ethernet import wire_bytes
from testbed.base.model import host_mac
from testbed.dataplane.kernels.packets import restart_links, run
from testbed.dataplane.kernels.packets_clock import set_pace, shown_time
from testbed.dataplane.kernels.packets_state import FREE, NOW, PacketModel
from testbed.engines.realtime.capture import ModelFrames
from testbed.engines.simulate.switch_model import live_model

from .test_live import _offer, _plan

_LINE = "topology: {kind: mesh, sizes: [4]}\nengine: realtime"
_SIZE = 300
_EPOCH = 1_700_000_000_000_000_000
_DILATION = 100.0


def line(more: str = "") -> PacketModel:
    """Four switches in a row in a lab that runs 100 times as slow."""
    model = live_model(_plan(f"{_LINE}\n{more}"))
    model.live.byte_time[:] = round(8000 * _DILATION)
    model.live.delay[0] = round(1e6 * _DILATION)
    set_pace(model.live.clock, 0, _DILATION, _EPOCH)
    return model


def listen(model: PacketModel, *links: int) -> ModelFrames:
    return ModelFrames(model, links or (0, 1), "s1-eth1", "a link", lambda: True)  # type: ignore[arg-type]


def send(model: PacketModel, host: int, to: int, at: int, size: int = _SIZE) -> None:
    frame = bytes.fromhex((host_mac(to) + host_mac(host)).replace(":", "")) + b"\x88\xb5" + bytes(size - 14)
    place = model.state.free[model.state.counts[FREE] - 1]
    model.live.data[place, :size] = np.frombuffer(frame, dtype=np.uint8)
    assert _offer(model.fabric, model.state, model.live, host, size, at)


def go_on(model: PacketModel, until: int) -> None:
    run(model.fabric, model.state, until, None, model.live)


def test_captures_begun_at_different_moments_are_on_one_clock():
    """Those of the links of a flow's path begin one after the other, the last link's first, between its frames."""
    model = line()
    fabric, gap = model.fabric, 3_000_000_000  # ps
    path = [fabric.channels, 0, 2, 4, fabric.channels + fabric.hosts + 3]
    captures: dict[int, ModelFrames] = {}
    for number in range(12):
        if number < 5:
            link = path[4 - number]
            captures[link] = listen(model, link, link ^ 1)
        send(model, 0, 3, number * gap)
        go_on(model, (number + 1) * gap)
    stamps = [[frame.time for frame in captures[link].read(0.0)][-7:] for link in path]
    assert [len(one) for one in stamps] == [7] * 5
    for earlier, later, size in zip(
        stamps[:-1], stamps[1:], [wire_bytes(_SIZE), *[wire_bytes(_SIZE, 4)] * 3], strict=True
    ):
        # A link begins when it has the frame whole: a wire time later, and the microsecond of cable and switch.
        assert [b - a for a, b in zip(earlier, later, strict=True)] == pytest.approx([size * 8 + 1000] * 7, abs=1)
    # The first bit of the first frame that all have seen left its host at its gap's beginning.
    assert stamps[0][0] == _EPOCH + 5 * gap // 1000 // int(_DILATION)


def test_a_pause_of_the_model_moves_no_stamp():
    """Who computes it is away for a second of the lab; captures of before and after agree about what comes then."""
    model = line()
    before = listen(model)
    send(model, 0, 3, 0)
    go_on(model, 1_000_000_000_000)
    after = listen(model)
    send(model, 0, 3, 1_000_000_000_000)
    go_on(model, 2_000_000_000_000)
    first, second = before.read(0.0)
    assert [second] == after.read(0.0)
    assert second.time - first.time == 10_000_000  # a second of the lab is 10 ms


def test_the_clock_goes_on_where_the_dilation_changes():
    model = line()
    set_pace(model.live.clock, 5_000_000_000, 10.0)
    clock = model.live.clock
    assert shown_time(clock, 5_000_000_000) == _EPOCH + 50_000
    assert shown_time(clock, 6_000_000_000) == _EPOCH + 150_000
    assert shown_time(clock, 4_999_999_999) == _EPOCH + 50_000  # never back


def test_frames_come_in_the_order_of_their_stamps():
    """What a host sends now is taken in before the model has gone on to now."""
    model = line()
    send(model, 0, 3, 0)
    others = listen(model, model.fabric.channels + 3, model.fabric.channels + model.fabric.hosts + 3)
    send(model, 3, 0, 2_000_000_000)
    assert others.read(0.0) == []  # the model may still show what comes before
    go_on(model, 4_000_000_000)
    seen = others.read(0.0)
    assert [frame.outbound for frame in seen] == [False, True]
    assert [frame.time for frame in seen] == sorted(frame.time for frame in seen)


def test_what_was_seen_is_given_when_capture_or_lab_ends():
    model = line()
    frames = listen(model, model.fabric.channels, model.fabric.channels + model.fabric.hosts)
    send(model, 0, 3, 2_000_000_000)
    assert frames.read(0.0) == []
    frames.stop()
    assert len(frames.read(0.0)) == 1
    gone = ModelFrames(model, (model.fabric.channels + 1, 0), "h2-eth0", "a host", lambda: False)
    send(model, 1, 3, 3_000_000_000)
    assert len(gone.read(0.01)) == 1
    with pytest.raises(LabError, match="the lab has ended"):
        gone.read(0.01)


def test_a_pause_frame_is_stamped_when_its_first_bit_leaves():
    """And nothing is on its link until its last has left."""
    model = line("simulator: {flow_control: pause, buffer: 9000}")
    back = listen(model, 1, 0)  # against the flow
    model.state.off[0] = True
    at = int(model.state.counts[NOW])
    model.state.pending[1] = True
    restart_links(model.fabric, model.state, model.live)
    send(model, 1, 0, at)
    go_on(model, 10_000_000_000)
    pause, frame = (one for one in back.read(0.0) if one.outbound)
    assert pause.data[12:16] == b"\x88\x08\x00\x01"
    assert pause.time == shown_time(model.live.clock, at)
    assert frame.time - pause.time >= wire_bytes(60) * 8

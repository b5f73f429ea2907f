"""Captured frames: tags put back, the file's form, filters, names of places, and files that end in the middle."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base.errors import InputError, LabError, StorageError
from testbed.base.messages import Frame, Tap
from testbed.engines.lab.counters.capture import frame_of
from testbed.engines.lab.counters.pcap_filter import compile_filter
from testbed.experiments.run.write_capture import CaptureFile, Recorded, record, tap_of
from testbed.results import pcapng
from testbed.ui.cli.interrupts import Interrupted
from tests.fabrics import plan_of

_HEAD = bytes(range(12))
_TAGGED = _HEAD + b"\x81\x00\x60\x05" + b"\x08\x00" + bytes(46)
_PLAIN = _HEAD + b"\x08\x00" + bytes(46)
_FROM = ("s1-eth1", 3, socket.PACKET_HOST, 1, bytes(6))
_TO = ("s1-eth1", 3, socket.PACKET_OUTGOING, 1, bytes(6))
_TIME = (socket.SOL_SOCKET, 35, struct.pack("=qq", 12, 345))


def tag_beside(status: int, tag: int, tag_type: int) -> tuple[int, int, bytes]:
    return 263, 8, struct.pack("=IIIHHHH", status, len(_PLAIN), len(_PLAIN), 0, 14, tag, tag_type)


def test_a_tag_that_the_kernel_took_out_is_put_back():
    assert frame_of(_PLAIN, [_TIME, tag_beside(0x50, 0x6005, 0x8100)], _FROM) == Frame(
        12_000_000_345, False, _TAGGED, len(_TAGGED)
    )
    service = frame_of(_PLAIN, [_TIME, tag_beside(0x50, 7, 0x88A8)], _FROM)
    assert service.data[12:16] == b"\x88\xa8\x00\x07"
    # VLAN 0 and a kernel that does not give the type.
    assert frame_of(_PLAIN, [tag_beside(0x10, 0, 0)], _FROM).data[12:16] == b"\x81\x00\x00\x00"


def test_a_frame_without_a_tag_beside_it_is_as_it_was():
    untagged = (263, 8, struct.pack("=IIIHHHH", 0x01, len(_PLAIN), len(_PLAIN), 0, 14, 0, 0))
    assert frame_of(_PLAIN, [_TIME, untagged], _TO) == Frame(12_000_000_345, True, _PLAIN, len(_PLAIN))
    inline = (263, 8, struct.pack("=IIIHHHH", 0x01, len(_TAGGED), len(_TAGGED), 0, 14, 0, 0))
    assert frame_of(_TAGGED, [inline], _TO).data == _TAGGED


_FRAMES = [
    Frame(1_700_000_000_123_456_789, True, _TAGGED, len(_TAGGED)),
    Frame(1_700_000_000_123_456_790, False, _PLAIN[:-1], 1514),
]


def blocks(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each block; its length stands before and behind."""
    while content:
        kind, length = struct.unpack_from("<II", content)
        assert length % 4 == 0
        assert struct.unpack_from("<I", content, length - 4) == (length,)
        yield kind, content[8 : length - 4]
        content = content[length:]


def test_the_file_has_a_section_an_interface_and_the_frames():
    content = pcapng.header("s1-eth1", "a link") + pcapng.packets(_FRAMES) + pcapng.statistics(5, 3, 1)
    (section, interface, first, second, counts) = blocks(content)
    assert [kind for kind, _ in (section, interface, first, second, counts)] == [0x0A0D0D0A, 1, 6, 6, 5]
    assert section[1].startswith(b"\x4d\x3c\x2b\x1a\x01\x00\x00\x00" + b"\xff" * 8)
    assert interface[1].startswith(b"\x01\x00\x00\x00" + bytes(4) + b"\x02\x00\x07\x00s1-eth1\x00")
    assert b"\x09\x00\x01\x00\x09\x00\x00\x00" in interface[1]  # nanoseconds
    _, high, low, kept, length = struct.unpack_from("<IIIII", second[1])
    assert (high << 32 | low, kept, length) == (1_700_000_000_123_456_790, len(_PLAIN) - 1, 1514)
    assert first[1].endswith(b"\x02\x00\x04\x00\x02\x00\x00\x00" + bytes(4))  # outbound
    assert second[1].endswith(b"\x02\x00\x04\x00\x01\x00\x00\x00" + bytes(4))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_it(tmp_path):
    file = tmp_path / "it.pcapng"
    file.write_bytes(pcapng.header("s1-eth1", "a link") + pcapng.packets(_FRAMES) + pcapng.statistics(5, 3, 1))
    fields = ["frame.time_epoch", "frame.interface_name", "frame.packet_flags_direction", "vlan.id", "frame.len"]
    asked = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", str(file), "-T", "fields", *asked], capture_output=True, text=True, check=True
    )
    assert [line.split("\t") for line in done.stdout.splitlines()] == [
        ["1700000000.123456789", "s1-eth1", "0x00000002", "5", str(len(_TAGGED))],
        ["1700000000.123456790", "s1-eth1", "0x00000001", "", "1514"],
    ]


def test_filters_see_the_tag_as_part_of_the_frame():
    assert [
        [compile_filter(text, "--filter")(data, len(data)) for data in (_TAGGED, _PLAIN)]
        for text in ("vlan 5", "vlan 6", "ether[12:2] = 0x0800", "less 61")
    ] == [[True, False], [False, False], [False, True], [False, True]]


def test_a_filter_that_is_none_is_a_sentence():
    with pytest.raises(InputError) as caught:
        compile_filter("vlan five or", "--filter")
    assert str(caught.value).startswith('--filter: "vlan five or" is no filter of pcap-filter(7): ')
    assert str(caught.value).endswith("; an example: vlan 5 and icmp")


def test_places_have_the_names_that_failures_use():
    topology = plan_of("mesh", sizes=[2, 2], parallel_links=2).wiring
    names = [topology.channel_name(2 * link).replace("→", "-") for link in range(topology.link_count)]
    assert [tap_of(topology, name, "WHERE") for name in names] == [Tap(link) for link in range(topology.link_count)]
    assert tap_of(topology, "s2-s1#1", "WHERE") == tap_of(topology, "s1-s2#1", "WHERE") == Tap(names.index("s1-s2#1"))
    assert tap_of(topology, "h3", "WHERE") == Tap(host=2)
    assert tap_of(topology, "s1-eth1", "WHERE") == Tap(host=0)


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("h33", 'there is no link, port or host "h33". Did you mean "h3"?'),
        ("s1-s4", 'no link joins "s1" and "s4"; s1 is linked to s2, s3'),
        ("s1-s2#2", "s1 and s2 have planes 0 to 1, and no plane 2"),
        ("s1", '"s1" is a switch; name one of its links or ports, such as s1-s2'),
        ("s1-eth9", 'there is no port "s1-eth9"; s1 has ports 1 to 5'),
    ],
)
def test_a_place_that_there_is_not_is_a_sentence(where, sentence):
    with pytest.raises(InputError) as caught:
        tap_of(plan_of("mesh", sizes=[2, 2], parallel_links=2).wiring, where, "WHERE")
    assert str(caught.value) == f"WHERE: {sentence}"


class Passing:
    """Frames in given portions; a portion may be an exception. After the last nothing comes."""

    interface, description = "s1-eth1", "a link"

    def __init__(self, *portions: list[Frame] | BaseException, lost: int = 0) -> None:
        self.portions = list(portions)
        self.dropped = lost

    def read(self, seconds: float) -> list[Frame]:
        del seconds
        portion = self.portions.pop(0) if self.portions else []
        if isinstance(portion, BaseException):
            raise portion
        return portion

    def stop(self) -> None:
        pass

    def count_lost(self) -> int:
        return self.dropped


def packets_in(file: Path) -> int:
    return [kind for kind, _ in blocks(file.read_bytes())].count(6)


def recorded(file: Path, frames: Passing, **options) -> Recorded:
    found = Recorded()
    with CaptureFile(str(file)) as into:
        record(frames, into, found, **options)
    return found


def test_it_ends_by_count_and_by_time(tmp_path):
    found = recorded(tmp_path / "a", Passing(_FRAMES, _FRAMES), count=3)
    assert (found.frames, found.bytes, found.ended) == (3, 2 * len(_TAGGED) + 1514, "count")
    assert packets_in(tmp_path / "a") == 3
    found = recorded(tmp_path / "b", Passing(_FRAMES, lost=4), seconds=0.01)
    assert (found.frames, found.lost, found.ended) == (2, 4, "seconds")
    assert list(blocks((tmp_path / "b").read_bytes()))[-1][1].endswith(struct.pack("<HHQHHQHH", 4, 8, 6, 5, 8, 4, 0, 0))


def test_only_what_passes_the_filter_is_kept(tmp_path):
    found = recorded(tmp_path / "a", Passing(_FRAMES), seconds=0.01, passes=lambda data, length: length > 1000)
    assert (found.frames, packets_in(tmp_path / "a")) == (1, 1)


@pytest.mark.parametrize("error", [Interrupted(), LabError("the lab has ended")])
def test_the_file_is_whole_whatever_ends_it(tmp_path, error):
    """What had come when it was interrupted belongs to it."""
    found, file = Recorded(), tmp_path / "a"
    with pytest.raises(type(error)), CaptureFile(str(file)) as into:
        record(Passing(_FRAMES, error, _FRAMES), into, found)
    assert packets_in(file) == found.frames == (4 if isinstance(error, Interrupted) else 2)


def test_a_full_disk_leaves_whole_frames(tmp_path, monkeypatch):
    """The disk takes the first frames and half of the next ones."""
    found, file, really, room = Recorded(), tmp_path / "a", os.write, [1]

    def write(descriptor: int, content: bytes) -> int:
        if len(content) > 200 and file.stat().st_size > 300:
            if not room:
                raise OSError(28, "No space left on device")
            room.pop()
            return really(descriptor, bytes(content)[:101])
        return really(descriptor, content)

    monkeypatch.setattr(os, "write", write)
    with (
        pytest.raises(StorageError, match=r"a cannot be written: No space left on device"),
        CaptureFile(str(file)) as into,
    ):
        record(Passing(_FRAMES, _FRAMES * 3), into, found)
    assert packets_in(file) == found.frames == 2


def test_nobody_reads_the_standard_output(tmp_path, monkeypatch):
    found = Recorded()
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as out:
        monkeypatch.setattr("sys.stdout", out)
        with CaptureFile("-") as into:
            record(Passing(_FRAMES), into, found)
    assert (found.frames, found.ended) == (0, "reader gone")


def test_files_that_cannot_be_made_are_sentences(tmp_path):
    there = tmp_path / "there"
    there.write_text("mine")
    with pytest.raises(InputError) as caught:
        CaptureFile(str(there))
    assert str(caught.value) == f"file: {there} is there already; remove it, or name another file"
    with pytest.raises(InputError, match=r"^file: /no/such/file cannot be written: No such file or directory$"):
        CaptureFile("/no/such/file")
    assert there.read_text() == "mine"

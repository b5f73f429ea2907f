"""Telemetry from the agent's record to a file and back, without a lab."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.engines.lab.counters.rtnetlink import FIGURES
from testbed.engines.lab.hosts.interface_names import port_interface
from testbed.experiments.run.checks.telemetry_samples import departure_errors, port_name, queue_figures, read_record
from testbed.planning.rates import imbalance
from testbed.results.telemetry import Telemetry, file_name, join, load_telemetry, telemetry_to_bytes
from tests.fabrics import plan_of

TOPOLOGY = plan_of("ring", switches=3).topology
# As the lab makes them: ports with hosts first, then both ends of each link.
NAMES = [port_interface(TOPOLOGY.switch_name(h), int(TOPOLOGY.host_port[h])) for h in range(3)] + [
    port_interface(TOPOLOGY.switch_name(int(TOPOLOGY.channel_source[c])), int(TOPOLOGY.out_port[c])) for c in range(6)
]
START = 100.0


def record(readings=8, pairs=True, window_from=99.75):
    """Counters that grow by 1 000 (port + 1) bytes and one frame a reading, from 0.25 s before the start."""
    steps = np.arange(readings)[:, None]
    ports = np.zeros((readings, 9, len(FIGURES)), dtype=np.int64)
    ports[:, :, FIGURES.index("tx_bytes")] = 5000 + steps * 1000 * np.arange(1, 10)
    ports[:, :, FIGURES.index("tx_packets")] = steps
    ports[:, :, FIGURES.index("queue_frames")] = 7
    ports[:, :, FIGURES.index("queue_drops")] = 2 * steps
    arrays = {
        "names": np.array(NAMES),
        "rates": np.full(9, 5e6),
        "time": window_from + 0.25 * np.arange(readings),
        "ports": ports,
        "ticks": np.arange(3 * readings).reshape(readings, 3),
        "coarse_time": np.array([99.75, 101.0]),
        "hosts": np.zeros((2, 3, len(FIGURES)), dtype=np.int64),
        "departures": np.zeros((0, 3), dtype=np.int64),
        "looks": np.zeros((0, 3), dtype=np.int64),
    }
    if pairs:
        arrays["pairs"] = np.stack([np.full((2, 3, 3), 10), np.arange(18).reshape(2, 3, 3) + 10])
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


@pytest.fixture
def part():
    return read_record(TOPOLOGY, record(), START, (0.2, 1.0))


def test_counters_become_increases_and_queues_stay(part):
    assert part.time.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
    assert part.sent_bytes[0].tolist() == [0] * 9
    assert part.sent_bytes[3].tolist() == [1000 * port for port in range(1, 10)]
    assert (part.queue_frames == 7).all()
    assert part.queue_drops[:, 4].tolist() == [0, 2, 2, 2, 2, 2, 2]
    assert part.processors[1].tolist() == [3, 3, 3]


def test_each_port_knows_its_channel_or_host(part):
    assert part.port_host.tolist() == [0, 1, 2, -1, -1, -1, -1, -1, -1]
    assert part.port_channel.tolist() == [-1, -1, -1, 0, 1, 2, 3, 4, 5]
    assert port_name(TOPOLOGY, part, 0) == "s1→h1"
    assert port_name(TOPOLOGY, part, 3) == "s1→s2"


def test_only_increases_wholly_inside_the_window_count(part):
    # From 0.2 to 1.0 s: the increases up to 0.5, 0.75 and 1.0; that up to 0.25 began at 0.
    assert part.time[part.increases_of(0)].tolist() == [0.5, 0.75, 1.0]


def test_the_matrix_is_what_came_between_first_and_last_reading(part):
    assert part.traffic_matrix().tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert part.traffic_frames.sum(axis=0)[2, 2] == 17


def test_without_pairs_there_is_no_matrix():
    part = read_record(TOPOLOGY, record(pairs=False), START, None)
    assert part.traffic_bytes.shape == (0, 3, 3)
    with pytest.raises(ValueError, match="were not counted"):
        part.traffic_matrix()


def test_queues_as_samples(part):
    found = {(metric, labels["channel"]): value for metric, labels, value in queue_figures(TOPOLOGY, part, 0)}
    assert len(found) == 2 * 9
    assert found["queue_frames", "s1→s2"] == 7
    assert found["queue_drops", "s2→h2"] == 6


def test_repeats_are_joined_and_told_apart(part):
    other = dataclasses.replace(part, looks=np.array([[0, 3, 5, 1]]))
    both = join([part, other])
    assert both.repeat.tolist() == [0] * 7 + [1] * 7
    assert both.window.tolist() == [[0.2, 1.0]] * 2
    assert both.looks.tolist() == [[1, 3, 5, 1]]
    assert both.time[both.increases_of(1)].tolist() == [0.5, 0.75, 1.0]
    assert both.increases_of(0).tolist() == [*part.increases_of(0).tolist(), *[False] * 7]
    assert (both.traffic_matrix() == 2 * part.traffic_matrix()).all()
    assert (both.traffic_matrix(1) == part.traffic_matrix()).all()


def test_a_file_is_read_as_it_was_written(part, tmp_path):
    (tmp_path / file_name("2")).write_bytes(telemetry_to_bytes(part))
    again = load_telemetry(tmp_path, "2")
    assert again is not None
    for field in dataclasses.fields(Telemetry):
        one, other = getattr(part, field.name), getattr(again, field.name)
        assert one.dtype == other.dtype, field.name
        assert np.array_equal(one, other), field.name


def test_a_load_without_telemetry_has_none(tmp_path):
    assert load_telemetry(tmp_path, "1") is None


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive"])
def test_a_damaged_file_is_named(content, tmp_path):
    (tmp_path / "telemetry-1.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"telemetry-1\.npz: is damaged: "):
        load_telemetry(tmp_path, "1")


def test_every_cut_of_a_file_is_noticed(part, tmp_path):
    whole = telemetry_to_bytes(part)
    for end in range(0, len(whole) - 1, 397):
        (tmp_path / "telemetry-1.npz").write_bytes(whole[:end])
        with pytest.raises(InputError, match="is damaged"):
            load_telemetry(tmp_path, "1")


def test_another_schema_version_is_refused(part, tmp_path):
    with np.load(io.BytesIO(telemetry_to_bytes(part))) as stored:
        arrays = {**stored, "schema_version": np.array(9)}
    np.savez(tmp_path / "telemetry-1.npz", **arrays)
    with pytest.raises(InputError, match="has schema version 9; this program reads 1"):
        load_telemetry(tmp_path, "1")


@pytest.mark.parametrize(("use", "expected"), [([1, 1, 1], 1.0), ([3, 0, 0], 3.0), ([0, 0], None), ([], None)])
def test_imbalance(use, expected):
    assert imbalance(use) == expected


def test_ports_without_looks_have_no_departure_error(part):
    assert len(departure_errors(part, 0)) == 0

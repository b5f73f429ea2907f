"""What a run makes of a job's figures, without a lab: what links allow, and who meets a prediction."""

import pytest

from testbed.base.model import Sample
from testbed.dataplane.predict import Wires, alltoall_bound, transport
from testbed.experiments.run.loads import run_mpi as load_mpi
from testbed.experiments.run.loads.mpi_bounds import mpi_bound, payload_bits
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

PLAN = make_plan(parse_scenario("topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 100}", "test.yaml"))


def least(metric, hosts=(0, 1, 2, 3), *, exact=False, **labels):
    return mpi_bound(
        PLAN, hosts, Sample(metric, 1.0, "s", {key: str(text) for key, text in labels.items()}), exact=exact
    )


def alltoall(hosts, size=10**6):
    return least("mpi_alltoall_time", hosts, ranks=len(hosts), bytes=size)


def test_the_bound_with_one_rank_a_host_leaves_out_what_overlaps():
    whole = alltoall_bound(Wires(PLAN.topology, transport("tcp", 0), 1e9, 1e9), PLAN.routes, 1e6)
    found = alltoall((0, 1, 2, 3))
    assert found.seconds == pytest.approx(whole)
    assert found.held == pytest.approx(whole - 8 * 1.25 * 1542 / 1e9)
    assert least("mpi_alltoall_time", ranks=4, bytes=10**6, exact=True).unheld == 0


def test_the_bound_does_not_depend_on_which_rank_is_where():
    assert alltoall((3, 1, 0, 2)) == alltoall((0, 1, 2, 3))


def test_ranks_of_one_host_need_no_time_for_each_other():
    # Two on each of two neighbours: each host sends 2·2 blocks to the other.
    assert alltoall((0, 0, 1, 1)).seconds == pytest.approx(8 * 4e6 * 1542 / 1448 / 1e9)


def test_of_blocks_passed_on_by_ranks_only_host_links_count():
    assert alltoall((0, 0, 1, 1), 256).seconds == pytest.approx(8 * 4 * 256 * 1538 / 1448 / 1e9)


def test_half_a_ping_pong_is_a_message_by_store_and_forward():
    # 46 segments. The first is on the link between the switches when it has passed the host's; 45 of 1542 bytes go
    # before the last, which is short, and has to wait on the last link for the one before it. The gap of 12 holds up
    # nobody.
    last = 1538 - (46 * 1448 - 65536)
    found = least("mpi_latency", src=0, dst=1, bytes=65536)
    assert found.seconds == pytest.approx(8 * (1526 + 45 * 1542 + 1526 + last - 12) / 1e9, rel=1e-12)
    # Ports that let a first frame go at once, and the second a quarter too early.
    assert found.held == pytest.approx(8 * (45 - 0.25) * 1542 / 1e9, rel=1e-12)
    assert least("mpi_bandwidth", src=0, dst=1, bytes=65536).seconds == found.seconds


def test_one_frames_message_is_softwares_unless_ports_hold_it():
    assert least("mpi_latency", src=0, dst=1, bytes=1).unheld == 1
    assert least("mpi_latency", src=0, dst=1, bytes=0, exact=True).held == pytest.approx(8 * (2 * 78 + 82) / 1e9)


@pytest.mark.parametrize(
    ("metric", "labels", "links"),
    [
        ("mpi_pingping_time", {"src": 0, "dst": 1}, 1.0),
        ("mpi_multi_pingping_time", {"ranks": 4}, 1.0),
        ("mpi_sendrecv_time", {"ranks": 4}, 1.0),
        ("mpi_exchange_time", {"ranks": 4}, 2.0),
        ("mpi_stream_bandwidth", {"src": 0, "dst": 1}, 1.0),
        ("mpi_bidirectional_bandwidth", {"src": 0, "dst": 1}, 1.0),
        ("mpi_allreduce_time", {"ranks": 4}, 1.0),
        ("mpi_bcast_time", {"ranks": 4}, 1.0),
    ],
)
def test_long_messages_take_the_time_of_the_fullest_link(metric, labels, links):
    found = least(metric, bytes=10**7, **labels)
    assert found.seconds == pytest.approx(links * 8 * 10**7 * 1540 / 1448 / 1e9, rel=0.01)
    assert found.unheld < 0.002


def test_a_barrier_takes_at_least_an_empty_message():
    assert least("mpi_barrier_time", ranks=4, exact=True).seconds == pytest.approx(8 * (2 * 78 + 82) / 1e9)
    assert least("mpi_barrier_time", (0, 0), ranks=2).seconds == 0


def test_of_what_has_no_clear_bound_there_is_none():
    assert least("mpi_gather_time", ranks=4, bytes=1) is None
    assert least("mpi_alltoall_time", ranks=4, bytes=1, over="ranks", statistic="min") is None
    assert least("mpi_alltoall_time", ranks=4, bytes=1, over="ranks", statistic="max") is not None


@pytest.mark.parametrize(
    ("metric", "count"), [("mpi_bandwidth", 1), ("mpi_sendrecv_bandwidth", 2), ("mpi_exchange_bandwidth", 4),
                          ("mpi_bidirectional_bandwidth", 2), ("mpi_alltoall_bandwidth", 3)],
)  # fmt: skip
def test_what_a_rate_counts(metric, count):
    assert payload_bits(Sample(metric, 1.0, "bit/s", {"bytes": "1000", "ranks": "4"})) == 8000 * count


def goodput(*ratios):
    return [Sample("goodput", ratio * 1e9, "bit/s", {}, 1e9) for ratio in ratios]


@pytest.mark.parametrize(
    ("samples", "met"),
    [
        ([], False),
        ([Sample("goodput", 1e9, "bit/s", {})], False),
        (goodput(0.97, 0.99), True),
        (goodput(0.5, 1.4), False),
        (goodput(0.9, 0.9), False),
    ],
)
def test_only_pairs_with_a_prediction_can_meet_it(samples, met):
    assert load_mpi._as_predicted(samples) is met

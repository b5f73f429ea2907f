"""Schedules of other programs: in order and with what they wait for, or a sentence."""

from __future__ import annotations

import pytest

from testbed.base.errors import InputError
from testbed.fabric.loggops import LogGops, cost_schedule, read_loggops
from testbed.fabric.schedules import make_messages
from testbed.scenario.schedule_files.formats import SCHEDULE_FORMATS, read_schedule


def read(folder, text, name="x"):
    (folder / name).write_text(text)
    return read_schedule(folder / name)


def refusal(folder, text, name="x"):
    with pytest.raises(InputError) as error:
        read(folder, text, name)
    return str(error.value).replace(f"{folder}/{name}: ", "").splitlines()


def binomial_reduce(ranks, size):
    """GOAL of a reduction to rank 0."""
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines.append(f"rank {rank} {{")
        reach, received = 1, 0
        while reach < ranks and not rank & reach:
            received += 1
            lines.append(f"l{received}: recv {size}b from {rank + reach} tag 0")
            reach <<= 1
        if rank:
            lines.append(f"s: send {size}b to {rank - reach} tag 0 cpu 0 nic 0")
            lines += [f"s requires l{one}" for one in range(1, received + 1)]
        lines.append("}")
    return "\n".join(lines) + "\n"


def dissemination(ranks):
    """GOAL of a barrier."""
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines.append(f"rank {rank} {{")
        reach = 1
        while reach < ranks:
            lines += [
                f"s{reach}: send 1b to {(rank + reach) % ranks}",
                f"r{reach}: recv 1b from {(rank - reach) % ranks}",
            ]
            if reach > 1:
                lines += [f"s{reach} requires r{reach // 2}", f"s{reach} requires s{reach // 2}"]
            reach *= 2
        lines.append("}")
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------------------------
# LogGOPS


def test_loggops_gives_the_published_times_of_a_reduction(tmp_path):
    model = read_loggops("L=2500,o=1500,g=1000,G=6,S=65535", "x")
    times = cost_schedule(read(tmp_path, binomial_reduce(8, 1024)), model)
    assert sorted(times, reverse=True) == [34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500]
    assert times[0] == 34914


def test_loggops_gives_the_published_time_of_a_barrier(tmp_path):
    assert cost_schedule(read(tmp_path, dissemination(16)), LogGops()) == [22000] * 16


def test_loggops_charges_what_is_computed_and_the_gap(tmp_path):
    text = "num_ranks 2\nrank 0 {\nc: calc 700\na: send 11b to 1 tag 1\nb: send 11b to 1 tag 2\n"
    text += "a requires c\nb requires a\n}\nrank 1 {\nrecv 11b from 0 tag 1\nrecv 11b from 0 tag 2\n}\n"
    times = cost_schedule(read(tmp_path, text), LogGops(L=100, o=10, g=50, G=2, O=1))
    # the second send waits for the card: 700 + 50 + 10 * 2, and takes 10 + 10 * 1 of the processor
    assert times == [770 + 20, 770 + 10 + 100 + 10 + 20]


def test_loggops_refuses_what_it_does_not_model(tmp_path):
    schedule = read(tmp_path, binomial_reduce(2, 1000))
    with pytest.raises(InputError, match="line 6: has 1,000 bytes, and S is 999; take a larger S"):
        cost_schedule(schedule, LogGops(S=999))
    for text in ("L=x", "l=1", "L=1,L=2", "o=-1", "G"):
        with pytest.raises(InputError, match="should be numbers for L, o, g, G, O, S, each once"):
            read_loggops(text, "--loggops")


# ---------------------------------------------------------------------------------------------------------------------
# GOAL


def test_a_message_waits_for_what_its_rank_must_have_received(tmp_path):
    steps = make_messages(read(tmp_path, binomial_reduce(4, 10)))
    pairs = list(zip(steps.source.tolist(), steps.destination.tolist(), strict=True))
    assert pairs == [(1, 0), (2, 0), (3, 2)]
    assert steps.waits.count.tolist() == [0, 1, 0]
    assert steps.waits.arrived.tolist() == [1]  # the message of rank 3 releases that of rank 2
    assert steps.waits.arrived_start.tolist() == [0, 0, 0, 1]


def test_waiting_goes_through_computations_and_begins(tmp_path):
    text = (
        "num_ranks 3\nrank 0 {\na: send 5b to 1\n}\nrank 1 {\nr: recv 5b from 0\nc: calc 9\ns: send 6b to 2\n"
        "t: send 7b to 2 tag 3\nc requires r\ns requires c\nt irequires r\n}\n"
        "rank 2 { \nrecv 6b from 1\nrecv 7b from 1 tag 3\n}\n"
    )
    steps = make_messages(read(tmp_path, text))
    waiting = dict(zip(steps.size.tolist(), steps.waits.count.tolist(), strict=True))
    assert waiting == {5: 0, 6: 1, 7: 0}  # that of 7 bytes waits only for the receive to have begun


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}\n"
            "rank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb requires a\n}\n",
            "operations wait for each other: line 3 (recv of rank 0) for line 9 (send of rank 1) "
            "for line 8 (recv of rank 1) for line 4 (send of rank 0) for line 3 (recv of rank 0); "
            "take out one of what they wait for",
        ),
        ("num_ranks 3\nrank 0 {\n}\nrank 2 {\n}\n", "says num_ranks 3 and has nothing of rank 1; add rank 1 { }"),
        ("num_ranks 1\nrank 0 {\nsend 1b to 4\n}\n", "line 3: there is no rank 4; ranks are numbered from 0 to 0"),
        ("num_ranks 1\nrank 0 {\nsend 1b to 0\n}\n", "line 3: rank 0 sends to itself; take the operation away"),
        (
            "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 7\n}\nrank 1 {\n}\n",
            "line 3: rank 0 sends a message of tag 7 to rank 1, which does not take it",
        ),
        (
            "num_ranks 2\nrank 0 {\n}\nrank 1 {\nrecv 1b from 0\n}\n",
            "line 5: rank 1 waits for a message of tag 0 from rank 0, which does not send it",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 9b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n",
            "line 6: takes 8 bytes, and line 3 sends 9",
        ),
        ("num_ranks 1\nrank 0 {\ncalc 1\n", "ends inside of rank 0; it was cut off, or lacks a }"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}\n", "line 4: rank 0 has no operation b"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}\n", "line 4: the label a is there twice"),
        ("num_ranks 1\nrank 0 {\n\x1b[31m\n}\n", 'line 3: is no operation of GOAL: "\\u001b[31m"'),
        ("num_ranks 1\nrank 4 {\n}\n", "line 2: rank 4 is none of num_ranks 1"),
        ("hello", "is in no known format of schedules"),
    ],
)  # fmt: skip
def test_schedules_that_cannot_be_have_a_sentence(text, lines, tmp_path):
    assert lines in "\n".join(refusal(tmp_path, text))


# ---------------------------------------------------------------------------------------------------------------------
# htsim, SimGrid


def test_a_matrix_of_htsim_begins_all_at_once(tmp_path):
    text = "Nodes 4\nConnections 3\n0->2 id 1 start 0 size 2000\n0->2 id 2 start 0 size 3000\n1->0 start 0 size 5\n"
    steps = make_messages(read(tmp_path, text))
    assert steps.size.tolist() == [2000, 3000, 5]
    assert steps.waits.count.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Nodes 4\nConnections 2\n0->2 start 0 size 20\n", "says Connections 2 and has 1; was it cut off?"),
        ("Nodes 4\n0->2 start 0 size 20\n0->3 start 5 size 20\n", "start: has several values"),
        ("Nodes 4\n0->4 start 0 size 20\n", "line 2: there is no node 4; Nodes is 4"),
        ("Nodes 4\n0->1 size 20 trigger 3\n", 'line 2: "trigger" lets a connection wait for another'),
        ("Nodes 4\n0->1 start 0\n", "line 2: size should be bytes"),
        ("Nodes 4\nx\n", "line 2: should be a line such as 7->5 start 0 size 2000000"),
        ("Nodes 4\n", "has no connection"),
    ],
)
def test_matrices_of_htsim_that_cannot_be_have_a_sentence(text, sentence, tmp_path):
    assert sentence in "\n".join(refusal(tmp_path, text))


def test_actions_of_simgrid_are_in_order(tmp_path):
    text = (
        "0 init\n1 init\n2 init\n0 compute 1e9\n0 send 1 4 1e3\n1 irecv 0 4 1e3\n1 send 2 0 50 5\n1 wait 0 1 4\n"
        "1 send 2 1 60\n2 recv 1 0 50 5\n2 recv 1 1 60\n0 finalize\n"
    )
    schedule = read(tmp_path, text)
    steps = make_messages(schedule)
    assert steps.size.tolist() == [1000, 200, 60]
    # the second message of rank 1 waits for its first to have begun and for that of rank 0; the first for nothing
    assert steps.waits.count.tolist() == [0, 0, 2]
    assert schedule.notes == ("passed over: compute (1×), finalize (1×)",)


@pytest.mark.parametrize(
    ("action", "messages", "size"),
    [
        ("barrier", 8 * 3, 8 * 3), ("bcast 100 3", 7, 7 * 100), ("reduce 100 5e8 2", 7, 7 * 100),
        ("allreduce 100 5e8 0", 14, 14 * 800), ("gather 10 10 1", 7, 70), ("scatter 10 10 1", 7, 70),
        ("allgather 10 10", 56, 560), ("alltoall 10 10", 56, 560),
        ("alltoallv 8 1 1 1 1 1 1 1 1 8 1 1 1 1 1 1 1 1", 56, 56),
    ],
)  # fmt: skip
def test_collectives_of_simgrid_become_messages(action, messages, size, tmp_path):
    steps = make_messages(read(tmp_path, "".join(f"{rank} init\n{rank} {action}\n" for rank in range(8))))
    assert (len(steps.size), steps.size.sum()) == (messages, size)


def test_a_trace_may_be_a_list_of_files_beside_it(tmp_path):
    (tmp_path / "t0.txt").write_text("0 init 1\n0 send 1 0 10\n")
    (tmp_path / "t1.txt").write_text("1 init 1\n1 recv 0 0 10\n")
    assert make_messages(read(tmp_path, "gone/t0.txt\nt1.txt\n")).size.tolist() == [80]  # of doubles
    assert refusal(tmp_path, "../t0.txt\n") == ['"../t0.txt": lies outside of the folder of the list; put it there']
    assert refusal(tmp_path, "t7.txt\n") == [f'"t7.txt": there is no such file in {tmp_path}']
    (tmp_path / "t2.txt").symlink_to("/etc/passwd")
    assert '"t2.txt": cannot be read' in refusal(tmp_path, "t2.txt\n")[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0 init\n2 init\n", "has nothing of rank 1; a trace has a part of every rank"),
        ("0 barrier\n1 bcast 5\n", "line 2: collective 1 of rank 1 is bcast, and that of rank 0 barrier (line 1)"),
        ("0 barrier\n1 init\n", "rank 1 takes part in 0 collectives, rank 0 in 1"),
        ("0 init\n0 comm_split 1\n", 'line 2: the action "comm_split" cannot be read'),
        ("0 init\n0 send 1\n", 'line 2: "send" lacks a number'),
        ("0 init\n0 send x 1 2\n", 'line 2: should have numbers, not "x"'),
        ("0 init\n1 init\n0 send 1 0 5 99\n", "has a datatype that is not known"),
        ("0 recv 1 0 9\n0 send 1 0 9\n1 recv 0 0 9\n1 send 0 0 9\n", "operations wait for each other: line 1"),
        ("0 init\n1 init\n0 send 1 0 1e30\n", "has a number beyond 2^50"),
    ],
)
def test_traces_of_simgrid_that_cannot_be_have_a_sentence(text, sentence, tmp_path):
    assert sentence in "\n".join(refusal(tmp_path, text))


def test_every_format_of_schedules_says_what_it_does():
    for entry in SCHEDULE_FORMATS.values():
        assert {"read", "passed over"} <= {*entry.constructs.values()}

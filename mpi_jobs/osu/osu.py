"""Latency, bandwidth and all-to-all as the OSU micro-benchmarks measure and print them, with every byte verified.

usage: osu.py [--tests latency,bw,bibw,alltoall] [--sizes BYTES,...] [--pair FROM-TO] [--iterations N] [--warmup N]
              [--window N] [--corrupt RANK]

A time is the mean over all iterations but the warm-up, which are not counted one by one. Messages are verified
between the iterations, outside of the time.

Exit codes: 0 all done and verified, 2 bad arguments; wrong data ends the job by MPI_Abort(3).
"""

import argparse
import random
import sys
import time
from importlib.metadata import version

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
rank, ranks = WORLD.rank, WORLD.size


class Arguments(argparse.ArgumentParser):
    """One sentence, from rank 0 alone."""

    def error(self, message):
        if rank == 0:
            print(f"osu: {message}", file=sys.stderr)
        sys.exit(2)


def main():
    options = read_options()
    for name in options.tests:
        title, columns, measure = TESTS[name]
        if rank == 0:
            print(f"# OSU-style MPI {title} Test, mpi4py {version('mpi4py')}")
            if name != "alltoall":
                print("# Ranks {} {}".format(*options.pair))
            if name in ("bw", "bibw"):
                print(f"# Window {options.window}")
            print(f"# {'Size':<10}" + "".join(f"{column:>22}" for column in (*columns, "Iterations", "Validation")))
        for size in options.sizes:
            figures = measure(size, options)
            if rank == 0:
                cells = "".join(f"{figure:>22.6f}" for figure in figures)
                print(f"{size:<12}{cells}{options.iterations:>22}{'Pass':>22}", flush=True)
        if rank == 0:
            print()
    WORLD.Barrier()
    if rank == 0:
        print("# All data verified")


def read_options():
    parser = Arguments(prog="osu", allow_abbrev=False)
    parser.add_argument("--tests", type=names, default=list(TESTS))
    parser.add_argument("--sizes", type=numbers, default=[1, 1024, 16384])
    parser.add_argument("--pair", type=pair, default=(0, ranks - 1))
    parser.add_argument("--iterations", type=number, default=10)
    parser.add_argument("--warmup", type=number, default=2)
    parser.add_argument("--window", type=number, default=16)
    parser.add_argument("--corrupt", type=number, default=-1, help="that rank spoils one byte it receives")
    options = parser.parse_args()
    if ranks < 2:
        parser.error("needs at least two ranks")
    if options.iterations < 1 or options.window < 1:
        parser.error("--iterations and --window should be 1 or more")
    if options.pair[0] == options.pair[1] or max(options.pair) >= ranks:
        parser.error("--pair should be two different ranks from 0 to {}, not {}-{}".format(ranks - 1, *options.pair))
    return options


def number(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'should be a whole number, not "{text}"')
    return int(text)


def numbers(text):
    return [number(part) for part in text.split(",")]


def pair(text):
    first, dash, second = text.partition("-")
    if not dash:
        raise argparse.ArgumentTypeError(f'should be two ranks such as 0-1, not "{text}"')
    return number(first), number(second)


def names(text):
    chosen = text.split(",")
    for name in chosen:
        if name not in TESTS:
            raise argparse.ArgumentTypeError(f'knows {", ".join(TESTS)}, not "{name}"')
    return chosen


# --- messages that cannot be mistaken for each other ----------------------------------------------------------


def content(size, *place):
    return bytearray(random.Random(repr(place)).randbytes(size))


def verify(received, expected, options):
    if options.corrupt == rank and received:
        received[len(received) // 2] ^= 0x10
    if received != expected:
        print(f"osu: Rank {rank} received wrong data.", file=sys.stderr, flush=True)
        time.sleep(0.3)  # MPI_Abort makes the process manager drop what it has not yet read
        WORLD.Abort(3)


# --- tests ----------------------------------------------------------------------------------------------------


def turns(options):
    """Number of each iteration, and whether its time counts."""
    return ((turn, turn >= options.warmup) for turn in range(options.warmup + options.iterations))


def latency(size, options):
    """Half the round trip in µs, valid on rank 0."""
    first, second = options.pair
    seconds = 0.0
    for turn, counts in turns(options):
        message, buffer = content(size, "latency", size, turn), bytearray(size)
        if rank == first:
            WORLD.Recv(bytearray(), second)  # it is ready
            start = MPI.Wtime()
            WORLD.Send(message, second)
            WORLD.Recv(buffer, second)
            seconds += (MPI.Wtime() - start) * counts
            verify(buffer, message, options)
        elif rank == second:
            request = WORLD.Irecv(buffer, first)
            WORLD.Send(b"", first)
            request.Wait()
            WORLD.Send(buffer, first)
            verify(buffer, message, options)
    return [told(seconds, first) / options.iterations / 2 * 1e6]


def bandwidth(size, options, *, both=False):
    """MB/s of windows of messages one way, or both ways together, valid on rank 0."""
    first, second = options.pair
    seconds = 0.0
    for turn, counts in turns(options):
        if rank in options.pair:
            partner = second if rank == first else first
            sends, receives = rank == first or both, rank == second or both
            out = [content(size, rank, size, turn, place) for place in range(options.window)] if sends else []
            expected = (
                [content(size, partner, size, turn, place) for place in range(options.window)] if receives else []
            )
            buffers = [bytearray(size) for _ in expected]
            requests = [WORLD.Irecv(buffer, partner, 1) for buffer in buffers]
            WORLD.Sendrecv(b"", partner, 2, bytearray(), partner, 2)  # both are ready
            start = MPI.Wtime()
            MPI.Request.Waitall(requests + [WORLD.Isend(message, partner, 1) for message in out])
            WORLD.Sendrecv(b"", partner, 3, bytearray(), partner, 3)  # all has arrived
            seconds += (MPI.Wtime() - start) * counts
            for buffer, message in zip(buffers, expected, strict=True):
                verify(buffer, message, options)
    moved = size * options.window * options.iterations * (2 if both else 1)
    seconds = told(seconds, first)
    return [moved / seconds / 1e6 if seconds else 0.0]


def bidirectional(size, options):
    return bandwidth(size, options, both=True)


def alltoall(size, options):
    """Mean, least and largest of the ranks' mean times in µs, valid on rank 0."""
    seconds = 0.0
    for turn, counts in turns(options):
        out = bytearray().join(content(size, "alltoall", size, turn, rank, other) for other in range(ranks))
        expected = bytearray().join(content(size, "alltoall", size, turn, other, rank) for other in range(ranks))
        buffer = bytearray(size * ranks)
        WORLD.Barrier()
        start = MPI.Wtime()
        WORLD.Alltoall([out, size, MPI.BYTE], [buffer, size, MPI.BYTE])
        seconds += (MPI.Wtime() - start) * counts
        verify(buffer, expected, options)
    mean = seconds / options.iterations * 1e6
    every = WORLD.gather(mean) or [mean]
    return [sum(every) / len(every), min(every), max(every)]


def told(value, by):
    """What one rank knows, on rank 0, once all ranks have come here."""
    return (WORLD.gather(value) or [value] * ranks)[by]


TESTS = {
    "latency": ("Latency", ["Latency (us)"], latency),
    "bw": ("Bandwidth", ["Bandwidth (MB/s)"], bandwidth),
    "bibw": ("Bi-Directional Bandwidth", ["Bandwidth (MB/s)"], bidirectional),
    "alltoall": (
        "All-to-All Personalized Exchange Latency",
        ["Avg Latency(us)", "Min Latency(us)", "Max Latency(us)"],
        alltoall,
    ),
}

if __name__ == "__main__":
    main()

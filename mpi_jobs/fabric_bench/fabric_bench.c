/*
 * fabric_bench: what a fabric feels like to an MPI program.
 *
 * Three tests, each of which checks what it moved:
 *
 *   pingpong  half the round-trip time of a message between two ranks, all other ranks silent
 *   alltoall  MPI_Alltoall over all ranks; its time is that of the slowest rank
 *   barrier   MPI_Barrier over all ranks; its time is that of the slowest rank
 *
 * Every message is filled with a pattern that depends on its test, sender, receiver and turn, and is compared byte
 * by byte after the clock has stopped. A wrong byte ends the job through MPI_Abort with a sentence on stderr.
 *
 * Rank 0 prints one JSON object a line on stdout. Times are in seconds, sizes in bytes, rates in bits per second.
 * "fabric_bytes" is the least number of payload bytes that a test, its warm-up included, moves between hosts: their
 * interfaces must have sent at least that much, or the messages took another way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { TAG_DATA = 1, TAG_READY, TAG_RESULT };

enum test { PINGPONG, ALLTOALL, BARRIER };
static const char *const test_names[] = {"pingpong", "alltoall", "barrier", NULL};

struct options {
    struct numbers tests; /* in the order asked for */
    struct numbers sizes; /* bytes a ping-pong message */
    struct pairs pairs;
    int alltoall_bytes; /* from each rank to each other rank */
    int repeats;        /* timed turns */
    int warmup;         /* turns before them, not timed */
};

static const char usage[] =
    "usage: fabric_bench [--tests pingpong,alltoall,barrier] [--sizes BYTES,...] [--pairs FROM-TO,...]\n"
    "                    [--alltoall-bytes BYTES] [--repeats N] [--warmup N] [--corrupt RANK]\n"
    "\n"
    "  --tests           the tests, in this order (default: all three)\n"
    "  --sizes           bytes a ping-pong message (default 1,1024,65536)\n"
    "  --pairs           ranks that play ping-pong, one pair after the other (default: first and last rank)\n"
    "  --alltoall-bytes  bytes that each rank sends to each other rank in one all-to-all (default 20000)\n"
    "  --repeats         timed turns of each test (default 10)\n"
    "  --warmup          turns before them that are not timed (default 2)\n"
    "  --corrupt         that rank spoils one byte it receives: the job must then fail (tests the verification)\n";

static void print_spread(struct spread spread)
{
    printf("\"seconds_min\":%.9f,\"seconds_median\":%.9f,\"seconds_max\":%.9f", spread.min, spread.median,
           spread.max);
}

/* ---------------------------------------------------------------------------------------------------- tests */

/*
 * One pair, one size. The receiver posts its receive and says that it is ready before the sender starts the clock;
 * both ends verify after the clock has stopped. All other ranks wait in the barrier at the end.
 * Returns the payload bytes that crossed the fabric, on every rank.
 */
static uint64_t pingpong(struct pair pair, int bytes, const struct options *options)
{
    int turns = options->warmup + options->repeats;
    struct spread spread = {0};

    if (rank == pair.from) {
        unsigned char *out = allocate((size_t) bytes, 1), *in = allocate((size_t) bytes, 1);
        double *times = allocate((size_t) options->repeats, sizeof *times);

        for (int turn = 0; turn < turns; turn++) {
            uint64_t seed = seed_of(PINGPONG, pair.from, pair.to, bytes, turn);
            double start, stop;

            fill(out, (size_t) bytes, seed);
            MPI_Recv(NULL, 0, MPI_BYTE, pair.to, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            start = MPI_Wtime();
            MPI_Send(out, bytes, MPI_BYTE, pair.to, TAG_DATA, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, pair.to, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            stop = MPI_Wtime();
            verify(in, (size_t) bytes, seed, test_names[PINGPONG], pair.to, turn);
            if (turn >= options->warmup)
                times[turn - options->warmup] = (stop - start) / 2;
        }
        spread = spread_of(times, options->repeats);
        free(times);
        free(in);
        free(out);
        if (rank != 0)
            MPI_Send(&spread, 3, MPI_DOUBLE, 0, TAG_RESULT, MPI_COMM_WORLD);
    } else if (rank == pair.to) {
        unsigned char *buffer = allocate((size_t) bytes, 1);

        for (int turn = 0; turn < turns; turn++) {
            MPI_Request request;

            MPI_Irecv(buffer, bytes, MPI_BYTE, pair.from, TAG_DATA, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, pair.from, TAG_READY, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_BYTE, pair.from, TAG_DATA, MPI_COMM_WORLD);
            verify(buffer, (size_t) bytes, seed_of(PINGPONG, pair.from, pair.to, bytes, turn), test_names[PINGPONG],
                   pair.from, turn);
        }
        free(buffer);
    }
    if (rank == 0 && pair.from != 0)
        MPI_Recv(&spread, 3, MPI_DOUBLE, pair.from, TAG_RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);

    uint64_t fabric_bytes = apart(pair.from, pair.to) ? 2 * (uint64_t) bytes * (uint64_t) turns : 0;

    if (rank == 0) {
        printf("{\"test\":\"pingpong\",\"from\":%d,\"to\":%d,\"bytes\":%d,\"repeats\":%d,", pair.from, pair.to, bytes,
               options->repeats);
        print_spread(spread);
        printf(",\"bits_per_second\":%.0f,\"fabric_bytes\":%" PRIu64 "}\n",
               spread.median > 0 ? 8.0 * bytes / spread.median : 0.0, fabric_bytes);
        fflush(stdout);
    }
    return fabric_bytes;
}

/* Returns the least payload bytes that must cross, on every rank: each rank needs its block from all on other hosts. */
static uint64_t alltoall(const struct options *options)
{
    int bytes = options->alltoall_bytes;
    int turns = options->warmup + options->repeats;
    size_t block = (size_t) bytes;
    unsigned char *out = allocate(block, (size_t) ranks), *in = allocate(block, (size_t) ranks);
    double *times = allocate((size_t) turns, sizeof *times), *slowest = allocate((size_t) turns, sizeof *slowest);

    for (int turn = 0; turn < turns; turn++) {
        double start;

        for (int other = 0; other < ranks; other++)
            fill(out + block * (size_t) other, block, seed_of(ALLTOALL, rank, other, bytes, turn));
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        times[turn] = MPI_Wtime() - start;
        for (int other = 0; other < ranks; other++)
            verify(in + block * (size_t) other, block, seed_of(ALLTOALL, other, rank, bytes, turn),
                   test_names[ALLTOALL], other, turn);
    }
    MPI_Reduce(times, slowest, turns, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    uint64_t fabric_bytes = pairs_apart() * (uint64_t) bytes * (uint64_t) turns;

    if (rank == 0) {
        struct spread spread = spread_of(slowest + options->warmup, options->repeats);

        printf("{\"test\":\"alltoall\",\"ranks\":%d,\"bytes\":%d,\"repeats\":%d,", ranks, bytes, options->repeats);
        print_spread(spread);
        printf(",\"fabric_bytes\":%" PRIu64 "}\n", fabric_bytes);
        fflush(stdout);
    }
    free(slowest);
    free(times);
    free(in);
    free(out);
    return fabric_bytes;
}

/*
 * A barrier moves no payload; what can be checked is that nobody left before everybody had come. That needs a clock
 * common to all ranks, so it is checked where all ranks run on one kernel, as they do in a lab.
 */
static uint64_t barrier(const struct options *options)
{
    int turns = options->warmup + options->repeats;
    size_t count = (size_t) turns, size = sizeof(double);
    double *entered = allocate(count, size), *left = allocate(count, size), *times = allocate(count, size);
    double *last_entered = allocate(count, size), *first_left = allocate(count, size);
    double *slowest = allocate(count, size);
    bool comparable = ranks_share_a_clock();

    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < turns; turn++) {
        entered[turn] = machine_clock();
        MPI_Barrier(MPI_COMM_WORLD);
        left[turn] = machine_clock();
        if (corrupt == rank)
            left[turn] = entered[turn] - 1;
        times[turn] = left[turn] - entered[turn];
    }
    MPI_Reduce(entered, last_entered, turns, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(left, first_left, turns, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(times, slowest, turns, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        struct spread spread;

        for (int turn = 0; comparable && turn < turns; turn++)
            if (first_left[turn] < last_entered[turn])
                fail("A rank left turn %d of barrier %.6f s before the last rank had entered it.", turn,
                     last_entered[turn] - first_left[turn]);
        spread = spread_of(slowest + options->warmup, options->repeats);
        printf("{\"test\":\"barrier\",\"ranks\":%d,\"repeats\":%d,", ranks, options->repeats);
        print_spread(spread);
        printf(",\"fabric_bytes\":0}\n");
        fflush(stdout);
    }
    free(slowest);
    free(first_left);
    free(last_entered);
    free(times);
    free(left);
    free(entered);
    return 0;
}

/* ----------------------------------------------------------------------------------------------------- main */

int main(int argc, char **argv)
{
    struct options options = {
        .tests = {(int[]){PINGPONG, ALLTOALL, BARRIER}, 3},
        .sizes = {(int[]){1, 1024, 65536}, 3},
        .pairs = {&(struct pair){0}, 1},
        .alltoall_bytes = 20000,
        .repeats = 10,
        .warmup = 2,
    };
    const struct option table[] = {
        {"--tests", NAMES, &options.tests, 0, 0, test_names},
        {"--sizes", NUMBERS, &options.sizes, 0, MAX_BYTES, NULL},
        {"--pairs", PAIRS, &options.pairs, 0, 0, NULL},
        {"--alltoall-bytes", NUMBER, &options.alltoall_bytes, 1, MAX_BYTES, NULL},
        {"--repeats", NUMBER, &options.repeats, 1, MAX_TURNS, NULL},
        {"--warmup", NUMBER, &options.warmup, 0, MAX_TURNS, NULL},
        {"--corrupt", NUMBER, &corrupt, 0, MAX_TURNS, NULL},
    };
    uint64_t fabric_bytes = 0;

    start(&argc, &argv, "fabric_bench");
    options.pairs.at->to = ranks - 1;
    read_options(argc, argv, table, sizeof table / sizeof *table, usage);
    check_pairs("--pairs", &options.pairs);
    for (int i = 0; i < options.tests.count; i++) {
        switch (options.tests.at[i]) {
        case PINGPONG:
            for (int pair = 0; pair < options.pairs.count; pair++)
                for (int size = 0; size < options.sizes.count; size++)
                    fabric_bytes += pingpong(options.pairs.at[pair], options.sizes.at[size], &options);
            break;
        case ALLTOALL:
            fabric_bytes += alltoall(&options);
            break;
        default:
            fabric_bytes += barrier(&options);
        }
    }
    return finish(fabric_bytes);
}

/*
 * collectives: the communication patterns of the Intel MPI Benchmarks' MPI-1 part, with every byte verified.
 *
 *   PingPong        half the round-trip time between two ranks, all others silent
 *   PingPing        two ranks send to each other at once
 *   Multi-PingPing  ranks 0 and 1, 2 and 3, ... all at once; with an odd number the last rank is idle
 *   Alltoall        MPI_Alltoall over all ranks
 *   Allreduce       MPI_Allreduce over all ranks, sum of 32-bit floats
 *   Barrier         MPI_Barrier over all ranks
 *
 * A rank's time is its mean over the timed turns; printed are the least, the mean and the largest of all ranks that
 * take part ("over":"ranks"), but of a PingPong those of its turns. The ranks that take part wait for each other
 * before every turn, outside of its time.
 *
 * Floats are sums of whole numbers below 256, so exact in any order. "fabric_bytes" is the least number of payload
 * bytes that a test, its warm-up included, moves between hosts; of an Allreduce, that each host must tell the others
 * its part at least once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { TAG = 1 };

enum test { PING_PONG, PING_PING, MULTI_PING_PING, ALLTOALL, ALLREDUCE, BARRIER };
static const char *const test_names[] = {"PingPong", "PingPing", "Multi-PingPing", "Alltoall", "Allreduce", "Barrier",
                                         NULL};

struct options {
    struct numbers tests; /* in the order asked for */
    struct numbers sizes; /* bytes a message, or that each rank contributes */
    struct pairs pair;    /* of PingPong and PingPing */
    int repeats;          /* timed turns */
    int warmup;           /* turns before them, not timed */
};

static const char usage[] =
    "usage: collectives [--tests PingPong,PingPing,Multi-PingPing,Alltoall,Allreduce,Barrier] [--sizes BYTES,...]\n"
    "                   [--pair FROM-TO] [--repeats N] [--warmup N] [--corrupt RANK]\n"
    "\n"
    "  --tests    the tests, in this order (default: all)\n"
    "  --sizes    bytes a message; Allreduce needs multiples of 4 (default 4,1024,16384)\n"
    "  --pair     ranks of PingPong and PingPing (default: first and last rank)\n"
    "  --repeats  timed turns of each test (default 10)\n"
    "  --warmup   turns before them that are not timed (default 2)\n"
    "  --corrupt  that rank spoils one byte it receives: the job must then fail (tests the verification)\n";

/* ------------------------------------------------------------------------------------------------ one test turn */

/* What one rank does in a test. */
struct part {
    enum test test;
    int bytes;
    int partner;             /* of the tests of two ranks */
    bool first;              /* of its pair: the one that begins a PingPong */
    unsigned char *out, *in; /* `ranks` times `bytes` */
};

static uint64_t seed(const struct part *part, int from, int to, int turn)
{
    return seed_of((int) part->test, from, to, part->bytes, turn);
}

static void fill_floats(const struct part *part, int turn)
{
    float *values = (float *) (void *) part->out;

    for (int i = 0; i < part->bytes / 4; i++)
        values[i] = (float) (word_of(seed(part, rank, 0, turn), (size_t) i) & 255);
}

static void verify_floats(const struct part *part, int turn)
{
    const float *values = (const float *) (void *) part->in;

    for (int i = 0; i < part->bytes / 4; i++) {
        float sum = corrupt == rank && i == 0 ? 1 : 0;

        for (int other = 0; other < ranks; other++)
            sum += (float) (word_of(seed(part, other, 0, turn), (size_t) i) & 255);
        if (values[i] != sum)
            fail("Rank %d has a wrong sum in turn %d of Allreduce: number %d is %g instead of %g.", rank, turn, i,
                 (double) values[i], (double) sum);
    }
}

static void prepare(const struct part *part, int turn)
{
    size_t bytes = (size_t) part->bytes;

    switch (part->test) {
    case PING_PONG:
        if (part->first)
            fill(part->out, bytes, seed(part, rank, part->partner, turn));
        break;
    case ALLTOALL:
        for (int other = 0; other < ranks; other++)
            fill(part->out + bytes * (size_t) other, bytes, seed(part, rank, other, turn));
        break;
    case ALLREDUCE:
        fill_floats(part, turn);
        break;
    case BARRIER:
        break;
    default:
        fill(part->out, bytes, seed(part, rank, part->partner, turn));
    }
}

/* The timed piece. */
static void communicate(const struct part *part)
{
    int bytes = part->bytes, partner = part->partner;
    MPI_Request request;

    switch (part->test) {
    case PING_PONG:
        if (part->first) {
            MPI_Send(part->out, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
            MPI_Recv(part->in, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(part->in, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(part->in, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        }
        break;
    case ALLTOALL:
        MPI_Alltoall(part->out, bytes, MPI_BYTE, part->in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        break;
    case ALLREDUCE:
        MPI_Allreduce(part->out, part->in, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    default:
        MPI_Isend(part->out, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &request);
        MPI_Recv(part->in, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void check(const struct part *part, int turn)
{
    const char *name = test_names[part->test];
    size_t bytes = (size_t) part->bytes;
    int partner = part->partner;

    switch (part->test) {
    case PING_PONG: /* the message of the first comes back to it */
        verify(part->in, bytes, part->first ? seed(part, rank, partner, turn) : seed(part, partner, rank, turn), name,
               partner, turn);
        break;
    case ALLTOALL:
        for (int other = 0; other < ranks; other++)
            verify(part->in + bytes * (size_t) other, bytes, seed(part, other, rank, turn), name, other, turn);
        break;
    case ALLREDUCE:
        verify_floats(part, turn);
        break;
    case BARRIER:
        break;
    default:
        verify(part->in, bytes, seed(part, partner, rank, turn), name, partner, turn);
    }
}

/* --------------------------------------------------------------------------------------------------- one test */

/* Nobody may have left a barrier before everybody had entered it; `first_left` and `last_entered` are of rank 0. */
static void check_barrier(const double *last_entered, const double *first_left, int turns)
{
    for (int turn = 0; turn < turns; turn++)
        if (first_left[turn] < last_entered[turn])
            fail("A rank left turn %d of Barrier %.6f s before the last rank had entered it.", turn,
                 last_entered[turn] - first_left[turn]);
}

/* All turns of one test among the ranks of `comm`; gives the begin and the end of each on the machine's clock. */
static void run(const struct part *part, MPI_Comm comm, int turns, double *begin, double *end)
{
    for (int turn = 0; turn < turns; turn++) {
        prepare(part, turn);
        MPI_Barrier(comm);
        begin[turn] = machine_clock();
        communicate(part);
        end[turn] = machine_clock();
        if (part->test == BARRIER && corrupt == rank)
            end[turn] = begin[turn] - 1;
        check(part, turn);
    }
}

/* Payload bytes between hosts in one turn, at least. */
static uint64_t turn_bytes(enum test test, struct pair pair, int bytes)
{
    uint64_t size = (uint64_t) bytes, pairs = 0;

    switch (test) {
    case PING_PONG:
    case PING_PING:
        return apart(pair.from, pair.to) ? 2 * size : 0;
    case MULTI_PING_PING:
        for (int one = 0; one + 1 < ranks; one += 2)
            pairs += apart(one, one + 1);
        return 2 * size * pairs;
    case ALLTOALL:
        return size * pairs_apart();
    case ALLREDUCE:
        return hosts() > 1 ? size * (uint64_t) hosts() : 0;
    default:
        return 0;
    }
}

static void print_line(enum test test, struct pair pair, int bytes, int repeats, const double *low_mean_high,
                       uint64_t fabric_bytes)
{
    static const char *const json_names[] = {"pingpong", "pingping", "multi_pingping", "alltoall", "allreduce",
                                             "barrier"};

    printf("{\"test\":\"%s\",", json_names[test]);
    if (test == PING_PONG || test == PING_PING)
        printf("\"from\":%d,\"to\":%d,", pair.from, pair.to);
    else
        printf("\"ranks\":%d,", ranks);
    if (test != BARRIER)
        printf("\"bytes\":%d,", bytes);
    if (test != PING_PONG)
        printf("\"over\":\"ranks\",");
    printf("\"repeats\":%d,\"seconds_min\":%.9f,\"seconds_mean\":%.9f,\"seconds_max\":%.9f,\"fabric_bytes\":%" PRIu64
           "}\n", repeats, low_mean_high[0], low_mean_high[1], low_mean_high[2], fabric_bytes);
    fflush(stdout);
}

/* Least, mean and largest of what the ranks that take part bring; valid on rank 0. */
static void reduce(double low, double sum, double high, int count, bool takes_part, double *low_mean_high)
{
    double all[2] = {takes_part ? sum : 0, takes_part ? count : 0}, totals[2];

    if (!takes_part) {
        low = 1e300;
        high = 0;
    }
    MPI_Reduce(&low, &low_mean_high[0], 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(all, totals, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&high, &low_mean_high[2], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        low_mean_high[1] = totals[0] / totals[1];
}

/* Returns the payload bytes between hosts, on every rank. */
static uint64_t measure(enum test test, int bytes, const struct options *options)
{
    struct pair pair = *options->pair.at;
    int turns = options->warmup + options->repeats;
    size_t buffer = test == ALLTOALL ? (size_t) bytes * (size_t) ranks : (size_t) bytes;
    struct part part = {.test = test, .bytes = bytes, .partner = -1};
    bool two = test == PING_PONG || test == PING_PING;
    bool takes_part = test != MULTI_PING_PING || (rank ^ 1) < ranks;
    double *begin = allocate((size_t) turns, sizeof *begin), *end = allocate((size_t) turns, sizeof *end);
    double low_mean_high[3];
    uint64_t fabric_bytes = turn_bytes(test, pair, bytes) * (uint64_t) turns;
    MPI_Comm comm;

    if (two) {
        takes_part = rank == pair.from || rank == pair.to;
        part.first = rank == pair.from;
        part.partner = part.first ? pair.to : pair.from;
    } else if (test == MULTI_PING_PING) {
        part.partner = rank ^ 1;
    }
    MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank, &comm);
    if (takes_part) {
        part.out = allocate(buffer, 1);
        part.in = allocate(buffer, 1);
        run(&part, comm, turns, begin, end);
        free(part.in);
        free(part.out);
        MPI_Comm_free(&comm);
    }
    if (test == BARRIER) {
        double *last = allocate((size_t) turns, sizeof *last), *first = allocate((size_t) turns, sizeof *first);
        bool comparable = ranks_share_a_clock();

        MPI_Reduce(begin, last, turns, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(end, first, turns, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        if (rank == 0 && comparable)
            check_barrier(last, first, turns);
        free(first);
        free(last);
    }

    double sum = 0, low = 1e300, high = 0;

    for (int turn = options->warmup; turn < turns; turn++) {
        double seconds = (end[turn] - begin[turn]) / (test == PING_PONG ? 2 : 1);

        sum += seconds;
        low = seconds < low ? seconds : low;
        high = seconds > high ? seconds : high;
    }
    if (test == PING_PONG)
        reduce(low, sum, high, options->repeats, part.first, low_mean_high);
    else
        reduce(sum / options->repeats, sum / options->repeats, sum / options->repeats, 1, takes_part, low_mean_high);
    if (rank == 0)
        print_line(test, pair, bytes, options->repeats, low_mean_high, fabric_bytes);
    free(end);
    free(begin);
    return fabric_bytes;
}

/* ------------------------------------------------------------------------------------------------------- main */

static void check_options(const struct options *options)
{
    check_pairs("--pair", &options->pair);
    if (options->pair.count > 1)
        refuse("--pair needs one pair, not %d.", options->pair.count);
    for (int i = 0; i < options->tests.count; i++)
        for (int size = 0; options->tests.at[i] == ALLREDUCE && size < options->sizes.count; size++)
            if (options->sizes.at[size] % 4)
                refuse("--sizes has %d, but Allreduce adds numbers of 4 bytes: use multiples of 4.",
                       options->sizes.at[size]);
}

int main(int argc, char **argv)
{
    struct options options = {
        .tests = {(int[]){PING_PONG, PING_PING, MULTI_PING_PING, ALLTOALL, ALLREDUCE, BARRIER}, 6},
        .sizes = {(int[]){4, 1024, 16384}, 3},
        .pair = {&(struct pair){0}, 1},
        .repeats = 10,
        .warmup = 2,
    };
    const struct option table[] = {
        {"--tests", NAMES, &options.tests, 0, 0, test_names},
        {"--sizes", NUMBERS, &options.sizes, 0, MAX_BYTES, NULL},
        {"--pair", PAIRS, &options.pair, 0, 0, NULL},
        {"--repeats", NUMBER, &options.repeats, 1, MAX_TURNS, NULL},
        {"--warmup", NUMBER, &options.warmup, 0, MAX_TURNS, NULL},
        {"--corrupt", NUMBER, &corrupt, 0, MAX_TURNS, NULL},
    };
    uint64_t fabric_bytes = 0;

    start(&argc, &argv, "collectives");
    options.pair.at->to = ranks - 1;
    read_options(argc, argv, table, sizeof table / sizeof *table, usage);
    check_options(&options);
    for (int i = 0; i < options.tests.count; i++) {
        enum test test = (enum test) options.tests.at[i];
        int sizes = test == BARRIER ? 1 : options.sizes.count;

        for (int size = 0; size < sizes; size++)
            fabric_bytes += measure(test, test == BARRIER ? 0 : options.sizes.at[size], &options);
    }
    return finish(fabric_bytes);
}

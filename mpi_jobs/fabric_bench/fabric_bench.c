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
 * "fabric_bytes" is the least number of payload bytes that a test, its warm-up included, moves between ranks: with
 * one rank a host, the hosts' interfaces must have sent at least that much, or the messages took another way.
 * The last line is {"test":"end", ...}; without it a run is incomplete.
 *
 * Exit codes: 0 all tests done and verified, 2 bad arguments, 3 wrong data or a failure during the run.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_BAD_ARGUMENTS = 2, EXIT_BAD_RUN = 3 };
enum { TAG_DATA = 1, TAG_READY, TAG_RESULT };
enum { MAX_LIST = 256, MAX_TURNS = 1000000, MAX_BYTES = 1 << 30 };

enum test { PINGPONG, ALLTOALL, BARRIER, TEST_COUNT };
static const char *const test_names[TEST_COUNT] = {"pingpong", "alltoall", "barrier"};

struct pair {
    int from, to;
};

struct options {
    enum test tests[TEST_COUNT]; /* in the order asked for */
    int test_count;
    int sizes[MAX_LIST]; /* bytes a ping-pong message */
    int size_count;
    struct pair pairs[MAX_LIST];
    int pair_count;
    int alltoall_bytes; /* from each rank to each other rank */
    int repeats;        /* timed turns */
    int warmup;         /* turns before them, not timed */
    int corrupt;        /* rank that spoils one byte of what it receives, or -1 */
    bool help;
};

struct spread {
    double min, median, max; /* seconds */
};

static int rank, ranks;

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

/* ------------------------------------------------------------------------------------------------- failures */

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Ends the whole job with one sentence. MPI_Abort makes the process manager drop what it has not yet read of the
 * ranks' output, so it is given a moment to read.
 */
static void fail(const char *format, ...)
{
    struct timespec moment = {.tv_nsec = 300 * 1000 * 1000};
    va_list arguments;

    fprintf(stderr, "fabric_bench: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    fflush(NULL);
    nanosleep(&moment, NULL);
    MPI_Abort(MPI_COMM_WORLD, EXIT_BAD_RUN);
    abort();
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);

    if (!memory)
        fail("Rank %d cannot allocate %zu bytes.", rank, bytes);
    return memory;
}

/* ------------------------------------------------------------------------------------------------- patterns */

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A seed that differs for every message of a run, so that a message of another turn or pair never passes. */
static uint64_t seed_of(enum test test, int from, int to, int size, int turn)
{
    uint64_t seed = mix((uint64_t) test);

    seed = mix(seed ^ (uint64_t) (uint32_t) from);
    seed = mix(seed ^ (uint64_t) (uint32_t) to);
    seed = mix(seed ^ (uint64_t) (uint32_t) size);
    return mix(seed ^ (uint64_t) (uint32_t) turn);
}

static void fill(unsigned char *buffer, size_t bytes, uint64_t seed)
{
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = mix(seed + at);
        size_t rest = bytes - at;

        memcpy(buffer + at, &word, rest < sizeof word ? rest : sizeof word);
    }
}

/* Aborts the job when the buffer is not what `fill` would have made of it. */
static void verify(unsigned char *buffer, size_t bytes, uint64_t seed, enum test test, int from, int turn,
                   const struct options *options)
{
    if (options->corrupt == rank && bytes > 0)
        buffer[bytes / 2] ^= 0x10;
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = mix(seed + at);
        size_t rest = bytes - at;
        size_t length = rest < sizeof word ? rest : sizeof word;

        if (memcmp(buffer + at, &word, length) != 0) {
            const unsigned char *expected = (const unsigned char *) &word;
            size_t i = 0;

            while (buffer[at + i] == expected[i])
                i++;
            fail("Rank %d received wrong data from rank %d in turn %d of %s: byte %zu of %zu is 0x%02x instead of"
                 " 0x%02x.", rank, from, turn, test_names[test], at + i, bytes, buffer[at + i], expected[i]);
        }
    }
}

/* --------------------------------------------------------------------------------------------------- timing */

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *) left, b = *(const double *) right;

    return (a > b) - (a < b);
}

/* Sorts the times in place. */
static struct spread spread_of(double *times, int count)
{
    qsort(times, (size_t) count, sizeof *times, compare_doubles);
    return (struct spread){
        .min = times[0],
        .median = count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2,
        .max = times[count - 1],
    };
}

/* The clock of this machine since its start; common to all ranks that run on the same kernel. */
static double machine_clock(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        fail("Rank %d cannot read the monotonic clock: %s.", rank, strerror(errno));
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* True on all ranks when all of them run on one kernel, so that `machine_clock` can be compared between them. */
static bool ranks_share_a_clock(void)
{
    uint64_t id = 0;
    uint64_t extremes[2], reduced[2];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (file) {
        char text[64] = "";

        if (fgets(text, sizeof text, file))
            for (const char *c = text; *c; c++)
                id = mix(id ^ (unsigned char) *c);
        fclose(file);
    }
    extremes[0] = id;
    extremes[1] = ~id;
    MPI_Allreduce(extremes, reduced, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    return reduced[0] != 0 && reduced[0] == ~reduced[1];
}

static void print_spread(struct spread spread)
{
    printf("\"seconds_min\":%.9f,\"seconds_median\":%.9f,\"seconds_max\":%.9f", spread.min, spread.median,
           spread.max);
}

/* ---------------------------------------------------------------------------------------------------- tests */

/*
 * One pair, one size. The receiver posts its receive and says that it is ready before the sender starts the clock;
 * both ends verify after the clock has stopped. All other ranks wait in the barrier at the end.
 * Returns the payload bytes that crossed, on every rank.
 */
static uint64_t pingpong(struct pair pair, int bytes, const struct options *options)
{
    int turns = options->warmup + options->repeats;
    struct spread spread = {0};

    if (rank == pair.from) {
        unsigned char *out = allocate((size_t) bytes), *in = allocate((size_t) bytes);
        double *times = allocate((size_t) options->repeats * sizeof *times);

        for (int turn = 0; turn < turns; turn++) {
            uint64_t seed = seed_of(PINGPONG, pair.from, pair.to, bytes, turn);
            double start, stop;

            fill(out, (size_t) bytes, seed);
            MPI_Recv(NULL, 0, MPI_BYTE, pair.to, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            start = MPI_Wtime();
            MPI_Send(out, bytes, MPI_BYTE, pair.to, TAG_DATA, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, pair.to, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            stop = MPI_Wtime();
            verify(in, (size_t) bytes, seed, PINGPONG, pair.to, turn, options);
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
        unsigned char *buffer = allocate((size_t) bytes);

        for (int turn = 0; turn < turns; turn++) {
            MPI_Request request;

            MPI_Irecv(buffer, bytes, MPI_BYTE, pair.from, TAG_DATA, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, pair.from, TAG_READY, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_BYTE, pair.from, TAG_DATA, MPI_COMM_WORLD);
            verify(buffer, (size_t) bytes, seed_of(PINGPONG, pair.from, pair.to, bytes, turn), PINGPONG, pair.from,
                   turn, options);
        }
        free(buffer);
    }
    if (rank == 0 && pair.from != 0)
        MPI_Recv(&spread, 3, MPI_DOUBLE, pair.from, TAG_RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);

    uint64_t fabric_bytes = 2 * (uint64_t) bytes * (uint64_t) turns;

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

/* Returns the least payload bytes that must cross, on every rank: each rank needs its block from each other rank. */
static uint64_t alltoall(const struct options *options)
{
    int bytes = options->alltoall_bytes;
    int turns = options->warmup + options->repeats;
    size_t block = (size_t) bytes;
    unsigned char *out = allocate(block * (size_t) ranks), *in = allocate(block * (size_t) ranks);
    double *times = allocate((size_t) turns * sizeof *times), *slowest = allocate((size_t) turns * sizeof *slowest);

    for (int turn = 0; turn < turns; turn++) {
        double start;

        for (int other = 0; other < ranks; other++)
            fill(out + block * (size_t) other, block, seed_of(ALLTOALL, rank, other, bytes, turn));
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        times[turn] = MPI_Wtime() - start;
        for (int other = 0; other < ranks; other++)
            verify(in + block * (size_t) other, block, seed_of(ALLTOALL, other, rank, bytes, turn), ALLTOALL, other,
                   turn, options);
    }
    MPI_Reduce(times, slowest, turns, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    uint64_t fabric_bytes = (uint64_t) ranks * (uint64_t) (ranks - 1) * (uint64_t) bytes * (uint64_t) turns;

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
    size_t size = (size_t) turns * sizeof(double);
    double *entered = allocate(size), *left = allocate(size), *times = allocate(size);
    double *last_entered = allocate(size), *first_left = allocate(size), *slowest = allocate(size);
    bool comparable = ranks_share_a_clock();

    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < turns; turn++) {
        entered[turn] = machine_clock();
        MPI_Barrier(MPI_COMM_WORLD);
        left[turn] = machine_clock();
        if (options->corrupt == rank)
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

/* ------------------------------------------------------------------------------------------------ arguments */

static char problem[256]; /* what is wrong with the arguments: one sentence */

static bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Notes the problem; always false, so that a parser can return it. */
static bool complain(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    return false;
}

/* Reads a decimal number at *text and moves *text behind it. */
static bool read_number(const char **text, long low, long high, int *value)
{
    char *end;
    long number;

    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    number = strtol(*text, &end, 10);
    if (errno || number < low || number > high)
        return false;
    *text = end;
    *value = (int) number;
    return true;
}

static bool parse_number(const char *option, const char *text, long low, long high, int *value)
{
    const char *at = text;

    if (!read_number(&at, low, high, value) || *at)
        return complain("%s needs a whole number from %ld to %ld, not '%.40s'.", option, low, high, text);
    return true;
}

/* True when another item follows; moves *text behind the comma. */
static bool next_item(const char **text)
{
    if (**text != ',')
        return false;
    (*text)++;
    return true;
}

static bool parse_sizes(const char *text, struct options *options)
{
    const char *at = text;

    options->size_count = 0;
    do {
        if (options->size_count == MAX_LIST)
            return complain("--sizes takes at most %d sizes.", MAX_LIST);
        if (!read_number(&at, 0, MAX_BYTES, &options->sizes[options->size_count++]))
            return complain("--sizes needs whole numbers from 0 to %d with commas between them, not '%.40s'.",
                            MAX_BYTES, text);
    } while (next_item(&at));
    return !*at || complain("--sizes needs whole numbers with commas between them, not '%.40s'.", text);
}

static bool parse_pairs(const char *text, struct options *options)
{
    const char *at = text;

    options->pair_count = 0;
    do {
        struct pair *pair = &options->pairs[options->pair_count];

        if (options->pair_count == MAX_LIST)
            return complain("--pairs takes at most %d pairs.", MAX_LIST);
        if (!read_number(&at, 0, INT_MAX, &pair->from) || *at++ != '-' || !read_number(&at, 0, INT_MAX, &pair->to))
            return complain("--pairs needs pairs of ranks like 0-1,0-5, not '%.40s'.", text);
        options->pair_count++;
    } while (next_item(&at));
    return !*at || complain("--pairs needs pairs of ranks like 0-1,0-5, not '%.40s'.", text);
}

static bool parse_tests(const char *text, struct options *options)
{
    const char *at = text;

    options->test_count = 0;
    do {
        size_t length = strcspn(at, ",");
        int test = 0;

        while (test < TEST_COUNT
               && (strlen(test_names[test]) != length || strncmp(test_names[test], at, length) != 0))
            test++;
        if (test == TEST_COUNT)
            return complain("--tests knows pingpong, alltoall and barrier, not '%.*s'.",
                            (int) (length < 40 ? length : 40), at);
        for (int i = 0; i < options->test_count; i++)
            if (options->tests[i] == (enum test) test)
                return complain("--tests names %s twice.", test_names[test]);
        options->tests[options->test_count++] = (enum test) test;
        at += length;
    } while (next_item(&at));
    return true;
}

static bool parse_arguments(int argc, char **argv, struct options *options)
{
    *options = (struct options){
        .tests = {PINGPONG, ALLTOALL, BARRIER},
        .test_count = TEST_COUNT,
        .sizes = {1, 1024, 65536},
        .size_count = 3,
        .pairs = {{0, ranks - 1}},
        .pair_count = 1,
        .alltoall_bytes = 20000,
        .repeats = 10,
        .warmup = 2,
        .corrupt = -1,
    };
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = argv[i + 1];
        bool good;

        if (strcmp(option, "--help") == 0) {
            options->help = true;
            return true;
        }
        if (strcmp(option, "--tests") && strcmp(option, "--sizes") && strcmp(option, "--pairs")
            && strcmp(option, "--alltoall-bytes") && strcmp(option, "--repeats") && strcmp(option, "--warmup")
            && strcmp(option, "--corrupt"))
            return complain("There is no option '%.40s'; --help lists them.", option);
        if (!value)
            return complain("%s needs a value.", option);
        if (strcmp(option, "--tests") == 0)
            good = parse_tests(value, options);
        else if (strcmp(option, "--sizes") == 0)
            good = parse_sizes(value, options);
        else if (strcmp(option, "--pairs") == 0)
            good = parse_pairs(value, options);
        else if (strcmp(option, "--alltoall-bytes") == 0)
            good = parse_number(option, value, 1, MAX_BYTES, &options->alltoall_bytes);
        else if (strcmp(option, "--repeats") == 0)
            good = parse_number(option, value, 1, MAX_TURNS, &options->repeats);
        else if (strcmp(option, "--warmup") == 0)
            good = parse_number(option, value, 0, MAX_TURNS, &options->warmup);
        else
            good = parse_number(option, value, 0, INT_MAX, &options->corrupt);
        if (!good)
            return false;
    }
    if (ranks < 2)
        return complain("fabric_bench needs at least two ranks.");
    for (int i = 0; i < options->pair_count; i++) {
        struct pair pair = options->pairs[i];

        if (pair.from >= ranks || pair.to >= ranks)
            return complain("--pairs has %d-%d, but the ranks are 0 to %d.", pair.from, pair.to, ranks - 1);
        if (pair.from == pair.to)
            return complain("--pairs has %d-%d, but a pair is two different ranks.", pair.from, pair.to);
    }
    if (options->corrupt >= ranks)
        return complain("--corrupt has %d, but the ranks are 0 to %d.", options->corrupt, ranks - 1);
    return true;
}

/* ----------------------------------------------------------------------------------------------------- main */

int main(int argc, char **argv)
{
    struct options options;
    uint64_t fabric_bytes = 0;
    int status = EXIT_SUCCESS;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    if (!parse_arguments(argc, argv, &options)) {
        if (rank == 0)
            fprintf(stderr, "fabric_bench: %s\n", problem);
        MPI_Finalize();
        return EXIT_BAD_ARGUMENTS;
    }
    if (options.help) {
        if (rank == 0)
            fputs(usage, stdout);
        MPI_Finalize();
        return EXIT_SUCCESS;
    }
    for (int i = 0; i < options.test_count; i++) {
        switch (options.tests[i]) {
        case PINGPONG:
            for (int pair = 0; pair < options.pair_count; pair++)
                for (int size = 0; size < options.size_count; size++)
                    fabric_bytes += pingpong(options.pairs[pair], options.sizes[size], &options);
            break;
        case ALLTOALL:
            fabric_bytes += alltoall(&options);
            break;
        default:
            fabric_bytes += barrier(&options);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD); /* every rank has verified all that it received */
    if (rank == 0) {
        printf("{\"test\":\"end\",\"verified\":true,\"ranks\":%d,\"fabric_bytes\":%" PRIu64 "}\n", ranks,
               fabric_bytes);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            fprintf(stderr, "fabric_bench: The output could not be written: %s.\n", strerror(errno));
            status = EXIT_BAD_RUN;
        }
    }
    MPI_Finalize();
    return status;
}

#define _POSIX_C_SOURCE 200809L

#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int rank, ranks, corrupt = -1;

static const char *program = "bench";
static int *host_of; /* of each rank */

static bool read_number(const char **text, long low, long high, int *value);

/* ---------------------------------------------------------------------------------------------- start and end */

/*
 * MPI_Abort makes the process manager drop what it has not yet read of the ranks' output, so it is given a moment to
 * read.
 */
void fail(const char *format, ...)
{
    struct timespec moment = {.tv_nsec = 300 * 1000 * 1000};
    va_list arguments;

    fprintf(stderr, "%s: ", program);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    fflush(NULL);
    nanosleep(&moment, NULL);
    MPI_Abort(MPI_COMM_WORLD, EXIT_BAD_RUN);
    abort();
}

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);

    if (!memory)
        fail("Rank %d cannot allocate %zu times %zu bytes.", rank, count, size);
    return memory;
}

void start(int *argc, char ***argv, const char *name)
{
    const char *text = getenv("TESTBED_HOST");
    int mine;

    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    program = name;
    host_of = allocate((size_t) ranks, sizeof *host_of);
    mine = rank;
    if (text && (!read_number(&text, 0, INT_MAX, &mine) || *text))
        fail("TESTBED_HOST should be the number of rank %d's host, but ends with '%.40s'.", rank, text);
    MPI_Allgather(&mine, 1, MPI_INT, host_of, 1, MPI_INT, MPI_COMM_WORLD);
}

int finish(uint64_t fabric_bytes)
{
    int status = EXIT_SUCCESS;

    MPI_Barrier(MPI_COMM_WORLD); /* every rank has verified all that it received */
    if (rank == 0) {
        printf("{\"test\":\"end\",\"verified\":true,\"ranks\":%d,\"fabric_bytes\":%" PRIu64 "}\n", ranks,
               fabric_bytes);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            fprintf(stderr, "%s: The output could not be written: %s.\n", program, strerror(errno));
            status = EXIT_BAD_RUN;
        }
    }
    free(host_of);
    MPI_Finalize();
    return status;
}

/* ------------------------------------------------------------------------------------------------------- hosts */

bool apart(int one, int other)
{
    return host_of[one] != host_of[other];
}

uint64_t pairs_apart(void)
{
    uint64_t pairs = 0;

    for (int one = 0; one < ranks; one++)
        for (int other = 0; other < ranks; other++)
            pairs += apart(one, other);
    return pairs;
}

int hosts(void)
{
    int count = 0;

    for (int one = 0; one < ranks; one++) {
        int earlier = 0;

        while (earlier < one && apart(earlier, one))
            earlier++;
        count += earlier == one;
    }
    return count;
}

/* ---------------------------------------------------------------------------------------------------- messages */

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t seed_of(int test, int from, int to, int size, int turn)
{
    uint64_t seed = mix((uint64_t) test);

    seed = mix(seed ^ (uint64_t) (uint32_t) from);
    seed = mix(seed ^ (uint64_t) (uint32_t) to);
    seed = mix(seed ^ (uint64_t) (uint32_t) size);
    return mix(seed ^ (uint64_t) (uint32_t) turn);
}

void fill(unsigned char *buffer, size_t bytes, uint64_t seed)
{
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = mix(seed + at);
        size_t rest = bytes - at;

        memcpy(buffer + at, &word, rest < sizeof word ? rest : sizeof word);
    }
}

uint32_t word_of(uint64_t seed, size_t index)
{
    size_t at = index * sizeof(uint32_t);
    uint64_t word = mix(seed + at / sizeof word * sizeof word);
    uint32_t part;

    memcpy(&part, (unsigned char *) &word + at % sizeof word, sizeof part);
    return part;
}

void verify(unsigned char *buffer, size_t bytes, uint64_t seed, const char *test, int from, int turn)
{
    if (corrupt == rank && bytes > 0)
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
                 " 0x%02x.", rank, from, turn, test, at + i, bytes, buffer[at + i], expected[i]);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- times */

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *) left, b = *(const double *) right;

    return (a > b) - (a < b);
}

struct spread spread_of(double *times, int count)
{
    qsort(times, (size_t) count, sizeof *times, compare_doubles);
    return (struct spread){
        .min = times[0],
        .median = count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2,
        .max = times[count - 1],
    };
}

double machine_clock(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        fail("Rank %d cannot read the monotonic clock: %s.", rank, strerror(errno));
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

bool ranks_share_a_clock(void)
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

/* ----------------------------------------------------------------------------------------------------- options */

void refuse(const char *format, ...)
{
    if (rank == 0) {
        va_list arguments;

        fprintf(stderr, "%s: ", program);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fprintf(stderr, "\n");
    }
    MPI_Finalize();
    exit(EXIT_BAD_ARGUMENTS);
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

/* True when another item follows; moves *text behind the comma. */
static bool next_item(const char **text)
{
    if (**text != ',')
        return false;
    (*text)++;
    return true;
}

/* As many items as the text can have, counted by its commas. */
static size_t most_items(const char *text)
{
    size_t count = 1;

    for (; *text; text++)
        count += *text == ',';
    return count;
}

static void parse_number(const struct option *option, const char *text)
{
    const char *at = text;

    if (!read_number(&at, option->low, option->high, option->value) || *at)
        refuse("%s needs a whole number from %ld to %ld, not '%.40s'.", option->name, option->low, option->high, text);
}

static void parse_numbers(const struct option *option, const char *text)
{
    struct numbers *numbers = option->value;
    const char *at = text;
    bool good = true;

    *numbers = (struct numbers){.at = allocate(most_items(text), sizeof(int))};
    do
        good = read_number(&at, option->low, option->high, &numbers->at[numbers->count++]);
    while (good && next_item(&at));
    if (!good || *at)
        refuse("%s needs whole numbers from %ld to %ld with commas between them, not '%.40s'.", option->name,
               option->low, option->high, text);
}

static void parse_pairs(const struct option *option, const char *text)
{
    struct pairs *pairs = option->value;
    const char *at = text;
    bool good = true;

    *pairs = (struct pairs){.at = allocate(most_items(text), sizeof(struct pair))};
    do {
        struct pair *pair = &pairs->at[pairs->count++];

        good = read_number(&at, 0, INT_MAX, &pair->from) && *at++ == '-' && read_number(&at, 0, INT_MAX, &pair->to);
    } while (good && next_item(&at));
    if (!good || *at)
        refuse("%s needs pairs of ranks like 0-1,0-5, not '%.40s'.", option->name, text);
}

static void parse_names(const struct option *option, const char *text)
{
    struct numbers *chosen = option->value;
    const char *at = text;

    *chosen = (struct numbers){.at = allocate(most_items(text), sizeof(int))};
    do {
        size_t length = strcspn(at, ",");
        int name = 0;

        while (option->names[name]
               && (strlen(option->names[name]) != length || strncmp(option->names[name], at, length) != 0))
            name++;
        if (!option->names[name]) {
            char known[256] = "";

            for (int i = 0; option->names[i]; i++) {
                strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
                strncat(known, option->names[i], sizeof known - strlen(known) - 1);
            }
            refuse("%s knows %s, not '%.*s'.", option->name, known, (int) (length < 40 ? length : 40), at);
        }
        for (int i = 0; i < chosen->count; i++)
            if (chosen->at[i] == name)
                refuse("%s names %s twice.", option->name, option->names[name]);
        chosen->at[chosen->count++] = name;
        at += length;
    } while (next_item(&at));
}

void read_options(int argc, char **argv, const struct option *options, int count, const char *usage)
{
    for (int i = 1; i < argc; i += 2) {
        const struct option *option = options;

        if (strcmp(argv[i], "--help") == 0) {
            if (rank == 0)
                fputs(usage, stdout);
            MPI_Finalize();
            exit(EXIT_SUCCESS);
        }
        while (option < options + count && strcmp(option->name, argv[i]) != 0)
            option++;
        if (option == options + count)
            refuse("There is no option '%.40s'; --help lists them.", argv[i]);
        if (!argv[i + 1])
            refuse("%s needs a value.", argv[i]);
        switch (option->kind) {
        case NUMBER:
            parse_number(option, argv[i + 1]);
            break;
        case NUMBERS:
            parse_numbers(option, argv[i + 1]);
            break;
        case NAMES:
            parse_names(option, argv[i + 1]);
            break;
        case PAIRS:
            parse_pairs(option, argv[i + 1]);
        }
    }
    if (ranks < 2)
        refuse("%s needs at least two ranks.", program);
    if (corrupt >= ranks)
        refuse("--corrupt has %d, but the ranks are 0 to %d.", corrupt, ranks - 1);
}

void check_pairs(const char *option, const struct pairs *pairs)
{
    for (int i = 0; i < pairs->count; i++) {
        struct pair pair = pairs->at[i];

        if (pair.from >= ranks || pair.to >= ranks)
            refuse("%s has %d-%d, but the ranks are 0 to %d.", option, pair.from, pair.to, ranks - 1);
        if (pair.from == pair.to)
            refuse("%s has %d-%d, but a pair is two different ranks.", option, pair.from, pair.to);
    }
}

/*
 * What the benchmark programs of mpi_jobs/ share: start and end, failures in one sentence, messages whose every byte
 * can be verified, times, options.
 *
 * A program prints one JSON object a line on rank 0's standard output; mpi_jobs/README.md describes them.
 *
 * Exit codes: 0 all tests done and verified, 2 bad arguments, 3 wrong data or a failure during the run.
 */
#ifndef BENCH_H
#define BENCH_H

#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

enum { EXIT_BAD_ARGUMENTS = 2, EXIT_BAD_RUN = 3 };
enum { MAX_TURNS = 1000000, MAX_BYTES = 1 << 30 };

struct pair {
    int from, to;
};

struct pairs {
    struct pair *at;
    int count;
};

struct numbers {
    int *at;
    int count;
};

extern int rank, ranks; /* in MPI_COMM_WORLD, once `start` has returned */
extern int corrupt;     /* rank that spoils one byte of what it receives, or -1; for option tables */

/* ---------------------------------------------------------------------------------------------- start and end */

/* MPI_Init, and who shares a host with whom: the ranks whose TESTBED_HOST is equal; without it nobody does. */
void start(int *argc, char ***argv, const char *program);

/* Returns when all ranks have come here; then rank 0 has printed the end line. The result is the exit code. */
int finish(uint64_t fabric_bytes);

/* Ends the whole job with one sentence. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Memory for `count` things of `size` bytes, all zero; never NULL. */
void *allocate(size_t count, size_t size);

/* ------------------------------------------------------------------------------------------------------- hosts */

bool apart(int one, int other); /* the two ranks are on different hosts */
uint64_t pairs_apart(void);     /* ordered pairs of ranks on different hosts */
int hosts(void);                /* hosts that have ranks */

/* ---------------------------------------------------------------------------------------------------- messages */

/* A seed that differs for every message of a run, so that a message of another turn or pair never passes. */
uint64_t seed_of(int test, int from, int to, int size, int turn);

void fill(unsigned char *buffer, size_t bytes, uint64_t seed);

/* The four bytes at `index` of what `fill` makes, as a number. */
uint32_t word_of(uint64_t seed, size_t index);

/* Ends the job when the buffer is not what `fill` would have made of it. */
void verify(unsigned char *buffer, size_t bytes, uint64_t seed, const char *test, int from, int turn);

/* ------------------------------------------------------------------------------------------------------- times */

struct spread {
    double min, median, max; /* seconds */
};

struct spread spread_of(double *times, int count); /* sorts the times in place */

/* The clock of this machine since its start; common to all ranks that run on the same kernel. */
double machine_clock(void);

/* True on all ranks when all of them run on one kernel, so that `machine_clock` can be compared between them. */
bool ranks_share_a_clock(void);

/* ----------------------------------------------------------------------------------------------------- options */

struct option {
    const char *name; /* with its dashes */
    enum { NUMBER, NUMBERS, NAMES, PAIRS } kind;
    void *value;              /* int, struct numbers, struct numbers (places in `names`), struct pairs */
    long low, high;           /* of numbers */
    const char *const *names; /* of NAMES; ends with NULL */
};

/*
 * Reads `--option value` pairs; what is not given stays as it is. With --help it prints `usage`, with a fault one
 * sentence, and in both cases ends the program.
 */
void read_options(int argc, char **argv, const struct option *options, int count, const char *usage);

/* Ends the program unless the ranks of all pairs exist and are two different ones. */
void check_pairs(const char *option, const struct pairs *pairs);

/* Ends the program with a sentence about its arguments. */
void refuse(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif

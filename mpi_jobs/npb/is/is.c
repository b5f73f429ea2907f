/*
 * IS, integer sort: ranks keys, ten times. Specification section 3.5.
 *
 * Each iteration counts a rank's keys by bucket (their leading bits), adds the counts of all ranks (all-reduce), gives
 * each rank a run of buckets with about its share of the keys, brings the keys there (all-to-all of the counts, then
 * of the keys), and counts them by value: a key's rank is the number of smaller keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

static const struct size {
    int keys, values, buckets; /* binary logarithms: of all keys, of the values they can have, of buckets */
} sizes[NPB_CLASSES] = {
    [NPB_S] = {16, 11, 9},
    [NPB_W] = {20, 16, 10},
    [NPB_A] = {23, 19, 10},
    [NPB_B] = {25, 21, 10},
};

#ifdef NPB_PERTURB
enum { SEED_SHIFT = 2 };
#else
enum { SEED_SHIFT = 0 };
#endif

struct sort {
    const struct is_test *tests;
    int count, values, buckets; /* keys of this rank; possible values; buckets */
    int shift;                  /* a value's bucket is value >> shift */
    int *keys, *by_bucket;      /* `count` each: as generated; grouped by bucket */
    int *own;                   /* of each bucket: this rank's keys */
    int *sums;                  /* of each bucket: all ranks' keys; then the values of the five test keys */
    int *next;                  /* of each bucket: where its next key goes */
    int *out_counts, *out_starts, *in_counts, *in_starts; /* of each rank */
    int *received, received_room, received_count;
    int first, last;            /* this rank has the keys with values from `first` to before `last` */
    int before;                 /* keys that ranks before this one have */
    int *upto;                  /* of each value from `first`: received keys that are not larger */
    int passed;                 /* tests of the ranks of single keys */
};

static void prepare(struct sort *sort, enum npb_class class)
{
    const struct size *size = &sizes[class];
    size_t count, values = (size_t) 1 << size->values, buckets = (size_t) 1 << size->buckets;

    npb_limit_ranks((int) buckets);
    count = ((size_t) 1 << size->keys) / (size_t) ranks;
    npb_need_memory((2 * count + count * 3 / 2 + values + 3 * buckets) * sizeof(int));
    *sort = (struct sort){
        .tests = is_tests[class],
        .count = (int) count,
        .values = (int) values,
        .buckets = (int) buckets,
        .shift = size->values - size->buckets,
        .keys = allocate(count, sizeof(int)),
        .by_bucket = allocate(count, sizeof(int)),
        .own = allocate(buckets, sizeof(int)),
        .sums = allocate(buckets + IS_TESTS, sizeof(int)),
        .next = allocate(buckets, sizeof(int)),
        .out_counts = allocate((size_t) ranks, sizeof(int)),
        .out_starts = allocate((size_t) ranks, sizeof(int)),
        .in_counts = allocate((size_t) ranks, sizeof(int)),
        .in_starts = allocate((size_t) ranks, sizeof(int)),
        .received = allocate(count * 3 / 2, sizeof(int)),
        .received_room = (int) (count * 3 / 2),
        .upto = allocate(values, sizeof(int)),
    };
}

/* Each key is the mean of four random numbers. */
static void generate(struct sort *sort)
{
    uint64_t seed = npb_skip(NPB_SEED + SEED_SHIFT, 4 * (uint64_t) sort->count * (uint64_t) rank);

    for (int i = 0; i < sort->count; i++) {
        double sum = npb_random(&seed);

        sum += npb_random(&seed);
        sum += npb_random(&seed);
        sum += npb_random(&seed);
        sort->keys[i] = (int) (sort->values / 4 * sum);
    }
}

/* ------------------------------------------------------------------------------------------------ one iteration */

static void modify(struct sort *sort, int iteration)
{
    if (rank == 0) {
        sort->keys[iteration] = iteration;
        sort->keys[iteration + IS_ITERATIONS] = sort->values - iteration;
    }
}

static void group_by_bucket(struct sort *sort)
{
    const int *restrict keys = sort->keys;
    int *restrict own = sort->own, *restrict next = sort->next, *restrict by_bucket = sort->by_bucket;
    int shift = sort->shift, start = 0;

    memset(own, 0, (size_t) sort->buckets * sizeof *own);
    for (int i = 0; i < sort->count; i++)
        own[keys[i] >> shift]++;
    for (int b = 0; b < sort->buckets; b++) {
        next[b] = start;
        start += own[b];
    }
    for (int i = 0; i < sort->count; i++)
        by_bucket[next[keys[i] >> shift]++] = keys[i];
}

/* Adds up all ranks' buckets. Whoever has a test key tells its value by the same way. */
static void add_up(struct sort *sort)
{
    int *values = sort->sums + sort->buckets;

    memcpy(sort->sums, sort->own, (size_t) sort->buckets * sizeof *sort->own);
    for (int i = 0; i < IS_TESTS; i++) {
        int place = sort->tests[i].place - rank * sort->count;

        values[i] = place >= 0 && place < sort->count ? sort->keys[place] : 0;
    }
    npb_allreduce(sort->sums, sort->buckets + IS_TESTS, MPI_INT, MPI_SUM);
}

/* A rank's run of buckets ends with the one that makes it and all before it have their share, or more. */
static void share_out(struct sort *sort)
{
    int bucket = 0, sum = 0, start = 0;

    for (int to = 0; to < ranks; to++) {
        int first = bucket, sum_before = sum;

        sort->out_starts[to] = start;
        while (bucket < sort->buckets && (sum < (to + 1) * sort->count || to == ranks - 1)) {
            sum += sort->sums[bucket];
            start += sort->own[bucket];
            bucket++;
        }
        sort->out_counts[to] = start - sort->out_starts[to];
        if (to == rank) {
            sort->first = first << sort->shift;
            sort->last = bucket << sort->shift;
            sort->before = sum_before;
        }
    }
}

static void bring(struct sort *sort)
{
    int count = 0;

    npb_alltoall(sort->out_counts, sort->in_counts, 1, MPI_INT);
    for (int from = 0; from < ranks; from++) {
        sort->in_starts[from] = count;
        count += sort->in_counts[from];
    }
    if (count > sort->received_room) {
        free(sort->received);
        sort->received = allocate((size_t) count, sizeof(int));
        sort->received_room = count;
    }
    sort->received_count = count;
    npb_alltoallv(sort->by_bucket, sort->out_counts, sort->out_starts, sort->received, sort->in_counts,
                  sort->in_starts, MPI_INT);
}

static void count_by_value(struct sort *sort)
{
    const int *restrict received = sort->received;
    int *restrict upto = sort->upto;
    int first = sort->first, range = sort->last - sort->first;

    memset(upto, 0, (size_t) range * sizeof *upto);
    for (int i = 0; i < sort->received_count; i++)
        upto[received[i] - first]++;
    for (int value = 1; value < range; value++)
        upto[value] += upto[value - 1];
}

static void check_single_keys(struct sort *sort, int iteration)
{
    const int *values = sort->sums + sort->buckets;

    for (int i = 0; i < IS_TESTS; i++) {
        const struct is_test *test = &sort->tests[i];

        if (values[i] >= sort->first && values[i] < sort->last) {
            int smaller = values[i] > sort->first ? sort->upto[values[i] - sort->first - 1] : 0;

            sort->passed += sort->before + smaller == test->rank + test->step * (iteration - test->delay);
        }
    }
}

static void rank_keys(struct sort *sort, int iteration)
{
    modify(sort, iteration);
    group_by_bucket(sort);
    add_up(sort);
    share_out(sort);
    bring(sort);
    count_by_value(sort);
    check_single_keys(sort, iteration);
}

/* ------------------------------------------------------------------------------------------------- verification */

/* Puts the keys in the order of their ranks: they must all be there and ascend, also from rank to rank. */
static bool in_order(struct sort *sort)
{
    int *sorted = allocate((size_t) sort->received_count, sizeof *sorted);
    int before = -1, faults = 0, last, total = sort->received_count;

    for (int i = 0; i < sort->received_count; i++)
        sorted[--sort->upto[sort->received[i] - sort->first]] = sort->received[i];
    last = sort->received_count ? sorted[sort->received_count - 1] : -1;
    MPI_Exscan(&last, &before, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        before = -1; /* MPI_Exscan leaves it undefined there */
    for (int i = 0; i < sort->received_count; i++) {
        faults += sorted[i] < before;
        before = sorted[i];
    }
    free(sorted);
    npb_allreduce(&faults, 1, MPI_INT, MPI_SUM);
    npb_allreduce(&total, 1, MPI_INT, MPI_SUM);
    return faults == 0 && total == sort->count * ranks;
}

int main(int argc, char **argv)
{
    enum npb_class class = npb_start(argc, argv, "IS", NPB_POWERS_OF_TWO);
    struct sort sort;
    char size[16];
    bool ordered;

    prepare(&sort, class);
    generate(&sort);
    rank_keys(&sort, 1); /* touches all memory and opens all connections */
    sort.passed = 0;

    npb_timer_start();
    for (int iteration = 1; iteration <= IS_ITERATIONS; iteration++)
        rank_keys(&sort, iteration);
    npb_timer_stop();

    ordered = in_order(&sort);
    npb_allreduce(&sort.passed, 1, MPI_INT, MPI_SUM);
    snprintf(size, sizeof size, "%d", 1 << sizes[class].keys);
    return npb_finish(&(struct npb_result){
        .size = size,
        .iterations = IS_ITERATIONS,
        .operations = (double) IS_ITERATIONS * (double) (1 << sizes[class].keys),
        .operation = "keys ranked",
        .verified = ordered && sort.passed == IS_TESTS * IS_ITERATIONS,
    });
}

/*
 * Counts bytes and messages between ranks, at the level of MPI, by MPI's profiling interface.
 *
 *     LD_PRELOAD=build/trace.so TESTBED_TRACE=trace.json  mpiexec -n 4 …
 *
 * MPI_Finalize writes TESTBED_TRACE; ../README.md describes the file. Nothing is sent before that, and no message is
 * held up. Ranks are counted in MPI_COMM_WORLD. One thread of a rank may call MPI at a time.
 */
#define _POSIX_C_SOURCE 200809L

#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SINGLE, COLLECTIVE, KINDS };
enum { MOST_NAMES = 64, NAME_LENGTH = 40 };

/* The ranks of a communicator, kept with it; of one between two groups those of the other. */
struct members {
    int size, rank;
    bool inter;
    int world[]; /* rank in MPI_COMM_WORLD, or MPI_UNDEFINED */
};

struct row {
    uint64_t bytes, messages;
};

double trace_seconds;

static int ranks, own_rank, key = MPI_KEYVAL_INVALID;
static double started;
static struct row *sent[KINDS]; /* to each rank */
static char names[MOST_NAMES][NAME_LENGTH];
static uint64_t calls[MOST_NAMES];

/* As in ../common/bench.c: what the process manager has not yet read when a rank aborts, it drops. */
static void fail(const char *what)
{
    struct timespec moment = {.tv_nsec = 300 * 1000 * 1000};

    fprintf(stderr, "trace: %s.\n", what);
    nanosleep(&moment, NULL);
    PMPI_Abort(MPI_COMM_WORLD, 3);
    abort();
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);

    if (!memory)
        fail("There is no memory left");
    return memory;
}

/* ----------------------------------------------------------------------------------------------- communicators */

static int forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void) comm, (void) keyval, (void) extra;
    free(value);
    return MPI_SUCCESS;
}

static const struct members *members_of(MPI_Comm comm)
{
    struct members *found;
    MPI_Group group, world;
    int *numbers, there, inter, size;

    PMPI_Comm_get_attr(comm, key, &found, &there);
    if (there)
        return found;
    PMPI_Comm_test_inter(comm, &inter);
    if (inter)
        PMPI_Comm_remote_group(comm, &group);
    else
        PMPI_Comm_group(comm, &group);
    PMPI_Group_size(group, &size);
    found = allocate(1, sizeof *found + (size_t) size * sizeof *found->world);
    numbers = allocate((size_t) size, sizeof *numbers);
    for (int i = 0; i < size; i++)
        numbers[i] = i;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, size, numbers, world, found->world);
    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    free(numbers);
    found->size = size;
    found->inter = inter;
    PMPI_Comm_rank(comm, &found->rank);
    PMPI_Comm_set_attr(comm, key, found);
    return found;
}

/* The members for a collective operation, or NULL where it is one between two groups, whose meaning is another. */
static const struct members *group_of(MPI_Comm comm)
{
    const struct members *group = members_of(comm);

    if (!group->inter)
        return group;
    trace_not_counted("collectives of intercommunicators");
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------- counting */

static void count(int kind, const struct members *group, int to, MPI_Count things, MPI_Datatype type)
{
    MPI_Count size;
    int world = group->world[to];

    if (world == MPI_UNDEFINED) {
        trace_not_counted("messages to processes that were started later");
        return;
    }
    PMPI_Type_size_x(type, &size);
    sent[kind][world].bytes += (uint64_t) things * (uint64_t) size;
    sent[kind][world].messages++;
}

void trace_message(MPI_Comm comm, int to, MPI_Count things, MPI_Datatype type)
{
    if (to != MPI_PROC_NULL)
        count(SINGLE, members_of(comm), to, things, type);
}

void trace_to_each(MPI_Comm comm, MPI_Count things, MPI_Datatype type)
{
    const struct members *group = group_of(comm);

    for (int to = 0; group && to < group->size; to++)
        if (to != group->rank)
            count(COLLECTIVE, group, to, things, type);
}

void trace_from_root(MPI_Comm comm, int root, MPI_Count things, MPI_Datatype type)
{
    const struct members *group = group_of(comm);

    if (group && group->rank == root)
        trace_to_each(comm, things, type);
}

void trace_to_root(MPI_Comm comm, int root, MPI_Count things, MPI_Datatype type)
{
    const struct members *group = group_of(comm);

    if (group && group->rank != root)
        count(COLLECTIVE, group, root, things, type);
}

void trace_allreduce(MPI_Comm comm, MPI_Count things, MPI_Datatype type)
{
    trace_to_root(comm, 0, things, type);
    trace_from_root(comm, 0, things, type);
}

void trace_scan(MPI_Comm comm, MPI_Count things, MPI_Datatype type)
{
    const struct members *group = group_of(comm);

    if (group && group->rank + 1 < group->size)
        count(COLLECTIVE, group, group->rank + 1, things, type);
}

static MPI_Count number(int large, const void *counts, int place)
{
    return large ? ((const MPI_Count *) counts)[place] : ((const int *) counts)[place];
}

void trace_to_each_own(MPI_Comm comm, int only, int large, const void *counts, const MPI_Datatype *types,
                       MPI_Datatype type)
{
    const struct members *group = group_of(comm);

    for (int to = 0; group && (only < 0 || only == group->rank) && to < group->size; to++)
        if (to != group->rank)
            count(COLLECTIVE, group, to, number(large, counts, to), types ? types[to] : type);
}

void trace_allgatherv(MPI_Comm comm, int large, const void *counts, MPI_Datatype type)
{
    const struct members *group = group_of(comm);

    if (group)
        trace_to_each(comm, number(large, counts, group->rank), type);
}

void trace_not_counted(const char *name)
{
    int place = 0;

    while (place < MOST_NAMES - 1 && *names[place] && strncmp(names[place], name, NAME_LENGTH - 1) != 0)
        place++;
    strncpy(names[place], name, NAME_LENGTH - 1);
    calls[place]++;
}

/* ----------------------------------------------------------------------------------------------- start and end */

static void begin(void)
{
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    for (int kind = 0; kind < KINDS; kind++)
        sent[kind] = allocate((size_t) ranks, sizeof **sent);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    started = PMPI_Wtime();
}

int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);

    begin();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);

    begin();
    return result;
}

static void write_times(FILE *file, const char *name, const double *times, int which)
{
    fprintf(file, ",\n\"%s\":[", name);
    for (int i = 0; i < ranks; i++)
        fprintf(file, "%s%.6f", i ? "," : "", times[2 * i + which]);
    fputc(']', file);
}

static void write_matrix(FILE *file, const char *name, const struct row *rows, bool messages)
{
    fprintf(file, "\"%s\":[", name);
    for (int from = 0; from < ranks; from++) {
        fputs(from ? ",\n[" : "[", file);
        for (int to = 0; to < ranks; to++) {
            const struct row *row = &rows[(size_t) from * (size_t) ranks + (size_t) to];

            fprintf(file, "%s%" PRIu64, to ? "," : "", messages ? row->messages : row->bytes);
        }
        fputc(']', file);
    }
    fputc(']', file);
}

static void write_file(FILE *file, const double *times, struct row *const *all, const char *skipped)
{
    static const char *const kinds[] = {[SINGLE] = "messages", [COLLECTIVE] = "collectives"};

    fprintf(file, "{\"form\":\"testbed-mpi-trace\",\"version\":1,\"ranks\":%d", ranks);
    write_times(file, "seconds", times, 0);
    write_times(file, "seconds_in_mpi", times, 1);
    for (int kind = 0; kind < KINDS; kind++) {
        fprintf(file, ",\n\"%s\":{", kinds[kind]);
        write_matrix(file, "bytes", all[kind], false);
        fputs(",\n", file);
        write_matrix(file, "count", all[kind], true);
        fputc('}', file);
    }
    fputs(",\n\"not_counted\":[", file);
    for (int i = 0, shown = 0; i < ranks * MOST_NAMES; i++) {
        const char *name = skipped + (size_t) i * NAME_LENGTH;
        bool known = false;

        for (int before = 0; before < i; before++)
            known = known || strcmp(skipped + (size_t) before * NAME_LENGTH, name) == 0;
        if (*name && !known)
            fprintf(file, "%s\"%s\"", shown++ ? "," : "", name);
    }
    fputs("]}\n", file);
}

/* Written beside its place and then moved there, so that half a file is never taken for a whole one. */
static void store(const double *times, struct row *const *all, const char *skipped)
{
    const char *name = getenv("TESTBED_TRACE");
    char partial[4096];
    FILE *file;

    if (!name || !*name)
        fail("TESTBED_TRACE should name the file that the trace is written to");
    if (snprintf(partial, sizeof partial, "%s.partial", name) >= (int) sizeof partial)
        fail("The name of the file TESTBED_TRACE is too long");
    file = fopen(partial, "w");
    if (file)
        write_file(file, times, all, skipped);
    if (!file || ferror(file) | fclose(file) || rename(partial, name) != 0) {
        fprintf(stderr, "trace: %s: %s.\n", name, strerror(errno));
        fail("The trace could not be written");
    }
}

int MPI_Finalize(void)
{
    double mine[] = {PMPI_Wtime() - started, trace_seconds}, *times = allocate(2 * (size_t) ranks, sizeof *times);
    struct row *all[KINDS];
    char *skipped = allocate((size_t) ranks * MOST_NAMES, NAME_LENGTH);
    int size = ranks * (int) sizeof **sent;

    PMPI_Gather(mine, 2, MPI_DOUBLE, times, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    PMPI_Gather(names, sizeof names, MPI_BYTE, skipped, sizeof names, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int kind = 0; kind < KINDS; kind++) {
        all[kind] = allocate(own_rank ? 1 : (size_t) ranks * (size_t) ranks, sizeof **all);
        PMPI_Gather(sent[kind], size, MPI_BYTE, all[kind], size, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    if (own_rank == 0)
        store(times, all, skipped);
    for (int kind = 0; kind < KINDS; kind++) {
        free(all[kind]);
        free(sent[kind]);
    }
    free(skipped);
    free(times);
    PMPI_Comm_free_keyval(&key);
    return PMPI_Finalize();
}

/* What a kernel prints at its end. */
#define _POSIX_C_SOURCE 200809L

#include "internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool npb_close(double value, double reference, double tolerance)
{
    return fabs(value - reference) <= tolerance * fabs(reference);
}

bool npb_check(const char *name, double value, double reference, double tolerance)
{
    bool good = npb_close(value, reference, tolerance);

    if (rank == 0)
        printf(" %-20s %22.15e  reference %22.15e%s\n", name, value, reference, good ? "" : "  WRONG");
    return good;
}

static void print_for_people(const struct npb_result *result, double seconds, double mops)
{
    printf("\n %s Benchmark Completed.\n", npb_kernel);
    printf(" Class           =             %12c\n", npb_class_letter);
    printf(" Size            =             %12s\n", result->size);
    printf(" Iterations      =             %12d\n", result->iterations);
    printf(" Time in seconds =             %12.4f\n", seconds);
    printf(" Total processes =             %12d\n", ranks);
    printf(" Mop/s total     =             %12.2f\n", mops);
    printf(" Mop/s/process   =             %12.2f\n", mops / ranks);
    printf(" Operation type  = %24s\n", result->operation);
    printf(" Verification    =             %12s\n\n", result->verified ? "SUCCESSFUL" : "UNSUCCESSFUL");
}

static void print_list(const char *name, const double *split, int part)
{
    printf(",\"%s\":[", name);
    for (int i = 0; i < ranks; i++)
        printf("%s%.6f", i ? "," : "", split[2 * i + part]);
    printf("]");
}

int npb_finish(const struct npb_result *result)
{
    double mine[2] = {npb_seconds - npb_seconds_in_mpi, npb_seconds_in_mpi}, seconds = 0;
    double *split = allocate(2 * (size_t) ranks, sizeof *split);
    uint64_t bytes = npb_fabric_bytes;
    int status = result->verified ? EXIT_SUCCESS : EXIT_BAD_RUN;

    MPI_Gather(mine, 2, MPI_DOUBLE, split, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        double mops;

        for (int i = 0; i < ranks; i++)
            seconds = fmax(seconds, split[2 * i] + split[2 * i + 1]);
        mops = seconds > 0 ? result->operations / seconds * 1e-6 : 0;
        print_for_people(result, seconds, mops);
        printf("{\"test\":\"npb\",\"kernel\":\"%s\",\"class\":\"%c\",\"size\":\"%s\",\"iterations\":%d,\"ranks\":%d,"
               "\"verified\":%s,\"seconds\":%.6f,\"mops\":%.3f,\"fabric_bytes\":%" PRIu64, npb_kernel,
               npb_class_letter, result->size, result->iterations, ranks, result->verified ? "true" : "false", seconds,
               mops, bytes);
        print_list("computation_seconds", split, 0);
        print_list("communication_seconds", split, 1);
        printf("}\n");
        if (fflush(stdout) != 0 || ferror(stdout)) {
            fprintf(stderr, "%s: The output could not be written: %s.\n", npb_kernel, strerror(errno));
            status = EXIT_BAD_RUN;
        }
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free(split);
    MPI_Finalize();
    return status;
}

/*
 * xhpl: the High Performance Linpack benchmark as a program of its own.
 *
 * The HPL in the HPC Challenge's source has no `main`, reads a file of a fixed name and appends its report to
 * another. Here rank 0 gives it both names in a folder of its own: the first leads to the data file of the command
 * line, the second to standard output.
 *
 * usage: xhpl DATA_FILE        the form of HPL.dat; lines 3 and 4, the output, are not looked at
 *
 * Exit codes: 0 all residual checks passed, 2 bad arguments, 3 a check failed or a test was skipped.
 */
#define _XOPEN_SOURCE 700

#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "hpl.h"

int HPL_main(int argc, char **argv, HPL_RuntimeData *data, int *failure);
int HPCC_Defaults(void);

/* As in ../common/bench.c: what the process manager has not yet read when a rank aborts, it drops. */
static _Noreturn void end_badly(void)
{
    struct timespec moment = {.tv_nsec = 300 * 1000 * 1000};

    fflush(NULL);
    nanosleep(&moment, NULL);
    MPI_Abort(MPI_COMM_WORLD, 2);
    abort();
}

/* HPL calls this, with arguments that do not matter here, when it cannot make sense of its data file. */
int HPCC_Defaults(void)
{
    fprintf(stderr, "xhpl: The data file is not one that HPL can use; its reason is above.\n");
    end_badly();
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "xhpl: %s.\n", what);
    end_badly();
}

int main(int argc, char **argv)
{
    static const char input[] = "hpccinf.txt", output[] = "hpccoutf.txt";
    char folder[] = "/dev/shm/xhpl-XXXXXX", data[PATH_MAX];
    HPL_RuntimeData result = {0};
    int rank, failure = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        if (argc != 2)
            give_up("The only argument should be the data file");
        if (!realpath(argv[1], data))
            give_up("The data file cannot be found");
        if (!mkdtemp(folder) || chdir(folder) != 0 || symlink(data, input) != 0 || symlink("/dev/stdout", output) != 0)
            give_up("/dev/shm cannot be written");
    }
    HPL_main(argc, argv, &result, &failure);
    if (rank == 0) {
        unlink(input);
        unlink(output);
        rmdir(folder);
    }
    MPI_Finalize();
    return failure ? 3 : 0;
}

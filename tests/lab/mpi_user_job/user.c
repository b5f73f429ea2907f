/* A program as a user might bring it, and the ways in which such programs go wrong. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH = 10000 };

static void ring(int rank, int ranks, int *sums)
{
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;

    for (int i = 0; i < LENGTH; i++)
        sums[i] = rank + i;
    if (rank > 0) {
        int received[LENGTH];

        MPI_Recv(received, LENGTH, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < LENGTH; i++)
            sums[i] += received[i];
    }
    MPI_Send(sums, LENGTH, MPI_INT, next, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(sums, LENGTH, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "right";
    int rank, ranks, sums[LENGTH], correct = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(how, "silent") != 0)
        ring(rank, ranks, sums);
    if (rank == 0) {
        printf("STARTED\n");
        fflush(stdout);
    }
    if (strcmp(how, "hang") == 0)
        MPI_Recv(sums, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(how, "crash") == 0 && rank == 1)
        *(volatile int *) 0 = 1;
    if (strcmp(how, "garbage") == 0 && rank == 0)
        fwrite("\xff\xfe\0\x80 SUM CORRECT ?\n", 1, 19, stdout);
    for (int i = 0; i < LENGTH && rank == 0 && strcmp(how, "silent") != 0; i++)
        correct &= sums[i] == ranks * (ranks - 1) / 2 + ranks * i;
    if (rank == 0 && strcmp(how, "garbage") != 0)
        printf("SUM %s\n", correct ? "CORRECT" : "WRONG");
    MPI_Finalize();
    return 0;
}

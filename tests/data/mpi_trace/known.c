/* Every kind of call that the tracer counts, once, with numbers that tell them apart; for four ranks. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 };

int main(int argc, char **argv)
{
    static char out[4096], in[4096];
    int rank, counts[RANKS], starts[RANKS] = {0};
    double number = 1, sum[RANKS] = {0};
    MPI_Request requests[2];
    MPI_Comm odd_even, copy;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &odd_even); /* {2, 0} and {3, 1}: the order is turned round */

    if (argc > 1 && strcmp(argv[1], "uncounted") == 0) {
        MPI_Ibcast(out, 1, MPI_BYTE, 0, MPI_COMM_WORLD, requests);
        MPI_Wait(requests, MPI_STATUS_IGNORE);
    } else if (argc > 1 && strcmp(argv[1], "collectives") == 0) {
        for (int i = 0; i < RANKS; i++)
            counts[i] = 10 * (i + 1);
        MPI_Bcast(out, 1000, MPI_BYTE, 1, MPI_COMM_WORLD);
        MPI_Reduce(&number, sum, 1, MPI_DOUBLE, MPI_SUM, 2, MPI_COMM_WORLD);
        MPI_Alltoallv(out, counts, starts, MPI_BYTE, in, (int[]){10 * (rank + 1), 10 * (rank + 1), 10 * (rank + 1),
                      10 * (rank + 1)}, starts, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 100, MPI_BYTE, odd_even);
        MPI_Allreduce(&number, sum, 1, MPI_DOUBLE, MPI_SUM, odd_even);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        if (rank == 0)
            MPI_Send(out, 3, MPI_INT, 1, 0, MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Recv(in, 3, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Comm_dup(odd_even, &copy);
        for (int i = 0; i < 5; i++) { /* with the other of its two */
            int other, mine;

            MPI_Comm_rank(copy, &mine);
            other = 1 - mine;
            MPI_Irecv(in, 7, MPI_BYTE, other, 1, copy, &requests[0]);
            MPI_Isend(out, 7, MPI_BYTE, other, 1, copy, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Comm_free(&copy);
        MPI_Sendrecv_c(out, 50, MPI_BYTE, rank == 3 ? 0 : MPI_PROC_NULL, 2, in, 50, MPI_BYTE,
                       rank == 0 ? 3 : MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&odd_even);
    MPI_Finalize();
    return EXIT_SUCCESS;
}

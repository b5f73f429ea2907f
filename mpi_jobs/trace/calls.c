/*
 * The calls that are counted or timed. MPI's library has each function twice, as MPI_X and as PMPI_X; a program that
 * calls MPI_X gets the one that is loaded first, which is this.
 */
#include "trace.h"

#include <stddef.h>

/* A call: first what is to be counted, then the library's own function, timed. */
#define TIMED(name, library, parameters, arguments, counting)                                                          \
    int name parameters                                                                                                \
    {                                                                                                                  \
        double entered = PMPI_Wtime();                                                                                 \
        int result;                                                                                                    \
                                                                                                                       \
        counting;                                                                                                      \
        result = library arguments;                                                                                    \
        trace_seconds += PMPI_Wtime() - entered;                                                                       \
        return result;                                                                                                 \
    }

#define CALL(name, ...) TIMED(MPI_##name, PMPI_##name, __VA_ARGS__)
#define COUNT int
#define PLACE int
#define LARGE 0
#include "calls.h"
#undef CALL
#undef COUNT
#undef PLACE
#undef LARGE

#define CALL(name, ...) TIMED(MPI_##name##_c, PMPI_##name##_c, __VA_ARGS__)
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define LARGE 1
#include "calls.h"
#undef CALL

/* What only takes time. */
#define CALL(name, parameters, arguments) TIMED(MPI_##name, PMPI_##name, parameters, arguments, (void) 0)
CALL(Barrier, (MPI_Comm comm), (comm))
CALL(Probe, (int from, int tag, MPI_Comm comm, MPI_Status *status), (from, tag, comm, status))
CALL(Iprobe, (int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (from, tag, comm, flag, status))
CALL(Wait, (MPI_Request *request, MPI_Status *status), (request, status))
CALL(Waitall, (int count, MPI_Request *requests, MPI_Status *statuses), (count, requests, statuses))
CALL(Waitany, (int count, MPI_Request *requests, int *place, MPI_Status *status), (count, requests, place, status))
CALL(Waitsome, (int count, MPI_Request *requests, int *done, int *places, MPI_Status *statuses),
     (count, requests, done, places, statuses))
CALL(Test, (MPI_Request *request, int *flag, MPI_Status *status), (request, flag, status))
CALL(Testall, (int count, MPI_Request *requests, int *flag, MPI_Status *statuses), (count, requests, flag, statuses))
CALL(Testany, (int count, MPI_Request *requests, int *place, int *flag, MPI_Status *status),
     (count, requests, place, flag, status))
CALL(Testsome, (int count, MPI_Request *requests, int *done, int *places, MPI_Status *statuses),
     (count, requests, done, places, statuses))

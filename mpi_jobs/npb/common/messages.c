/* MPI calls whose time is told from computation, and whose bytes to other hosts are counted. */
#include "internal.h"

double npb_seconds, npb_seconds_in_mpi;
uint64_t npb_fabric_bytes;

static bool running; /* between npb_timer_start and npb_timer_stop */
static double started, entered;

void npb_timer_start(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    npb_seconds_in_mpi = 0;
    running = true;
    started = MPI_Wtime();
}

void npb_timer_stop(void)
{
    npb_seconds = MPI_Wtime() - started;
    running = false;
}

void npb_comm_begin(void)
{
    entered = MPI_Wtime();
}

void npb_comm_end(uint64_t bytes)
{
    if (running)
        npb_seconds_in_mpi += MPI_Wtime() - entered;
    npb_fabric_bytes += bytes;
}

static uint64_t bytes_to(int to, int count, MPI_Datatype type)
{
    int size;

    if (!apart(rank, to))
        return 0;
    MPI_Type_size(type, &size);
    return (uint64_t) count * (uint64_t) size;
}

void npb_send(const void *data, int count, MPI_Datatype type, int to, int tag)
{
    npb_comm_begin();
    MPI_Send(data, count, type, to, tag, MPI_COMM_WORLD);
    npb_comm_end(bytes_to(to, count, type));
}

void npb_recv(void *data, int count, MPI_Datatype type, int from, int tag)
{
    npb_comm_begin();
    MPI_Recv(data, count, type, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    npb_comm_end(0);
}

MPI_Request npb_isend(const void *data, int count, MPI_Datatype type, int to, int tag)
{
    MPI_Request request;

    npb_comm_begin();
    MPI_Isend(data, count, type, to, tag, MPI_COMM_WORLD, &request);
    npb_comm_end(bytes_to(to, count, type));
    return request;
}

MPI_Request npb_irecv(void *data, int count, MPI_Datatype type, int from, int tag)
{
    MPI_Request request;

    npb_comm_begin();
    MPI_Irecv(data, count, type, from, tag, MPI_COMM_WORLD, &request);
    npb_comm_end(0);
    return request;
}

void npb_wait(MPI_Request *request)
{
    npb_comm_begin();
    MPI_Wait(request, MPI_STATUS_IGNORE);
    npb_comm_end(0);
}

void npb_wait_all(int count, MPI_Request *requests)
{
    npb_comm_begin();
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    npb_comm_end(0);
}

void npb_alltoall(const void *out, void *in, int count, MPI_Datatype type)
{
    uint64_t bytes = 0;

    npb_comm_begin();
    MPI_Alltoall(out, count, type, in, count, type, MPI_COMM_WORLD);
    for (int to = 0; to < ranks; to++)
        bytes += bytes_to(to, count, type);
    npb_comm_end(bytes);
}

void npb_alltoallv(const void *out, const int *out_counts, const int *out_starts, void *in, const int *in_counts,
                   const int *in_starts, MPI_Datatype type)
{
    uint64_t bytes = 0;

    npb_comm_begin();
    MPI_Alltoallv(out, out_counts, out_starts, type, in, in_counts, in_starts, type, MPI_COMM_WORLD);
    for (int to = 0; to < ranks; to++)
        bytes += bytes_to(to, out_counts[to], type);
    npb_comm_end(bytes);
}

/*
 * How many bytes that takes is MPI's own affair, but a host must tell its part at least once: the first rank of a host
 * counts it.
 */
void npb_allreduce(void *values, int count, MPI_Datatype type, MPI_Op operation)
{
    uint64_t bytes = 0;
    bool first = true;

    npb_comm_begin();
    MPI_Allreduce(MPI_IN_PLACE, values, count, type, operation, MPI_COMM_WORLD);
    for (int other = 0; other < ranks; other++) {
        if (apart(rank, other))
            bytes = bytes_to(other, count, type);
        else if (other < rank)
            first = false;
    }
    npb_comm_end(first ? bytes : 0);
}

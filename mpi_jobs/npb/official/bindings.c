/*
 * Fortran's names for the part of MPI that NASA's NPB calls, since the MPICH of this project has none and one of the
 * system has another library. Arguments are addresses, handles are numbers, the last argument is the error code.
 */
#include <mpi.h>
#include <stddef.h>

typedef MPI_Fint fint;

/* The variables of mpif.h whose addresses have a meaning; common blocks of the same names. */
fint mpi_ignored_status_[sizeof(MPI_Status) / sizeof(fint)], mpi_ignored_statuses_[sizeof(MPI_Status) / sizeof(fint)];
fint mpi_placed_;

static MPI_Comm comm_of(const fint *comm)
{
    return MPI_Comm_f2c(*comm);
}

static MPI_Datatype type_of(const fint *type)
{
    return MPI_Type_f2c(*type);
}

static const void *place_of(const void *data)
{
    return data == &mpi_placed_ ? MPI_IN_PLACE : data;
}

static MPI_Status *status_of(fint *status)
{
    return status == mpi_ignored_status_ ? MPI_STATUS_IGNORE : (MPI_Status *) (void *) status;
}

/* ------------------------------------------------------------------------------------- start, end, communicators */

void mpi_init_(fint *error) { *error = MPI_Init(NULL, NULL); }

void mpi_init_thread_(fint *required, fint *provided, fint *error)
{
    *error = MPI_Init_thread(NULL, NULL, *required, provided);
}

void mpi_initialized_(fint *flag, fint *error) { *error = MPI_Initialized(flag); }
void mpi_finalize_(fint *error) { *error = MPI_Finalize(); }
void mpi_abort_(fint *comm, fint *code, fint *error) { *error = MPI_Abort(comm_of(comm), *code); }
void mpi_comm_size_(fint *comm, fint *size, fint *error) { *error = MPI_Comm_size(comm_of(comm), size); }
void mpi_comm_rank_(fint *comm, fint *rank, fint *error) { *error = MPI_Comm_rank(comm_of(comm), rank); }
void mpi_barrier_(fint *comm, fint *error) { *error = MPI_Barrier(comm_of(comm)); }
double mpi_wtime_(void) { return MPI_Wtime(); }
double mpi_wtick_(void) { return MPI_Wtick(); }

void mpi_comm_split_(fint *comm, fint *color, fint *key, fint *made, fint *error)
{
    MPI_Comm found;

    *error = MPI_Comm_split(comm_of(comm), *color, *key, &found);
    *made = MPI_Comm_c2f(found);
}

void mpi_comm_dup_(fint *comm, fint *made, fint *error)
{
    MPI_Comm found;

    *error = MPI_Comm_dup(comm_of(comm), &found);
    *made = MPI_Comm_c2f(found);
}

void mpi_comm_free_(fint *comm, fint *error)
{
    MPI_Comm old = comm_of(comm);

    *error = MPI_Comm_free(&old);
    *comm = MPI_Comm_c2f(old);
}

/* ------------------------------------------------------------------------------------------------------ messages */

void mpi_send_(void *data, fint *count, fint *type, fint *to, fint *tag, fint *comm, fint *error)
{
    *error = MPI_Send(data, *count, type_of(type), *to, *tag, comm_of(comm));
}

void mpi_recv_(void *data, fint *count, fint *type, fint *from, fint *tag, fint *comm, fint *status, fint *error)
{
    *error = MPI_Recv(data, *count, type_of(type), *from, *tag, comm_of(comm), status_of(status));
}

void mpi_isend_(void *data, fint *count, fint *type, fint *to, fint *tag, fint *comm, fint *request, fint *error)
{
    MPI_Request made;

    *error = MPI_Isend(data, *count, type_of(type), *to, *tag, comm_of(comm), &made);
    *request = MPI_Request_c2f(made);
}

void mpi_irecv_(void *data, fint *count, fint *type, fint *from, fint *tag, fint *comm, fint *request, fint *error)
{
    MPI_Request made;

    *error = MPI_Irecv(data, *count, type_of(type), *from, *tag, comm_of(comm), &made);
    *request = MPI_Request_c2f(made);
}

void mpi_wait_(fint *request, fint *status, fint *error)
{
    MPI_Request waiting = MPI_Request_f2c(*request);

    *error = MPI_Wait(&waiting, status_of(status));
    *request = MPI_Request_c2f(waiting);
}

/* One after the other: the statuses are the same, and the last comes as early. */
void mpi_waitall_(fint *count, fint *requests, fint *statuses, fint *error)
{
    const size_t length = sizeof(MPI_Status) / sizeof(fint);

    *error = MPI_SUCCESS;
    for (fint i = 0; i < *count && *error == MPI_SUCCESS; i++)
        mpi_wait_(&requests[i], statuses == mpi_ignored_statuses_ ? mpi_ignored_status_
                                                                  : &statuses[(size_t) i * length], error);
}

void mpi_sendrecv_(void *data, fint *count, fint *type, fint *to, fint *tag, void *in, fint *in_count, fint *in_type,
                   fint *from, fint *in_tag, fint *comm, fint *status, fint *error)
{
    *error = MPI_Sendrecv(data, *count, type_of(type), *to, *tag, in, *in_count, type_of(in_type), *from, *in_tag,
                          comm_of(comm), status_of(status));
}

void mpi_probe_(fint *from, fint *tag, fint *comm, fint *status, fint *error)
{
    *error = MPI_Probe(*from, *tag, comm_of(comm), status_of(status));
}

void mpi_get_count_(fint *status, fint *type, fint *count, fint *error)
{
    *error = MPI_Get_count((MPI_Status *) (void *) status, type_of(type), count);
}

/* ------------------------------------------------------------------------------------------ collective operations */

void mpi_bcast_(void *data, fint *count, fint *type, fint *root, fint *comm, fint *error)
{
    *error = MPI_Bcast(data, *count, type_of(type), *root, comm_of(comm));
}

void mpi_reduce_(void *data, void *in, fint *count, fint *type, fint *operation, fint *root, fint *comm, fint *error)
{
    *error = MPI_Reduce(place_of(data), in, *count, type_of(type), MPI_Op_f2c(*operation), *root, comm_of(comm));
}

void mpi_allreduce_(void *data, void *in, fint *count, fint *type, fint *operation, fint *comm, fint *error)
{
    *error = MPI_Allreduce(place_of(data), in, *count, type_of(type), MPI_Op_f2c(*operation), comm_of(comm));
}

void mpi_gather_(void *data, fint *count, fint *type, void *in, fint *in_count, fint *in_type, fint *root, fint *comm,
                 fint *error)
{
    *error = MPI_Gather(place_of(data), *count, type_of(type), in, *in_count, type_of(in_type), *root, comm_of(comm));
}

void mpi_allgather_(void *data, fint *count, fint *type, void *in, fint *in_count, fint *in_type, fint *comm,
                    fint *error)
{
    *error = MPI_Allgather(place_of(data), *count, type_of(type), in, *in_count, type_of(in_type), comm_of(comm));
}

void mpi_alltoall_(void *data, fint *count, fint *type, void *in, fint *in_count, fint *in_type, fint *comm,
                   fint *error)
{
    *error = MPI_Alltoall(place_of(data), *count, type_of(type), in, *in_count, type_of(in_type), comm_of(comm));
}

void mpi_alltoallv_(void *data, fint *counts, fint *starts, fint *type, void *in, fint *in_counts, fint *in_starts,
                    fint *in_type, fint *comm, fint *error)
{
    *error = MPI_Alltoallv(place_of(data), counts, starts, type_of(type), in, in_counts, in_starts, type_of(in_type),
                           comm_of(comm));
}

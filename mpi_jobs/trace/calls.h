/*
 * The calls that have a number of things; included twice, for numbers of int and, as MPI_…_c, of MPI_Count.
 * Of MPI_IN_PLACE the numbers of what is received hold.
 */
#define NUMBERS const COUNT *
#define STARTS const PLACE *
#define GROUP MPI_Comm comm

/* Messages. */
#define SEND(name)                                                                                                     \
    CALL(name, (const void *data, COUNT things, MPI_Datatype type, int to, int tag, GROUP),                            \
         (data, things, type, to, tag, comm), trace_message(comm, to, things, type))
#define ISEND(name)                                                                                                    \
    CALL(name, (const void *data, COUNT things, MPI_Datatype type, int to, int tag, GROUP, MPI_Request *request),      \
         (data, things, type, to, tag, comm, request), trace_message(comm, to, things, type))
SEND(Send)
SEND(Bsend)
SEND(Ssend)
SEND(Rsend)
ISEND(Isend)
ISEND(Ibsend)
ISEND(Issend)
ISEND(Irsend)
CALL(Sendrecv,
     (const void *data, COUNT things, MPI_Datatype type, int to, int tag, void *in, COUNT in_things,
      MPI_Datatype in_type, int from, int in_tag, GROUP, MPI_Status *status),
     (data, things, type, to, tag, in, in_things, in_type, from, in_tag, comm, status),
     trace_message(comm, to, things, type))
CALL(Sendrecv_replace,
     (void *data, COUNT things, MPI_Datatype type, int to, int tag, int from, int in_tag, GROUP, MPI_Status *status),
     (data, things, type, to, tag, from, in_tag, comm, status), trace_message(comm, to, things, type))
CALL(Recv, (void *data, COUNT things, MPI_Datatype type, int from, int tag, GROUP, MPI_Status *status),
     (data, things, type, from, tag, comm, status), (void) 0)
CALL(Irecv, (void *data, COUNT things, MPI_Datatype type, int from, int tag, GROUP, MPI_Request *request),
     (data, things, type, from, tag, comm, request), (void) 0)

/* Collective operations. */
CALL(Bcast, (void *data, COUNT things, MPI_Datatype type, int root, GROUP), (data, things, type, root, comm),
     trace_from_root(comm, root, things, type))
CALL(Reduce, (const void *data, void *in, COUNT things, MPI_Datatype type, MPI_Op op, int root, GROUP),
     (data, in, things, type, op, root, comm), trace_to_root(comm, root, things, type))
CALL(Allreduce, (const void *data, void *in, COUNT things, MPI_Datatype type, MPI_Op op, GROUP),
     (data, in, things, type, op, comm), trace_allreduce(comm, things, type))
CALL(Scan, (const void *data, void *in, COUNT things, MPI_Datatype type, MPI_Op op, GROUP),
     (data, in, things, type, op, comm), trace_scan(comm, things, type))
CALL(Exscan, (const void *data, void *in, COUNT things, MPI_Datatype type, MPI_Op op, GROUP),
     (data, in, things, type, op, comm), trace_scan(comm, things, type))
CALL(Reduce_scatter_block, (const void *data, void *in, COUNT things, MPI_Datatype type, MPI_Op op, GROUP),
     (data, in, things, type, op, comm), trace_to_each(comm, things, type))
CALL(Reduce_scatter, (const void *data, void *in, NUMBERS things, MPI_Datatype type, MPI_Op op, GROUP),
     (data, in, things, type, op, comm), trace_to_each_own(comm, -1, LARGE, things, NULL, type))
CALL(Gather,
     (const void *data, COUNT things, MPI_Datatype type, void *in, COUNT in_things, MPI_Datatype in_type, int root,
      GROUP),
     (data, things, type, in, in_things, in_type, root, comm), trace_to_root(comm, root, things, type))
CALL(Gatherv,
     (const void *data, COUNT things, MPI_Datatype type, void *in, NUMBERS in_things, STARTS in_starts,
      MPI_Datatype in_type, int root, GROUP),
     (data, things, type, in, in_things, in_starts, in_type, root, comm), trace_to_root(comm, root, things, type))
CALL(Scatter,
     (const void *data, COUNT things, MPI_Datatype type, void *in, COUNT in_things, MPI_Datatype in_type, int root,
      GROUP),
     (data, things, type, in, in_things, in_type, root, comm), trace_from_root(comm, root, things, type))
CALL(Scatterv,
     (const void *data, NUMBERS things, STARTS starts, MPI_Datatype type, void *in, COUNT in_things,
      MPI_Datatype in_type, int root, GROUP),
     (data, things, starts, type, in, in_things, in_type, root, comm),
     trace_to_each_own(comm, root, LARGE, things, NULL, type))
CALL(Allgather,
     (const void *data, COUNT things, MPI_Datatype type, void *in, COUNT in_things, MPI_Datatype in_type, GROUP),
     (data, things, type, in, in_things, in_type, comm), trace_to_each(comm, in_things, in_type))
CALL(Allgatherv,
     (const void *data, COUNT things, MPI_Datatype type, void *in, NUMBERS in_things, STARTS in_starts,
      MPI_Datatype in_type, GROUP),
     (data, things, type, in, in_things, in_starts, in_type, comm), trace_allgatherv(comm, LARGE, in_things, in_type))
CALL(Alltoall,
     (const void *data, COUNT things, MPI_Datatype type, void *in, COUNT in_things, MPI_Datatype in_type, GROUP),
     (data, things, type, in, in_things, in_type, comm), trace_to_each(comm, in_things, in_type))
CALL(Alltoallv,
     (const void *data, NUMBERS things, STARTS starts, MPI_Datatype type, void *in, NUMBERS in_things,
      STARTS in_starts, MPI_Datatype in_type, GROUP),
     (data, things, starts, type, in, in_things, in_starts, in_type, comm),
     data == MPI_IN_PLACE ? trace_to_each_own(comm, -1, LARGE, in_things, NULL, in_type)
                          : trace_to_each_own(comm, -1, LARGE, things, NULL, type))
CALL(Alltoallw,
     (const void *data, NUMBERS things, STARTS starts, const MPI_Datatype *types, void *in, NUMBERS in_things,
      STARTS in_starts, const MPI_Datatype *in_types, GROUP),
     (data, things, starts, types, in, in_things, in_starts, in_types, comm),
     data == MPI_IN_PLACE ? trace_to_each_own(comm, -1, LARGE, in_things, in_types, MPI_DATATYPE_NULL)
                          : trace_to_each_own(comm, -1, LARGE, things, types, MPI_DATATYPE_NULL))

/* What moves data and is not counted. */
#define REQUEST MPI_Request *request
#define PERSISTENT(name)                                                                                               \
    CALL(name, (const void *data, COUNT things, MPI_Datatype type, int to, int tag, GROUP, REQUEST),                   \
         (data, things, type, to, tag, comm, request), trace_not_counted("MPI_" #name))
PERSISTENT(Send_init)
PERSISTENT(Bsend_init)
PERSISTENT(Ssend_init)
PERSISTENT(Rsend_init)
CALL(Ibcast, (void *data, COUNT things, MPI_Datatype type, int root, GROUP, REQUEST),
     (data, things, type, root, comm, request), trace_not_counted("MPI_Ibcast"))
CALL(Ireduce, (const void *data, void *in, COUNT things, MPI_Datatype type, MPI_Op op, int root, GROUP, REQUEST),
     (data, in, things, type, op, root, comm, request), trace_not_counted("MPI_Ireduce"))
CALL(Iallreduce, (const void *data, void *in, COUNT things, MPI_Datatype type, MPI_Op op, GROUP, REQUEST),
     (data, in, things, type, op, comm, request), trace_not_counted("MPI_Iallreduce"))
CALL(Iallgather,
     (const void *data, COUNT things, MPI_Datatype type, void *in, COUNT in_things, MPI_Datatype in_type, GROUP,
      REQUEST),
     (data, things, type, in, in_things, in_type, comm, request), trace_not_counted("MPI_Iallgather"))
CALL(Ialltoall,
     (const void *data, COUNT things, MPI_Datatype type, void *in, COUNT in_things, MPI_Datatype in_type, GROUP,
      REQUEST),
     (data, things, type, in, in_things, in_type, comm, request), trace_not_counted("MPI_Ialltoall"))
CALL(Put,
     (const void *data, COUNT things, MPI_Datatype type, int to, MPI_Aint start, COUNT in_things,
      MPI_Datatype in_type, MPI_Win window),
     (data, things, type, to, start, in_things, in_type, window), trace_not_counted("MPI_Put"))
CALL(Get,
     (void *data, COUNT things, MPI_Datatype type, int from, MPI_Aint start, COUNT in_things, MPI_Datatype in_type,
      MPI_Win window),
     (data, things, type, from, start, in_things, in_type, window), trace_not_counted("MPI_Get"))
CALL(Accumulate,
     (const void *data, COUNT things, MPI_Datatype type, int to, MPI_Aint start, COUNT in_things,
      MPI_Datatype in_type, MPI_Op op, MPI_Win window),
     (data, things, type, to, start, in_things, in_type, op, window), trace_not_counted("MPI_Accumulate"))

#undef NUMBERS
#undef STARTS
#undef GROUP
#undef SEND
#undef ISEND
#undef REQUEST
#undef PERSISTENT

/*
 * What the eight kernels of mpi_jobs/npb/ share: arguments and legal sizes, random numbers, timed and counted
 * messages, and the result.
 *
 * The kernels are written from their published specification: D. Bailey and others, "The NAS Parallel Benchmarks",
 * report RNR-94-007, NASA Ames, 1994; "the specification" in comments. A kernel's main is
 *
 *     enum npb_class class = npb_start(argc, argv, "IS", NPB_POWERS_OF_TWO);
 *     npb_limit_ranks(...);  npb_need_memory(...);  ... allocate(...) of bench.h, initial values ...
 *     npb_timer_start();  ... what is timed ...  npb_timer_stop();
 *     return npb_finish(&(struct npb_result){...});
 *
 * with `rank` and `ranks` of bench.h in between. All functions here but those for random numbers and npb_close are
 * to be called by all ranks, or by sender and receiver.
 *
 * Built with -DNPB_PERTURB, each kernel has one constant changed, and must then say UNSUCCESSFUL. That is for tests.
 */
#ifndef NPB_H
#define NPB_H

#include "bench.h"

enum npb_class { NPB_S, NPB_W, NPB_A, NPB_B, NPB_CLASSES }; /* index of tables of sizes */

enum npb_ranks { NPB_ANY, NPB_POWERS_OF_TWO, NPB_SQUARES }; /* legal numbers of ranks */

/* ------------------------------------------------------------------------------------- arguments and resources */

/* MPI_Init and the arguments: `is S`. Ends the program with a sentence if the class or the rank count is illegal. */
enum npb_class npb_start(int argc, char **argv, const char *kernel, enum npb_ranks legal);

/* Ends the program with a sentence if there are more ranks than this class can be shared out to. */
void npb_limit_ranks(int most);

/*
 * Ends the program with a sentence if `bytes` (of this rank; others may need more or less) are not there: compared
 * with this process' own limit, and, where all ranks run on one machine, their sum with its available memory.
 */
void npb_need_memory(size_t bytes);

/* ---------------------------------------------------------------------------------------------- random numbers */

/*
 * The specification's section 2.3: x' = a x mod 2^46, and x' 2^-46 is the number. Low bits of a product do not depend
 * on high bits of its factors, so unsigned arithmetic modulo 2^64 is exact.
 */
#define NPB_SEED UINT64_C(314159265)
#define NPB_MULTIPLIER UINT64_C(1220703125) /* 5^13 */

static inline uint64_t npb_times(uint64_t one, uint64_t other)
{
    return (one * other) & ((UINT64_C(1) << 46) - 1);
}

static inline double npb_fraction(uint64_t seed)
{
    return (double) (int64_t) seed * 0x1p-46;
}

/* The next number, in (0, 1). */
static inline double npb_random(uint64_t *seed)
{
    *seed = npb_times(NPB_MULTIPLIER, *seed);
    return npb_fraction(*seed);
}

/* The next `count` numbers. */
void npb_random_many(size_t count, uint64_t *seed, double *numbers);

/* The seed after `steps` numbers. */
uint64_t npb_skip(uint64_t seed, uint64_t steps);

/* ----------------------------------------------------------------------------------- time, messages, and result */

/* Waits for all ranks; then time counts as computation, or communication when spent in the functions below. */
void npb_timer_start(void);
void npb_timer_stop(void);

/* Around MPI calls other than these; they do not nest. `bytes` is payload that this rank sends to other hosts. */
void npb_comm_begin(void);
void npb_comm_end(uint64_t bytes);

/* As MPI's, in MPI_COMM_WORLD. */
void npb_send(const void *data, int count, MPI_Datatype type, int to, int tag);
void npb_recv(void *data, int count, MPI_Datatype type, int from, int tag);
MPI_Request npb_isend(const void *data, int count, MPI_Datatype type, int to, int tag);
MPI_Request npb_irecv(void *data, int count, MPI_Datatype type, int from, int tag);
void npb_wait(MPI_Request *request);
void npb_wait_all(int count, MPI_Request *requests);
void npb_alltoall(const void *out, void *in, int count, MPI_Datatype type); /* `count` things to each rank */
void npb_alltoallv(const void *out, const int *out_counts, const int *out_starts, void *in, const int *in_counts,
                   const int *in_starts, MPI_Datatype type);
void npb_allreduce(void *values, int count, MPI_Datatype type, MPI_Op operation); /* in place */

/* Whether |value - reference| <= tolerance |reference|; never for what is not a number. */
bool npb_close(double value, double reference, double tolerance);

/* The same; rank 0 prints both. */
bool npb_check(const char *name, double value, double reference, double tolerance);

struct npb_result {
    const char *size;      /* as printed: 64x64x64 */
    int iterations;
    double operations;     /* in the timed part, of all ranks; by each kernel's own published count */
    const char *operation; /* what they are: floating point, keys ranked, random numbers generated */
    bool verified;         /* on rank 0 */
};

/*
 * Prints the result on rank 0: first as NPB users know it, last as one line of JSON. Ends MPI. The result is the
 * exit code: EXIT_BAD_RUN of bench.h if not verified.
 */
int npb_finish(const struct npb_result *result);

#endif

/*
 * LU, the simulated application "lower-upper diagonal" of the specification (npb.h), chapter 3: implicit steps in time
 * towards the steady solution of cfd.h. Each step is one iteration of symmetric successive over-relaxation with
 * triangular matrices of 5 x 5 blocks.
 *
 * Ranks form a grid over x and y; each has a pencil of all z. Solving with a triangular matrix is a wavefront: a rank
 * works on a plane of one z as soon as its two neighbours behind have sent the edges of theirs, and then sends its own
 * to the two ahead, one small message each. The residual takes one large message from each neighbour, two layers of
 * cells.
 *
 * No block is stored or factorised: their products with vectors are written out as differentials of the fluxes, and
 * those on the diagonal are triangular. All in all that takes about half of the operations of the published count, by
 * which Mop/s are printed.
 */
#ifndef LU_H
#define LU_H

#include "npb.h"
#include "cfd.h"

/* Layers of cells around a rank's own: along x and y the neighbours'; along z only so that there is memory to read. */
enum { GHOSTS = 2, MARGIN = 1 };

enum axis { X, Y, Z, AXES };

typedef double cell[CFD_FIELDS]; /* density; momentum in x, y, z; energy */

/* What the equations need of a cell but the fields themselves. */
struct motion {
    double volume;  /* by mass, as are the energies: 1 / density */
    double velocity[AXES];
    double energy;  /* total */
    double kinetic; /* energy */
};

/* Along one axis. */
struct direction {
    int points;         /* of the whole grid */
    int cells;          /* of this rank */
    int offset;         /* of its first in the whole grid */
    int begin, end;     /* its inner cells, those not on the boundary of the cube: begin <= i < end */
    int before, after;  /* the neighbours' ranks, or MPI_PROC_NULL */
    ptrdiff_t stride;   /* from a cell to the next, in arrays */
    double spacing;
    double first;       /* factor of a central first difference: 1 / (2 spacing) */
    double second;      /* of a second difference: 1 / spacing^2 */
    double dissipation; /* of second order: CFD_DX, ... */
};

struct lu {
    struct direction along[AXES];
    double step;  /* in time */
    size_t cells; /* of each array, ghosts and margins included */
    cell *u;
    cell *residual; /* during a step, what becomes the change of u; zero on the boundary */
    cell *forcing;
    struct motion *motion;        /* of u; of ghosts only the nearest layer */
    double (*smoothing[AXES])[5]; /* see make_smoothing; of each cell along an axis */
    double *outgoing, *incoming;  /* buffers for messages: twice a face of two layers each */
};

/* Where the cell (i, j, k) is in the arrays; own cells count from 0, those before them are negative. */
static inline size_t at(const struct lu *lu, int i, int j, int k)
{
    return (size_t) ((k + MARGIN) * lu->along[Z].stride + (j + GHOSTS) * lu->along[Y].stride + i + GHOSTS);
}

/* ----------------------------------------------------------------------------------------------------- share.c */

/* This rank's share of points^3 cells, and memory for it. */
void share_out(struct lu *lu, int points, double step);
void release(struct lu *lu);

/* The most ranks that points^3 cells can be shared out to: each has at least 3 cells along each axis. */
int most_ranks(int points);

/* -------------------------------------------------------------------------------------------------- messages.c */

/* Gets the neighbours' two nearest layers of u into the ghosts. */
void exchange_faces(struct lu *lu);

/* Before and after plane k of a wavefront: the edges of `residual`. `forward` is towards larger x and y. */
void receive_edges(struct lu *lu, int k, bool forward);
void send_edges(struct lu *lu, int k, bool forward);

/* -------------------------------------------------------------------------------------------------- residual.c */

void make_smoothing(struct lu *lu);

/* residual := differences of u in space, less the forcing, at inner cells; first gets ghosts of u, and the motion. */
void compute_residual(struct lu *lu);

/* ---------------------------------------------------------------------------------------------------- sweeps.c */

/* One step of the iteration, from the residual: a wavefront there and one back, the latter changes u. */
void sweep_forward(struct lu *lu);
void sweep_back(struct lu *lu);

/* ----------------------------------------------------------------------------------------------------- state.c */

/* What makes the exact solution a steady one. Spoils u. */
void set_forcing(struct lu *lu);

/* u at the beginning. */
void set_initial(struct lu *lu);

/* Root mean squares over all inner cells, on all ranks. */
void residual_norm(const struct lu *lu, double norm[CFD_FIELDS]);
void error_norm(const struct lu *lu, double norm[CFD_FIELDS]);

/* Of pressure, over a box within the cube; on all ranks. */
double surface_integral(const struct lu *lu);

#endif

/*
 * What SP and BT share: the cube of points in cells, its fields, the right-hand side, and sweeps along lines.
 *
 * Multi-partition: q * q ranks cut the cube into q cells along each axis, q^3 in all. Each rank has q cells, one in
 * each slice of each axis, so that in a sweep along any axis all ranks work in every stage.
 */
#ifndef GRID_H
#define GRID_H

#include <stddef.h>

#include "cfd.h"

enum { AXES = 3 }; /* x, y, z are 0, 1, 2 */
enum { GHOSTS = 2 }; /* layers of neighbouring points around a cell */
enum { LEAST_CELL = 3 }; /* points along an edge: a cell with a face of the cube must fill its neighbour's ghosts */
enum { DENSITY, MOMENTUM, ENERGY = MOMENTUM + AXES }; /* fields; MOMENTUM + axis */

/*
 * Two lines are solved at once, one in each lane: vector instructions then do for whole lines what they cannot do along
 * one. Every x86-64 and ARMv8 processor has vectors of this size.
 */
enum { LANES = 2 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

/* The lines of a cell along one axis, through the inner points of the cube. */
struct grid_lines {
    int pairs;       /* if the number of lines is odd, the last pair is the same line twice */
    int length;      /* inner points */
    ptrdiff_t step;  /* between them */
    int position;    /* of the first along the axis of the cube */
    ptrdiff_t *from; /* LANES * pairs: where each line's first inner point is in the fields */
};

/*
 * The fields are arrays of their own, whose point (x, y, z) of the cell is at x + y * stride[1] + z * stride[2].
 * u and what follows from it have ghosts, so coordinates below 0 and from size on.
 */
struct grid_cell {
    int place[AXES];             /* of the cell among the cells */
    int low[AXES];               /* of its first point in the cube */
    int size[AXES];              /* points */
    int start[AXES], stop[AXES]; /* its points that are not on a face of the cube: start <= coordinate < stop */
    ptrdiff_t stride[AXES];
    struct grid_lines lines[AXES];

    double *u[CFD_FIELDS];
    double *rhs[CFD_FIELDS];     /* times dt, as is the forcing; during a step, also its solution */
    double *forcing[CFD_FIELDS];
    double *volume;              /* 1 / density; this and the next ones with one layer of ghosts */
    double *velocity[AXES];
    double *pressure;
    double *kinetic;             /* energy, by mass */
    double *total;               /* energy, by mass */
    double *sound;               /* its speed; SP alone computes it */
};

/* Factors of the finite differences along an axis, times dt. */
struct grid_axis {
    double first;      /* of central first differences */
    double second;     /* of the artificial dissipation of second order */
    double viscous;    /* of second differences of velocities */
    double *fourth[5]; /* of the dissipation of fourth order: weights of the points from -2 to 2, by position */
    double *linear[5]; /* the same for all dissipation, with the sign it has in the right-hand side */
};

struct grid {
    int points;     /* along each edge of the cube */
    int parts;      /* q: cells along an edge, and of each rank */
    double dt;
    struct grid_axis axes[AXES];
    struct grid_cell *cells;     /* in the order of z */
    int *slices[AXES];           /* which of the cells is the n-th along the axis */
    int before[AXES], after[AXES]; /* the rank that has all preceding cells along the axis, or all following ones */
    struct {
        int count;          /* numbers in a message */
        double *out, *in;
    } faces[AXES][2];       /* 0: with the rank before, 1: with the rank after */
};

/* Shares out points^3 points; allocates no fields yet. There must be at most (points / LEAST_CELL)^2 ranks. */
void grid_share_out(struct grid *grid, int points, double dt);

/* What grid_allocate will allocate, in bytes, for this rank. */
size_t grid_bytes(const struct grid *grid);
void grid_allocate(struct grid *grid);

/* The forcing: the right-hand side of the exact solution, negated. Changes u and rhs. */
void grid_set_forcing(struct grid *grid);

/* u at the start: exact on the faces of the cube, within interpolated from them. */
void grid_set_initial(struct grid *grid);

/* Fetches the ghosts of u from the neighbouring cells. */
void grid_exchange_faces(struct grid *grid);

/* rhs of u, and what follows from u; the ghosts must be there. */
void grid_compute_rhs(struct grid *grid);

/* u + rhs becomes u. */
void grid_add(struct grid *grid);

/* Norms over all ranks; the residual's is that of rhs as it is. */
struct cfd_norms grid_norms(const struct grid *grid);

/* The value at `place` of each of a pair of lines. */
static inline lanes grid_gather(const double *field, const ptrdiff_t *from, ptrdiff_t place)
{
    return (lanes){field[from[0] + place], field[from[1] + place]};
}

static inline void grid_scatter(double *field, const ptrdiff_t *from, ptrdiff_t place, lanes values)
{
    field[from[0] + place] = values[0];
    field[from[1] + place] = values[1];
}

/* ------------------------------------------------------------------------------------------------------- sweeps */

/*
 * Solving along all lines of an axis: elimination from the first cell to the last, substitution back. What crosses to
 * the next cell goes in one message; `in` is NULL in the first cell, `out` in the last. Messages are of whole pairs,
 * pair after pair.
 */
struct grid_sweep {
    int ahead, back;  /* numbers for a line in a message of the elimination, and of the substitution */
    bool full_room;   /* messages always have room for the largest cell possible */
    void (*eliminate)(const struct grid *grid, int cell, int axis, const lanes *in, lanes *out);
    void (*substitute)(const struct grid *grid, int cell, int axis, const lanes *in, lanes *out);
    lanes *in, *out;
};

size_t grid_sweep_bytes(const struct grid *grid, const struct grid_sweep *sweep);
void grid_allocate_sweep(const struct grid *grid, struct grid_sweep *sweep);
void grid_run_sweep(const struct grid *grid, const struct grid_sweep *sweep, int axis);

/* Pairs of lines times length, of the axis that has the most: what a solver must keep of a cell during a sweep. */
size_t grid_line_points(const struct grid_cell *cell);

#endif

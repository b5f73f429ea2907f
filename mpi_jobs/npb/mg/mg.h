/*
 * MG: grids of several levels, shared out to a box of ranks.
 *
 * Level k has 2^k points along each axis, periodically. Where there are more ranks than points along an axis, each
 * point is with one of several ranks and the others have none; they come back when a finer level needs them.
 *
 * A field is an array [z][y][x] of the rank's own points and one ghost around them: own points count from 1 along
 * each axis. Axes are 0 for x, 1 for y, 2 for z. A coarse point c is at the fine point 2 c, counted over all ranks.
 */
#ifndef MG_H
#define MG_H

#include "npb.h"

enum { X, Y, Z, AXES };

struct level {
    int points[AXES];              /* own ones; 0 along an axis where another rank has them */
    int extent[AXES];              /* of a field: points and two ghosts; 2, the neighbours' points, where there are 0 */
    int lower[AXES], upper[AXES];  /* neighbouring ranks */
    int shift[AXES];               /* own coarse point c is at own point 2 c - shift */
    bool missing[AXES];            /* along this axis some ranks have no points */
    bool is_here;                  /* this rank has points */
    double *u, *r;                 /* correction (at the finest level the solution) and residual */
};

struct grids {
    int sides[AXES]; /* of the box of ranks */
    int finest;
    struct level *levels; /* from 1, the coarsest, to `finest` */
    double *v;            /* right-hand side, at the finest level */
    double *buffers[4];   /* room for a face each */
    double *lines[2];     /* room for the longest line each */
};

static inline size_t mg_line(const struct level *level, int z, int y)
{
    return ((size_t) z * (size_t) level->extent[Y] + (size_t) y) * (size_t) level->extent[X];
}

static inline size_t mg_volume(const struct level *level)
{
    return mg_line(level, level->extent[Z], 0);
}

/* Grids with all fields 0; ends the program if that takes too much memory. */
struct grids mg_grids(int finest);

/* The right-hand side: 1 at the points of the ten largest random numbers, -1 at the ten smallest. */
void mg_set_charges(struct grids *grids);

/* Fills a field's ghosts with the neighbours' points. All ranks that have points at this level call it. */
void mg_exchange(const struct grids *grids, const struct level *level, double *field);

/* Gives u to ranks without points at `coarse` that have some at the next finer level, which call it as well. */
void mg_extend(const struct grids *grids, const struct level *coarse);

/* r = v - A u, with ghosts; v may be r. */
void mg_residual(const struct grids *grids, const struct level *level, const double *v);

/* u = u + S r, with ghosts. */
void mg_smooth(const struct grids *grids, const struct level *level, const double coefficients[3]);

/* Coarse r = P fine r, with ghosts. */
void mg_restrict(const struct grids *grids, const struct level *fine, const struct level *coarse);

/* Fine u = fine u + Q coarse u, with ghosts. */
void mg_interpolate(const struct grids *grids, const struct level *coarse, const struct level *fine);

/* Root mean square of r at the finest level. */
double mg_norm(const struct grids *grids);

#endif

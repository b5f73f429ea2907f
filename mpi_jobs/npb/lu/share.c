/* Who has which cells. */
#include "lu.h"

#include <stdlib.h>

enum { LEAST_CELLS = 3 }; /* of a rank along an axis: two layers are a neighbour's ghosts, one may be the boundary */

/* The grid of ranks is a square, or twice as long in x. */
static int ranks_along_x(int count)
{
    int along_x = 1;

    while (along_x * along_x < count)
        along_x *= 2;
    return along_x;
}

int most_ranks(int points)
{
    int most = 1;

    while (points / ranks_along_x(2 * most) >= LEAST_CELLS)
        most *= 2;
    return most;
}

static int larger(int one, int other)
{
    return one > other ? one : other;
}

static void share_axis(struct direction *along, int points, int part, int parts)
{
    int rest = points % parts;

    along->points = points;
    along->cells = points / parts + (part < rest);
    along->offset = part * (points / parts) + (part < rest ? part : rest);
    along->begin = part == 0 ? 1 : 0;
    along->end = along->cells - (part == parts - 1 ? 1 : 0);
    along->spacing = 1.0 / (points - 1);
    along->first = 1 / (2 * along->spacing);
    along->second = 1 / (along->spacing * along->spacing);
}

static void find_neighbours(struct direction *along, int part, int parts, int distance)
{
    along->before = part > 0 ? rank - distance : MPI_PROC_NULL;
    along->after = part < parts - 1 ? rank + distance : MPI_PROC_NULL;
}

void share_out(struct lu *lu, int points, double step)
{
    struct direction *x = &lu->along[X], *y = &lu->along[Y], *z = &lu->along[Z];
    int along_x = ranks_along_x(ranks), along_y = ranks / along_x;
    size_t face, weights = 0;

    share_axis(x, points, rank % along_x, along_x);
    share_axis(y, points, rank / along_x, along_y);
    share_axis(z, points, 0, 1);
    find_neighbours(x, rank % along_x, along_x, 1);
    find_neighbours(y, rank / along_x, along_y, along_x);
    find_neighbours(z, 0, 1, 0);
    x->dissipation = CFD_DX;
    y->dissipation = CFD_DY;
    z->dissipation = CFD_DZ;
    x->stride = 1;
    y->stride = x->cells + 2 * GHOSTS;
    z->stride = y->stride * (y->cells + 2 * GHOSTS);
    lu->step = step;
    lu->cells = (size_t) (z->stride * (z->cells + 2 * MARGIN));
    face = (size_t) (larger(x->cells, y->cells) * z->cells);
    for (enum axis axis = X; axis < AXES; axis++)
        weights += (size_t) lu->along[axis].cells * sizeof *lu->smoothing[axis];
    npb_need_memory(lu->cells * (3 * sizeof(cell) + sizeof(struct motion)) + weights +
                    4 * GHOSTS * face * sizeof(cell));
    lu->u = allocate(lu->cells, sizeof *lu->u);
    lu->residual = allocate(lu->cells, sizeof *lu->residual);
    lu->forcing = allocate(lu->cells, sizeof *lu->forcing);
    lu->motion = allocate(lu->cells, sizeof *lu->motion);
    lu->outgoing = allocate(2 * GHOSTS * face, sizeof(cell));
    lu->incoming = allocate(2 * GHOSTS * face, sizeof(cell));
    for (enum axis axis = X; axis < AXES; axis++)
        lu->smoothing[axis] = allocate((size_t) lu->along[axis].cells, sizeof *lu->smoothing[axis]);
}

void release(struct lu *lu)
{
    for (enum axis axis = X; axis < AXES; axis++)
        free(lu->smoothing[axis]);
    free(lu->incoming);
    free(lu->outgoing);
    free(lu->motion);
    free(lu->forcing);
    free(lu->residual);
    free(lu->u);
}

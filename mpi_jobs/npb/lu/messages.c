/* The messages between neighbours. */
#include "lu.h"

#include <string.h>

enum { FACES = 1, EDGES = 2 }; /* tags */

enum way { OUT, IN }; /* from the grid to a buffer, or back */

/* One cell at (i, j, k); the result is the buffer's next place. */
static double *copy_cell(const struct lu *lu, cell *grid, int i, int j, int k, double *buffer, enum way way)
{
    double *fields = grid[at(lu, i, j, k)];

    memcpy(way == OUT ? buffer : fields, way == OUT ? fields : buffer, sizeof(cell));
    return buffer + CFD_FIELDS;
}

/* As many layers of u as ghosts have, the first of them at `start` along x or y. */
static void copy_layers(const struct lu *lu, enum axis axis, int start, double *buffer, enum way way)
{
    int others = lu->along[axis == X ? Y : X].cells;

    for (int k = 0; k < lu->along[Z].cells; k++)
        for (int other = 0; other < others; other++)
            for (int layer = start; layer < start + GHOSTS; layer++)
                buffer = copy_cell(lu, lu->u, axis == X ? layer : other, axis == X ? other : layer, k, buffer, way);
}

/* The cells inside of one column along y of `residual`. */
static void copy_column(const struct lu *lu, int i, int k, double *buffer, enum way way)
{
    for (int j = lu->along[Y].begin; j < lu->along[Y].end; j++)
        buffer = copy_cell(lu, lu->residual, i, j, k, buffer, way);
}

static void exchange_axis(struct lu *lu, enum axis axis)
{
    const struct direction *along = &lu->along[axis];
    int count = GHOSTS * lu->along[axis == X ? Y : X].cells * lu->along[Z].cells * CFD_FIELDS;
    double *from_after = lu->incoming + count, *to_after = lu->outgoing + count;
    MPI_Request arrivals[2] = {npb_irecv(lu->incoming, count, MPI_DOUBLE, along->before, FACES),
                               npb_irecv(from_after, count, MPI_DOUBLE, along->after, FACES)};

    if (along->after != MPI_PROC_NULL) {
        copy_layers(lu, axis, along->cells - GHOSTS, to_after, OUT);
        npb_send(to_after, count, MPI_DOUBLE, along->after, FACES);
    }
    if (along->before != MPI_PROC_NULL) {
        copy_layers(lu, axis, 0, lu->outgoing, OUT);
        npb_send(lu->outgoing, count, MPI_DOUBLE, along->before, FACES);
    }
    npb_wait_all(2, arrivals);
    if (along->before != MPI_PROC_NULL)
        copy_layers(lu, axis, -GHOSTS, lu->incoming, IN);
    if (along->after != MPI_PROC_NULL)
        copy_layers(lu, axis, along->cells, from_after, IN);
}

void exchange_faces(struct lu *lu)
{
    exchange_axis(lu, X);
    exchange_axis(lu, Y);
}

/* Cells inside of one row along x lie one after the other. */
static int row_count(const struct lu *lu)
{
    return (lu->along[X].end - lu->along[X].begin) * CFD_FIELDS;
}

static int column_count(const struct lu *lu)
{
    return (lu->along[Y].end - lu->along[Y].begin) * CFD_FIELDS;
}

void receive_edges(struct lu *lu, int k, bool forward)
{
    const struct direction *x = &lu->along[X], *y = &lu->along[Y];
    int from_x = forward ? x->before : x->after, from_y = forward ? y->before : y->after;

    if (from_x != MPI_PROC_NULL) {
        npb_recv(lu->incoming, column_count(lu), MPI_DOUBLE, from_x, EDGES);
        copy_column(lu, forward ? -1 : x->cells, k, lu->incoming, IN);
    }
    if (from_y != MPI_PROC_NULL)
        npb_recv(lu->residual[at(lu, x->begin, forward ? -1 : y->cells, k)], row_count(lu), MPI_DOUBLE, from_y, EDGES);
}

void send_edges(struct lu *lu, int k, bool forward)
{
    const struct direction *x = &lu->along[X], *y = &lu->along[Y];
    int to_x = forward ? x->after : x->before, to_y = forward ? y->after : y->before;

    if (to_x != MPI_PROC_NULL) {
        copy_column(lu, forward ? x->cells - 1 : 0, k, lu->outgoing, OUT);
        npb_send(lu->outgoing, column_count(lu), MPI_DOUBLE, to_x, EDGES);
    }
    if (to_y != MPI_PROC_NULL)
        npb_send(lu->residual[at(lu, x->begin, forward ? y->cells - 1 : 0, k)], row_count(lu), MPI_DOUBLE, to_y, EDGES);
}

/* Ghosts from the neighbouring cells: one message to each of six ranks. */
#include <string.h>

#include "grid.h"
#include "npb.h"

/*
 * Copies two layers of a cell to the message, or from it; `layers` is the coordinate of the first. Returns the end of
 * what it has copied.
 */
static double *copy_face(const struct grid_cell *cell, int axis, int layers, double *message, bool pack)
{
    int low[AXES] = {0}, high[AXES];

    memcpy(high, cell->size, sizeof high);
    low[axis] = layers;
    high[axis] = layers + GHOSTS;
    for (int field = 0; field < CFD_FIELDS; field++)
        for (int z = low[2]; z < high[2]; z++)
            for (int y = low[1]; y < high[1]; y++) {
                double *row = cell->u[field] + low[0] + y * cell->stride[1] + z * cell->stride[2];
                size_t count = (size_t) (high[0] - low[0]);

                memcpy(pack ? message : row, pack ? row : message, count * sizeof(double));
                message += count;
            }
    return message;
}

/* Side 0 is that of low coordinates. All cells that have a neighbour there are in one message. */
static void copy_faces(struct grid *grid, int axis, int side, bool pack)
{
    double *message = pack ? grid->faces[axis][side].out : grid->faces[axis][side].in;

    for (int i = 0; i < grid->parts; i++) {
        struct grid_cell *cell = &grid->cells[i];
        int size = cell->size[axis];

        if (cell->place[axis] != (side ? grid->parts - 1 : 0)) {
            int inside = side ? size - GHOSTS : 0, outside = side ? size : -GHOSTS;

            message = copy_face(cell, axis, pack ? inside : outside, message, pack);
        }
    }
}

void grid_exchange_faces(struct grid *grid)
{
    MPI_Request requests[2 * 2 * AXES];
    int count = 0;

    if (grid->parts == 1)
        return;
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < 2; side++)
            requests[count++] = npb_irecv(grid->faces[axis][side].in, grid->faces[axis][side].count, MPI_DOUBLE,
                                          side ? grid->after[axis] : grid->before[axis], 2 * axis + !side);
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < 2; side++) {
            copy_faces(grid, axis, side, true);
            requests[count++] = npb_isend(grid->faces[axis][side].out, grid->faces[axis][side].count, MPI_DOUBLE,
                                          side ? grid->after[axis] : grid->before[axis], 2 * axis + side);
        }
    npb_wait_all(count, requests);
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < 2; side++)
            copy_faces(grid, axis, side, false);
}

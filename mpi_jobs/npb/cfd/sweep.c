/* Stages of a sweep along lines that pass through all cells of an axis. */
#include "grid.h"
#include "npb.h"

/* Pairs of lines in a message between this cell and its neighbours along the axis. */
static int message_pairs(const struct grid *grid, const struct grid_sweep *sweep, const struct grid_cell *cell,
                         int axis)
{
    int edge = grid->points / grid->parts + 1;

    return sweep->full_room ? (edge * edge + LANES - 1) / LANES : cell->lines[axis].pairs;
}

static size_t message_size(const struct grid *grid, const struct grid_sweep *sweep)
{
    size_t pairs = 0, most = (size_t) (sweep->ahead > sweep->back ? sweep->ahead : sweep->back);

    for (int i = 0; i < grid->parts; i++)
        for (int axis = 0; axis < AXES; axis++) {
            size_t here = (size_t) message_pairs(grid, sweep, &grid->cells[i], axis);

            pairs = here > pairs ? here : pairs;
        }
    return pairs * most;
}

size_t grid_sweep_bytes(const struct grid *grid, const struct grid_sweep *sweep)
{
    return 2 * message_size(grid, sweep) * sizeof(lanes);
}

void grid_allocate_sweep(const struct grid *grid, struct grid_sweep *sweep)
{
    sweep->in = allocate(message_size(grid, sweep), sizeof(lanes));
    sweep->out = allocate(message_size(grid, sweep), sizeof(lanes));
}

/* One direction of a sweep; `back` from the last cell to the first. */
static void pass(const struct grid *grid, const struct grid_sweep *sweep, int axis, bool back)
{
    int from = back ? grid->after[axis] : grid->before[axis], to = back ? grid->before[axis] : grid->after[axis];
    int numbers = LANES * (back ? sweep->back : sweep->ahead), tag = 2 * AXES + 2 * axis + back;
    MPI_Request sent = MPI_REQUEST_NULL;

    for (int stage = 0; stage < grid->parts; stage++) {
        bool first = stage == 0, last = stage == grid->parts - 1;
        int cell = grid->slices[axis][back ? grid->parts - 1 - stage : stage];
        int count = numbers * message_pairs(grid, sweep, &grid->cells[cell], axis);

        if (!first) {
            npb_recv(sweep->in, count, MPI_DOUBLE, from, tag);
            npb_wait(&sent);
        }
        (back ? sweep->substitute : sweep->eliminate)(grid, cell, axis, first ? NULL : sweep->in,
                                                      last ? NULL : sweep->out);
        if (!last)
            sent = npb_isend(sweep->out, count, MPI_DOUBLE, to, tag);
    }
}

void grid_run_sweep(const struct grid *grid, const struct grid_sweep *sweep, int axis)
{
    pass(grid, sweep, axis, false);
    pass(grid, sweep, axis, true);
}

size_t grid_line_points(const struct grid_cell *cell)
{
    size_t most = 0;

    for (int axis = 0; axis < AXES; axis++) {
        size_t here = (size_t) cell->lines[axis].pairs * (size_t) cell->lines[axis].length;

        most = here > most ? here : most;
    }
    return most;
}

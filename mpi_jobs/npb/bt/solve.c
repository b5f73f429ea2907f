/* One factor of BT's step after the other: block-tridiagonal systems along x, then y, then z. */
#include "solve.h"

#include <string.h>

#include "blocks.h"
#include "npb.h"

static right_side **solved; /* by cell, then pair of lines, then point: kept from elimination to substitution */

/* Fields and velocities in the order that blocks.h wants. */
static int momentum_of(int axis, int turn)
{
    return MOMENTUM + (axis + turn) % AXES;
}

static struct state state_at(const struct grid_cell *cell, int axis, const ptrdiff_t *from, ptrdiff_t place)
{
    return (struct state){
        .volume = grid_gather(cell->volume, from, place),
        .along = grid_gather(cell->velocity[axis], from, place),
        .across = {grid_gather(cell->velocity[(axis + 1) % AXES], from, place),
                   grid_gather(cell->velocity[(axis + 2) % AXES], from, place)},
        .kinetic = grid_gather(cell->kinetic, from, place),
        .total = grid_gather(cell->total, from, place),
    };
}

/* Eliminates along a pair of lines; `before` is the solved last row of the cell before, or NULL. */
static void eliminate_pair(const struct grid *grid, const struct grid_cell *cell, int axis, const ptrdiff_t *from,
                           const right_side *before, right_side *rows)
{
    const struct grid_lines *lines = &cell->lines[axis];
    const int fields[N] = {DENSITY, momentum_of(axis, 0), momentum_of(axis, 1), momentum_of(axis, 2), ENERGY};
    struct blocks blocks[3]; /* of points i - 1, i, i + 1, in turns */
    struct state state;

    for (int i = -1; i < 1; i++) {
        state = state_at(cell, axis, from, i * lines->step);
        set_blocks(&blocks[i + 1], &state, &grid->axes[axis]);
    }
    for (int i = 0; i < lines->length; i++) {
        struct blocks *last = &blocks[i % 3], *here = &blocks[(i + 1) % 3], *next = &blocks[(i + 2) % 3];

        state = state_at(cell, axis, from, (i + 1) * lines->step);
        set_blocks(next, &state, &grid->axes[axis]);
        for (int m = 0; m < N; m++) {
            memcpy(rows[i][m], next->above[m], sizeof next->above[m]);
            rows[i][m][N] = grid_gather(cell->rhs[fields[m]], from, i * lines->step);
        }
        if (before)
            eliminate_below(last->below, *before, here->middle, rows[i]);
        solve_middle(here->middle, rows[i]);
        before = &rows[i];
    }
}

static void eliminate(const struct grid *grid, int which, int axis, const lanes *in, lanes *out)
{
    const struct grid_cell *cell = &grid->cells[which];
    const struct grid_lines *lines = &cell->lines[axis];

    for (int pair = 0; pair < lines->pairs; pair++) {
        const right_side *before = in ? (const right_side *) in + pair : NULL;
        right_side *rows = solved[which] + pair * lines->length;

        eliminate_pair(grid, cell, axis, lines->from + pair * LANES, before, rows);
        if (out)
            memcpy((right_side *) out + pair, rows[lines->length - 1], sizeof(right_side));
    }
}

/* From the last row to the first: x(i) = rhs(i) - above(i) x(i + 1), where rows are solved. `x` is that of i + 1. */
static void substitute_pair(const struct grid_cell *cell, int axis, const ptrdiff_t *from, right_side *rows,
                            lanes x[N])
{
    const struct grid_lines *lines = &cell->lines[axis];
    const int fields[N] = {DENSITY, momentum_of(axis, 0), momentum_of(axis, 1), momentum_of(axis, 2), ENERGY};

    for (int i = lines->length - 1; i >= 0; i--) {
        lanes here[N];

        for (int m = 0; m < N; m++) {
            here[m] = rows[i][m][N];
            for (int n = 0; n < N; n++)
                here[m] -= rows[i][m][n] * x[n];
            grid_scatter(cell->rhs[fields[m]], from, i * lines->step, here[m]);
        }
        memcpy(x, here, sizeof here);
    }
}

static void substitute(const struct grid *grid, int which, int axis, const lanes *in, lanes *out)
{
    const struct grid_cell *cell = &grid->cells[which];
    const struct grid_lines *lines = &cell->lines[axis];

    for (int pair = 0; pair < lines->pairs; pair++) {
        lanes x[N] = {{0}}; /* behind the last inner point is the face, which does not change */

        if (in)
            memcpy(x, in + pair * N, sizeof x);
        substitute_pair(cell, axis, lines->from + pair * LANES, solved[which] + pair * lines->length, x);
        if (out)
            memcpy(out + pair * N, x, sizeof x);
    }
}

/* All messages are of one size, as in NPB's own program, which so loads the network more than small cells need. */
static struct grid_sweep sweep = {
    .ahead = N * (N + 1),
    .back = N,
    .full_room = true,
    .eliminate = eliminate,
    .substitute = substitute,
};

size_t bt_bytes(const struct grid *grid)
{
    size_t bytes = grid_sweep_bytes(grid, &sweep);

    for (int i = 0; i < grid->parts; i++)
        bytes += grid_line_points(&grid->cells[i]) * sizeof(right_side);
    return bytes;
}

void bt_allocate(const struct grid *grid)
{
    grid_allocate_sweep(grid, &sweep);
    solved = allocate((size_t) grid->parts, sizeof *solved);
    for (int i = 0; i < grid->parts; i++)
        solved[i] = allocate(grid_line_points(&grid->cells[i]), sizeof(right_side));
}

void bt_solve(struct grid *grid)
{
    for (int axis = 0; axis < AXES; axis++)
        grid_run_sweep(grid, &sweep, axis);
}

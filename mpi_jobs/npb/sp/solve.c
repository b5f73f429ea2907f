/* One factor of SP's step after the other: systems with five diagonals along x, then y, then z. */
#include "solve.h"

#include <math.h>
#include <string.h>

#include "characteristics.h"
#include "npb.h"

/*
 * Three different systems for five right sides: one for the first three, one for v + c and one for v - c. A row that
 * is eliminated is x(i) + next x(i + 1) + next_but_one x(i + 2) = right.
 */
enum { SYSTEMS = 3 };
static const int system_of[CFD_FIELDS] = {0, 0, 0, 1, 2};

struct row {
    lanes next[SYSTEMS], next_but_one[SYSTEMS], right[CFD_FIELDS];
};

static struct row **solved; /* by cell, then pair of lines, then point: kept from elimination to substitution */

static struct state state_at(const struct grid_cell *cell, const ptrdiff_t *from, ptrdiff_t place)
{
    return (struct state){
        .volume = grid_gather(cell->volume, from, place),
        .velocity = {grid_gather(cell->velocity[0], from, place), grid_gather(cell->velocity[1], from, place),
                     grid_gather(cell->velocity[2], from, place)},
        .kinetic = grid_gather(cell->kinetic, from, place),
        .sound = grid_gather(cell->sound, from, place),
    };
}

/* What a point contributes to the rows before and after it in the middle system, and to its own. */
struct point {
    lanes flow, sound, viscous;
};

static inline struct point point_at(const struct grid_axis *factors, const struct grid_cell *cell, int axis,
                                    const ptrdiff_t *from, ptrdiff_t place)
{
    const double largest = CFD_K1 * CFD_K5; /* of the factors of viscosity, 1, 4/3 and k1 k5, in the five equations */

    return (struct point){
        .flow = factors->first * grid_gather(cell->velocity[axis], from, place),
        .sound = factors->first * grid_gather(cell->sound, from, place),
        .viscous = factors->second + factors->viscous * largest * grid_gather(cell->volume, from, place),
    };
}

/* Subtracts multiples of the rows one and two before from a row, and scales it to have 1 on its diagonal. */
static inline void eliminate_row(struct row *row, const struct row *one, const struct row *two, lanes two_before,
                                 lanes before[SYSTEMS], lanes diagonal)
{
    lanes inverse[SYSTEMS];

    for (int s = 0; s < SYSTEMS; s++) {
        before[s] -= two_before * two->next[s];
        inverse[s] = 1 / (diagonal - two_before * two->next_but_one[s] - before[s] * one->next[s]);
        row->next[s] = inverse[s] * (row->next[s] - before[s] * one->next_but_one[s]);
        row->next_but_one[s] *= inverse[s];
    }
    for (int field = 0; field < CFD_FIELDS; field++) {
        int s = system_of[field];

        row->right[field] = inverse[s] * (row->right[field] - two_before * two->right[field]
                                          - before[s] * one->right[field]);
    }
}

/* Eliminates along a pair of lines; `two` and `one` are the last rows of the cell before. */
static void eliminate_pair(const struct grid *grid, const struct grid_cell *cell, int axis, const ptrdiff_t *from,
                           const struct row *two, const struct row *one, struct row *rows)
{
    const struct grid_lines *lines = &cell->lines[axis];
    const struct grid_axis *factors = &grid->axes[axis];
    struct point last = point_at(factors, cell, axis, from, -lines->step);
    struct point here = point_at(factors, cell, axis, from, 0);
    const lanes zero = {0};

    for (int i = 0; i < lines->length; i++) {
        ptrdiff_t place = i * lines->step;
        int position = lines->position + i;
        struct point next = point_at(factors, cell, axis, from, place + lines->step);
        struct row *row = &rows[i];
        const lanes below = factors->fourth[1][position] - last.flow - last.viscous;
        const lanes above = factors->fourth[3][position] + next.flow - next.viscous;
        lanes before[SYSTEMS] = {below, below - last.sound, below + last.sound};

        row->next[0] = above;
        row->next[1] = above + next.sound;
        row->next[2] = above - next.sound;
        for (int s = 0; s < SYSTEMS; s++)
            row->next_but_one[s] = zero + factors->fourth[4][position];
        for (int field = 0; field < CFD_FIELDS; field++)
            row->right[field] = grid_gather(cell->rhs[field], from, place);
        if (axis == 0) {
            struct state state = state_at(cell, from, place);

            fields_to_x(row->right, &state);
        }
        eliminate_row(row, one, two, zero + factors->fourth[0][position], before,
                      1 + factors->fourth[2][position] + 2 * here.viscous);
        two = one;
        one = row;
        last = here;
        here = next;
    }
}

static void eliminate(const struct grid *grid, int which, int axis, const lanes *in, lanes *out)
{
    static const struct row face; /* its points, and none before, do not change */
    const struct grid_cell *cell = &grid->cells[which];
    const struct grid_lines *lines = &cell->lines[axis];

    for (int pair = 0; pair < lines->pairs; pair++) {
        const struct row *before = in ? (const struct row *) in + 2 * pair : NULL;
        struct row *rows = solved[which] + pair * lines->length;

        eliminate_pair(grid, cell, axis, lines->from + pair * LANES, before ? &before[0] : &face,
                       before ? &before[1] : &face, rows);
        if (out)
            memcpy((struct row *) out + 2 * pair, &rows[lines->length - 2], 2 * sizeof *rows);
    }
}

/* Stores the solution at a point, in the terms of the next axis. */
static inline void store(const struct grid_cell *cell, int axis, const ptrdiff_t *from, ptrdiff_t place,
                         const lanes x[CFD_FIELDS])
{
    lanes amounts[CFD_FIELDS];
    struct state state;

    memcpy(amounts, x, sizeof amounts);
    switch (axis) {
    case 0:
        x_to_y(amounts);
        break;
    case 1:
        y_to_z(amounts);
        break;
    default:
        state = state_at(cell, from, place);
        z_to_fields(amounts, &state);
    }
    for (int field = 0; field < CFD_FIELDS; field++)
        grid_scatter(cell->rhs[field], from, place, amounts[field]);
}

/* From the last row to the first; `x` is the solution at the first two points of the next cell, and then of this. */
static void substitute_pair(const struct grid_cell *cell, int axis, const ptrdiff_t *from, const struct row *rows,
                            lanes x[2][CFD_FIELDS])
{
    const struct grid_lines *lines = &cell->lines[axis];

    for (int i = lines->length - 1; i >= 0; i--) {
        for (int field = 0; field < CFD_FIELDS; field++) {
            int s = system_of[field];
            lanes here = rows[i].right[field] - rows[i].next[s] * x[0][field] - rows[i].next_but_one[s] * x[1][field];

            x[1][field] = x[0][field];
            x[0][field] = here;
        }
        store(cell, axis, from, i * lines->step, x[0]);
    }
}

static void substitute(const struct grid *grid, int which, int axis, const lanes *in, lanes *out)
{
    const struct grid_cell *cell = &grid->cells[which];
    const struct grid_lines *lines = &cell->lines[axis];

    for (int pair = 0; pair < lines->pairs; pair++) {
        lanes x[2][CFD_FIELDS] = {{{0}}}; /* the face does not change */

        if (in)
            memcpy(x, in + 2 * CFD_FIELDS * pair, sizeof x);
        substitute_pair(cell, axis, lines->from + pair * LANES, solved[which] + pair * lines->length, x);
        if (out)
            memcpy(out + 2 * CFD_FIELDS * pair, x, sizeof x);
    }
}

static struct grid_sweep sweep = {
    .ahead = 2 * sizeof(struct row) / sizeof(lanes),
    .back = 2 * CFD_FIELDS,
    .eliminate = eliminate,
    .substitute = substitute,
};

size_t sp_bytes(const struct grid *grid)
{
    size_t bytes = grid_sweep_bytes(grid, &sweep);

    for (int i = 0; i < grid->parts; i++)
        bytes += grid_line_points(&grid->cells[i]) * sizeof(struct row);
    return bytes;
}

void sp_allocate(const struct grid *grid)
{
    grid_allocate_sweep(grid, &sweep);
    solved = allocate((size_t) grid->parts, sizeof *solved);
    for (int i = 0; i < grid->parts; i++)
        solved[i] = allocate(grid_line_points(&grid->cells[i]), sizeof(struct row));
}

/* The speed of sound at the points of a cell and one layer around. */
static void compute_sound(const struct grid_cell *cell)
{
    for (int z = -1; z <= cell->size[2]; z++)
        for (int y = -1; y <= cell->size[1]; y++) {
            ptrdiff_t row = y * cell->stride[1] + z * cell->stride[2];

            for (ptrdiff_t place = row - 1; place <= row + cell->size[0]; place++)
                cell->sound[place] = sqrt(CFD_K1 * cell->pressure[place] * cell->volume[place]);
        }
}

void sp_solve(struct grid *grid)
{
    for (int i = 0; i < grid->parts; i++)
        compute_sound(&grid->cells[i]);
    for (int axis = 0; axis < AXES; axis++)
        grid_run_sweep(grid, &sweep, axis);
}

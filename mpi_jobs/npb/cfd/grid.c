/* Sharing out the cube, and memory for the cells. */
#include "grid.h"

#include <math.h>

#include "npb.h"

enum { GHOSTED_FIELDS = 3 * CFD_FIELDS + 5 + AXES };

static int integer_root(int number)
{
    return (int) lround(sqrt(number));
}

static int remainder_of(int number, int divisor)
{
    return (number % divisor + divisor) % divisor;
}

/*
 * The fourth-order dissipation of chapter 3: 1 -4 6 -4 1, but 5 -4 1 and -4 6 -4 1 at the first and second point from
 * a face of the cube, which need neither points outside nor more of the face than its neighbour does.
 */
static void weigh_dissipation(struct grid_axis *axis, int points, double dt)
{
    static const double inner[5] = {1, -4, 6, -4, 1};
    static const double second[5] = {0, 1, -2, 1, 0};

    for (int i = 0; i < 5; i++) {
        axis->fourth[i] = allocate((size_t) points, sizeof(double));
        axis->linear[i] = allocate((size_t) points, sizeof(double));
    }
    for (int position = 1; position < points - 1; position++) {
        int from_face = position < points - 1 - position ? position : points - 1 - position;
        bool low = position < points / 2;

        for (int i = 0; i < 5; i++) {
            int other = low ? i : 4 - i; /* counted from the face */
            double weight = inner[i];

            if (from_face == 1)
                weight = other < 2 ? 0 : other == 2 ? 5 : inner[i];
            if (from_face == 2 && other == 0)
                weight = 0;
            axis->fourth[i][position] = dt * CFD_FOURTH * weight;
            axis->linear[i][position] = axis->second * second[i] - axis->fourth[i][position];
        }
    }
}

static void set_axes(struct grid *grid)
{
    static const double dissipation[AXES] = {CFD_DX, CFD_DY, CFD_DZ};
    double inverse = grid->points - 1; /* of the spacing */

    for (int axis = 0; axis < AXES; axis++) {
        struct grid_axis *factors = &grid->axes[axis];

        factors->first = grid->dt * inverse / 2;
        factors->second = grid->dt * dissipation[axis] * inverse * inverse;
        factors->viscous = grid->dt * CFD_K3 * CFD_K4 * inverse * inverse;
        weigh_dissipation(factors, grid->points, grid->dt);
    }
}

/*
 * Lines along z step from plane to plane: planes an even number of cache lines apart would crowd into some of the
 * cache's sets. So this rounds a distance up to an odd number of cache lines.
 */
static ptrdiff_t spread_out(ptrdiff_t numbers)
{
    const ptrdiff_t line = 64 / sizeof(double);

    return ((numbers + line - 1) / line | 1) * line;
}

/* The larger parts come first. */
static void place_cell(const struct grid *grid, struct grid_cell *cell)
{
    int size = grid->points / grid->parts, larger = grid->points % grid->parts;

    for (int axis = 0; axis < AXES; axis++) {
        int place = cell->place[axis];

        cell->size[axis] = size + (place < larger);
        cell->low[axis] = place * size + (place < larger ? place : larger);
        cell->start[axis] = place == 0;
        cell->stop[axis] = cell->size[axis] - (place == grid->parts - 1);
    }
    cell->stride[0] = 1;
    cell->stride[1] = cell->size[0] + 2 * GHOSTS;
    cell->stride[2] = spread_out(cell->stride[1] * (cell->size[1] + 2 * GHOSTS));
}

static void draw_lines(struct grid_cell *cell, int axis)
{
    struct grid_lines *lines = &cell->lines[axis];
    int inner = axis == 0, outer = axis == 2 ? 1 : 2;
    int count = (cell->stop[inner] - cell->start[inner]) * (cell->stop[outer] - cell->start[outer]), at = 0;

    lines->pairs = (count + LANES - 1) / LANES;
    lines->length = cell->stop[axis] - cell->start[axis];
    lines->step = cell->stride[axis];
    lines->position = cell->low[axis] + cell->start[axis];
    lines->from = allocate((size_t) lines->pairs * LANES, sizeof *lines->from);
    for (int j = cell->start[outer]; j < cell->stop[outer]; j++)
        for (int i = cell->start[inner]; i < cell->stop[inner]; i++)
            lines->from[at++] = i * cell->stride[inner] + j * cell->stride[outer]
                                + cell->start[axis] * cell->stride[axis];
    for (; at < lines->pairs * LANES; at++)
        lines->from[at] = lines->from[at - 1];
}

/* Numbers in the messages of faces: GHOSTS layers of each cell that has a neighbour on that side. */
static void measure_faces(struct grid *grid)
{
    for (int axis = 0; axis < AXES; axis++) {
        grid->faces[axis][0].count = grid->faces[axis][1].count = 0;
        for (int i = 0; i < grid->parts; i++) {
            const struct grid_cell *cell = &grid->cells[i];
            int face = GHOSTS * CFD_FIELDS;

            for (int other = 0; other < AXES; other++)
                face *= other == axis ? 1 : cell->size[other];
            grid->faces[axis][0].count += cell->place[axis] > 0 ? face : 0;
            grid->faces[axis][1].count += cell->place[axis] < grid->parts - 1 ? face : 0;
        }
    }
}

/*
 * Rank column + q row has the cells at (column + i, row - i, i) modulo q for i from 0 to q - 1: a diagonal of the cube,
 * closed to a ring. All neighbours of its cells along an axis, in one direction, belong to one other rank.
 */
void grid_share_out(struct grid *grid, int points, double dt)
{
    int q = integer_root(ranks), column = rank % q, row = rank / q;

    *grid = (struct grid){
        .points = points,
        .parts = q,
        .dt = dt,
        .cells = allocate((size_t) q, sizeof(struct grid_cell)),
        .before = {remainder_of(column - 1, q) + q * row, column + q * remainder_of(row - 1, q),
                   remainder_of(column + 1, q) + q * remainder_of(row - 1, q)},
        .after = {remainder_of(column + 1, q) + q * row, column + q * remainder_of(row + 1, q),
                  remainder_of(column - 1, q) + q * remainder_of(row + 1, q)},
    };
    set_axes(grid);
    for (int axis = 0; axis < AXES; axis++)
        grid->slices[axis] = allocate((size_t) q, sizeof(int));
    for (int i = 0; i < q; i++) {
        struct grid_cell *cell = &grid->cells[i];

        cell->place[0] = remainder_of(column + i, q);
        cell->place[1] = remainder_of(row - i, q);
        cell->place[2] = i;
        place_cell(grid, cell);
        for (int axis = 0; axis < AXES; axis++) {
            grid->slices[axis][cell->place[axis]] = i;
            draw_lines(cell, axis);
        }
    }
    measure_faces(grid);
}

/*
 * Numbers from one field of a cell to the next: some more than whole pages, as stores to a place in one page delay
 * loads from the same place in another.
 */
static size_t field_size(const struct grid_cell *cell)
{
    const size_t page = 4096 / sizeof(double), apart = 24;
    size_t size = (size_t) cell->stride[2] * (size_t) (cell->size[2] + 2 * GHOSTS);

    return (size + page - 1) / page * page + apart;
}

size_t grid_bytes(const struct grid *grid)
{
    size_t numbers = 0;

    for (int i = 0; i < grid->parts; i++)
        numbers += GHOSTED_FIELDS * field_size(&grid->cells[i]);
    for (int axis = 0; axis < AXES; axis++)
        numbers += 2 * (size_t) (grid->faces[axis][0].count + grid->faces[axis][1].count);
    return numbers * sizeof(double);
}

static void allocate_cell(struct grid_cell *cell)
{
    size_t size = field_size(cell);
    double *next = allocate(GHOSTED_FIELDS * size, sizeof(double));
    double **single[] = {&cell->volume, &cell->pressure, &cell->kinetic, &cell->total, &cell->sound};

    next += GHOSTS * (cell->stride[0] + cell->stride[1] + cell->stride[2]);
    for (int field = 0; field < CFD_FIELDS; field++, next += 3 * size) {
        cell->u[field] = next;
        cell->rhs[field] = next + size;
        cell->forcing[field] = next + 2 * size;
    }
    for (int axis = 0; axis < AXES; axis++, next += size)
        cell->velocity[axis] = next;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++, next += size)
        *single[i] = next;
}

void grid_allocate(struct grid *grid)
{
    for (int i = 0; i < grid->parts; i++)
        allocate_cell(&grid->cells[i]);
    for (int axis = 0; axis < AXES; axis++)
        for (int side = 0; side < 2; side++) {
            grid->faces[axis][side].out = allocate((size_t) grid->faces[axis][side].count, sizeof(double));
            grid->faces[axis][side].in = allocate((size_t) grid->faces[axis][side].count, sizeof(double));
        }
}

/* The forcing and the fields at the start, both from the exact solution. */
#include <stdbool.h>

#include "grid.h"

static void set_point(struct grid_cell *cell, const int at[AXES], const double fields[CFD_FIELDS])
{
    ptrdiff_t place = at[0] + at[1] * cell->stride[1] + at[2] * cell->stride[2];

    for (int field = 0; field < CFD_FIELDS; field++)
        cell->u[field][place] = fields[field];
}

/*
 * Transfinite interpolation between the six faces of the cube (chapter 3): of linear interpolations along each axis,
 * the sum less the products of two plus the product of all.
 */
static void interpolate(const double place[AXES], double fields[CFD_FIELDS])
{
    double along[AXES][CFD_FIELDS];

    for (int axis = 0; axis < AXES; axis++) {
        double end[AXES] = {place[0], place[1], place[2]}, low[CFD_FIELDS], high[CFD_FIELDS];

        end[axis] = 0;
        cfd_exact(end[0], end[1], end[2], low);
        end[axis] = 1;
        cfd_exact(end[0], end[1], end[2], high);
        for (int field = 0; field < CFD_FIELDS; field++)
            along[axis][field] = place[axis] * high[field] + (1 - place[axis]) * low[field];
    }
    for (int field = 0; field < CFD_FIELDS; field++) {
        double x = along[0][field], y = along[1][field], z = along[2][field];

        fields[field] = x + y + z - x * y - x * z - y * z + x * y * z;
    }
}

/* Sets u at the cell's points and, if `ghosts`, around them; outside the cube to some state of a gas at rest. */
static void set_cell(const struct grid *grid, struct grid_cell *cell, bool ghosts, bool exact)
{
    static const double at_rest[CFD_FIELDS] = {[DENSITY] = 1, [ENERGY] = 1};
    int layers = ghosts ? GHOSTS : 0, last = grid->points - 1, at[AXES];

    for (at[2] = -layers; at[2] < cell->size[2] + layers; at[2]++)
        for (at[1] = -layers; at[1] < cell->size[1] + layers; at[1]++)
            for (at[0] = -layers; at[0] < cell->size[0] + layers; at[0]++) {
                double place[AXES], fields[CFD_FIELDS];
                bool outside = false, face = false;

                for (int axis = 0; axis < AXES; axis++) {
                    int position = cell->low[axis] + at[axis];

                    place[axis] = (double) position / last;
                    outside = outside || position < 0 || position > last;
                    face = face || position == 0 || position == last;
                }
                if (exact || face)
                    cfd_exact(place[0], place[1], place[2], fields);
                else
                    interpolate(place, fields);
                set_point(cell, at, outside ? at_rest : fields);
            }
}

void grid_set_initial(struct grid *grid)
{
    for (int i = 0; i < grid->parts; i++)
        set_cell(grid, &grid->cells[i], false, false);
}

void grid_set_forcing(struct grid *grid)
{
    for (int i = 0; i < grid->parts; i++)
        set_cell(grid, &grid->cells[i], true, true);
    grid_compute_rhs(grid); /* while the forcing is still zero */
    for (int i = 0; i < grid->parts; i++) {
        struct grid_cell *cell = &grid->cells[i];

        for (int field = 0; field < CFD_FIELDS; field++)
            for (int z = cell->start[2]; z < cell->stop[2]; z++)
                for (int y = cell->start[1]; y < cell->stop[1]; y++)
                    for (int x = cell->start[0]; x < cell->stop[0]; x++) {
                        ptrdiff_t place = x + y * cell->stride[1] + z * cell->stride[2];

                        cell->forcing[field][place] = -cell->rhs[field][place];
                    }
    }
}

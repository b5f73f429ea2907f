/*
 * The right-hand side of chapter 3 of the specification, by central differences: fluxes, viscous terms, dissipation,
 * and the forcing. Works row after row along x, so that the compiler can use vector instructions for all three axes.
 */
#include <string.h>

#include "grid.h"

#define ROW static inline __attribute__((always_inline)) void

/*
 * A row of points along x, and differences along some axis. The weights of dissipation depend on the position along
 * that axis: for x they change within the row, so `moves` is 1, otherwise 0.
 */
struct row {
    ptrdiff_t count;
    ptrdiff_t step; /* to the next point along the axis */
    ptrdiff_t moves;
    double first, viscous;
    const double *linear[5];
};

static inline double dissipation(const struct row *row, const double *u, ptrdiff_t i)
{
    return row->linear[0][i * row->moves] * u[i - 2 * row->step] + row->linear[1][i * row->moves] * u[i - row->step]
           + row->linear[2][i * row->moves] * u[i] + row->linear[3][i * row->moves] * u[i + row->step]
           + row->linear[4][i * row->moves] * u[i + 2 * row->step];
}

static inline double second_difference(const double *values, ptrdiff_t i, ptrdiff_t step)
{
    return values[i + step] - 2 * values[i] + values[i - step];
}

ROW add_to_density(struct row row, double *restrict rhs, const double *restrict density,
                   const double *restrict momentum)
{
    for (ptrdiff_t i = 0; i < row.count; i++)
        rhs[i] += dissipation(&row, density, i) - row.first * (momentum[i + row.step] - momentum[i - row.step]);
}

ROW add_to_momentum_along(struct row row, double *restrict rhs, const double *restrict momentum,
                          const double *restrict velocity, const double *restrict pressure)
{
    for (ptrdiff_t i = 0; i < row.count; i++) {
        ptrdiff_t next = i + row.step, last = i - row.step;

        rhs[i] += dissipation(&row, momentum, i) + 4.0 / 3 * row.viscous * second_difference(velocity, i, row.step)
                  - row.first * (momentum[next] * velocity[next] + pressure[next]
                                 - (momentum[last] * velocity[last] + pressure[last]));
    }
}

ROW add_to_momentum_across(struct row row, double *restrict rhs, const double *restrict momentum,
                           const double *restrict own_velocity, const double *restrict velocity)
{
    for (ptrdiff_t i = 0; i < row.count; i++) {
        ptrdiff_t next = i + row.step, last = i - row.step;

        rhs[i] += dissipation(&row, momentum, i) + row.viscous * second_difference(own_velocity, i, row.step)
                  - row.first * (momentum[next] * velocity[next] - momentum[last] * velocity[last]);
    }
}

ROW add_to_energy(struct row row, double *restrict rhs, const double *restrict energy, const double *restrict velocity,
                  const double *restrict pressure, const double *restrict kinetic, const double *restrict total)
{
    const double conductive = CFD_K1 * CFD_K5;

    for (ptrdiff_t i = 0; i < row.count; i++) {
        ptrdiff_t next = i + row.step, last = i - row.step;
        double here = velocity[i], after = velocity[next], before = velocity[last];

        rhs[i] += dissipation(&row, energy, i)
                  + row.viscous * ((1 - conductive) * second_difference(kinetic, i, row.step)
                                   + (after * after - 2 * here * here + before * before) / 6
                                   + conductive * second_difference(total, i, row.step))
                  - row.first * ((energy[next] + pressure[next]) * after - (energy[last] + pressure[last]) * before);
    }
}

/* Adds the differences along an axis to the row that begins at `place`; `axis` is a constant after inlining. */
ROW add_axis(const struct grid *grid, const struct grid_cell *cell, int axis, int position, ptrdiff_t place)
{
    const struct grid_axis *factors = &grid->axes[axis];
    struct row row = {
        .count = cell->stop[0] - cell->start[0],
        .step = axis == 0 ? 1 : cell->stride[axis],
        .moves = axis == 0,
        .first = factors->first,
        .viscous = factors->viscous,
    };
    const double *along = cell->velocity[axis] + place, *pressure = cell->pressure + place;

    for (int i = 0; i < 5; i++)
        row.linear[i] = factors->linear[i] + position;
    add_to_density(row, cell->rhs[DENSITY] + place, cell->u[DENSITY] + place, cell->u[MOMENTUM + axis] + place);
    for (int other = 0; other < AXES; other++) {
        int field = MOMENTUM + other;

        if (other == axis)
            add_to_momentum_along(row, cell->rhs[field] + place, cell->u[field] + place, along, pressure);
        else
            add_to_momentum_across(row, cell->rhs[field] + place, cell->u[field] + place, cell->velocity[other] + place,
                                   along);
    }
    add_to_energy(row, cell->rhs[ENERGY] + place, cell->u[ENERGY] + place, along, pressure, cell->kinetic + place,
                  cell->total + place);
}

/* What the fluxes and the solvers need of u, at the points of the cell and one layer around. */
static void derive_row(const struct grid_cell *cell, ptrdiff_t place, int count)
{
    const double *restrict density = cell->u[DENSITY] + place, *restrict energy = cell->u[ENERGY] + place;
    const double *restrict x = cell->u[MOMENTUM] + place, *restrict y = cell->u[MOMENTUM + 1] + place,
                 *restrict z = cell->u[MOMENTUM + 2] + place;
    double *restrict volume = cell->volume + place, *restrict pressure = cell->pressure + place,
           *restrict kinetic = cell->kinetic + place, *restrict total = cell->total + place;
    double *restrict along_x = cell->velocity[0] + place, *restrict along_y = cell->velocity[1] + place,
           *restrict along_z = cell->velocity[2] + place;

    for (int i = 0; i < count; i++) {
        double inverse = 1 / density[i], vx = x[i] * inverse, vy = y[i] * inverse, vz = z[i] * inverse;
        double energy_of_motion = 0.5 * (x[i] * vx + y[i] * vy + z[i] * vz);

        volume[i] = inverse;
        along_x[i] = vx;
        along_y[i] = vy;
        along_z[i] = vz;
        pressure[i] = CFD_K2 * (energy[i] - energy_of_motion);
        kinetic[i] = energy_of_motion * inverse;
        total[i] = energy[i] * inverse;
    }
}

static void compute_cell(const struct grid *grid, const struct grid_cell *cell)
{
    int count = cell->stop[0] - cell->start[0];

    for (int z = -1; z <= cell->size[2]; z++)
        for (int y = -1; y <= cell->size[1]; y++)
            derive_row(cell, -1 + y * cell->stride[1] + z * cell->stride[2], cell->size[0] + 2);
    for (int z = cell->start[2]; z < cell->stop[2]; z++)
        for (int y = cell->start[1]; y < cell->stop[1]; y++) {
            ptrdiff_t place = cell->start[0] + y * cell->stride[1] + z * cell->stride[2];

            for (int field = 0; field < CFD_FIELDS; field++)
                memcpy(cell->rhs[field] + place, cell->forcing[field] + place, (size_t) count * sizeof(double));
            add_axis(grid, cell, 0, cell->low[0] + cell->start[0], place);
            add_axis(grid, cell, 1, cell->low[1] + y, place);
            add_axis(grid, cell, 2, cell->low[2] + z, place);
        }
}

void grid_compute_rhs(struct grid *grid)
{
    for (int i = 0; i < grid->parts; i++)
        compute_cell(grid, &grid->cells[i]);
}

void grid_add(struct grid *grid)
{
    for (int i = 0; i < grid->parts; i++) {
        const struct grid_cell *cell = &grid->cells[i];

        for (int field = 0; field < CFD_FIELDS; field++)
            for (int z = cell->start[2]; z < cell->stop[2]; z++)
                for (int y = cell->start[1]; y < cell->stop[1]; y++) {
                    ptrdiff_t place = y * cell->stride[1] + z * cell->stride[2];
                    double *restrict u = cell->u[field] + place;
                    const double *restrict change = cell->rhs[field] + place;

                    for (int x = cell->start[0]; x < cell->stop[0]; x++)
                        u[x] += change[x];
                }
    }
}

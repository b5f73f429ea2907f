/* How far the fields are from the exact solution, and how fast they still change. */
#include <math.h>

#include "grid.h"
#include "npb.h"

static void add_squares(const struct grid *grid, const struct grid_cell *cell, struct cfd_norms *sums)
{
    double spacing = 1.0 / (grid->points - 1), exact[CFD_FIELDS];

    for (int z = cell->start[2]; z < cell->stop[2]; z++)
        for (int y = cell->start[1]; y < cell->stop[1]; y++)
            for (int x = cell->start[0]; x < cell->stop[0]; x++) {
                ptrdiff_t place = x + y * cell->stride[1] + z * cell->stride[2];

                cfd_exact((cell->low[0] + x) * spacing, (cell->low[1] + y) * spacing, (cell->low[2] + z) * spacing,
                          exact);
                for (int field = 0; field < CFD_FIELDS; field++) {
                    double error = cell->u[field][place] - exact[field];
                    double residual = cell->rhs[field][place] / grid->dt;

                    sums->error[field] += error * error;
                    sums->residual[field] += residual * residual;
                }
            }
}

/* Points on the faces of the cube are exact and do not change, nor do they count in the mean. */
struct cfd_norms grid_norms(const struct grid *grid)
{
    struct cfd_norms norms = {0};
    double inner = pow(grid->points - 2, AXES);

    for (int i = 0; i < grid->parts; i++)
        add_squares(grid, &grid->cells[i], &norms);
    npb_allreduce(norms.residual, CFD_FIELDS, MPI_DOUBLE, MPI_SUM);
    npb_allreduce(norms.error, CFD_FIELDS, MPI_DOUBLE, MPI_SUM);
    for (int field = 0; field < CFD_FIELDS; field++) {
        norms.residual[field] = sqrt(norms.residual[field] / inner);
        norms.error[field] = sqrt(norms.error[field] / inner);
    }
    return norms;
}

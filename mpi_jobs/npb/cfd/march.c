/* The whole run of SP or BT. */
#include "march.h"

#include <stdio.h>

#include "npb.h"

static void take_step(struct grid *grid, const struct march *application)
{
    grid_exchange_faces(grid);
    grid_compute_rhs(grid);
    application->solve(grid);
    grid_add(grid);
}

static bool norms_match(struct grid *grid, const struct cfd_norms *reference)
{
    struct cfd_norms norms;
    bool residuals, errors;

    grid_exchange_faces(grid);
    grid_compute_rhs(grid);
    norms = grid_norms(grid);
    residuals = cfd_verify("Root mean square of the residual, its reference and their relative difference, by field:",
                           CFD_FIELDS, norms.residual, reference->residual);
    errors = cfd_verify("Root mean square of the error, its reference and their relative difference, by field:",
                        CFD_FIELDS, norms.error, reference->error);
    return residuals && errors;
}

int march(int argc, char **argv, const struct march *application)
{
    const struct march_class *class = &application->classes[npb_start(argc, argv, application->name, NPB_SQUARES)];
    int most_parts = class->points / LEAST_CELL, points = class->points;
    struct grid grid;
    char size[48];
    bool verified;

    npb_limit_ranks(most_parts * most_parts);
    grid_share_out(&grid, points, class->dt);
    npb_need_memory(grid_bytes(&grid) + application->bytes(&grid));
    grid_allocate(&grid);
    application->allocate(&grid);
    grid_set_forcing(&grid);

    grid_set_initial(&grid);
    take_step(&grid, application); /* not timed: touches all code and memory, and opens all connections */
    grid_set_initial(&grid);

    npb_timer_start();
    for (int step = 0; step < class->steps; step++)
        take_step(&grid, application);
    npb_timer_stop();

    verified = norms_match(&grid, &class->reference);
    snprintf(size, sizeof size, "%dx%dx%d", points, points, points);
    return npb_finish(&(struct npb_result){
        .size = size,
        .iterations = class->steps,
        .operations = class->steps * application->operations(points),
        .operation = "floating point",
        .verified = verified,
    });
}

/* LU: start, steps, verification. */
#include "lu.h"

#include <stdio.h>

#include "reference.h"

/* The published count of floating point operations, of which the program itself needs fewer. */
static double operations(int points, int steps)
{
    double n = points;

    return steps * (1984.77 * n * n * n - 10923.3 * n * n + 27770.9 * n - 144010);
}

static bool is_right(const struct lu *lu, const struct reference *reference)
{
    struct cfd_norms norms;
    double integral = surface_integral(lu);
    bool residual, error, surface;

    residual_norm(lu, norms.residual);
    error_norm(lu, norms.error);
    residual = cfd_verify("norms of the residual", CFD_FIELDS, norms.residual, reference->norms.residual);
    error = cfd_verify("norms of the error", CFD_FIELDS, norms.error, reference->norms.error);
    surface = cfd_verify("surface integral", 1, &integral, &reference->integral);
    return residual && error && surface;
}

int main(int argc, char **argv)
{
    enum npb_class class = npb_start(argc, argv, "LU", NPB_POWERS_OF_TWO);
    const struct reference *reference = &references[class];
    struct lu lu;
    char size[32];
    bool verified;

    npb_limit_ranks(most_ranks(reference->points));
    share_out(&lu, reference->points, reference->step);
    make_smoothing(&lu);
    set_forcing(&lu);
    set_initial(&lu);
    compute_residual(&lu);
    npb_timer_start();
    for (int step = 0; step < reference->steps; step++) {
        sweep_forward(&lu);
        sweep_back(&lu);
        compute_residual(&lu);
    }
    npb_timer_stop();
    verified = is_right(&lu, reference);
    release(&lu);
    snprintf(size, sizeof size, "%dx%dx%d", reference->points, reference->points, reference->points);
    return npb_finish(&(struct npb_result){.size = size,
                                           .iterations = reference->steps,
                                           .operations = operations(reference->points, reference->steps),
                                           .operation = "floating point",
                                           .verified = verified});
}

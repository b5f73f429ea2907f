/*
 * MG, multigrid: the discrete Poisson problem A u = v on a periodic cube, by V-cycles. Specification section 3.2.
 */
#include "mg.h"

#include <stdio.h>
#include <string.h>

static const double smoother_small[3] = {-3.0 / 8, 1.0 / 32, -1.0 / 64};
static const double smoother_large[3] = {-3.0 / 17, 1.0 / 33, -1.0 / 61};

static const struct size {
    int finest, iterations;
    const double *smoother;
    double norm;
} sizes[NPB_CLASSES] = {
    [NPB_S] = {5, 4, smoother_small, 0.5307707005734e-4},
    [NPB_W] = {7, 4, smoother_small, 0.6467329375339e-5},
    [NPB_A] = {8, 4, smoother_small, 0.2433365309069e-5},
    [NPB_B] = {8, 20, smoother_large, 0.1800564401355e-5},
};

static void clear(const struct level *level)
{
    memset(level->u, 0, mg_volume(level) * sizeof *level->u);
}

/* A V-cycle: from r a correction of u, and the new residual. Ranks without points at a level pass over it. */
static void improve(const struct grids *grids, const double *smoother)
{
    struct level *levels = grids->levels, *top = &levels[grids->finest];

    for (int k = grids->finest; k > 1; k--)
        if (levels[k - 1].is_here)
            mg_restrict(grids, &levels[k], &levels[k - 1]);
    if (levels[1].is_here) {
        clear(&levels[1]);
        mg_smooth(grids, &levels[1], smoother);
    }
    for (int k = 2; k <= grids->finest; k++) {
        if (!levels[k].is_here)
            continue;
        if (k < grids->finest)
            clear(&levels[k]);
        mg_extend(grids, &levels[k - 1]);
        mg_interpolate(grids, &levels[k - 1], &levels[k]);
        mg_residual(grids, &levels[k], k < grids->finest ? levels[k].r : grids->v);
        mg_smooth(grids, &levels[k], smoother);
    }
    mg_residual(grids, top, grids->v);
}

int main(int argc, char **argv)
{
    enum npb_class class = npb_start(argc, argv, "MG", NPB_POWERS_OF_TWO);
    const struct size *size = &sizes[class];
    struct grids grids = mg_grids(size->finest);
    struct level *top = &grids.levels[grids.finest];
    double side = 1 << size->finest, norm;
    char text[24];

    mg_set_charges(&grids);
    mg_exchange(&grids, top, grids.v);
    mg_residual(&grids, top, grids.v);
    improve(&grids, size->smoother); /* touches all memory and opens all connections */
    clear(top);

    npb_timer_start();
    mg_residual(&grids, top, grids.v);
    for (int i = 0; i < size->iterations; i++)
        improve(&grids, size->smoother);
    norm = mg_norm(&grids);
    npb_timer_stop();

    snprintf(text, sizeof text, "%.0fx%.0fx%.0f", side, side, side);
    return npb_finish(&(struct npb_result){
        .size = text,
        .iterations = size->iterations,
        .operations = 58 * side * side * side * size->iterations,
        .operation = "floating point",
        .verified = npb_check("norm of residual", norm, size->norm, 1e-8),
    });
}

/*
 * The differences of the equations in space (specification, chapter 3): of the fluxes central ones, for viscous terms
 * second ones of velocity and energy, and artificial dissipation of second and fourth order.
 */
#include "lu.h"

#include <string.h>

/*
 * Parts of the cells from two before to two after one in the fourth difference there. Next to the boundary it is cut
 * off; what has no part may lie outside of the cube.
 */
static const double fourth_difference[5][5] = {
    {0, 0, 5, -4, 1}, {0, -4, 6, -4, 1}, {1, -4, 6, -4, 1}, {1, -4, 6, -4, 0}, {1, -4, 5, 0, 0},
};
static const double second_difference[5] = {0, 1, -2, 1, 0};

/* The row of `fourth_difference` for a point. */
static int place(int point, int points)
{
    if (point <= 2)
        return point - 1;
    return point >= points - 3 ? point - points + 6 : 2;
}

/* Both orders of dissipation together: weights of the five cells, for each inner cell along an axis. */
void make_smoothing(struct lu *lu)
{
    for (enum axis axis = X; axis < AXES; axis++) {
        const struct direction *along = &lu->along[axis];

        for (int i = along->begin; i < along->end; i++)
            for (int m = 0; m < 5; m++)
                lu->smoothing[axis][i][m] =
                    along->dissipation * along->second * second_difference[m] -
                    CFD_FOURTH * fourth_difference[place(i + along->offset, along->points)][m];
    }
}

static void find_motion(struct lu *lu, int first_i, int last_i, int first_j, int last_j)
{
    for (int k = 0; k < lu->along[Z].cells; k++)
        for (int j = first_j; j <= last_j; j++) {
            size_t row = at(lu, 0, j, k);

            for (int i = first_i; i <= last_i; i++) {
                const double *u = lu->u[row + (size_t) i];
                double volume = 1 / u[0], x = volume * u[1], y = volume * u[2], z = volume * u[3];

                lu->motion[row + (size_t) i] =
                    (struct motion){volume, {x, y, z}, volume * u[4], 0.5 * (x * x + y * y + z * z)};
            }
        }
}

/* Of own cells and of the nearest layer of ghosts, but not of those in corners. */
static void find_all_motion(struct lu *lu)
{
    const struct direction *x = &lu->along[X], *y = &lu->along[Y];
    int last_i = x->cells - 1, last_j = y->cells - 1;

    find_motion(lu, x->before == MPI_PROC_NULL ? 0 : -1, x->after == MPI_PROC_NULL ? last_i : last_i + 1, 0, last_j);
    if (y->before != MPI_PROC_NULL)
        find_motion(lu, 0, last_i, -1, -1);
    if (y->after != MPI_PROC_NULL)
        find_motion(lu, 0, last_i, last_j + 1, last_j + 1);
}

/*
 * Adds the differences along one axis, a constant when inlined. `u` and `motion` are those of the cell; its neighbours
 * are `stride` away.
 */
static inline void add_differences(double sum[CFD_FIELDS], const cell *u, const struct motion *motion,
                                   const struct direction *along, enum axis axis, const double *weights)
{
    const double viscous = along->second * CFD_K3 * CFD_K4, heat = CFD_K1 * CFD_K5;
    const ptrdiff_t next = along->stride;
    const double *before = u[-next], *after = u[next];
    const struct motion *here = motion, *there = motion - next, *beyond = motion + next;
    double speed_before = there->velocity[axis], speed = here->velocity[axis], speed_after = beyond->velocity[axis];
    double pressure_before = CFD_K2 * before[0] * (there->energy - there->kinetic);
    double pressure_after = CFD_K2 * after[0] * (beyond->energy - beyond->kinetic);
    double flux[CFD_FIELDS], second[AXES];

    flux[0] = after[1 + axis] - before[1 + axis];
    for (enum axis m = X; m < AXES; m++)
        flux[1 + m] = after[1 + m] * speed_after - before[1 + m] * speed_before;
    flux[1 + axis] += pressure_after - pressure_before;
    flux[4] = (after[4] + pressure_after) * speed_after - (before[4] + pressure_before) * speed_before;
    for (int m = 0; m < CFD_FIELDS; m++)
        sum[m] += weights[0] * u[-2 * next][m] + weights[1] * before[m] + weights[2] * (*u)[m] + weights[3] * after[m] +
                  weights[4] * u[2 * next][m] - along->first * flux[m];

    for (enum axis m = X; m < AXES; m++)
        second[m] = beyond->velocity[m] - 2 * here->velocity[m] + there->velocity[m];
    second[axis] *= 4.0 / 3;
    for (enum axis m = X; m < AXES; m++)
        sum[1 + m] += viscous * second[m];
    sum[4] += viscous *
              ((1 - heat) * (beyond->kinetic - 2 * here->kinetic + there->kinetic) +
               1.0 / 6 * (speed_after * speed_after - 2 * speed * speed + speed_before * speed_before) +
               heat * (beyond->energy - 2 * here->energy + there->energy));
}

void compute_residual(struct lu *lu)
{
    const struct direction x = lu->along[X], y = lu->along[Y], z = lu->along[Z];

    exchange_faces(lu);
    find_all_motion(lu);
    for (int k = z.begin; k < z.end; k++)
        for (int j = y.begin; j < y.end; j++) {
            const size_t row = at(lu, 0, j, k);
            const cell *u = lu->u + row, *forcing = lu->forcing + row;
            const struct motion *motion = lu->motion + row;
            cell *residual = lu->residual + row;

            for (int i = x.begin; i < x.end; i++) {
                double sum[CFD_FIELDS];

                for (int m = 0; m < CFD_FIELDS; m++)
                    sum[m] = -forcing[i][m];
                add_differences(sum, u + i, motion + i, &x, X, lu->smoothing[X][i]);
                add_differences(sum, u + i, motion + i, &y, Y, lu->smoothing[Y][j]);
                add_differences(sum, u + i, motion + i, &z, Z, lu->smoothing[Z][k]);
                memcpy(residual[i], sum, sizeof sum);
            }
        }
}

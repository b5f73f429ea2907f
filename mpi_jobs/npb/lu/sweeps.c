/*
 * One step of the iteration (specification, chapter 3). The implicit equations have a matrix D + L + U; forward, solve
 * (D + w L) d' = dt residual, and back, (D + w U) d = D d'. The change of u is d / (w (2 - w)).
 *
 * With A the Jacobian of the flux along an axis, N that of its viscous terms and dissipation, and h the spacing, a
 * block of L is -dt/2h A - dt/h^2 N at the neighbour before, one of U is dt/2h A - dt/h^2 N at the neighbour after, and
 * one of D is 1 and, of each axis, 2 dt/h^2 N.
 */
#include "lu.h"

#include <string.h>

#define OVER_RELAXATION 1.2 /* w */

static const double heat_ratio = CFD_K1 * CFD_K5; /* conduction of heat to friction of momentum */

/* Factors of the Jacobians along one axis. */
struct factors {
    double flux, viscous, dissipation;
};

/* For L (sign 1) or U (sign -1): factors of -w times the block. */
static struct factors make_factors(const struct lu *lu, enum axis axis, double sign)
{
    const struct direction *along = &lu->along[axis];
    double step = OVER_RELAXATION * lu->step;

    return (struct factors){sign * step * along->first, step * along->second * CFD_K3 * CFD_K4,
                            step * along->second * along->dissipation};
}

/* How much stronger viscosity is on momentum m that flows along `axis`. */
static inline double stress(enum axis m, enum axis axis)
{
    return m == axis ? 4.0 / 3 : 1;
}

/*
 * sum += (flux A + viscous N + dissipation) v. As differentials: v is a change of the fields, `pressure` that of
 * pressure, `drift` that of a momentum beyond what the change of density carries.
 */
static inline void add_product(double sum[CFD_FIELDS], const struct motion *motion, const double v[CFD_FIELDS],
                               enum axis axis, const struct factors *factors)
{
    const double *velocity = motion->velocity, speed = velocity[axis], viscous = factors->viscous * motion->volume;
    const double enthalpy = CFD_K1 * motion->energy - CFD_K2 * motion->kinetic;
    const double pressure = CFD_K2 * (motion->kinetic * v[0] + v[4] - velocity[X] * v[1] - velocity[Y] * v[2] -
                                      velocity[Z] * v[3]);
    const double drift_along = v[1 + axis] - speed * v[0];
    double work = 0;

    sum[0] += factors->flux * v[1 + axis] + factors->dissipation * v[0];
    for (enum axis m = X; m < AXES; m++) {
        double drift = v[1 + m] - velocity[m] * v[0];

        sum[1 + m] += factors->flux * (velocity[m] * drift_along + speed * v[1 + m] + (m == axis ? pressure : 0)) +
                      viscous * stress(m, axis) * drift + factors->dissipation * v[1 + m];
        work += (stress(m, axis) - heat_ratio) * velocity[m] * drift;
    }
    sum[4] += factors->flux * (enthalpy * drift_along + speed * (v[4] + pressure)) +
              viscous * (work + heat_ratio * (v[4] - motion->energy * v[0])) + factors->dissipation * v[4];
}

/* The same for all blocks of D. */
struct diagonal {
    double base;           /* 1 and dissipation */
    double momentum[AXES]; /* viscous terms of momentum, times density */
    double energy;         /* and of energy */
};

static struct diagonal make_diagonal(const struct lu *lu)
{
    struct diagonal diagonal = {.base = 1};

    for (enum axis axis = X; axis < AXES; axis++) {
        const double twice = 2 * lu->step * lu->along[axis].second, viscous = twice * CFD_K3 * CFD_K4;

        diagonal.base += twice * lu->along[axis].dissipation;
        diagonal.energy += viscous * heat_ratio;
        for (enum axis m = X; m < AXES; m++)
            diagonal.momentum[m] += viscous * stress(m, axis);
    }
    return diagonal;
}

/* v := D^-1 v. Density does not depend on the others, nor momentum on energy. */
static inline void solve_diagonal(double v[CFD_FIELDS], const struct motion *motion, const struct diagonal *diagonal)
{
    const double *velocity = motion->velocity, density = v[0] / diagonal->base;
    const double conduction = diagonal->energy * motion->volume;

    v[0] = density;
    v[4] += conduction * motion->energy * density;
    for (enum axis m = X; m < AXES; m++) {
        double viscous = diagonal->momentum[m] * motion->volume;

        v[1 + m] = (v[1 + m] + viscous * velocity[m] * density) / (diagonal->base + viscous);
        v[4] -= (viscous - conduction) * velocity[m] * (v[1 + m] - velocity[m] * density);
    }
    v[4] /= diagonal->base + conduction;
}

void sweep_forward(struct lu *lu)
{
    const struct direction *x = &lu->along[X], *y = &lu->along[Y], *z = &lu->along[Z];
    const struct factors factors[AXES] = {make_factors(lu, X, 1), make_factors(lu, Y, 1), make_factors(lu, Z, 1)};
    const struct diagonal diagonal = make_diagonal(lu);

    for (int k = z->begin; k < z->end; k++) {
        receive_edges(lu, k, true);
        for (int j = y->begin; j < y->end; j++) {
            const size_t row = at(lu, 0, j, k);
            const struct motion *motion = lu->motion + row;
            cell *v = lu->residual + row;

            for (int i = x->begin; i < x->end; i++) {
                double sum[CFD_FIELDS];

                for (int m = 0; m < CFD_FIELDS; m++)
                    sum[m] = lu->step * v[i][m];
                add_product(sum, motion + i - z->stride, v[i - z->stride], Z, &factors[Z]);
                add_product(sum, motion + i - y->stride, v[i - y->stride], Y, &factors[Y]);
                add_product(sum, motion + i - 1, v[i - 1], X, &factors[X]);
                solve_diagonal(sum, motion + i, &diagonal);
                memcpy(v[i], sum, sizeof sum);
            }
        }
        send_edges(lu, k, true);
    }
}

void sweep_back(struct lu *lu)
{
    const struct direction *x = &lu->along[X], *y = &lu->along[Y], *z = &lu->along[Z];
    const struct factors factors[AXES] = {make_factors(lu, X, -1), make_factors(lu, Y, -1), make_factors(lu, Z, -1)};
    const struct diagonal diagonal = make_diagonal(lu);
    const double relaxation = 1 / (OVER_RELAXATION * (2 - OVER_RELAXATION));

    for (int k = z->end - 1; k >= z->begin; k--) {
        receive_edges(lu, k, false);
        for (int j = y->end - 1; j >= y->begin; j--) {
            const size_t row = at(lu, 0, j, k);
            const struct motion *motion = lu->motion + row;
            cell *v = lu->residual + row, *u = lu->u + row;

            for (int i = x->end - 1; i >= x->begin; i--) {
                double sum[CFD_FIELDS] = {0};

                add_product(sum, motion + i + z->stride, v[i + z->stride], Z, &factors[Z]);
                add_product(sum, motion + i + y->stride, v[i + y->stride], Y, &factors[Y]);
                add_product(sum, motion + i + 1, v[i + 1], X, &factors[X]);
                solve_diagonal(sum, motion + i, &diagonal);
                for (int m = 0; m < CFD_FIELDS; m++) {
                    v[i][m] += sum[m];
                    u[i][m] += relaxation * v[i][m];
                }
            }
        }
        send_edges(lu, k, false);
    }
}

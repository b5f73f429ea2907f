/* 5 x 5 blocks: Jacobians of the fluxes, and elimination. */
#include "blocks.h"

static const double k1 = CFD_K1, k2 = CFD_K2, conductive = CFD_K1 * CFD_K5;

/*
 * The Jacobian of the flux along the lines is `flux`, that of the viscous terms, which has no more than a first
 * column, a diagonal and a last row, `viscous`. Both have their factor of the difference formula already.
 */
void set_blocks(struct blocks *blocks, const struct state *state, const struct grid_axis *axis)
{
    const lanes v = state->along, a = state->across[0], b = state->across[1], zero = {0};
    const lanes q = state->kinetic, e = state->total;
    const double f = axis->first, d = axis->second, third = 4.0 / 3;
    const lanes mu = axis->viscous * state->volume;
    const lanes flux[N][N] = {
        {zero, zero + f, zero, zero, zero},
        {f * (k2 * q - v * v), f * (2 - k2) * v, -f * k2 * a, -f * k2 * b, zero + f * k2},
        {-f * v * a, f * a, f * v, zero, zero},
        {-f * v * b, f * b, zero, f * v, zero},
        {f * v * (2 * k2 * q - k1 * e), f * (k1 * e - k2 * (v * v + q)), -f * k2 * a * v, -f * k2 * b * v, f * k1 * v},
    };
    const lanes viscous[N][N] = {
        {zero + d},
        {-third * mu * v, third * mu + d},
        {-mu * a, zero, mu + d},
        {-mu * b, zero, zero, mu + d},
        {-mu * ((third - conductive) * v * v + (1 - conductive) * (a * a + b * b) + conductive * e),
         (third - conductive) * mu * v, (1 - conductive) * mu * a, (1 - conductive) * mu * b, conductive * mu + d},
    };

    for (int m = 0; m < N; m++)
        for (int n = 0; n < N; n++) {
            blocks->below[m][n] = -flux[m][n] - viscous[m][n];
            blocks->middle[m][n] = 2 * viscous[m][n] + (m == n ? 1.0 : 0.0);
            blocks->above[m][n] = flux[m][n] - viscous[m][n];
        }
}

void eliminate_below(const lanes below[N][N], const right_side solved, lanes middle[N][N], right_side right)
{
    for (int m = 0; m < N; m++) {
        for (int n = 0; n < N; n++)
            for (int k = 0; k < N; k++)
                middle[m][n] -= below[m][k] * solved[k][n];
        for (int k = 0; k < N; k++)
            right[m][N] -= below[m][k] * solved[k][N];
    }
}

void solve_middle(lanes middle[N][N], right_side right)
{
    for (int pivot = 0; pivot < N; pivot++) {
        lanes inverse = 1 / middle[pivot][pivot];

        for (int n = pivot + 1; n < N; n++)
            middle[pivot][n] *= inverse;
        for (int n = 0; n <= N; n++)
            right[pivot][n] *= inverse;
        for (int m = 0; m < N; m++) {
            lanes factor = middle[m][pivot];

            if (m == pivot)
                continue;
            for (int n = pivot + 1; n < N; n++)
                middle[m][n] -= factor * middle[pivot][n];
            for (int n = 0; n <= N; n++)
                right[m][n] -= factor * right[pivot][n];
        }
    }
}

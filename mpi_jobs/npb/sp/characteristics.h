/*
 * The fluxes' Jacobian along an axis has the eigenvalues v, v, v, v + c and v - c; c is the speed of sound. These
 * functions turn changes of the fields at a point into amounts of the eigenvectors, in that order, and back.
 */
#ifndef CHARACTERISTICS_H
#define CHARACTERISTICS_H

#include "grid.h"

/* State of the gas at a point, of a pair of lines. */
struct state {
    lanes volume, velocity[AXES], kinetic, sound; /* as in struct grid_cell */
};

/* Chapter 3 of the specification: T_x^-1, then T_y^-1 T_x and T_z^-1 T_y, which are constant, then T_z. */
static const double half_root = 0.70710678118654752440; /* sqrt(1/2) */

static inline void set_amounts(lanes amounts[CFD_FIELDS], lanes a, lanes b, lanes c, lanes d, lanes e)
{
    amounts[0] = a;
    amounts[1] = b;
    amounts[2] = c;
    amounts[3] = d;
    amounts[4] = e;
}

static inline void fields_to_x(lanes amounts[CFD_FIELDS], const struct state *state)
{
    const lanes density = amounts[0], energy = amounts[4];
    const lanes vx = state->velocity[0], vy = state->velocity[1], vz = state->velocity[2];
    const lanes pressure = CFD_K2 * (state->kinetic * density - vx * amounts[1] - vy * amounts[2] - vz * amounts[3]
                                     + energy) / (state->sound * state->sound);
    const lanes motion = half_root * state->volume * (vx * density - amounts[1]);
    const lanes sound = half_root * state->volume * state->sound * pressure;

    set_amounts(amounts, density - pressure, -state->volume * (vz * density - amounts[3]),
                state->volume * (vy * density - amounts[2]), sound - motion, sound + motion);
}

static inline void x_to_y(lanes amounts[CFD_FIELDS])
{
    const lanes turned = half_root * amounts[2], mean = 0.5 * (amounts[3] + amounts[4]);

    set_amounts(amounts, -amounts[1], amounts[0], half_root * (amounts[3] - amounts[4]), mean - turned, mean + turned);
}

static inline void y_to_z(lanes amounts[CFD_FIELDS])
{
    const lanes turned = half_root * amounts[0], mean = 0.5 * (amounts[3] + amounts[4]);

    set_amounts(amounts, half_root * (amounts[3] - amounts[4]), -amounts[2], amounts[1], mean - turned, mean + turned);
}

static inline void z_to_fields(lanes amounts[CFD_FIELDS], const struct state *state)
{
    const lanes vx = state->velocity[0], vy = state->velocity[1], vz = state->velocity[2];
    const lanes density = 1 / state->volume, scale = half_root * density;
    const lanes sum = scale / state->sound * (amounts[3] + amounts[4]), mass = amounts[2] + sum;
    const lanes motion = scale * (amounts[3] - amounts[4]), x = -density * amounts[1], y = density * amounts[0];

    set_amounts(amounts, mass, x + vx * mass, y + vy * mass, motion + vz * mass,
                vx * x + vy * y + vz * motion + state->kinetic * mass + state->sound * state->sound / CFD_K2 * sum);
}

#endif

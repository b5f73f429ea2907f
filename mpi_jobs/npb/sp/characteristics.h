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

void fields_to_x(lanes amounts[CFD_FIELDS], const struct state *state);
void x_to_y(lanes amounts[CFD_FIELDS]);
void y_to_z(lanes amounts[CFD_FIELDS]);
void z_to_fields(lanes amounts[CFD_FIELDS], const struct state *state);

#endif

/* The blocks of BT's systems. Each number is a vector: the same number of LANES lines. */
#ifndef BT_BLOCKS_H
#define BT_BLOCKS_H

#include "grid.h"

enum { N = CFD_FIELDS };

/* State of the gas at a point; velocities: along the lines, and across them. */
struct state {
    lanes volume, along, across[2], kinetic, total; /* as in struct grid_cell */
};

/*
 * What a point contributes to the rows of its line. Row i of the system is
 * below(i - 1) x(i - 1) + middle(i) x(i) + above(i + 1) x(i + 1) = rhs(i).
 */
struct blocks {
    lanes below[N][N], middle[N][N], above[N][N];
};

/* The right side of a row: what multiplies x(i + 1), and in the last column rhs(i). */
typedef lanes right_side[N][N + 1];

/* The blocks of a point whose fields are in the order density, momentum along and across the lines, energy. */
void set_blocks(struct blocks *blocks, const struct state *state, const struct grid_axis *axis);

/* Row i less below times the solved row i - 1. */
void eliminate_below(const lanes below[N][N], const right_side solved, lanes middle[N][N], right_side right);

/* right = middle^-1 right, without pivoting: diagonals dominate. Destroys middle. */
void solve_middle(lanes middle[N][N], right_side right);

#endif

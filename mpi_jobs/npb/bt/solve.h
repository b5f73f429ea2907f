/* The solver of BT's steps. */
#ifndef BT_SOLVE_H
#define BT_SOLVE_H

#include "grid.h"

size_t bt_bytes(const struct grid *grid);
void bt_allocate(const struct grid *grid);
void bt_solve(struct grid *grid);

#endif

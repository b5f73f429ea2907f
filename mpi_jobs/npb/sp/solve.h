/* The solver of SP's steps. */
#ifndef SP_SOLVE_H
#define SP_SOLVE_H

#include "grid.h"

size_t sp_bytes(const struct grid *grid);
void sp_allocate(const struct grid *grid);
void sp_solve(struct grid *grid);

#endif

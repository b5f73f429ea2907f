/*
 * CG: the ranks as a grid, and this rank's block of the matrix.
 *
 * There are as many rows of ranks as columns, or half as many. A rank's block has the matrix rows of its grid row and
 * the matrix columns of its grid column; of a vector it has the part that belongs to its columns. All ranks of a
 * column have the same part.
 */
#ifndef CG_H
#define CG_H

#include "npb.h"

struct grid {
    int rows, columns, row, column;
    int first_row, row_count;       /* of the matrix */
    int first_column, column_count;
    int partner;                    /* holds what this rank needs after a product, and needs what this one holds */
    int piece_start, piece_count;   /* what this rank holds then, as a part of its matrix rows */
};

struct grid cg_grid(int order);

/* Sums of 1 or 2 numbers over the ranks of a grid row, which together have all parts of a vector. */
void cg_sum(const struct grid *grid, double *values, int count);

/*
 * From products of blocks to the vector: adds up `product` (of this rank's rows) over the ranks of the grid row and
 * brings the part of this rank's columns to `part`, which has room for as much as `product`. Changes `product`.
 */
void cg_reduce(const struct grid *grid, double *restrict product, double *restrict part);

/* Rows of a block; columns count from the block's first. */
struct matrix {
    int rows;
    int *start; /* of each row; rows + 1 */
    int *column;
    double *value;
};

/* The specification's random sparse matrix, this rank's block. `nonzeros` is its parameter, not the exact number. */
struct matrix cg_matrix(const struct grid *grid, int order, int nonzeros, double shift);

size_t cg_matrix_bytes(const struct grid *grid, int order, int nonzeros); /* of memory that it takes, about */

#endif

/* The grid of ranks, and the exchanges in it: partner by partner, as NPB has them, not by MPI's own reductions. */
#include "cg.h"

enum { TAG = 1 };

/* The boundaries of matrix columns; those of rows are the same or every second. */
static int boundary(int order, int column, int columns)
{
    return (int) ((int64_t) order * column / columns);
}

struct grid cg_grid(int order)
{
    struct grid grid = {.columns = 1};
    int wide, next;

    while (grid.columns * grid.columns < ranks)
        grid.columns *= 2;
    grid.rows = ranks / grid.columns;
    grid.row = rank / grid.columns;
    grid.column = rank % grid.columns;
    wide = grid.columns / grid.rows; /* 1 or 2 grid columns have as many matrix columns as a grid row has rows */
    grid.first_column = boundary(order, grid.column, grid.columns);
    grid.column_count = boundary(order, grid.column + 1, grid.columns) - grid.first_column;
    grid.first_row = boundary(order, wide * grid.row, grid.columns);
    grid.row_count = boundary(order, wide * (grid.row + 1), grid.columns) - grid.first_row;
    next = wide * grid.row + grid.column % wide; /* the grid column whose part this rank will hold */
    grid.partner = grid.column / wide * grid.columns + next;
    grid.piece_start = boundary(order, next, grid.columns) - grid.first_row;
    grid.piece_count = boundary(order, next + 1, grid.columns) - boundary(order, next, grid.columns);
    return grid;
}

static void exchange(const double *out, int out_count, double *in, int in_count, int partner)
{
    MPI_Request request = npb_irecv(in, in_count, MPI_DOUBLE, partner, TAG);

    npb_send(out, out_count, MPI_DOUBLE, partner, TAG);
    npb_wait(&request);
}

void cg_sum(const struct grid *grid, double *values, int count)
{
    double other[2];

    for (int distance = 1; distance < grid->columns; distance *= 2) {
        exchange(values, count, other, count, rank ^ distance);
        for (int i = 0; i < count; i++)
            values[i] += other[i];
    }
}

void cg_reduce(const struct grid *grid, double *restrict product, double *restrict part)
{
    double *piece = product + grid->piece_start;
    int distance = 1;

    if (grid->columns > grid->rows) { /* neighbours take a half each */
        const double *rest = grid->piece_start ? product : product + grid->piece_count;

        exchange(rest, grid->row_count - grid->piece_count, part, grid->piece_count, rank ^ distance);
        for (int i = 0; i < grid->piece_count; i++)
            piece[i] += part[i];
        distance = 2;
    }
    for (; distance < grid->columns; distance *= 2) {
        exchange(piece, grid->piece_count, part, grid->piece_count, rank ^ distance);
        for (int i = 0; i < grid->piece_count; i++)
            piece[i] += part[i];
    }
    if (grid->partner != rank)
        exchange(piece, grid->piece_count, part, grid->column_count, grid->partner);
    else
        for (int i = 0; i < grid->piece_count; i++)
            part[i] = piece[i];
}

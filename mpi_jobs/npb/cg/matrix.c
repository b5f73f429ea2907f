/*
 * The random sparse matrix of the specification's section 3.4: a sum of outer products of sparse random vectors with
 * weights that fall from 1 to CONDITION, plus CONDITION - shift on the diagonal.
 *
 * Every rank makes all vectors and keeps what is in its block.
 */
#include "cg.h"

#include <math.h>
#include <stdlib.h>

#ifdef NPB_PERTURB
#define CONDITION 0.1001
#else
#define CONDITION 0.1
#endif

/* All sparse vectors, `most` elements apart. */
struct vectors {
    int count, most;
    int *length, *place;
    double *value;
};

/* Random places, all different, and then an element of 1/2 at `own`, which replaces one that is there. */
static void make_vector(struct vectors *vectors, int own, uint64_t *seed, int *seen)
{
    int *place = vectors->place + (size_t) own * (size_t) vectors->most, length = 0, limit = 1;
    double *value = vectors->value + (size_t) own * (size_t) vectors->most;

    while (limit < vectors->count)
        limit *= 2;
    while (length < vectors->most - 1) {
        double element = npb_random(seed);
        int at = (int) (limit * npb_random(seed));

        if (at < vectors->count && seen[at] != own) {
            seen[at] = own;
            place[length] = at;
            value[length++] = element;
        }
    }
    if (seen[own] != own)
        place[length++] = own;
    for (int i = 0; i < length; i++)
        if (place[i] == own)
            value[i] = 0.5;
    vectors->length[own] = length;
}

static struct vectors make_vectors(int order, int nonzeros)
{
    size_t elements = (size_t) order * (size_t) (nonzeros + 1);
    struct vectors vectors = {
        .count = order,
        .most = nonzeros + 1,
        .length = allocate((size_t) order, sizeof(int)),
        .place = allocate(elements, sizeof(int)),
        .value = allocate(elements, sizeof(double)),
    };
    int *seen = allocate((size_t) order, sizeof *seen); /* which vector has an element there */
    uint64_t seed = npb_skip(NPB_SEED, 1); /* the first number is not used */

    for (int i = 0; i < order; i++)
        seen[i] = -1;
    for (int i = 0; i < order; i++)
        make_vector(&vectors, i, &seed, seen);
    free(seen);
    return vectors;
}

/* Which vectors have an element in each row of the block, and where. */
struct uses {
    int *start; /* of each row; rows + 1 */
    int *element;
};

static struct uses find_uses(const struct grid *grid, const struct vectors *vectors)
{
    struct uses uses = {.start = allocate((size_t) grid->row_count + 2, sizeof(int))};

    for (int pass = 0; pass < 2; pass++) { /* first counts, then stores */
        for (int i = 0; i < vectors->count; i++)
            for (int k = i * vectors->most; k < i * vectors->most + vectors->length[i]; k++) {
                int row = vectors->place[k] - grid->first_row;

                if (row < 0 || row >= grid->row_count)
                    continue;
                if (pass == 0)
                    uses.start[row + 2]++;
                else
                    uses.element[uses.start[row + 1]++] = k;
            }
        if (pass == 0) {
            for (int row = 1; row <= grid->row_count + 1; row++)
                uses.start[row] += uses.start[row - 1];
            uses.element = allocate((size_t) uses.start[grid->row_count + 1], sizeof(int));
        }
    }
    return uses;
}

static int compare(const void *left, const void *right)
{
    return *(const int *) left - *(const int *) right;
}

/* A row under construction: sums by column, and which columns it has. */
struct row {
    double *sum;
    bool *used;
    int *columns, count;
};

static void add_vector(struct row *row, const struct grid *grid, const struct vectors *vectors, int i, double scale)
{
    for (int k = i * vectors->most; k < i * vectors->most + vectors->length[i]; k++) {
        int column = vectors->place[k] - grid->first_column;

        if (column < 0 || column >= grid->column_count)
            continue;
        if (!row->used[column]) {
            row->used[column] = true;
            row->columns[row->count++] = column;
        }
        row->sum[column] += vectors->value[k] * scale;
    }
}

/* Sorts the row's elements into the matrix and makes it ready for the next. */
static int move_row(struct row *row, int *column, double *value)
{
    int count = row->count;

    qsort(row->columns, (size_t) count, sizeof *row->columns, compare);
    for (int i = 0; i < count; i++) {
        int at = row->columns[i];

        column[i] = at;
        value[i] = row->sum[at];
        row->sum[at] = 0;
        row->used[at] = false;
    }
    row->count = 0;
    return count;
}

static struct matrix make_rows(const struct grid *grid, const struct vectors *vectors, const struct uses *uses,
                               double shift)
{
    size_t room = 0;
    double ratio = pow(CONDITION, 1.0 / vectors->count);
    double *weight = allocate((size_t) vectors->count, sizeof *weight);
    struct matrix matrix = {.rows = grid->row_count, .start = allocate((size_t) grid->row_count + 1, sizeof(int))};
    struct row row = {
        .sum = allocate((size_t) grid->column_count, sizeof(double)),
        .used = allocate((size_t) grid->column_count, sizeof(bool)),
        .columns = allocate((size_t) grid->column_count, sizeof(int)),
    };

    weight[0] = 1;
    for (int i = 1; i < vectors->count; i++)
        weight[i] = weight[i - 1] * ratio;
    for (int r = 0; r < grid->row_count; r++) {
        int at = matrix.start[r], diagonal = grid->first_row + r - grid->first_column;

        for (int u = uses->start[r]; u < uses->start[r + 1]; u++) {
            int i = uses->element[u] / vectors->most;

            add_vector(&row, grid, vectors, i, weight[i] * vectors->value[uses->element[u]]);
        }
        if (diagonal >= 0 && diagonal < grid->column_count) /* it is used: vector r has an element at r */
            row.sum[diagonal] += CONDITION - shift;
        if ((size_t) at + (size_t) row.count > room) {
            room = room * 5 / 4 + (size_t) row.count + 1024;
            matrix.column = realloc(matrix.column, room * sizeof *matrix.column);
            matrix.value = realloc(matrix.value, room * sizeof *matrix.value);
            if (!matrix.column || !matrix.value)
                fail("Rank %d cannot allocate %zu elements of its matrix.", rank, room);
        }
        matrix.start[r + 1] = at + move_row(&row, matrix.column + at, matrix.value + at);
    }
    free(weight);
    free(row.sum);
    free(row.used);
    free(row.columns);
    return matrix;
}

struct matrix cg_matrix(const struct grid *grid, int order, int nonzeros, double shift)
{
    struct vectors vectors = make_vectors(order, nonzeros);
    struct uses uses = find_uses(grid, &vectors);
    struct matrix matrix = make_rows(grid, &vectors, &uses, shift);

    free(vectors.length);
    free(vectors.place);
    free(vectors.value);
    free(uses.start);
    free(uses.element);
    return matrix;
}

size_t cg_matrix_bytes(const struct grid *grid, int order, int nonzeros)
{
    size_t element = sizeof(int) + sizeof(double), length = (size_t) nonzeros + 1;
    size_t vectors = (size_t) order * length * element;

    return vectors + vectors * length / (size_t) ranks * 5 / 4 + vectors / (size_t) grid->rows;
}

/*
 * CG, conjugate gradient: the smallest eigenvalue of a sparse matrix by inverse power iteration, whose systems are
 * solved, roughly, by 25 steps of conjugate gradient. Specification section 3.4.
 */
#include "cg.h"

#include <math.h>
#include <stdio.h>

enum { STEPS = 25 };

static const struct size {
    int order, nonzeros, iterations;
    double shift, zeta;
} sizes[NPB_CLASSES] = {
    [NPB_S] = {1400, 7, 15, 10, 8.5971775078648},
    [NPB_W] = {7000, 8, 15, 12, 10.362595087124},
    [NPB_A] = {14000, 11, 15, 20, 17.130235054029},
    [NPB_B] = {75000, 13, 75, 60, 22.712745482631},
};

/* This rank's parts: x the eigenvector, z the solution of A z = x, r the residual, p the direction, q = A p. */
struct solver {
    struct grid grid;
    struct matrix matrix;
    double *x, *z, *r, *p, *q, *product;
};

/* q = A p. Four sums at once, as each addition would wait for the one before. */
static void multiply(struct solver *solver, const double *restrict vector)
{
    const struct matrix *matrix = &solver->matrix;
    const int *restrict column = matrix->column, *restrict start = matrix->start;
    const double *restrict value = matrix->value;
    double *restrict product = solver->product;

    for (int row = 0; row < matrix->rows; row++) {
        double a = 0, b = 0, c = 0, d = 0;
        int k = start[row], end = start[row + 1];

        for (; k + 4 <= end; k += 4) {
            a += value[k] * vector[column[k]];
            b += value[k + 1] * vector[column[k + 1]];
            c += value[k + 2] * vector[column[k + 2]];
            d += value[k + 3] * vector[column[k + 3]];
        }
        for (; k < end; k++)
            a += value[k] * vector[column[k]];
        product[row] = (a + b) + (c + d);
    }
    cg_reduce(&solver->grid, product, solver->q);
}

static double dot(const struct solver *solver, const double *restrict one, const double *restrict other)
{
    double sum = 0;

    for (int i = 0; i < solver->grid.column_count; i++)
        sum += one[i] * other[i];
    cg_sum(&solver->grid, &sum, 1);
    return sum;
}

/* Solves A z = x; the result is the norm of x - A z. */
static double solve(struct solver *solver)
{
    double *restrict z = solver->z, *restrict r = solver->r, *restrict p = solver->p;
    const double *restrict x = solver->x, *restrict q = solver->q;
    int count = solver->grid.column_count;
    double rho, sum = 0;

    for (int i = 0; i < count; i++) {
        z[i] = 0;
        r[i] = p[i] = x[i];
    }
    rho = dot(solver, r, r);
    for (int step = 0; step < STEPS; step++) {
        double alpha, beta, rho_before = rho;

        multiply(solver, p);
        alpha = rho / dot(solver, p, q);
        for (int i = 0; i < count; i++) {
            z[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rho = dot(solver, r, r);
        beta = rho / rho_before;
        for (int i = 0; i < count; i++)
            p[i] = r[i] + beta * p[i];
    }
    multiply(solver, z);
    for (int i = 0; i < count; i++)
        sum += (x[i] - q[i]) * (x[i] - q[i]);
    cg_sum(&solver->grid, &sum, 1);
    return sqrt(sum);
}

static void start_vector(struct solver *solver)
{
    for (int i = 0; i < solver->grid.column_count; i++)
        solver->x[i] = 1;
}

/* One step of the power iteration: x becomes z, of length 1. The result is the estimate of the eigenvalue. */
static double iterate(struct solver *solver, double shift, double *residual)
{
    double sums[2] = {0, 0}; /* x z, z z */

    *residual = solve(solver);
    for (int i = 0; i < solver->grid.column_count; i++) {
        sums[0] += solver->x[i] * solver->z[i];
        sums[1] += solver->z[i] * solver->z[i];
    }
    cg_sum(&solver->grid, sums, 2);
    for (int i = 0; i < solver->grid.column_count; i++)
        solver->x[i] = solver->z[i] / sqrt(sums[1]);
    return shift + 1 / sums[0];
}

static void prepare(struct solver *solver, const struct size *size)
{
    struct grid grid;
    size_t room;

    npb_limit_ranks(size->order);
    grid = cg_grid(size->order);
    room = (size_t) (grid.row_count > grid.column_count ? grid.row_count : grid.column_count) + 1;
    npb_need_memory(cg_matrix_bytes(&grid, size->order, size->nonzeros) + 6 * room * sizeof(double));
    *solver = (struct solver){
        .grid = grid,
        .matrix = cg_matrix(&grid, size->order, size->nonzeros, size->shift),
        .x = allocate(room, sizeof(double)),
        .z = allocate(room, sizeof(double)),
        .r = allocate(room, sizeof(double)),
        .p = allocate(room, sizeof(double)),
        .q = allocate(room, sizeof(double)),
        .product = allocate(room, sizeof(double)),
    };
}

int main(int argc, char **argv)
{
    enum npb_class class = npb_start(argc, argv, "CG", NPB_POWERS_OF_TWO);
    const struct size *size = &sizes[class];
    double zeta = 0, residual, products = size->nonzeros * (size->nonzeros + 1);
    struct solver solver;
    char text[16];

    prepare(&solver, size);
    start_vector(&solver);
    iterate(&solver, size->shift, &residual); /* touches all memory and opens all connections */
    start_vector(&solver);

    npb_timer_start();
    for (int i = 1; i <= size->iterations; i++) {
        zeta = iterate(&solver, size->shift, &residual);
        if (rank == 0)
            printf(" iteration %3d  |x - Az| %20.13e  zeta %20.13f\n", i, residual, zeta);
    }
    npb_timer_stop();

    snprintf(text, sizeof text, "%d", size->order);
    return npb_finish(&(struct npb_result){
        .size = text,
        .iterations = size->iterations,
        .operations = 2.0 * size->iterations * size->order * (3 + products + STEPS * (5 + products) + 3),
        .operation = "floating point",
        .verified = npb_check("zeta", zeta, size->zeta, 1e-10),
    });
}

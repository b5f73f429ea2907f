/*
 * BT of the NAS Parallel Benchmarks: the equations of chapter 3 of the specification by implicit steps, split into one
 * factor for each axis, which along each line of points is a block-tridiagonal system with blocks of 5 x 5.
 */
#include "classes.h"
#include "solve.h"

/* The count that NPB's authors have fitted to measurements of their own program. */
static double operations(double points)
{
    return 3478.8 * points * points * points - 17655.7 * points * points + 28023.7 * points;
}

int main(int argc, char **argv)
{
    static const struct march bt = {
        .name = "BT",
        .classes = classes,
        .operations = operations,
        .bytes = bt_bytes,
        .allocate = bt_allocate,
        .solve = bt_solve,
    };

    return march(argc, argv, &bt);
}

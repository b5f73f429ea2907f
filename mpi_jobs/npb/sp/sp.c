/*
 * SP of the NAS Parallel Benchmarks: the equations of chapter 3 of the specification by implicit steps, split into one
 * factor for each axis, each made diagonal in the fields, which along each line of points leaves five systems with
 * five diagonals.
 */
#include "classes.h"
#include "solve.h"

/* The count that NPB's authors have fitted to measurements of their own program. */
static double operations(double points)
{
    return 881.174 * points * points * points - 4683.91 * points * points + 11484.5 * points - 19272.4;
}

int main(int argc, char **argv)
{
    static const struct march sp = {
        .name = "SP",
        .classes = classes,
        .operations = operations,
        .bytes = sp_bytes,
        .allocate = sp_allocate,
        .solve = sp_solve,
    };

    return march(argc, argv, &sp);
}

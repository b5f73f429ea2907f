/* The whole run of SP or BT: they differ in the solver of a time step alone. */
#ifndef MARCH_H
#define MARCH_H

#include "grid.h"

/* One class of an application. */
struct march_class {
    int points;     /* along each edge of the cube */
    int steps;
    double dt;
    struct cfd_norms reference;
};

struct march {
    const char *name;
    const struct march_class *classes;        /* by enum npb_class */
    double (*operations)(double points);      /* floating point, in a step */
    size_t (*bytes)(const struct grid *grid); /* that `allocate` will allocate on this rank */
    void (*allocate)(const struct grid *grid);
    void (*solve)(struct grid *grid);         /* turns rhs into the change of u */
};

/* Returns the exit code. */
int march(int argc, char **argv, const struct march *application);

#endif

/*
 * What the simulated applications LU, SP and BT share: the constants of the equations, the exact solution towards
 * which they march, and the comparison of norms with reference values.
 *
 * Chapter 3 of the specification (npb.h): the unsteady compressible Navier-Stokes equations for the five fields
 * density, momentum in x, y, z, and energy on the unit cube, with a forcing that makes a given polynomial their steady
 * solution. `grid.h` has what only SP and BT share.
 */
#ifndef CFD_H
#define CFD_H

#include <stdbool.h>

enum { CFD_FIELDS = 5 };

/* The physical constants k1 to k5. */
#define CFD_K1 1.4
#define CFD_K2 0.4
#ifdef NPB_PERTURB
#define CFD_K3 0.1001 /* for tests: norms must differ */
#else
#define CFD_K3 0.1
#endif
#define CFD_K4 1.0
#define CFD_K5 1.4

/* Artificial dissipation of second order along x, y, z, the same for all fields; and of fourth order. */
#define CFD_DX 0.75
#define CFD_DY 0.75
#define CFD_DZ 1.0
#define CFD_FOURTH 0.25 /* a quarter of the largest of the three */

/* The exact solution at a place in the unit cube. */
void cfd_exact(double x, double y, double z, double fields[CFD_FIELDS]);

/* Root mean square norms after the last step, by field. */
struct cfd_norms {
    double residual[CFD_FIELDS];
    double error[CFD_FIELDS];
};

/*
 * Compares norms with their reference and prints both, on rank 0. All ranks call it with the same values; the result
 * is whether each differs by 1e-8 of its reference at most.
 */
bool cfd_verify(const char *what, int count, const double *values, const double *reference);

#endif

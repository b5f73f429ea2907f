/* Norms against their reference values. */
#include "cfd.h"

#include <math.h>
#include <stdio.h>

#include "npb.h"

static const double tolerance = 1e-8; /* relative; the specification's */

bool cfd_verify(const char *what, int count, const double *values, const double *reference)
{
    bool good = true;

    if (rank == 0)
        printf(" %s\n", what);
    for (int i = 0; i < count; i++) {
        bool close = npb_close(values[i], reference[i], tolerance);

        if (rank == 0)
            printf(" %s %d %22.13E %22.13E %22.13E\n", close ? "        " : "FAILURE:", i + 1, values[i],
                   reference[i], fabs((values[i] - reference[i]) / reference[i]));
        good = good && close;
    }
    return good;
}

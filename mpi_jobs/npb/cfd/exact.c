/* The exact solution of chapter 3 of the specification. */
#include "cfd.h"

/* A constant, then by power 1 to 4 the coefficients of x, y and z. */
static const double coefficients[CFD_FIELDS][13] = {
    {2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};

void cfd_exact(double x, double y, double z, double fields[CFD_FIELDS])
{
    for (int field = 0; field < CFD_FIELDS; field++) {
        const double *c = coefficients[field];

        fields[field] = c[0] + x * (c[1] + x * (c[4] + x * (c[7] + x * c[10])))
                        + y * (c[2] + y * (c[5] + y * (c[8] + y * c[11])))
                        + z * (c[3] + z * (c[6] + z * (c[9] + z * c[12])));
    }
}

/* The fields at the beginning, and what is compared with the reference at the end. */
#include "lu.h"

#include <math.h>
#include <string.h>

static double coordinate(const struct direction *along, int i)
{
    return (i + along->offset) * along->spacing;
}

static void exact_at(const struct lu *lu, int i, int j, int k, double fields[CFD_FIELDS])
{
    cfd_exact(coordinate(&lu->along[X], i), coordinate(&lu->along[Y], j), coordinate(&lu->along[Z], k), fields);
}

/* Calls `set` for each own cell. */
static void set_cells(struct lu *lu, void (*set)(const struct lu *, int, int, int, double *))
{
    for (int k = 0; k < lu->along[Z].cells; k++)
        for (int j = 0; j < lu->along[Y].cells; j++)
            for (int i = 0; i < lu->along[X].cells; i++)
                set(lu, i, j, k, lu->u[at(lu, i, j, k)]);
}

void set_forcing(struct lu *lu)
{
    set_cells(lu, exact_at);
    compute_residual(lu);
    memcpy(lu->forcing, lu->residual, lu->cells * sizeof *lu->forcing);
}

/*
 * Inside, what interpolates linearly between opposite faces of the cube along each axis, combined as the specification
 * wants: their sum, less the products of two, plus the product of three.
 */
static void initial_at(const struct lu *lu, int i, int j, int k, double fields[CFD_FIELDS])
{
    const double place[AXES] = {coordinate(&lu->along[X], i), coordinate(&lu->along[Y], j),
                                coordinate(&lu->along[Z], k)};
    double linear[AXES][CFD_FIELDS];

    for (enum axis axis = X; axis < AXES; axis++) {
        double low[AXES], high[AXES], from[CFD_FIELDS], to[CFD_FIELDS];

        memcpy(low, place, sizeof low);
        memcpy(high, place, sizeof high);
        low[axis] = 0;
        high[axis] = 1;
        cfd_exact(low[X], low[Y], low[Z], from);
        cfd_exact(high[X], high[Y], high[Z], to);
        for (int m = 0; m < CFD_FIELDS; m++)
            linear[axis][m] = (1 - place[axis]) * from[m] + place[axis] * to[m];
    }
    for (int m = 0; m < CFD_FIELDS; m++) {
        double x = linear[X][m], y = linear[Y][m], z = linear[Z][m];

        fields[m] = x + y + z - x * y - y * z - z * x + x * y * z;
    }
}

/* Not on the boundary of the cube. */
static bool is_inside(const struct lu *lu, int i, int j, int k)
{
    const int at_axis[AXES] = {i, j, k};
    bool inside = true;

    for (enum axis axis = X; axis < AXES; axis++)
        inside = inside && at_axis[axis] >= lu->along[axis].begin && at_axis[axis] < lu->along[axis].end;
    return inside;
}

static void first_at(const struct lu *lu, int i, int j, int k, double fields[CFD_FIELDS])
{
    if (is_inside(lu, i, j, k))
        initial_at(lu, i, j, k, fields);
    else
        exact_at(lu, i, j, k, fields);
}

void set_initial(struct lu *lu)
{
    set_cells(lu, first_at);
}

/* ------------------------------------------------------------------------------------------------------- norms */

static void norm_of(const struct lu *lu, double norm[CFD_FIELDS],
                    void (*get)(const struct lu *, int, int, int, double *))
{
    const struct direction *x = &lu->along[X], *y = &lu->along[Y], *z = &lu->along[Z];

    memset(norm, 0, CFD_FIELDS * sizeof *norm);
    for (int k = z->begin; k < z->end; k++)
        for (int j = y->begin; j < y->end; j++)
            for (int i = x->begin; i < x->end; i++) {
                double fields[CFD_FIELDS];

                get(lu, i, j, k, fields);
                for (int m = 0; m < CFD_FIELDS; m++)
                    norm[m] += fields[m] * fields[m];
            }
    npb_allreduce(norm, CFD_FIELDS, MPI_DOUBLE, MPI_SUM);
    for (int m = 0; m < CFD_FIELDS; m++)
        norm[m] = sqrt(norm[m] / ((double) (x->points - 2) * (y->points - 2) * (z->points - 2)));
}

static void residual_at(const struct lu *lu, int i, int j, int k, double fields[CFD_FIELDS])
{
    memcpy(fields, lu->residual[at(lu, i, j, k)], sizeof(cell));
}

static void error_at(const struct lu *lu, int i, int j, int k, double fields[CFD_FIELDS])
{
    exact_at(lu, i, j, k, fields);
    for (int m = 0; m < CFD_FIELDS; m++)
        fields[m] -= lu->u[at(lu, i, j, k)][m];
}

void residual_norm(const struct lu *lu, double norm[CFD_FIELDS])
{
    norm_of(lu, norm, residual_at);
}

void error_norm(const struct lu *lu, double norm[CFD_FIELDS])
{
    norm_of(lu, norm, error_at);
}

/* -------------------------------------------------------------------------------------------- surface integral */

/* The box over whose surface is integrated: its first and last point along each axis. */
struct box {
    int low[AXES], high[AXES];
};

static double pressure_at(const struct lu *lu, int i, int j, int k)
{
    const double *u = lu->u[at(lu, i, j, k)];

    return CFD_K2 * (u[4] - 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0]);
}

/* By the trapezoidal rule: half at the ends, none outside. */
static double weight(const struct box *box, enum axis axis, int point)
{
    if (point < box->low[axis] || point > box->high[axis])
        return 0;
    return point == box->low[axis] || point == box->high[axis] ? 0.5 : 1;
}

/* Each point's part follows from its place, so no neighbour need be asked. */
double surface_integral(const struct lu *lu)
{
    const int points = lu->along[X].points;
    const struct box box = {{1, 1, 2}, {points - 2, points - 3, points - 2}};
    double sum = 0;

    for (int k = 0; k < lu->along[Z].cells; k++)
        for (int j = 0; j < lu->along[Y].cells; j++)
            for (int i = 0; i < lu->along[X].cells; i++) {
                const int cell_at[AXES] = {i, j, k};
                double weights[AXES], area = 0;
                bool on_side[AXES];

                for (enum axis axis = X; axis < AXES; axis++) {
                    int point = cell_at[axis] + lu->along[axis].offset;

                    weights[axis] = weight(&box, axis, point) * lu->along[axis].spacing;
                    on_side[axis] = point == box.low[axis] || point == box.high[axis];
                }
                for (enum axis axis = X; axis < AXES; axis++)
                    if (on_side[axis])
                        area += weights[(axis + 1) % AXES] * weights[(axis + 2) % AXES];
                if (area > 0)
                    sum += area * pressure_at(lu, i, j, k);
            }
    npb_allreduce(&sum, 1, MPI_DOUBLE, MPI_SUM);
    return sum;
}

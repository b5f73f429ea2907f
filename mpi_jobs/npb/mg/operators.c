/*
 * The four operators of the specification's section 3.2, each with 27 coefficients that depend only on whether a
 * neighbour shares a face, an edge or a corner. Sums over lines of faces and edges serve three points each.
 */
#include "mg.h"

#include <math.h>
#include <string.h>

#ifdef NPB_PERTURB
static const double edge = 1.001 / 6;
#else
static const double edge = 1.0 / 6;
#endif
static const double centre = -8.0 / 3, corner = 1.0 / 12; /* of A; that of faces is 0 */

/*
 * For each x of a line: `faces` is the sum of the four points next to it in the y-z plane, `edges` that of the four
 * diagonal ones.
 */
static void sum_around(const struct level *level, const double *field, int z, int y, double *restrict faces,
                       double *restrict edges)
{
    const double *restrict below = field + mg_line(level, z - 1, y), *restrict above = field + mg_line(level, z + 1, y);
    const double *restrict middle = field + mg_line(level, z, y);
    int line = level->extent[X];

    for (int x = 0; x < line; x++) {
        faces[x] = middle[x - line] + middle[x + line] + below[x] + above[x];
        edges[x] = below[x - line] + below[x + line] + above[x - line] + above[x + line];
    }
}

void mg_residual(const struct grids *grids, const struct level *level, const double *v)
{
    double *restrict faces = grids->lines[0], *restrict edges = grids->lines[1];

    for (int z = 1; z <= level->points[Z]; z++)
        for (int y = 1; y <= level->points[Y]; y++) {
            size_t at = mg_line(level, z, y);
            const double *restrict u = level->u + at;
            double *restrict r = level->r + at;

            sum_around(level, level->u, z, y, faces, edges);
            if (v != level->r) /* first, so that what follows has no second operand that may be r */
                memcpy(r + 1, v + at + 1, (size_t) level->points[X] * sizeof *r);
            for (int x = 1; x <= level->points[X]; x++)
                r[x] = r[x] - centre * u[x] - edge * (edges[x] + faces[x - 1] + faces[x + 1])
                       - corner * (edges[x - 1] + edges[x + 1]);
        }
    mg_exchange(grids, level, level->r);
}

/* S has no corners. */
void mg_smooth(const struct grids *grids, const struct level *level, const double coefficients[3])
{
    double *restrict faces = grids->lines[0], *restrict edges = grids->lines[1];
    double c0 = coefficients[0], c1 = coefficients[1], c2 = coefficients[2];

    for (int z = 1; z <= level->points[Z]; z++)
        for (int y = 1; y <= level->points[Y]; y++) {
            const double *restrict r = level->r + mg_line(level, z, y);
            double *restrict u = level->u + mg_line(level, z, y);

            sum_around(level, level->r, z, y, faces, edges);
            for (int x = 1; x <= level->points[X]; x++)
                u[x] = u[x] + c0 * r[x] + c1 * (r[x - 1] + r[x + 1] + faces[x])
                       + c2 * (edges[x] + faces[x - 1] + faces[x + 1]);
        }
    mg_exchange(grids, level, level->u);
}

void mg_restrict(const struct grids *grids, const struct level *fine, const struct level *coarse)
{
    double *restrict faces = grids->lines[0], *restrict edges = grids->lines[1];

    for (int z = 1; z <= coarse->points[Z]; z++)
        for (int y = 1; y <= coarse->points[Y]; y++) {
            int fine_z = 2 * z - fine->shift[Z], fine_y = 2 * y - fine->shift[Y];
            const double *restrict from = fine->r + mg_line(fine, fine_z, fine_y);
            double *restrict to = coarse->r + mg_line(coarse, z, y);

            sum_around(fine, fine->r, fine_z, fine_y, faces, edges);
            for (int c = 1; c <= coarse->points[X]; c++) {
                int x = 2 * c - fine->shift[X];

                to[c] = 0.5 * from[x] + 0.25 * (from[x - 1] + from[x + 1] + faces[x])
                        + 0.125 * (faces[x - 1] + faces[x + 1] + edges[x]) + 0.0625 * (edges[x - 1] + edges[x + 1]);
            }
        }
    mg_exchange(grids, coarse, coarse->r);
}

/* Trilinear: a fine line lies on one coarse line, or between two or four. Coarse ghosts make the fine ones. */
void mg_interpolate(const struct grids *grids, const struct level *coarse, const struct level *fine)
{
    double *restrict line = grids->lines[0];
    const double *shares[2][2] = {{NULL}};
    int shift = fine->shift[X], extent = coarse->extent[X];

    for (int z = 0; z < fine->extent[Z]; z++)
        for (int y = 0; y < fine->extent[Y]; y++) {
            int coarse_z = (z + fine->shift[Z]) / 2, coarse_y = (y + fine->shift[Y]) / 2;
            int odd_z = (z + fine->shift[Z]) % 2, odd_y = (y + fine->shift[Y]) % 2;
            double whole = 1.0 / ((1 + odd_z) * (1 + odd_y)), half = whole / 2;
            double *restrict u = fine->u + mg_line(fine, z, y);

            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++)
                    shares[i][j] = coarse->u + mg_line(coarse, coarse_z + i * odd_z, coarse_y + j * odd_y);
            if (odd_z && odd_y)
                for (int x = 0; x < extent; x++)
                    line[x] = shares[0][0][x] + shares[0][1][x] + shares[1][0][x] + shares[1][1][x];
            else if (odd_z || odd_y)
                for (int x = 0; x < extent; x++)
                    line[x] = shares[0][0][x] + shares[1][1][x];
            else
                memcpy(line, shares[0][0], (size_t) extent * sizeof *line);
            for (int x = shift; x < fine->extent[X]; x += 2)
                u[x] += whole * line[(x + shift) / 2];
            for (int x = 1 - shift; x < fine->extent[X]; x += 2)
                u[x] += half * (line[(x + shift) / 2] + line[(x + shift) / 2 + 1]);
        }
}

double mg_norm(const struct grids *grids)
{
    const struct level *level = &grids->levels[grids->finest];
    double sum = 0;

    for (int z = 1; z <= level->points[Z]; z++)
        for (int y = 1; y <= level->points[Y]; y++) {
            const double *r = level->r + mg_line(level, z, y);

            for (int x = 1; x <= level->points[X]; x++)
                sum += r[x] * r[x];
        }
    npb_allreduce(&sum, 1, MPI_DOUBLE, MPI_SUM);
    return sqrt(ldexp(sum, -3 * grids->finest));
}

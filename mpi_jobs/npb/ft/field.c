/* Transforms of a field along its axes, and the all-to-all between planes and columns. */
#include "ft.h"

struct field ft_field(int nx, int ny, int nz)
{
    return (struct field){
        .nx = nx,
        .ny = ny,
        .nz = nz,
        .planes = nz / ranks,
        .columns = nx * ny / ranks,
        .x = fft_plan(nx),
        .y = fft_plan(ny),
        .z = fft_plan(nz),
    };
}

size_t ft_doubles(const struct field *field)
{
    return 2 * (size_t) field->nx * (size_t) field->ny * (size_t) field->planes;
}

/* Lines in x are each in one piece, one after the other. */
static void along_x(const struct field *field, double *planes, bool inverse)
{
    const struct fft *fft = &field->x;
    size_t length = 2 * (size_t) field->nx, lines = (size_t) field->ny * (size_t) field->planes;

    for (size_t line = 0; line < lines; line += FT_BLOCK) {
        double *block = planes + line * length;
        int out;

        for (int i = 0; i < field->nx; i++)
            for (int b = 0; b < FT_BLOCK; b++) {
                fft->real[0][i * FT_BLOCK + b] = block[(size_t) b * length + 2 * (size_t) i];
                fft->imag[0][i * FT_BLOCK + b] = block[(size_t) b * length + 2 * (size_t) i + 1];
            }
        out = fft_run(fft, inverse);
        for (int i = 0; i < field->nx; i++)
            for (int b = 0; b < FT_BLOCK; b++) {
                block[(size_t) b * length + 2 * (size_t) i] = fft->real[out][i * FT_BLOCK + b];
                block[(size_t) b * length + 2 * (size_t) i + 1] = fft->imag[out][i * FT_BLOCK + b];
            }
    }
}

/* Lines in y lie side by side. */
static void along_y(const struct field *field, double *planes, bool inverse)
{
    const struct fft *fft = &field->y;
    size_t row = 2 * (size_t) field->nx, plane = row * (size_t) field->ny;

    for (int z = 0; z < field->planes; z++)
        for (int x = 0; x < field->nx; x += FT_BLOCK) {
            double *block = planes + (size_t) z * plane + 2 * (size_t) x;
            int out;

            for (int i = 0; i < field->ny; i++)
                for (int b = 0; b < FT_BLOCK; b++) {
                    fft->real[0][i * FT_BLOCK + b] = block[(size_t) i * row + 2 * (size_t) b];
                    fft->imag[0][i * FT_BLOCK + b] = block[(size_t) i * row + 2 * (size_t) b + 1];
                }
            out = fft_run(fft, inverse);
            for (int i = 0; i < field->ny; i++)
                for (int b = 0; b < FT_BLOCK; b++) {
                    block[(size_t) i * row + 2 * (size_t) b] = fft->real[out][i * FT_BLOCK + b];
                    block[(size_t) i * row + 2 * (size_t) b + 1] = fft->imag[out][i * FT_BLOCK + b];
                }
        }
}

/* From columns to columns, which may be the same. */
static void along_z(const struct field *field, const double *from, double *to, bool inverse)
{
    const struct fft *fft = &field->z;
    size_t length = 2 * (size_t) field->planes, piece = length * (size_t) field->columns;

    for (int column = 0; column < field->columns; column += FT_BLOCK) {
        int out;

        for (int other = 0, z = 0; other < ranks; other++, z += field->planes) {
            const double *restrict block = from + (size_t) other * piece + (size_t) column * length;

            for (int i = 0; i < field->planes; i++)
                for (int b = 0; b < FT_BLOCK; b++) {
                    fft->real[0][(z + i) * FT_BLOCK + b] = block[(size_t) b * length + 2 * (size_t) i];
                    fft->imag[0][(z + i) * FT_BLOCK + b] = block[(size_t) b * length + 2 * (size_t) i + 1];
                }
        }
        out = fft_run(fft, inverse);
        for (int other = 0, z = 0; other < ranks; other++, z += field->planes) {
            double *restrict block = to + (size_t) other * piece + (size_t) column * length;

            for (int i = 0; i < field->planes; i++)
                for (int b = 0; b < FT_BLOCK; b++) {
                    block[(size_t) b * length + 2 * (size_t) i] = fft->real[out][(z + i) * FT_BLOCK + b];
                    block[(size_t) b * length + 2 * (size_t) i + 1] = fft->imag[out][(z + i) * FT_BLOCK + b];
                }
        }
    }
}

/*
 * From [columns][rows] to [rows][columns]: between planes, [z][column of all], and what is sent or received, [column of
 * all][z]. By squares, so that reads and writes both stay in the cache.
 */
static void transpose(const double *restrict from, double *restrict to, int rows, int columns)
{
    enum { SQUARE = 16 };

    for (int row = 0; row < rows; row += SQUARE)
        for (int column = 0; column < columns; column += SQUARE)
            for (int r = row; r < rows && r < row + SQUARE; r++)
                for (int c = column; c < columns && c < column + SQUARE; c++) {
                    const double *restrict number = from + 2 * ((size_t) c * (size_t) rows + (size_t) r);
                    double *restrict place = to + 2 * ((size_t) r * (size_t) columns + (size_t) c);

                    place[0] = number[0];
                    place[1] = number[1];
                }
}

static void exchange(const struct field *field, const double *out, double *in)
{
    npb_alltoall(out, in, 2 * field->planes * field->columns, MPI_DOUBLE);
}

void ft_forward(const struct field *field, double *planes, double *columns, double *room)
{
    bool alone = ranks == 1; /* then nothing needs to move but in the transposition */

    along_x(field, planes, false);
    along_y(field, planes, false);
    transpose(planes, alone ? columns : room, field->columns * ranks, field->planes);
    if (!alone)
        exchange(field, room, columns);
    along_z(field, columns, columns, false);
}

double *ft_inverse(const struct field *field, const double *columns, double *one, double *other)
{
    double *received = other, *planes = one;

    along_z(field, columns, one, true);
    if (ranks == 1) {
        received = one;
        planes = other;
    } else
        exchange(field, one, other);
    transpose(received, planes, field->planes, field->columns * ranks);
    along_y(field, planes, true);
    along_x(field, planes, true);
    return planes;
}

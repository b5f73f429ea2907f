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

/*
 * `count` numbers of FT_BLOCK lines, to or from places `at` and following of a transform: `next` doubles apart in a
 * line, lines `line` doubles apart.
 */
static inline void load(const struct fft *fft, const double *restrict from, size_t next, size_t line, int at, int count)
{
    double *restrict real = fft->real[0] + at * FT_BLOCK, *restrict imag = fft->imag[0] + at * FT_BLOCK;

    for (int i = 0; i < count; i++, from += next)
        for (int b = 0; b < FT_BLOCK; b++) {
            real[i * FT_BLOCK + b] = from[(size_t) b * line];
            imag[i * FT_BLOCK + b] = from[(size_t) b * line + 1];
        }
}

static inline void store(const struct fft *fft, int pair, double *restrict to, size_t next, size_t line, int at,
                         int count)
{
    const double *restrict real = fft->real[pair] + at * FT_BLOCK, *restrict imag = fft->imag[pair] + at * FT_BLOCK;

    for (int i = 0; i < count; i++, to += next)
        for (int b = 0; b < FT_BLOCK; b++) {
            to[(size_t) b * line] = real[i * FT_BLOCK + b];
            to[(size_t) b * line + 1] = imag[i * FT_BLOCK + b];
        }
}

static void along_x(const struct field *field, double *planes, bool inverse)
{
    size_t line = 2 * (size_t) field->nx, lines = (size_t) field->ny * (size_t) field->planes;

    for (size_t at = 0; at < lines; at += FT_BLOCK) {
        load(&field->x, planes + at * line, 2, line, 0, field->nx);
        store(&field->x, fft_run(&field->x, inverse), planes + at * line, 2, line, 0, field->nx);
    }
}

static void along_y(const struct field *field, double *planes, bool inverse)
{
    size_t row = 2 * (size_t) field->nx;

    for (int z = 0; z < field->planes; z++, planes += row * (size_t) field->ny)
        for (size_t x = 0; x < row; x += 2 * FT_BLOCK) {
            load(&field->y, planes + x, row, 2, 0, field->ny);
            store(&field->y, fft_run(&field->y, inverse), planes + x, row, 2, 0, field->ny);
        }
}

/* From columns to columns, which may be the same. */
static void along_z(const struct field *field, const double *from, double *to, bool inverse)
{
    size_t line = 2 * (size_t) field->planes, piece = line * (size_t) field->columns;

    for (size_t column = 0; column < piece; column += FT_BLOCK * line) {
        int pair;

        for (int other = 0; other < ranks; other++)
            load(&field->z, from + (size_t) other * piece + column, 2, line, other * field->planes, field->planes);
        pair = fft_run(&field->z, inverse);
        for (int other = 0; other < ranks; other++)
            store(&field->z, pair, to + (size_t) other * piece + column, 2, line, other * field->planes,
                  field->planes);
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

/*
 * FT: fast Fourier transforms of single lines, and of a field that is shared out to the ranks.
 *
 * Complex numbers are two doubles, real part first.
 */
#ifndef FT_H
#define FT_H

#include "npb.h"

enum { FT_BLOCK = 8 }; /* lines that are transformed together */

/* Transforms of one length. */
struct fft {
    int length;
    double *cosine, *sine;     /* of 2 pi k / length */
    double *real[2], *imag[2]; /* [length][FT_BLOCK] each; pair 0 takes the input */
};

struct fft fft_plan(int length); /* a power of two */

/*
 * Transforms the FT_BLOCK lines in pair 0, with exponent -1, or +1 if `inverse`; not scaled. The result is the pair
 * that holds the output.
 */
int fft_run(const struct fft *fft, bool inverse);

/*
 * A field of nx * ny * nz numbers has two forms. In planes, a rank has whole planes [z][y][x]. In columns, it has an
 * equal share of the columns along z, cut as they are sent: [rank whose planes they cross][column][z].
 */
struct field {
    int nx, ny, nz;
    int planes;  /* of this rank */
    int columns; /* of this rank: numbered y * nx + x over all ranks */
    struct fft x, y, z;
};

struct field ft_field(int nx, int ny, int nz);
size_t ft_doubles(const struct field *field); /* in a field, this rank's part */

/* From planes to their transform in columns. Overwrites `planes`; needs another field's room. */
void ft_forward(const struct field *field, double *planes, double *columns, double *room);

/*
 * From columns, which stay, to their inverse transform in planes, which is not scaled. Needs two fields' room; the
 * result is in either.
 */
double *ft_inverse(const struct field *field, const double *columns, double *one, double *other);

#endif

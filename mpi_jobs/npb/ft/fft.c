/*
 * Stockham's self-sorting transform by factors of four, and one of two where the length needs it. Lines lie side by
 * side, and real and imaginary parts apart, so that inner loops run over whole vectors with one factor.
 */
#include "ft.h"

#include <math.h>

struct fft fft_plan(int length)
{
    const double turn = 2 * acos(-1.0);
    size_t room = (size_t) length * FT_BLOCK;
    struct fft fft = {
        .length = length,
        .cosine = allocate((size_t) length, sizeof(double)),
        .sine = allocate((size_t) length, sizeof(double)),
    };

    for (int k = 0; k < length; k++) {
        fft.cosine[k] = cos(turn * k / length);
        fft.sine[k] = sin(turn * k / length);
    }
    for (int i = 0; i < 2; i++) {
        fft.real[i] = allocate(room, sizeof(double));
        fft.imag[i] = allocate(room, sizeof(double));
    }
    return fft;
}

/*
 * One step: transforms of length 4 over numbers that are a quarter of the remaining length apart. `stride` numbers
 * share a factor. ar is the real part of a and so on.
 */
static void by_four(const struct fft *fft, int quarter, int stride, const double *restrict in_real,
                    const double *restrict in_imag, double *restrict out_real, double *restrict out_imag)
{
    int step = fft->length / (4 * quarter), far = quarter * stride;

    for (int p = 0; p < quarter; p++) {
        const double *restrict xr = in_real + p * stride, *restrict xi = in_imag + p * stride;
        double *restrict yr = out_real + 4 * p * stride, *restrict yi = out_imag + 4 * p * stride;
        double c1 = fft->cosine[p * step], s1 = fft->sine[p * step];
        double c2 = fft->cosine[2 * p * step], s2 = fft->sine[2 * p * step];
        double c3 = fft->cosine[3 * p * step], s3 = fft->sine[3 * p * step];

        for (int q = 0; q < stride; q++) {
            double ar = xr[q], br = xr[q + far], cr = xr[q + 2 * far], dr = xr[q + 3 * far];
            double ai = xi[q], bi = xi[q + far], ci = xi[q + 2 * far], di = xi[q + 3 * far];
            double even_r = ar + cr, even_i = ai + ci, odd_r = br + dr, odd_i = bi + di;
            double across_r = ar - cr, across_i = ai - ci, turned_r = bi - di, turned_i = dr - br;
            double r1 = across_r + turned_r, i1 = across_i + turned_i;
            double r2 = even_r - odd_r, i2 = even_i - odd_i;
            double r3 = across_r - turned_r, i3 = across_i - turned_i;

            yr[q] = even_r + odd_r;
            yi[q] = even_i + odd_i;
            yr[q + stride] = c1 * r1 + s1 * i1;
            yi[q + stride] = c1 * i1 - s1 * r1;
            yr[q + 2 * stride] = c2 * r2 + s2 * i2;
            yi[q + 2 * stride] = c2 * i2 - s2 * r2;
            yr[q + 3 * stride] = c3 * r3 + s3 * i3;
            yi[q + 3 * stride] = c3 * i3 - s3 * r3;
        }
    }
}

/* The last step where the length is no power of four. */
static void by_two(int stride, const double *restrict in_real, const double *restrict in_imag,
                   double *restrict out_real, double *restrict out_imag)
{
    for (int q = 0; q < stride; q++) {
        out_real[q] = in_real[q] + in_real[q + stride];
        out_imag[q] = in_imag[q] + in_imag[q + stride];
        out_real[q + stride] = in_real[q] - in_real[q + stride];
        out_imag[q + stride] = in_imag[q] - in_imag[q + stride];
    }
}

/* With real and imaginary parts exchanged, before and after, the same steps are those of the inverse. */
int fft_run(const struct fft *fft, bool inverse)
{
    double *const *real = inverse ? fft->imag : fft->real, *const *imag = inverse ? fft->real : fft->imag;
    int at = 0, stride = FT_BLOCK, left = fft->length;

    for (; left >= 4; left /= 4, stride *= 4, at = !at)
        by_four(fft, left / 4, stride, real[at], imag[at], real[!at], imag[!at]);
    if (left == 2) {
        by_two(stride, real[at], imag[at], real[!at], imag[!at]);
        at = !at;
    }
    return at;
}

/*
 * FT: the heat equation on a periodic box, by Fourier transforms in three dimensions. Specification section 3.3.
 *
 * The field is transformed once; each iteration lets its spectrum decay one step further and transforms it back. All
 * ranks exchange all they have in each transform.
 */
#include "ft.h"

#include <math.h>
#include <stdio.h>

#include "reference.h"

#ifdef NPB_PERTURB
static const double diffusion = 1.001e-6;
#else
static const double diffusion = 1e-6;
#endif

static const struct size {
    int nx, ny, nz, iterations;
} sizes[NPB_CLASSES] = {
    [NPB_S] = {64, 64, 64, 6},
    [NPB_W] = {128, 128, 32, 6},
    [NPB_A] = {256, 256, 128, 6},
    [NPB_B] = {512, 256, 256, 20},
};

struct heat {
    struct field field;
    double *spectrum; /* columns */
    double *decay;    /* of a step, for each of these */
    double *one, *other;
};

/* Random numbers in the order x, y, z, real part before imaginary part. */
static void set_up(struct heat *heat)
{
    const struct field *field = &heat->field;
    uint64_t numbers = ft_doubles(field), seed = npb_skip(NPB_SEED, numbers * (uint64_t) rank);

    npb_random_many(numbers, &seed, heat->one);
}

/* The frequency of index i: negative in the upper half. */
static int frequency(int i, int n)
{
    return i < n / 2 ? i : i - n;
}

static void compute_decay(struct heat *heat)
{
    const struct field *field = &heat->field;
    double pi = acos(-1.0), rate = -4 * diffusion * pi * pi, *decay = heat->decay;

    for (int other = 0; other < ranks; other++)
        for (int i = 0; i < field->columns; i++) {
            int column = rank * field->columns + i;
            int x = frequency(column % field->nx, field->nx), y = frequency(column / field->nx, field->ny);

            for (int plane = 0; plane < field->planes; plane++) {
                int z = frequency(other * field->planes + plane, field->nz);

                *decay++ = exp(rate * (x * x + y * y + z * z));
            }
        }
}

static void step(struct heat *heat)
{
    const double *restrict decay = heat->decay;
    double *restrict spectrum = heat->spectrum;
    size_t count = ft_doubles(&heat->field) / 2;

    for (size_t i = 0; i < count; i++) {
        spectrum[2 * i] *= decay[i];
        spectrum[2 * i + 1] *= decay[i];
    }
}

/* The mean of 1024 numbers of the field, as it were: their sum, scaled as the inverse transform is not. */
static void checksum(const struct field *field, const double *planes, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (int j = 1; j <= 1024; j++) {
        int x = j % field->nx, y = 3 * j % field->ny, z = 5 * j % field->nz - rank * field->planes;

        if (z >= 0 && z < field->planes) {
            size_t at = 2 * (((size_t) z * (size_t) field->ny + (size_t) y) * (size_t) field->nx + (size_t) x);

            sum[0] += planes[at];
            sum[1] += planes[at + 1];
        }
    }
    npb_allreduce(sum, 2, MPI_DOUBLE, MPI_SUM);
    for (int part = 0; part < 2; part++)
        sum[part] /= (double) field->nx * (double) field->ny * (double) field->nz;
}

static void transform(struct heat *heat)
{
    compute_decay(heat);
    set_up(heat);
    ft_forward(&heat->field, heat->one, heat->spectrum, heat->other);
}

static void prepare(struct heat *heat, const struct size *size)
{
    size_t doubles;

    npb_limit_ranks(size->nz);
    doubles = 2 * (size_t) size->nx * (size_t) size->ny * (size_t) size->nz / (size_t) ranks;
    npb_need_memory((3 * doubles + doubles / 2) * sizeof(double));
    *heat = (struct heat){
        .field = ft_field(size->nx, size->ny, size->nz),
        .spectrum = allocate(doubles, sizeof(double)),
        .decay = allocate(doubles / 2, sizeof(double)),
        .one = allocate(doubles, sizeof(double)),
        .other = allocate(doubles, sizeof(double)),
    };
}

static bool is_right(const double sum[2], const double reference[2])
{
    return hypot(sum[0] - reference[0], sum[1] - reference[1]) <= 1e-12 * hypot(reference[0], reference[1]);
}

int main(int argc, char **argv)
{
    enum npb_class class = npb_start(argc, argv, "FT", NPB_POWERS_OF_TWO);
    const struct size *size = &sizes[class];
    double total = (double) size->nx * (double) size->ny * (double) size->nz;
    bool verified = true;
    struct heat heat;
    char text[32];

    prepare(&heat, size);
    transform(&heat); /* touches all memory and opens all connections */

    npb_timer_start(); /* the set-up counts, by the specification */
    transform(&heat);
    for (int i = 0; i < size->iterations; i++) {
        const double *reference = ft_checksums[class][i];
        double sum[2];

        step(&heat);
        checksum(&heat.field, ft_inverse(&heat.field, heat.spectrum, heat.one, heat.other), sum);
        verified = is_right(sum, reference) && verified;
        if (rank == 0)
            printf(" iteration %3d  checksum %18.12f %18.12f  reference %18.12f %18.12f%s\n", i + 1, sum[0], sum[1],
                   reference[0], reference[1], is_right(sum, reference) ? "" : "  WRONG");
    }
    npb_timer_stop();

    snprintf(text, sizeof text, "%dx%dx%d", size->nx, size->ny, size->nz);
    return npb_finish(&(struct npb_result){
        .size = text,
        .iterations = size->iterations,
        .operations = total * (14.8157 + 7.19641 * log(total) + (5.23518 + 7.21113 * log(total)) * size->iterations),
        .operation = "floating point",
        .verified = verified,
    });
}

/*
 * EP, embarrassingly parallel: pairs of Gaussian deviates by the polar method, counted in square annuli.
 * Specification section 3.1.
 *
 * The random numbers come in blocks, shared out to the ranks; the only messages are the sums at the end.
 */
#include <math.h>
#include <stdio.h>

#include "npb.h"

enum { BLOCK = 1 << 16, ANNULI = 10 }; /* pairs a block */

#ifdef NPB_PERTURB
#define SEED UINT64_C(271828185)
#else
#define SEED UINT64_C(271828183)
#endif

static const struct size {
    int pairs;   /* binary logarithm */
    double x, y; /* sums of the deviates */
} sizes[NPB_CLASSES] = {
    [NPB_S] = {24, -3.247834652034740e3, -6.958407078382297e3},
    [NPB_W] = {25, -2.863319731645753e3, -6.320053679109499e3},
    [NPB_A] = {28, -4.295875165629892e3, -1.580732573678431e4},
    [NPB_B] = {30, 4.033815542441498e4, -2.660669192809235e4},
};

/* Sums of deviates, and how many of them are in each annulus; doubles throughout, so that one reduction adds all. */
struct sums {
    double x, y, annulus[ANNULI];
};

static void add_block(uint64_t block, double *restrict numbers, struct sums *sums)
{
    uint64_t seed = npb_skip(SEED, 2 * BLOCK * block);
    double sum_x = 0, sum_y = 0;

    npb_random_many(2 * BLOCK, &seed, numbers);
    for (int i = 0; i < BLOCK; i++) {
        double x = 2 * numbers[2 * i] - 1, y = 2 * numbers[2 * i + 1] - 1;
        double square = x * x + y * y;

        if (square <= 1) {
            double factor = sqrt(-2 * log(square) / square);

            x *= factor;
            y *= factor;
            sum_x += x;
            sum_y += y;
            x = fabs(x);
            y = fabs(y);
            sums->annulus[(int) (x > y ? x : y)]++;
        }
    }
    sums->x += sum_x;
    sums->y += sum_y;
}

int main(int argc, char **argv)
{
    enum npb_class class = npb_start(argc, argv, "EP", NPB_ANY);
    const struct size *size = &sizes[class];
    uint64_t blocks = (UINT64_C(1) << size->pairs) / BLOCK, first, last;
    struct sums sums = {.x = 0};
    double *numbers;
    bool verified;
    char text[16];

    npb_limit_ranks((int) blocks);
    npb_need_memory(2 * BLOCK * sizeof *numbers);
    numbers = allocate(2 * BLOCK, sizeof *numbers);
    first = blocks * (uint64_t) rank / (uint64_t) ranks;
    last = blocks * (uint64_t) (rank + 1) / (uint64_t) ranks;

    npb_timer_start();
    for (uint64_t block = first; block < last; block++)
        add_block(block, numbers, &sums);
    npb_allreduce(&sums, 2 + ANNULI, MPI_DOUBLE, MPI_SUM);
    npb_timer_stop();

    verified = npb_check("sum of x", sums.x, size->x, 1e-8);
    verified &= npb_check("sum of y", sums.y, size->y, 1e-8);
    if (rank == 0)
        for (int i = 0; i < ANNULI; i++)
            printf(" deviates in [%d, %d)  %14.0f\n", i, i + 1, sums.annulus[i]);
    snprintf(text, sizeof text, "%.0f", ldexp(1, size->pairs + 1));
    return npb_finish(&(struct npb_result){
        .size = text,
        .iterations = 0,
        .operations = ldexp(1, size->pairs + 1),
        .operation = "random numbers generated",
        .verified = verified,
    });
}

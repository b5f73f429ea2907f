/* The common random number generator: many numbers at once, and jumps. */
#include "npb.h"

/*
 * One chain of multiplications would wait for each product; four interleaved ones, each a^4 a step, keep the
 * multiplier busy.
 */
void npb_random_many(size_t count, uint64_t *seed, double *numbers)
{
    enum { CHAINS = 4 };
    uint64_t stride = npb_skip(1, CHAINS), x[CHAINS];
    size_t at = 0;

    if (count >= CHAINS) {
        x[0] = npb_times(NPB_MULTIPLIER, *seed);
        for (int i = 1; i < CHAINS; i++)
            x[i] = npb_times(NPB_MULTIPLIER, x[i - 1]);
        for (; at + 2 * CHAINS <= count; at += CHAINS)
            for (int i = 0; i < CHAINS; i++) {
                numbers[at + (size_t) i] = npb_fraction(x[i]);
                x[i] = npb_times(stride, x[i]);
            }
        for (int i = 0; i < CHAINS; i++)
            numbers[at++] = npb_fraction(x[i]);
        *seed = x[CHAINS - 1];
    }
    while (at < count)
        numbers[at++] = npb_random(seed);
}

/* The specification's section 2.3, by binary powers. */
uint64_t npb_skip(uint64_t seed, uint64_t steps)
{
    for (uint64_t power = NPB_MULTIPLIER; steps; steps >>= 1) {
        if (steps & 1)
            seed = npb_times(power, seed);
        power = npb_times(power, power);
    }
    return seed;
}

/*
 * Integer sort, specification section 3.5.3: ranks that five keys must have in each iteration. The keys are named by
 * their place in the whole sequence. As each iteration makes one key small and one large, ranks move by one.
 */
#ifndef IS_REFERENCE_H
#define IS_REFERENCE_H

#include "npb.h"

enum { IS_TESTS = 5, IS_ITERATIONS = 10 };

struct is_test {
    int place, rank;
    int step, delay; /* in iteration i the key's rank is: rank + step * (i - delay) */
};

static const struct is_test is_tests[NPB_CLASSES][IS_TESTS] = {
    [NPB_S] = {{48427, 0, 1, 0}, {17148, 18, 1, 0}, {23627, 346, 1, 0}, {62548, 64917, -1, 0}, {4431, 65463, -1, 0}},
    [NPB_W] = {{357773, 1249, 1, 2}, {934767, 11698, 1, 2}, {875723, 1039987, -1, 0}, {898999, 1043896, -1, 0},
               {404505, 1048018, -1, 0}},
    [NPB_A] = {{2112377, 104, 1, 1}, {662041, 17523, 1, 1}, {5336171, 123928, 1, 1}, {3642833, 8288932, -1, 1},
               {4250760, 8388264, -1, 1}},
    [NPB_B] = {{41869, 33422937, -1, 0}, {812306, 10244, 1, 0}, {5102857, 59149, 1, 0}, {18232239, 33135281, -1, 0},
               {26860214, 99, 1, 0}},
};

#endif

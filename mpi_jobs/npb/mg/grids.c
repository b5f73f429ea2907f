/* Who has which points of which level. */
#include "mg.h"

static int rank_at(const int *sides, const int *place, int axis, int distance)
{
    int moved[AXES] = {place[X], place[Y], place[Z]};

    moved[axis] = (place[axis] + distance + sides[axis]) % sides[axis];
    return (moved[Z] * sides[Y] + moved[Y]) * sides[X] + moved[X];
}

/* Along an axis with fewer points than ranks, the last rank of each group of `step` has the group's point. */
static struct level share_out(const int *sides, const int *place, int side)
{
    struct level level = {.is_here = true};

    for (int axis = 0; axis < AXES; axis++) {
        int step = side < sides[axis] ? sides[axis] / side : 1;

        level.missing[axis] = step > 1;
        level.points[axis] = side / sides[axis];
        if (step > 1)
            level.points[axis] = (place[axis] + 1) % step == 0;
        level.extent[axis] = level.points[axis] ? level.points[axis] + 2 : 2;
        level.lower[axis] = rank_at(sides, place, axis, -step);
        level.upper[axis] = rank_at(sides, place, axis, step);
        level.is_here = level.is_here && level.points[axis];
    }
    return level;
}

static size_t largest_face(const struct level *level)
{
    size_t x = (size_t) level->extent[X], y = (size_t) level->extent[Y], z = (size_t) level->extent[Z];
    size_t largest = x * y;

    largest = y * z > largest ? y * z : largest;
    return z * x > largest ? z * x : largest;
}

struct grids mg_grids(int finest)
{
    struct grids grids = {.finest = finest, .sides = {1, 1, 1}};
    int place[AXES], side = 1 << finest, axis = Z;
    size_t doubles, face, line;
    struct level *top;

    npb_limit_ranks(side * side * side);
    for (int left = ranks; left > 1; left /= 2) { /* z first: its faces lie in one piece in memory */
        grids.sides[axis] *= 2;
        axis = axis == X ? Z : axis - 1;
    }
    place[X] = rank % grids.sides[X];
    place[Y] = rank / grids.sides[X] % grids.sides[Y];
    place[Z] = rank / grids.sides[X] / grids.sides[Y];

    grids.levels = allocate((size_t) finest + 1, sizeof *grids.levels);
    for (int k = 1; k <= finest; k++) {
        grids.levels[k] = share_out(grids.sides, place, 1 << k);
        for (int a = 0; a < AXES; a++)
            if (k > 1 && grids.levels[k].points[a] == 1)
                grids.levels[k].shift[a] = grids.levels[k - 1].points[a];
    }
    top = &grids.levels[finest];
    face = largest_face(top);
    line = 2 * (size_t) top->extent[X];
    doubles = mg_volume(top) + 4 * face + 2 * line;
    for (int k = 1; k <= finest; k++)
        doubles += 2 * mg_volume(&grids.levels[k]);
    npb_need_memory(doubles * sizeof(double));

    grids.v = allocate(mg_volume(top), sizeof(double));
    for (int k = 1; k <= finest; k++) {
        grids.levels[k].u = allocate(mg_volume(&grids.levels[k]), sizeof(double));
        grids.levels[k].r = allocate(mg_volume(&grids.levels[k]), sizeof(double));
    }
    for (int i = 0; i < 4; i++)
        grids.buffers[i] = allocate(face, sizeof(double));
    for (int i = 0; i < 2; i++)
        grids.lines[i] = allocate(line, sizeof(double));
    return grids;
}

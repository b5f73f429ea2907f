/* The right-hand side: charges where the largest and smallest of random numbers, one a point, are. */
#include "mg.h"

enum { CHARGES = 10 };

/* This rank's numbers that may be among the ten farthest to one side, farthest first; and where they are. */
struct list {
    double number[CHARGES];
    size_t place[CHARGES];
};

static void insert(struct list *list, double number, size_t place)
{
    int at = CHARGES - 1;

    for (; at > 0 && list->number[at - 1] < number; at--) {
        list->number[at] = list->number[at - 1];
        list->place[at] = list->place[at - 1];
    }
    list->number[at] = number;
    list->place[at] = place;
}

/* The farthest of all ranks' numbers, ten times; whoever has it sets the charge and goes on to its next. */
static void set(struct grids *grids, const struct list *list, double charge)
{
    for (int i = 0, mine = 0; i < CHARGES; i++) {
        struct {
            double number;
            int rank;
        } farthest = {mine < CHARGES ? list->number[mine] : -2, rank};

        npb_allreduce(&farthest, 1, MPI_DOUBLE_INT, MPI_MAXLOC);
        if (farthest.rank == rank)
            grids->v[list->place[mine++]] = charge;
    }
}

void mg_set_charges(struct grids *grids)
{
    const struct level *level = &grids->levels[grids->finest];
    struct list largest, smallest; /* of the latter the negatives */
    int side = 1 << grids->finest, first[AXES];

    first[X] = rank % grids->sides[X] * level->points[X];
    first[Y] = rank / grids->sides[X] % grids->sides[Y] * level->points[Y];
    first[Z] = rank / grids->sides[X] / grids->sides[Y] * level->points[Z];
    for (int i = 0; i < CHARGES; i++)
        largest.number[i] = smallest.number[i] = -2;
    for (int z = 0; z < level->points[Z]; z++)
        for (int y = 0; y < level->points[Y]; y++) {
            uint64_t before = ((uint64_t) (first[Z] + z) * (uint64_t) side + (uint64_t) (first[Y] + y))
                              * (uint64_t) side + (uint64_t) first[X];
            uint64_t seed = npb_skip(NPB_SEED, before);
            size_t line = mg_line(level, z + 1, y + 1) + 1;

            for (int x = 0; x < level->points[X]; x++) {
                double number = npb_random(&seed);

                if (number > largest.number[CHARGES - 1])
                    insert(&largest, number, line + (size_t) x);
                if (-number > smallest.number[CHARGES - 1])
                    insert(&smallest, -number, line + (size_t) x);
            }
        }
    set(grids, &largest, 1);
    set(grids, &smallest, -1);
}

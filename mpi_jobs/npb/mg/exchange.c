/* Ghosts from neighbours, axis by axis, so that edges and corners come with the later ones. */
#include "mg.h"

enum { UPWARDS = 1, DOWNWARDS = 2 }; /* tags; both neighbours may be one rank */

/* A part of a field, from the first place to before the last. */
struct box {
    int first[AXES], last[AXES];
};

static int volume(const struct box *box)
{
    return (box->last[X] - box->first[X]) * (box->last[Y] - box->first[Y]) * (box->last[Z] - box->first[Z]);
}

static void pack(const struct level *level, const double *field, const struct box *box, double *packed)
{
    size_t count = (size_t) (box->last[X] - box->first[X]);

    for (int z = box->first[Z]; z < box->last[Z]; z++)
        for (int y = box->first[Y]; y < box->last[Y]; y++) {
            const double *from = field + mg_line(level, z, y) + box->first[X];

            for (size_t x = 0; x < count; x++)
                packed[x] = from[x];
            packed += count;
        }
}

static void unpack(const struct level *level, double *field, const struct box *box, const double *packed)
{
    size_t count = (size_t) (box->last[X] - box->first[X]);

    for (int z = box->first[Z]; z < box->last[Z]; z++)
        for (int y = box->first[Y]; y < box->last[Y]; y++) {
            double *to = field + mg_line(level, z, y) + box->first[X];

            for (size_t x = 0; x < count; x++)
                to[x] = packed[x];
            packed += count;
        }
}

/* The layer at `place` of an axis, with the ghosts of axes before and without those of axes after it. */
static struct box layer(const struct level *level, int axis, int place)
{
    struct box box;

    for (int a = 0; a < AXES; a++) {
        box.first[a] = a == axis ? place : a > axis;
        box.last[a] = a == axis ? place + 1 : level->extent[a] - (a > axis);
    }
    return box;
}

void mg_exchange(const struct grids *grids, const struct level *level, double *field)
{
    double *const *buffers = grids->buffers;

    for (int axis = 0; axis < AXES; axis++) {
        int last = level->points[axis];
        struct box low_ghost = layer(level, axis, 0), low = layer(level, axis, 1);
        struct box high_ghost = layer(level, axis, last + 1), high = layer(level, axis, last);

        pack(level, field, &high, buffers[0]);
        pack(level, field, &low, buffers[1]);
        if (grids->sides[axis] == 1) {
            unpack(level, field, &low_ghost, buffers[0]);
            unpack(level, field, &high_ghost, buffers[1]);
        } else {
            int count = volume(&low);
            MPI_Request from_lower = npb_irecv(buffers[2], count, MPI_DOUBLE, level->lower[axis], UPWARDS);
            MPI_Request from_upper = npb_irecv(buffers[3], count, MPI_DOUBLE, level->upper[axis], DOWNWARDS);

            npb_send(buffers[0], count, MPI_DOUBLE, level->upper[axis], UPWARDS);
            npb_send(buffers[1], count, MPI_DOUBLE, level->lower[axis], DOWNWARDS);
            npb_wait(&from_lower);
            npb_wait(&from_upper);
            unpack(level, field, &low_ghost, buffers[2]);
            unpack(level, field, &high_ghost, buffers[3]);
        }
    }
}

/* The whole layer at `place` of an axis. */
static struct box whole_layer(const struct level *level, int axis, int place)
{
    struct box box = {.last = {level->extent[X], level->extent[Y], level->extent[Z]}};

    box.first[axis] = place;
    box.last[axis] = place + 1;
    return box;
}

/*
 * A rank that has points along all axes after `axis` takes part: it gives its only layer to both neighbours of the
 * finer level, or takes theirs.
 */
static void extend_along(const struct grids *grids, const struct level *coarse, const struct level *fine, int axis)
{
    struct box low = whole_layer(coarse, axis, 0), high = whole_layer(coarse, axis, 1);
    int count = volume(&low), lower = fine->lower[axis], upper = fine->upper[axis];

    for (int a = axis + 1; a < AXES; a++)
        if (!coarse->points[a])
            return;
    if (coarse->points[axis]) {
        pack(coarse, coarse->u, &high, grids->buffers[0]);
        npb_send(grids->buffers[0], count, MPI_DOUBLE, upper, UPWARDS);
        npb_send(grids->buffers[0], count, MPI_DOUBLE, lower, DOWNWARDS);
    } else {
        MPI_Request from_lower = npb_irecv(grids->buffers[2], count, MPI_DOUBLE, lower, UPWARDS);
        MPI_Request from_upper = npb_irecv(grids->buffers[3], count, MPI_DOUBLE, upper, DOWNWARDS);

        npb_wait(&from_lower);
        npb_wait(&from_upper);
        unpack(coarse, coarse->u, &low, grids->buffers[2]);
        unpack(coarse, coarse->u, &high, grids->buffers[3]);
    }
}

void mg_extend(const struct grids *grids, const struct level *coarse)
{
    for (int axis = 0; axis < AXES; axis++)
        if (coarse->missing[axis])
            extend_along(grids, coarse, coarse + 1, axis);
}

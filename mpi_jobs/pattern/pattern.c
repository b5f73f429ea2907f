/*
 * pattern: the goodput of each pair of ranks when all pairs of a traffic pattern send at once, all the time.
 *
 * A rank sends to each of its partners a stream of messages of one size, of which a few are under way at a time: the
 * next one starts when the partner has begun to receive one of them (MPI_Issend). Every byte of every message is
 * verified. Counted are the messages that have arrived whole in the counted seconds, from the first to the last of
 * them, so that no message counts in part. When the time is over each stream ends with empty messages.
 *
 * "fabric_bytes" is the payload of all messages of a stream, also of those not counted, where its ranks are on
 * different hosts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { MAX_WINDOW = 64 };

struct options {
    struct pairs pairs;
    int bytes;   /* a message */
    int window;  /* messages under way at a time, of each pair */
    int omit;    /* seconds at the start that do not count */
    int seconds; /* seconds that count */
};

static const char usage[] =
    "usage: pattern --pairs FROM-TO,... [--bytes BYTES] [--window N] [--omit SECONDS] [--seconds SECONDS]\n"
    "               [--corrupt RANK]\n"
    "\n"
    "  --pairs    who sends to whom, all at once; a scenario's pattern: gives them\n"
    "  --bytes    bytes a message (default 16384)\n"
    "  --window   messages of a pair that are under way at a time (default 4)\n"
    "  --omit     seconds at the start that do not count (default 1)\n"
    "  --seconds  seconds that count (default 3)\n"
    "  --corrupt  that rank spoils one byte it receives: the job must then fail (tests the verification)\n";

/* This rank's end of one pair. */
struct stream {
    int number;  /* of the pair, in the options; the tag of its messages */
    int partner;
    bool sends;
    int next;    /* turn of the next message */
};

/* One message under way. */
struct slot {
    struct stream *stream;
    unsigned char *buffer;
    int turn;
};

/* What has arrived of each pair; only the receiving rank knows its own. */
struct arrivals {
    double *messages, *first, *last; /* in the counted seconds: how many, when */
    double *all;                     /* from start to end */
};

static MPI_Request begin(struct slot *slot, const struct options *options, bool over)
{
    struct stream *stream = slot->stream;
    int bytes = stream->sends && over ? 0 : options->bytes;
    MPI_Request request;

    slot->turn = stream->next++;
    if (stream->sends) {
        fill(slot->buffer, (size_t) bytes, seed_of(stream->number, rank, stream->partner, bytes, slot->turn));
        MPI_Issend(slot->buffer, bytes, MPI_BYTE, stream->partner, stream->number, MPI_COMM_WORLD, &request);
    } else {
        MPI_Irecv(slot->buffer, bytes, MPI_BYTE, stream->partner, stream->number, MPI_COMM_WORLD, &request);
    }
    return request;
}

/* Takes note of a message that has arrived; false when it was an empty one, which ends the slot. */
static bool arrived(struct slot *slot, MPI_Status *status, double now, const struct options *options,
                    struct arrivals *arrivals)
{
    const struct stream *stream = slot->stream;
    int bytes, number = stream->number;

    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes == 0)
        return false;
    if (bytes != options->bytes)
        fail("Rank %d received %d bytes from rank %d in turn %d of pattern instead of %d.", rank, bytes,
             stream->partner, slot->turn, options->bytes);
    verify(slot->buffer, (size_t) bytes, seed_of(number, stream->partner, rank, bytes, slot->turn), "pattern",
           stream->partner, slot->turn);
    arrivals->all[number]++;
    if (now >= options->omit && now < options->omit + options->seconds) {
        if (arrivals->messages[number]++ == 0)
            arrivals->first[number] = now;
        arrivals->last[number] = now;
    }
    return true;
}

static void exchange(struct stream *streams, int count, const struct options *options, struct arrivals *arrivals)
{
    int length = count * options->window, left = length;
    struct slot *slots = allocate((size_t) length, sizeof *slots);
    MPI_Request *requests = allocate((size_t) length, sizeof(MPI_Request));
    bool *ending = allocate((size_t) length, sizeof *ending);
    double zero;

    for (int i = 0; i < length; i++)
        slots[i] = (struct slot){&streams[i % count], allocate((size_t) options->bytes, 1), 0};
    MPI_Barrier(MPI_COMM_WORLD);
    zero = MPI_Wtime();
    for (int i = 0; i < length; i++)
        requests[i] = begin(&slots[i], options, false);
    while (left > 0) {
        MPI_Status status;
        bool goes_on, over;
        double now;
        int i;

        MPI_Waitany(length, requests, &i, &status);
        now = MPI_Wtime() - zero;
        over = now >= options->omit + options->seconds;
        goes_on = slots[i].stream->sends ? !ending[i] : arrived(&slots[i], &status, now, options, arrivals);
        if (goes_on) {
            ending[i] = slots[i].stream->sends && over;
            requests[i] = begin(&slots[i], options, over);
        } else {
            left--; /* MPI_Waitany has made its request a null one, which it then passes over */
        }
    }
    for (int i = 0; i < length; i++)
        free(slots[i].buffer);
    free(ending);
    free(requests);
    free(slots);
}

/* Gives rank 0 the sums over all ranks, in place. */
static void collect(double *values, int count)
{
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : values, values, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* Prints a line a pair; returns the payload bytes between hosts, valid on rank 0. */
static uint64_t report(const struct options *options, const struct arrivals *arrivals)
{
    uint64_t sum = 0;

    for (int i = 0; i < options->pairs.count; i++) {
        struct pair pair = options->pairs.at[i];
        double counted = arrivals->messages[i] - 1, seconds = arrivals->last[i] - arrivals->first[i];
        uint64_t bytes = apart(pair.from, pair.to) ? (uint64_t) arrivals->all[i] * (uint64_t) options->bytes : 0;

        if (counted < 1 || seconds <= 0)
            fail("Rank %d received %.0f messages from rank %d in %d s, too few for a rate: give more --seconds or fewer"
                 " --bytes.", pair.to, arrivals->messages[i], pair.from, options->seconds);
        printf("{\"test\":\"pattern\",\"from\":%d,\"to\":%d,\"bytes\":%d,\"messages\":%.0f,\"seconds\":%.9f,"
               "\"fabric_bytes\":%" PRIu64 "}\n", pair.from, pair.to, options->bytes, counted, seconds, bytes);
        sum += bytes;
    }
    fflush(stdout);
    return sum;
}

int main(int argc, char **argv)
{
    struct options options = {.bytes = 16384, .window = 4, .omit = 1, .seconds = 3};
    const struct option table[] = {
        {"--pairs", PAIRS, &options.pairs, 0, 0, NULL},
        {"--bytes", NUMBER, &options.bytes, 1, MAX_BYTES, NULL},
        {"--window", NUMBER, &options.window, 1, MAX_WINDOW, NULL},
        {"--omit", NUMBER, &options.omit, 0, 3600, NULL},
        {"--seconds", NUMBER, &options.seconds, 1, 3600, NULL},
        {"--corrupt", NUMBER, &corrupt, 0, MAX_TURNS, NULL},
    };
    uint64_t fabric_bytes = 0;
    struct stream *streams;
    struct arrivals arrivals;
    int count = 0;

    start(&argc, &argv, "pattern");
    read_options(argc, argv, table, sizeof table / sizeof *table, usage);
    if (options.pairs.count == 0)
        refuse("--pairs is required; a scenario's pattern: gives them.");
    check_pairs("--pairs", &options.pairs);

    size_t pairs = (size_t) options.pairs.count, size = sizeof(double);

    arrivals = (struct arrivals){
        allocate(pairs, size), allocate(pairs, size), allocate(pairs, size), allocate(pairs, size),
    };
    streams = allocate(2 * pairs, sizeof *streams);
    for (int i = 0; i < options.pairs.count; i++) {
        struct pair pair = options.pairs.at[i];

        if (rank == pair.from)
            streams[count++] = (struct stream){i, pair.to, true, 0};
        if (rank == pair.to)
            streams[count++] = (struct stream){i, pair.from, false, 0};
    }
    exchange(streams, count, &options, &arrivals);
    collect(arrivals.messages, options.pairs.count);
    collect(arrivals.first, options.pairs.count);
    collect(arrivals.last, options.pairs.count);
    collect(arrivals.all, options.pairs.count);
    if (rank == 0)
        fabric_bytes = report(&options, &arrivals);
    free(streams);
    free(arrivals.messages);
    free(arrivals.first);
    free(arrivals.last);
    free(arrivals.all);
    return finish(fabric_bytes);
}

/*
 * frame_pump: keeps a fixed number of UDP frames of every flow on the way and counts those that arrive.
 *
 * One process holds the sending and receiving sockets of all hosts, opened in their network namespaces, so that the
 * switches and not the programs decide what is carried. A frame that arrives lets the next one of its flow go. Frames
 * carry the time at which they were sent.
 *
 * Usage: frame_pump PAYLOAD WINDOW OMIT SECONDS, and on standard input a flow a line: the pid of a process in the
 * sending host's network namespace, that of one in the receiving host's, and the receiving host's address.
 * Prints one JSON object: frames that arrived in SECONDS, after OMIT seconds; frames given up for lost; percentiles of
 * the time on the way in microseconds; processor seconds of this process.
 */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FLOWS = 4096, BATCH = 64, FIRST_PORT = 20000, LARGEST = 1472, BUCKETS = 200000 };
static const int64_t given_up_ns = 200000000; /* a flow without any arrival for so long has lost its frames */

struct flow {
    int sender, receiver;
    int on_the_way;
    int64_t last_arrival;
};

static struct flow flows[MOST_FLOWS];
static int flow_count, payload, window;
static long long arrived, lost;
static long long histogram[BUCKETS + 1]; /* by microseconds on the way */
static char frame[LARGEST];

static void fail(const char *what)
{
    fprintf(stderr, "frame_pump: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return INT64_C(1000000000) * now.tv_sec + now.tv_nsec;
}

static int socket_in(int pid)
{
    char path[64];
    int namespace, made;

    snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
    namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) != 0)
        fail(path);
    close(namespace);
    made = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        fail("socket");
    return made;
}

static void read_flows(int events)
{
    int from, to;
    char address[64];

    while (scanf("%d %d %63s", &from, &to, address) == 3) {
        struct flow *flow = &flows[flow_count];
        struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t) (FIRST_PORT + flow_count))};
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = flow};

        if (flow_count++ == MOST_FLOWS) {
            fprintf(stderr, "frame_pump: more than %d flows\n", MOST_FLOWS);
            exit(1);
        }
        flow->receiver = socket_in(to);
        if (bind(flow->receiver, (struct sockaddr *) &name, sizeof name) != 0)
            fail("bind");
        flow->sender = socket_in(from);
        if (inet_pton(AF_INET, address, &name.sin_addr) != 1 ||
            connect(flow->sender, (struct sockaddr *) &name, sizeof name) != 0)
            fail(address);
        if (epoll_ctl(events, EPOLL_CTL_ADD, flow->receiver, &event) != 0)
            fail("epoll_ctl");
    }
}

static void send_frames(struct flow *flow, int64_t now)
{
    struct mmsghdr messages[BATCH];
    struct iovec part = {frame, (size_t) payload};
    int count = window - flow->on_the_way;

    count = count > BATCH ? BATCH : count;
    if (count <= 0)
        return;
    memcpy(frame, &now, sizeof now);
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < count; i++) {
        messages[i].msg_hdr.msg_iov = &part;
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    count = sendmmsg(flow->sender, messages, (unsigned) count, 0);
    if (count > 0)
        flow->on_the_way += count;
    else if (errno != EAGAIN && errno != ENOBUFS)
        fail("send");
}

static void receive_frames(struct flow *flow)
{
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    int64_t sent[BATCH], now;
    int count;

    memset(messages, 0, sizeof messages);
    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){&sent[i], sizeof sent[i]}; /* the rest of a frame is not copied */
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    count = recvmmsg(flow->receiver, messages, BATCH, 0, NULL);
    if (count < 0)
        return;
    now = now_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < count; i++) {
        int64_t microseconds = (now - sent[i]) / 1000;

        histogram[microseconds < BUCKETS ? microseconds : BUCKETS]++;
    }
    arrived += count;
    flow->last_arrival = now;
    flow->on_the_way -= count;
    if (flow->on_the_way < 0) /* given up too early */
        flow->on_the_way = 0;
    send_frames(flow, now);
}

static int percentile(double share)
{
    long long left = (long long) (share * (double) arrived);
    int bucket = 0;

    while (bucket < BUCKETS && (left -= histogram[bucket]) >= 0)
        bucket++;
    return bucket;
}

int main(int argc, char **argv)
{
    struct epoll_event ready[BATCH];
    int events = epoll_create1(EPOLL_CLOEXEC);
    int64_t start, counted_from = 0, end, next_look;

    if (argc != 5 || (payload = atoi(argv[1])) < (int) sizeof(int64_t) || payload > LARGEST ||
        (window = atoi(argv[2])) < 1) {
        fprintf(stderr, "usage: frame_pump PAYLOAD WINDOW OMIT SECONDS <flows\n");
        return 2;
    }
    read_flows(events);
    start = now_ns(CLOCK_MONOTONIC);
    counted_from = start + (int64_t) (1e9 * atof(argv[3]));
    end = counted_from + (int64_t) (1e9 * atof(argv[4]));
    next_look = start;
    for (int64_t now = start, counting = 0; now < end; now = now_ns(CLOCK_MONOTONIC)) {
        int count;

        if (!counting && now >= counted_from) {
            counting = 1;
            counted_from = now;
            arrived = lost = 0;
            memset(histogram, 0, sizeof histogram);
        }
        if (now >= next_look) { /* at the start, and where frames were lost */
            for (int i = 0; i < flow_count; i++)
                if (now - flows[i].last_arrival > given_up_ns) {
                    lost += flows[i].on_the_way;
                    flows[i].on_the_way = 0;
                    flows[i].last_arrival = now;
                    send_frames(&flows[i], now);
                }
            next_look = now + given_up_ns / 10;
        }
        count = epoll_wait(events, ready, BATCH, 10);
        for (int i = 0; i < count; i++)
            receive_frames(ready[i].data.ptr);
    }
    printf("{\"arrived\": %lld, \"lost\": %lld, \"seconds\": %.6f, \"median_us\": %d, \"p99_us\": %d, \"cpu\": %.3f}\n",
           arrived, lost, 1e-9 * (double) (now_ns(CLOCK_MONOTONIC) - counted_from), percentile(0.5), percentile(0.99),
           1e-9 * (double) now_ns(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}

/*
 * blocking_poll: an LD_PRELOAD library that lets the ranks of an MPI job sleep while they wait.
 *
 * An MPI progress engine asks for events with a time-out of zero, over and over, because it expects a core of its
 * own. In a lab all ranks share a few cores with the switches that have to carry their messages: ranks that do
 * nothing but wait take the time away from the switches. This library wraps poll() and epoll_wait(), the two calls
 * that libfabric's tcp provider uses. When a thread has asked the same set of descriptors a few times in a row
 * without an event and without computing in between, the next question is answered as if its time-out had been a
 * few milliseconds. The kernel ends such a wait at the first event, so a message is not delayed by it.
 *
 * What a caller can rely on:
 *  - No event is lost or reported twice. Each call is passed on exactly once, to the C library, with the caller's own
 *    arguments but for the time-out; readiness that exists at that moment ends the wait at once.
 *  - Calls with any time-out but zero, and calls without descriptors, are passed on unchanged.
 *  - A call with time-out zero never fails with EINTR; a lengthened one that a signal ends returns 0 instead.
 *    errno is left alone unless the call fails.
 *  - All counting is per thread, in thread-local memory. There are no locks and no threads, and nothing is allocated,
 *    so fork() and signal handlers are safe. A forked child goes on with the settings of its parent.
 *  - A wait for something that is not a descriptor (another thread, shared memory, a timer) is seen up to
 *    TESTBED_POLL_MS late. So use it only where the network is the only transport, as the launcher in
 *    testbed/scenario/workloads/mpi.py sets it up. A thread that asks two sets in turns is never made to wait.
 *  - A program that looks for messages between pieces of work is not held up by waits, as long as the pieces take
 *    more CPU time than TESTBED_POLL_GAP_US.
 *
 * Settings, read once at start; a value that is not a whole number in its range counts as the default:
 *    TESTBED_POLL_SPIN    (0 to 1000000, default 4)    empty answers in a row before a call may wait
 *    TESTBED_POLL_MS      (0 to 1000, default 5)       longest wait in milliseconds; 0 turns the library off
 *    TESTBED_POLL_GAP_US  (1 to 1000000, default 100)  CPU microseconds between two calls from which on the thread
 *                                                      counts as computing. CPU time and not time, because a waiting
 *                                                      rank on a busy machine is off the CPU for long.
 *
 * Measured figures are in mpi_jobs/README.md.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

typedef int poll_function(struct pollfd *, nfds_t, int);
typedef int epoll_wait_function(int, struct epoll_event *, int, int);

static _Atomic(poll_function *) real_poll;
static _Atomic(epoll_wait_function *) real_epoll_wait;

/* Written by `start`, before main; zero means that calls are passed on unchanged, as they are until then. */
static _Atomic int longest_wait_ms;
static int spin_turns;
static int64_t gap_ns;

/* What a thread asked last. Initial-exec: needs no allocation, so that it can be used anywhere. */
static __thread struct {
    const void *set;    /* identifies the descriptors: the array, or NULL for an epoll descriptor */
    uint64_t member;    /* the length of the array, or the epoll descriptor */
    int64_t cpu_ns;     /* CPU time of the thread at that call, or after its wait */
    int empty;          /* empty answers in a row */
} last __attribute__((tls_model("initial-exec")));

static int setting(const char *name, int low, int high, int otherwise)
{
    const char *text = getenv(name);
    char *end;
    long value;
    int error = errno;

    if (!text || *text < '0' || *text > '9')
        return otherwise;
    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || *end || value < low || value > high)
        value = otherwise;
    errno = error;
    return (int) value;
}

/* Looking up twice, should two threads be first, gives the same pointer twice. */
static poll_function *find_poll(void)
{
    poll_function *found = atomic_load_explicit(&real_poll, memory_order_relaxed);

    if (!found) {
        found = (poll_function *) dlsym(RTLD_NEXT, "poll");
        atomic_store_explicit(&real_poll, found, memory_order_relaxed);
    }
    return found;
}

static epoll_wait_function *find_epoll_wait(void)
{
    epoll_wait_function *found = atomic_load_explicit(&real_epoll_wait, memory_order_relaxed);

    if (!found) {
        found = (epoll_wait_function *) dlsym(RTLD_NEXT, "epoll_wait");
        atomic_store_explicit(&real_epoll_wait, found, memory_order_relaxed);
    }
    return found;
}

__attribute__((constructor)) static void start(void)
{
    find_poll();
    find_epoll_wait();
    spin_turns = setting("TESTBED_POLL_SPIN", 0, 1000000, 4);
    gap_ns = INT64_C(1000) * setting("TESTBED_POLL_GAP_US", 1, 1000000, 100);
    atomic_store_explicit(&longest_wait_ms, setting("TESTBED_POLL_MS", 0, 1000, 5), memory_order_release);
}

/* CPU time of the calling thread in nanoseconds, or -1. */
static int64_t cpu_time(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
        return -1;
    return INT64_C(1000000000) * now.tv_sec + now.tv_nsec;
}

/* The time-out in milliseconds to use instead of zero for this thread's question about this set. */
static int time_out(const void *set, uint64_t member, int longest)
{
    int64_t now = cpu_time();
    int64_t used = now - last.cpu_ns;

    last.cpu_ns = now;
    /* The CPU time of a forked child starts again from zero, so it may seem to go back. */
    if (set != last.set || member != last.member || used < 0 || used > gap_ns) {
        last.set = set;
        last.member = member;
        last.empty = 0;
    }
    return last.empty >= spin_turns ? longest : 0;
}

/* Notes the answer to a question that had time-out zero and makes it one that such a question can have. */
static int answer(int count, int timeout, int error_before)
{
    if (count < 0 && errno == EINTR) {
        errno = error_before;
        count = 0;
    }
    if (timeout != 0)
        last.cpu_ns = cpu_time(); /* falling asleep and waking up cost CPU time, but are no computing */
    if (count != 0)
        last.empty = 0;
    else if (last.empty < INT_MAX)
        last.empty++;
    return count;
}

int poll(struct pollfd *descriptors, nfds_t length, int timeout)
{
    poll_function *ask = find_poll();
    int longest = atomic_load_explicit(&longest_wait_ms, memory_order_acquire);
    int error = errno;

    if (timeout != 0 || length == 0 || longest == 0)
        return ask(descriptors, length, timeout);
    timeout = time_out(descriptors, length, longest);
    return answer(ask(descriptors, length, timeout), timeout, error);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    epoll_wait_function *ask = find_epoll_wait();
    int longest = atomic_load_explicit(&longest_wait_ms, memory_order_acquire);
    int error = errno;

    if (timeout != 0 || longest == 0)
        return ask(epoll, events, most, timeout);
    timeout = time_out(NULL, (uint64_t) epoll, longest);
    return answer(ask(epoll, events, most, timeout), timeout, error);
}

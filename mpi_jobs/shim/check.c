/*
 * Checks what blocking_poll.c promises. Runs with the library preloaded, TESTBED_POLL_SPIN=4, TESTBED_POLL_MS=1000
 * and TESTBED_POLL_GAP_US=20000 (`make check` does that). All times are long, so that a busy machine does not matter.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPIN = 4 };
static const double wait_seconds = 1.0; /* TESTBED_POLL_MS */
static const double computing = 0.03;   /* CPU time above TESTBED_POLL_GAP_US */
static const double prompt = 0.8;       /* anything faster has not waited for the time-out */

static int pipe_ends[2], epoll;
static bool use_epoll; /* which of the two calls `ask` makes */

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "check.c:%d: %s: not so: %s\n", __LINE__, use_epoll ? "epoll_wait" : "poll", #condition);  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static double clock_now(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* One question about the reading end; *seconds is how long the answer took. */
static int ask(int timeout, double *seconds)
{
    static __thread struct pollfd one;
    static __thread struct epoll_event event;
    double start = clock_now(CLOCK_MONOTONIC);
    int count;

    one = (struct pollfd){.fd = pipe_ends[0], .events = POLLIN};
    count = use_epoll ? epoll_wait(epoll, &event, 1, timeout) : poll(&one, 1, timeout);
    if (seconds)
        *seconds = clock_now(CLOCK_MONOTONIC) - start;
    if (count > 0)
        REQUIRE(use_epoll ? event.events == EPOLLIN : one.revents == POLLIN);
    return count;
}

static void compute(double seconds)
{
    double start = clock_now(CLOCK_THREAD_CPUTIME_ID);

    while (clock_now(CLOCK_THREAD_CPUTIME_ID) - start < seconds)
        ;
}

/* Leaves the calling thread where its next question waits. */
static void become_idle(void)
{
    double seconds;

    compute(computing); /* begins a new count */
    for (int i = 0; i < SPIN; i++) {
        REQUIRE(ask(0, &seconds) == 0);
        REQUIRE(seconds < prompt);
    }
}

static void *write_soon(void *unused)
{
    usleep(20000);
    REQUIRE(write(pipe_ends[1], "x", 1) == 1);
    return unused;
}

static void on_alarm(int signal)
{
    (void) signal;
}

/* An alarm again and again, until it is 0: a single one may come before the question that it is to end. */
static void alarm_every(int microseconds)
{
    struct timeval time = {.tv_usec = microseconds};
    struct itimerval timer = {.it_interval = time, .it_value = time};

    REQUIRE(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void waits_when_idle(void)
{
    double seconds;

    become_idle();
    errno = EDOM;
    for (int i = 0; i < 2; i++) {
        REQUIRE(ask(0, &seconds) == 0);
        REQUIRE(seconds >= 0.95 * wait_seconds);
    }
    REQUIRE(errno == EDOM);
}

static void wakes_at_an_event(void)
{
    pthread_t writer;
    double seconds;
    char byte;

    become_idle();
    REQUIRE(pthread_create(&writer, NULL, write_soon, NULL) == 0);
    REQUIRE(ask(0, &seconds) == 1);
    REQUIRE(seconds < 0.9 * wait_seconds);
    REQUIRE(pthread_join(writer, NULL) == 0);
    REQUIRE(ask(0, NULL) == 1); /* still there: nothing has been consumed */
    REQUIRE(read(pipe_ends[0], &byte, 1) == 1);
    for (int i = 0; i < SPIN; i++) { /* the event has begun a new count */
        REQUIRE(ask(0, &seconds) == 0);
        REQUIRE(seconds < prompt);
    }
}

static void sees_an_event_that_is_there(void)
{
    double seconds;
    char byte;

    become_idle();
    REQUIRE(write(pipe_ends[1], "x", 1) == 1);
    REQUIRE(ask(0, &seconds) == 1);
    REQUIRE(seconds < prompt);
    REQUIRE(read(pipe_ends[0], &byte, 1) == 1);
}

static void signal_ends_a_wait_as_an_empty_answer(void)
{
    double seconds;

    become_idle();
    alarm_every(20000);
    errno = EDOM;
    REQUIRE(ask(0, &seconds) == 0);
    REQUIRE(seconds < 0.9 * wait_seconds);
    REQUIRE(errno == EDOM);
    alarm_every(0);
}

static void other_time_outs_are_untouched(void)
{
    double seconds;

    become_idle();
    REQUIRE(ask(10, &seconds) == 0);
    REQUIRE(seconds >= 0.009 && seconds < prompt);
    alarm_every(20000);
    errno = 0;
    REQUIRE(ask(-1, NULL) == -1 && errno == EINTR);
    alarm_every(0);
}

static void computing_thread_never_waits(void)
{
    double seconds;

    for (int i = 0; i < 2 * SPIN; i++) {
        compute(computing);
        REQUIRE(ask(0, &seconds) == 0);
        REQUIRE(seconds < prompt);
    }
}

static void two_sets_in_turns_never_wait(void)
{
    struct pollfd other = {.fd = pipe_ends[0], .events = POLLIN};
    double seconds;

    for (int i = 0; i < 2 * SPIN; i++) {
        REQUIRE(ask(0, &seconds) == 0);
        REQUIRE(seconds < prompt);
        REQUIRE(poll(&other, 1, 0) == 0);
    }
}

static void errors_are_reported(void)
{
    struct epoll_event event;
    struct pollfd closed = {.fd = 1000, .events = POLLIN};

    for (int i = 0; i < 2 * SPIN; i++) {
        errno = 0;
        REQUIRE(epoll_wait(1000, &event, 1, 0) == -1 && errno == EBADF);
        REQUIRE(poll(&closed, 1, 0) == 1 && closed.revents == POLLNVAL);
        REQUIRE(poll(NULL, 0, 0) == 0);
    }
}

static void *idle_thread(void *unused)
{
    waits_when_idle();
    return unused;
}

static void threads_count_for_themselves(void)
{
    pthread_t thread;
    double seconds;

    REQUIRE(pthread_create(&thread, NULL, idle_thread, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    compute(computing);
    REQUIRE(ask(0, &seconds) == 0);
    REQUIRE(seconds < prompt);
}

static void a_forked_child_waits_too(void)
{
    int status;
    pid_t child;

    become_idle();
    child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        waits_when_idle();
        wakes_at_an_event();
        _exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* An edge that comes while nobody waits, or during a wait, is reported once and not again. */
static void edges_are_reported_once(void)
{
    int edges = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    char byte;

    REQUIRE(edges >= 0 && epoll_ctl(edges, EPOLL_CTL_ADD, pipe_ends[0], &event) == 0);
    for (int turn = 0; turn < 3; turn++) {
        pthread_t writer;

        for (int i = 0; i < SPIN; i++)
            REQUIRE(epoll_wait(edges, &event, 1, 0) == 0);
        REQUIRE(pthread_create(&writer, NULL, write_soon, NULL) == 0);
        if (turn == 1) /* the edge comes between two questions */
            REQUIRE(pthread_join(writer, NULL) == 0);
        REQUIRE(epoll_wait(edges, &event, 1, 0) == 1);
        REQUIRE(epoll_wait(edges, &event, 1, 0) == 0);
        if (turn != 1)
            REQUIRE(pthread_join(writer, NULL) == 0);
        REQUIRE(read(pipe_ends[0], &byte, 1) == 1);
    }
    close(edges);
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct epoll_event event = {.events = EPOLLIN};

    REQUIRE(pipe(pipe_ends) == 0 && (epoll = epoll_create1(0)) >= 0);
    REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &event) == 0);
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    for (int kind = 0; kind < 2; kind++) {
        use_epoll = kind == 1;
        waits_when_idle();
        wakes_at_an_event();
        sees_an_event_that_is_there();
        signal_ends_a_wait_as_an_empty_answer();
        other_time_outs_are_untouched();
        computing_thread_never_waits();
        two_sets_in_turns_never_wait();
        errors_are_reported();
        threads_count_for_themselves();
        a_forked_child_waits_too();
    }
    edges_are_reported_once();
    puts("blocking_poll keeps its promises");
    return 0;
}

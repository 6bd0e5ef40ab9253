/* SPDX-License-Identifier: MIT
 *
 * test_server_accept.c - more clients than there is room for: all are accepted in the
 * end; what a connection leaves that the system has no room to watch
 */
#include "tests/harness/serve/http/http_server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

static const char health[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

static void assert_served(int fd)
{
    say(fd, health);
    assert_int_equal(status_of(hear(fd, "}\n", 1)), 200);
}

static void open_small_server(int n_connections)
{
    max_connections = n_connections;
    open_server(60, true);
    max_connections = 300;
}

/* One more than there may be is not answered until another one has ended. */
static void too_many_connections(void **state)
{
    struct pollfd third = {.events = POLLIN};
    int fd[2];

    (void)state;
    open_small_server(2);
    for (int i = 0; i < 2; i++) {
        fd[i] = dial();
        assert_served(fd[i]);
    }
    third.fd = dial();
    say(third.fd, health);
    assert_int_equal(poll(&third, 1, 50), 0);
    close(fd[0]);
    assert_int_equal(status_of(hear(third.fd, "}\n", 1)), 200);
    close(fd[1]);
    close(third.fd);
    close_server();
}

/* The limit is reached, and then all go at once: nothing of them is left that could
 * wake the server for the next one. */
static void the_last_ones_leave_together(void **state)
{
    int fd[6];

    (void)state;
    open_small_server(4);
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 4; i++) {
            fd[i] = dial();
            assert_served(fd[i]);
        }
        for (int i = 4; i < 6; i++) /* some wait, and leave before their turn */
            fd[i] = round % 2 ? dial() : -1;
        for (int i = 0; i < 6; i++)
            close(fd[i]);
        assert_int_equal(status_of(get("/health", "")), 200);
    }
    close_server();
}

/* Well-behaved clients, many times as many as there is room for. */
static void many_at_once(void **state)
{
    enum { N = 200 };
    static int fd[N];

    (void)state;
    open_small_server(8);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            fd[i] = dial();
            say(fd[i], post("/v1/completions", JSON,
                            "{\"prompt\": \"a\", \"max_tokens\": 2}"));
        }
        for (int i = 0; i < N; i++) {
            assert_int_equal(status_of(hear(fd[i], NULL, 0)), 200);
            close(fd[i]);
        }
    }
    assert_non_null(strstr(get("/metrics", ""), "slm_http_connections 1\n"));
    close_server();
}

/* ---- no descriptor is left ------------------------------------------------------- */

/* From now on no descriptor can be had; the limit before. */
static struct rlimit take_descriptors(void)
{
    struct rlimit before, none;
    const int next = fcntl(0, F_DUPFD, 3);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    close(next);
    none = before;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    return before;
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A client that comes while there is no descriptor for it. */
static int dial_without_descriptors(struct rlimit *before)
{
    const char *colon = strrchr(f.at.text, ':');
    const struct sockaddr_in a = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(colon + 1)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    *before = take_descriptors();
    assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
    say(fd, health);
    return fd;
}

/* They come back without a connection having ended: there may be none (0), or one that
 * stays. Until then the server waits, and computes nothing. */
static void descriptors_come_back(void **state)
{
    (void)state;
    for (int n_others = 0; n_others < 2; n_others++) {
        struct rlimit before;
        struct pollfd p = {.events = POLLIN};
        int other = -1;
        double cpu;

        open_server(60, true);
        if (n_others) {
            other = dial();
            assert_served(other);
        }
        p.fd = dial_without_descriptors(&before);
        cpu = cpu_s();
        assert_int_equal(poll(&p, 1, 500), 0);
        assert_true(cpu_s() - cpu < 0.25);
        setrlimit(RLIMIT_NOFILE, &before);
        assert_int_equal(status_of(hear(p.fd, "}\n", 1)), 200);
        close(p.fd);
        if (n_others)
            close(other);
        close_server();
    }
}

/* The one that comes back is that of a connection. */
static void a_connection_gives_its_descriptor(void **state)
{
    struct rlimit before;
    int other, waits;

    (void)state;
    open_server(60, true);
    other = dial();
    assert_served(other);
    waits = dial_without_descriptors(&before);
    shutdown(other, SHUT_RDWR);
    assert_int_equal(status_of(hear(waits, "}\n", 1)), 200);
    setrlimit(RLIMIT_NOFILE, &before);
    close(other);
    close(waits);
    close_server();
}

/* ---- no connection can be watched ------------------------------------------------ */

/* libmicrohttpd takes a connection that was suspended into its set again, which is
 * edge-triggered, when it has to wait for it. */
static atomic_bool fails_to_watch;
static atomic_int n_failed, suspended_fd = -1;

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    if (fails_to_watch && op == EPOLL_CTL_DEL)
        suspended_fd = fd;
    if (fails_to_watch && op == EPOLL_CTL_ADD && fd == suspended_fd &&
        event->events & EPOLLET) {
        n_failed++;
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

/* libmicrohttpd closes such a connection without completing its request: a stream that
 * its client reads slowly. The completion ends, and nothing is left. */
static void a_stream_that_cannot_be_watched(void **state)
{
    const int small = 4096;
    int fd;

    (void)state;
    open_server(60, true);
    setsockopt(f.at.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small); /* inherited */
    fake.fill = 4000;
    fake.pace_us = 2000;
    fails_to_watch = true;
    fd = dial();
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    say(fd, post("/v1/completions", JSON,
                 "{\"prompt\": \"a\", \"max_tokens\": 1000000, \"stream\": true}"));
    hear(fd, "xxxx", 1);
    wait_alive(0);
    fails_to_watch = false;
    assert_int_equal(n_failed, 1);
    assert_int_equal(metric("\nslm_http_requests "), 1); /* this one */
    assert_int_equal(metric("\nslm_stream_bytes "), 0);
    assert_int_equal(metric("\nslm_clients_gone_total "), 1);
    assert_int_equal(metric("\nslm_clients_cut_total "), 0);
    close(fd);
    close_server();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_connections),
        cmocka_unit_test(the_last_ones_leave_together),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(descriptors_come_back),
        cmocka_unit_test(a_connection_gives_its_descriptor),
        cmocka_unit_test(a_stream_that_cannot_be_watched),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

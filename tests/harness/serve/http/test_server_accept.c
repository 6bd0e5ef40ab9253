/* SPDX-License-Identifier: MIT
 *
 * test_server_accept.c - more clients than there is room for: all are accepted in the
 * end
 */
#include "tests/harness/serve/http/http_server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

static const char health[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

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
        say(fd[i], health);
        assert_int_equal(status_of(hear(fd[i], "}\n", 1)), 200);
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
            say(fd[i], health);
            assert_int_equal(status_of(hear(fd[i], "}\n", 1)), 200);
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
            say(other, health);
            assert_int_equal(status_of(hear(other, "}\n", 1)), 200);
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
    say(other, health);
    assert_int_equal(status_of(hear(other, "}\n", 1)), 200);
    waits = dial_without_descriptors(&before);
    shutdown(other, SHUT_RDWR);
    assert_int_equal(status_of(hear(waits, "}\n", 1)), 200);
    setrlimit(RLIMIT_NOFILE, &before);
    close(other);
    close(waits);
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
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

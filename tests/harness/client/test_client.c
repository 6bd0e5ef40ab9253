/* SPDX-License-Identifier: MIT
 *
 * test_client.c - requests to a server that does what a test wants: connections that
 * end under a request, and headers without an end
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/client/client.h"

#define HEAD "HTTP/1.1 200 OK\r\n"
#define EVENTS \
    HEAD "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define WHOLE                                                                          \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 83\r\n\r\n" \
    "data: "                                                                           \
    "{\"choices\":[{\"index\":0,\"text\":\"w\",\"finish_reason\":\"length\"}]}\n\n"    \
    "data: [DONE]\n\n"

static struct {
    int fd;
    char url[64];
    pthread_mutex_t mutex; /* of the three that follow, which tests change */
    int drops_every;    /* of the requests that come, this one gets no reply; 0: none */
    const char *begin;  /* of each reply; NULL: WHOLE */
    const char *repeat; /* without an end behind it, if not NULL */
    atomic_int n_read, n_dropped;
    atomic_long n_sent;
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void set_server(int drops_every, const char *begin, const char *repeat)
{
    pthread_mutex_lock(&server.mutex);
    server.drops_every = drops_every;
    server.begin = begin;
    server.repeat = repeat;
    pthread_mutex_unlock(&server.mutex);
}

/* A request is one read to its last byte, '}'. */
static bool read_request(int fd)
{
    char text[4096];
    size_t len = 0;

    while (len < sizeof text) {
        const ssize_t n = recv(fd, text + len, sizeof text - len, 0);

        if (n <= 0)
            return false;
        len += (size_t)n;
        if (text[len - 1] == '}' || !memcmp(text, "GET", 3))
            return true;
    }
    return false;
}

static void *serve_one(void *arg)
{
    const int fd = (int)(intptr_t)arg;

    while (read_request(fd)) {
        const int n = ++server.n_read;
        const char *reply, *repeat;
        int drops_every;

        pthread_mutex_lock(&server.mutex);
        reply = server.begin ? server.begin : WHOLE;
        repeat = server.repeat;
        drops_every = server.drops_every;
        pthread_mutex_unlock(&server.mutex);
        if (drops_every && n % drops_every == 0) {
            server.n_dropped++;
            break;
        }
        send(fd, reply, strlen(reply), MSG_NOSIGNAL);
        while (repeat && send(fd, repeat, strlen(repeat), MSG_NOSIGNAL) > 0)
            server.n_sent += (long)strlen(repeat);
    }
    close(fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    int fd;

    (void)arg;
    while ((fd = accept(server.fd, NULL, NULL)) >= 0) {
        pthread_t t;

        pthread_create(&t, NULL, serve_one, (void *)(intptr_t)fd);
        pthread_detach(t);
    }
    return NULL;
}

static int open_server(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    pthread_t t;

    (void)state;
    server.fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(server.fd, 16), 0);
    getsockname(server.fd, (struct sockaddr *)&a, &len);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d/v1/completions",
             ntohs(a.sin_port));
    pthread_create(&t, NULL, accept_all, NULL);
    pthread_detach(t);
    return 0;
}

static enum status body(void *arg, size_t user, struct load_record *r, char **text,
                        struct err *err)
{
    (void)arg, (void)user, (void)err;
    *text = strdup("{\"prompt\":\"a\"}");
    r->n_requested = 1;
    return ST_OK;
}

static void run(struct load_result *r, int n_users, size_t n)
{
    const struct load_target target = {.url = server.url, .silence_s = 20};
    const struct load_work work = {.n_users = n_users, .n_wanted = n, .body = body};
    struct err err = ERR_INIT;

    server.n_read = server.n_dropped = 0;
    server.n_sent = 0;
    assert_int_equal(load_client_run(r, &target, &work, &err), ST_OK);
    assert_int_equal(r->n, n);
}

static size_t n_ended(const struct load_result *r, enum load_end end, const char *why)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += r->records[i].end == end && strstr(r->records[i].why, why) != NULL;
    return n;
}

static void a_dropped_request_has_failed(void **state)
{
    struct load_result r;

    (void)state;
    if (load_client_check(&(struct err)ERR_INIT))
        skip();
    set_server(0, NULL, NULL);
    run(&r, 1, 6);
    assert_int_equal(n_ended(&r, LOAD_OK, ""), 6);
    load_result_free(&r);
    set_server(4, NULL, NULL);
    run(&r, 1, 10);
    assert_int_equal(server.n_read, 10);
    assert_int_equal(server.n_dropped, 2);
    assert_int_equal(n_ended(&r, LOAD_OK, ""), 8);
    assert_int_equal(n_ended(&r, LOAD_FAILED, "without an answer"), 2);
    load_result_free(&r);
    set_server(1, NULL, NULL); /* also on connections that are new */
    run(&r, 1, 3);
    assert_int_equal(n_ended(&r, LOAD_FAILED, ""), 3);
    load_result_free(&r);
}

static void headers_have_an_end(void **state)
{
    static const struct {
        const char *begin, *repeat;
    } cases[] = {
        {EVENTS "0\r\n", "X: a\r\n"},                        /* trailers */
        {HEAD, "X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"},  /* headers */
        {"", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"}, /* interim replies */
        {"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"},
    };

    (void)state;
    if (load_client_check(&(struct err)ERR_INIT))
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct load_result r;
        struct err err = ERR_INIT;
        char text[100];
        int status;

        set_server(0, cases[i].begin, cases[i].repeat);
        run(&r, 1, 1);
        if (r.records[0].end != LOAD_FAILED ||
            !strstr(r.records[0].why, "header")) /* our words, or libcurl's own limit */
            fail_msg("%zu: %d %s", i, (int)r.records[0].end, r.records[0].why);
        assert_true(server.n_sent < 64 << 20); /* what sockets hold besides */
        load_result_free(&r);
        assert_int_equal(
            load_client_get(server.url, NULL, 20, &status, text, sizeof text, &err),
            ST_OK);
    }
}

/* Times of a trace may be ages apart: more nanoseconds than 64 bits hold are no reason
 * to send at once. */
static void what_is_due_in_ages_is_not_sent(void **state)
{
    const double at_s[] = {0, 0.01, 2e10, 3e15};
    const struct load_target target = {.url = server.url, .silence_s = 20};
    const struct load_work work = {
        .at_s = at_s, .n_at = 4, .n_wanted = 2, .body = body};
    struct load_result r;
    struct err err = ERR_INIT;

    (void)state;
    if (load_client_check(&(struct err)ERR_INIT))
        skip();
    set_server(0, NULL, NULL);
    assert_int_equal(load_client_run(&r, &target, &work, &err), ST_OK);
    assert_int_equal(r.n_started, 2);
    load_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dropped_request_has_failed),
        cmocka_unit_test(headers_have_an_end),
        cmocka_unit_test(what_is_due_in_ages_is_not_sent)};

    return cmocka_run_group_tests(tests, open_server, NULL);
}

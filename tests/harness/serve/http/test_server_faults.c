/* SPDX-License-Identifier: MIT
 *
 * test_server_faults.c - clients that do not behave
 */
#include "tests/harness/serve/http/http_server.h"

#include <malloc.h>

static void bodies_too_large(void **state)
{
    static char body[150000];
    char text[400];
    int fd;

    (void)state;
    open_server(60, true);
    memset(body, 'a', sizeof body - 1);
    fd = dial(); /* all of it is sent, and then read why */
    snprintf(text, sizeof text,
             "POST /v1/completions HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: "
             "%zu\r\n" JSON "\r\n",
             sizeof body - 1);
    say(fd, text);
    say(fd, body);
    assert_refused(hear(fd, "}}\n", 1), 413, "larger than 100000");
    say(fd, "GET /health HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n"); /* which goes on */
    assert_int_equal(status_of(hear(fd, "}\n", 1)), 200);
    close(fd);
    fd = dial(); /* in chunks, without a length */
    say(fd, "POST /v1/completions HTTP/1.1\r\nHost: [::1]\r\n" JSON
            "Transfer-Encoding: chunked\r\n\r\n");
    snprintf(text, sizeof text, "%zx\r\n", sizeof body - 1);
    say(fd, text);
    say(fd, body);
    say(fd, "\r\n0\r\n\r\n");
    assert_refused(hear(fd, "}}\n", 1), 413, "larger than 100000");
    close(fd);
    fd = dial(); /* before it is sent */
    say(fd, "POST /v1/completions HTTP/1.1\r\nHost: a.b\r\nContent-Length: "
            "20000000\r\n" JSON "Expect: 100-continue\r\n\r\n");
    assert_refused(hear(fd, "}}\n", 1), 403, "a.b");
    close(fd);
    fd = dial();
    memset(body, 'h', 100000);
    body[100000] = '\0';
    say(fd, "GET /health HTTP/1.1\r\nX: ");
    send(fd, body, 100000, MSG_NOSIGNAL);
    assert_int_equal(status_of(hear(fd, "\r\n\r\n", 1)), 431);
    close(fd);
    close_server();
}

/* A prompt of which no more need be known than its length: it is not cut into tokens,
 * for which all others would wait. */
static void prompts_that_never_fit(void **state)
{
    static char text[16 * 256 + 2], body[2 * sizeof text];

    (void)state;
    open_server(60, true); /* 256 positions, and tokens of up to 16 bytes */
    memset(text, 'a', sizeof text - 1);
    snprintf(body, sizeof body, "{\"prompt\": [\"a\", \"%s\"]}", text);
    assert_refused(complete(body), 400, "has 4097 bytes");
    assert_non_null(strstr(complete(body), "context_length_exceeded"));
    text[sizeof text - 2] = '\0';
    snprintf(body, sizeof body, "{\"prompt\": \"%s\"}", text);
    assert_refused(complete(body), 400, "tokens");
    snprintf(body, sizeof body,
             "{\"messages\": [{\"role\": \"system\", \"content\": \"b\"}, {\"role\": "
             "\"user\", \"content\": \"%s\"}]}",
             text);
    assert_refused(chat(body), 400, "has 4097 bytes");
    close_server();
}

#define receive hear

static void send_text(int fd, const char *text)
{
    const size_t n = strlen(text);

    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

static const char *reply_to(const char *path, const char *body)
{
    const int fd = dial();
    const char *reply;

    send_text(fd, post(path, JSON, body));
    reply = receive(fd, NULL, 0);
    close(fd);
    return reply;
}

/* "has at least N tokens" */
static int tokens_of(const char *reply)
{
    static const char words[] = "has at least ";
    const char *at = strstr(reply, words);

    assert_int_equal(status_of(reply), 400);
    if (!at)
        fail_msg("%s", reply);
    return atoi(at + strlen(words));
}

/* A prompt may have fewer bytes than the context has room for, and many times as many
 * tokens: it is encoded up to the context, and no further. */
static void prompts_are_left_at_the_context(void **state)
{
    enum { N = 16 * 256, SOON = 16 };
    static char text[N + 1], body[2 * N];

    (void)state;
    for (size_t i = 0; i < N; i++)
        text[i] = "Zq, xv; "[i % 8];
    open_server(60, true);
    snprintf(body, sizeof body, "{\"prompt\": [\"a\", \"%s\"]}", text);
    assert_in_range(tokens_of(complete(body)), 256, 256 + SOON);
    assert_non_null(strstr(complete(body), "context_length_exceeded"));
    text[N - 100] = '\0';
    snprintf(body, sizeof body,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}]}", text);
    assert_in_range(tokens_of(chat(body)), 256, 256 + SOON);
    assert_in_range(tokens_of(reply_to("/v1/messages/count_tokens", body)), 256,
                    256 + SOON);
    close_server();
}

static void wait_for_request(int n)
{
    const uint64_t begin = clock_ns();

    while (fake.n_requested < n && clock_ns() - begin < WAIT_S * UINT64_C(1000000000))
        usleep(1000);
    assert_int_equal(fake.n_requested, n);
}

/* Requests whose making takes long (a schema, a prompt to be cut into tokens) are made
 * one by one: in between others' texts go on, and another client's request is next. */
static void clients_take_turns(void **state)
{
    enum { N = 7, THIRD = 3 };
    const char *request = large_request(1000);
    const size_t len = strlen(request);
    const uint64_t begin = clock_ns();
    char word[32];
    int stream, fd[N];

    (void)state;
    open_server(60, true);
    fake.most = 100;
    fake.pace_us = 5000;
    fake.may_submit = 1;
    stream = dial();
    say(stream, post("/v1/completions", JSON,
                     "{\"prompt\": \"a\", \"max_tokens\": 1000000, \"stream\": true}"));
    hear(stream, "w0", 1);
    request = large_request(1000);
    for (int i = 0; i < N; i++) {
        fd[i] = dial_from(i == THIRD ? "127.0.0.2" : "127.0.0.1");
        assert_int_equal(send(fd[i], request, len - 1, MSG_NOSIGNAL), len - 1);
    }
    while (metric("\nslm_http_body_bytes ") != N * 999 &&
           clock_ns() - begin < WAIT_S * UINT64_C(1000000000))
        usleep(1000);
    say(fd[0], "}");
    wait_for_request(2);
    for (int i = 1; i < N; i++)
        say(fd[i], "}");
    snprintf(word, sizeof word, "w%d ", fake_n_made() + 1);
    while (fake_n_made() < atoi(word + 1) + 2)
        usleep(1000);
    fake.may_submit = 3;
    wait_for_request(4);
    assert_true(fake.askers[2] != fake.askers[1]);
    assert_true(fake.askers[3] == fake.askers[1]);
    assert_non_null(strstr(hear(stream, word, 1), word));
    fake.may_submit = 100;
    wait_alive(N + 1);
    close(stream);
    for (int i = 0; i < N; i++)
        close(fd[i]);
    wait_alive(0);
    close_server();
}

/* One that leaves before its turn comes is not asked for. */
static void clients_that_leave_before_their_turn(void **state)
{
    int first, second, third;

    (void)state;
    open_server(60, true);
    fake.may_submit = 0;
    first = dial();
    say(first, post("/v1/completions", JSON, "{\"prompt\": \"a\", \"n\": 2}"));
    wait_for_request(1);
    second = dial();
    say(second, post("/v1/completions", JSON, "{\"prompt\": \"b\"}"));
    third = dial();
    say(third, post("/v1/completions", JSON, "{\"prompt\": \"c\", \"n\": 3}"));
    close(second);
    fake.may_submit = 100;
    assert_int_equal(status_of(hear(first, "}}}", 1)), 200);
    assert_int_equal(status_of(hear(third, "}}}", 1)), 200);
    close(first);
    close(third);
    wait_alive(0);
    assert_non_null(strstr(get("/metrics", ""), "slm_http_requests 1\n"));
    close_server();
}

/* Bytes that are in use; 0: not known here. */
static size_t memory_in_use(void)
{
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
#endif
#endif
    return 0;
}

/* Of a request that was read its tokens are kept, and not all that came with it. */
static void requests_that_wait_are_small(void **state)
{
    enum { N = 20, BYTES = 95000 };
    size_t before, after;
    int fd[N];

    (void)state;
    open_server(60, true);
    fake.most = 100;
    fake.pace_us = 10000;
    complete("{\"prompt\": \"a\"}");
    before = memory_in_use();
    for (int i = 0; i < N; i++) { /* of as many bodies at once some would be refused */
        fd[i] = dial();
        say(fd[i], large_request(BYTES));
        wait_alive(i + 1);
    }
    after = memory_in_use(); /* libmicrohttpd has 32 KiB of each connection */
    if (after > before + N * 64000)
        fail_msg("%d requests of %d bytes take %zu bytes", N, BYTES, after - before);
    for (int i = 0; i < N; i++)
        close(fd[i]);
    wait_alive(0);
    close_server();
}

static void clients_that_vanish(void **state)
{
    static const char *const bodies[] = {
        "{\"prompt\": \"a\", \"max_tokens\": 1000000, \"stream\": true}",
        "{\"prompt\": \"a\", \"max_tokens\": 1000000, \"n\": 2}"};
    int fd[40];

    (void)state;
    open_server(60, true);
    fake.most = 1000;
    for (int i = 0; i < 40; i++) {
        fd[i] = dial();
        say(fd[i], post("/v1/completions", JSON, bodies[i % 2]));
    }
    wait_alive(60);
    for (int i = 0; i < 40; i++) {
        struct linger reset = {1, 0};

        if (i % 3 == 0)
            setsockopt(fd[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd[i]);
    }
    wait_alive(0);
    assert_non_null(strstr(get("/metrics", ""), "slm_http_requests 1\n"));
    close_server();
}

static void slow_readers(void **state)
{
    const int small = 4096;
    int fd;

    (void)state;
    open_server(60, true);
    fake.pace_us = 50;
    fake.fill = 20000;
    fd = dial();
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    say(fd, post("/v1/completions", JSON,
                 "{\"prompt\": \"a\", \"max_tokens\": 1000000, \"stream\": true}"));
    hear(fd, "xxxx", 1); /* it has begun, and then nobody reads */
    wait_alive(0);
    fake.fill = 0;
    fake.pace_us = 200;
    assert_int_equal(status_of(complete("{\"prompt\": \"a\"}")), 200);
    assert_non_null(strstr(get("/metrics", ""), "slm_clients_cut_total 1\n"));
    close(fd);
    close_server();
}

/* A browser needs permission before it has a key. */
static void a_body_of_nobody_is_dropped(void **state)
{
    enum { BYTES = 90000 };
    static char body[BYTES];
    int fd;

    (void)state;
    cors = "*";
    open_server(60, true);
    fd = dial();
    send_text(fd,
              "OPTIONS /tokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
              "Content-Length: 90000\r\n\r\n");
    memset(body, 'x', sizeof body);
    assert_int_equal(send(fd, body, BYTES - 1, MSG_NOSIGNAL), BYTES - 1);
    wait_metric("\nslm_http_requests ", 2);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(metric("\nslm_http_body_bytes "), 0);
        usleep(1000);
    }
    send_text(fd, "x");
    assert_int_equal(status_of(receive(fd, NULL, 0)), 204);
    close(fd);
    close_server();
    cors = NULL;
}

/* In the form of its API, as far as the path has come. */
static void late_in_forms(void)
{
    static const struct {
        const char *begin, *form;
    } cases[] = {
        {"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n" JSON
         "\r\n{",
         "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
         "\"message\":"
         "\"the request did not come in time\"}}\n"},
        {"POST /v1/messages/count_tokens?beta=true HTTP/1.1\r\nHost: loc",
         "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
         "\"message\":"
         "\"the request did not come in time\"}}\n"},
        {"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n" JSON
         "\r\n{",
         "{\"error\":\"the request did not come in time\"}\n"},
        {"POST /v1/responses HTTP/1.1\r\nHost: loc",
         "{\"error\":{\"message\":\"the request did not come in time\",\"type\":"
         "\"invalid_request_error\",\"param\":null,\"code\":\"timeout\"}}\n"},
    };
    enum { N = sizeof cases / sizeof cases[0] };
    int fd[N];

    for (int i = 0; i < N; i++) {
        fd[i] = dial();
        send_text(fd[i], cases[i].begin);
    }
    for (int i = 0; i < N; i++) {
        const char *reply = receive(fd[i], NULL, 0);

        if (status_of(reply) != 408 || !strstr(reply, cases[i].form))
            fail_msg("%s: %s", cases[i].begin, reply);
        close(fd[i]);
    }
}

static void requests_that_do_not_come(void **state)
{
    int body, header, idle;

    (void)state;
    open_server(1, true);
    body = dial();
    header = dial();
    idle = dial();
    say(body, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
              "10\r\n" JSON "\r\n{");
    say(header, "GET /health HTTP/1.1\r\nHost: loc");
    assert_refused(hear(body, NULL, 0), 408, "in time");
    assert_int_equal(status_of(hear(header, NULL, 0)), 408);
    assert_string_equal(hear(idle, NULL, 0), "");
    close(body);
    close(header);
    close(idle);
    late_in_forms();
    close_server();
}

static void pipelined(void **state)
{
    const int fd = (open_server(60, true), dial());
    char *reply;

    (void)state;
    say(fd, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
            "34\r\n" JSON "\r\n{\"prompt\": \"a\", \"max_tokens\": 40 }"
            "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
            "34\r\n" JSON "\r\n{\"prompt\": \"a\", \"max_tokens\": 30 }"
            "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reply = hear(fd, "HTTP/1.1 200", 4);
    assert_non_null(strstr(reply, "w39 "));
    reply = strstr(reply, "\"object\":\"list\"");
    assert_non_null(reply);
    assert_non_null(strstr(reply, "w29 "));
    close(fd);
    close_server();
}

/* What a proxy may read in another way than this server: one reply, and the end. */
static void ambiguous_requests(void **state)
{
#define GET_IT  "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define POST_IT "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" JSON
    static const char *const requests[] = {
        POST_IT "Content-Length: 15\r\nContent-Length: 69\r\n\r\n{\"prompt\": \"a\"}",
        POST_IT "Content-Length: 15\r\nContent-Length: 15\r\n\r\n{\"prompt\": \"a\"}",
        POST_IT "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                "f\r\n{\"prompt\": \"a\"}\r\n0\r\n\r\n",
        POST_IT "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
                "f\r\n{\"prompt\": \"a\"}\r\n0\r\n\r\n",
        POST_IT "Transfer-Encoding: gzip, chunked\r\n\r\n"
                "f\r\n{\"prompt\": \"a\"}\r\n0\r\n\r\n",
        POST_IT "Transfer-Encoding : chunked\r\nContent-Length: 15\r\n\r\n"
                "{\"prompt\": \"a\"}",
        POST_IT "Content-Length : 53\r\n\r\n",
        POST_IT "Content-Length\t: 53\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        "GET /health%00x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\n(x): y\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX: y\rContent-Length: 53\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX: y\x7f\r\n\r\n",
        "GET /health HTTP/1.1\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\n" JSON
        "Content-Length: 15\r\n\r\n{\"prompt\": \"a\"}",
        "GET /health x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    };

    (void)state;
    open_server(60, true);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        const int fd = dial();
        char text[1000];
        const char *reply;

        snprintf(text, sizeof text, "%s%s", requests[i], GET_IT);
        send_text(fd, text);
        reply = hear(fd, NULL, 0);
        if (status_of(reply) != 400 || strstr(reply + 1, "HTTP/1.1"))
            fail_msg("%s: %s", text, reply);
        close(fd);
    }
    assert_int_equal(status_of(get("/health", "")), 200);
    close_server();
}

/* What libmicrohttpd does not show of them, a proxy in front may see: nothing behind
 * them is a request. */
static void nothing_follows_what_is_not_seen(void **state)
{
#define HIDDEN(header) \
    "GET /health HTTP/1.1\r\nHost: localhost\r\n" header "\r\n" GET_IT
#define CHUNKED(body) \
    POST_IT "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" body GET_IT
    static const char *const requests[] = {
        HIDDEN("Content-Length:\r\n 48\r\n"),
        HIDDEN("X: y\r\nContent-Length: \r\n\t48\r\n"),
        HIDDEN("X: y\nContent-Length: 0\n"),
        HIDDEN("X: y\r\n\n"),
        HIDDEN("X:y\r\n"),
        CHUNKED("f;a\n{\"prompt\": \"a\"}\r\n0\r\n\r\n"),
        CHUNKED("f\n{\"prompt\": \"a\"}\n0\n\n"),
        CHUNKED("f;a=\"\r\n{\"prompt\": \"a\"}\r\n0\r\n\r\n"),
    };
    static const char zero[] =
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX: y\0z\r\n\r\n" GET_IT;

    (void)state;
    open_server(60, true);
    for (size_t i = 0; i <= sizeof requests / sizeof *requests; i++) {
        const bool last = i == sizeof requests / sizeof *requests;
        const char *text = last ? zero : requests[i], *reply;
        const size_t n = last ? sizeof zero - 1 : strlen(text);
        const int fd = dial();

        assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
        reply = receive(fd, NULL, 0);
        if (!status_of(reply) || strstr(reply + 1, "HTTP/1.1"))
            fail_msg("%s: %s", text, reply);
        close(fd);
    }
    close_server();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_too_large),
        cmocka_unit_test(prompts_that_never_fit),
        cmocka_unit_test(prompts_are_left_at_the_context),
        cmocka_unit_test(clients_take_turns),
        cmocka_unit_test(clients_that_leave_before_their_turn),
        cmocka_unit_test(requests_that_wait_are_small),
        cmocka_unit_test(clients_that_vanish),
        cmocka_unit_test(slow_readers),
        cmocka_unit_test(a_body_of_nobody_is_dropped),
        cmocka_unit_test(requests_that_do_not_come),
        cmocka_unit_test(pipelined),
        cmocka_unit_test(ambiguous_requests),
        cmocka_unit_test(nothing_follows_what_is_not_seen),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: MIT
 *
 * test_server_memory.c - what all requests together may take
 */
#include "tests/harness/serve/http/http_server.h"

static void send_text(int fd, const char *text)
{
    const size_t n = strlen(text);

    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* The whole reply to a request of its own connection. */
static const char *reply_to(const char *text)
{
    const int fd = dial();
    const char *reply;

    send_text(fd, text);
    reply = hear(fd, NULL, 0);
    close(fd);
    return reply;
}

/* A reply has begun; nothing of it is read. */
static void wait_for_byte(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&p, 1, WAIT_S * 1000), 1);
}

/* Tokens are many times as large as their text. Who does not take them is no reason to
 * keep more and more of them. */
static void texts_that_nobody_takes(void **state)
{
    enum { N = 24, BYTES = 262000 };
    static const char bytes[] = "\nslm_answer_bytes ";
    static char request[BYTES + 256];
    const int small = 4096;
    int fd[N], n;

    (void)state;
    max_body = BYTES + 100;
    open_server(60, true);
    n = snprintf(request, sizeof request,
                 "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "Content-Length: %d\r\n\r\n{\"with_pieces\":true,\"content\":\"",
                 BYTES + 33);
    memset(request + n, 'x', BYTES);
    strcpy(request + n + BYTES, "\"}");
    for (int i = 0; i < N; i++) {
        fd[i] = dial();
        setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        send_text(fd[i], request);
        wait_for_byte(fd[i]);
    }
    assert_refused(reply_to(request), 503, "too much memory");
    assert_true(metric(bytes) > 100 << 20);
    assert_true(metric(bytes) <= 128 << 20);
    for (int i = 0; i < N; i++)
        close(fd[i]);
    wait_metric(bytes, 0);
    assert_int_equal(status_of(reply_to(request)), 200);
    close_server();
    max_body = 100000;
}

/* An answer counts as what it is while it is sent: its JSON. */
static void answers_count_until_they_are_sent(void **state)
{
    enum { LETTERS = 20000, TOKENS = 250 };
    static const char bytes[] = "\nslm_answer_bytes ";
    int fd;

    (void)state;
    open_server(60, true);
    fake.fill = LETTERS;
    fake.letter = '\x01'; /* six letters of JSON */
    fd = dial();
    send_text(
        fd, post("/v1/completions", JSON, "{\"prompt\": \"a\", \"max_tokens\": 250}"));
    wait_for_byte(fd);
    assert_true(metric(bytes) >= (long)LETTERS * TOKENS * 6);
    close(fd);
    wait_metric(bytes, 0);
    fake.fill = fake.letter = 0;
    close_server();
}

/* Each of them is small enough; all together would take too much memory. */
static void many_large_bodies(void **state)
{
    enum { N = REQUEST_MAX_BODIES, BYTES = 95000 };
    static const char bytes[] = "\nslm_http_body_bytes ";
    const char *request = large_request(BYTES);
    const size_t len = strlen(request);
    int fd[N];
    const char *reply;

    (void)state;
    open_server(60, true);
    fake.most = 100;
    for (int i = 0; i < N; i++) {
        fd[i] = dial();
        assert_int_equal(send(fd[i], request, len - 1, MSG_NOSIGNAL), len - 1);
    }
    wait_metric(bytes, N * (BYTES - 1));
    reply = reply_to(large_request(BYTES));
    assert_refused(reply, 503, "large bodies");
    assert_non_null(strstr(reply, "Retry-After: 1\r\n"));
    assert_int_equal(status_of(complete("{\"prompt\": \"a\"}")), 200);
    for (int i = 0; i < N; i++)
        send_text(fd[i], "}");
    wait_alive(N);
    wait_metric(bytes, 0); /* a body goes after its completion has begun */
    for (int i = 0; i < N; i++)
        close(fd[i]);
    wait_alive(0);
    close_server();
}

/* ---- a machine with little memory ------------------------------------------------ */

#define MIB (1 << 20)

/* An eighth of what requests may take elsewhere. */
static void open_small(void)
{
    const struct request_memory all = request_memory_within(max_body, 0);

    request_bytes = request_memory_bytes(&all) / 8;
    open_server(60, true);
}

static void close_small(void)
{
    close_server();
    request_bytes = 0;
}

/* All limits are smaller, also those of one request that would never have room. */
static void little_memory(void **state)
{
    static const char large[] =
        "{\"prompt\": \"a\", \"n\": 4, \"max_tokens\": 1000000}";

    (void)state;
    open_small();
    assert_refused(complete("{\"prompt\": \"a\", \"response_format\": {\"type\": "
                            "\"json_object\"}}"),
                   503, "smaller"); /* of 40 MiB */
    fake.fill = 256 << 10;
    fake.pace_us = 1000;
    assert_refused(complete(large), 400, "larger than 12.0 MiB");
    close_small();
    request_bytes = 4 * MIB; /* of some 321 */
    open_server(60, true);
    fake.fill = 256 << 10;
    fake.pace_us = 1000;
    assert_refused(complete(large), 400, "larger than 1.59 MiB");
    assert_refused(reply_to(large_request(30000)), 413, "larger than 199");
    close_small();
}

/* Slow readers keep less than each of them may, where they are many: those with most
 * unread are cut off, and who has read stays. */
static void many_slow_readers(void **state)
{
    enum { N = 16, LIMIT = 8 * MIB };
    static const char bytes[] = "\nslm_stream_bytes ";
    const uint64_t begin = clock_ns();
    const int small = 4096;
    int fd[N], reader;
    long most = 0, n;

    (void)state;
    open_small();
    fake.most = 100;
    fake.pace_us = 4000;
    fake.fill = 20000;
    fake.may_make = 1;
    reader = dial();
    send_text(reader, post("/v1/completions", JSON,
                           "{\"prompt\": \"a\", \"max_tokens\": 3, \"stream\": true}"));
    for (int i = 0; i < N; i++) {
        fd[i] = dial();
        setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        send_text(fd[i], post("/v1/completions", JSON,
                              "{\"prompt\": \"a\", \"max_tokens\": 1000000, "
                              "\"stream\": true}"));
    }
    /* The first half comes no faster than it is looked at. */
    do {
        n = metric(bytes);
        most = n > most ? n : most;
        if (most > LIMIT / 2)
            fake.may_make = 0;
        else if (fake_is_read())
            fake.may_make++;
    } while (metric("\nslm_clients_cut_total ") < N &&
             clock_ns() - begin < WAIT_S * UINT64_C(1000000000));
    assert_in_range(most, LIMIT / 2, LIMIT);
    assert_non_null(strstr(hear(reader, NULL, 0), "[DONE]"));
    wait_metric(bytes, 0);
    close(reader);
    for (int i = 0; i < N; i++)
        close(fd[i]);
    wait_alive(0);
    close_small();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_nobody_takes),
        cmocka_unit_test(answers_count_until_they_are_sent),
        cmocka_unit_test(many_large_bodies),
        cmocka_unit_test(little_memory),
        cmocka_unit_test(many_slow_readers),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: MIT
 *
 * test_server_headers.c - headers that fill the memory of a connection: whatever is
 * left of it, there is a reply
 */
#include "tests/harness/serve/http/http_server.h"

/* A request with n lines, or other parts that libmicrohttpd keeps. */
struct kind {
    const char *begin, *part, *end;
    int few; /* the status with few of them; 0: libmicrohttpd decides */
};

#define HOST "Host: localhost\r\nConnection: close\r\n"
#define BODY "f\r\n{\"prompt\": \"a\"}\r\n0\r\n"

static const struct kind kinds[] = {
    {"GET /health HTTP/1.1\r\n" HOST, "a: b\r\n", "\r\n", 200},
    {"GET /health?a", "&a", " HTTP/1.1\r\n" HOST "\r\n", 200},
    {"GET /health HTTP/1.1\r\n" HOST "Cookie: a=b", ";a=b", "\r\n\r\n", 200},
    {"GET /health HTTP/1.1\r\n" HOST "X: y\r\n", " a line that is continued\r\n",
     "\r\n", 0},
    {"POST /v1/completions HTTP/1.1\r\n" HOST JSON
     "Transfer-Encoding: chunked\r\n\r\n" BODY,
     "a: b\r\n", "\r\n", 200},
    {"OPTIONS /health HTTP/1.1\r\n" HOST, "a: b\r\n", "\r\n", 405},
    {"HEAD /health HTTP/1.1\r\n" HOST, "a: b\r\n", "\r\n", 200},
};

static char *request_of(const struct kind *k, int n)
{
    static char text[1 << 15];
    size_t len = (size_t)snprintf(text, sizeof text, "%s", k->begin);

    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s", k->part);
    len += (size_t)snprintf(text + len, sizeof text - len, "%s", k->end);
    assert_true(len < sizeof text);
    return text;
}

/* libmicrohttpd before 1.0 writes the header of its own refusal of cookies twice. */
static bool is_followed(const char *reply)
{
    return strstr(reply + 1, "HTTP/1.1") && strstr(reply, "application/json");
}

/* One reply, and where it ends the connection nothing behind it. */
static int status_with(const struct kind *k, int n)
{
    const char *reply = reply_of(request_of(k, n));

    if (!status_of(reply) || is_followed(reply))
        fail_msg("%.40s with %d times %s: %s", k->begin, n, k->part, reply);
    return status_of(reply);
}

static void any_number_of_lines(void **state)
{
    (void)state;
    open_server(60, true);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].few && status_with(&kinds[i], 20) != kinds[i].few)
            fail_msg("%s: %s", kinds[i].begin, reply_of(request_of(&kinds[i], 20)));
        for (int n = 270; n < 530; n += 2)
            status_with(&kinds[i], n);
        assert_in_range(status_with(&kinds[i], 600), 400, 431);
    }
    close_server();
}

/* A zero ends what is seen of a request line, and libmicrohttpd reads on behind it: the
 * request is refused, whatever follows, and nothing of it is left. */
static void zeros_in_the_request_line(void **state)
{
#define REST " HTTP/1.1\r\n" HOST "\r\n"
    static const struct kind zeros[] = {
        {.begin = "GET /health@", .part = "x", .end = REST},
        {.begin = "GET @/health", .part = "x", .end = REST},
        {.begin = "GET /health?a@", .part = "&a", .end = REST},
        {.begin = "GET /health@?a", .part = "&a", .end = REST},
        {.begin = "GET /health@?a", .part = "&a=b", .end = REST},
        {.begin = "GET /health@HTTP/1.1@?a", .part = "&a", .end = REST},
        {.begin = "HEAD /health@?a", .part = "&a", .end = REST},
        {.begin = "POST /v1/completions@?a",
         .part = "&a",
         .end = " HTTP/1.1\r\n" HOST JSON "Content-Length: 15\r\n\r\n"
                "{\"prompt\": \"a\"}"},
    };

    (void)state;
    open_server(60, true);
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        for (int n = 0; n < 600; n += n < 270 ? 90 : 6) {
            char *text = request_of(&zeros[i], n);
            const size_t len = strlen(text);
            const int fd = dial();
            int status;

            for (char *at = text; (at = strchr(at, '@'));)
                *at++ = '\0';
            assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
            status = status_of(hear(fd, NULL, 0));
            if (status != 400 && (n < 100 || status != 431))
                fail_msg("%s with %d times %s: %d", zeros[i].begin, n, zeros[i].part,
                         status);
            close(fd);
        }
    wait_metric("\nslm_http_requests ", 1); /* this one */
    wait_metric("\nslm_http_connections ", 1);
    close_server();
}

/* libmicrohttpd before 0.9.74 reports them as requests, the first ones without a URI.
 */
static void request_lines_that_lack_something(void **state)
{
    static const char *const lines[] = {
        "GET ", "GET  ", "GET HTTP/1.1",     "GET /health",
        "GET",  " ",     " /health HTTP/1.1"};

    (void)state;
    open_server(60, true);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[128];
        int status;

        snprintf(text, sizeof text, "%s\r\n" HOST "\r\n", lines[i]);
        status = status_of(reply_of(text));
        if (status && (status < 400 || status > 505))
            fail_msg("%s: %d", lines[i], status);
    }
    assert_int_equal(status_of(get("/health", "")), 200);
    close_server();
}

/* libmicrohttpd copies a line that is continued behind what it has read, and then, when
 * it begins to reply, all that it has read and not used: no memory may be left. */
static void continued_lines_before_other_bytes(void **state)
{
    static const struct kind unclear = {
        .begin = "GET /health HTTP/1.1\r\nX: y\r\n",
        .part = " a line that is continued\r\n",
        .end = "\r\n",
    };
    static char text[1 << 15];

    (void)state;
    open_server(60, true);
    for (int n = 0; n < 100; n += 3) {
        const size_t len = (size_t)snprintf(text, sizeof text, "%s%016384d",
                                            request_of(&unclear, n), 0);
        const int status = status_of(reply_of(text));

        if (status != 400)
            fail_msg("%zu bytes, %d lines: %d", len, n, status);
    }
    close_server();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_lines),
        cmocka_unit_test(zeros_in_the_request_line),
        cmocka_unit_test(request_lines_that_lack_something),
        cmocka_unit_test(continued_lines_before_other_bytes),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

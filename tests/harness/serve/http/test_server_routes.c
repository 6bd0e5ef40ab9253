/* SPDX-License-Identifier: MIT
 *
 * test_server_routes.c - each path that takes a body, headers that decide before it,
 * permission for browsers, and the log
 */
#include "tests/harness/serve/http/http_server.h"

#include <fcntl.h>

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* All that comes until the connection ends. */
static char *receive(int fd)
{
    char *reply = hear(fd, NULL, 0);

    close(fd);
    return reply;
}

static char *reply_to(const char *request)
{
    const int fd = dial();

    send_text(fd, request);
    return receive(fd);
}

/* Texts and tokens, which no scheduler computes. */
static void routes_of_texts(void **state)
{
    static const struct {
        const char *path, *body;
        int status;
        const char *word;
    } cases[] = {
        {"/tokenize", "{\"content\": \"Once\"}", 200, "\"tokens\":["},
        {"/tokenize", "{}", 400, "content is missing"},
        {"/detokenize", "{\"tokens\": [403, 407]}", 200, "\"content\":\""},
        {"/detokenize", "{\"tokens\": [512]}", 400, "is no token"},
        {"/apply-template",
         "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", 200,
         "\"prompt\":\""},
        {"/apply-template", "{\"messages\": []}", 400, "1 to 4096 messages"},
        {"/v1/messages/count_tokens",
         "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", 200,
         "\"input_tokens\":"},
        {"/v1/embeddings", "{\"input\": \"a\"}", 404, "makes no vectors"},
        {"/v1/messages",
         "{\"max_tokens\": 2, \"messages\": [{\"role\": \"user\", \"content\": "
         "\"a\"}]}",
         200, "\"type\":\"message\""},
        {"/v1/responses", "{\"input\": \"a\", \"max_output_tokens\": 2}", 200,
         "\"object\":\"response\""},
        {"/v1/modelsx", "{}", 404, "/v1/modelsx"},
        {"/v1/model", "{}", 404, "/v1/model "},
    };

    (void)state;
    open_server(60, true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reply = reply_to(post(cases[i].path, JSON, cases[i].body));

        if (status_of(reply) != cases[i].status || !strstr(reply, cases[i].word))
            fail_msg("%s: %s", cases[i].path, reply);
    }
    assert_int_equal(close_server(), false);
}

static void headers_decide_before_the_body(void **state)
{
    static const char body[] = "{\"prompt\": \"Once\", \"max_tokens\": 1}";
    static const struct {
        const char *headers;
        int status;
        const char *word;
    } cases[] = {
        {JSON "Content-Encoding: identity\r\n", 200, "w0"},
        {JSON "Content-Encoding: br\r\n", 415, "br"},
        {"Content-Type: application/json; charset=utf-8\r\n", 200, "w0"},
        {"Content-Type: application/jsonx\r\n", 415, "application/json"},
        {"Content-Type: APPLICATION/JSON\t\r\n", 200, "w0"},
    };
    char *reply;
    int fd;

    (void)state;
    open_server(60, true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reply = reply_to(post("/v1/completions", cases[i].headers, body));
        if (status_of(reply) != cases[i].status || !strstr(reply, cases[i].word))
            fail_msg("%s: %s", cases[i].headers, reply);
    }
    /* a client that waits for permission gets the refusal at once */
    fd = dial();
    send_text(fd, "POST /v2 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                  "Connection: close\r\nContent-Length: 10\r\n\r\n");
    assert_refused(receive(fd), 404, "/v2");
    assert_refused(reply_to(post("/v2", JSON, "{\"a\": 1}")), 404, "/v2");
    /* a body where none belongs is not kept */
    assert_int_equal(status_of(reply_to("GET /health HTTP/1.1\r\nHost: localhost\r\n"
                                        "Connection: close\r\nContent-Length: 5\r\n\r\n"
                                        "abcde")),
                     200);
    assert_refused(reply_to("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" JSON
                            "Connection: close\r\nContent-Length: 999999999\r\n\r\n"),
                   413, "larger than 100000 bytes");
    assert_int_equal(close_server(), false);
}

/* Without keys, a server on the loopback answers to its own names alone; one that all
 * reach is called by names that it does not know. */
static void names_of_the_host(void **state)
{
    static const char request[] = "GET /health HTTP/1.1\r\nHost: slm.example\r\n"
                                  "Connection: close\r\n\r\n";

    (void)state;
    open_server(60, true);
    assert_refused(reply_to(request), 403, "slm.example");
    f.at.loopback = false;
    assert_int_equal(status_of(reply_to(request)), 200);
    assert_int_equal(close_server(), false);
}

/* HTTP/1.0 needs no Host and has no chunks. */
static void old_requests(void **state)
{
    static const struct {
        const char *request;
        int status;
        const char *word;
    } cases[] = {
        {"GET /health HTTP/1.0\r\n\r\n", 200, "ok"},
        {"GET /health HTTP/1.1\r\n\r\n", 400, "Host"},
        {"POST /tokenize HTTP/1.0\r\nHost: localhost\r\n" JSON
         "Transfer-Encoding: chunked\r\n\r\n12\r\n{\"content\": \"Once\"}\r\n0\r\n\r\n",
         400, "HTTP/1.0 has no Transfer-Encoding"},
    };

    (void)state;
    open_server(60, true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reply = reply_to(cases[i].request);

        if (status_of(reply) != cases[i].status || !strstr(reply, cases[i].word))
            fail_msg("%s: %s", cases[i].request, reply);
    }
    assert_int_equal(close_server(), false);
}

static void browsers_are_permitted(void **state)
{
    static const char request[] = "OPTIONS /v1/completions HTTP/1.1\r\n"
                                  "Host: localhost\r\nOrigin: http://page.example\r\n"
                                  "Access-Control-Request-Headers: authorization\r\n"
                                  "Connection: close\r\n\r\n";
    const char *reply;

    (void)state;
    open_server(60, true);
    assert_refused(reply_to(request), 405, "OPTIONS");
    assert_int_equal(close_server(), false);
    cors = "http://page.example";
    open_server(60, true);
    reply = reply_to(request);
    assert_int_equal(status_of(reply), 204);
    assert_non_null(
        strstr(reply, "Access-Control-Allow-Origin: http://page.example\r\n"));
    reply = get("/health", "Origin: http://page.example\r\n");
    assert_int_equal(status_of(reply), 200);
    assert_non_null(strstr(reply, "Access-Control-Allow-Origin:"));
    assert_int_equal(close_server(), false);
    cors = NULL;
}

/* A line for each request that has come, with what it costs. */
static void requests_are_logged(void **state)
{
    char name[] = "/tmp/test_server_log_XXXXXX", *text;
    const int file = mkstemp(name), before = dup(STDERR_FILENO);
    size_t bytes;
    int fd;

    (void)state;
    assert_true(file >= 0 && before >= 0);
    unlink(name);
    fflush(stderr);
    logs = true;
    open_server(60, true);
    dup2(file, STDERR_FILENO);
    get("/v2%1b[31m", "");
    complete("{\"prompt\": \"Once\", \"max_tokens\": 3}");
    fd = dial();
    send_text(fd, "GET /health\r\n\r\n"); /* libmicrohttpd refuses it before us */
    receive(fd);
    close_server();
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    logs = false;
    bytes = (size_t)lseek(file, 0, SEEK_END);
    text = calloc(1, bytes + 1);
    assert_int_equal(pread(file, text, bytes, 0), bytes);
    close(file);
    assert_non_null(strstr(text, " GET /v2"));
    assert_non_null(strstr(text, " 404 "));
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, " POST /v1/completions 200 "));
    assert_non_null(strstr(text, "generated 3, "));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_of_texts),
        cmocka_unit_test(headers_decide_before_the_body),
        cmocka_unit_test(names_of_the_host),
        cmocka_unit_test(old_requests),
        cmocka_unit_test(browsers_are_permitted),
        cmocka_unit_test(requests_are_logged),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

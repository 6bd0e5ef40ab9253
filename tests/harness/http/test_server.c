/* SPDX-License-Identifier: MIT
 *
 * test_server.c - a server over sockets, with a scheduler that does what a test wants
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "engine/base/clock.h"
#include "engine/gguf/gguf.h"
#include "harness/base/interrupt.h"
#include "harness/http/server.h"
#include "tests/support/fake_scheduler.h"

#define MODEL  TEST_DATA "models/stories260K-f32.gguf"
#define WAIT_S 20 /* for what comes in milliseconds, unless it never does */

struct fixture {
    struct listening at;
    struct server *server;
    struct apikeys *keys;
    struct tokenizer *tok;
    pthread_t scheduler;
    bool runs;
};

static struct fixture f;

/* ---- server
 * ---------------------------------------------------------------------------- */

static void *run_scheduler(void *arg)
{
    struct err err = ERR_INIT;

    (void)arg;
    scheduler_run(&fake_one, &err);
    return NULL;
}

static void make_ready(const char *template)
{
    const struct answer_model model = {.scheduler = &fake_one,
                                       .tok = f.tok,
                                       .chat = chat_template_find(template),
                                       .name = "stories",
                                       .n_ctx = 256,
                                       .n_vocab = tokenizer_n_vocab(f.tok)};

    assert_int_equal(pthread_create(&f.scheduler, NULL, run_scheduler, NULL), 0);
    f.runs = true;
    server_ready(f.server, &model);
}

static void open_server(double timeout_s, bool ready)
{
    const struct server_params params = {.at = &f.at,
                                         .name = "stories",
                                         .keys = f.keys,
                                         .max_body = 100000,
                                         .timeout_s = timeout_s,
                                         .grace_s = 600,
                                         .n_connections = 300};
    struct err err = ERR_INIT;

    fake_reset();
    assert_int_equal(listen_open(&f.at, "127.0.0.1:0", -1, &err), ST_OK);
    assert_int_equal(server_open(&f.server, &params, &err), ST_OK);
    if (ready)
        make_ready("zephyr");
}

static bool close_server(void)
{
    bool cancelled = false;

    if (f.runs) {
        scheduler_stop(&fake_one, false);
        pthread_join(f.scheduler, NULL);
    }
    server_close(f.server, &cancelled);
    listen_close(&f.at);
    apikeys_free(f.keys);
    f.keys = NULL;
    f.runs = false;
    assert_int_equal(fake.n_alive, 0);
    return cancelled;
}

static int setup(void **state)
{
    struct gguf *g;
    struct err err = ERR_INIT;

    (void)state;
    interrupt_catch();
    server_block_signals();
    assert_int_equal(gguf_open(&g, MODEL, &err), ST_OK);
    assert_int_equal(tokenizer_open(&f.tok, g, &err), ST_OK);
    gguf_close(g);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tokenizer_close(f.tok);
    return 0;
}

/* ---- clients
 * --------------------------------------------------------------------------- */

static int dial(void)
{
    const char *colon = strrchr(f.at.text, ':');
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)atoi(colon + 1)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    const size_t n = strlen(text);

    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* What comes until the text holds `until` n times, or (NULL) the connection ends. */
static char *hear(int fd, const char *until, int n)
{
    static char text[1 << 20];
    size_t len = 0;

    text[0] = '\0';
    while (len + 1 < sizeof text) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got;
        int found = 0;

        for (char *at = text; until && (at = strstr(at, until)); at += strlen(until))
            found++;
        if (until && found >= n)
            break;
        if (poll(&p, 1, WAIT_S * 1000) != 1)
            print_error("nothing more comes after: %s\n", text);
        got = recv(fd, text + len, sizeof text - len - 1, 0);
        if (got <= 0)
            break;
        len += (size_t)got;
        text[len] = '\0';
    }
    return text;
}

static const char *post(const char *path, const char *headers, const char *body)
{
    static char text[1 << 17];

    snprintf(text, sizeof text,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n%s\r\n%s",
             path, strlen(body), headers, body);
    return text;
}

#define JSON "Content-Type: application/json\r\n"

/* The whole reply to a request of its own connection. */
static char *ask(const char *request)
{
    const int fd = dial();
    char *reply;

    say(fd, request);
    reply = hear(fd, NULL, 0);
    close(fd);
    return reply;
}

static char *get(const char *path, const char *headers)
{
    char text[1024];

    snprintf(text, sizeof text,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", path,
             headers);
    return ask(text);
}

static char *complete(const char *body)
{
    return ask(post("/v1/completions", JSON, body));
}

static char *chat(const char *body)
{
    return ask(post("/v1/chat/completions", JSON, body));
}

static int status_of(const char *reply)
{
    return strlen(reply) > 12 ? atoi(reply + 9) : 0;
}

static json_t *json_of(const char *reply)
{
    const char *body = strstr(reply, "\r\n\r\n");
    json_error_t why;
    json_t *root = body ? json_loads(body + 4, 0, &why) : NULL;

    if (!root)
        print_error("no JSON: %s\n", reply);
    assert_non_null(root);
    return root;
}

/* A reply that is an error in OpenAI's shape, with that status and word in it. */
static void assert_refused(const char *reply, int status, const char *word)
{
    json_t *root = json_of(reply), *error = json_object_get(root, "error");
    const char *message = json_string_value(json_object_get(error, "message"));

    if (status_of(reply) != status || !message || !strstr(message, word))
        print_error("not %d with \"%s\": %s\n", status, word, reply);
    assert_int_equal(status_of(reply), status);
    assert_non_null(message);
    assert_non_null(strstr(message, word));
    assert_true(json_is_string(json_object_get(error, "type")));
    json_decref(root);
}

/* Waits until so many completions are alive. */
static void wait_alive(int n)
{
    const uint64_t begin = clock_ns();

    while (fake.n_alive != n && clock_ns() - begin < WAIT_S * UINT64_C(1000000000))
        usleep(1000);
    assert_int_equal(fake.n_alive, n);
}

/* ---- answers
 * ---------------------------------------------------------------------------- */

static void routes(void **state)
{
    (void)state;
    open_server(60, false);
    assert_int_equal(status_of(get("/health", "")), 503);
    assert_refused(complete("{\"prompt\": \"a\"}"), 503, "being loaded");
    make_ready("zephyr");
    assert_int_equal(status_of(get("/health", "")), 200);
    assert_non_null(strstr(get("/v1/models", ""), "\"id\":\"stories\""));
    assert_non_null(strstr(get("/v1/models/stories", ""), "\"max_model_len\":256"));
    assert_refused(get("/v1/models/other", ""), 404, "other");
    assert_refused(get("/v2", ""), 404, "/v2");
    assert_refused(get("/v1/completions", ""), 405, "GET");
    assert_non_null(strstr(get("/v1/completions", ""), "Allow: POST"));
    assert_refused(ask(post("/health", JSON, "{}")), 405, "POST");
    assert_refused(ask(post("/v1/completions", "", "{}")), 415, "application/json");
    assert_refused(
        ask(post("/v1/completions", JSON "Content-Encoding: gzip\r\n", "{}")), 415,
        "gzip");
    assert_refused(ask("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                       "Connection: close\r\n" JSON "\r\n"),
                   411, "no body");
    assert_refused(ask("GET /health HTTP/1.1\r\nHost: evil.example:80\r\n"
                       "Connection: close\r\n\r\n"),
                   403, "evil.example");
    assert_int_equal(close_server(), false);
}

static void whole_answers(void **state)
{
    json_t *root, *choice;
    const char *text;

    (void)state;
    open_server(60, true);
    root = json_of(complete("{\"model\": \"stories\", \"prompt\": \"Once\", "
                            "\"max_tokens\": 3, \"n\": 2, \"logprobs\": 1}"));
    assert_string_equal(json_string_value(json_object_get(root, "object")),
                        "text_completion");
    assert_int_equal(json_array_size(json_object_get(root, "choices")), 2);
    choice = json_array_get(json_object_get(root, "choices"), 1);
    assert_int_equal(json_integer_value(json_object_get(choice, "index")), 1);
    text = json_string_value(json_object_get(choice, "text"));
    assert_string_equal(text, "w0 w1 w2 ");
    assert_string_equal(json_string_value(json_object_get(choice, "finish_reason")),
                        "length");
    choice = json_object_get(choice, "logprobs");
    assert_int_equal(json_array_size(json_object_get(choice, "tokens")), 3);
    assert_true(json_number_value(json_array_get(
                    json_object_get(choice, "token_logprobs"), 2)) == -2.0);
    assert_int_equal(
        json_object_size(json_array_get(json_object_get(choice, "top_logprobs"), 1)),
        1);
    assert_int_equal(
        json_integer_value(json_array_get(json_object_get(choice, "text_offset"), 2)),
        6);
    root = (json_decref(root), json_of(chat("{\"messages\": [{\"role\": \"user\", "
                                            "\"content\": \"Hi\"}], \"max_tokens\": 2, "
                                            "\"logprobs\": true}")));
    choice = json_array_get(json_object_get(root, "choices"), 0);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(choice, "message"), "content")),
                        "w0 w1 ");
    assert_int_equal(json_array_size(json_object_get(
                         json_object_get(choice, "logprobs"), "content")),
                     2);
    choice = json_object_get(root, "usage");
    assert_int_equal(json_integer_value(json_object_get(choice, "completion_tokens")),
                     2);
    assert_int_equal(
        json_integer_value(json_object_get(
            json_object_get(choice, "prompt_tokens_details"), "cached_tokens")),
        json_integer_value(json_object_get(choice, "prompt_tokens")) / 2);
    json_decref(root);
    assert_true(fake.last.begins_text);
    close_server();
}

/* The texts of a stream's events, one after the other, and how many have some. */
static int join_events(char *reply, char *text, size_t cap)
{
    int n = 0;

    *text = '\0';
    for (char *at = reply; (at = strstr(at, "data: {"));) {
        json_error_t why;
        json_t *event = json_loads(at += 6, JSON_DISABLE_EOF_CHECK, &why);
        json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
        const char *part = json_string_value(json_object_get(choice, "text"));

        if (!part)
            part = json_string_value(
                json_object_get(json_object_get(choice, "delta"), "content"));
        assert_non_null(event);
        if (part && *part) {
            n++;
            snprintf(text + strlen(text), cap - strlen(text), "%s", part);
        }
        json_decref(event);
    }
    return n;
}

static void streams(void **state)
{
    char text[4096], *reply;

    (void)state;
    open_server(60, true);
    reply = complete("{\"prompt\": \"Once\", \"max_tokens\": 50, \"stream\": true}");
    assert_int_equal(status_of(reply), 200);
    assert_non_null(strstr(reply, "text/event-stream"));
    assert_int_equal(join_events(reply, text, sizeof text), 50);
    assert_int_equal(strncmp(text, "w0 w1 w2 ", 9), 0);
    assert_non_null(strstr(text, "w49 "));
    assert_non_null(strstr(reply, "data: [DONE]"));
    assert_null(strstr(reply, "usage"));
    reply =
        chat("{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"n\": 2, "
             "\"max_tokens\": 3, \"stream\": true, "
             "\"stream_options\": {\"include_usage\": true}}");
    assert_int_equal(join_events(reply, text, sizeof text), 6);
    assert_non_null(strstr(reply, "\"role\":\"assistant\""));
    assert_non_null(strstr(reply, "\"index\":1"));
    assert_non_null(strstr(reply, "\"completion_tokens\":6"));
    assert_non_null(strstr(reply, "\"usage\":null"));
    close_server();
}

static void failures(void **state)
{
    char *reply;

    (void)state;
    open_server(60, true);
    fake.fails_at = 3;
    assert_refused(complete("{\"prompt\": \"a\"}"), 500, "as it should");
    reply = complete("{\"prompt\": \"a\", \"stream\": true}");
    assert_int_equal(status_of(reply), 200);
    assert_non_null(strstr(reply, "as it should"));
    assert_null(strstr(reply, "[DONE]"));
    fake.fails_at = 0;
    assert_refused(complete("{\"prompt\": "), 400, "JSON");
    assert_refused(complete("{\"prompt\": \"\xff\"}"), 400, "JSON");
    assert_refused(complete("{\"prompt\": \"a\", \"model\": \"x\"}"), 404, "stories");
    assert_refused(complete("{\"prompt\": \"a\", \"response_format\": {\"type\": "
                            "\"json_schema\", \"json_schema\": {\"schema\": "
                            "{\"unsupported\": 1}}}}"),
                   400, "keyword");
    assert_int_equal(status_of(complete("{\"prompt\": [1, 2, 3]}")), 200);
    assert_int_equal(fake.last_prompt[2], 3);
    assert_refused(complete("{\"prompt\": [1, 2, 512]}"), 400, "token");
    close_server();
}

static void a_full_queue(void **state)
{
    char *reply;

    (void)state;
    open_server(60, true);
    fake.most = 3;
    reply = complete("{\"prompt\": \"a\", \"n\": 4}");
    assert_refused(reply, 429, "full");
    assert_non_null(strstr(reply, "Retry-After: 3\r\n"));
    wait_alive(0); /* those of the four that had a place */
    assert_int_equal(status_of(complete("{\"prompt\": \"a\", \"n\": 3}")), 200);
    close_server();
}

static void keys(void **state)
{
    char path[] = "/tmp/test_server_XXXXXX";
    const int fd = mkstemp(path);
    struct err err = ERR_INIT;

    (void)state;
    close(fd);
    FILE *file = fopen(path, "w");

    fputs("# two\nsecret-secret-secret\n\nanother-another-key\n", file);
    fclose(file);
    assert_int_equal(apikeys_read(&f.keys, path, &err), ST_OK);
    unlink(path);
    open_server(60, true);
    assert_refused(get("/v1/models", ""), 401, "Authorization");
    assert_non_null(strstr(get("/metrics", ""), "WWW-Authenticate: Bearer"));
    assert_int_equal(status_of(get("/health", "")), 200);
    assert_refused(get("/v1/models", "Authorization: Bearer secret-secret-secre\r\n"),
                   401, "key");
    assert_refused(get("/v1/models", "Authorization: Basic secret\r\n"), 401, "key");
    assert_int_equal(
        status_of(get("/v1/models", "Authorization: Bearer another-another-key\r\n")),
        200);
    close_server();
}

/* ---- clients that do not behave
 * ------------------------------------------------------ */

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

/* ---- the end
 * ----------------------------------------------------------------------------- */

static void a_signal_finishes(void **state)
{
    int fd;
    char *reply, text[8192];

    (void)state;
    open_server(60, true);
    fake.pace_us = 10000;
    fd = dial();
    say(fd, post("/v1/completions", JSON,
                 "{\"prompt\": \"a\", \"max_tokens\": 60, \"stream\": true}"));
    hear(fd, "w0", 1);
    kill(getpid(), SIGTERM);
    while (status_of(get("/health", "")) != 503)
        usleep(1000);
    assert_refused(complete("{\"prompt\": \"a\"}"), 503, "stopping");
    reply = hear(fd, NULL, 0);
    join_events(reply, text, sizeof text);
    assert_non_null(strstr(text, "w59 "));
    pthread_join(f.scheduler, NULL); /* it ends by itself */
    f.runs = false;
    close(fd);
    assert_false(close_server());
}

static void a_second_one_cancels(void **state)
{
    int fd;

    (void)state;
    open_server(60, true);
    fd = dial();
    say(fd,
        post("/v1/completions", JSON, "{\"prompt\": \"a\", \"max_tokens\": 1000000}"));
    wait_alive(1);
    kill(getpid(), SIGINT);
    while (status_of(get("/health", "")) != 503)
        usleep(1000);
    kill(getpid(), SIGINT);
    assert_refused(hear(fd, NULL, 0), 503, "stopped");
    pthread_join(f.scheduler, NULL);
    f.runs = false;
    close(fd);
    assert_true(close_server());
    interrupt_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes),
        cmocka_unit_test(whole_answers),
        cmocka_unit_test(streams),
        cmocka_unit_test(failures),
        cmocka_unit_test(a_full_queue),
        cmocka_unit_test(keys),
        cmocka_unit_test(bodies_too_large),
        cmocka_unit_test(clients_that_vanish),
        cmocka_unit_test(slow_readers),
        cmocka_unit_test(requests_that_do_not_come),
        cmocka_unit_test(pipelined),
        cmocka_unit_test(a_signal_finishes),
        cmocka_unit_test(a_second_one_cancels),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

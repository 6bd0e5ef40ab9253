/* SPDX-License-Identifier: MIT
 *
 * http_server.h - a server over sockets, with a scheduler that does what a test wants,
 * and its clients
 */
#ifndef SLM_TESTS_HARNESS_HTTP_HTTP_SERVER_H
#define SLM_TESTS_HARNESS_HTTP_HTTP_SERVER_H

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
#include "harness/serve/http/server.h"
#include "tests/support/fake_scheduler.h"

#define MODEL  TEST_DATA "models/stories260K-f32.gguf"
#define WAIT_S 20 /* for what comes in milliseconds, unless it never does */

struct fixture {
    struct chat_template *chat;
    struct listening at;
    struct server *server;
    struct apikeys *keys;
    struct tokenizer *tok;
    pthread_t scheduler;
    bool runs;
};

static struct fixture f;
static const char *model_name = "stories";
static int max_connections = 300;
static uint64_t max_body = 100000, request_bytes;
static const char *cors;
static double keep_alive_s = 60;
static bool logs;

/* ---- server ---------------------------------------------------------------------- */

static inline void *run_scheduler(void *arg)
{
    struct err err = ERR_INIT;

    (void)arg;
    scheduler_run(&fake_one, &err);
    return NULL;
}

static inline void make_ready(const char *template)
{
    struct err err = ERR_INIT;

    chat_template_close(f.chat);
    f.chat = NULL;
    if (template)
        assert_int_equal(chat_template_open(&f.chat, NULL, f.tok, template, &err),
                         ST_OK);

    const struct answer_model model = {.scheduler = &fake_one,
                                       .tok = f.tok,
                                       .chat = f.chat,
                                       .why_no_chat = "none",
                                       .name = model_name,
                                       .n_ctx = 256,
                                       .n_vocab = tokenizer_n_vocab(f.tok),
                                       .longest_token = 16};

    assert_int_equal(pthread_create(&f.scheduler, NULL, run_scheduler, NULL), 0);
    f.runs = true;
    server_ready(f.server, &model);
}

static inline void open_server(double timeout_s, bool ready)
{
    const struct server_params params = {.at = &f.at,
                                         .name = model_name,
                                         .keys = f.keys,
                                         .cors = cors,
                                         .max_body = max_body,
                                         .request_bytes = request_bytes,
                                         .timeout_s = timeout_s,
                                         .grace_s = 600,
                                         .keep_alive_s = keep_alive_s,
                                         .n_connections = max_connections,
                                         .log = logs};
    struct err err = ERR_INIT;

    fake_reset();
    assert_int_equal(listen_open(&f.at, "127.0.0.1:0", -1, &err), ST_OK);
    assert_int_equal(server_open(&f.server, &params, &err), ST_OK);
    if (ready)
        make_ready("zephyr");
}

static inline bool close_server(void)
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

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
    (void)state;
    chat_template_close(f.chat);
    f.chat = NULL;
    tokenizer_close(f.tok);
    return 0;
}

/* ---- clients --------------------------------------------------------------------- */

/* From an address of this machine's own. */
static inline int dial_from(const char *address)
{
    const char *colon = strrchr(f.at.text, ':');
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)atoi(colon + 1)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_addr.s_addr = inet_addr(address)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static inline int dial(void)
{
    return dial_from("127.0.0.1");
}

static inline void say(int fd, const char *text)
{
    const size_t n = strlen(text);

    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* What comes until the text holds `until` n times, or (NULL) the connection ends. */
static inline char *hear(int fd, const char *until, int n)
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
static inline char *reply_of(const char *request)
{
    const int fd = dial();
    char *reply;

    say(fd, request);
    reply = hear(fd, NULL, 0);
    close(fd);
    return reply;
}

static inline char *get(const char *path, const char *headers)
{
    char text[1024];

    snprintf(text, sizeof text,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", path,
             headers);
    return reply_of(text);
}

static inline char *complete(const char *body)
{
    return reply_of(post("/v1/completions", JSON, body));
}

static inline char *chat(const char *body)
{
    return reply_of(post("/v1/chat/completions", JSON, body));
}

static inline int status_of(const char *reply)
{
    return strlen(reply) > 12 ? atoi(reply + 9) : 0;
}

static inline json_t *json_of(const char *reply)
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
static inline void assert_refused(const char *reply, int status, const char *word)
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

static inline long metric(const char *name)
{
    const char *at = strstr(get("/metrics", ""), name);

    assert_non_null(at);
    return atol(at + strlen(name));
}

static inline void wait_metric(const char *name, long value)
{
    const uint64_t begin = clock_ns();

    while (metric(name) != value && clock_ns() - begin < WAIT_S * UINT64_C(1000000000))
        usleep(1000);
    assert_int_equal(metric(name), value);
}

/* A request of `bytes` bytes that goes on for ever, most of which nobody reads. */
static inline const char *large_request(size_t bytes)
{
    static char body[100001];
    const int n =
        snprintf(body, sizeof body,
                 "{\"prompt\": \"a\", \"max_tokens\": 1000000, \"metadata\": \"");

    memset(body + n, 'a', bytes - (size_t)n - 2);
    snprintf(body + bytes - 2, 3, "\"}");
    return post("/v1/completions", JSON, body);
}

/* Waits until so many completions are alive. */
static inline void wait_alive(int n)
{
    const uint64_t begin = clock_ns();

    while (fake.n_alive != n && clock_ns() - begin < WAIT_S * UINT64_C(1000000000))
        usleep(1000);
    assert_int_equal(fake.n_alive, n);
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * test_server.c - what a server answers, and how it ends
 */
#include "tests/harness/serve/http/http_server.h"

/* ---- answers --------------------------------------------------------------------- */

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
    assert_non_null(strstr(get("/v1/completions", ""), "Allow: POST\r\n"));
    assert_refused(reply_of(post("/health", JSON, "{}")), 405, "POST");
    assert_refused(
        reply_of(post("/v1/completions", JSON "Content-Encoding: gzip\r\n", "{}")), 415,
        "gzip");
    assert_refused(reply_of("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                            "Connection: close\r\n" JSON "\r\n"),
                   411, "no body");
    assert_refused(reply_of("GET /health HTTP/1.1\r\nHost: evil.example:80\r\n"
                            "Connection: close\r\n\r\n"),
                   403, "evil.example");
    assert_int_equal(close_server(), false);
}

#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"

static char *completion_with(const char *headers, const char *body)
{
    return reply_of(post("/v1/completions", headers, body));
}

/* "curl -d" sends JSON as a form, other programs without a type. A page in a browser
 * could do that, too, on a server that is open to its machine alone. */
static void types_of_bodies(void **state)
{
    static const char body[] = "{\"prompt\": \"Once\", \"max_tokens\": 1}";
    static const char *const own[] = {
        "Origin: http://evil.example\r\n",  "Origin: null\r\n",
        "Referer: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Mode: no-cors\r\n",      "Cookie: a=b\r\n"};
    char headers[200];

    (void)state;
    open_server(60, true);
    assert_int_equal(status_of(completion_with("", body)), 200);
    assert_int_equal(status_of(completion_with(FORM, body)), 200);
    assert_refused(completion_with(FORM, "prompt=Once"), 400, "body");
    assert_refused(completion_with("Content-Type: text/plain\r\n", body), 415,
                   "application/json");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        assert_refused(completion_with(own[i], body), 415, "application/json");
        snprintf(headers, sizeof headers, FORM "%s", own[i]);
        assert_refused(completion_with(headers, body), 415, "application/json");
    }
    assert_int_equal(status_of(completion_with(JSON "Cookie: a=b\r\n", body)), 200);
    assert_int_equal(close_server(), false);
}

/* As Ollama's clients read them. */
static void errors_as_texts(void **state)
{
    json_t *root;

    (void)state;
    open_server(60, true);
    root = json_of(get("/api/chat", ""));
    assert_non_null(
        strstr(json_string_value(json_object_get(root, "error")), "/api/chat"));
    json_decref(root);
    assert_int_equal(status_of(get("/api/tags", "")), 404);
    assert_refused(get("/apis", ""), 404, "/apis");
    assert_int_equal(close_server(), false);
}

/* As long as a file's. */
static void a_long_name(void **state)
{
    char name[251], path[300];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    model_name = name;
    open_server(60, true);
    snprintf(path, sizeof path, "/v1/models/%s", name);
    assert_int_equal(status_of(get(path, "")), 200);
    snprintf(path, sizeof path, "/v1/models/%sn", name);
    assert_refused(get(path, ""), 404, "nnn");
    close_server();
    model_name = "stories";
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

/* Who is between a client and the server need not take a stream for dead. */
static void a_stream_without_news(void **state)
{
    char *reply, *comment;
    int fd;

    (void)state;
    keep_alive_s = 0.1;
    open_server(60, true);
    keep_alive_s = 60;
    fake.holds = true;
    fd = dial();
    say(fd, post("/v1/completions", JSON,
                 "{\"prompt\": \"a\", \"max_tokens\": 3, \"stream\": true}"));
    comment = strstr(hear(fd, "\n: ", 2), "\n: ");
    assert_non_null(comment);
    assert_non_null(strstr(comment + 1, "\n: "));
    assert_null(strstr(comment, "data"));
    fake.holds = false;
    reply = hear(fd, "[DONE]", 1);
    assert_non_null(strstr(reply, "w2 "));
    assert_non_null(strstr(reply, "[DONE]"));
    close(fd);
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
    const char *endless = "{\"prompt\": \"a\", \"max_tokens\": 1000000}";
    char *reply;
    int fd;

    (void)state;
    open_server(60, true);
    fake.most = 3;
    fd = dial();
    say(fd, post("/v1/completions", JSON, endless));
    wait_alive(1);
    reply = complete("{\"prompt\": \"a\", \"n\": 3}");
    assert_refused(reply, 429, "full");
    assert_non_null(strstr(reply, "Retry-After: 3\r\n"));
    wait_alive(1); /* those of the three that had a place have given it up */
    assert_int_equal(status_of(complete("{\"prompt\": \"a\", \"n\": 2}")), 200);
    close(fd);
    wait_alive(0);
    /* no time to wait would make room for four */
    reply = complete("{\"prompt\": [\"a\", \"b\"], \"n\": 2}");
    assert_refused(reply, 400, "room for 3");
    assert_null(strstr(reply, "Retry-After"));
    assert_int_equal(status_of(complete("{\"prompt\": \"a\", \"n\": 3}")), 200);
    close_server();
}

/* Grammars of requests that wait are bounded together, and counted off when they go. */
static void many_large_schemas(void **state)
{
    const char *schema = ", \"response_format\": {\"type\": \"json_schema\", "
                         "\"json_schema\": {\"schema\": {\"type\": \"object\"}}}}";
    char endless[256], one[256];
    int fd[3];

    (void)state;
    snprintf(endless, sizeof endless, "{\"prompt\": \"a\", \"max_tokens\": 1000000%s",
             schema);
    snprintf(one, sizeof one, "{\"prompt\": \"a\"%s", schema);
    open_server(60, true);
    for (int i = 0; i < 3; i++) {
        fd[i] = dial();
        say(fd[i], post("/v1/completions", JSON, endless));
        wait_alive(i + 1);
    }
    assert_refused(complete(one), 503, "smaller");
    assert_int_equal(status_of(complete("{\"prompt\": \"a\"}")), 200);
    close(fd[0]);
    wait_alive(2);
    assert_int_equal(status_of(complete(one)), 200);
    assert_int_equal(status_of(complete(one)), 200);
    close(fd[1]);
    close(fd[2]);
    wait_alive(0);
    close_server();
}

/* What does not stream is kept whole; a stream of the same is not. */
static void a_large_answer(void **state)
{
    static const char few[] = "{\"prompt\": \"a\", \"max_tokens\": 3}";

    (void)state;
    open_server(60, true);
    fake.fill = 256 << 10;
    fake.pace_us = 1000;
    assert_refused(complete("{\"prompt\": \"a\", \"n\": 8, \"max_tokens\": 1000000}"),
                   400, "larger than 12.0 MiB");
    wait_alive(0);
    assert_non_null(strstr(get("/metrics", ""), "\nslm_answer_bytes 0\n"));
    assert_int_equal(status_of(complete(few)), 200);
    close_server();
}

/* Its scheduler has ended, and nobody has told the server yet. */
static void a_scheduler_that_stops(void **state)
{
    char *reply;

    (void)state;
    open_server(60, true);
    scheduler_stop(&fake_one, true);
    reply = complete("{\"prompt\": \"a\"}");
    assert_refused(reply, 503, "stopping");
    assert_null(strstr(reply, "Retry-After"));
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

/* ---- the end --------------------------------------------------------------------- */

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
        cmocka_unit_test(types_of_bodies),
        cmocka_unit_test(errors_as_texts),
        cmocka_unit_test(a_long_name),
        cmocka_unit_test(whole_answers),
        cmocka_unit_test(streams),
        cmocka_unit_test(a_stream_without_news),
        cmocka_unit_test(failures),
        cmocka_unit_test(a_full_queue),
        cmocka_unit_test(many_large_schemas),
        cmocka_unit_test(a_large_answer),
        cmocka_unit_test(a_scheduler_that_stops),
        cmocka_unit_test(keys),
        cmocka_unit_test(a_signal_finishes),
        cmocka_unit_test(a_second_one_cancels),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

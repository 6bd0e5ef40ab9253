/* SPDX-License-Identifier: MIT
 *
 * test_reply_errors.c - replies that are wrong, cut off or odd, and how they are named
 */
#include "tests/harness/client/reply_fixture.h"

/* Some servers write out what there is not. */
static void no_error_is_none(void **state)
{
    (void)state;
    read_reply(
        HEADER, TYPE,
        "data: "
        "{\"error\":null,\"usage\":null,\"choices\":[{\"text\":\"a\"}]}\n\n" DONE,
        7);
    assert_string_equal(record.why, "");
    assert_int_equal(record.end, LOAD_OK);
}

/* Streams of healthy servers that are not quite events, or not quite JSON. */
static void healthy_streams(void **state)
{
#define CHUNK(text) "data: {\"choices\":[{\"delta\":{\"content\":" text "}}]}\n\n"
#define END         "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}"
    static const char *const bodies[] = {
        CHUNK("\"\\ud83d\"") CHUNK("\"\\ude00\"") DONE,
        CHUNK("\"\xf0\x9f\"") CHUNK("\"\x98\x80\"") DONE,
        PIECE PIECE END,
        PIECE PIECE END "\n",
        PIECE PIECE END "\n\ndata: [DONE]",
        PIECE "data: {\"created\":18446744073709551616,\"choices\":[{\"logprobs\":NaN,"
              "\"text\":\"a\"}]}\n\n" DONE,
        PIECE "data: {\"x\":1e999,\"x\":-Infinity,\"choices\":[{\"text\":\"a\"}]}"
              "\n\n" DONE,
        PIECE PIECE "data: {\"usage\":{\"completion_tokens\":2.0}}\n\n" DONE,
    };

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        for (size_t step = 1; step <= strlen(bodies[i]); step += 6) {
            read_reply(HEADER, TYPE, bodies[i], step);
            assert_string_equal(record.why, "");
            assert_int_equal(record.end, LOAD_OK);
            assert_int_equal(record.n_pieces, 2);
            assert_int_equal(record.n_tokens, i == 7 ? 2 : -1);
        }
    read_reply(HEADER, TYPE, CHUNK("NaN") DONE, 7);
    assert_int_equal(record.n_pieces, 0); /* which is no text */
}

/* An event may be an error by its name alone. */
static void errors_by_name(void **state)
{
    static const char *const bodies[] = {
        PIECE "event: error\ndata: {\"message\":\"it fell over\"}\n\n",
        PIECE "event:error\ndata: {\"error\":\"it fell over\"}\n\n" DONE,
        PIECE "event: error\ndata: it fell over\n\n"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        read_reply(HEADER, TYPE, bodies[i], 7);
        assert_int_equal(record.end, LOAD_FAILED);
        assert_non_null(strstr(record.why, "it fell over"));
    }
    read_reply(HEADER, TYPE, "event: error\n\n" PIECE DONE, 7);
    assert_int_equal(record.end,
                     LOAD_OK); /* it had no data, and the next has no name */
}

/* Fields whose names or values resemble those that count. */
static void fields_differ(void **state)
{
    static const struct {
        const char *lines;
        size_t n_odd;
    } cases[] = {{": a comment\n", 0},    {"retry: 5\n", 0},
                 {"id: 7\n", 0},          {"id\n", 0},
                 {"event: message\n", 0}, {"event: errox\n", 0},
                 {"event:  error\n", 0},  {"event\n", 0},
                 {"date: {}\n", 1},       {"evens: error\n", 1},
                 {"retrx: 5\n", 1},       {"ix: 7\n", 1},
                 {"dat: {}\n", 1},        {"datas: {}\n", 1},
                 {"even: error\n", 1},    {"\xef\xbb\xbfid: 1\n", 0},
                 {"\xef\xbb\xbe: 1\n", 1}};
    char body[400];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(body, sizeof body, "%s" PIECE DONE, cases[i].lines);
        read_reply(HEADER, TYPE, body, 7);
        if (record.end != LOAD_OK || reply->sse.n_odd_lines != cases[i].n_odd)
            fail_msg("%s: %s, %zu odd lines", cases[i].lines, record.why,
                     reply->sse.n_odd_lines);
    }
}

static void headers_differ(void **state)
{
    static const struct {
        const char *type, *words; /* "": a stream of events */
    } cases[] = {
        {"content-type:text/event-stream", ""},
        {"Content-Type:    text/event-stream;x", ""},
        {"Content-Type:   ", "no stream of events"},
        {"Content-Type:", "no stream of events"},
        {"Content-Typ", "no stream of events"},
        {"Content-Type: text/event-strea", "no stream of events"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_reply(HEADER, cases[i].type, PIECE DONE, 7);
        if (!*cases[i].words != (record.end == LOAD_OK) ||
            !strstr(record.why, cases[i].words))
            fail_msg("%s: '%s'", cases[i].type, record.why);
    }
    read_reply("HTTP/1.1 503 No",
               "Retry-After: 7.000000000000000000000000000000000000001", " \r\n\t", 7);
    assert_string_equal(record.why, "HTTP 503, retry after 7 s");
    read_reply("HTTP/1.1 503 No", "Retry-After: inf", "", 7);
    assert_string_equal(record.why, "HTTP 503");
    read_reply("HTTP/1.1", TYPE, PIECE DONE, 7);
    assert_int_equal(record.end, LOAD_FAILED);
    assert_int_equal(record.http_status, 0);
}

/* A body that is cut anywhere before its end is a failure, with a reason. Behind the
 * last event no empty line is needed. */
static void a_cut_body_is_seen(void **state)
{
    static const char whole[] = PIECE PIECE USAGE DONE;
    char text[sizeof whole];

    (void)state;
    for (size_t n = 0; n < sizeof whole - sizeof "\n\n"; n++) {
        memcpy(text, whole, n);
        text[n] = '\0';
        read_reply(HEADER, TYPE, text, 7);
        if (record.end != LOAD_FAILED || !*record.why)
            fail_msg("cut after %zu bytes: %d '%s'", n, record.end, record.why);
    }
}

/* The line with the status may end behind the number. */
static void a_status_needs_no_reason(void **state)
{
    (void)state;
    read_reply("HTTP/1.1 200", TYPE, PIECE DONE, 7);
    assert_string_equal(record.why, "");
    assert_int_equal(record.http_status, 200);
    assert_int_equal(record.end, LOAD_OK);
    read_reply("HTTP/1.1 20", TYPE, PIECE DONE, 7);
    assert_int_equal(record.end, LOAD_FAILED);
}

static void wrong_replies(void **state)
{
    static const struct {
        const char *status, *type, *body, *says;
    } wrong[] = {
        {HEADER, TYPE, "data: {\"a\n\n", "no JSON object"},
        {HEADER, TYPE, "data: [1]\n\n", "no JSON object"},
        {HEADER, TYPE, "data: {\"error\":{\"message\":\"no slot\"}}\n\n", "no slot"},
        {HEADER, TYPE, "data: {\"error\":7}\n\n", "without a message"},
        {HEADER, TYPE, DONE, "empty"},
        {HEADER, TYPE, PIECE PIECE, "before the answer did"},
        {HEADER, TYPE, "nothing\nof\nthe kind\n", "other lines"},
        {HEADER, "Content-Type: text/html", "<html>", "no stream of events"},
        {"HTTP/1.1 302 Found", TYPE, "", "points elsewhere"},
        {"HTTP/1.1 500 No", TYPE, "{\"error\":{\"message\":\"out of memory\"}}",
         "HTTP 500: out of memory"},
        {"HTTP/1.1 400 No", TYPE,
         "{\"error\":{\"message\":\"tinyllama-1.1b-chat has no chat template that this "
         "server knows; --chat-template names one when it is started\"}}",
         "HTTP 400: tinyllama-1.1b-chat has no chat template that this server knows; "
         "--chat-template names one when it is started"},
        {"HTTP/1.1 503 No", "Retry-After: 7", "<html>", "HTTP 503, retry after 7 s"},
        {"HTTP/1.1 429 No", "Retry-After: -7", "", "HTTP 429"},
        {"HTTP/1.1 404", TYPE, "{\"error\":\"model 'a' not found\"}",
         "HTTP 404: model 'a' not found"},
        {"HTTP/1.1 400 No", TYPE, "{\"object\":\"error\",\"message\":\"too long\"}",
         "HTTP 400: too long"},
        {"HTTP/1.1 401 No", TYPE, "{\"detail\":\"who are you\"}",
         "HTTP 401: who are you"},
        {"HTTP/1.1 422 No", TYPE, "{\"detail\":[{\"msg\":\"no such field\"}]}\n",
         "HTTP 422: {\"detail\":[{\"msg\":\"no such field\"}]}"},
        {"HTTP/1.1 404 No", "Content-Type: text/plain", "404 page not found\r\n",
         "HTTP 404: 404 page not found"},
        {HEADER, "Content-Type: application/json", "{\"error\":\"no streams here\"}",
         "no stream of events (text/event-stream): no streams here"},
        {HEADER, TYPE, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}]}\n\n",
         "no JSON object"},
        {HEADER, TYPE,
         "data: {\"choices\":{\"delta\":1},\"usage\":[],\"timings\":\"\"}\n\n" DONE,
         "empty"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        read_reply(wrong[i].status, wrong[i].type, wrong[i].body, 5);
        assert_int_equal(record.end, LOAD_FAILED);
        if (!strstr(record.why, wrong[i].says))
            fail_msg("'%s' and not '%s'", record.why, wrong[i].says);
    }
}

/* What has no end becomes no memory. */
static void sizes_are_bounded(void **state)
{
    char *body = malloc(SSE_MAX_EVENT + 1000), *at;

    (void)state;
    assert_non_null(body);
    memset(body, 'x', SSE_MAX_EVENT + 999);
    body[SSE_MAX_EVENT + 999] = '\0';
    read_reply(HEADER, TYPE, body, 1000);
    assert_non_null(strstr(record.why, "longer than"));
    for (at = body; at < body + SSE_MAX_EVENT; at += 10)
        memcpy(at, "data: yyy\n", 10);
    read_reply(HEADER, TYPE, body, 4000);
    assert_non_null(strstr(record.why, "empty")); /* 4 bytes of 10, and no end */
    read_reply("HTTP/1.1 500 No", TYPE, body, 1000);
    assert_int_equal(strncmp(record.why, "HTTP 500: data: yyy", 19), 0);
    at = body;
    for (int i = 0; i <= LOAD_PIECES_MAX(8); i++)
        at += sprintf(at, "%s", PIECE);
    read_reply(HEADER, TYPE, body, 1000);
    assert_non_null(strstr(record.why, "for 8 requested tokens"));
    free(body);
}

/* Invalid counts are ignored. */
static void wrong_counts(void **state)
{
    (void)state;
    read_reply(HEADER, TYPE,
               PIECE "data: {\"usage\":{\"prompt_tokens\":-1,\"completion_tokens\":1e9,"
                     "\"prompt_tokens_details\":7}}\n\n" DONE,
               9);
    assert_int_equal(record.end, LOAD_OK);
    assert_int_equal(record.n_prompt, -1);
    assert_int_equal(record.n_tokens, -1);
    assert_int_equal(load_record_tokens(&record), 1);
    read_reply(HEADER, TYPE,
               PIECE PIECE "data: {\"usage\":{\"completion_tokens\":0}}\n\n" DONE, 9);
    assert_int_equal(load_record_tokens(&record), 2); /* there is a text */
}

/* A whole answer without text is not one that was cut off. */
static void empty_answers(void **state)
{
    (void)state;
    read_reply(HEADER, TYPE, USAGE DONE, 9);
    assert_int_equal(record.end, LOAD_FAILED);
    assert_true(record.is_empty);
    assert_int_equal(record.n_prompt, 9);
    read_reply(HEADER, TYPE, USAGE, 9);
    assert_int_equal(record.end, LOAD_FAILED);
    assert_false(record.is_empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_error_is_none, begin, end),
        cmocka_unit_test_setup_teardown(healthy_streams, begin, end),
        cmocka_unit_test_setup_teardown(errors_by_name, begin, end),
        cmocka_unit_test_setup_teardown(fields_differ, begin, end),
        cmocka_unit_test_setup_teardown(headers_differ, begin, end),
        cmocka_unit_test_setup_teardown(a_cut_body_is_seen, begin, end),
        cmocka_unit_test_setup_teardown(a_status_needs_no_reason, begin, end),
        cmocka_unit_test_setup_teardown(empty_answers, begin, end),
        cmocka_unit_test_setup_teardown(wrong_replies, begin, end),
        cmocka_unit_test_setup_teardown(sizes_are_bounded, begin, end),
        cmocka_unit_test_setup_teardown(wrong_counts, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

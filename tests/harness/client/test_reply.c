/* SPDX-License-Identifier: MIT
 *
 * test_reply.c - events in pieces that end anywhere, and replies that are wrong
 */
#include "tests/support/test.h"

#include "harness/client/record.h"

#define HEADER "HTTP/1.1 200 OK"
#define TYPE   "Content-Type: text/event-stream; charset=utf-8"
#define PIECE  "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
#define USAGE                                                                       \
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3," \
    "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
#define DONE "data: [DONE]\n\n"

static struct load_record record;
static struct load_reply *reply;

static int begin(void **state)
{
    (void)state;
    reply = calloc(1, sizeof *reply);
    return reply == NULL;
}

static int end(void **state)
{
    (void)state;
    load_record_free(&record);
    load_reply_free(reply);
    free(reply);
    return 0;
}

/* A reply with this body, `step` bytes a millisecond. */
static void read_reply(const char *status, const char *type, const char *body,
                       size_t step)
{
    const size_t len = strlen(body);
    uint64_t now = 1000000;

    load_record_free(&record);
    record = (struct load_record){
        .n_requested = 8, .n_prompt = -1, .n_tokens = -1, .n_cached = -1};
    load_reply_begin(reply, &record);
    load_reply_header(reply, status, strlen(status));
    load_reply_header(reply, type, strlen(type));
    for (size_t at = 0; at < len; at += step, now += 1000000)
        if (!load_reply_feed(reply, body + at, len - at < step ? len - at : step, now))
            break;
    load_reply_end(reply, now);
}

/* A model may generate any character, the first one, too. */
static void text_may_be_a_zero(void **state)
{
    (void)state;
    read_reply(
        HEADER, TYPE,
        "data: "
        "{\"choices\":[{\"text\":\"\\u0000\",\"finish_reason\":\"stop\"}]}\n\n" DONE,
        7);
    assert_int_equal(record.end, LOAD_OK);
    assert_int_equal(record.n_pieces, 1);
}

static void pieces_end_anywhere(void **state)
{
    static const char *const bodies[] = {
        PIECE PIECE PIECE USAGE DONE,
        "\xef\xbb\xbf: a comment\r\nevent: x\r\n\r\n" PIECE "id: 7\n" PIECE
        "data:{\"choices\":[{\"text\":\"b\"}]}\r\r" USAGE DONE,
        "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\n" PIECE
        "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n" PIECE USAGE DONE
            PIECE,
    };

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        for (size_t step = 1; step <= strlen(bodies[i]); step++) {
            read_reply(HEADER, TYPE, bodies[i], step);
            assert_string_equal(record.why, "");
            assert_int_equal(record.end, LOAD_OK);
            assert_int_equal(record.n_pieces, 3);
            assert_int_equal(record.n_tokens, 3);
            assert_int_equal(record.n_prompt, 9);
            assert_int_equal(record.n_cached, 4);
            assert_true(record.first_ns + (uint64_t)(record.gap_ms[0] * 1e6 +
                                                     record.gap_ms[1] * 1e6) ==
                        record.last_ns);
        }
}

/* Servers name what a model thinks in two ways; Ollama sends an empty content with it.
 */
static void thoughts_are_text(void **state)
{
    static const char *const bodies[] = {
        "data: {\"choices\":[{\"delta\":{\"content\":\"\",\"reasoning\":\"a\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"a\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":null,\"reasoning\":\"a\"}}]}\n\n",
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        snprintf(text, sizeof text, "%s%s%s", bodies[i], PIECE, DONE);
        read_reply(HEADER, TYPE, text, 1000);
        assert_string_equal(record.why, "");
        assert_int_equal(record.n_pieces, 2);
    }
}

/* The first token may be a thought, and what is visible comes later; a blank is
 * neither.
 */
static void thoughts_are_not_visible(void **state)
{
#define DELTA(text)   "data: {\"choices\":[{\"delta\":{" text "}}]}\n\n"
#define CONTENT(text) DELTA("\"content\":\"" text "\"")
    static const struct {
        const char *body;
        int n_thoughts, visible_at; /* piece, from 0; -1: none */
    } cases[] = {
        {DELTA("\"reasoning\":\"a\"") DELTA("\"reasoning_content\":\"b\"") PIECE DONE,
         2, 2},
        {DELTA("\"content\":\"\\n\"") PIECE DONE, 0, 1},
        {DELTA("\"reasoning\":\"a\"") DELTA("\"content\":\" \"") DONE, 1, -1},
        {DELTA("\"reasoning\":\"a\"")
             DELTA("\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\"}}]") DONE,
         1, 1},
        {PIECE DONE, 0, 0},
        /* thoughts in the content, their markers cut by events */
        {CONTENT("\\n<thi") CONTENT("nk>\\nso") CONTENT(" a</th") CONTENT("ink>\\n")
             PIECE CONTENT("</think>") DONE,
         4, 4},
        {CONTENT("<think>a") CONTENT("b") DONE, 2, -1},
        {CONTENT("a b") CONTENT(" c") CONTENT("d</think> e") CONTENT("f") DONE, 2, 2},
        {CONTENT("<") CONTENT("thin>") CONTENT("<think>") DONE, 0, 0},
        {CONTENT("a <think> b </thin k>") DONE, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t at;

        read_reply(HEADER, TYPE, cases[i].body, 1);
        assert_string_equal(record.why, "");
        assert_int_equal(record.n_thoughts, cases[i].n_thoughts);
        assert_int_equal(record.has_calls, i == 3);
        at = record.first_ns;
        for (int k = 0; k < cases[i].visible_at; k++)
            at += (uint64_t)(record.gap_ms[k] * 1e6F);
        assert_true(record.visible_ns == (cases[i].visible_at < 0 ? 0 : at));
    }
}

/* More tokens than were requested, and than came, are not believed. */
static void usage_has_a_limit(void **state)
{
    (void)state;
    read_reply(HEADER, TYPE,
               PIECE "data: {\"usage\":{\"completion_tokens\":9}}\n\n" DONE, 7);
    assert_true(record.n_tokens == -1 && record.has_too_many);
    assert_int_equal(load_record_tokens(&record), 1);
    read_reply(HEADER, TYPE,
               PIECE "data: {\"usage\":{\"completion_tokens\":8}}\n\n" DONE, 7);
    assert_true(record.n_tokens == 8 && !record.has_too_many);
}

/* What the next turn sends back: text and calls in pieces, no thoughts. */
static void thoughts_are_not_sent_back(void **state)
{
    static const char *const cases[][2] = {{"<think>a</think>\n\nb", "b"},
                                           {"a</think> b</think>", "b</think>"},
                                           {" <think>a", ""},
                                           {" a <think>b", " a <think>b"},
                                           {"a</think>", ""},
                                           {"", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answer answer = {.n_calls = 0};
        json_t *delta = json_pack("{s:s}", "content", cases[i][0]), *message;

        assert_true(answer_add(&answer, delta));
        message = answer_message(&answer);
        assert_string_equal(json_string_value(json_object_get(message, "content")),
                            cases[i][1]);
        json_decref(message);
        json_decref(delta);
        answer_free(&answer);
    }
}

static void an_answer_is_a_message(void **state)
{
    static const char body[] = DELTA("\"reasoning_content\":\"hm\"")
        DELTA("\"content\":\"a \\\"\"") DELTA("\"content\":\"b\"") DELTA(
            "\"tool_calls\":[{\"index\":0,\"id\":\"c0\",\"function\":{\"name\":\"f\","
            "\"arguments\":\"{\"}},{\"index\":1,\"id\":\"c1\",\"function\":{\"name\":"
            "\"g\"}}]")
            DELTA("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}},"
                  "{\"index\":99}]") DONE;
    struct answer answer = {.n_calls = 0};
    json_t *message;
    char *text;

    (void)state;
    load_record_free(&record);
    record = (struct load_record){.n_requested = 8};
    load_reply_begin(reply, &record);
    reply->answer = &answer;
    load_reply_header(reply, HEADER, strlen(HEADER));
    load_reply_header(reply, TYPE, strlen(TYPE));
    assert_true(load_reply_feed(reply, body, strlen(body), 1));
    message = answer_message(&answer);
    text = json_dumps(message, JSON_COMPACT);
    assert_string_equal(
        text,
        "{\"role\":\"assistant\",\"content\":\"a \\\"b\",\"tool_calls\":["
        "{\"id\":\"c0\",\"type\":\"function\",\"function\":{\"name\":\"f\","
        "\"arguments\":\"{}\"}},{\"id\":\"c1\",\"type\":\"function\",\"function\":"
        "{\"name\":\"g\",\"arguments\":\"{}\"}}]}");
    free(text);
    json_decref(message);
    answer_free(&answer);
}

/* Text that a conversation would send back for ever: it grows with the requested tokens
 * alone. */
static void answers_have_a_size(void **state)
{
    static const char *const forms[] = {
        "\"content\":\"%0*d\"",
        "\"tool_calls\":[{\"index\":3,\"function\":{\"arguments\":\"%0*d\"}}]"};
    struct answer answer = {.n_calls = 0};
    char delta[20200], event[20300];
    int n = 0;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        load_record_free(&record);
        record = (struct load_record){.n_requested = 8};
        load_reply_begin(reply, &record);
        reply->answer = &answer;
        load_reply_header(reply, HEADER, strlen(HEADER));
        load_reply_header(reply, TYPE, strlen(TYPE));
        snprintf(delta, sizeof delta, forms[i], 20000, 0);
        snprintf(event, sizeof event, "data: {\"choices\":[{\"delta\":{%s}}]}\n\n",
                 delta);
        for (n = 0; load_reply_feed(reply, event, strlen(event), 1); n++)
            assert_true(n < 10);
        assert_int_equal(n, LOAD_TEXT_MAX(8) / 20000);
        assert_non_null(strstr(record.why, "bytes of text for 8 requested tokens"));
        answer_free(&answer);
    }
}

/* An embedding is one piece, with the prompt's tokens; it need not be a stream. */
static void vectors_are_whole(void **state)
{
    static const struct {
        const char *body, *error;
    } cases[] = {
        {"{\"data\":[{\"embedding\":[1,2]}],\"usage\":{\"prompt_tokens\":7}}", ""},
        {"{\"data\":[{\"embedding\":\"AAAA\"}],\"usage\":{\"prompt_tokens\":7}}", ""},
        {"{\"data\":[{\"embedding\":[]}]}", "no embedding"},
        {"{\"data\":[{\"embedding\":[1,2]", "no embedding"},
        {"", "no embedding"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        load_record_free(&record);
        record =
            (struct load_record){.n_requested = 99, .n_prompt = -1, .n_tokens = -1};
        load_reply_begin(reply, &record);
        reply->is_vector = true;
        load_reply_header(reply, HEADER, strlen(HEADER));
        for (const char *at = cases[i].body; *at; at++)
            assert_true(load_reply_feed(reply, at, 1, 5));
        load_reply_end(reply, 6);
        assert_int_equal(record.end, *cases[i].error ? LOAD_FAILED : LOAD_OK);
        assert_non_null(strstr(record.why, cases[i].error));
        assert_int_equal(record.n_tokens, *cases[i].error ? -1 : 7);
        assert_true(record.visible_ns == (*cases[i].error ? 0 : 5));
    }
}

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

/* Counts that are none are not taken. */
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

/* llama-server says with each piece how many tokens there were: a piece of half a
 * character more is of two. */
static void pieces_of_several_tokens(void **state)
{
    static const char body[] =
        "data: {\"choices\":[{\"text\":\"a\"}],\"timings\":{\"predicted_n\":2}}\n\n"
        "data: {\"choices\":[{\"text\":\"b\"}],\"timings\":{\"predicted_n\":3}}\n\n"
        "data: {\"choices\":[{\"text\":\"c\"}],\"timings\":{\"predicted_n\":6}}\n\n"
        "data: {\"choices\":[{\"text\":\"d\"}],\"timings\":{\"predicted_n\":1}}\n\n"
        "data: "
        "{\"choices\":[{\"text\":\"e\"}],\"timings\":{\"predicted_n\":-4}}\n\n" DONE;

    (void)state;
    read_reply(HEADER, TYPE, body, 1000);
    assert_int_equal(record.end, LOAD_OK);
    assert_int_equal(record.n_pieces, 5);
    assert_int_equal(record.n_first_tokens, 2);
    assert_int_equal(record.gap_tokens[0], 1);
    assert_int_equal(record.gap_tokens[1], 3);
    assert_int_equal(record.gap_tokens[2], 1); /* which cannot be */
    assert_int_equal(record.gap_tokens[3], 1);
}

/* A user's replies come one after another: what was read of one is not the next one's.
 */
static void each_reply_is_the_first(void **state)
{
    char header[1024];

    (void)state;
    snprintf(header, sizeof header, "X-Long: %01000d", 0);
    for (int i = 0; i < 1000; i++) {
        read_reply(HEADER, TYPE, PIECE DONE, 1000);
        assert_string_equal(record.why, "");
        assert_int_equal(record.end, LOAD_OK);
        assert_true(load_reply_header(reply, header, strlen(header)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_may_be_a_zero, begin, end),
        cmocka_unit_test_setup_teardown(pieces_end_anywhere, begin, end),
        cmocka_unit_test_setup_teardown(thoughts_are_text, begin, end),
        cmocka_unit_test_setup_teardown(thoughts_are_not_visible, begin, end),
        cmocka_unit_test_setup_teardown(usage_has_a_limit, begin, end),
        cmocka_unit_test_setup_teardown(vectors_are_whole, begin, end),
        cmocka_unit_test(thoughts_are_not_sent_back),
        cmocka_unit_test_setup_teardown(an_answer_is_a_message, begin, end),
        cmocka_unit_test_setup_teardown(answers_have_a_size, begin, end),
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
        cmocka_unit_test_setup_teardown(pieces_of_several_tokens, begin, end),
        cmocka_unit_test_setup_teardown(each_reply_is_the_first, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

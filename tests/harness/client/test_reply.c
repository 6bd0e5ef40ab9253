/* SPDX-License-Identifier: MIT
 *
 * test_reply.c - what a reply's events, in pieces that end anywhere, are: texts,
 * thoughts, counts, messages
 */
#include "tests/harness/client/reply_fixture.h"

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
        cmocka_unit_test_setup_teardown(pieces_of_several_tokens, begin, end),
        cmocka_unit_test_setup_teardown(each_reply_is_the_first, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

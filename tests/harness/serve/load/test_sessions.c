/* SPDX-License-Identifier: MIT
 *
 * test_sessions.c - conversations: the messages of each turn, its user's pause, and how
 * much of it the server has had
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/serve/load/sessions.h"

enum { N_USERS = 40 };

static struct load_prompts prompts = {.prompt = {LOAD_FIXED, 30, 30},
                                      .output = {LOAD_FIXED, 8, 8},
                                      .api = LOAD_CHAT,
                                      .model = "m",
                                      .seed = 5,
                                      .salt = 9,
                                      .tokens_per_word = 1};

static struct session_settings settings_of(const char *text)
{
    struct session_settings s;
    struct err err = ERR_INIT;

    if (session_settings_parse(&s, text, &err))
        fail_msg("%s: %s", text, err.msg);
    return s;
}

/* The body of a user's next request. */
static json_t *next(struct sessions *x, size_t user, struct load_record *r)
{
    struct err err = ERR_INIT;
    char *text;
    json_t *body;

    *r = (struct load_record){.end = LOAD_OK, .n_known = -1, .n_reasoning = -1};
    assert_int_equal(sessions_body(x, user, r, &text, &err), ST_OK);
    body = json_loads(text, 0, NULL);
    assert_non_null(body);
    free(text);
    return body;
}

static double answer(struct sessions *x, size_t user, const struct load_record *r,
                     const char *delta)
{
    struct answer a = {.n_calls = 0};
    struct err err = ERR_INIT;
    json_t *o = json_loads(delta, 0, NULL);
    double pause_s;

    assert_true(answer_add(&a, o));
    assert_int_equal(sessions_answered(x, user, r, &a, &pause_s, &err), ST_OK);
    answer_free(&a);
    json_decref(o);
    return pause_s;
}

static void settings_are_pairs(void **state)
{
    static const char *const wrong[] = {"",
                                        "think=5",
                                        "turns=0",
                                        "turns=5,",
                                        "turns=5,pause=1",
                                        "turns=5,x",
                                        "turns=1001",
                                        "turns=5,think=-1",
                                        "turns=5,tools=101",
                                        "turns=5,think=86401",
                                        "turns=5,next=0"};
    struct session_settings s = settings_of("turns=2-5,think=lognormal:8:0.5,tools=20");
    struct err err = ERR_INIT;

    (void)state;
    assert_true(s.turns.a == 2 && s.turns.b == 5 && s.think.kind == LOAD_LOGNORMAL);
    assert_true(s.next.a == 64 && s.tools_pct == 20);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        err = (struct err)ERR_INIT;
        if (session_settings_parse(&s, wrong[i], &err) != ST_USAGE)
            fail_msg("'%s' is taken", wrong[i]);
        assert_non_null(strstr(err.msg, "--sessions"));
    }
}

/* Each turn has all earlier messages, and one message more. */
static void histories_grow(void **state)
{
    const struct session_settings s = settings_of("turns=3,think=7,next=4");
    struct sessions *x;
    struct load_record r;
    struct err err = ERR_INIT;
    double first_s[1];
    json_t *before = NULL;
    int n_sessions = 0;

    (void)state;
    assert_int_equal(sessions_begin(&x, &s, &prompts, 1, first_s, &err), ST_OK);
    assert_true(first_s[0] >= 0 && first_s[0] <= 7);
    for (int i = 0; i < 12; i++) {
        json_t *body = next(x, 0, &r), *m = json_object_get(body, "messages");

        assert_int_equal(json_array_size(m), 2 * (size_t)r.turn - 1);
        assert_int_equal(r.n_requested, 8);
        if (r.turn == 1) {
            n_sessions++;
            assert_int_equal(r.n_known, 0);
        } else if (i) {
            for (size_t k = 0; k < json_array_size(before); k++)
                assert_true(
                    json_equal(json_array_get(m, k), json_array_get(before, k)));
            assert_string_equal(
                json_string_value(json_object_get(
                    json_array_get(m, json_array_size(m) - 2), "content")),
                "so");
            assert_int_equal(r.n_known, 105);
        }
        json_decref(before);
        before = json_incref(m);
        r.n_prompt = 100;
        r.n_tokens = 5;
        assert_true(answer(x, 0, &r, "{\"content\":\"so\"}") == 7);
        json_decref(body);
    }
    json_decref(before);
    assert_in_range(n_sessions, 3, 4);
    sessions_end(x);
}

/* Thoughts are not sent back, so what follows them is at another place; what the server
 * does not count is unknown; a failure ends the session. */
static void what_is_known(void **state)
{
    const struct session_settings s = settings_of("turns=50,think=0");
    struct sessions *x;
    struct load_record r;
    struct err err = ERR_INIT;
    double first_s[1];

    (void)state;
    assert_int_equal(sessions_begin(&x, &s, &prompts, 1, first_s, &err), ST_OK);
    json_decref(next(x, 0, &r));
    r.n_prompt = 100;
    r.n_tokens = 5;
    r.n_reasoning = 2;
    answer(x, 0, &r, "{\"content\":\"so\",\"reasoning_content\":\"hm\"}");
    json_decref(next(x, 0, &r));
    assert_int_equal(r.n_known, 100);
    r.n_prompt = r.n_tokens = -1;
    answer(x, 0, &r, "{\"content\":\"so\"}");
    json_decref(next(x, 0, &r));
    assert_int_equal(r.n_known, -1);
    assert_true(r.turn > 2);
    r.end = LOAD_FAILED;
    answer(x, 0, &r, "{}");
    json_decref(next(x, 0, &r));
    assert_int_equal(r.turn, 1);
    sessions_end(x);
}

/* A call's result follows at once; the last turn calls nothing. */
static void tools_are_called(void **state)
{
    const struct session_settings s = settings_of("turns=4,think=9,tools=100");
    struct sessions *x;
    struct load_record r;
    struct err err = ERR_INIT;
    double first_s[1];

    (void)state;
    assert_int_equal(sessions_begin(&x, &s, &prompts, 1, first_s, &err), ST_OK);
    for (int i = 0; i < 9; i++) {
        json_t *body = next(x, 0, &r), *m = json_object_get(body, "messages");
        const char *choice = json_string_value(json_object_get(body, "tool_choice"));
        const json_t *last = json_array_get(m, json_array_size(m) - 1);

        assert_int_equal(json_array_size(json_object_get(body, "tools")), 1);
        assert_string_equal(choice, r.turn < 4 ? "required" : "auto");
        if (i && r.turn > 1) {
            assert_string_equal(json_string_value(json_object_get(last, "role")),
                                "tool");
            assert_string_equal(
                json_string_value(json_object_get(last, "tool_call_id")), "c7");
        }
        assert_true(answer(x, 0, &r,
                           r.turn < 4
                               ? "{\"tool_calls\":[{\"index\":0,\"id\":\"c7\","
                                 "\"function\":{\"name\":\"look_up\","
                                 "\"arguments\":\"{}\"}}]}"
                               : "{\"content\":\"so\"}") == (r.turn < 4 ? 0 : 9));
        json_decref(body);
    }
    sessions_end(x);
}

/* From the first request on each turn is as frequent as the others, and users differ.
 */
static void users_are_met_in_the_middle(void **state)
{
    const struct session_settings s = settings_of("turns=4,think=2-6");
    struct sessions *x;
    struct err err = ERR_INIT;
    double first_s[N_USERS];
    int n_of[5] = {0};
    json_t *bodies = json_array();

    (void)state;
    assert_int_equal(sessions_begin(&x, &s, &prompts, N_USERS, first_s, &err), ST_OK);
    for (size_t u = 0; u < N_USERS; u++) {
        struct load_record r;
        json_t *body = next(x, u, &r);

        assert_in_range(r.turn, 1, 4);
        n_of[r.turn]++;
        for (size_t k = 0; k < u; k++)
            assert_false(json_equal(json_array_get(bodies, k), body));
        json_array_append_new(bodies, body);
        assert_true(first_s[u] >= 0 && first_s[u] < 6);
    }
    for (int turn = 1; turn <= 4; turn++)
        assert_in_range(n_of[turn], N_USERS / 4 - 8, N_USERS / 4 + 8);
    json_decref(bodies);
    sessions_end(x);
}

/* In an open loop users leave behind their last turn, and those who came before pause
 * at each turn alike: 2 a second, for 40 s each. */
static void users_come_and_leave(void **state)
{
    const struct session_settings s = settings_of("turns=5,think=10");
    struct load_prompts p = prompts;
    int n_first = 0, n = 0, n_of[6] = {0};

    (void)state;
    for (p.seed = 0; p.seed < 20; p.seed++, n += n_first) {
        struct sessions *x;
        struct load_record r;
        struct err err = ERR_INIT;
        double first_s[LOAD_MAX_USERS], pause_s = 0;

        assert_int_equal(sessions_arrive(&x, &s, &p, 2, first_s, &n_first, &err),
                         ST_OK);
        for (int u = 0; u < n_first; u++) {
            json_decref(next(x, (size_t)u, &r));
            n_of[r.turn]++;
            assert_true(first_s[u] > 0 && first_s[u] <= 10);
        }
        json_decref(next(x, LOAD_MAX_USERS - 1, &r)); /* one who comes later */
        for (int turn = 1; turn <= 5; turn++) {
            assert_int_equal(r.turn, turn);
            pause_s = answer(x, LOAD_MAX_USERS - 1, &r, "{\"content\":\"so\"}");
            assert_true(turn == 5 ? pause_s < 0 : pause_s == 10);
            json_decref(next(x, LOAD_MAX_USERS - 1, &r));
        }
        assert_int_equal(r.turn, 1);
        sessions_end(x);
    }
    assert_in_range(n, 20 * 80 - 160, 20 * 80 + 160); /* four standard deviations */
    assert_int_equal(n_of[1], 0);
    for (int turn = 2; turn <= 5; turn++)
        assert_in_range(n_of[turn], 20 * 20 - 80, 20 * 20 + 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_pairs),
        cmocka_unit_test(histories_grow),
        cmocka_unit_test(what_is_known),
        cmocka_unit_test(tools_are_called),
        cmocka_unit_test(users_are_met_in_the_middle),
        cmocka_unit_test(users_come_and_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

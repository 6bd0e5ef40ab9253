/* SPDX-License-Identifier: MIT
 *
 * test_completion_thinking.c - thoughts and answers, however they are cut into tokens
 */
#include "tests/support/test.h"

#include "harness/serve/scheduler/completion_thinking.h"

static char think[] = "<think>", no_think[] = "</think>", closing[] = "\n</think>\n\n";
static char analysis[] = "<|channel|>analysis<|message|>";
static char final[] = "<|end|><|channel|>final<|message|>";
static char plain[] = "<|channel|>final<|message|>";
static const struct chat_thinking tags = {think, no_think, closing, NULL};
static const struct chat_thinking channels = {analysis, final, final, plain};
static char end[] = "<|end|><|start|>";
static const struct chat_thinking split = {analysis, end, end, plain};

/* Texts in tokens of one to eleven bytes. */
static void expect(const struct chat_thinking *m, bool runs, const char *text,
                   const char *thought, const char *answer)
{
    for (size_t step = 1; step < 12; step++) {
        char first[500], second[500];
        struct thinking_bytes out = {first, second, 0, 0};
        struct completion_thinking t;

        completion_thinking_open(&t, m, runs, false);
        for (size_t i = 0; i < strlen(text); i += step) {
            const size_t left = strlen(text) - i;

            completion_thinking_add(&t, text + i, left < step ? left : step, false,
                                    &out);
        }
        completion_thinking_end(&t, &out);
        first[out.n_thought] = second[out.n_answer] = '\0';
        assert_string_equal(first, thought);
        assert_string_equal(second, answer);
    }
}

static void tags_around_thoughts(void **state)
{
    (void)state;
    expect(&tags, false, "<think>\na b\n\nc\n</think>\n\nd <e>\n", "a b\n\nc",
           "d <e>\n");
    expect(&tags, false, "\n <think>a</think>b", "a", "b");
    expect(&tags, true, "\na\n</think>\nb", "a", "b");
    expect(&tags, true, "a</thinx></think>b</think>", "a</thinx>", "b</think>");
    expect(&tags, true, "a<</think>b", "a<", "b");
    /* cut off */
    expect(&tags, true, "a \n</th", "a \n</th", "");
    expect(&tags, false, "<thin", "", "<thin");
    /* no thoughts: every byte is the answer's */
    expect(&tags, false, " <thing> </think>", "", " <thing> </think>");
    expect(&tags, false, "\n\na", "", "\n\na");
    expect(&tags, false, "", "", "");
}

static void channels_of_their_own(void **state)
{
    (void)state;
    expect(&channels, false,
           "<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>b", "a",
           "b");
    expect(&channels, false, "<|channel|>final<|message|>b", "", "b");
}

/* Behind thoughts an answer has its marker, or none. */
static void answers_have_a_marker(void **state)
{
    (void)state;
    expect(&split, false,
           "<|channel|>analysis<|message|>a<|end|>b<|end|><|start|><|channel|>final"
           "<|message|>\nc",
           "a<|end|>b", "c");
    expect(&split, true, "a<|end|><|start|>\nb <|channel|>final<|message|>", "a",
           "b <|channel|>final<|message|>");
    expect(&split, true, "a<|end|><|start|><|channel|>f", "a", "<|channel|>f");
}

/* A run of blanks that is longer than what is held back. */
static void many_blanks(void **state)
{
    char text[400], want[400], first[500], second[500];
    struct thinking_bytes out = {first, second, 0, 0};
    struct completion_thinking t;

    (void)state;
    memset(text, '\n', 300);
    strcpy(text + 300, "</think>b");
    text[0] = 'a';
    memset(want, '\n', sizeof want);
    want[0] = 'a';
    completion_thinking_open(&t, &tags, true, false);
    for (size_t i = 0; i < strlen(text); i++)
        completion_thinking_add(&t, text + i, 1, false, &out);
    assert_int_equal(out.n_answer, 1);
    assert_true(out.n_thought < 300 && out.n_thought > 0);
    assert_memory_equal(first, want, out.n_thought);
}

/* Control tokens are compared as they are spelled; where they are no marker's, nothing
 * of them is given. */
static void control_tokens(void **state)
{
    char first[500], second[500];
    struct thinking_bytes out = {first, second, 0, 0};
    struct completion_thinking t;

    (void)state;
    completion_thinking_open(&t, &channels, false, false);
    assert_true(completion_thinking_knows(&t, "<|channel|>", 11));
    assert_false(completion_thinking_knows(&t, "<|end|>", 7)); /* it ends the answer */
    assert_false(completion_thinking_knows(&t, "<|call|>", 8));
    assert_false(completion_thinking_knows(&t, "", 0));
    completion_thinking_add(&t, "<|channel|>", 11, true, &out);
    completion_thinking_add(&t, "analysis", 8, false, &out);
    completion_thinking_add(&t, "<|message|>", 11, true, &out);
    assert_int_equal(t.state, THINKING_RUNS);
    assert_true(completion_thinking_knows(&t, "<|end|>", 7));
    completion_thinking_add(&t, "a", 1, false, &out);
    completion_thinking_add(&t, "<|end|>", 7, true, &out);
    completion_thinking_add(&t, "b", 1, false, &out);
    assert_int_equal(out.n_thought, 2);
    assert_memory_equal(first, "ab", 2);
    completion_thinking_add(&t, "<|end|>", 7, true, &out);
    completion_thinking_add(&t, "<|channel|>", 11, true, &out);
    completion_thinking_add(&t, "final", 5, false, &out);
    completion_thinking_add(&t, "<|message|>", 11, true, &out);
    assert_int_equal(t.state, THINKING_ANSWERS);
    assert_false(completion_thinking_knows(&t, "<|end|>", 7));
    completion_thinking_add(&t, "c", 1, false, &out);
    assert_int_equal(t.state, THINKING_OVER);
    assert_int_equal(out.n_thought, 2);
    assert_int_equal(out.n_answer, 1);
}

/* An answer whose calls are read has its control tokens; thoughts have none. */
static void control_tokens_of_calls(void **state)
{
    static const struct chat_thinking marks = {analysis, end, end, NULL};
    char first[500], second[500];
    struct thinking_bytes out = {first, second, 0, 0};
    struct completion_thinking t;

    (void)state;
    completion_thinking_open(&t, &marks, true, true);
    completion_thinking_add(&t, "<|channel|>", 11, true, &out);
    completion_thinking_add(&t, "a", 1, false, &out);
    completion_thinking_add(&t, end, sizeof end - 1, true, &out);
    completion_thinking_add(&t, "<|channel|>", 11, true, &out);
    completion_thinking_add(&t, " to", 3, false, &out);
    second[out.n_answer] = first[out.n_thought] = '\0';
    assert_string_equal(first, "a");
    assert_string_equal(second, "<|channel|> to");
    out.n_answer = out.n_thought = 0;
    completion_thinking_open(&t, &marks, false, true);
    completion_thinking_add(&t, "<|channel|>", 11, true, &out);
    completion_thinking_add(&t, "analysis to", 11, false, &out);
    second[out.n_answer] = '\0';
    assert_string_equal(second, "<|channel|>analysis to");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_around_thoughts),
        cmocka_unit_test(channels_of_their_own),
        cmocka_unit_test(answers_have_a_marker),
        cmocka_unit_test(control_tokens_of_calls),
        cmocka_unit_test(many_blanks),
        cmocka_unit_test(control_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

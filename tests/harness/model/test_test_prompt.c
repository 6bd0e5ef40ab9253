/* SPDX-License-Identifier: MIT
 *
 * test_script.c - prompt and answer from a file, by a model's vocabulary and by the
 * rule
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/gguf/gguf.h"
#include "harness/model/test_prompt.h"

#define SHAKESPEARE TEST_DATA "models/shakespeare3M-f16.gguf"

static char path[] = "./test prompt-test-XXXXXX";

static void put(const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void rule_cuts_words(void **state)
{
    struct err err = ERR_INIT;
    struct test_prompt s;

    (void)state;
    /* "one" " two" "," " two" "\n" | "1234": "123" "4" " establis" "hment" */
    put("one two, two\n<answer>\n1234 establishment two");
    assert_int_equal(test_prompt_read(&s, path, NULL, 1000, &err), ST_OK);
    assert_null(s.tok);
    assert_int_equal(s.n_prompt, 5);
    assert_int_equal(s.n_answer, 5);
    assert_int_equal(s.ids[0], 999);
    assert_int_equal(s.ids[1], 998);
    assert_int_equal(s.ids[3], s.ids[1]); /* equal words, equal tokens */
    assert_int_equal(s.ids[9], s.ids[1]); /* also in the answer */
    for (int i = 0; i < 10; i++)
        assert_true(s.ids[i] >= 0 && s.ids[i] < 1000);
    test_prompt_free(&s);
    assert_int_equal(test_prompt_read(&s, path, NULL, 6, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "vocabulary"));
}

static void texts_without_an_answer(void **state)
{
    struct err err = ERR_INIT;
    struct test_prompt s;

    (void)state;
    put("a prompt that says <answer> in a line of its own: not here\n");
    assert_int_equal(test_prompt_read(&s, path, NULL, 1000, &err), ST_OK);
    assert_int_equal(s.n_answer, 0);
    assert_true(s.n_prompt > 10);
    test_prompt_free(&s);
    put("prompt\n<answer>\n");
    assert_int_equal(test_prompt_read(&s, path, NULL, 1000, &err), ST_INPUT);
    err_clear(&err);
    put("prompt\n<answer>");
    assert_int_equal(test_prompt_read(&s, path, NULL, 1000, &err), ST_INPUT);
    err_clear(&err);
    put("<answer>\nanswer without a prompt");
    assert_int_equal(test_prompt_read(&s, path, NULL, 1000, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "no prompt"));
    err_clear(&err);
    assert_int_equal(test_prompt_read(&s, "unknown", NULL, 1000, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "copy"));
    assert_non_null(strstr(err.msg, "free"));
}

/* By a real vocabulary the ids give the text again. */
static void vocabulary_cuts_texts(void **state)
{
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    struct test_prompt s;
    char piece[64], all[64] = "";

    (void)state;
    assert_int_equal(gguf_open(&g, SHAKESPEARE, &err), ST_OK);
    put("My lord\n<answer>\nGood night");
    assert_int_equal(test_prompt_read(&s, path, g, 4096, &err), ST_OK);
    assert_non_null(s.tok);
    assert_true(s.n_prompt > 1 && s.n_answer >= 2);
    for (size_t i = s.n_prompt; i < s.n_prompt + s.n_answer; i++) {
        const size_t n = tokenizer_piece(s.tok, s.ids[i], piece, sizeof piece);

        strncat(all, piece, n);
    }
    assert_non_null(strstr(all, "Good night"));
    test_prompt_free(&s);
    gguf_close(g);
}

/* What the charts of all sweeps rest on: one text repeats its prompt, one does not. */
static void shipped_texts_are_what_they_say(void **state)
{
    static const char *const names[] = {"copy", "free"};
    struct err err = ERR_INIT;

    (void)state;
    for (int t = 0; t < 2; t++) {
        int n_known = 0, n_pairs = 0;
        struct test_prompt s;

        assert_int_equal(test_prompt_read(&s, names[t], NULL, 32000, &err), ST_OK);
        assert_true(s.n_answer > 150 && s.n_answer < 400);
        for (size_t i = s.n_prompt; i + 2 < s.n_prompt + s.n_answer; i++) {
            bool known = false;

            for (size_t k = 0; k + 2 < s.n_prompt && !known; k++)
                known = !memcmp(s.ids + k, s.ids + i, 3 * sizeof *s.ids);
            n_known += known;
            n_pairs++;
        }
        assert_true(t == 0 ? n_known > 0.8 * n_pairs : n_known < 0.02 * n_pairs);
        test_prompt_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_cuts_words),
        cmocka_unit_test(texts_without_an_answer),
        cmocka_unit_test(vocabulary_cuts_texts),
        cmocka_unit_test(shipped_texts_are_what_they_say),
    };
    const int fd = mkstemp(path);
    int n_failed;

    if (fd < 0)
        return 1;
    close(fd);
    n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return n_failed;
}

/* SPDX-License-Identifier: MIT
 *
 * test_tokenizer_pre.c - where known tokenizers cut a text, and that no text makes
 * them slow
 */
#include "tests/support/test.h"

#include "engine/tokenizer/tokenizer_pre.h"

struct shown {
    char text[512];
    size_t n;
};

static enum status show_piece(void *arg, const char *piece, size_t len, struct err *err)
{
    struct shown *s = arg;

    (void)err;
    assert_true(len > 0 && s->n + len + 2 < sizeof s->text);
    memcpy(s->text + s->n, piece, len);
    s->n += len;
    s->text[s->n++] = '|';
    return ST_OK;
}

/* want: the pieces, each with | behind it. */
static void expect_cuts(const char *pre, const char *text, const char *want)
{
    struct err err = ERR_INIT;
    struct shown s = {.n = 0};
    struct pre_tokenizer *p;

    if (pre_tokenizer_open(&p, pre, strlen(pre), "file", &err))
        fail_msg("%s", err.msg);
    assert_int_equal(
        pre_tokenizer_cut(p, text, strlen(text), &(uint64_t){0}, show_piece, &s, &err),
        ST_OK);
    s.text[s.n] = '\0';
    if (strcmp(s.text, want))
        fail_msg("%s cuts '%s' into '%s', not '%s'", pre, text, s.text, want);
    pre_tokenizer_close(p);
}

static const char prose[] = "It's  12345 caf\xc3\xa9s!\n\n I'LL";

static void cuts_words(void **state)
{
    (void)state;
    expect_cuts("gpt-2", prose, "It|'s| | 12345| caf\xc3\xa9s|!|\n\n| I|'|LL|");
    expect_cuts("llama-bpe", prose, "It|'s| | |123|45| caf\xc3\xa9s|!\n\n| I|'LL|");
    expect_cuts("glm4", prose, "It|'s| | |123|45| caf\xc3\xa9s|!\n\n| I|'LL|");
    expect_cuts("qwen2", prose, "It|'s| | |1|2|3|4|5| caf\xc3\xa9s|!\n\n| I|'LL|");
    expect_cuts("stablelm2", prose, "It|'s| | |1|2|3|4|5| caf\xc3\xa9s|!\n\n| I|'LL|");
    expect_cuts("starcoder", prose, "It|'s|  |1|2|3|4|5| caf\xc3\xa9s|!|\n\n| I|'|LL|");
    expect_cuts("falcon", prose, "It|'|s| | |123|45| caf\xc3\xa9s|!|\n\n| I|'|LL|");
    expect_cuts("default", prose, "It|'|s| | |123|45| caf\xc3\xa9s|!|\n\n| I|'|LL|");
    expect_cuts("deepseek-coder", prose,
                "It|'|s|  |1|2|3|4|5| caf\xc3\xa9s|!|\n|\n| I|'|LL|");
    /* Its punctuation is : to ~, and so has ASCII letters in it. */
    expect_cuts("deepseek-llm", prose,
                "It|'|s|  |12345| caf|\xc3\xa9|s|!|\n|\n| I|'|LL|");
    expect_cuts("deepseek-v3", prose, "It|'s|  |123|45| caf\xc3\xa9s|!\n\n| I|'LL|");
    expect_cuts("tekken", "HelloWorld's 12 a//\n", "Hello|World|'s| |1|2| a|//\n|");
    expect_cuts("gpt-4o", "HelloWorld's 1234", "Hello|World's| |123|4|");
    expect_cuts("bloom", "Hi there, you (all)", "Hi| there|,| you| (|all|)|");
    expect_cuts("seed-coder", "a!\nb", "a|!|\n|b|");
    expect_cuts("bailingmoe", "a \n\n b", "a| \n\n| b|");
    expect_cuts("deepseek-llm", "a  ", "a|  |");
}

static void cuts_unicode(void **state)
{
    (void)state;
    /* Letters, numbers and blanks of Unicode: Greek, Tamil with a vowel sign (a mark),
     * Arabic digits, U+3000, U+0085; U+180E is none. */
    expect_cuts("gpt-2", "\xce\xb1\xce\xb2\xd9\xa1\xd9\xa2",
                "\xce\xb1\xce\xb2|\xd9\xa1\xd9\xa2|");
    expect_cuts("qwen2", "\xe0\xae\x95\xe0\xaf\x8d\xe0\xae\x95",
                "\xe0\xae\x95|\xe0\xaf\x8d\xe0\xae\x95|");
    expect_cuts("qwen35", "\xe0\xae\x95\xe0\xaf\x8d\xe0\xae\x95",
                "\xe0\xae\x95\xe0\xaf\x8d\xe0\xae\x95|");
    expect_cuts("gpt-2", "a\xe3\x80\x80\xc2\x85", "a|\xe3\x80\x80\xc2\x85|");
    expect_cuts("gpt-2", "!\xe1\xa0\x8e", "!\xe1\xa0\x8e|");
    expect_cuts("deepseek-v3", "\xe3\x81\x82\xe4\xb8\x80x",
                "\xe3\x81\x82\xe4\xb8\x80|x|");
    /* What is no UTF-8 stands alone. */
    expect_cuts("gpt-2", "a\xff\xfe b\xe2\x82", "a|\xff\xfe| b|\xe2\x82|");
}

static enum status add_length(void *arg, const char *piece, size_t len, struct err *err)
{
    (void)piece;
    (void)err;
    *(size_t *)arg += len;
    return ST_OK;
}

/* Time in proportion to the length, whatever the text repeats: these would take
 * hours. */
static void cuts_long_texts(void **state)
{
    static const char *const pres[] = {"gpt-2",        "llama-bpe",      "qwen2",
                                       "deepseek-llm", "deepseek-coder", "deepseek-v3",
                                       "falcon",       "tekken",         "gpt-4o",
                                       "bloom",        "default",        "bailingmoe"};
    static const char *const units[] = {" ", "\n", "A", "a", "1", "!", "\xe4\xb8\x80"};
    const size_t len = 600000;
    char *text = malloc(len + 1);

    (void)state;
    assert_non_null(text);
    for (size_t p = 0; p < sizeof pres / sizeof *pres; p++) {
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            struct err err = ERR_INIT;
            struct pre_tokenizer *pre;
            const size_t n = strlen(units[u]);
            size_t total = 0;

            for (size_t i = 0; i < len; i++)
                text[i] = units[u][i % n];
            text[len] = 'x';
            assert_int_equal(
                pre_tokenizer_open(&pre, pres[p], strlen(pres[p]), "file", &err),
                ST_OK);
            assert_int_equal(pre_tokenizer_cut(pre, text, len + 1, &(uint64_t){0},
                                               add_length, &total, &err),
                             ST_OK);
            assert_int_equal(total, len + 1);
            pre_tokenizer_close(pre);
        }
    }
    free(text);
}

/* Cuts text by a pattern of a file; what it says when it gives up is in err. */
static enum status cut_by_pattern(const char *pattern, const char *text, size_t len,
                                  size_t *total, struct err *err)
{
    const struct gguf_str s = {pattern, strlen(pattern)};
    struct pre_tokenizer *p;
    enum status st;

    if (pre_tokenizer_open_patterns(&p, &s, 1, false, "file", err))
        fail_msg("%s", err->msg);
    *total = 0;
    uint64_t allowed = regex_allowance(len);
    st = pre_tokenizer_cut(p, text, len, &allowed, add_length, total, err);
    pre_tokenizer_close(p);
    return st;
}

/* A match that begins behind its end would be cut again and again. */
static void matches_advance(void **state)
{
    static const char *const patterns[] = {
        "(?(DEFINE)(?<k>ab\\K))(?=(?&k))",  /* ends where it was looked for */
        "(?(DEFINE)(?<k>ab\\K))(?=(?&k))a", /* ends before it begins */
    };

    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct err err = ERR_INIT;
        size_t total;

        assert_int_equal(cut_by_pattern(patterns[i], "xabab", 5, &total, &err),
                         ST_INPUT);
        assert_non_null(strstr(err.msg, "begins behind its end"));
        assert_true(total <= 5);
    }
}

/* Each match is within its limit, and all of them together would take minutes. */
static void a_text_has_a_budget(void **state)
{
    const size_t len = 20000;
    struct err err = ERR_INIT;
    char *text = malloc(len);
    size_t total;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', len);
    assert_int_equal(cut_by_pattern("(?:a?){20}x|(?:a?){20}y|(?:a?){20}z|.", text, len,
                                    &total, &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "takes too long"));
    err = (struct err)ERR_INIT;
    assert_int_equal(cut_by_pattern("a{1,3}", text, len, &total, &err), ST_OK);
    assert_int_equal(total, len);
    free(text);
}

/* One match looks at the whole text ahead of each character, from each character:
 * within its limits, and ten minutes. */
static void a_match_has_a_budget(void **state)
{
    static const char *const patterns[] = {
        "(?:(?=[^1]*+1)1|[a-z])*+(?:2|4)|3",
        "(?:(?![^1]*+1)[a-z])*+(?:2|4)|3",
    };
    const size_t len = 20000;
    char *text = malloc(len);

    (void)state;
    assert_non_null(text);
    memset(text, 'a', len);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct err err = ERR_INIT;
        size_t total;

        assert_int_equal(cut_by_pattern(patterns[i], text, len, &total, &err),
                         ST_INPUT);
        assert_non_null(strstr(err.msg, "broken or hostile"));
    }
    free(text);
}

/* Parts of a text have one allowance together. */
static void parts_share_a_budget(void **state)
{
    static const char pattern[] = "(?:.?){20}(?:x|y)|(?:.?){20}(?:z|w)|.";
    const struct gguf_str s = {pattern, strlen(pattern)};
    uint64_t allowed = regex_allowance(1000);
    struct err err = ERR_INIT;
    struct pre_tokenizer *p;
    enum status st = ST_OK;
    size_t total = 0, n = 0;

    (void)state;
    assert_int_equal(pre_tokenizer_open_patterns(&p, &s, 1, false, "file", &err),
                     ST_OK);
    for (; n < 2000 && st == ST_OK; n++)
        st = pre_tokenizer_cut(p, "abcdefghij", 10, &allowed, add_length, &total, &err);
    assert_int_equal(st, ST_INPUT);
    assert_int_equal(allowed, 0);
    pre_tokenizer_close(p);
}

/* Patterns of a file are no slower than linear where the same ones are known. */
static void patterns_of_files_take_long_texts(void **state)
{
    static const char *const units[] = {" ", "\n", "a", "1", "!", "ab cd "};
    const size_t len = 300000;
    char regex[PRE_MAX_PATTERN_BYTES];
    char *text = malloc(len);

    (void)state;
    assert_non_null(text);
    assert_true(regex_spell(
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,2}|"
        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
        regex, sizeof regex));
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        struct err err = ERR_INIT;
        const size_t n = strlen(units[u]);
        size_t total;

        for (size_t i = 0; i < len; i++)
            text[i] = units[u][i % n];
        if (cut_by_pattern(regex, text, len, &total, &err))
            fail_msg("'%s': %s", units[u], err.msg);
        assert_int_equal(total, len);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_words),
        cmocka_unit_test(cuts_unicode),
        cmocka_unit_test(cuts_long_texts),
        cmocka_unit_test(matches_advance),
        cmocka_unit_test(a_text_has_a_budget),
        cmocka_unit_test(a_match_has_a_budget),
        cmocka_unit_test(parts_share_a_budget),
        cmocka_unit_test(patterns_of_files_take_long_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

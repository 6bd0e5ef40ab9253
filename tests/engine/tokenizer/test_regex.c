/* SPDX-License-Identifier: MIT
 *
 * test_regex.c - regular expressions of tokenizers: how they are spelled for PCRE2,
 * what has no equivalent there, and limits of a search
 */
#include "tests/support/test.h"

#include "engine/tokenizer/tokenizer_regex.h"

#define SCRIPT(name) "\\p{sc:" name "}"

static void spelled_for_pcre2(void **state)
{
    static const char *const cases[][2] = {
        {"a+b", "a+b"},
        {"a\\", "a\\"},
        {"\\d", "\\d"},
        {"\\s", "[" REGEX_WS "]"},
        {"[\\s]", "[" REGEX_WS "]"},
        {"\\S", "[^" REGEX_WS "]"},
        {"\\h[\\h]", "[0-9A-Fa-f][0-9A-Fa-f]"},
        {"\\H", "[^0-9A-Fa-f]"},
        {"\\u00e9", "\\x{00e9}"},
        {"\\u00e", "\\u00e"},
        {"\\p{L}\\P{Lu}", "\\p{L}\\P{Lu}"},
        {"\\p{^N}", "\\p{^N}"},
        {"\\p{Alpha}\\p{Digit}\\p{Any}", "\\p{Alphabetic}\\p{Nd}\\p{Any}"},
        {"\\p{sc=Han}", "\\p{sc=Han}"},
        {"\\p{scx:Han}", "\\p{scx:Han}"},
        {"x{,3}", "x{0,3}"},
        {"x{2}", "x{2}"},
        {"x{2,3}?", "x{2,3}?"}, /* a short one in both */
        {"x{2}?", "(?:x{2})?"},
        {"x{2}+", "(?:x{2})+"},
        {"ab{2,3}+c", "a(?:b{2,3})+c"},
        {"a[bc]{2}+", "a(?:[bc]{2})+"},
        {"a(?:bc){2}+", "a(?:(?:bc){2})+"},
        {"\\d{2}+", "(?:\\d{2})+"},
        {"a\xc3\xa9{2}+", "a(?:\xc3\xa9{2})+"},
        {"x{}", "x{}"},
        {"x{2", "x{2"},
        {"x{a}", "x{a}"},
        {"[{2}]", "[{2}]"},
        {"[*]+", "[*]+"},
        {"(?i:a)(?=b)", "(?i:a)(?=b)"},
        {"(?i)a", "(?i)a"},
        {"a)", "a)"},
        {"[a&b]", "[a&b]"},
        {"[a(]", "[a(]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[400];

        if (!regex_spell(cases[i][0], out, sizeof out) || strcmp(out, cases[i][1]) != 0)
            fail_msg("%s: '%s'", cases[i][0], out);
        /* room for all but the zero is not enough */
        assert_false(regex_spell(cases[i][0], out, strlen(cases[i][1])));
        assert_true(regex_spell(cases[i][0], out, strlen(cases[i][1]) + 8));
    }
}

static void without_an_equivalent(void **state)
{
    static const char *const cases[] = {
        "\\Z",      "\\R",
        "\\X",      "[\\W]",
        "[\\H]",    "[\\B]",
        "[a[bc]]",  "[a&&b]",
        "(?m:a)",   "(?s)a",
        "(?i-m:a)", "\\pL",
        "\\p{L",    "\\p{}",
        "\\p{^}",   "\\p{1234567890123456789012345678901234567890123456789}",
    };
    char deep[200], out[400];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (regex_spell(cases[i], out, sizeof out))
            fail_msg("%s: '%s'", cases[i], out);
    memset(deep, '(', 65);
    deep[64] = '\0';
    assert_true(regex_spell(deep, out, sizeof out));
    deep[64] = '(';
    deep[65] = '\0';
    assert_false(regex_spell(deep, out, sizeof out));
}

static void wrong_patterns_get_a_sentence(void **state)
{
    struct regex *r = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(regex_open(&r, "a(", 2, true, "model", &err), ST_INPUT);
    assert_non_null(strstr(err.msg,
                           "model: a pattern by which the tokenizer cuts texts "
                           "is wrong at byte 2"));
    err_clear(&err);
    assert_int_equal(regex_open(&r, "a(", 2, false, "model", &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "refuses a pattern at byte 2"));
    assert_null(r);
}

/* The parts of a text that a pattern of a file finds, or why it ends. */
static enum status find_all(const char *pattern, const char *text, size_t len,
                            uint64_t allowed_ns, char *parts, size_t cap,
                            struct err *err)
{
    struct regex *r;
    struct regex_search s;
    struct regex_place place = {0, 0, false};
    size_t begin = 0, end = 0, used = 0;
    enum status st;

    if (regex_open(&r, pattern, strlen(pattern), true, "model", err))
        fail_msg("%s", err->msg);
    assert_int_equal(regex_search_begin(&s, true, allowed_ns, err), ST_OK);
    parts[0] = '\0';
    while (!(st = regex_next(&s, r, text, len, &place, &begin, &end)) && begin < len)
        used += (size_t)snprintf(parts + used, cap - used, "%s%zu-%zu", used ? " " : "",
                                 begin, end);
    assert_true(regex_search_end(&s) <= allowed_ns);
    regex_close(r);
    return st;
}

static void matches_and_limits(void **state)
{
    static const struct {
        const char *pattern, *text, *parts;
    } cases[] = {
        {"a+", "aabaa", "0-2 3-5"},
        {"a*", "aabb", "0-2 3-3"}, /* empty, but not behind the last one */
        {"x", "aab", ""},
        {"$", "a\nb", "1-1"},
        {"(?<=a)", "ab\xc3\xa9", "1-1"},
    };
    char parts[100];
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(find_all(cases[i].pattern, cases[i].text,
                                  strlen(cases[i].text), 1000000000u, parts,
                                  sizeof parts, &err),
                         ST_OK);
        if (strcmp(parts, cases[i].parts) != 0)
            fail_msg("%s: '%s'", cases[i].pattern, parts);
    }

    const size_t n = 2000000, some = 20000;
    char *text = malloc(n);
    static const struct {
        const char *pattern, *message;
        uint64_t allowed_ns;
    } ends[] = {
        {"(?:a|b)+", "exceeds the limits of a match", 10000000000u},
        {"(a+)+(a+)+(a+)+(b|c)", "takes too long", 5000000u},
        {"a", "takes too long", 0},
    };

    memset(text, 'a', n);
    /* Compiled code has no room for that many steps back; the interpreter has. */
    if (find_all("(?:a|b)+", text, some, 1000000000u, parts, sizeof parts, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(parts, "0-20000");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        err_clear(&err);
        if (find_all(ends[i].pattern, text, n, ends[i].allowed_ns, parts, sizeof parts,
                     &err) != ST_INPUT ||
            !strstr(err.msg, ends[i].message))
            fail_msg("%s: '%s'", ends[i].pattern, err.msg);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spelled_for_pcre2),
        cmocka_unit_test(without_an_equivalent),
        cmocka_unit_test(wrong_patterns_get_a_sentence),
        cmocka_unit_test(matches_and_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

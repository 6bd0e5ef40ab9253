/* SPDX-License-Identifier: MIT
 *
 * test_format.c - figures as people read them
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/base/format.h"

static void texts(void **state)
{
    static const int cpus[] = {0, 1, 2, 3, 8, 10, 11};
    char buf[32];

    (void)state;
    format_cpus(buf, sizeof buf, cpus, 7);
    assert_string_equal(buf, "0-3,8,10-11");
    format_cpus(buf, 8, cpus, 7);
    assert_string_equal(buf, "0-3,...");
    format_cpus(buf, sizeof buf, cpus, 0);
    assert_string_equal(buf, "");
    format_size(buf, sizeof buf, UINT64_C(6) << 30);
    assert_string_equal(buf, "6G");
    format_size(buf, sizeof buf, UINT64_C(1536) << 20);
    assert_string_equal(buf, "1536M");
    format_size(buf, sizeof buf, 1000001);
    assert_string_equal(buf, "1000001");
}

/* What does not fit is cut, and the buffer stays a text. */
static void append(void **state)
{
    char buf[8] = "ab";

    (void)state;
    text_append(buf, sizeof buf, "%d", 123);
    assert_string_equal(buf, "ab123");
    text_append(buf, sizeof buf, "%s", "45678");
    assert_string_equal(buf, "ab12345");
    text_append(buf, sizeof buf, "%s", "9");
    assert_string_equal(buf, "ab12345");
}

static void measured_figures(void **state)
{
    char buf[32];

    (void)state;
    assert_string_equal(format_measured(buf, sizeof buf, 16871.23, 843, 3), "16870");
    assert_string_equal(format_measured(buf, sizeof buf, 16871.23, 8.43, 3), "16871.2");
    assert_string_equal(format_measured(buf, sizeof buf, 9.4472, 0.0213, 3), "9.447");
    assert_string_equal(format_measured(buf, sizeof buf, 9.4472, 0.21, 3), "9.45");
    assert_string_equal(format_measured(buf, sizeof buf, 9.4472, 0.00021, 3), "9.447");
    assert_string_equal(format_measured(buf, sizeof buf, 9.4472, NAN, 3), "9.447");
    assert_string_equal(format_measured(buf, sizeof buf, 9.4472, 0, 4), "9.4472");
    assert_string_equal(format_measured(buf, sizeof buf, 12, 430, 3), "10");
    /* However wide the interval is, no figure becomes zero. */
    assert_string_equal(format_measured(buf, sizeof buf, 0.294, 25, 4), "0.3");
    assert_string_equal(format_measured(buf, sizeof buf, 3, 430, 3), "3");
    assert_string_equal(format_measured(buf, sizeof buf, -0.04, 25, 4), "-0.04");
    assert_string_equal(format_measured(buf, sizeof buf, 0, 25, 4), "0");
}

static const char *word(const char *text)
{
    static char buf[200];

    buf[0] = '\0';
    shell_word_append(buf, sizeof buf, text);
    return buf;
}

/* A command can be copied from a terminal, whatever a file is called. */
static void shell_words(void **state)
{
    (void)state;
    assert_string_equal(word("a/b-1.gguf:Q4_0"), " a/b-1.gguf:Q4_0");
    assert_string_equal(word("a b"), " 'a b'");
    assert_string_equal(word("it's"), " 'it'\\''s'");
    assert_string_equal(word(""), " ''");
    assert_string_equal(word("caf\xc3\xa9"), " 'caf\xc3\xa9'");
    assert_string_equal(word("a\x1b'\n"), " $'a\\x1b\\x27\\x0a'");
    assert_string_equal(word("\xc2\x9b"), " $'\\xc2\\x9b'");
    assert_string_equal(word("::error::##[x"), " $'::error::\\x23\\x23\\x5bx'");
}

static void squeezed(void **state)
{
    char padded[] = "  AMD  EPYC Processor\t\t  ", blank[] = "   ", none[] = "",
         plain[] = "a b";

    (void)state;
    assert_string_equal(text_squeeze(padded), "AMD EPYC Processor");
    assert_string_equal(text_squeeze(blank), "");
    assert_string_equal(text_squeeze(none), "");
    assert_string_equal(text_squeeze(plain), "a b");
}

static void shortened(void **state)
{
    char buf[64];

    (void)state;
    assert_string_equal(text_shorten(buf, sizeof buf, "abcdefgh", 8), "abcdefgh");
    assert_string_equal(text_shorten(buf, sizeof buf, "abcdefghi", 8),
                        "abcd\xe2\x80\xa6ghi");
    assert_string_equal(text_shorten(buf, sizeof buf, "\xc3\xa4\xc3\xb6\xc3\xbc", 3),
                        "\xc3\xa4\xc3\xb6\xc3\xbc");
    assert_string_equal(text_shorten(buf, sizeof buf, "\xc3\xa4\xc3\xb6\xc3\xbcxyz", 3),
                        "\xc3\xa4\xe2\x80\xa6z");
    assert_string_equal(text_shorten(buf, sizeof buf, "", 3), "");
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(format_path("a/\x1b b").text, "a/\\x1b b");
    assert_string_equal(format_path("::error::a/##[b").text, ".:error::a/.#[b");
    assert_string_equal(format_path(NULL).text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured_figures),
        cmocka_unit_test(texts),
        cmocka_unit_test(append),
        cmocka_unit_test(shell_words),
        cmocka_unit_test(squeezed),
        cmocka_unit_test(shortened),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

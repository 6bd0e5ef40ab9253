/* SPDX-License-Identifier: MIT
 *
 * test_status.c - messages and texts that quote what others have written
 */
#include "tests/support/test.h"

#include "engine/base/status.h"
#include "engine/base/utf8.h"

static void messages_are_one_harmless_line(void **state)
{
    struct err err = ERR_INIT;
    char name[600];

    (void)state;
    err_set(&err, ST_INPUT, "the file %s is broken",
            "\x1b]0;owned\x07\n::error::x\xc2\x9bm");
    assert_string_equal(err.msg, "the file \\x1b]0;owned\\x07\\x0a::error::x\\xc2\\x9bm"
                                 " is broken");
    err = (struct err)ERR_INIT;
    err_set(&err, ST_INPUT, "caf\xc3\xa9 \xe2\x80\xaegnp.exe \xe2\x80\xa8 \xff");
    assert_string_equal(err.msg,
                        "caf\xc3\xa9 \\xe2\\x80\\xaegnp.exe \\xe2\\x80\\xa8 \\xff");
    memset(name, '\x1b', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    err = (struct err)ERR_INIT;
    err_set(&err, ST_INPUT, "%s", name);
    assert_true(strlen(err.msg) < sizeof err.msg);
    assert_null(strchr(err.msg, '\x1b'));
}

/* A path may begin a message, and a message a line. */
static void no_message_is_a_workflow_command(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    err_set(&err, ST_IO, "%s cannot be read: std::x", "::error::a ::b/##[group]c");
    assert_string_equal(err.msg, ".:error::a .:b/.#[group]c cannot be read: std::x");
    assert_int_equal(utf8_control("\xc2\x9b", 2), 0x9b);
    assert_int_equal(utf8_control("\xe2\x80\xae", 3), 0x202e);
    assert_int_equal(utf8_control("\x7f", 1), 0x7f);
    assert_int_equal(utf8_control("\xc3\xa9", 2), 0);
}

static void terminals_get_lines_and_tabs(void **state)
{
    static const char text[] = "a\tb\n\x1b[2J\r\xe2\x80\xae\xf0\x9f\x98\x80\xff\0z";
    char out[4 * sizeof text];
    const size_t n = utf8_terminal(out, text, sizeof text - 1);

    (void)state;
    out[n] = '\0';
    assert_string_equal(
        out, "a\tb\n\\x1b[2J\\x0d\\xe2\\x80\\xae\xf0\x9f\x98\x80\\xff\\x00z");
    memset(out, 0, sizeof out);
    assert_int_equal(utf8_terminal(out, "\x1b\x1b", 2), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_one_harmless_line),
        cmocka_unit_test(no_message_is_a_workflow_command),
        cmocka_unit_test(terminals_get_lines_and_tabs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

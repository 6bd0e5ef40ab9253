/* SPDX-License-Identifier: MIT
 *
 * test_json_read.c - JSON as others write it: what nobody asks for refuses nothing, and
 * what is asked for is not another value than was written
 */
#include "tests/support/test.h"

#include <math.h>

#include "engine/base/json_read.h"
#include "engine/base/jsonfile.h"

static const struct json_limit small = {4000, 100};

/* {"x": VALUE}, its x. */
static json_t *read_one(const char *value, json_t **x)
{
    char text[3000];
    json_t *root = NULL;
    struct err err = ERR_INIT;

    snprintf(text, sizeof text, "{\"x\": %s, \"y\": \"kept\"}", value);
    if (json_read(&root, "it", text, strlen(text), small, 0, &err))
        fail_msg("%s: %s", text, err.msg);
    assert_string_equal(json_text(json_member(root, "y")), "kept");
    *x = json_object_get(root, "x");
    return root;
}

static void whole_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } exact[] = {{"0", 0},
                 {"-0", 0},
                 {"9223372036854775807", INT64_MAX},
                 {"-9223372036854775808", INT64_MIN},
                 {"9223372036854775806", INT64_MAX - 1},
                 {"1152921504606846977", 1152921504606846977},
                 {"8.0", 8},
                 {"8e0", 8},
                 {"-9007199254740992.0", -9007199254740992}};
    static const struct {
        const char *text;
        double value;
    } real[] = {{"1e308", 1e308}, {"1E+300", 1e300}, {"1e-400", 0}, {"0.5", 0.5}};

    (void)state;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        json_t *x, *root = read_one(exact[i].text, &x);
        int64_t n = -1;

        assert_true(json_whole(x, &n));
        assert_true(n == exact[i].value);
        json_decref(root);
    }
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        json_t *x, *root = read_one(real[i].text, &x);
        int64_t n = -1;

        assert_true(json_is_real(x));
        assert_true(json_real_value(x) == real[i].value);
        assert_true(json_whole(x, &n) == (real[i].value == 0));
        json_decref(root);
    }
}

/* As numbers in a string they are what they were. */
static void no_numbers(void **state)
{
    static const char *const none[] = {"9223372036854775808",
                                       "-9223372036854775809",
                                       "1000000000000000019884624838656",
                                       "NaN",
                                       "Infinity",
                                       "-Infinity",
                                       "1e400",
                                       "-1e400",
                                       "1.5E+999",
                                       "1e+9999",
                                       "1.5e9999",
                                       "1e99999999999999999999"};
    char digits[600] = "", many[2000] = "", shown[8];

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char quoted[64], list[160];
        json_t *x, *root = read_one(none[i], &x);

        assert_string_equal(json_no_number(x), none[i]);
        assert_null(json_text(x));
        assert_false(json_is_number(x));
        json_decref(root);
        snprintf(quoted, sizeof quoted, "\"%s\"", none[i]);
        root = read_one(quoted, &x);
        assert_string_equal(json_text(x), none[i]);
        assert_null(json_no_number(x));
        json_decref(root);
        snprintf(list, sizeof list, "[%s,1,%s]", none[i], none[i]);
        root = read_one(list, &x);
        assert_string_equal(json_no_number(json_array_get(x, 2)), none[i]);
        assert_int_equal(json_integer_value(json_array_get(x, 1)), 1);
        json_decref(root);
    }
    memset(digits, '9', 400);
    memset(many, '1', 1500);
    for (int i = 0; i < 3; i++) {
        const char *text = i ? many : digits;

        if (i == 2) /* a real one, too */
            strcpy(many + 1500, ".5");
        json_t *x, *root = read_one(text, &x);

        assert_string_equal(json_no_number(x), text);
        json_decref(root);
    }
    assert_string_equal(json_shown(shown, sizeof shown, NULL), "missing");
}

/* Written again they are numbers again; texts that only look like it are not touched.
 */
static void no_numbers_are_written(void **state)
{
    static const char *const same[] = {
        "{\"a\":1e400,\"b\":[9223372036854775808,-Infinity,\"x\"],\"c\":NaN}",
        "[\"\\u0000number:\",\"\\u0000number:five\",\"\\u0000number:1\\n\"]",
        "[\"\\\"\\u0000number:5\"]",
        "[\"\\u0000numbers:5\",\"\\u0000number:01\",\"\\u0000number:1x\"]",
        "[1E+400,-0.1e9999,\"\\u0000number:1e\",\"\\u0000number:1e+\"]",
        "[\"\\\\\\\"\\u0000number:5\"]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        json_t *root = json_try(same[i], strlen(same[i]), small, 0);
        char *text = json_write(root, JSON_COMPACT);

        assert_string_equal(text, same[i]);
        free(text);
        json_decref(root);
    }
}

static void texts(void **state)
{
    static const struct {
        const char *text, *value;
        size_t len; /* 0: that of value */
    } cases[] = {{"\"\\ud83d\"", "\xef\xbf\xbd", 0},
                 {"\"a\\ude00b\"",
                  "a\xef\xbf\xbd"
                  "b",
                  0},
                 {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", 0},
                 {"\"\\uD83D\\uD83D\\uDE00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80", 0},
                 {"\"\\\\ud83d\"", "\\ud83d", 0},
                 {"\"\\\"NaN, 1e400\"", "\"NaN, 1e400", 0},
                 {"\"a\\u0000b\"", "a\0b", 3}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *x, *root = read_one(cases[i].text, &x);
        const size_t len = cases[i].len ? cases[i].len : strlen(cases[i].value);

        assert_int_equal(json_string_length(x), len);
        assert_memory_equal(json_string_value(x), cases[i].value, len);
        assert_true((json_text(x) != NULL) == !cases[i].len);
        json_decref(root);
    }
}

static void marks_keys_and_bytes(void **state)
{
    static const char marked[] = "\xef\xbb\xbf{\"a\": 1, \"a\": NaN, \"a\": 3}";
    static const char half[] = "{\"x\": \"a\xf0\x9f\", \"y\": \"\x98\x80 \xc3\xa4\"}";
    json_t *root;

    (void)state;
    root = json_try(marked, strlen(marked), small, 0);
    assert_int_equal(json_integer_value(json_object_get(root, "a")), 3);
    json_decref(root);
    assert_null(json_try(marked, strlen(marked), small, JSON_UNIQUE));
    assert_null(json_try(half, strlen(half), small, 0));
    root = json_try(half, strlen(half), small, JSON_LOSSY);
    assert_string_equal(json_text(json_object_get(root, "x")),
                        "a\xef\xbf\xbd\xef\xbf\xbd");
    assert_string_equal(json_text(json_object_get(root, "y")),
                        "\xef\xbf\xbd\xef\xbf\xbd \xc3\xa4");
    json_decref(root);
}

static void what_is_no_json(void **state)
{
    static const char *const bad[] = {"",
                                      "1",
                                      "{",
                                      "{\"a\": nan}",
                                      "{\"a\": +NaN}",
                                      "{\"a\": NaN1}",
                                      "[01]",
                                      "[1.]",
                                      "[--1]",
                                      "[1e]",
                                      "[- 1]",
                                      "NaN",
                                      "[.5]",
                                      "[1.e9999]",
                                      "[1.5.5e9999]",
                                      "[-.5e9999]",
                                      "[-e9999]",
                                      "[01.5e9999]",
                                      "[1e+9999-]",
                                      "[1e9999e1]",
                                      "[\"\\u\"]",
                                      "[\"\\u00g0\"]",
                                      "[\"\\u00G0\"]",
                                      "[\"\\u00:0\"]",
                                      "[\"\\ud8\"]",
                                      "[000000000000000000000000001]",
                                      "\xef\xbb",
                                      "\xef\xbb\xbf",
                                      "[1]2",
                                      "{NaN: 1}",
                                      "{\"a\\u0000\": 1}"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (json_try(bad[i], strlen(bad[i]), small, JSON_LOSSY))
            fail_msg("%s was read", bad[i]);
    /* an exponent without digits, behind a number that is too large */
    char many[420];

    sprintf(many, "[%0400d.0e]", 1);
    memset(many + 1, '9', 400);
    assert_null(json_try(many, strlen(many), small, JSON_LOSSY));
}

/* No byte is read behind the end, however a text ends. */
static void cut_texts(void **state)
{
    static const char whole[] =
        "\xef\xbb\xbf{\"\\ud83d\\ude00\\ud83d\": [NaN, -Infinity, "
        "-1e400, 18446744073709551616, \"\xf0\x9f\x98\"]}";

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++) {
        char *text = malloc(n + 1); /* of its own, so that a sanitizer sees the end */
        json_t *root;

        memcpy(text, whole, n);
        root = json_try(text, n, small, JSON_LOSSY);
        assert_true((root != NULL) == (n == sizeof whole - 1));
        json_decref(root);
        free(text);
    }
}

/* Where a real number is needed, a large one is one. */
static void large_numbers(void **state)
{
    struct jsonfile f = {.path = "it"};
    struct err err = ERR_INIT;
    double d = 7;
    json_t *x;

    (void)state;
    f.root = read_one("1000000000000000019884624838656", &x);
    assert_int_equal(json_get_real(&f, f.root, "x", 0, 1e40, &d, &err), ST_OK);
    assert_true(d == 1e30);
    jsonfile_free(&f);
}

/* A member that is needed is refused by its name and with its value. */
static void needed_members(void **state)
{
    static const struct {
        const char *value, *says;
    } bad[] = {
        {"1e400", "it: x is 1e400"},
        {"NaN", "it: x is NaN"},
        {"1000000000000000019884624838656", "it: x is 1000000000000000019884624838656"},
        {"-18446744073709551616", "it: x is -18446744073709551616"},
        {"1.5", "it: x is 1.5"},
        {"101", "it: x is 101"},
        {"\"1\"", "it: x is \"1\""},
        {"[]", "it: x is a list"}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct jsonfile f = {.path = "it"};
        json_t *x;
        int64_t n = 7;
        double d = 7;
        struct err err = ERR_INIT;

        f.root = read_one(bad[i].value, &x);
        assert_int_equal(json_get_int(&f, f.root, "x", 0, 100, &n, &err), ST_INPUT);
        if (!strstr(err.msg, bad[i].says))
            fail_msg("'%s' does not name '%s'", err.msg, bad[i].says);
        assert_true(n == 7);
        if (strcmp(bad[i].value, "1.5")) {
            err = (struct err)ERR_INIT;
            assert_int_equal(json_get_real(&f, f.root, "x", 0, 100, &d, &err),
                             ST_INPUT);
            if (!strstr(err.msg, bad[i].says))
                fail_msg("'%s' does not name '%s'", err.msg, bad[i].says);
        }
        jsonfile_free(&f);
    }
}

static void bits(void **state)
{
    static const struct {
        const char *text;
        bool is;
        uint64_t bits;
    } cases[] = {
        {"[0]", true, 0},
        {"[-1]", true, UINT64_MAX},
        {"[9223372036854775808]", true, (uint64_t)1 << 63},
        {"[18446744073709551615]", true, UINT64_MAX},
        {"[18446744073709551616]", false, 0},
        {"[-9223372036854775809]", false, 0},
        {"[3.0]", true, 3},
        {"[1e19]", true, 10000000000000000000u},
        {"[1.8446744073709552e19]", false, 0},
        {"[1.5]", false, 0},
        {"[NaN]", false, 0},
        {"[1e400]", false, 0},
        {"[\"1\"]", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *list = json_try(cases[i].text, strlen(cases[i].text),
                                (struct json_limit){100, 10}, 0);
        uint64_t n = 0;

        if (json_bits(json_array_get(list, 0), &n) != cases[i].is || n != cases[i].bits)
            fail_msg("%s: %llu", cases[i].text, (unsigned long long)n);
        json_decref(list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(no_numbers),
        cmocka_unit_test(no_numbers_are_written),
        cmocka_unit_test(texts),
        cmocka_unit_test(marks_keys_and_bytes),
        cmocka_unit_test(what_is_no_json),
        cmocka_unit_test(cut_texts),
        cmocka_unit_test(needed_members),
        cmocka_unit_test(large_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

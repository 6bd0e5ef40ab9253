/* SPDX-License-Identifier: MIT
 *
 * test_grammar_numbers.c - numbers within limits, of any size and with fractions;
 * formats of numbers; multiples; listed numbers that are equal but written differently
 */
#include <math.h>

#include "engine/grammar/decimal.h"
#include "tests/support/grammar_group.h"

static void check(const char *schema, const char *text, bool valid)
{
    struct grammar *g = grammar_of(schema);

    if (grammar_takes(g, group_vocab, text) != valid)
        fail_msg("%s %s %s", schema, valid ? "refuses" : "takes", text);
    grammar_unref(g);
}

/* Every number of up to three decimals near the limits, which are in thousandths. */
static void limits(void **state)
{
    static const struct {
        int lo, hi;
    } cases[] = {{500, 1500},   {-1250, 3500},     {-7, 8},       {0, 0}, {999, 1001},
                 {-3001, -999}, {-100000, -99950}, {9990, 12010}, {-1, 0}};

    (void)state;
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        const int lo = cases[i / 4].lo, hi = cases[i / 4].hi;
        const bool ex_lo = i & 1, ex_hi = i & 2;
        struct grammar *g = NULL;
        struct err err = ERR_INIT;
        char schema[160], text[32];

        snprintf(schema, sizeof schema, "{\"type\":\"number\",\"%s\":%.3f,\"%s\":%.3f}",
                 ex_lo ? "exclusiveMinimum" : "minimum", lo / 1e3,
                 ex_hi ? "exclusiveMaximum" : "maximum", hi / 1e3);
        if (lo == hi && (ex_lo || ex_hi)) {
            assert_int_equal(grammar_from_schema(&g, schema, strlen(schema), &err),
                             ST_INPUT);
            continue;
        }
        g = grammar_of(schema);
        for (int n = lo - 1200; n <= hi + 1200; n++) {
            const bool valid = (ex_lo ? n > lo : n >= lo) && (ex_hi ? n < hi : n <= hi);

            for (int digits = n % 1000 ? n % 100 ? n % 10 ? 3 : 2 : 1 : 0; digits <= 4;
                 digits++) {
                snprintf(text, sizeof text, "%.*f", digits, n / 1e3);
                if (grammar_takes(g, group_vocab, text) != valid)
                    fail_msg("%s: %s", schema, text);
            }
        }
        grammar_unref(g);
    }
}

static void multiples(void **state)
{
    static const struct {
        const char *of;
        int thousandths;
    } cases[] = {{"0.01", 10},    {"0.05", 50},   {"0.25", 250},
                 {"1.5", 1500},   {"7", 7000},    {"60", 60000},
                 {"1e2", 100000}, {"0.125", 125}, {"1", 1000}};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const int m = cases[i / 2].thousandths;
        const bool integer = i % 2;
        char schema[160], text[32];
        struct grammar *g;

        snprintf(schema, sizeof schema, "{\"type\":\"%s\",\"multipleOf\":%s}",
                 integer ? "integer" : "number", cases[i / 2].of);
        g = grammar_of(schema);
        for (int n = -4000; n <= 310000; n += n < 4000 ? 1 : 500) {
            const bool valid = n % m == 0 && (!integer || n % 1000 == 0);
            const int digits = n % 1000 ? n % 100 ? n % 10 ? 3 : 2 : 1 : 0;

            snprintf(text, sizeof text, "%.*f", digits, n / 1e3);
            if (grammar_takes(g, group_vocab, text) != valid)
                fail_msg("%s: %s", schema, text);
        }
        grammar_unref(g);
    }
    check("{\"multipleOf\":0.5,\"minimum\":0.75,\"maximum\":1.25}", "1.0", true);
    check("{\"multipleOf\":0.5,\"minimum\":0.75,\"maximum\":1.25}", "0.5", false);
}

static void large(void **state)
{
    static const struct {
        const char *schema, *text;
        bool valid;
    } cases[] = {
#define INTEGER(more) "{\"type\":\"integer\"," more "}"
#define NUMBER(more)  "{\"type\":\"number\"," more "}"
        {INTEGER("\"minimum\":1e19"), "10000000000000000000", true},
        {INTEGER("\"minimum\":1e19"), "9999999999999999999", false},
        {INTEGER("\"maximum\":-1e19"), "-10000000000000000000", true},
        {INTEGER("\"maximum\":-1e19"), "-9999999999999999999", false},
        {INTEGER("\"minimum\":18446744073709551615"), "18446744073709551615", true},
        {INTEGER("\"minimum\":18446744073709551615"), "18446744073709551614", false},
        {INTEGER("\"exclusiveMinimum\":9223372036854775807"), "9223372036854775808",
         true},
        {INTEGER("\"exclusiveMinimum\":9223372036854775807"), "9223372036854775807",
         false},
        {INTEGER("\"exclusiveMinimum\":999999999999999999"), "1000000000000000000",
         true},
        {INTEGER("\"minimum\":9000000000000000000,\"maximum\":9.1e18"),
         "9100000000000000000", true},
        {INTEGER("\"minimum\":9000000000000000000,\"maximum\":9.1e18"),
         "9100000000000000001", false},
        {INTEGER("\"minimum\":0,\"maximum\":18446744073709551615"), "123", true},
        {INTEGER("\"minimum\":0,\"maximum\":18446744073709551615"), "-1", false},
        /* as a double, 1e23 is less than its decimal; both count */
        {INTEGER("\"maximum\":1e23,\"minimum\":9.9e22"), "100000000000000000000000",
         false},
        {INTEGER("\"maximum\":1e23,\"minimum\":9.9e22"), "99999999999999991611392",
         true},
        {INTEGER("\"maximum\":1e23,\"minimum\":9.9e22"), "99999999999999995000000",
         false},
        {INTEGER("\"minimum\":1e23"), "100000000000000000000000", true},
        {INTEGER("\"minimum\":-1.7976931348623157e308,\"maximum\":"
                 "1.7976931348623157e308"),
         "-12", true},
        {INTEGER("\"minimum\":1.5,\"maximum\":2.5"), "2", true},
        {INTEGER("\"minimum\":1.5,\"maximum\":2.5"), "3", false},
        {NUMBER("\"exclusiveMaximum\":1e300"), "-12.5", true},
        {NUMBER("\"minimum\":1e-20,\"maximum\":1e-10"), "0.00000000000000000001", true},
        {NUMBER("\"minimum\":1e-20,\"maximum\":1e-10"), "0", false},
        {NUMBER("\"minimum\":1e-20,\"maximum\":1e-10"), "0.0000000002", false},
        {NUMBER("\"exclusiveMinimum\":0,\"exclusiveMaximum\":1e-20"),
         "0.000000000000000000001", true},
        /* too near to the limit for a double to be on its side */
        {NUMBER("\"exclusiveMaximum\":0.1"), "0.09999999999999999", false},
        {NUMBER("\"exclusiveMaximum\":0.1"), "0.099999999999999", true},
        {NUMBER("\"exclusiveMinimum\":0.1"), "0.10000000000000001", false},
        {NUMBER("\"exclusiveMinimum\":0.1"), "0.100000000000001", true},
        {NUMBER("\"format\":\"int8\""), "127", true},
        {NUMBER("\"format\":\"int8\""), "128", false},
        {NUMBER("\"format\":\"int8\""), "-128", true},
        {NUMBER("\"format\":\"int8\""), "1.5", false},
        {"{\"format\":\"uint8\"}", "255", true},
        {"{\"format\":\"uint8\"}", "256", false},
        {"{\"format\":\"uint8\"}", "\"1\"", false},
        {INTEGER("\"format\":\"uint64\",\"minimum\":0.0"), "18", true},
        {INTEGER("\"format\":\"uint64\",\"minimum\":0.0"), "-1", false},
        {INTEGER("\"format\":\"date-time\""), "12", true},
        {NUMBER("\"format\":\"double\""), "-1.5e10", true},
        {"{\"allOf\":[{\"minimum\":18446744073709551616},{\"minimum\":3}],\"type\":"
         "\"integer\"}",
         "18446744073709551616", true},
        {"{\"allOf\":[{\"minimum\":3},{\"minimum\":18446744073709551616}],\"type\":"
         "\"integer\"}",
         "5", false},
        {"{\"allOf\":[{\"maximum\":9007199254740993},{\"maximum\":9007199254740992}],"
         "\"type\":\"integer\"}",
         "9007199254740993", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].schema, cases[i].text, cases[i].valid);
}

/* 1 is 1.0, and an integer; what 64 bits do not hold is written as it stands. */
static void listed(void **state)
{
    (void)state;
    check("{\"const\":18446744073709551615}", "18446744073709551615", true);
    check("{\"type\":\"integer\",\"enum\":[1,18446744073709551616]}",
          "18446744073709551616", true);
    check("{\"const\":{\"a\":[18446744073709551616]}}",
          "{\"a\":[18446744073709551616]}", true);
    check("{\"type\":\"integer\",\"enum\":[1.0,2.5]}", "1", true);
    check("{\"type\":\"integer\",\"enum\":[1.0,2.5]}", "2.5", false);
    check("{\"allOf\":[{\"enum\":[1,2]},{\"enum\":[2.0,3]}]}", "2", true);
    check("{\"allOf\":[{\"enum\":[[1,{\"a\":2}]]},{\"const\":[1.0,{\"a\":2.0}]}]}",
          "[1,{\"a\":2}]", true);
    check("{\"allOf\":[{\"enum\":[[1,2],7]},{\"enum\":[[1],7]}]}", "[1,2]", false);
    check("{\"allOf\":[{\"enum\":[{},7]},{\"enum\":[[],\"\",7]}]}", "{}", false);
    check("{\"allOf\":[{\"enum\":[[],7]},{\"enum\":[{},7]}]}", "[]", false);
    check("{\"allOf\":[{\"enum\":[{},7]},{\"enum\":[[],{}]}]}", "{}", true);
    check("{\"type\":\"string\",\"maxLength\":18446744073709551615}", "\"a\"", true);
}

static void decimals(void **state)
{
    static const struct {
        const char *x, *y;
        int order;
    } cases[] = {
        {"1", "1.0", 0},
        {"0.5e1", "5", 0},
        {"0.05e4", "500", 0},
        {"-0", "0", 0},
        {"-0.0e7", "0", 0},
        {"12e-3", "0.012", 0},
        {"100.5e-1", "10.05", 0},
        {"1e3", "999.9", 1},
        {"-2", "-1", -1},
        {"-1", "1", -1},
        {"0.1", "0.09", 1},
        {"1e308", "1e307", 1},
        {"5e-324", "0", 1},
        {"123456789012345678901", "123456789012345678902", -1},
    };
    struct decimal x, y;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(decimal_parse(&x, cases[i].x) && decimal_parse(&y, cases[i].y));
        if (decimal_compare(&x, &y) != cases[i].order ||
            decimal_compare(&y, &x) != -cases[i].order)
            fail_msg("%s %s", cases[i].x, cases[i].y);
    }
    assert_false(decimal_parse(&x, "1e309"));
    assert_false(decimal_parse(&x, "1e-341"));
    assert_false(decimal_parse(&x, "1e99999999999999999999"));
    assert_false(decimal_parse(&x, "NaN"));
    assert_false(decimal_parse(&x, "-Infinity"));
    assert_true(decimal_parse(&x, "0e99999"));
}

/* The nearer of two limits counts, whichever keyword it has, and the exclusive one of
 * two that are equal. */
static void limits_of_both_kinds(void **state)
{
    static const struct {
        const char *limits, *taken, *refused;
    } cases[] = {
        {"\"maximum\": 10, \"exclusiveMaximum\": 5", "4", "5"},
        {"\"maximum\": 3, \"exclusiveMaximum\": 9", "3", "4"},
        {"\"maximum\": 5, \"exclusiveMaximum\": 5", "4", "5"},
        {"\"minimum\": 3, \"exclusiveMinimum\": 5", "6", "5"},
        {"\"minimum\": 7, \"exclusiveMinimum\": 5", "7", "6"},
        {"\"minimum\": 5, \"exclusiveMinimum\": 5", "6", "5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char schema[128];

        snprintf(schema, sizeof schema, "{\"type\": \"integer\", %s}", cases[i].limits);
        check(schema, cases[i].taken, true);
        check(schema, cases[i].refused, false);
    }
}

/* All of two schemas: the nearer limit of each keyword, in either order. */
static void limits_of_two_schemas(void **state)
{
    static const struct {
        const char *type, *key;
        int a, b;
        const char *taken, *refused;
    } cases[] = {
        {"integer", "minimum", 3, 5, "5", "4"},
        {"integer", "maximum", 3, 5, "3", "4"},
        {"integer", "exclusiveMinimum", 3, 5, "6", "5"},
        {"integer", "exclusiveMaximum", 3, 5, "2", "3"},
        {"string", "minLength", 1, 2, "\"ab\"", "\"a\""},
        {"string", "maxLength", 1, 2, "\"a\"", "\"ab\""},
        {"array", "minItems", 1, 2, "[1,1]", "[1]"},
        {"array", "maxItems", 1, 2, "[1]", "[1,1]"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        const int a = i % 2 ? cases[i / 2].b : cases[i / 2].a;
        const int b = i % 2 ? cases[i / 2].a : cases[i / 2].b;
        char schema[160];

        snprintf(schema, sizeof schema,
                 "{\"allOf\": [{\"type\": \"%s\", \"%s\": %d}, {\"%s\": %d}]}",
                 cases[i / 2].type, cases[i / 2].key, a, cases[i / 2].key, b);
        check(schema, cases[i / 2].taken, true);
        check(schema, cases[i / 2].refused, false);
    }
}

/* A number that must be whole, too, is an integer, whichever schema comes first. */
static void types_of_two_schemas(void **state)
{
    static const char *const schemas[] = {
        "{\"allOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}",
        "{\"allOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}",
        "{\"allOf\":[{\"type\":[\"number\",\"null\"]},{\"type\":[\"integer\","
        "\"string\"]}]}",
        "{\"allOf\":[{\"type\":[\"integer\",\"string\"]},{\"type\":[\"null\","
        "\"number\"]}]}"};

    (void)state;
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        check(schemas[i], "12", true);
        check(schemas[i], "1.5", false);
        check(schemas[i], "null", false);
        check(schemas[i], "\"a\"", false);
    }
    check("{\"allOf\":[{\"type\":\"number\"},{\"type\":[\"number\",\"null\"]}]}", "1.5",
          true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits),
                                       cmocka_unit_test(multiples),
                                       cmocka_unit_test(large),
                                       cmocka_unit_test(listed),
                                       cmocka_unit_test(decimals),
                                       cmocka_unit_test(limits_of_both_kinds),
                                       cmocka_unit_test(limits_of_two_schemas),
                                       cmocka_unit_test(types_of_two_schemas)};

    return cmocka_run_group_tests(tests, open_vocab, close_vocab);
}

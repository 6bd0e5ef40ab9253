/* SPDX-License-Identifier: MIT
 *
 * test_jinja_values.c - values by kind: numbers, lists and dicts, what compares with
 * what; every result is Python's and Jinja's
 */
#include "engine/base/json_read.h"
#include "engine/jinja/jinja.h"
#include "tests/engine/jinja/jinja_check.h"

#include "tests/support/test.h"

/* No variables but Jinja's own functions. */
static enum status run(const char *template, struct jinja_text *out, struct err *err)
{
    return jinja_run(template, json_object(), json_object(), out, err);
}

#define EXPECT(cases) jinja_expect(run, cases, sizeof cases / sizeof cases[0])

static void numbers(void **state)
{
    static const struct gives cases[] = {
        {"{{ 7.0 / 2 }} {{ 7 / 2.0 }} {{ 2.0 ** 3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} "
         "{{ 1.5 - 2 }} {{ 1.5 * 2 }}",
         "3.5 3.5 8.0 3.0 0.5 -0.5 3.0"},
        {"{{ 0 ** 9000000000000000000 }} {{ 1 ** 9000000000000000000 }} "
         "{{ (-1) ** 9000000000000000001 }} {{ (-1) ** 9000000000000000000 }} "
         "{{ 0 ** 0 }} {{ 2 ** -1 }} {{ 3 ** 39 }}",
         "0 1 -1 1 1 0.5 4052555153018976267"},
        {"{{ 2.9 | int }} {{ -2.9 | int }} {{ 3 | float }} {{ 2.5 | float }} "
         "{{ true | int }}",
         "2 -2 3.0 2.5 1"},
        {"{{ 'x' | int }} {{ 'x' | int(7) }} {{ 'x' | int(default=8) }} "
         "{{ '5' | int(7) }} {{ '5.9' | int }} {{ 'x' | float }} {{ 'x' | float(1.5) "
         "}}",
         "0 7 8 5 5 0.0 1.5"},
        {"{{ ('0' * 62 ~ '1') | int }}", "1"},
        {"{{ range(3) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }} "
         "{{ range(0, 5, 2) | list }} {{ range(3, 3) | list }}",
         "[0, 1, 2] [1, 2, 3] [5, 3, 1] [0, 2, 4] []"},
    };

    (void)state;
    EXPECT(cases);
}

/* As Python divides: the remainder has the sign of the divisor. */
static void divisions(void **state)
{
    (void)state;
    for (int a = -7; a <= 7; a++)
        for (int b = -7; b <= 7; b++) {
            struct err err = ERR_INIT;
            struct jinja_text out = {.text = NULL};
            char template[100];
            int q, rest;

            if (!b)
                continue;
            snprintf(template, sizeof template, "{{ %d // %d }} {{ %d %% %d }}", a, b,
                     a, b);
            assert_int_equal(run(template, &out, &err), ST_OK);
            assert_int_equal(sscanf(out.text, "%d %d", &q, &rest), 2);
            if (q * b + rest != a ||
                (b > 0 ? rest < 0 || rest >= b : rest > 0 || rest <= b))
                fail_msg("%s: %s", template, out.text);
            jinja_text_free(&out);
        }
}

/* A number of the input beyond 64 bits is a real one. */
static void large_input(void **state)
{
    struct err err = ERR_INIT;
    struct jinja_text out = {.text = NULL};
    json_t *input = json_try("{\"n\": 123456789012345678901234567890}", 37,
                             (struct json_limit){1000, 1000}, 0);

    (void)state;
    assert_int_equal(jinja_run("{{ n / 2 > 6e28 }} {{ n is float }}", json_object(),
                               input, &out, &err),
                     ST_OK);
    assert_string_equal(out.text, "True True");
    jinja_text_free(&out);
}

static void lists_and_dicts(void **state)
{
    static const struct gives cases[] = {
        {"{{ [5, 6, 5].index(5) }}{{ [5, 6, 5].index(6) }} {{ [5, 6, 5].count(5) }} "
         "{{ [5].copy() }}",
         "01 2 [5]"},
        {"{{ {'a': 1, 'b': 2}.values() | list }} {{ {'a': 1, 'b': 2}.keys() | list }} "
         "{{ {'a': 1}.items() | list }} {{ {'a': 1, 'b': 2}.copy() }} "
         "{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 3) }}",
         "[1, 2] ['a', 'b'] [('a', 1)] {'a': 1, 'b': 2} 1 None 3"},
        {"{{ dict({'a': 1, 'b': 2}) }} {{ dict({'a': 1}, b=3) }} {{ dict(a=1) }} "
         "{{ dict([('a', 5), ('b', 6)]) }} {{ dict() }}",
         "{'a': 1, 'b': 2} {'a': 1, 'b': 3} {'a': 1} {'a': 5, 'b': 6} {}"},
        {"{% for i in range(4) %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %} "
         "{% for i in [1, 1, 2, 1] %}{{ loop.changed(i) }}{% endfor %}",
         "abca TrueFalseTrueTrue"},
        {"{{ {1: 2, 1.5: 3, none: 4, true: 5} | tojson }}",
         "{\"1\": 5, \"1.5\": 3, \"null\": 4}"},
        {"{{ {'ab': 1, 'a': 2, 'b': 3, 'aa': 4} | tojson(sort_keys=true) }}",
         "{\"a\": 2, \"aa\": 4, \"ab\": 1, \"b\": 3}"},
        {"{{ 'aba' | replace('a', new='x') }} {{ 'aba' | replace('a', 'x', 1) }}",
         "xbx xba"},
        {"{{ 1 if True else 0 }}{{ 1 if False else 0 }} {{ x is sequence }}"
         "{{ x is iterable }} {{ 5 is sequence }}",
         "10 TrueTrue False"},
        {"{% for i in range(2000) %}{% set a, b = i, i + 1 %}{% endfor %}|", "|"},
        {"{{ [3] | first }} {{ [3, 4] | last }} {{ [] | last }}|", "3 4 |"},
    };

    (void)state;
    EXPECT(cases);
}

static void comparisons(void **state)
{
    static const struct gives cases[] = {
        {"{{ [1, 2] < [1, 3] }} {{ [2] < [1, 3] }} {{ [1] < [1, 0] }} {{ [1, 0] < [1] "
         "}} "
         "{{ [1, 2] <= [1, 2] }} {{ (1, 2) > (1, 1) }}",
         "True False True False True True"},
        {"{{ [[3, 1], [2, 9], [2, 1]] | sort }}", "[[2, 1], [2, 9], [3, 1]]"},
        /* whole numbers that are one as doubles */
        {"{{ 9007199254740993 > 9007199254740992 }} "
         "{{ 9007199254740992 < 9007199254740993 }} "
         "{{ [9007199254740993, 9007199254740992] | sort }}",
         "True True [9007199254740992, 9007199254740993]"},
        {"{% set a = [1] %}{% set b = a %}{% set d = {} %}{{ a is sameas b }} "
         "{{ a is sameas [1] }} {{ d is sameas {} }} {{ d is sameas d }} "
         "{{ 1 is sameas 1 }} {{ 1 is sameas 1.0 }}",
         "True False False True True False"},
        {"{{ 'y' if 'x' else 'n' }}{{ 'y' if '' else 'n' }}{{ 'y' if [0] else 'n' }}"
         "{{ 'y' if {} else 'n' }}{{ 'y' if 0.0 else 'n' }}{{ 'y' if 0.1 else 'n' }}",
         "ynynny"},
        {"{{ 1 is lt 2 }} {{ 2 is lt 2 }} {{ 2 is le 2 }} {{ 3 is le 2 }} "
         "{{ 2 is gt 2 }} {{ 3 is gt 2 }} {{ 2 is ge 2 }} {{ 1 is ge 2 }} "
         "{{ 2 is ne 2 }} {{ 2 is eq 2 }} {{ 4 is divisibleby 2 }} {{ 5 is even }} "
         "{{ 5 is odd }} {{ 2 is in [1, 2] }}",
         "True False True False False True True False False True True False True True"},
    };

    (void)state;
    EXPECT(cases);
}

static void what_is_refused(void **state)
{
    static const struct gives cases[] = {
        {"{{ range() }}", "'range' takes 1 to 3 values, and there are 0"},
        {"{{ range(1, 2, 3, 4) }}", "'range' takes 1 to 3 values, and there are 4"},
        {"{{ 'a' | replace(old='x') }}", "takes 2 to 3 values, and there are 1"},
        {"{{ 'a'.rsplit(' ', 1, 2) }}",
         "'rsplit' takes 0 to 2 values, and there are 3"},
        {"{{ 'a b'.split(' ', 'x') }}", "an integer belongs where there is a str"},
        {"{{ ([] | last) + 1 }}", "'last' is undefined"},
        {"{{ ([] | first) + 1 }}", "'first' is undefined"},
        {"{{ {'a': 1}.get([]) }}", "a list is no key of a dict"},
        {"{{ 3 ** 40 }}", "too large"},
        {"{{ 10 ** 30 }}", "too large"},
        {"{{ 1.0 / 0 }}", "a division by zero"},
        {"{{ 1.0 % 0.0 }}", "a division by zero"},
        {"{{ 2 is divisibleby 0 }}", "a division by zero"},
        {"{{ 'a' is odd }}", "an integer belongs where there is a str"},
        {"{{ 1 is eq }}", "the test 'equalto' needs one value"},
        {"{{ 1 < 'a' }}", "have no order"},
        {"{{ [1] < ['a'] }}", "have no order"},
        {"{{ {[]: 1} }}", "a list is no key of a dict"},
        {"{{ {'a': 1}.keys(2) }}", "'keys' takes"},
        {"{{ (1 if false) + 1 }}", "'the choice without an else' is undefined"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct jinja_text out = {.text = NULL};

        if (!run(cases[i].template, &out, &err))
            fail_msg("%s: \"%s\"", cases[i].template, out.text);
        if (!strstr(err.msg, cases[i].text))
            fail_msg("%s: %s", cases[i].template, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),     cmocka_unit_test(divisions),
        cmocka_unit_test(large_input), cmocka_unit_test(lists_and_dicts),
        cmocka_unit_test(comparisons), cmocka_unit_test(what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

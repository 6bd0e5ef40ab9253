/* SPDX-License-Identifier: MIT
 *
 * test_jinja_refusals.c - what a template cannot compute, each in a sentence; most of
 * it is an error in Jinja, too, and the rest has no 64 bits or no character
 */
#include "engine/jinja/jinja.h"
#include "tests/engine/jinja/jinja_check.h"

/* No variables but Jinja's own functions. */
static enum status run(const char *template, struct jinja_text *out, struct err *err)
{
    return jinja_run(template, json_object(), json_object(), out, err);
}

static void refused(const struct gives *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        struct jinja_text out = {.text = NULL};
        char message[200];

        snprintf(message, sizeof message, "chat template, line 1: %s", cases[i].text);
        if (run(cases[i].template, &out, &err) != ST_INPUT)
            fail_msg("%s: \"%s\"", cases[i].template, out.text ? out.text : err.msg);
        if (strncmp(err.msg, message, strlen(message)) != 0)
            fail_msg("%s: %s", cases[i].template, err.msg);
    }
}

static void values(void **state)
{
    static const struct gives cases[] = {
        {"{{ 'a' | replace(new='x', count=1) }}", "'replace' needs two texts"},
        {"{{ 'foo bar' | truncate(2) }}", "'truncate' to less than its end"},
        {"{{ 'a'.split('') }}", "'split' has an empty separator"},
        {"{{ 'a'.rsplit('') }}", "'rsplit' has an empty separator"},
        {"{{ 'a'.index('x') }}", "'index' does not find its text"},
        {"{{ ','.join([1]) }}", "'join' needs strings, and there is a int"},
        {"{{ '{a'.format() }}", "'format' has a '{' without its pair"},
        {"{{ '}'.format() }}", "'format' has a '}' without its pair"},
        {"{{ 'x{'.format() }}", "'format' has a '{' without its pair"},
        {"{{ '{x}'.format() }}", "'format' has no value for '{x}'"},
        {"{{ '{1}'.format('a') }}", "'format' has no value for '{1}'"},
        {"{{ '{1234}'.format('a') }}", "'format' has no value for '{1234}'"},
        {"{{ 'x' | abs }}", "'abs' needs a number, and there is a string"},
        {"{{ 'x' | round }}", "'round' needs a number, and there is a string"},
        {"{{ 5 | length }}", "a int has no length"},
        {"{{ x | default(1, true, 3, boolean=true) }}",
         "'default' takes 0 to 2 values, and there are 4"},
        {"{{ 'x' | attr }}", "'attr' needs a name"},
        {"{{ {(1, 2): 3} | tojson }}", "a tuple cannot be a key in JSON"},
        {"{{ [1] | tojson(separators=(1, ',')) }}",
         "the separators of 'tojson' are strings"},
        {"{{ [1] | tojson(separators=(',', 1)) }}",
         "the separators of 'tojson' are strings"},
        {"{{ 5 | items }}", "'items' needs a dict, and there is a int"},
        {"{{ 5 | dictsort }}", "'dictsort' needs a dict, and there is a int"},
        {"{{ [1] | batch(0) }}", "'batch' needs a number of 1 or more"},
        {"{{ [1] | slice(0) }}", "'slice' needs a number of 1 or more"},
        {"{{ ['a'] | sum }}", "'sum' needs numbers, and there is a string"},
        {"{{ [9223372036854775807, 1] | sum }}", "an integer is too large for 64 bits"},
        {"{{ [1] | map('nofilter') | list }}",
         "'map' needs an attribute or the name of a filter"},
        {"{{ [1] | map | list }}", "'map' needs an attribute or the name of a filter"},
        {"{{ [1] | "
         "select('"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnn') | list }}",
         "there is no test "
         "'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnn'"},
        {"{{ [1] | select('nosuch') | list }}", "there is no test 'nosuch'"},
        {"{{ {[]: 1} }}", "a list is no key of a dict"},
        {"{{ {{}: 1} }}", "a dict is no key of a dict"},
        {"{{ (1, [2]) in {} }}", "a list is no key of a dict"},
        {"{{ {} in {} }}", "a dict is no key of a dict"},
        {"{{ 5 in 'abc' }}", "'in' a string needs a string, and there is a int"},
        {"{{ 1 in 5 }}", "a int cannot be searched with 'in'"},
        {"{{ 'a' in 5 }}", "a int cannot be searched with 'in'"},
        {"{{ [1][1.5:] }}", "a slice needs integers, and there is a float"},
        {"{{ [1][::0] }}", "the step of a slice is an integer other than 0"},
        {"{{ [1][::'a'] }}", "the step of a slice is an integer other than 0"},
        {"{{ missing[1:] }}", "'missing' is undefined"},
        {"{{ 5[1:] }}", "a int has no slices"},
        {"{{ -'a' }}", "'-' is not for a string"},
        {"{{ -missing }}", "'missing' is undefined"},
        {"{{ dict(**[1]) }}", "'**' needs a dict, and there is a list"},
        {"{{ dict(*5) }}", "a int cannot be iterated over"},
        {"{{ 5() }}", "a int cannot be called"},
        {"{{ none() }}", "a None cannot be called"},
        {"{{ 'a'() }}", "a string cannot be called"},
        {"{{ '\\x4' }}", "an escape in a string needs 2 hex digits"},
        {"{{ '\\u12' }}", "an escape in a string needs 4 hex digits"},
        {"{{ '\\ud800' }}", "\\ud800 is no character"},
        {"{{ '\\U00110000' }}", "\\u110000 is no character"},
        {"{{ '\\udfff' }}", "\\udfff is no character"},
        {"{{ 1 // 'a' }}", "'//' is not for int and string"},
        {"{{ 2 ** 'a' }}", "'**' is not for int and string"},
        {"{{ [1] + (2,) }}", "'+' is not for list and tuple"},
        {"{{ [1] + 1 }}", "'+' is not for list and int"},
        {"{{ 1 + [1] }}", "'+' is not for int and list"},
        {"{{ 'a' * 1.5 }}", "'*' is not for string and float"},
        {"{{ 2 * none }}", "'*' is not for int and None"},
        {"{{ none * 2 }}", "'*' is not for None and int"},
        {"{{ missing < 1 }}", "'missing' is undefined"},
        {"{{ 1 < missing }}", "'missing' is undefined"},
        {"{{ missing < other }}", "'missing' is undefined"},
        {"{{ [1] < 'a' }}", "list and string have no order"},
        {"{{ 'a' < 1 }}", "string and int have no order"},
        {"{{ (1,) < [1] }}", "tuple and list have no order"},
        {"{{ dict(1, 2) }}", "'dict' takes one value, and names"},
        {"{{ dict([1]) }}", "'dict' needs pairs"},
        {"{{ dict([(1, 2, 3)]) }}", "'dict' needs pairs"},
        {"{{ dict(5) }}", "a int cannot be iterated over"},
        {"{{ raise_exception() }}", "an error without a message"},
        {"{{ raise_exception('long long long long long long long long long long long "
         "long long long long long long long long long long long long long long long "
         "long long long long long long long long long long long long long long long "
         "long long long long long long long long long long long long long long long "
         "long long long long long long long long long long long long long long long "
         "long long long long long long long long long ') }}",
         "long long long long long long long long long long long long long long long "
         "long long long long long "},
        {"{{ range(1, 2, 0) }}", "'range' has a step of 0"},
        {"{{ 'a' | indent(foo=1) }}", "'indent' has no parameter 'foo'"},
        {"{{ 'a'.strip(5) }}", "'strip' needs a string, and there is a int"},
        {"{{ 'a'.startswith(none) }}", "'startswith' needs a string"},
        {"{{ 'a'.startswith(5) }}", "'startswith' needs a string, and there is a int"},
        {"{{ 'a'.startswith() }}", "'startswith' takes 1 to 1 values, and there are 0"},
        {"{{ x | 5 }}", "there is a number where the name of a filter belongs"},
        {"{{ 'a' | int(5)(3) }}", "a int cannot be called"},
        {"{{ x is 5 }}", "there is a number where the name of a test belongs"},
        {"{{ x[] }}", "there is '}}' where an index belongs"},
        {"{{ a.'b' }}", "there is a string where a name belongs"},
        {"{{ $ }}", "'$' has no meaning in a tag"},
        {"{{ \001 }}", "'?' has no meaning in a tag"},
        {"{{ 1 ! 2 }}", "'!' has no meaning in a tag"},
        {"{{ '%q' % 1 }}", "a format has %q, which is not supported"},
        {"{{ '%s%s' % 'a' }}", "a format needs more values than there are"},
        {"{{ '%d' % missing }}", "%d needs a number, and there is a undefined value"},
        {"{{ 'abc' % 5 }}", "a format needs fewer values than there are"},
    };

    (void)state;
    refused(cases, sizeof cases / sizeof cases[0]);
}

static void expressions(void **state)
{
    static const struct gives cases[] = {
        {"{{ [1].index(2) }}", "'index' does not find its value"},
        {"{{ [5] | sort(attribute='a.b') }}", "'a' is undefined"},
        {"{{ [1, 'a'] | sort }}", "int and string have no order"},
        {"{{ missing | float }}", "'missing' is undefined"},
        {"{{ missing | int }}", "'missing' is undefined"},
        {"{{ 'a' | truncate(5, true, 7) }}",
         "'truncate' needs a string, and there is a int"},
        {"{{ 1 + }}", "there is '}}' where an expression belongs"},
        {"{{ (-9223372036854775807 - 1) // -1 }}",
         "an integer is too large for 64 bits"},
        {"{{ missing.x }}", "'missing' is undefined"},
        {"{{ missing['x'] }}", "'missing' is undefined"},
        {"{{ 9223372036854775807 + 1 }}", "an integer is too large for 64 bits"},
        {"{{ -9223372036854775807 - 2 }}", "an integer is too large for 64 bits"},
        {"{{ 2 is divisibleby('a') }}", "an integer belongs where there is a string"},
        {"{{ 1 is nothing }}", "there is no test 'nothing'"},
        {"{{ "
         "strftime_now('"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') }}",
         "the format of 'strftime_now' is too long"},
        {"{{ strftime_now('a\\x00b') }}", "the format of 'strftime_now' is too long"},
        {"{{ strftime_now('%A' * 60) }}",
         "the time does not fit the format of 'strftime_now'"},
        {"{{ x", "the template ends inside a tag"},
        {"{{ 1 averyveryverylongnamethatisnotagatallandgoesonandon }}",
         "there is 'averyveryverylongnamethatisnotagatalland' where '}}' belongs"},
        {"{{ range(1)() }}", "a list cannot be called"},
        {"{{ '%s' % 'a' % 'b' }}", "a format needs fewer values than there are"},
        {"{{ a b }}", "there is 'b' where '}}' belongs"},
        {"{{ {1} }}", "there is '}' where ':' belongs"},
        {"{{ {'a' 1} }}", "there is a number where ':' belongs"},
        {"{{ [1 2] }}", "there is a number where ',' belongs"},
        {"{{ f(1 2) }}", "there is a number where ',' belongs"},
        {"{{ (1 }}", "there is '}' where ')' belongs"},
        {"{{ x.}}", "there is '}}' where a name belongs"},
        {"{{ x | }}", "there is '}}' where the name of a filter belongs"},
        {"{{ x is }}", "there is '}}' where the name of a test belongs"},
        {"{{ 1 if }}", "there is '}}' where an expression belongs"},
        {"{{ not }}", "there is '}}' where an expression belongs"},
        {"{{ 1 if 2 else }}", "there is '}}' where an expression belongs"},
        {"{{ '1e400' | from_json }}", "'from_json' has no JSON"},
        {"{{ 5 | from_json }}", "'from_json' needs a string, and there is a int"},
        {"{{ 'x' | from_json }}", "'from_json' has no JSON"},
        {"{{ 'abc'.rsplit() }}", "'rsplit' needs a separator"},
        {"{{ dict(**{7: 2}) }}", "a int is no name of a value"},
        {"{{ 'a' | indent(**{1: 2}) }}", "a int is no name of a value"},
        {"{{ 2.5 | round(0, 'up') }}",
         "'round' has the methods common, ceil and floor"},
        {"{{ [1] | sum(start='x') }}", "'+' is not for string and int"},
        {"{{ [none] | sum }}", "'sum' needs numbers, and there is a None"},
        {"{{ (-9223372036854775807 - 1) | abs }}",
         "an integer is too large for 64 bits"},
        {"{{ none | tojson(indent='a') }}",
         "an integer belongs where there is a string"},
        {"{{ 1e999 | int }}", "an integer is too large for 64 bits"},
        {"{{ 1e30 | int }}", "an integer is too large for 64 bits"},
        {"{{ '99999999999999999999' | int }}", "an integer is too large for 64 bits"},
    };

    (void)state;
    refused(cases, sizeof cases / sizeof cases[0]);
}

static void tags(void **state)
{
    static const struct gives cases[] = {
        {"{% set a, b = [1] %}{{ a }}", "1 values cannot be set to 2 names"},
        {"{% for a, b in [[1]] %}{% endfor %}", "1 values cannot be set to 2 names"},
        {"{% filter 5 %}x{% endfilter %}",
         "there is a number where the name of a filter belongs"},
        {"{% macro 5() %}{% endmacro %}",
         "there is a number where the name of a macro belongs"},
        {"{% set a.b.c = 1 %}", "a value cannot be set to an expression"},
        {"{% set (1) = 2 %}", "a value cannot be set to an expression"},
        {"{% set a[0] = 1 %}", "a value cannot be set to an expression"},
        {"{% call 5 %}{% endcall %}", "there is '%}' where a call belongs"},
        {"{% continue %}", "'continue' is in no loop"},
        {"{% break %}", "'break' is in no loop"},
        {"{% macro m(a) %}{% endmacro %}{{ m(1, x=2) }}",
         "macro 'm' has no parameter 'x'"},
        {"{% macro m() %}{% endmacro %}{% call m(*[1]) %}{% endcall %}",
         "a call block takes no '*'"},
        {"{% for i in [1] %}{{ loop.cycle() }}{% endfor %}",
         "'cycle' needs a loop and values"},
        {"{% if x", "the template ends inside a tag"},
        {"{% averyveryverylongnamethatisnotagatallandgoesonandon %}",
         "there is 'averyveryverylongnamethatisnotagatalland' where the name of a tag "
         "belongs"},
        {"{% raw %}x", "{% raw %} has no {% endraw %}"},
        {"{%", "the template ends inside a tag"},
        {"{% if true %}{% elif %}{% endif %}",
         "there is '%}' where an expression belongs"},
        {"{% for x in %}{% endfor %}", "there is '%}' where an expression belongs"},
        {"{% set ns = namespace() %}{{ ns() }}", "a namespace cannot be called"},
        {"{% endif %}", "there is 'endif' where the name of a tag belongs"},
        {"{% for %}", "there is '%}' where an expression belongs"},
        {"{% macro m(a b) %}{% endmacro %}", "there is 'b' where ',' belongs"},
        {"{% with a %}{% endwith %}", "there is '%}' where '=' belongs"},
        {"{% set x = %}", "there is '%}' where an expression belongs"},
        {"{% set 5 = 1 %}", "a value cannot be set to an expression"},
    };

    (void)state;
    refused(cases, sizeof cases / sizeof cases[0]);
}

/* What Jinja has otherwise, or not at all. */
static void extensions(void **state)
{
    static const struct gives cases[] = {
        {"{{ range }}", "<function range>"},
        {"{{ [range, missing, namespace(a=1)] }}",
         "[<function range>, Undefined, {'a': 1}]"},
        {"{{ '[1, {\"a\": true}]' | from_json }}", "[1, {'a': True}]"},
        {"{{ 'a b'.split(' ', none) }}", "['a', 'b']"},
        {"{{ true | tojson(ensure_ascii=none) }}", "true"},
        {"{{ 'a' | indent(none) }}", "a"},
        {"{% for a, in [(1,)] %}{{ a }}{% endfor %}", "1"},
        {"{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro m %}{{ m(1) }}{{ m(1, b=3) "
         "}}{{ m() }}",
         "12132"},
        {"{% generation %}x{% endgeneration %}", "x"},
    };

    (void)state;
    jinja_expect(run, cases, sizeof cases / sizeof cases[0]);
}

/* Names, depth and bytes of a template. */
static void limits(void **state)
{
    char *text = malloc(3 << 20);
    struct jinja *j = NULL;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 4200; i++)
        n += (size_t)sprintf(text + n, "{{ n%d }}", i);
    struct err err = ERR_INIT;

    assert_int_equal(jinja_compile(&j, text, n, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "it has more than 4096 names"));
    err_clear(&err);
    n = (size_t)sprintf(text, "{{ %0*d }}", 300, 1);
    memset(text + 3, '(', 299);
    assert_int_equal(jinja_compile(&j, text, n, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "nested more than 200 deep"));
    err_clear(&err);
    memset(text, 'a', 3 << 20);
    assert_int_equal(jinja_compile(&j, text, (2 << 20) + 1, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "has 2097153 bytes; at most 2097152"));
    assert_null(j);
    assert_int_equal(jinja_compile(&j, text, 2 << 20, &err), ST_OK);
    jinja_free(j);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values), cmocka_unit_test(expressions),
        cmocka_unit_test(tags),   cmocka_unit_test(extensions),
        cmocka_unit_test(limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

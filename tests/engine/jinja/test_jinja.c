/* SPDX-License-Identifier: MIT
 *
 * test_jinja.c - the template language: what expressions give, what tags print, what is
 * refused, and which bytes are the template's own
 */
#include "engine/jinja/jinja.h"
#include "tests/engine/jinja/jinja_check.h"

#include <stdbool.h>

#include "tests/support/test.h"

/* Variables of all templates here. */
static json_t *variables(void)
{
    json_t *v = json_loads(
        "{\"name\": \"Ann\", \"empty\": \"\", \"n\": 7, \"f\": 2.5, \"yes\": true,"
        " \"nothing\": null, \"list\": [3, 1, 2], \"words\": [\"b\", \"A\", \"c\"],"
        " \"text\": \"Gr\\u00fc\\u00dfe \\ud83d\\udc4b\", \"blanks\": \" \\n a b \\t\","
        " \"dict\": {\"b\": 1, \"a\": [1, {\"x\": \"y\"}], \"items\": 5},"
        " \"people\": [{\"n\": \"x\", \"age\": 3}, {\"n\": \"y\", \"age\": 1},"
        " {\"n\": \"z\", \"age\": 3}]}",
        0, NULL);

    assert_non_null(v);
    return v;
}

static enum status run(const char *template, struct jinja_text *out, struct err *err)
{
    return jinja_run(template, json_pack("{s:s}", "bos_token", "<s>"), variables(), out,
                     err);
}

#define EXPECT(cases) jinja_expect(run, cases, sizeof cases / sizeof cases[0])

/* Results are Python's, by hand. */
static void expressions(void **state)
{
    static const struct gives cases[] = {
        {"{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 2 ** 3 ** 2 }}", "7 9 64"},
        {"{{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7.0 // 2 }}",
         "3.5 3 -4 2 3.0"},
        {"{{ 1e16 }} {{ 1.5e-5 }} {{ 0.1 }} {{ 100.0 }} {{ 1e22 }} {{ 12345678.9 }}",
         "1e+16 1.5e-05 0.1 100.0 1e+22 12345678.9"},
        {"{{ 'a' 'b' ~ 1 ~ none ~ true }}", "ab1NoneTrue"},
        {"{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }}",
         "True True True False"},
        {"{{ 2 in list }} {{ 9 not in list }} {{ 'a' in dict }} {{ 'nn' in name }}",
         "True True True True"},
        {"{{ not yes }} {{ 0 or 'x' }} {{ 1 and '' }}|{{ nothing or empty or 5 }}",
         "False x |5"},
        {"{{ 'y' if yes else 'n' }}{{ 'y' if empty }}{{ 'a' if 0 else 'b' if 0 else "
         "'c' "
         "}}",
         "yc"},
        {"{{ list[0] }} {{ list[-1] }} {{ list[1:] }} {{ list[::-1] }} {{ list[:-1] }}",
         "3 2 [1, 2] [2, 1, 3] [3, 1]"},
        {"{{ text[0] }}{{ text[2:4] }}{{ text[-1] }}|{{ text | length }}",
         "G\xc3\xbc\xc3\x9f\xf0\x9f\x91\x8b|7"},
        {"{{ dict.b }} {{ dict['a'][1].x }} {{ dict.a.1.x }} {{ people[0]['n'] }}",
         "1 y y x"},
        {"{{ (1, 'a', none) }} {{ (1,) }} {{ () }} {{ [] }} {{ {} }}",
         "(1, 'a', None) (1,) () [] {}"},
        {"{{ {'a': 1, 2: [true, 1.5], \"q'\": 'it\\'s'} }}",
         "{'a': 1, 2: [True, 1.5], \"q'\": \"it's\"}"},
        {"{{ '\\n\\t\\u00e9\\x41\\\\' }}", "\n\t\xc3\xa9"
                                           "A\\"},
        {"{{ missing }}{{ missing | length }}{{ missing is defined }}{{ nothing }}{{ "
         "dict.none }}",
         "0FalseNone"},
        {"{{ -n }} {{ +f }} {{ -1 | abs }} {{ 2 * [1] + [0] }} {{ 'ab' * 2 }}",
         "-7 2.5 1 [1, 1, 0] abab"},
        {"{{ '%s is %d, %.2f %%' % ('a', 3, 2.5) }} {{ '{} {0} {x}'.format(1, x=2) }}",
         "a is 3, 2.50 % 1 1 2"},
    };

    (void)state;
    EXPECT(cases);
}

/* Results are Python's, by Python. */
static void formats(void **state)
{
    static const struct gives cases[] = {
        {"{{ '[%5s|%-5s|%.2s|%05s]' % ('ab', 'ab', 'abc', 'x') }}",
         "[   ab|ab   |ab|    x]"},
        {"{{ '\u00e9%5s|%-3.1s|%5r|%.1r' % ('\u00e9\u00e9', '\u00e9a', 'a', 'a') }}",
         "\xc3\xa9   \xc3\xa9\xc3\xa9|\xc3\xa9  |  'a'|'"},
        {"{{ '[%5d|%-5d|%05d|%+d|% d|%.3d|%06.3d]' % (7, 7, -7, 7, 7, 7, 7) }}",
         "[    7|7    |-0007|+7| 7|007|000007]"},
        {"{{ '%x %X %o %x %u' % (255, 255, 8, -255, 3) }}", "ff FF 10 -ff 3"},
        {"{{ '%d %i %d %.0d' % (2.9, -2.9, true, 0) }}", "2 -2 1 0"},
        {"{{ '%f %.0f %5.1f|%-8.2e|%08.2f %g %G' % "
         "(1.5, 2.5, 3.14159, 12345.678, -1.5, 1e-7, 1e20) }}",
         "1.500000 2   3.1|1.23e+04|-0001.50 1e-07 1E+20"},
        {"{{ '%05.1f %f %+f' % (1e999, -1e999, 1e999 - 1e999) }}", "00inf -inf +nan"},
        {"{{ ('%99.99f' % 1e308) | length }}", "409"},
        {"{{ '{10}{1}'.format(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 'x') }}", "x1"},
    };

    (void)state;
    EXPECT(cases);
}

/* What is near the ends of 64 bits, by Python. */
static void large_numbers(void **state)
{
    static const struct gives cases[] = {
        {"{% set least = -9223372036854775807 - 1 %}"
         "{{ 'a'.center(least) }}{{ '-1'.zfill(least) }}{{ '-1'.zfill(5) }}"
         "|{{ least % 3 }} {{ least // 3 }}",
         "a-1-0001|1 -3074457345618258603"},
        {"{{ 1_000.5_5e1_0 }} {{ 1E3 }} {{ 1e-05 }} {{ 123456789012345678901.5 }}",
         "10005500000000.0 1000.0 1e-05 1.2345678901234568e+20"},
        {"{{ 'ab'.center(5) }}|{{ 'abc'.center(6) }}|{{ 'a'.center(4) }}|{{ "
         "'ab'.center(7, '*') }}|{{ 'ab' | center(5) }}|{{ 'a'.rjust(3) }}",
         "  ab | abc  | a  |***ab**|  ab |  a"},
        {"{{ 7 % -3 }} {{ -7 % 3 }} {{ -6 % 3 }} {{ -6 % -4 }}", "-2 2 0 -2"},
        {"{{ range(-9223372036854775807, 9223372036854775807, 4611686018427387904) | "
         "list }}",
         "[-9223372036854775807, -4611686018427387903, 1, 4611686018427387905]"},
        {"{{ 'abc def' | truncate(5, leeway=9223372036854775807) }}", "abc def"},
    };

    (void)state;
    EXPECT(cases);
}

static void filters_and_methods(void **state)
{
    static const struct gives cases[] = {
        {"[{{ blanks | trim }}][{{ blanks.lstrip() }}][{{ 'xxaxx'.strip('x') }}]",
         "[a b][a b \t][a]"},
        {"{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }}",
         "['a', 'b', '', 'c'] ['a', 'b'] ['a', 'b,c']"},
        {"{{ 'a-b-c'.rsplit('-', 1) }} {{ 'a-b'.partition('-') }} {{ "
         "'x\ny\n'.splitlines() "
         "}}",
         "['a-b', 'c'] ('a', '-', 'b') ['x', 'y']"},
        {"{{ name.startswith('A') }}{{ name.endswith(('x', 'nn')) }}{{ name.find('n') "
         "}}"
         "{{ name.upper() }}{{ 'it is'.title() }}{{ 'aBc' | capitalize }}",
         "TrueTrue1ANNIt IsAbc"},
        /* letters of all scripts, as Python's */
        {"{% set t = 'straße ǆ élan ΟΔΟΣ ﬁ' %}{{ t.upper() }}|{{ t | lower }}|{{ "
         "t.title() }}|{{ t | "
         "capitalize }}|{{ t.swapcase() }}{{ 'é'.isalpha() }}{{ 'É'.isupper() }}{{ "
         "'—'.isalpha() }}{{ '٣'.isdigit() }}",
         "STRASSE Ǆ ÉLAN ΟΔΟΣ FI|straße ǆ élan οδος ﬁ|Straße ǅ Élan Οδος Fi|Straße ǆ "
         "élan οδος ﬁ|STRASSE Ǆ ÉLAN οδος FITrueTrueFalseTrue"},
        {"{{ 'aaa'.replace('a', 'b', 2) }} {{ 'ab' | replace('', '-') }} {{ "
         "'a.b'.count('.') "
         "}}",
         "bba -a-b- 1"},
        {"{{ dict.items() | list }}|{{ dict.keys() | join(',') }}|{{ dict.get('zz', 4) "
         "}}",
         "[('b', 1), ('a', [1, {'x': 'y'}]), ('items', 5)]|b,a,items|4"},
        {"{{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') "
         "}}",
         "[('A', 2), ('b', 1)] [('b', 1), ('a', 2)]"},
        {"{{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ list | "
         "sort(true) "
         "}}",
         "['A', 'b', 'c'] ['A', 'b', 'c'] [3, 2, 1]"},
        {"{{ people | map(attribute='n') | join }}"
         "{{ people | selectattr('age', 'equalto', 3) | map(attribute='n') | list }}"
         "{{ list | select('odd') | list }}{{ list | reject('gt', 1) | list }}",
         "xyz['x', 'z'][3, 1][1]"},
        {"{{ list | sum }} {{ people | sum('age') }} {{ list | max }} {{ words | min "
         "}} "
         "{{ list | first }}{{ list | last }} {{ list | reverse | list }}",
         "6 7 3 A 32 [2, 1, 3]"},
        {"{% for age, who in people | groupby('age') %}{{ age }}:{{ who | "
         "map(attribute='n') "
         "| join }} {% endfor %}",
         "1:y 3:xz "},
        {"{{ [1, 2, 3] | batch(2, 0) | list }} {{ [1, 1, 'a', 'A'] | unique | list }}",
         "[[1, 2], [3, 0]] [1, 'a']"},
        {"{{ 'a\nb' | indent(2) }}|{{ '<a&b>' | escape }}|{{ '7' | int + 1 }}|"
         "{{ 'x' | int(3) }}|{{ 2.5 | round }}|{{ '1.5' | float }}",
         "a\n  b|&lt;a&amp;b&gt;|8|3|2.0|1.5"},
        {"{{ missing | default('d') }}{{ empty | default('e', true) }}{{ name | d('x') "
         "}}",
         "deAnn"},
        {"{{ dict | tojson }}", "{\"b\": 1, \"a\": [1, {\"x\": \"y\"}], \"items\": 5}"},
        {"{{ '' | indent(2, true) }}|{{ 'a\\r\\n\\nb\\n' | indent(1, blank=true) }}|",
         "  |a\n \n b\n |"},
        {"{{ \"it's (an) a-b\" | title }} {{ \"it's\".title() }}",
         "It's (An) A-B It'S"},
        {"{{ ' ' | int(5) }} {{ missing is callable }}", "5 True"},
        {"{{ {'a': [1, {}], 'b': 'q\"<>\u00e9\n'} | tojson(indent=2) }}",
         "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"q\\\"<>\xc3\xa9\\n\"\n}"},
        {"{{ ('a' ~ name)[9:] ~ '' }}|{{ ('a' ~ name)[9:] | upper }}", "|"},
        {"{{ [1.0, true, none] | tojson(separators=(',', ':')) }}", "[1.0,true,null]"},
        {"{{ '{\"a\": [1]}' | from_json }}", "{'a': [1]}"},
    };

    (void)state;
    EXPECT(cases);
}

static void tests_of_values(void **state)
{
    static const struct gives cases[] = {
        {"{{ n is number }}{{ n is string }}{{ name is string }}{{ nothing is none }}",
         "TrueFalseTrueTrue"},
        {"{{ dict is mapping }}{{ list is mapping }}{{ list is sequence }}"
         "{{ list is iterable }}{{ n is iterable }}{{ yes is boolean }}",
         "TrueFalseTrueTrueFalseTrue"},
        {"{{ n is odd }}{{ n is divisibleby 7 }}{{ n is not even }}{{ 2 is in list }}",
         "TrueTrueTrueTrue"},
        {"{{ missing is undefined and n is defined }}{{ yes is true }}{{ 1 is true }}",
         "TrueTrueFalse"},
        {"{{ 'a' is lower }}{{ 'a' is eq 'a' }}{{ n is ge(7) }}{{ n is integer }}",
         "TrueTrueTrueTrue"},
    };

    (void)state;
    EXPECT(cases);
}

static void tags(void **state)
{
    static const struct gives cases[] = {
        {"{% if n > 9 %}a{% elif n > 5 %}b{% else %}c{% endif %}", "b"},
        {"{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ "
         "loop.last }}"
         "{{ loop.length }}{{ loop.revindex }}{{ x }} {% endfor %}",
         "10TrueFalse333 21FalseFalse321 32FalseTrue312 "},
        {"{% for x in [1, 2] %}{% if x == 1 %}{% break %}{% endif %}{% else %}e{% "
         "endfor %}"
         "{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}e{% "
         "endfor %}",
         "e"},
        {"{% for x in [] %}x{% else %}none{% endfor %}{% for x in missing %}x{% endfor "
         "%}",
         "none"},
        {"{% for k, v in dict.items() if k != 'a' %}{{ k }}={{ v }}{{ loop.length }} "
         "{% endfor %}",
         "b=12 items=52 "},
        {"{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}"
         "{% if loop.nextitem is defined %}>{{ loop.nextitem }} {% endif %}{% endfor "
         "%}",
         "3>1 2"},
        {"{% for x in list %}{% if loop.index > 1 %}{% break %}{% endif %}{{ x }}{% "
         "endfor %}",
         "3"},
        {"{% for x in [[1, [2]], 3] recursive %}{% if x is iterable %}({{ loop(x) }})"
         "{% else %}{{ x }}{{ loop.depth }}{% endif %}{% endfor %}",
         "(12(23))31"},
        /* what is set in a loop is gone behind it, but in a namespace */
        {"{% set a = 1 %}{% for x in list %}{% set a = x %}{% endfor %}{{ a }}"
         "{% set s = namespace(a=0) %}{% for x in list %}{% set s.a = s.a + x %}{% "
         "endfor %}"
         "{{ s.a }}{% if yes %}{% set a = 5 %}{% endif %}{{ a }}",
         "165"},
        {"{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c %}x{{ a }}{% endset %}{{ c }}"
         "{% set d | upper %}abc{% endset %}{{ d }}",
         "12x1ABC"},
        {"{% macro m(a, b=2) %}{{ a }}-{{ b }}{{ varargs }}{% endmacro %}{{ m(1) }} "
         "{{ m(1, 3, 4) }} {{ m(b=5, a=6) }}",
         "1-2() 1-3(4,) 6-5()"},
        {"{% macro box(t) %}[{{ t }}:{{ caller(7) }}]{% endmacro %}"
         "{% call(x) box('a') %}{{ x }}{{ name }}{% endcall %}",
         "[a:7Ann]"},
        {"{% with a, b = (1, 2) %}{{ b }}{% endwith %}", "2"},
        {"{% filter upper %}a{{ name }}{% endfilter %}{% with a = 1, b = 2 %}{{ a }}{{ "
         "b }}"
         "{% endwith %}{{ a }}{% raw %}{{ x }}{% endraw %}{% generation %}g{% "
         "endgeneration "
         "%}",
         "AANN12{{ x }}g"},
        {"{% set l = [] %}{{ range(3) | list }}{{ range(1, 6, 2) | list }}"
         "{{ namespace(a=1).a }}",
         "[0, 1, 2][1, 3, 5]1"},
        {"{{ strftime_now('%Y') | length }}{{ bos_token }}", "4<s>"},
    };

    (void)state;
    EXPECT(cases);
}

static void white_space(void **state)
{
    static const struct gives cases[] = {
        {"a\n  {% if yes %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"},
        {"a {%- if yes %} b {% endif -%} \n c", "a b c"},
        {"a\n  {{ n }}\n b", "a\n  7\n b"},
        {"a\n  {{- n -}}\n b", "a7b"},
        {"  {%+ if yes %}x{% endif +%}\ny", "  x\ny"},
        {"a\n  {# note #}\nb{#- x -#} c", "a\nbc"},
        {"x {% if yes %}\ny{% endif %}", "x y"},
        {"a\r\nb\rc\n\n", "a\nb\nc\n"},
        {"{{ {'a': {'b': 1}}['a'] }}", "{'b': 1}"},
        {"{ {} { % } # {", "{ {} { % } # {"},
    };

    (void)state;
    EXPECT(cases);
}

static void refusals(void **state)
{
    static const struct gives cases[] = {
        {"{{ raise_exception('no system') }}", "line 1: no system"},
        {"a\nb\n{{ missing.x }}", "line 3: 'missing' is undefined"},
        {"{{ missing() }}", "'missing' is undefined"},
        {"{{ 1 + 'a' }}", "'+' is not for int and string"},
        {"{{ n.x.y }}", "'x' is undefined"},
        {"{{ 1 // 0 }}", "division by zero"},
        {"{{ 9223372036854775807 + 1 }}", "too large"},
        {"{{ list.append(1) }}", "'append' is undefined"},
        {"{% set dict.b = 2 %}", "only a namespace"},
        {"{% for x in 5 %}{% endfor %}", "cannot be iterated"},
        {"{% for x in nothing %}{% endfor %}", "cannot be iterated"},
        {"{% for 5 in list %}{% endfor %}", "a value cannot be set to an expression"},
        {"{% for [x] in list %}{% endfor %}", "cannot be set to an expression"},
        {"{% for x, (y, 5) in list %}{% endfor %}", "cannot be set to an expression"},
        {"{% for people[0] in list %}{% endfor %}", "cannot be set to an expression"},
        {"{% for dict.b in list %}{% endfor %}", "cannot be set to an expression"},
        {"{% with dict.b = 2 %}{% endwith %}", "cannot be set to an expression"},
        {"{{ x | nofilter }}", "there is no filter 'nofilter'"},
        {"{{ x is notest }}", "there is no test 'notest'"},
        {"{{ missing | tojson }}", "no form in JSON"},
        {"{{ missing | int }}", "'missing' is undefined"},
        {"{{ 'a' % 2 }}", "a format needs fewer values"},
        {"{{ 1e5e5 }}", "there is 'e5' where '}}' belongs"},
        {"{{ 1__0 }}", "where '}}' belongs"},
        {"{{ 9223372036854775808 }}", "is too large"},
        {"{{ 1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1e+1 }}",
         "where '}}' belongs"},
        {"{{ 0.12345678901234567890123456789012345678901234567890123456789012 }}",
         "is too long"},
        {"{{ 12345678901234567890123456789012345678901234567890123456789012e+5 }}",
         "is too long"},
        {"{{ 'a'.zfill(8955976040786690046) }}", "steps"},
        {"{{ 'a'.center(9223372036854775807) }}", "steps"},
        {"{{ '%d' % 1e999 }}", "%d has no form of inf"},
        {"{{ '%d' % (1e999 - 1e999) }}", "%d has no form of nan"},
        {"{{ '%i' % 1e30 }}", "%i has no form of a number beyond 64 bits"},
        {"{{ '%x' % 1.5 }}", "%x needs an int"},
        {"{{ '%d' % 'a' }}", "%d needs a number, and there is a str"},
        {"{{ '%100d' % 1 }}", "a width of more than two digits"},
        {"{{ '%..1f' % 1 }}", "%., which is not supported"},
        {"{{ '% ' % 1 }}", "ends in the middle of %"},
        {"{{ 5 | indent }}", "'indent' needs a text"},
        {"{{ list in dict }}", "a list is no key of a dict"},
        {"{{ [list] | unique | join }}", "a list is no key of a dict"},
        {"{% if yes %}", "the end of the template"},
        {"{{ 1 + }}", "line 1: there is '}}'"},
        {"{% include 'x' %}", "'include' is not for chat templates"},
        {"{% foo %}", "the name of a tag"},
        {"{{ 'abc }}", "no closing '"},
        {"{# abc", "no end '#}'"},
        {"{{ (1 }}", "where ')' belongs"},
        {"{% break %}", "is in no loop"},
        {"{{ range(1000000000) }}", "more than 100000 elements"},
        {"{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) "
         "%}"
         "{% endfor %}{% endfor %}{% endfor %}",
         "steps"},
        {"{{ 'abcdefgh' * 1000000000 }}", "MiB of memory"},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deep"},
        {"{{ g(1) }}{% macro g() %}{% endmacro %}", "'g' is undefined"},
        {"{% macro f() %}{% endmacro %}{{ f(1) }}", "macro 'f' takes 0 values"},
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

/* The bytes of the output that are the template's own, others as dots. */
static void expect_own(const char *template, const char *want)
{
    struct err err = ERR_INIT;
    struct jinja_text out;
    char *own;

    if (run(template, &out, &err))
        fail_msg("%s: %s", template, err.msg);
    own = malloc(out.len + 1);
    assert_non_null(own);
    memset(own, '.', out.len);
    own[out.len] = '\0';
    for (size_t i = 0; i < out.n_own; i++)
        memcpy(own + out.own[i].begin, out.text + out.own[i].begin,
               out.own[i].end - out.own[i].begin);
    if (strcmp(own, want))
        fail_msg("%s: \"%s\", expected \"%s\"", template, own, want);
    free(own);
    jinja_text_free(&out);
}

static void knows_what_is_the_templates_own(void **state)
{
    (void)state;
    expect_own("{{ (name ~ '\\nb') | indent(2) }}", "...\n  b");
    expect_own("{{ ('b\\n' ~ name) | indent(2) }}", "b\n  ...");
    expect_own("<a>{{ name }}</a>", "<a>...</a>");
    expect_own("{{ bos_token ~ '[' ~ name ~ ']' }}", "<s>[...]");
    expect_own("{{ ('<' + name + '>').replace('>', '!') }}", "<...!");
    expect_own("{{ ('ab' ~ name ~ 'cd')[1:-1] }}", "b...c");
    expect_own("{{ (' ' ~ name ~ ' x ') | trim }}", "... x");
    expect_own("{{ (name ~ '-b').split('-') | join('+') }}", "...+b");
    expect_own("{{ ('a' ~ name) | upper }}{{ name | lower }}", "A......");
    expect_own("{{ [name, 'x'] | join(',') }}", "...,x");
    expect_own("{{ '%s:%s' % (name, 'y') }}", "...:y");
    expect_own("{{ [name] }}", "['...']");
    expect_own("{{ {'k': name} | tojson }}", "{\"k\": .....}");
    expect_own("{{ people[0] | tojson }}", "{...: ..., .....: 3}");
    expect_own("{% set x %}<{{ name }}>{% endset %}{{ x }}{{ x | length }}", "<...>5");
    expect_own("{% macro m(a) %}({{ a }}){% endmacro %}{{ m(name) }}", "(...)");
    expect_own("{{ name | replace('n', '<e>') }}", ".<e><e>");
    expect_own("{{ '<A>' if name.startswith('A') }}", "<A>");
}

/* Every prefix of a template is a template, or is refused in a sentence. */
static void survives_truncation(void **state)
{
    static const char whole[] =
        "{%- set ns = namespace(a=[1, 2.5e1, 'x\\n\\u00e9']) -%}\n{# c #}"
        "{% macro m(a, b='q') %}{{ a[1:2] ~ b | upper }}{% endmacro %}\n"
        "{% for m2 in people if m2.age is not none recursive %}{{ loop.index }}"
        "{% if m2.n == 'x' and not (1 < 2) %}{{- m(m2.n, b=-1) -}}{% elif n %}{{ "
        "dict['a'] }}"
        "{% else %}{% raw %}{{{% endraw %}{% endif %}{% endfor %}{% call(z) m(1) %}"
        "{{ z }}{% endcall %}{{ {'a': (1, 2), 'b': {}} | tojson(indent=1) }}";

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++) {
        char *part = guard_alloc(n + 1);
        struct err err = ERR_INIT;
        struct jinja_text out = {.text = NULL};

        memcpy(part, whole, n);
        part[n] = '\0';
        if (run(part, &out, &err))
            assert_non_null(strstr(err.msg, "chat template, line "));
        jinja_text_free(&out);
        guard_free(part, n + 1);
    }
}

static void refuses_what_is_no_text(void **state)
{
    struct jinja *j = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(jinja_compile(&j, "a\n\xff", 3, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "line 2: it is not UTF-8"));
    err_clear(&err);
    assert_int_equal(jinja_compile(&j, "a\0b", 3, &err), ST_INPUT);
}

/* ---- published templates, where the reference data is ---------------------------- */

static int check_template(const json_t *t, const json_t *cases, time_t now)
{
    const char *text = json_string_value(json_object_get(t, "chat_template"));
    json_t *own = json_pack("{s:O, s:O}", "bos_token", json_object_get(t, "bos_token"),
                            "eos_token", json_object_get(t, "eos_token"));
    struct err err = ERR_INIT;
    struct jinja *j = NULL;
    const enum status compiled = jinja_compile(&j, text, strlen(text), &err);
    const char *name;
    json_t *want;
    int n_wrong = 0;

    json_object_foreach(json_object_get(t, "expected"), name, want)
    {
        struct jinja_text out = {.text = NULL};
        struct err why = ERR_INIT;
        const bool renders =
            !compiled &&
            !jinja_render(j, own, json_object_get(cases, name), now, &out, &why);

        if (renders != json_is_string(want) ||
            (renders && strcmp(out.text, json_string_value(want)))) {
            print_message("%s, %s: %s\n", json_string_value(json_object_get(t, "name")),
                          name, renders ? out.text : why.msg);
            n_wrong++;
        }
        jinja_text_free(&out);
    }
    jinja_free(j);
    json_decref(own);
    return n_wrong;
}

static const char *published = SLM_SOURCE_DIR "/../shared/golden/chat/templates.json";

static void published_templates(void **state)
{
    json_t *d = json_load_file(published, 0, NULL);
    struct tm tm = {.tm_isdst = -1};
    json_t *t;
    size_t i;
    int n_wrong = 0;

    (void)state;
    if (!d) {
        print_message("skipped: %s is not there\n", published);
        skip();
    }
    assert_non_null(strptime(json_string_value(json_object_get(d, "now")),
                             "%Y-%m-%dT%H:%M:%S", &tm));
    json_array_foreach(json_object_get(d, "templates"), i, t) n_wrong +=
        check_template(t, json_object_get(d, "cases"), mktime(&tm));
    json_decref(d);
    assert_int_equal(n_wrong, 0);
}

/* Argument: a file of templates, cases and texts, which alone is tried. */
int main(int argc, char **argv)
{
    const struct CMUnitTest given[] = {cmocka_unit_test(published_templates)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions),
        cmocka_unit_test(formats),
        cmocka_unit_test(large_numbers),
        cmocka_unit_test(filters_and_methods),
        cmocka_unit_test(tests_of_values),
        cmocka_unit_test(tags),
        cmocka_unit_test(white_space),
        cmocka_unit_test(refusals),
        cmocka_unit_test(knows_what_is_the_templates_own),
        cmocka_unit_test(survives_truncation),
        cmocka_unit_test(refuses_what_is_no_text),
        cmocka_unit_test(published_templates),
    };

    if (argc > 1) {
        published = argv[1];
        return cmocka_run_group_tests(given, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * test_jinja_python.c - filters, methods and operators, as Jinja 3.1.6 renders them
 */
#include "engine/jinja/jinja.h"
#include "tests/engine/jinja/jinja_check.h"

/* No variables but Jinja's own functions. */
static enum status run(const char *template, struct jinja_text *out, struct err *err)
{
    return jinja_run(template, json_object(), json_object(), out, err);
}

#define EXPECT(cases) jinja_expect(run, cases, sizeof cases / sizeof cases[0])

static void texts(void **state)
{
    static const struct gives cases[] = {
        {"{{ 'aXbX' | replace('X', 'y', 1) }}|{{ 'aXb' | replace(old='X', new='') "
         "}}|{{ 'a\\nb' | indent('>>') }}|{{ 'a\\nb\\n' | indent(2) }}",
         "aybX|ab|a\n>>b|a\n  b\n"},
        {"{{ 'a\\r' | indent(2, true) }}|{{ '' | indent(2, true, true) }}|{{ "
         "'a\\n\\nb' | indent(1, blank=true) }}|{{ 'a\\r\\nb\\rc' | indent(1) }}",
         "  a|  |a\n \n b|a\n b\n c"},
        {"{{ 'foo bar baz qux' | truncate(9) }}|{{ 'foo bar baz qux' | truncate(9, "
         "true) }}|{{ 'foo bar baz qux' | truncate(9, false, '..') }}",
         "foo...|foo ba...|foo.."},
        {"{{ 'foo bar baz qux' | truncate(11, end='') }}|{{ 'foo bar baz qux' | "
         "truncate(9, leeway=0) }}|{{ 'foobarbazqux' | truncate(6, leeway=0) }}",
         "foo bar baz qux|foo...|foo..."},
        {"{{ 'short' | truncate }}|{{ '%s and %s' | format(1, 'x') }}|{{ 'x' | format "
         "}}|{{ 'a b/\u00e9~-_.?&=Z9' | urlencode }}|{{ '' | urlencode }}",
         "short|1 and x|x|a%20b/%C3%A9~-_.%3F%26%3DZ9|"},
        {"{{ '@`[{/:' | urlencode }}|{{ 'abc'.startswith(('x', 'ab')) }}|{{ "
         "'abc'.endswith(('x', 'y')) }}|{{ 'abc'.startswith(()) }}",
         "%40%60%5B%7B/%3A|True|False|False"},
        {"{{ 'abc'.startswith('abcd') }}|{{ 'abc'.removeprefix('ab') }}|{{ "
         "'abc'.removeprefix('b') }}|{{ 'abc'.removesuffix('bc') }}",
         "False|c|abc|a"},
        {"{{ 'abc'.removesuffix('b') }}|{{ ' a b  c '.split(none, 1) }}|{{ 'a "
         "b'.split(none, 5) }}|{{ ' a '.split() }}|{{ ''.split() }}",
         "abc|['a', 'b  c ']|['a', 'b']|['a']|[]"},
        {"{{ 'a,b,c'.split(',', 1) }}|{{ ''.split(',') }}|{{ 'a,b,c'.rsplit(',', 1) "
         "}}|{{ 'a,b,c'.rsplit(',') }}|{{ 'a'.rsplit('long one') }}",
         "['a', 'b,c']|['']|['a,b', 'c']|['a', 'b', 'c']|['a']"},
        {"{{ 'a,b'.rsplit(',', 0) }}|{{ 'a\\r\\nb\\rc\\n'.splitlines() }}|{{ "
         "'a\\r\\nb\\rc\\n'.splitlines(true) }}|{{ ''.splitlines() }}|{{ "
         "'a-b-c'.partition('-') }}",
         "['a,b']|['a', 'b', 'c']|['a\\r\\n', 'b\\r', 'c\\n']|[]|('a', '-', 'b-c')"},
        {"{{ 'abc'.partition('-') }}|{{ 'a-b-c'.rpartition('-') }}|{{ "
         "'abc'.rpartition('-') }}|{{ 'abcb'.find('b') }}|{{ 'abcb'.rfind('b') }}",
         "('abc', '', '')|('a-b', '-', 'c')|('', '', 'abc')|1|3"},
        {"{{ 'abc'.find('x') }}|{{ '\u00e9 b'.find('b') }}|{{ 'abcb'.index('b') }}|{{ "
         "'abab'.count('ab') }}|{{ '\u00e9'.count('') }}|{{ 'a'.rfind('abc') }}",
         "-1|2|1|2|2|-1"},
        {"{{ ','.join(['a', 'b']) }}|{{ ','.join([]) }}|{{ '-'.join('abc') }}|{{ "
         "'12'.isdigit() }}|{{ '1a'.isdigit() }}|{{ ''.isdigit() }}|{{ "
         "'a\u00e9'.isalpha() }}",
         "a,b||a-b-c|True|False|False|True"},
        {"{{ 'a1'.isalpha() }}|{{ '\u01c5'.isalpha() }}|{{ '_'.isalpha() }}|{{ "
         "'a1'.isalnum() }}|{{ '1a'.isalnum() }}|{{ 'a-'.isalnum() }}|{{ ' "
         "\\t'.isspace() }}",
         "False|True|False|True|True|False|True"},
        {"{{ 'a'.isspace() }}|{{ 'AB'.isupper() }}|{{ 'Ab'.isupper() }}|{{ "
         "'\u01c5'.isupper() }}|{{ '1'.isupper() }}|{{ 'ab1'.islower() }}|{{ "
         "'aB'.islower() }}",
         "False|True|False|False|False|True|False"},
        {"{{ '\u01c5'.islower() }}|{{ 'a'.ljust(3) ~ '|' }}|{{ 'a'.rjust(3, '*') }}|{{ "
         "'ab'.center(5) ~ '|' }}|{{ 'ab'.center(4, '-') }}|{{ 'abc'.center(6, '-') }}",
         "False|a  ||**a|  ab ||-ab-|-abc--"},
        {"{{ 'abc'.center(2) }}|{{ ''.zfill(2) }}|{{ '-5'.zfill(4) }}|{{ '+5'.zfill(4) "
         "}}|{{ 'abc'.zfill(2) }}|{{ 'a'.zfill(-1) }}|{{ '{{x}}'.format() }}",
         "abc|00|-005|+005|abc|a|{x}"},
        {"{{ '{0}{1}{0}'.format('a', 2) }}|{{ '{} {a}'.format(1, a=none) }}|{{ "
         "'a}}b'.format() }}|{{ '\U0001f600 x' | upper }}|{{ '\U0001f600'.isalpha() "
         "}}|{{ '\u03a3'.lower() }}",
         "a2a|1 None|a}b|\U0001f600 X|False|\u03c3"},
        {"{{ '\u0391\u03a3'.lower() }}|{{ '\u0391\u03a3\u0391'.lower() }}|{{ "
         "'\u0391\u03a3 \u0391\u03a3.'.lower() }}|{{ 'a\u03a3\u01c5'.lower() }}|{{ "
         "'\u01c6 x'.title() }}|{{ '\u00df'.upper() }}|{{ '\ufb01x'.title() }}",
         "\u03b1\u03c2|\u03b1\u03c3\u03b1|\u03b1\u03c2 "
         "\u03b1\u03c2.|a\u03c3\u01c6|\u01c5 X|SS|Fix"},
        {"{{ '\u00e9a-b c(d' | title }}|{{ '\u00c9A' | capitalize }}|{{ 'aB "
         "\u00e7'.swapcase() }}|{{ 'hello_world 1st' | title }}|{{ '' * 3 }}|{{ 'ab' * "
         "0 }}|{{ 'ab' * -1 }}",
         "\u00c9a-B C(D|\u00c9a|Ab \u00c7|Hello_world 1st|||"},
        {"{{ 'abc'.replace('', '-') }}|{{ 'abc'.replace('', '-', 2) }}|{{ "
         "'abc'.replace('', '-', 0) }}|{{ 'abc'.replace('x', 'y') }}|{{ '  a '.strip() "
         "~ '|' }}",
         "-a-b-c-|-a-bc|abc|abc|a|"},
        {"{{ 'xay'.strip('xy') }}|{{ 'xay'.lstrip('xy') }}|{{ 'xay'.rstrip('xy') }}|{{ "
         "' a '.lstrip() ~ '|' }}|{{ 'aaa'.strip('a') ~ '|' }}",
         "a|ay|xa|a |||"},
        {"{{ 'abc'.center(5, '\u65e5') }}|{{ '\u65e5\u672c'.ljust(3, '-') }}|{{ 'a b "
         "c' | wordcount }}|{{ '<&>\"\\'' | e }}|{{ 'a' | center(4) ~ '|' }}|{{ "
         "'\\x09'.isspace() }}",
         "\u65e5abc\u65e5|\u65e5\u672c-|3|&lt;&amp;&gt;&#34;&#39;| a  ||True"},
        {"{{ '\\x0b'.isspace() }}|{{ '\\x0e'.isspace() }}|{{ '\\x1b'.isspace() }}|{{ "
         "'\\x1c'.isspace() }}|{{ '\\x1f'.isspace() }}|{{ '\\x85'.isspace() }}",
         "True|False|False|True|True|True"},
        {"{{ '\\xa0'.isspace() }}|{{ '\\u1680'.isspace() }}|{{ '\\u2000'.isspace() "
         "}}|{{ '\\u200a'.isspace() }}|{{ '\\u200b'.isspace() }}|{{ "
         "'\\u1fff'.isspace() }}",
         "True|True|True|True|False|False"},
        {"{{ '\\u2028'.isspace() }}|{{ '\\u2029'.isspace() }}|{{ '\\u202f'.isspace() "
         "}}|{{ '\\u205f'.isspace() }}|{{ '\\u3000'.isspace() }}|{{ '!'.isspace() }}",
         "True|True|True|True|True|False"},
    };

    (void)state;
    EXPECT(cases);
}

static void numbers(void **state)
{
    static const struct gives cases[] = {
        {"{{ '1_000' | int }}|{{ ' 12 ' | int }}|{{ '12\\n' | int }}|{{ 'x10' | int "
         "}}|{{ '0x10' | int }}|{{ '1e3' | int }}|{{ '-5' | int }}|{{ '1.9' | int }}",
         "1000|12|12|0|0|1000|-5|1"},
        {"{{ '12 x' | int }}|{{ [1] | int }}|{{ none | int }}|{{ '1' | int }}|{{ true "
         "| int }}|{{ '' | int }}|{{ '1.5' | float }}|{{ 'x' | float }}",
         "0|0|0|1|1|0|1.5|0.0"},
        {"{{ none | float }}|{{ '1e400' | float }}|{{ '7' | float }}|{{ "
         "'0000000000000000000000000000000000000000000000000000000000000000000000' | "
         "float }}",
         "0.0|inf|7.0|0.0"},
        {"{{ -5 | abs }}|{{ -2.5 | abs }}|{{ true | abs }}|{{ 5 | abs }}|{{ 2.5 | "
         "round }}|{{ 2.567 | round(2) }}|{{ 2.1 | round(0, 'ceil') }}",
         "5|2.5|1|5|2.0|2.57|3.0"},
        {"{{ 2.9 | round(method='floor') }}|{{ 42.0 | round }}|{{ -2.5 | round }}|{{ "
         "2.5 | round(0, 'common') }}|{{ 3.5 | round | int }}",
         "2.0|42.0|-2.0|2.0|4"},
        {"{{ true | round(1, 'ceil') }}|{{ 1234.5 | round(-2) }}|{{ 2.675 | round(2) "
         "}}|{{ 42 | round }}|{{ 0.1 + 0.2 }}|{{ 1e999 }}|{{ -1e999 }}|{{ 12.345 }}",
         "1.0|1200.0|2.67|42|0.30000000000000004|inf|-inf|12.345"},
        {"{{ 0.125 }}|{{ 1e15 }}|{{ 123456789012345680.0 }}|{{ 1e-5 }}|{{ 0.0001 }}|{{ "
         "-0.0 }}|{{ 5e-324 }}|{{ 1.7976931348623157e308 }}|{{ -8 // 2 }}",
         "0.125|1000000000000000.0|1.2345678901234568e+17|1e-05|0.0001|-0.0|5e-324|1."
         "7976931348623157e+308|-4"},
        {"{{ -7 // 2 }}|{{ 7 // -2 }}|{{ 7 // -1 }}|{{ 7 % -1 }}|{{ -7 % 3 }}|{{ 7 % "
         "-3 }}|{{ 1.5 + 1 }}|{{ 1.5 - 1 }}|{{ 7.5 % 2 }}|{{ -7.5 // 2 }}",
         "-4|-4|-7|0|2|-2|2.5|0.5|1.5|-4.0"},
        {"{{ true * 2 }}|{{ true + true }}|{{ +true }}|{{ -true }}|{{ -2.5 }}|{{ +2.5 "
         "}}|{{ 2 ** 3 }}|{{ true // 1 }}|{{ 2 ** 0.5 }}|{{ 1.5 * 2 }}|{{ 3 / 2 }}",
         "2|2|1|-1|-2.5|2.5|8|1|1.4142135623730951|3.0|1.5"},
        {"{{ 1 == 1.0 }}|{{ true == 1 }}|{{ true == 1.5 }}|{{ true < 2 }}|{{ 1.5 < 2 "
         "}}|{{ 2 < 1.5 }}|{{ 1 < true }}|{{ 1.0 == 1 }}|{{ 2.5 > true }}",
         "True|True|False|True|True|False|False|True|True"},
        {"{{ 1e999 - 1e999 == 1e999 - 1e999 }}|{{ (1e999 - 1e999) < 1 }}|{{ 5 is "
         "divisibleby(-1) }}|{{ 5 is divisibleby(2) }}|{{ 4 is even }}|{{ -3 is odd }}",
         "False|False|True|False|True|True"},
        {"{{ 9223372036854775807 // 1 }}|{{ 5 is filter }}|{{ 'upper' is filter }}|{{ "
         "'no' is filter }}|{{ 'odd' is test }}|{{ 'no' is test }}|{{ 5 is test }}",
         "9223372036854775807|False|True|False|True|False|False"},
        {"{{ -42 | round }}|{{ 1250 | round(-2) }}|{{ 1350.0 | round(-2) }}|{{ true | "
         "round }}|{{ 0.5 | round }}|{{ 1.5 | round }}|{{ 2.5 | round(400) }}",
         "-42|1200|1400.0|1|0.0|2.0|2.5"},
        {"{{ 1e308 | round(2) }}|{{ 7 | round(2) }}|{{ 1e999 | round }}|{{ '1_2_3' | "
         "int }}|{{ '9223372036854775807' | int }}|{{ '1E3' | int }}",
         "1e+308|7|inf|123|9223372036854775807|1000"},
        {"{{ '\\t1\\n' | float }}|{{ -0.4 | round }}|{{ false | abs }}|{{ "
         "-9223372036854775807 | abs }}|{{ 7 | round(0, 'floor') }}|{{ 1.25 | round(1) "
         "}}",
         "1.0|-0.0|0|9223372036854775807|7.0|1.2"},
        {"{{ '-9223372036854775808' | int }}|{{ 2.0e10 | int }}|{{ 'nan' | int(5) "
         "}}|{{ 'inf' | float }}",
         "-9223372036854775808|20000000000|5|inf"},
    };

    (void)state;
    EXPECT(cases);
}

static void lists(void **state)
{
    static const struct gives cases[] = {
        {"{{ [{'a': {'b': 1}}, {'a': {'b': 2}}] | map(attribute='a.b') | list }}|{{ "
         "[[1, 2], [3, 4]] | map(attribute=1) | list }}",
         "[1, 2]|[2, 4]"},
        {"{{ [{'a': 1}, {}] | map(attribute='a', default='d') | list }}|{{ ['a', 'b'] "
         "| map('upper') | list }}|{{ [1, none] | map('default', 5, true) | list }}",
         "[1, 'd']|['A', 'B']|[1, 5]"},
        {"{{ [[2, 'x'], [1, 'y']] | sort(attribute=0) }}|{{ missing | items | list "
         "}}|{{ {'a': 1} | items | list }}|{{ {'b': 1, 'a': 2} | dictsort }}",
         "[[1, 'y'], [2, 'x']]|[]|[('a', 1)]|[('a', 2), ('b', 1)]"},
        {"{{ {'b': 1, 'a': 2} | dictsort(by='value') }}|{{ {'b': 2, 'A': 1} | "
         "dictsort(true, 'key', true) }}|{{ {'b': 1, 'a': 2} | dictsort(false, 'key') "
         "}}",
         "[('b', 1), ('a', 2)]|[('b', 2), ('A', 1)]|[('a', 2), ('b', 1)]"},
        {"{{ 'abc' | reverse }}|{{ '' | reverse }}|{{ [1, 2] | reverse | list }}|{{ "
         "'\u00e9\u65e5' | reverse }}|{{ [1, 2, 3] | batch(2) | list }}",
         "cba||[2, 1]|\u65e5\u00e9|[[1, 2], [3]]"},
        {"{{ [1, 2, 3] | batch(2, 'x') | list }}|{{ [] | batch(2, 'x') | list }}|{{ "
         "[1, 2] | batch(2, 'x') | list }}|{{ [1, 2, 3] | batch(2, none) | list }}",
         "[[1, 2], [3, 'x']]|[]|[[1, 2]]|[[1, 2], [3]]"},
        {"{{ [1, 2, 3] | slice(2) | list }}|{{ [1, 2, 3] | slice(2, 'x') | list }}|{{ "
         "[] | slice(2) | list }}|{{ [1] | slice(3, 'x') | list }}",
         "[[1, 2], [3]]|[[1, 2], [3, 'x']]|[[], []]|[[1], ['x'], ['x']]"},
        {"{{ [1, 2, 3, 4] | slice(2, 'x') | list }}|{{ [1, 2, 3] | slice(2, none) | "
         "list }}|{{ [1, 2] | sum }}|{{ [1, 2] | sum(start=10) }}",
         "[[1, 2, 'x'], [3, 4, 'x']]|[[1, 2], [3]]|3|13"},
        {"{{ [1, 2] | sum(start=1.5) }}|{{ [1.5, 2] | sum }}|{{ [true, 2] | sum }}|{{ "
         "[] | sum }}|{{ [] | sum(start=2) }}|{{ [{'a': 1}, {'a': 2}] | sum('a') }}",
         "4.5|3.5|3|0|2|3"},
        {"{{ [{'a': 1}, {'a': 2}] | sum(attribute='a') }}|{{ [2.5] | sum(start=1) "
         "}}|{{ [1] | sum(start=true) }}|{{ [0, 1, ''] | select | list }}",
         "3|3.5|2|[1]"},
        {"{{ [0, 1, ''] | reject | list }}|{{ [1, 2, 3] | select('odd') | list }}|{{ "
         "[1, 2, 3] | reject('divisibleby', 2) | list }}",
         "[0, '']|[1, 3]|[1, 3]"},
        {"{{ [{'a': 1}, {'a': 0}] | selectattr('a') | list }}|{{ [{'a': 1}, {'a': 0}] "
         "| rejectattr('a') | list }}",
         "[{'a': 1}]|[{'a': 0}]"},
        {"{{ [{'a': 1}] | selectattr('a', 'eq', 1) | list }}|{{ [1, 2][true] }}|{{ [1, "
         "2][-2] }}|{{ [1, 2][-3] is defined }}|{{ [1, 2][9] is defined }}",
         "[{'a': 1}]|2|1|False|False"},
        {"{{ 'abc'[true] }}|{{ 'abc'[-3] }}|{{ 'abc'[-4] is defined }}|{{ 'abc'[3] is "
         "defined }}|{{ [1]['x'] is defined }}|{{ [1][1.5] is defined }}",
         "b|a|False|False|False|False"},
        {"{{ 5[0] is defined }}|{{ 'abc'['x'] is defined }}|{{ {1: 'a'}[1] }}|{{ {'a': "
         "1}[2] is defined }}|{{ {1: 'a'}[true] }}|{{ {1: 'a'}[1.0] }}",
         "False|False|a|False|a|a"},
        {"{{ [1, 2, 3][none:2] }}|{{ [1, 2, 3][::none] }}|{{ [1, 2, 3][-99:99] }}|{{ "
         "[1, 2, 3][2:1] }}|{{ 'abcdef'[::2] }}|{{ 'abc'[::-1] }}|{{ 'abcd'[3:0:-2] }}",
         "[1, 2]|[1, 2, 3]|[1, 2, 3]|[]|ace|cba|db"},
        {"{{ 'abc'[2:1] }}|{{ 'abc'[-1:] }}|{{ '\u65e5\u672c\u8a9e'[1:] }}|{{ "
         "'\u65e5\u672c\u8a9e'[::-1] }}|{{ [1, 2, 3][5::-1] }}|{{ (1, 2, 3)[1:] }}|{{ "
         "[1, 2, 3][::9] }}|{{ 'abc'[:-99] }}",
         "|c|\u672c\u8a9e|\u8a9e\u672c\u65e5|[3, 2, 1]|(2, 3)|[1]|"},
        {"{{ [1] + [2] }}|{{ (1,) + (2,) }}|{{ [] * 3 }}|{{ [1] * 0 }}|{{ 2 * [1] "
         "}}|{{ 2 * 'a' }}|{{ (1,) * 2 }}|{{ [1, 'a'] * 2 }}|{{ (1,) == [1] }}",
         "[1, 2]|(1, 2)|[]|[]|[1, 1]|aa|(1, 1)|[1, 'a', 1, 'a']|False"},
        {"{{ [1] == [1, 2] }}|{{ [1, 2] == [1, 3] }}|{{ {'a': 1} == {'b': 1} }}|{{ "
         "{'a': 1} == {'a': 1.0} }}|{{ {'a': 1} == {'a': 1, 'b': 2} }}",
         "False|False|False|True|False"},
        {"{{ none == none }}|{{ missing == other }}|{{ none == 1 }}|{{ range == range "
         "}}|{{ namespace == dict }}|{{ [none] == [none] }}|{{ 'a' == 'b' }}",
         "True|True|False|True|False|True|False"},
        {"{{ {'a': {'b': [1]}} == {'a': {'b': [1]}} }}|{{ 'a' < 'ab' }}|{{ 'ab' < 'a' "
         "}}|{{ '' < 'a' }}|{{ 'b' > 'a' }}|{{ [1, 2] < [1, 3] }}|{{ [1] < [1, 2] }}",
         "True|True|False|True|True|True|True"},
        {"{{ [] < [1] }}|{{ [1, 2] <= [1, 2] }}|{{ 'a' < 'a' }}|{{ 1 in [1, 2] }}|{{ 3 "
         "in [1, 2] }}|{{ 'a' in {'a': 1} }}|{{ (1, 2) in {} }}",
         "True|True|False|True|False|True|False"},
        {"{{ (1, (2, 3)) in {(1, (2, 3)): 1} }}|{{ '' in 'abc' }}|{{ 'x' in missing "
         "}}|{{ 1.0 in [1] }}|{{ 'abc' | list }}|{{ '' | list }}|{{ '\u00e9\u65e5' | "
         "list }}",
         "True|True|False|True|['a', 'b', 'c']|[]|['\u00e9', '\u65e5']"},
        {"{{ 'cab' | sort }}|{{ 'ab' | join('-') }}|{{ [1, 'a', none] | join }}|{{ "
         "{'a': 1} | list }}|{{ [3, 1] | min }}|{{ ['b', 'A'] | max }}",
         "['a', 'b', 'c']|a-b|1aNone|['a']|1|b"},
        {"{{ [] | first is defined }}|{{ 'abc' | first }}|{{ 'abc' | last }}|{{ [1, 1, "
         "2] | unique | list }}|{{ ['a', 'A'] | unique | list }}",
         "False|a|c|[1, 2]|['a']"},
        {"{{ ['a', 'A'] | unique(true) | list }}|{{ [1, 2].index(2) }}|{{ [1, 2, "
         "1].count(1) }}|{{ {'a': 1}.items() | list }}|{{ (1, 2) | string }}",
         "['a', 'A']|1|2|[('a', 1)]|(1, 2)"},
        {"{{ ['a\\n\\r\\t\\\\\\x01\\x7f\\''] }}|{{ ['\"\\''] }}|{{ ['it\\'s'] }}|{{ "
         "[none, true, 1.5] }}|{{ {'a': (1,)} }}|{{ [[], {}, ()] }}|{{ {(1, 2): "
         "'x'}[(1, 2)] }}",
         "[\"a\\n\\r\\t\\\\\\x01\\x7f'\"]|['\"\\'']|[\"it's\"]|[None, True, 1.5]|{'a': "
         "(1,)}|[[], {}, ()]|x"},
        {"{{ {(1, (2, 3)): 1} | list }}|{{ [[[1, 2]]].0.0.1 }}|{{ [1, 2].0 }}|{{ [1.5, "
         "2] | sum(start=1) }}",
         "[(1, (2, 3))]|2|1|4.5"},
    };

    (void)state;
    EXPECT(cases);
}

static void json(void **state)
{
    static const struct gives cases[] = {
        {"{{ {'a': [1, 2], 'b': none} | tojson }}|{{ {'a': 1} | "
         "tojson(separators=(',', ':')) }}|{{ [1, [], {}] | tojson(indent=2) }}",
         "{\"a\": [1, 2], \"b\": null}|{\"a\":1}|[\n  1,\n  [],\n  {}\n]"},
        {"{{ [1] | tojson(indent=none) }}|{{ {'b': 1, 'a': {'d': 2, 'c': 3}} | "
         "tojson(sort_keys=true) }}|{{ {} | tojson(sort_keys=true) }}",
         "[1]|{\"a\": {\"c\": 3, \"d\": 2}, \"b\": 1}|{}"},
        {"{{ {'ab': 1, 'a': 2, '': 3} | tojson(sort_keys=true) }}|{{ "
         "'\u00e9\u65e5\U0001f600' | tojson(ensure_ascii=true) }}|{{ "
         "'\u00e9\U0001f600' | tojson }}",
         "{\"\": 3, \"a\": 2, \"ab\": "
         "1}|\"\\u00e9\\u65e5\\ud83d\\ude00\"|\"\u00e9\U0001f600\""},
        {"{{ '\\x00\\x01\\x1f\\n\\\\\"/\\x7f' | tojson }}|{{ {true: 1, none: 2, 1: 3, "
         "1.5: 4, false: 5} | tojson }}|{{ [true, false, none] | tojson }}",
         "\"\\u0000\\u0001\\u001f\\n\\\\\\\"/\177\"|{\"true\": 3, \"null\": 2, "
         "\"1.5\": 4, \"false\": 5}|[true, false, null]"},
        {"{{ [1e999, -1e999] | tojson }}|{{ (1e999 - 1e999) | tojson }}|{{ (1, 2) | "
         "tojson }}|{{ [] | tojson(indent=0) }}",
         "[Infinity, -Infinity]|NaN|[1, 2]|[]"},
        {"{{ 'a' | tojson(separators=[',', ':']) }}", "\"a\""},
    };

    (void)state;
    EXPECT(cases);
}

static void percent(void **state)
{
    static const struct gives cases[] = {
        {"{{ '%s' % [1, 2] }}|{{ '%s' % {'a': 1} }}|{{ 'abc' % [] }}|{{ 'abc' % {} "
         "}}|{{ '%5s|%-5s|' % ('a', 'b') }}|{{ '%.2s' % 'abc' }}|{{ '%.9s' % 'abc' }}",
         "[1, 2]|{'a': 1}|abc|abc|    a|b    ||ab|abc"},
        {"{{ '%d %i' % (1, 2) }}|{{ '%.0d' % 0 }}|{{ '%.0d' % 5 }}|{{ '%+d % d' % (1, "
         "2) }}|{{ '%05d' % -3 }}|{{ '%x' % 255 }}|{{ '%5.1f' % 2.25 }}|{{ '%%'%() }}",
         "1 2|0|5|+1  2|-0003|ff|  2.2|%"},
        {"{{ '%s' % none }}|{{ '%r' % 'a' }}|{{ '%s' % ((1, 2),) }}",
         "None|'a'|(1, 2)"},
    };

    (void)state;
    EXPECT(cases);
}

static void syntax(void **state)
{
    static const struct gives cases[] = {
        {"a\r\nb\rc", "a\nb\nc"},
        {"{ x } {% if true %}y{% endif %}{", "{ x } y{"},
        {"a{#b#}c", "ac"},
        {"a{##}c", "ac"},
        {"a {#- b -#} c", "ac"},
        {"{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
        {"{% raw -%}  x  {%- endraw %}", "x"},
        {"a{% raw %}{% endraw %}b", "ab"},
        {"{%+ raw %}x{% endraw +%}\ny", "x\ny"},
        {"{{+1}}", "1"},
        {"{{- 1 -}}", "1"},
        {"  {%+ if true %}x{% endif %}", "  x"},
        {"{%+if true%}x{%endif%}", "x"},
        {"{{ '\\u00e9\\u4e2d\\U0001f600\\x41' }}", "\u00e9\u4e2d\U0001f600A"},
        {"{{ 'a\\q' }}", "a\\q"},
        {"{{ 'a\\0b' | length }}", "3"},
        {"{{ 'a\\\nb' }}", "ab"},
        {"{{ '\\u07ff\\u0800\\uffff' | length }}", "3"},
        {"{{ \"\\\"'\" }}", "\"'"},
        {"{{ 1_000 }}", "1000"},
        {"{{ 31 }}", "31"},
        {"{{ 1.5e2 }}", "150.0"},
        {"{% set \u00e9 = 1 %}{{ \u00e9 }}", "1"},
        {"{% set x = 1, %}{{ x }}", "(1,)"},
        {"{{ 1, }}", "(1,)"},
        {"{{ (1, 2) }}", "(1, 2)"},
        {"{% set a, b = 1, 2 %}{{ b }}", "2"},
        {"{% for a, b in [(1, 2)] %}{{ b }}{% endfor %}", "2"},
        {"{% for c in 'ab' %}{{ c }}-{% endfor %}", "a-b-"},
        {"{% for c in '' %}x{% else %}none{% endfor %}", "none"},
        {"{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}{{ "
         "m(*[1, 2]) }}{{ m(**{'a': 1, 'b': 2}) }}",
         "(2,){'x': 3}(2,){}(){'b': 2}"},
        {"{% macro m() %}{{ kwargs }}{% endmacro %}{{ m() }}", "{}"},
        {"{% macro m(x) %}{{ caller() }}{{ x }}{% endmacro %}{% call m(x=1) %}c{% "
         "endcall %}",
         "c1"},
        {"{% macro m() %}{{ caller(2) }}{% endmacro %}{% call(y) m() %}c{{ y }}{% "
         "endcall %}",
         "c2"},
        {"{% filter upper %}ab{% endfilter %}", "AB"},
        {"{% filter replace('a', 'b') | upper %}ab{% endfilter %}", "BB"},
        {"{% set x | upper | trim %} a {% endset %}{{ x }}", "A"},
        {"{% set x | replace('a', 'b') %}a{% endset %}{{ x }}", "b"},
        {"{% for x in [1, [2]] recursive %}{{ loop(x) if x is iterable else x }}{% "
         "endfor %}",
         "12"},
        {"{{ (missing | default(range))(3) | list }}", "[0, 1, 2]"},
        {"{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a }}", "2"},
        {"{{ dict(**{'a': 1}) }}", "{'a': 1}"},
        {"{{ range(*[1, 4]) | list }}", "[1, 2, 3]"},
        {"{{ 'a' 'b' }}", "ab"},
        {"{{ x if false }}", ""},
        {"{% set x %}{% endset %}{{ x }}|", "|"},
        {"{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% "
         "endfor %}",
         "13"},
        {"{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% "
         "endfor %}",
         "1"},
        {"{{ {'a': 1} | attr('a') is defined }}", "False"},
        {"{% for i in [1] %}{{ loop | attr('index') }}{% endfor %}", "1"},
        {"{{ missing | default }}|", "|"},
        {"{{ '' | default('a', true) }}{{ none | default('x') }}", "aNone"},
        {"{{ 'abc' | length }}{{ missing | length }}", "30"},
        {"{{ dict([('a', 1)]) }}", "{'a': 1}"},
        {"{{ namespace({'a': 1}).a }}", "1"},
        {"{{ [1].x is defined }}{{ none.x is defined }}", "FalseFalse"},
        {"{% if missing == none %}a{% else %}b{% endif %}", "b"},
        {"{{ not missing }}", "True"},
        {"{{ (1, 2).0 }}", "1"},
        {"{{ [[1, 2]].0.1 }}", "2"},
        {"{{ {'a.b': 1}['a.b'] }}", "1"},
        {"{{ range(5)[1:3] | list }}", "[1, 2]"},
        {"{{ 'a' ~ 1 ~ none }}", "a1None"},
        {"{{ 1 if 2 else 3 }}", "1"},
        {"{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", "3"},
    };

    (void)state;
    EXPECT(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts), cmocka_unit_test(numbers), cmocka_unit_test(lists),
        cmocka_unit_test(json),  cmocka_unit_test(percent), cmocka_unit_test(syntax),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

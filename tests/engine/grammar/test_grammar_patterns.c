/* SPDX-License-Identifier: MIT
 *
 * test_grammar_patterns.c - patterns with texts that they match and others,
 * as the validator jsonschema 4.26 has them; and those that are refused
 */
#include "tests/engine/grammar/grammar_rules.h"

static void texts(void **state)
{
    static const struct rule rules[] = {
        {"{'type':'string','pattern':'a','minLength':1}", "'a'", "+"},
        {"{'type':'string','pattern':'^[a-zb-c]$'}", "'b'\n'z'\n'A'", "++-"},
        {"{'type':'string','pattern':'^[^a]$'}", "'b'\n'a'\n'\u00e9'", "+-+"},
        {"{'type':'string','pattern':'^[^\\\\x00-a]$'}", "'b'\n'a'", "+-"},
        {"{'type':'string','pattern':'^\\\\x4a\\\\x4A\\\\u00e9$'}", "'JJ\u00e9'\n'JJe'",
         "+-"},
        {"{'type':'string','pattern':'^[\\\\x41-\\\\x43]$'}", "'B'\n'D'", "+-"},
        {"{'type':'string','pattern':'\\\\u{1F600}'}", "'\U0001f600'", "+"},
        {"{'type':'string','pattern':'\\\\u{41}'}", "'A'", "+"},
        {"{'type':'string','pattern':'^\\\\t\\\\n\\\\v\\\\f\\\\r$'}",
         "'\\t\\n\\u000b\\f\\r'\n't'", "+-"},
        {"{'type':'string','pattern':'^\\\\.\\\\/\\\\-$'}", "'./-'\n'a/-'", "+-"},
        {"{'type':'string','pattern':'^[\u00e9\u65e5\U0001f600]$'}",
         "'\u00e9'\n'\u65e5'\n'\U0001f600'\n'e'", "+++-"},
        {"{'type':'string','pattern':'^\u00e9\u65e5\U0001f600$'}",
         "'\u00e9\u65e5\U0001f600'\n'\u00e9\u65e5'", "+-"},
        {"{'type':'string','pattern':'[^]'}", "'a'", "+"},
        {"{'type':'string','pattern':'^[\\\\b]$'}", "'\\b'\n'b'", "+-"},
        {"{'type':'string','pattern':'^[\\\\-a]$'}", "'-'\n'a'\n'b'", "++-"},
        {"{'type':'string','pattern':'^[a-]$'}", "'-'\n'a'\n'b'", "++-"},
        {"{'type':'string','pattern':'^[\\\\d-]$'}", "'5'\n'-'\n'a'", "++-"},
        {"{'type':'string','pattern':'^[\\\\w.]+$'}", "'a_1.'\n'-'", "+-"},
        {"{'type':'string','pattern':'^[\\\\s]$'}", "' '\n'a'", "+-"},
        {"{'type':'string','pattern':'^[^\\\\d\\\\s]$'}", "'a'\n'5'\n' '", "+--"},
        {"{'type':'string','pattern':'^(ab|c)$'}", "'ab'\n'c'\n'a'", "++-"},
        {"{'type':'string','pattern':'^(?:ab)+$'}", "'abab'\n'aba'", "+-"},
        {"{'type':'string','pattern':'^a$|^b$'}", "'a'\n'b'\n'c'", "++-"},
        {"{'type':'string','pattern':'^a|b$'}", "'ax'\n'xb'\n'c'", "++-"},
        {"{'type':'string','pattern':'^a{2,3}$'}", "'a'\n'aa'\n'aaa'\n'aaaa'", "-++-"},
        {"{'type':'string','pattern':'^a{2,}$'}", "'a'\n'aaaa'", "-+"},
        {"{'type':'string','pattern':'^a{2}$'}", "'a'\n'aa'", "-+"},
        {"{'type':'string','pattern':'^a+?$'}", "'a'\n'aa'\n''", "++-"},
        {"{'type':'string','pattern':'^a{2}?$'}", "'aa'", "+"},
        {"{'type':'string','pattern':'^a*?b??$'}", "'aab'\n'aa'\n'bb'", "++-"},
        {"{'type':'string','pattern':''}", "''\n'a'", "++"},
        {"{'type':'string','pattern':'^$'}", "''\n'a'", "+-"},
        {"{'type':'string','pattern':'|a'}", "''\n'b'", "++"},
        {"{'type':'string','pattern':'^.$'}", "'a'\n'\\n'\n'\u00e9'", "+-+"},
        {"{'type':'string','pattern':'^\\\\D\\\\W\\\\S$'}", "'a-b'\n'5-b'", "+-"},
        {"{'type':'string','pattern':'^\\\\d+$'}", "'12'\n'a'", "+-"},
        {"{'type':'string','pattern':'a.c'}", "'xabcx'\n'ac'", "+-"},
        {"{'type':'string','pattern':'^()$'}", "''\n'a'", "+-"},
        {"{'type':'string','pattern':'^(a|)$'}", "''\n'a'\n'b'", "++-"},
        {"{'type':'string','pattern':'^[^\\\\u0000-\\\\uFFFF]$'}", "'\U0001f600'\n'a'",
         "+-"},
        {"{'type':'string','pattern':'^[\\\\u{0}-\\\\u{10FFFF}]$'}", "'a'", "+"},
        {"{'type':'string','pattern':'^\\\\$\\\\^$'}", "'$^'\n'a'", "+-"},
    };

    (void)state;
    check_rules(rules, sizeof rules / sizeof rules[0]);
}

static void refusals(void **state)
{
    static const struct refusal cases[] = {
        {"{'type':'string','pattern':5}",
         "the schema's #: 'pattern' and 'format' are texts without U+0000"},
        {"{'type':'string','pattern':'\\\\xZZ'}",
         "the schema's #: the pattern '\\xZZ' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\x4'}",
         "the schema's #: the pattern '\\x4' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\x'}",
         "the schema's #: the pattern '\\x' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\u12'}",
         "the schema's #: the pattern '\\u12' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\x4:'}",
         "the schema's #: the pattern '\\x4:' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\x4G'}",
         "the schema's #: the pattern '\\x4G' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\x4/'}",
         "the schema's #: the pattern '\\x4/' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\x4`'}",
         "the schema's #: the pattern '\\x4`' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\x4g'}",
         "the schema's #: the pattern '\\x4g' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\u{}'}",
         "the schema's #: the pattern '\\u{}' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\u{110000}'}",
         "the schema's #: the pattern '\\u{110000}' has an escape beyond U+10FFFF"},
        {"{'type':'string','pattern':'\\\\u{12'}",
         "the schema's #: the pattern '\\u{12' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'\\\\u{zz}'}",
         "the schema's #: the pattern '\\u{zz}' has an escape without its hexadecimal "
         "digits"},
        {"{'type':'string','pattern':'a\\\\'}",
         "the schema's #: the pattern 'a\\' ends in a backslash"},
        {"{'type':'string','pattern':'\\\\01'}",
         "the schema's #: the pattern '\\01' has an escape that is not supported: "
         "letters that are ar"},
        {"{'type':'string','pattern':'^\\\\0$'}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'string','pattern':'^\\\\0a$'}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'string','pattern':'^\\\\0:$'}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'string','pattern':'\\\\ca'}",
         "the schema's #: the pattern '\\ca' has an escape that is not supported: "
         "letters that are ar"},
        {"{'type':'string','pattern':'\\\\1'}",
         "the schema's #: the pattern '\\1' has an escape that is not supported: "
         "letters that are are"},
        {"{'type':'string','pattern':'\\\\\u00e9'}",
         "the schema's #: the pattern '\\\u00e9' has an escape that is not supported: "
         "letters that are are"},
        {"{'type':'string','pattern':'[a\\\\'}",
         "the schema's #: the pattern '[a\\' has a class without its closing bracket"},
        {"{'type':'string','pattern':'['}",
         "the schema's #: the pattern '[' has a class without its closing bracket"},
        {"{'type':'string','pattern':'[a'}",
         "the schema's #: the pattern '[a' has a class without its closing bracket"},
        {"{'type':'string','pattern':'[]'}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
        {"{'type':'string','pattern':'[z-a]'}",
         "the schema's #: the pattern '[z-a]' has a range of characters that goes "
         "backwards"},
        {"{'type':'string','pattern':'[a-\\\\d]'}",
         "the schema's #: the pattern '[a-\\d]' has a range of characters that goes "
         "backwards"},
        {"{'type':'string','pattern':'('}",
         "the schema's #: the pattern '(' has a group without its end"},
        {"{'type':'string','pattern':'(a'}",
         "the schema's #: the pattern '(a' has a group without its end"},
        {"{'type':'string','pattern':')'}",
         "the schema's #: the pattern ')' has a closing bracket without its fellow"},
        {"{'type':'string','pattern':'(?=a)'}",
         "the schema's #: the pattern '(?=a)' has a group that looks around or has a "
         "name, which is "},
        {"{'type':'string','pattern':'(?<n>a)'}",
         "the schema's #: the pattern '(?<n>a)' has a group that looks around or has a "
         "name, which i"},
        {"{'type':'string','pattern':'(?'}",
         "the schema's #: the pattern '(?' has a group that looks around or has a "
         "name, which is not"},
        {"{'type':'string','pattern':'a^b'}",
         "the schema's #: the pattern 'a^b' has ^ or $ in its middle, which is "
         "supported at the ends"},
        {"{'type':'string','pattern':'$a'}",
         "the schema's #: the pattern '$a' has ^ or $ in its middle, which is "
         "supported at the ends "},
        {"{'type':'string','pattern':'a$b'}",
         "the schema's #: the pattern 'a$b' has ^ or $ in its middle, which is "
         "supported at the ends"},
        {"{'type':'string','pattern':'+a'}",
         "the schema's #: the pattern '+a' has a repetition of nothing, or a bracket "
         "without its fel"},
        {"{'type':'string','pattern':'?a'}",
         "the schema's #: the pattern '?a' has a repetition of nothing, or a bracket "
         "without its fel"},
        {"{'type':'string','pattern':'*a'}",
         "the schema's #: the pattern '*a' has a repetition of nothing, or a bracket "
         "without its fel"},
        {"{'type':'string','pattern':'{2}'}",
         "the schema's #: the pattern '{2}' has a repetition of nothing, or a bracket "
         "without its fe"},
        {"{'type':'string','pattern':'}'}",
         "the schema's #: the pattern '}' has a repetition of nothing, or a bracket "
         "without its fell"},
        {"{'type':'string','pattern':']'}",
         "the schema's #: the pattern ']' has a repetition of nothing, or a bracket "
         "without its fell"},
        {"{'type':'string','pattern':'a**'}",
         "the schema's #: the pattern 'a**' has a repetition of nothing, or a bracket "
         "without its fe"},
        {"{'type':'string','pattern':'^(^a)$'}",
         "the schema's #: the pattern '^(^a)$' has ^ or $ in its middle, which is "
         "supported at the e"},
        {"{'type':'string','pattern':'a{'}",
         "the schema's #: the pattern 'a{' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{,3}'}",
         "the schema's #: the pattern 'a{,3}' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{x}'}",
         "the schema's #: the pattern 'a{x}' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{2'}",
         "the schema's #: the pattern 'a{2' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{2,'}",
         "the schema's #: the pattern 'a{2,' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{3,2}'}",
         "the schema's #: the pattern 'a{3,2}' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{99999}'}",
         "the schema's #: the pattern 'a{99999}' has a repetition of more than 4096 "
         "times"},
        {"{'type':'string','pattern':'a{/}'}",
         "the schema's #: the pattern 'a{/}' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{:}'}",
         "the schema's #: the pattern 'a{:}' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{2/}'}",
         "the schema's #: the pattern 'a{2/}' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{2,x}'}",
         "the schema's #: the pattern 'a{2,x}' has braces that are no repetition"},
        {"{'type':'string','pattern':'a{2:'}",
         "the schema's #: the pattern 'a{2:' has braces that are no repetition"},
        {"{'type':'string','pattern':'^[^\\\\d\\\\D]$'}",
         "no text is valid under the schema: something that it requires is not "
         "allowed, or needs ano"},
    };

    (void)state;
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, open_vocab, close_vocab);
}

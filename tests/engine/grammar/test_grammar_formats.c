/* SPDX-License-Identifier: MIT
 *
 * test_grammar_formats.c - formats of strings, alone and beside a pattern; how
 * references name their places
 */
#include "tests/support/grammar_group.h"

static void check(const char *schema, const char *text, bool valid)
{
    struct grammar *g = grammar_of(schema);

    if (grammar_takes(g, group_vocab, text) != valid)
        fail_msg("%s %s %s", schema, valid ? "refuses" : "takes", text);
    grammar_unref(g);
}

static void takes(const char *schema, const char *text)
{
    check(schema, text, true);
}

static void refuses(const char *schema, const char *text)
{
    check(schema, text, false);
}

static void formats(void **state)
{
    static const struct {
        const char *format, *text;
        bool valid;
    } cases[] = {
        {"date", "2024-02-29", true},
        {"date", "2023-02-29", false},
        {"date", "2000-02-29", true},
        {"date", "1900-02-29", false},
        {"date", "1999-04-30", true},
        {"date", "1999-04-31", false},
        {"date", "1999-13-01", false},
        {"date", "1999-12-31", true},
        {"time", "23:59:59Z", true},
        {"time", "24:00:00Z", false},
        {"time", "01:02:03.25+05:30", true},
        {"time", "01:02:03", false},
        {"date-time", "2024-02-29T12:00:00Z", true},
        {"date-time", "2024-02-30T12:00:00Z", false},
        {"uuid", "123e4567-e89b-12d3-a456-426614174000", true},
        {"uuid", "123e4567-e89b-12d3-a456-42661417400", false},
        {"email", "a.b@c.example", true},
        {"email", "a.@c.example", false},
        {"email", "a@b", false},
        {"hostname", "a-b.example", true},
        {"hostname", "-a.example", false},
        {"ipv4", "255.0.19.1", true},
        {"ipv4", "256.0.0.1", false},
        {"ipv4", "01.0.0.1", false},
        {"ipv6", "2001:db8::1", true},
        {"ipv6", "::", true},
        {"ipv6", "1::2::3", false},
        {"ipv6", "1:2:3:4:5:6:7:8", true},
        {"ipv6", "1:2:3:4:5:6:7", false},
        {"duration", "P1Y2M3DT4H5M6S", true},
        {"duration", "PT36H", true},
        {"duration", "P", false},
        {"duration", "P1D2Y", false},
        {"uri", "https://example.org/a/b?c=d#e", true},
        {"uri", "example.org", false},
        {"iri", "https://example.org/a", true},
        {"iri", "a b", false},
        {"uri-reference", "https://example.org/a", true},
        {"uri-reference", "/a//b?c#d", true},
        {"uri-reference", "", true},
        {"uri-reference", "a:b", false},
        {"uri-reference", "//a", false},
        {"iri-reference", "../a", true},
        {"uri-template", "/a/{b}", true},
        {"uri-template", "/a/{b", false},
        {"idn-email", "a@c.example", true},
        {"idn-hostname", "c.example", true},
        {"json-pointer", "", true},
        {"json-pointer", "/a~1/0", true},
        {"json-pointer", "a", false},
        {"json-pointer", "/~2", false},
        {"relative-json-pointer", "1/a", true},
        {"relative-json-pointer", "01", false},
        {"relative-json-pointer", "0#", true},
        {"regex", "^[a-z]+.*$", true},
        {"regex", "(a", false},
        {"regex", "*", false},
        {"byte", "", true},
        {"byte", "YWI=", true},
        {"byte", "YWJ=", false}, /* bits of nothing */
        {"byte", "YWI", false},
        {"base64url", "_-A", true},
        {"char", "\\n", true},
        {"char", "ab", false},
        {"decimal", "-12.50", true},
        {"decimal", "1.", false},
        {"int64", "-12", true},
        {"int64", "-0", false},
        {"guid", "123e4567-e89b-12d3-a456-426614174000", true},
        {"password", "\xc3\xa9", true},
        {"binary", "a", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char schema[128], text[128];
        struct grammar *g;

        snprintf(schema, sizeof schema, "{\"type\":\"string\",\"format\":\"%s\"}",
                 cases[i].format);
        snprintf(text, sizeof text, "\"%s\"", cases[i].text);
        g = grammar_of(schema);
        if (grammar_takes(g, group_vocab, text) != cases[i].valid)
            fail_msg("%s: %s", cases[i].format, text);
        grammar_unref(g);
    }
}

/* A text is both: so libraries write a format that they know more of. */
static void formats_with_patterns(void **state)
{
    static const char schema[] =
        "{\"format\":\"uuid\",\"minLength\":36,\"pattern\":\"^([0-9a-f]{8}-[0-9a-f]{4}-"
        "[1-8]"
        "[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|00000000-0000-0000-0000-"
        "000000000000)$\"}";

    (void)state;
    takes("{\"format\":\"date\",\"pattern\":\"^20\"}", "\"2024-02-29\"");
    refuses("{\"format\":\"date\",\"pattern\":\"^20\"}", "\"1999-12-31\"");
    refuses("{\"format\":\"date\",\"pattern\":\"^20\"}", "\"20\"");
    takes("{\"format\":\"ipv4\",\"pattern\":\"\",\"maxLength\":8}", "\"10.0.0.1\"");
    refuses("{\"format\":\"ipv4\",\"pattern\":\"\",\"maxLength\":8}", "\"10.0.0.11\"");
    takes("{\"allOf\":[{\"format\":\"date\"},{\"pattern\":\"29$\"}]}",
          "\"2024-02-29\"");
    refuses("{\"allOf\":[{\"format\":\"date\"},{\"pattern\":\"29$\"}]}",
            "\"2024-02-28\"");
    takes(schema, "\"123e4567-e89b-12d3-a456-426614174000\"");
    takes(schema, "\"00000000-0000-0000-0000-000000000000\"");
    refuses(schema, "\"123E4567-e89b-12d3-a456-426614174000\"");
    refuses(schema, "\"123e4567-e89b-02d3-a456-426614174000\"");
}

/* A reference is the fragment of a URI, and that a JSON pointer. */
static void references(void **state)
{
    (void)state;
    takes("{\"$ref\":\"#/$defs/a%20b~1%7e0%c3%a9\",\"$defs\":{\"a b/~\\u00e9\":{"
          "\"const\":1}}}",
          "1");
    takes("{\"$ref\":\"#/$defs/100%\",\"$defs\":{\"100%\":{\"const\":1}}}", "1");
    takes("{\"$ref\":\"#/$defs/a/anyOf/1\",\"$defs\":{\"a\":{\"anyOf\":[{\"const\":1},{"
          "\"const\":2}]}}}",
          "2");
}

/* Escapes in patterns, in brackets and outside. */
static void escapes_in_patterns(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool valid;
    } cases[] = {
        {"^[\\\\d_]+$", "12_", true},
        {"^[\\\\d_]+$", "1a", false},
        {"^[\\\\w-]+$", "a_1-b", true},
        {"^[\\\\w-]+$", "a b", false},
        {"^[^\\\\s]$", "a", true},
        {"^[^\\\\s]$", " ", false},
        {"^[a\\\\-z]+$", "a-z", true},
        {"^[a\\\\-z]+$", "b", false},
        {"^[\\\\t\\\\]]+$", "\\t]", true},
        {"^\\\\x41\\\\u0042\\\\.$", "AB.", true},
        {"^\\\\x41\\\\u0042\\\\.$", "ABC", false},
        {"^a[\\\\0b]$", "ab", true},
        {"^a[\\\\0b]$", "a0", false},
        {"^(?:ab)+$", "abab", true},
        {"^(?:ab)+$", "aba", false},
        {"^\\\\D\\\\W\\\\S$", "a b", true},
        {"^\\\\D\\\\W\\\\S$", "1 b", false},
        {"^\\\\D\\\\W\\\\S$", "aab", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char schema[128], text[64];

        snprintf(schema, sizeof schema, "{\"type\": \"string\", \"pattern\": \"%s\"}",
                 cases[i].pattern);
        snprintf(text, sizeof text, "\"%s\"", cases[i].text);
        check(schema, text, cases[i].valid);
    }
}

/* One pattern with several limits of length is several automata. */
static void a_pattern_with_several_lengths(void **state)
{
    static const char schema[] =
        "{\"type\": \"array\", \"prefixItems\": ["
        "{\"type\": \"string\", \"pattern\": \"^a*$\", \"maxLength\": 2}, "
        "{\"type\": \"string\", \"pattern\": \"^a*$\", \"maxLength\": 3}, "
        "{\"type\": \"string\", \"pattern\": \"^a*$\", \"maxLength\": 3, "
        "\"minLength\": 1}], \"minItems\": 3, \"items\": false}";

    (void)state;
    takes(schema, "[\"aa\",\"aaa\",\"a\"]");
    takes(schema, "[\"\",\"\",\"aaa\"]");
    refuses(schema, "[\"aaa\",\"aaa\",\"a\"]");
    refuses(schema, "[\"aa\",\"aaaa\",\"a\"]");
    refuses(schema, "[\"aa\",\"aaa\",\"\"]");
}

/* Percent escapes of references in either case, and notes of a vendor. */
static void references_with_escapes(void **state)
{
    static const char schema[] = "{\"$defs\": {\"a9\": {\"const\": 1}, \"oN\": "
                                 "{\"const\": 2}}, \"x-note\": [], \"anyOf\": "
                                 "[{\"$ref\": \"#/$defs/%61%39\"}, "
                                 "{\"$ref\": \"#/$defs/%6f%4E\"}]}";

    (void)state;
    takes(schema, "1");
    takes(schema, "2");
    refuses(schema, "3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(formats_with_patterns),
        cmocka_unit_test(references),
        cmocka_unit_test(escapes_in_patterns),
        cmocka_unit_test(references_with_escapes),
        cmocka_unit_test(a_pattern_with_several_lengths),
    };

    return cmocka_run_group_tests(tests, open_vocab, close_vocab);
}

/* SPDX-License-Identifier: MIT
 *
 * test_norm.c - normalizers of a tokenizer.json: what each does with a text, and what
 * is refused
 */
#include "tests/support/test.h"

#include "engine/tokenizer/tokenizer_norm.h"

/* JSON is written with ' for ". */
static enum status open_quoted(struct normalizer **z, const char *quoted,
                               struct err *err)
{
    char *json = strdup(quoted);

    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    const enum status st = normalizer_open(z, json, strlen(json), "model", err);

    free(json);
    return st;
}

static void expect(const char *json, const char *text, size_t len, const char *want)
{
    uint64_t allowed_ns = 1000000000u;
    struct err err = ERR_INIT;
    struct normalizer *z;
    char *out = NULL;
    size_t n = 0;

    if (open_quoted(&z, json, &err) ||
        normalizer_apply(z, text, len, &allowed_ns, &out, &n, &err))
        fail_msg("%s: %s", json, err.msg);
    if (n != strlen(want) || memcmp(out, want, n) != 0)
        fail_msg("%s: '%s' is '%.*s', not '%s'", json, text, (int)n, out, want);
    free(out);
    normalizer_close(z);
}

static void texts(void **state)
{
    static const char *const cases[][3] = {
        {"{'type':'Lowercase'}",
         "A\u00c9\xff"
         "B",
         "a\u00e9\xff"
         "b"},
        {"{'type':'Lowercase'}", "\u0130", "i\u0307"},
        {"{'type':'NFC'}", "e\u0301", "\u00e9"},
        {"{'type':'NFD'}", "\u00e9", "e\u0301"},
        {"{'type':'NFKC'}", "\ufb01", "fi"},
        {"{'type':'NFKD'}", "\u00bd", "1\u20442"},
        {"{'type':'Strip'}", " \u00a0a b \u3000", "a b"},
        {"{'type':'Strip','strip_right':false}", " a ", "a "},
        {"{'type':'Strip','strip_left':false}", " a ", " a"},
        {"{'type':'Strip','strip_left':false,'strip_right':false}", " a ", " a "},
        {"{'type':'Strip'}", "  ", ""},
        {"{'type':'Strip'}", " \xff ", "\xff"},
        {"{'type':'Strip'}", "", ""},
        {"{'type':'StripAccents'}", "e\u0301a\u0903\u20dd\xff", "ea\xff"},
        {"{'type':'Prepend','prepend':'_'}", "a", "_a"},
        {"{'type':'Prepend','prepend':'_'}", "", ""},
        {"{'type':'Prepend','prepend':''}", "a", "a"},
        {"{'type':'ByteLevel'}", " a\u00e9", "\u0120a\u00c3\u00a9"},
        {"{'type':'Replace','pattern':{'String':'ab'},'content':'x'}", "abcab", "xcx"},
        {"{'type':'Replace','pattern':{'String':'a'},'content':''}", "aba", "b"},
        {"{'type':'Replace','pattern':{'Regex':'[0-9]+'},'content':'#'}", "a12b3c",
         "a#b#c"},
        {"{'type':'Replace','pattern':{'Regex':'[0-9]+'},'content':'#'}",
         "1\xff"
         "2",
         "#\xff#"},
        {"{'type':'Replace','pattern':{'Regex':'x*'},'content':'-'}", "ab", "-a-b"},
        {"{'type':'Precompiled','precompiled_charsmap':'BAAAAAAAAAB5AA=='}", "a", "a"},
        {"{'type':'Sequence','normalizers':[{'type':'NFD'},{'type':'Sequence',"
         "'normalizers':[{'type':'StripAccents'},{'type':'Lowercase'}]}]}",
         "\u00c9", "e"},
        {"{'type':'Sequence','normalizers':[]}", "A", "A"},

        {"{'type':'Nmt'}", "a\tb\nc\fd\re", "a b c d e"},
        {"{'type':'Nmt'}", "\u1680x\u200b\u200f\u2028\u2029\u2581\ufeff\ufffd|",
         " x       |"},
        {"{'type':'Nmt'}", "\001\010\013\016\037\177\302\217\302\237|", "|"},
        {"{'type':'Nmt'}", "\u200a\u2010\302\200\302\216\xff",
         "\u200a\u2010\302\200\302\216\xff"},

        {"{'type':'BertNormalizer'}", "A\u00c9\u4e2d\001\tb\ufffd\xff",
         "ae \u4e2d  b\xff"},
        {"{'type':'BertNormalizer','lowercase':false}", "\u00c9", "\u00c9"},
        {"{'type':'BertNormalizer','lowercase':false,'strip_accents':true}", "\u00c9",
         "E"},
        {"{'type':'BertNormalizer','strip_accents':false}", "\u00c9", "\u00e9"},
        {"{'type':'BertNormalizer','clean_text':false,'handle_chinese_chars':false}",
         "\001\t\u4e2d", "\001\t\u4e2d"},
        {"{'type':'BertNormalizer'}", "a\rb\u00adc", "a bc"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(cases[i][0], cases[i][1], strlen(cases[i][1]), cases[i][2]);
    expect("{'type':'BertNormalizer'}", "a\0b", 3, "ab");
}

/* Blanks stand around ideographs of BERT's blocks, and not behind their ends. */
static void blocks_of_ideographs(void **state)
{
    static const struct {
        const char *text;
        bool han;
    } cases[] = {
        {"\u3400", true},      {"\u4dbf", true},     {"\u4dc0", false},
        {"\u33ff", false},     {"\u4e00", true},     {"\u9fff", true},
        {"\ua000", false},     {"\uf8ff", false},    {"\uf900", true},
        {"\ufaff", true},      {"\ufb00", false},    {"\U0001ffff", false},
        {"\U00020000", true},  {"\U0002a6df", true}, {"\U0002a6e0", false},
        {"\U0002a700", true},  {"\U0002b73f", true}, {"\U0002b740", true},
        {"\U0002b81f", true},  {"\U0002b820", true}, {"\U0002ceaf", true},
        {"\U0002ceb0", false}, {"\U0002f800", true}, {"\U0002fa1f", true},
        {"\U0002fa20", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char want[16];

        snprintf(want, sizeof want, cases[i].han ? " %s " : "%s", cases[i].text);
        expect("{'type':'BertNormalizer','clean_text':false,'lowercase':false}",
               cases[i].text, strlen(cases[i].text), want);
    }
}

#define NESTED "{'type':'Sequence','normalizers':["

static void refusals(void **state)
{
    static const struct {
        const char *json;
        enum status st;
        const char *message;
    } cases[] = {
        {"{", ST_INPUT, "model is no JSON"},
        {"{}", ST_UNSUPPORTED, "the normalizer '(none)'"},
        {"[]", ST_UNSUPPORTED, "the normalizer '(none)'"},
        {"{'type':'Shuffle'}", ST_UNSUPPORTED, "the normalizer 'Shuffle'"},
        {NESTED NESTED NESTED NESTED NESTED NESTED NESTED NESTED NESTED NESTED
         "]}]}]}]}]}]}]}]}]}]}",
         ST_UNSUPPORTED, "the normalizer 'Sequence'"},
        {NESTED "{'type':'Shuffle'},{'type':'NFC'}]}", ST_UNSUPPORTED, "'Shuffle'"},
        {"{'type':'Replace'}", ST_UNSUPPORTED, "the normalizer 'Replace'"},
        {"{'type':'Replace','pattern':{'String':''},'content':'a'}", ST_UNSUPPORTED,
         "the normalizer 'Replace'"},
        {"{'type':'Replace','pattern':{'String':'a'}}", ST_UNSUPPORTED,
         "the normalizer 'Replace'"},
        {"{'type':'Replace','pattern':{'Regex':'[a[b]]'},'content':''}", ST_UNSUPPORTED,
         "the normalizer 'Replace'"},
        {"{'type':'Replace','pattern':{'Regex':'a'}}", ST_UNSUPPORTED,
         "the normalizer 'Replace'"},
        {"{'type':'Replace','pattern':{'Regex':'(a'},'content':''}", ST_INPUT,
         "is wrong at byte 2"},
        {"{'type':'Prepend'}", ST_UNSUPPORTED, "the normalizer 'Prepend'"},
        {"{'type':'Prepend','prepend':1}", ST_UNSUPPORTED, "the normalizer 'Prepend'"},
        {"{'type':'Precompiled'}", ST_UNSUPPORTED, "the normalizer 'Precompiled'"},
        {"{'type':'Precompiled','precompiled_charsmap':'!'}", ST_INPUT,
         "precompiled_charsmap is not base64"},
    };
    char many[4000] = NESTED, text[1200];
    struct normalizer *z = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;

        if (open_quoted(&z, cases[i].json, &err) != cases[i].st ||
            !strstr(err.msg, cases[i].message))
            fail_msg("%s: %d '%s'", cases[i].json, (int)err.code, err.msg);
        assert_null(z);
    }
    struct err err = ERR_INIT;

    /* 31 and BERT's four fit, one more does not */
    for (int more = 0; more < 2; more++) {
        strcpy(many, NESTED);
        for (int i = 0; i < 31 + more; i++)
            strcat(many, "{'type':'Lowercase'},");
        strcat(many, "{'type':'BertNormalizer'}]}");
        assert_int_equal(open_quoted(&z, many, &err), more ? ST_UNSUPPORTED : ST_OK);
        normalizer_close(z);
        z = NULL;
    }
    assert_non_null(strstr(err.msg, "the normalizer 'BertNormalizer'"));
    err_clear(&err);
    memset(many, 'a', sizeof many);
    snprintf(text, sizeof text, "{'type':'Prepend','prepend':'%.1024s'}", many);
    assert_int_equal(open_quoted(&z, text, &err), ST_UNSUPPORTED);
    assert_null(z);
}

/* Texts that become many times as long, and patterns that try everything. */
static void limits(void **state)
{
    char json[1200], *out = NULL, *text = malloc(100000);
    uint64_t allowed_ns = 1000000000u;
    struct err err = ERR_INIT;
    struct normalizer *z;
    size_t n = 0;

    (void)state;
    memset(text, 'a', 100000);
    snprintf(json, sizeof json,
             "{'type':'Replace','pattern':{'String':'a'},'content':'%.1000s'}", text);
    assert_int_equal(open_quoted(&z, json, &err), ST_OK);
    assert_int_equal(normalizer_apply(z, text, 100000, &allowed_ns, &out, &n, &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "makes a text of 100000 bytes many times as long"));
    normalizer_close(z);

    err_clear(&err);
    allowed_ns = 0;
    assert_int_equal(
        open_quoted(&z, "{'type':'Replace','pattern':{'Regex':'b'},'content':''}",
                    &err),
        ST_OK);
    memset(text, 'b', 1000);
    assert_int_equal(normalizer_apply(z, text, 1000, &allowed_ns, &out, &n, &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "takes too long"));
    assert_null(out);
    normalizer_close(z);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(blocks_of_ideographs),
        cmocka_unit_test(refusals),
        cmocka_unit_test(limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

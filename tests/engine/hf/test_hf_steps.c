/* SPDX-License-Identifier: MIT
 *
 * test_hf_steps.c - how each pre_tokenizer of a tokenizer.json cuts a text: what
 * Hugging Face's tokenizers 0.23 made of the same, with a vocabulary whose tokens are
 * characters
 */
#include "tests/support/hf_vocab.h"

/* JSON with ' for ", a text, and its pieces with | before each. */
static const struct {
    const char *step, *text, *pieces;
} rows[] = {
    {"{'type':'Whitespace'}", " ab--c  A1_2.\n", "|ab|--|c|A1_2|."},
    {"{'type':'Whitespace'}", "a\u00bdb \u0301", "|a|\u00bd|b|\u0301"},
    {"{'type':'WhitespaceSplit'}", " ab--c  A1_2.\n\u3000b", "|ab--c|A1_2.|b"},
    {"{'type':'BertPreTokenizer'}", " ab--c  A1_2.\n", "|ab|-|-|c|A1|_|2|."},
    {"{'type':'Punctuation','behavior':'Isolated'}", " ab--c  A1_2.\n",
     "| ab|-|-|c  A1|_|2|.|\n"},
    {"{'type':'Punctuation','behavior':'Removed'}", "--a.-b.,", "|a|b"},
    {"{'type':'Punctuation','behavior':'MergedWithPrevious'}", "--a.-b.,",
     "|-|-|a.|-|b.|,"},
    {"{'type':'Punctuation','behavior':'MergedWithNext'}", "--a.-b.,",
     "|-|-a|.|-b|.|,"},
    {"{'type':'Punctuation','behavior':'Contiguous'}", "--a.-b.,", "|--|a|.-|b|.,"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'Removed','invert':false}",
     "-ab--c-A-", "|ab|c|A"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'Removed','invert':"
     "false}",
     "-ab--c-A-", "|c|A"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'Isolated','invert':false}",
     "-ab--c-A-", "|-|ab|-|-|c|-|A|-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'Isolated','invert':"
     "false}",
     "-ab--c-A-", "|-|a|b|--|c|-|A|-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'MergedWithPrevious','invert'"
     ":false}",
     "-ab--c-A-", "|-|ab-|-|c-|A-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'MergedWithPrevious','"
     "invert':false}",
     "-ab--c-A-", "|-|a|b|--|c-|A-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'MergedWithNext','invert':"
     "false}",
     "-ab--c-A-", "|-ab|-|-c|-A|-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'MergedWithNext','"
     "invert':false}",
     "-ab--c-A-", "|-|a|b|--c|-A|-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'Contiguous','invert':false}",
     "-ab--c-A-", "|-|ab|--|c|-|A|-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'Contiguous','invert':"
     "false}",
     "-ab--c-A-", "|-ab--|c|-|A|-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'Removed','invert':true}",
     "-ab--c-A-", "|-|-|-|-|-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'Removed','invert':"
     "true}",
     "-ab--c-A-", "|-|a|b|--|-|-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'Isolated','invert':true}",
     "-ab--c-A-", "|-|ab|-|-|c|-|A|-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'Isolated','invert':"
     "true}",
     "-ab--c-A-", "|-|a|b|--|c|-|A|-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'MergedWithPrevious','invert'"
     ":true}",
     "-ab--c-A-", "|-ab|-|-c|-A|-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'MergedWithPrevious','"
     "invert':true}",
     "-ab--c-A-", "|-|a|b|--c|-A|-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'MergedWithNext','invert':"
     "true}",
     "-ab--c-A-", "|-|ab-|-|c-|A-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'MergedWithNext','"
     "invert':true}",
     "-ab--c-A-", "|-|a|b|--|c-|A-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'Contiguous','invert':true}",
     "-ab--c-A-", "|-|ab|--|c|-|A|-"},
    {"{'type':'Split','pattern':{'Regex':'[ab]|-+'},'behavior':'Contiguous','invert':"
     "true}",
     "-ab--c-A-", "|-ab--|c|-|A|-"},
    {"{'type':'Split','pattern':{'Regex':'(?=b)'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|a|b-12121\na |b\n\u4e2d\u3042aa|b"},
    {"{'type':'Split','pattern':{'Regex':'a*'},'behavior':'Isolated','invert':false}",
     "ab-12121\na b\n\u4e2d\u3042aab",
     "|a|b|-|1|2|1|2|1|\n|a| |b|\n|\u4e2d|\u3042|aa|b"},
    {"{'type':'Split','pattern':{'Regex':'\\\\b'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab|-|12121|\n|a| |b|\n|\u4e2d\u3042aab"},
    {"{'type':'Split','pattern':{'Regex':'$'},'behavior':'Isolated','invert':false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab-12121|\na b|\n\u4e2d\u3042aab"},
    {"{'type':'Split','pattern':{'Regex':'^'},'behavior':'Isolated','invert':false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab-12121\n|a b\n|\u4e2d\u3042aab"},
    {"{'type':'Split','pattern':{'Regex':'\\\\s+$'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab-12121\na b\n\u4e2d\u3042aab"},
    {"{'type':'Split','pattern':{'Regex':'[0-9]{1,2}+'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab-|12121|\na b\n\u4e2d\u3042aab"},
    {"{'type':'Split','pattern':{'Regex':'a{2}?b'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|a|b|-12121\na |b|\n\u4e2d\u3042|aab"},
    {"{'type':'Split','pattern':{'Regex':'\\\\h+'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab|-|12121|\n|a| |b|\n\u4e2d\u3042|aab"},
    {"{'type':'Split','pattern':{'Regex':'\\\\p{Han}'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab-12121\na b\n|\u4e2d|\u3042aab"},
    {"{'type':'Split','pattern':{'Regex':'[\\\\w-]+'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab-12121|\n|a| |b|\n|\u4e2d\u3042aab"},
    {"{'type':'Split','pattern':{'Regex':'\\\\u0061'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|a|b-12121\n|a| b\n\u4e2d\u3042|a|a|b"},
    {"{'type':'Split','pattern':{'Regex':'\\\\W'},'behavior':'Isolated','invert':"
     "false}",
     "ab-12121\na b\n\u4e2d\u3042aab", "|ab|-|12121|\n|a| |b|\n|\u4e2d\u3042aab"},
    {"{'type':'Digits','individual_digits':true}", "a12b\u00bd", "|a|1|2|b|\u00bd"},
    {"{'type':'Digits','individual_digits':false}", "a12b\u00bd", "|a|12|b|\u00bd"},
    {"{'type':'CharDelimiterSplit','delimiter':'-'}", " ab--c  A1_2.\n",
     "| ab|c  A1_2.\n"},
    {"{'type':'UnicodeScripts'}", "\u4e2d\u3042\u30fc ab\u0e40\u00e9e\u0301",
     "|\u4e2d\u3042\u30fc |ab|\u0e40|\u00e9e|\u0301"},
    {"{'type':'FixedLength','length':3}", "\u4e2d\u3042\u30fc ab\u0e40\u00e9e\u0301",
     "|\u4e2d\u3042\u30fc| ab|\u0e40\u00e9e|\u0301"},
    {"{'type':'Metaspace','replacement':'\u2581','prepend_scheme':'first','split':"
     "true}",
     "a  b ", "|\u2581a|\u2581|\u2581b|\u2581"},
    {"{'type':'Sequence','pretokenizers':[{'type':'WhitespaceSplit'},{'type':'"
     "Metaspace','replacement':'\u2581','prepend_scheme':'first','split':true}]}",
     "a b", "|\u2581a|b"},
    {"{'type':'Metaspace','replacement':'\u2581','prepend_scheme':'always','split':"
     "true}",
     "a  b ", "|\u2581a|\u2581|\u2581b|\u2581"},
    {"{'type':'Sequence','pretokenizers':[{'type':'WhitespaceSplit'},{'type':'"
     "Metaspace','replacement':'\u2581','prepend_scheme':'always','split':true}]}",
     "a b", "|\u2581a|\u2581b"},
    {"{'type':'Metaspace','replacement':'\u2581','prepend_scheme':'never','split':"
     "true}",
     "a  b ", "|a|\u2581|\u2581b|\u2581"},
    {"{'type':'Sequence','pretokenizers':[{'type':'WhitespaceSplit'},{'type':'"
     "Metaspace','replacement':'\u2581','prepend_scheme':'never','split':true}]}",
     "a b", "|a|b"},
    {"{'type':'Metaspace','replacement':'_','prepend_scheme':'always','split':false}",
     "a b", "|_a_b"},
    {"{'type':'ByteLevel','add_prefix_space':true,'use_regex':true,'trim_offsets':"
     "true}",
     "ab'A1", "|\u0120ab|'|A|1"},
    {"{'type':'Sequence','pretokenizers':[{'type':'Digits','individual_digits':true},{'"
     "type':'ByteLevel','add_prefix_space':true,'use_regex':false,'trim_offsets':true}]"
     "}",
     "a1", "|\u0120a|\u01201"},
};

static const char characters[] =
    "a b c A B e 1 2 . , - _ ' \n \t \u2581 \u00e9 \u0e40 \u4e2d \u3042 \u30fc \u0301 "
    "\u3000 \u00bd \u0120";

/* Tokens for characters that begin a piece, and others for those behind. */
static json_t *character_model(void)
{
    json_t *vocab = json_object();
    char token[16];
    int id = 1;

    json_object_set_new(vocab, "[UNK]", json_integer(0));
    for (const char *at = characters; *at;) {
        const size_t n = strcspn(at, " ");

        for (int k = 0; k < 2; k++) {
            snprintf(token, sizeof token, "%s%.*s", k ? "##" : "", (int)n, at);
            json_object_set_new(vocab, token, json_integer(id++));
        }
        at += n + (at[n] == ' ');
    }
    json_object_set_new(vocab, " ", json_integer(id++));
    json_object_set_new(vocab, "## ", json_integer(id++));
    return json_pack("{s:s, s:s, s:o}", "type", "WordPiece", "unk_token", "[UNK]",
                     "vocab", vocab);
}

static struct tokenizer *open_with(const char *step, struct err *err)
{
    json_t *root = json_object();

    json_object_set_new(root, "model", character_model());
    json_object_set_new(root, "pre_tokenizer", json_quoted(step));
    return open_json(root, err);
}

/* Tokens as the rows write them. */
static void spell(const struct tokenizer *t, const int32_t *ids, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *text = tokenizer_text(t, ids[i], &len);
        const bool goes_on = len > 2 && !memcmp(text, "##", 2);

        if (!goes_on)
            *out++ = '|';
        memcpy(out, text + 2 * goes_on, len - 2 * goes_on);
        out += len - 2 * goes_on;
    }
    *out = '\0';
}

static void cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = ERR_INIT;
        struct tokenizer *t = open_with(rows[i].step, &err);
        char got[400];
        int32_t *ids;
        size_t n;

        if (!t)
            fail_msg("%s: %s", rows[i].step, err.msg);
        assert_int_equal(tokenizer_encode(t, rows[i].text, strlen(rows[i].text), false,
                                          false, &ids, &n, &err),
                         ST_OK);
        spell(t, ids, n, got);
        if (strcmp(got, rows[i].pieces))
            fail_msg("%s: '%s' is '%s', not '%s'", rows[i].step, rows[i].text, got,
                     rows[i].pieces);
        free(ids);
        tokenizer_close(t);
    }
}

/* What is no UTF-8 is a piece of its own, wherever a step cuts. */
static void any_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = ERR_INIT;
        struct tokenizer *t = open_with(rows[i].step, &err);

        if (!t)
            fail_msg("%s: %s", rows[i].step, err.msg);
        for (int k = 0; k < 100; k++) {
            char text[40];
            int32_t *ids;
            size_t n;

            for (size_t b = 0; b < sizeof text; b++)
                text[b] = draw(2) ? (char)draw(256) : rows[i].text[draw(2)];
            assert_int_equal(
                tokenizer_encode(t, text, sizeof text, false, false, &ids, &n, &err),
                ST_OK);
            assert_true(n > 0);
            free(ids);
        }
        tokenizer_close(t);
    }
}

static void refused_by_name(void **state)
{
    static const char *const steps[] = {
        "{'type':'Shuffle'}",
        "{'type':'Split','pattern':{'Regex':'[a[bc]]'},'behavior':'Isolated'}",
        "{'type':'Split','pattern':{'Regex':'(?m:.)'},'behavior':'Isolated'}",
        "{'type':'Split','pattern':{'String':'a'},'behavior':'Sideways'}",
        "{'type':'Split','pattern':{'String':'a'}}",
        "{'type':'CharDelimiterSplit'}",
        "{'type':'FixedLength','length':0}",
        "{'type':'Metaspace','replacement':''}",
        ("{'type':'Sequence','pretokenizers':[{'type':'ByteLevel'},"
         "{'type':'ByteLevel'}]}"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct err err = ERR_INIT;

        assert_null(open_with(steps[i], &err));
        assert_int_equal(err.code, ST_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "the pre_tokenizer '"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * test_hf_texts.c - what a tokenizer.json does with a text before the model sees it:
 * normalisers, added tokens and the blanks around them, characters of today
 */
#include "tests/support/hf_vocab.h"

#define ADDED(flags) "[{\"id\":700,\"content\":\"<x>\",\"special\":false" flags "}]"

/* A table of characters: 1/2, q, a with an acute accent, e with one, a wide blank. */
#define CHARSMAP                                                                     \
    "jAMAAAAEAAAAAAAAAAAAAAAAAAAAAACAAwAAgAAAAAAFAACAAAAAAAkAAIAAAAAAAAAAAAsAAIAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGGIAQAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABx1QEAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACBGQ" \
    "IAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIAEAgCAHQIAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAqaECAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAC98QIAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAwygDAMIUAwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAzDQDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADjoAMAw6EAUQAxLzIARQAgAA=="

/* Tokens of text without merges are its bytes: the text as the model sees it, with the
 * added token as '#'. */
static void expect(const char *normalizer, const char *added, const char *text,
                   const char *want)
{
    struct vocab *v = byte_level_vocab();
    struct err err = ERR_INIT;
    char got[400];
    int32_t *ids;
    size_t n;

    v->n = 256;
    v->n_merges = 0;
    json_t *root = json_of(v, true);

    set(root, "pre_tokenizer", BYTE_LEVEL);
    set(root, "normalizer", normalizer);
    set(root, "added_tokens", added);
    struct tokenizer *t = open_json(root, &err);

    if (!t)
        fail_msg("%s", err.msg);
    assert_int_equal(
        tokenizer_encode(t, text, strlen(text), false, false, &ids, &n, &err), ST_OK);
    for (size_t i = 0; i < n; i++)
        got[i] = (char)(ids[i] == 700 ? '#' : ids[i]);
    got[n] = '\0';
    if (strcmp(got, want))
        fail_msg("%s, %s: '%s' is '%s', not '%s'", normalizer, added, text, got, want);
    free(ids);
    tokenizer_close(t);
    free(v);
}

static void normalisers(void **state)
{
    (void)state;
    expect("null", "[]", "e\u0301", "e\u0301");
    expect("{\"type\":\"NFC\"}", "[]", "e\u0301", "\u00e9");
    expect("{\"type\":\"NFD\"}", "[]", "\u00e9", "e\u0301");
    expect("{\"type\":\"NFKC\"}", "[]", "\ufb01", "fi");
    expect("{\"type\":\"NFKD\"}", "[]", "\uff21\u00e9", "Ae\u0301");
    expect("{\"type\":\"Lowercase\"}", "[]", "A\u00c9\u0130", "a\u00e9i\u0307");
    expect("{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}", "[]",
           " \u3000a b\n", "a b");
    expect("{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}", "[]",
           " a ", " a");
    expect("{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}", "[]", "  ",
           "");
    expect("{\"type\":\"Replace\",\"pattern\":{\"String\":\"ab\"},\"content\":\"-\"}",
           "[]", "aababb", "a--b");
    expect("{\"type\":\"Prepend\",\"prepend\":\">\"}", "[]", "a", ">a");
    expect("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},"
           "{\"type\":\"StripAccents\"},{\"type\":\"Lowercase\"}]}",
           "[]", "\u00c9t\u00e9", "ete");
    expect("{\"type\":\"BertNormalizer\",\"clean_text\":true,"
           "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true}",
           "[]", "\u00c9\t\u4e00\x01", "e  \u4e00 ");
}

static void more_normalisers(void **state)
{
    static const char table[] =
        "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"" CHARSMAP "\"}";

    (void)state;
    expect(table, "[]", "q \u00bd a\u0301\u3000\u00e9", "Q 1/2 \u00e1 E");
    expect(table, "[]", "\u00e9\u0301 a\u0301\u0301\u0301", "E a\u0301\u0301\u0301");
    expect("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\"_\"}",
           "[]", "a  b c   \xff  ", "a_b c_\xff_");
    expect("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"b*\"},\"content\":\"-\"}",
           "[]", "abc", "-a-c");
    expect("{\"type\":\"StripAccents\"}", "[]", "q\u093e\u0301\u0488", "q");
    expect("{\"type\":\"Nmt\"}", "[]", "a\u200bb\x01\tc", "a b c");
}

static void added_tokens(void **state)
{
    (void)state;
    expect("null", ADDED(""), "a <x> b", "a # b");
    expect("null", ADDED(",\"lstrip\":true"), "a \n<x> b", "a# b");
    expect("null", ADDED(",\"rstrip\":true"), "a <x>\u00a0 b", "a #b");
    expect("null", ADDED(",\"lstrip\":true,\"rstrip\":true"), "<x> <x>", "##");
    expect("null", ADDED(",\"single_word\":true"), "a<x> <x>\u00e9 (<x>)",
           "a<x> <x>\u00e9 (#)");
    /* found as it is spelled, or in the text as it becomes */
    expect("{\"type\":\"Lowercase\"}", ADDED(""), "<X> <x>", "<x> #");
    expect("{\"type\":\"Lowercase\"}", ADDED(",\"normalized\":true"), "<X> <x>", "# #");
    expect("null", "[{\"id\":700,\"content\":\"\\n\",\"special\":true}]", "a\nb",
           "a#b");
}

/* Letters and digits that came after Unicode 10 are cut as others are. */
static void characters_of_today(void **state)
{
    struct vocab *v = byte_level_vocab();
    struct err err = ERR_INIT;
    int32_t *ids;
    size_t n;

    (void)state;
    /* one token of two letters of Garay (16), where no cut is between them */
    v->n = 256;
    v->n_merges = 0;
    static const char text[] = "\U00010d70\U00010d71";
    int whole[2] = {0, 0};

    for (int k = 0; k < 2; k++) {
        whole[k] = (unsigned char)text[4 * k];
        for (int i = 1; i < 4; i++) {
            char spelt[2 * MAX_TEXT];

            snprintf(spelt, sizeof spelt, "%s%s", v->token[whole[k]],
                     v->token[(unsigned char)text[4 * k + i]]);
            join(v, whole[k], (unsigned char)text[4 * k + i]);
            whole[k] = find(v, spelt);
        }
    }
    join(v, whole[0], whole[1]);
    json_t *root = json_of(v, true);

    set(root, "pre_tokenizer", SPLIT("\\\\p{L}+|[^\\\\p{L}]"));
    struct tokenizer *t = open_json(root, &err);

    if (!t)
        fail_msg("%s", err.msg);
    assert_int_equal(
        tokenizer_encode(t, text, strlen(text), false, false, &ids, &n, &err), ST_OK);
    assert_int_equal(n, 1);
    free(ids);
    tokenizer_close(t);
    free(v);
}

/* The most likely division, of equal ones that with the first token found first;
 * characters without a token are one unknown token, or bytes. */
static void unigrams(void **state)
{
    static const char *const pre[] = {
        "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":"
        "\"always\",\"split\":true}",
        "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":"
        "\"never\",\"split\":false}"};
    static const char model[] =
        "{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":false,\"vocab\":["
        "[\"<unk>\",0],[\"\u2581\",-3],[\"a\",-2],[\"b\",-2],[\"ab\",-3.5],"
        "[\"\u2581a\",-4],[\"aba\",-5.5],[\"b\u2581a\",-1],[\"ba\",-4]]}";

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct err err = ERR_INIT;
        json_t *root = json_object();

        set(root, "pre_tokenizer", pre[i]);
        set(root, "model", model);
        struct tokenizer *t = open_json(root, &err);

        if (!t)
            fail_msg("%s", err.msg);
        IDS(t, "", "");
        IDS(t, "ab", i ? "4" : "5 3");
        IDS(t, "aba", i ? "6" : "5 8");
        IDS(t, "ab ab", i ? "2 7 3" : "5 3 5 3");
        IDS(t, "a\u00e9\u00e9b", i ? "2 0 3" : "5 0 3");
        tokenizer_close(t);
    }
}

/* A short text does not become a long one. */
static void growth_has_a_limit(void **state)
{
    struct vocab *v = byte_level_vocab();
    struct err err = ERR_INIT;
    json_t *root = json_of(v, true);
    char steps[4000] = "{\"type\":\"Sequence\",\"normalizers\":[", text[64];
    int32_t *ids;
    size_t n;

    (void)state;
    for (int i = 0; i < 16; i++)
        strcat(steps,
               "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":"
               "\"aaaaaaaaaaaaaaaa\"},");
    strcat(steps, "{\"type\":\"NFC\"}]}");
    set(root, "pre_tokenizer", BYTE_LEVEL);
    set(root, "normalizer", steps);
    struct tokenizer *t = open_json(root, &err);

    if (!t)
        fail_msg("%s", err.msg);
    memset(text, 'a', sizeof text);
    assert_int_equal(
        tokenizer_encode(t, text, sizeof text, false, false, &ids, &n, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "many times as long"));
    tokenizer_close(t);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalisers),  cmocka_unit_test(more_normalisers),
        cmocka_unit_test(added_tokens), cmocka_unit_test(characters_of_today),
        cmocka_unit_test(unigrams),     cmocka_unit_test(growth_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

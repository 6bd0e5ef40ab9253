/* SPDX-License-Identifier: MIT
 *
 * test_hf_tokenizer_refusals.c - what a tokenizer.json holds that is not understood,
 * damaged or without end is refused in a sentence
 */
#include "tests/support/hf_vocab.h"

static void what_is_not_known_is_refused(void **state)
{
    static const struct {
        const char *key, *value, *says;
    } cases[] = {
        {"model", "{\"type\":\"Unigram\",\"vocab\":[]}", "no model.vocab"},
        {"model", "{\"type\":\"WordPiece\",\"vocab\":{}}", "no model.vocab"},
        {"model", "{\"type\":\"Words\",\"vocab\":{}}", "the type 'Words'"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}", "no model.vocab"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0}}", "no model.merges"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}", "number -1"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":9999999999},\"merges\":[]}",
         "number 9999999999"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":4194303},\"merges\":[]}",
         "number 4194303"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}",
         "two tokens have the number 0"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0.5},\"merges\":[]}", "no whole"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}",
         "merge 0 is not two tokens"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}",
         "not in the vocabulary"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}",
         "merge 0 is not two tokens"},
        {"normalizer", "{\"type\":\"Precompiled\"}", "the normalizer 'Precompiled'"},
        {"pre_tokenizer", "{\"type\":\"Blanks\"}", "the pre_tokenizer 'Blanks'"},
        {"pre_tokenizer", SPLIT("[a[bc]]"), "the pre_tokenizer 'Split'"},
        {"pre_tokenizer", SPLIT("(a"), "is wrong at byte"},
        {"added_tokens", "[{\"id\":3}]", "lacks its content"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct vocab *v = byte_level_vocab();
        struct err err = ERR_INIT;
        json_t *root = json_of(v, false);

        set(root, "pre_tokenizer", BYTE_LEVEL);
        set(root, cases[c].key, cases[c].value);
        assert_null(open_json(root, &err));
        if (!strstr(err.msg, cases[c].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[c].says);
        free(v);
    }
}

/* A pattern that tries everything ends in a sentence, and soon. */
static void patterns_have_a_limit(void **state)
{
    struct vocab *v = byte_level_vocab();
    struct err err = ERR_INIT;
    json_t *root = json_of(v, false);
    char text[64];
    int32_t *ids;
    size_t n;

    (void)state;
    set(root, "pre_tokenizer", SPLIT("(a+)+(a+)+(a+)+$b"));
    struct tokenizer *t = open_json(root, &err);

    if (!t)
        fail_msg("%s", err.msg);
    memset(text, 'a', sizeof text);
    if (tokenizer_encode(t, text, sizeof text, false, false, &ids, &n, &err) == ST_OK)
        free(ids);
    else
        assert_non_null(strstr(err.msg, "cutting a text"));
    tokenizer_close(t);
    free(v);
}

/* Cut short or with a byte changed, it is read or refused. */
static void damage_is_survived(void **state)
{
    static const char text[] =
        "{\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"special\":true}],"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
        "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}";
    char copy[sizeof text];

    (void)state;
    for (size_t n = 0; n < sizeof text * 9; n++) {
        const size_t len = n < sizeof text - 1 ? n : sizeof text - 1;
        struct gguf_kvs k = {.n = 0};
        struct err err = ERR_INIT;

        memcpy(copy, text, sizeof text);
        if (n >= sizeof text)
            copy[draw(sizeof text - 1)] ^= (char)(1 << draw(7));
        if (hf_tokenizer_parse(&k, copy, len, &err) == ST_OK)
            tokenizer_close(open_kvs(&k, &err));
        else
            free(k.bytes.data);
        assert_null(strchr(err.msg, '\n'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_known_is_refused),
        cmocka_unit_test(patterns_have_a_limit),
        cmocka_unit_test(damage_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * test_hf_tokenizer.c - the same vocabulary as tokenizer.json and as GGUF metadata
 * gives the same ids
 */
#include "tests/support/hf_vocab.h"

#define N_TEXTS 300

static void put_gguf_tokens(struct gguf_kvs *k, const struct vocab *v)
{
    gguf_kv_array(k, "tokenizer.ggml.tokens", GGUF_STRING, (uint64_t)v->n);
    for (int i = 0; i < v->n; i++)
        gguf_put_str(&k->bytes, v->token[i]);
}

static void same_ids(const struct tokenizer *a, const struct tokenizer *b)
{
    for (int i = 0; i < N_TEXTS; i++) {
        struct err err = ERR_INIT;
        char text[200];
        const size_t len = random_text(text);
        int32_t *x = NULL, *y = NULL;
        size_t n = 0, m = 0;

        if (tokenizer_encode(a, text, len, true, true, &x, &n, &err) ||
            tokenizer_encode(b, text, len, true, true, &y, &m, &err))
            fail_msg("%s", err.msg);
        if (n != m || memcmp(x, y, n * sizeof *x))
            fail_msg("'%.*s': other ids (%zu and %zu)", (int)len, text, n, m);
        free(x);
        free(y);
    }
}

static void round_trip(const struct tokenizer *t)
{
    for (int i = 0; i < N_TEXTS; i++) {
        struct err err = ERR_INIT;
        char text[200], back[400];
        const size_t len = random_text(text);
        int32_t *ids;
        size_t n, at = 0;

        assert_int_equal(tokenizer_encode(t, text, len, false, false, &ids, &n, &err),
                         ST_OK);
        for (size_t k = 0; k < n; k++)
            at += tokenizer_piece(t, ids[k], back + at, sizeof back - at);
        free(ids);
        assert_int_equal(at, len);
        assert_memory_equal(back, text, len);
    }
}

/* ---- byte-level ------------------------------------------------------------------ */

#define LLAMA3_SPLIT                                                                   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"            \
    "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s" \
    "+(?!\\\\S)|\\\\s+"
#define QWEN2_SPLIT                                                                   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"           \
    "\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!" \
    "\\\\S)|\\\\s+"
static const struct {
    const char *pre_tokenizer;
    bool ignore_merges;
    const char *name; /* of the same in GGUF; NULL: none */
} ways[] = {
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", false, "gpt-2"},
    {SPLIT(LLAMA3_SPLIT), true, "llama-bpe"},
    {SPLIT(LLAMA3_SPLIT), false, "glm4"},
    {SPLIT(QWEN2_SPLIT), false, "qwen2"},
    {"{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
     "\"individual_digits\":true},{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]"
     "}",
     false, "starcoder"},
    /* Nobody's, and one that no name stands for because of what joins it. */
    {SPLIT("[abc]+|\\\\d|\\\\S|\\\\s+"), true, NULL},
    {SPLIT(QWEN2_SPLIT), true, NULL},
};

static void byte_level_as_in_gguf(void **state)
{
    struct vocab *v = byte_level_vocab();

    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct err err = ERR_INIT;
        struct gguf_kvs k = {.n = 0};
        json_t *root = json_of(v, w % 2);

        set(root, "pre_tokenizer", ways[w].pre_tokenizer);
        set(root, "normalizer", "null");
        json_object_set_new(json_object_get(root, "model"), "ignore_merges",
                            json_boolean(ways[w].ignore_merges));
        struct tokenizer *json = open_json(root, &err);

        if (!json)
            fail_msg("%s", err.msg);
        round_trip(json);
        if (ways[w].name) {
            gguf_kv_str(&k, "tokenizer.ggml.model", "gpt2");
            gguf_kv_str(&k, "tokenizer.ggml.pre", ways[w].name);
            put_gguf_tokens(&k, v);
            gguf_kv_array(&k, "tokenizer.ggml.merges", GGUF_STRING,
                          (uint64_t)v->n_merges);
            for (int i = 0; i < v->n_merges; i++) {
                char merge[2 * MAX_TEXT];

                snprintf(merge, sizeof merge, "%s %s", v->token[v->left[i]],
                         v->token[v->right[i]]);
                gguf_put_str(&k.bytes, merge);
            }
            struct tokenizer *gguf = open_kvs(&k, &err);

            if (!gguf)
                fail_msg("%s", err.msg);
            same_ids(json, gguf);
            tokenizer_close(gguf);
        }
        tokenizer_close(json);
    }
    free(v);
}

/* Patterns of a file are followed: digits alone, words of letters only. */
static void unknown_patterns_cut(void **state)
{
    struct vocab *v = byte_level_vocab();
    struct err err = ERR_INIT;
    json_t *root;
    int32_t *ids;
    size_t n;

    (void)state;
    v->n_merges = 0;
    join(v, find(v, "a"), find(v, "b"));
    join(v, find(v, "1"), find(v, "2"));
    root = json_of(v, true);
    set(root, "pre_tokenizer", SPLIT("\\\\d|[^\\\\d]+"));
    struct tokenizer *t = open_json(root, &err);

    if (!t)
        fail_msg("%s", err.msg);
    assert_int_equal(tokenizer_encode(t, "ab12", 4, false, false, &ids, &n, &err),
                     ST_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ids[0], find(v, "ab"));
    assert_int_equal(ids[1], find(v, "1"));
    free(ids);
    tokenizer_close(t);
    free(v);
}

/* ---- blanks as U+2581 ------------------------------------------------------------ */

#define LEGACY                                                                       \
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"     \
    "\"\\u2581\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":" \
    "\"\\u2581\"}]}"
#define GEMMA \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\\u2581\"}"
#define METASPACE(scheme)                                                              \
    "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"" scheme \
    "\",\"split\":false}"
#define ADDED                                                             \
    "[{\"id\":0,\"content\":\"<unk>\",\"special\":true,\"lstrip\":false," \
    "\"rstrip\":false,\"single_word\":false,\"normalized\":false},"       \
    "{\"id\":1,\"content\":\"<s>\",\"special\":true},"                    \
    "{\"id\":2,\"content\":\"</s>\",\"special\":true}]"

static json_t *spm_json(const struct vocab *v, bool pairs)
{
    json_t *root = json_of(v, pairs), *model = json_object_get(root, "model");

    json_object_set_new(model, "byte_fallback", json_true());
    json_object_set_new(model, "unk_token", json_string("<unk>"));
    set(root, "added_tokens", ADDED);
    return root;
}

/* With merges that can be made in one way, scores say the same as the list. */
static void spm_as_in_gguf(void **state)
{
    static const char *const normalizers[] = {LEGACY, GEMMA};
    struct vocab *v = spm_vocab(true);

    (void)state;
    for (int w = 0; w < 2; w++) {
        struct err err = ERR_INIT;
        struct gguf_kvs k = {.n = 0};
        json_t *root = spm_json(v, w);

        set(root, "normalizer", normalizers[w]);
        struct tokenizer *json = open_json(root, &err);

        if (!json)
            fail_msg("%s", err.msg);
        gguf_kv_str(&k, "tokenizer.ggml.model", "llama");
        put_gguf_tokens(&k, v);
        gguf_kv_array(&k, "tokenizer.ggml.scores", GGUF_F32, (uint64_t)v->n);
        for (int i = 0; i < v->n; i++)
            gguf_put_f32(&k.bytes, -(float)i);
        gguf_kv_array(&k, "tokenizer.ggml.token_type", GGUF_I32, (uint64_t)v->n);
        for (int i = 0; i < v->n; i++)
            gguf_put_u32(&k.bytes, i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1);
        gguf_kv_bool(&k, "tokenizer.ggml.add_space_prefix", w == 0);
        gguf_kv_u32(&k, "tokenizer.ggml.bos_token_id", UINT32_MAX);
        struct tokenizer *gguf = open_kvs(&k, &err);

        if (!gguf)
            fail_msg("%s", err.msg);
        assert_int_equal(tokenizer_adds_space(json), w == 0);
        same_ids(json, gguf);
        tokenizer_close(gguf);
        tokenizer_close(json);
    }
    free(v);
}

/* The rule itself, slowly: of all neighbours that the list has, the first in it. */
static size_t slow_bpe(const struct vocab *v, const char *text, size_t len,
                       int32_t *ids)
{
    char(*part)[MAX_TEXT] = calloc(300, MAX_TEXT);
    size_t n = 0, n_ids = 0;

    assert_non_null(part);
    for (size_t i = 0; i < len; n++) {
        size_t bytes = 1;

        while (i + bytes < len && ((unsigned char)text[i + bytes] & 0xc0) == 0x80)
            bytes++;
        if (text[i] == ' ')
            strcpy(part[n], "\xe2\x96\x81");
        else
            memcpy(part[n], text + i, bytes);
        i += bytes;
    }
    for (;;) {
        size_t best = SIZE_MAX, where = 0;

        for (size_t i = 0; i + 1 < n; i++)
            for (size_t m = 0; m < (size_t)v->n_merges && m < best; m++)
                if (!strcmp(v->token[v->left[m]], part[i]) &&
                    !strcmp(v->token[v->right[m]], part[i + 1])) {
                    best = m;
                    where = i;
                }
        if (best == SIZE_MAX)
            break;
        const size_t at = strlen(part[where]);

        memcpy(part[where] + at, part[where + 1], MAX_TEXT - at);
        memmove(part[where + 1], part[where + 2], (n - where - 2) * MAX_TEXT);
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        const int id = find(v, part[i]);

        if (id >= 0)
            ids[n_ids++] = id;
        for (const char *c = part[i]; id < 0 && *c; c++)
            ids[n_ids++] = 3 + (unsigned char)*c;
    }
    free(part);
    return n_ids;
}

static void merges_by_the_list(void **state)
{
    struct vocab *v = spm_vocab(false);
    struct err err = ERR_INIT;
    json_t *root = spm_json(v, true);

    (void)state;
    set(root, "normalizer", GEMMA);
    struct tokenizer *t = open_json(root, &err);

    if (!t)
        fail_msg("%s", err.msg);
    for (int i = 0; i < N_TEXTS; i++) {
        char text[200];
        const size_t len = random_text(text);
        int32_t want[400], *ids;
        const size_t m = slow_bpe(v, text, len, want);
        size_t n;

        assert_int_equal(tokenizer_encode(t, text, len, false, false, &ids, &n, &err),
                         ST_OK);
        if (n != m || memcmp(ids, want, n * sizeof *ids))
            fail_msg("'%.*s': other ids", (int)len, text);
        free(ids);
    }
    tokenizer_close(t);
    free(v);
}

/* Where the blank in front goes: everywhere, at the beginning, nowhere. */
static void blanks_in_front(void **state)
{
    static const struct {
        const char *scheme, *text;
        const char *tokens[5];
    } cases[] = {
        {METASPACE("always"),
         "a<s>b",
         {"\xe2\x96\x81"
          "a",
          "<s>", "\xe2\x96\x81", "b"}},
        {METASPACE("always"),
         " a",
         {"\xe2\x96\x81"
          "a"}},
        {METASPACE("first"),
         "a<s>b",
         {"\xe2\x96\x81"
          "a",
          "<s>", "b"}},
        {METASPACE("first"), "<s>a", {"<s>", "a"}},
        {METASPACE("never"), "a", {"a"}},
    };
    struct vocab *v = spm_vocab(true);

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct err err = ERR_INIT;
        json_t *root = spm_json(v, false);
        int32_t *ids;
        size_t n, want = 0;

        set(root, "pre_tokenizer", cases[c].scheme);
        struct tokenizer *t = open_json(root, &err);

        if (!t)
            fail_msg("%s", err.msg);
        assert_int_equal(tokenizer_encode(t, cases[c].text, strlen(cases[c].text),
                                          false, true, &ids, &n, &err),
                         ST_OK);
        for (; want < 5 && cases[c].tokens[want]; want++)
            assert_int_equal(want < n ? ids[want] : -1, find(v, cases[c].tokens[want]));
        assert_int_equal(n, want);
        free(ids);
        tokenizer_close(t);
    }
    free(v);
}

/* ---- special tokens -------------------------------------------------------------- */

static void templates_say_what_is_put_around(void **state)
{
    static const struct {
        const char *processor;
        int bos;
        bool adds_bos, adds_eos;
    } cases[] = {
        {"{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>"
         "\","
         "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}]}",
         1, true, false},
        {"{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},{\"type\":"
         "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},"
         "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"</s>\"}}]}]}",
         1, true, true},
        {"{\"type\":\"ByteLevel\"}", -1, false, false},
        {"null", -1, false, false},
    };
    struct vocab *v = spm_vocab(true);

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct err err = ERR_INIT;
        json_t *root = spm_json(v, false);

        set(root, "normalizer", LEGACY);
        set(root, "post_processor", cases[c].processor);
        struct tokenizer *t = NULL;
        struct gguf_kvs k;
        void *image = NULL;
        struct gguf *g =
            kvs_of_json(&k, root, &err) ? gguf_of_kvs(&image, &k, &err) : NULL;
        bool adds_eos;

        if (!g || tokenizer_open(&t, g, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(tokenizer_bos(t), cases[c].bos);
        assert_int_equal(tokenizer_adds_bos(t), cases[c].adds_bos);
        assert_true(gguf_get_bool(g, "tokenizer.ggml.add_eos_token", &adds_eos));
        assert_int_equal(adds_eos, cases[c].adds_eos);
        tokenizer_close(t);
        gguf_close(g);
        free(image);
    }
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_as_in_gguf),
        cmocka_unit_test(unknown_patterns_cut),
        cmocka_unit_test(spm_as_in_gguf),
        cmocka_unit_test(merges_by_the_list),
        cmocka_unit_test(blanks_in_front),
        cmocka_unit_test(templates_say_what_is_put_around),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * test_hf_tokenizer.c - the same vocabulary as tokenizer.json and as GGUF metadata
 * gives the same ids, and what is not understood is refused
 */
#include "tests/tokenizer_check.h"

#include <jansson.h>

#include "engine/gguf_put.h"
#include "engine/hf_impl.h"

#define N_TEXTS 300

static uint32_t random_state = 12345;

static uint32_t draw(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % n;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    const int n = c < 0x10000 ? 3 : 4;

    out[0] = (char)(n == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
    for (int i = 1; i < n; i++)
        out[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
    return (size_t)n;
}

/* Up to 40 characters from all over Unicode, most of them such that words happen. */
static size_t random_text(char *out)
{
    static const uint32_t blanks[] = {' ',  ' ',  ' ',  '\n',  '\t',
                                      '\r', 0x85, 0xa0, 0x3000};
    const uint32_t n = draw(40);
    size_t len = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = 'a' + draw(4);

        switch (draw(9)) {
        case 0:
            c = blanks[draw(9)];
            break;
        case 1:
            c = '0' + draw(10);
            break;
        case 2:
            c = '!' + draw(94);
            break;
        case 3:
            c = 0x80 + draw(0x700);
            break;
        case 4:
            c = draw(8) ? 0x1f600 + draw(40) : draw(0x110000);
            break;
        default:
            break;
        }
        if (c == 0 || (c >= 0xd800 && c < 0xe000))
            c = 0x2581;
        len += put_utf8(out + len, c);
    }
    return len;
}

/* ---- vocabularies -----------------------------------------------------------------
 */

#define MAX_TOKENS 1200
#define MAX_TEXT   64

struct vocab {
    char token[MAX_TOKENS][MAX_TEXT];
    int n;
    int left[MAX_TOKENS], right[MAX_TOKENS], n_merges; /* token numbers */
};

static int find(const struct vocab *v, const char *text)
{
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->token[i], text))
            return i;
    return -1;
}

static int add(struct vocab *v, const char *text)
{
    const int there = find(v, text);

    if (there >= 0)
        return there;
    assert_true(v->n < MAX_TOKENS);
    snprintf(v->token[v->n], MAX_TEXT, "%s", text);
    return v->n++;
}

/* Of two tokens their join, and the merge, if it is short and new. */
static void join(struct vocab *v, int a, int b)
{
    char whole[2 * MAX_TEXT];

    snprintf(whole, sizeof whole, "%s%s", v->token[a], v->token[b]);
    for (int i = 0; i < v->n_merges; i++)
        if (v->left[i] == a && v->right[i] == b)
            return;
    if (strlen(whole) > 20)
        return;
    add(v, whole);
    v->left[v->n_merges] = a;
    v->right[v->n_merges++] = b;
}

/* GPT-2's character for a byte. */
static void alphabet(char *out, int byte)
{
    int others = 0;

    for (int b = 0; b <= byte; b++) {
        const bool itself =
            (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;

        if (b == byte) {
            out[put_utf8(out, itself ? (uint32_t)b : 256u + (uint32_t)others)] = '\0';
            return;
        }
        others += !itself;
    }
}

static struct vocab *byte_level_vocab(void)
{
    static const char *const letters[] = {"a",        "b", "c",       "d",
                                          "\xc4\xa0", "1", "\xc3\x83"};
    struct vocab *v = calloc(1, sizeof *v);
    char c[8];

    assert_non_null(v);
    for (int b = 0; b < 256; b++) {
        alphabet(c, b);
        add(v, c);
    }
    for (int i = 0; i < 400; i++) {
        const int fresh = v->n > 256 ? 256 + (int)draw((uint32_t)v->n - 256) : 'a';
        const int a = draw(2) ? find(v, letters[draw(7)]) : fresh;
        const int b = draw(2) ? find(v, letters[draw(7)]) : fresh;

        join(v, a, b);
    }
    return v;
}

/* Bytes, letters and the blank; chains: each token is the one before and a letter that
 * occurs nowhere else in it, so that it can be made in one way only. */
static struct vocab *spm_vocab(bool chains)
{
    static const char *const letters[] = {
        "\xe2\x96\x81",    "a", "b", "c", "d", "1", "\xc3\xa9", "\n", "!",
        "\xf0\x9f\x98\x81"};
    struct vocab *v = calloc(1, sizeof *v);
    char byte[8];

    assert_non_null(v);
    add(v, "<unk>");
    add(v, "<s>");
    add(v, "</s>");
    for (int b = 0; b < 256; b++) {
        snprintf(byte, sizeof byte, "<0x%02X>", b);
        add(v, byte);
    }
    for (int i = 0; i < 10; i++)
        add(v, letters[i]);
    const int first = v->n - 10;

    for (int i = 0; i < 200 && !chains; i++)
        join(v, first + (int)draw((uint32_t)(v->n - first)),
             first + (int)draw((uint32_t)(v->n - first)));
    /* "_a", "_ab", "_abc" and "d1", "d1e", ... */
    for (int chain = 0; chain < 2 && chains; chain++) {
        int at = find(v, letters[chain ? 4 : 0]);

        for (int i = chain ? 5 : 1; i < (chain ? 9 : 4); i++) {
            char whole[2 * MAX_TEXT];

            snprintf(whole, sizeof whole, "%s%s", v->token[at], letters[i]);
            join(v, at, find(v, letters[i]));
            at = find(v, whole);
        }
    }
    return v;
}

/* ---- the two files ------------------------------------------------------------------
 */

static struct tokenizer *open_kvs(struct gguf_kvs *k, struct err *err)
{
    struct gguf_bytes head = {.n = 0};
    struct tokenizer *t = NULL;
    struct gguf *g = NULL;

    gguf_put_head(&head, 0, k);
    gguf_put_padding(&head);
    void *image = aligned_alloc(64, (head.n + 63) / 64 * 64);

    assert_non_null(image);
    memcpy(image, head.data, head.n);
    if (gguf_parse(&g, image, head.n, "vocab", err) == ST_OK)
        tokenizer_open(&t, g, err);
    gguf_close(g);
    free(image);
    free(head.data);
    free(k->bytes.data);
    return t;
}

static struct tokenizer *open_json(json_t *root, struct err *err)
{
    struct gguf_kvs k = {.n = 0};
    char *text = json_dumps(root, 0);

    assert_non_null(text);
    json_decref(root);
    gguf_kv_str(&k, "general.architecture", "llama");
    const enum status st = hf_tokenizer_parse(&k, text, strlen(text), err);

    free(text);
    if (st) {
        free(k.bytes.data);
        return NULL;
    }
    return open_kvs(&k, err);
}

/* pairs: merges as ["a", "b"], else "a b". */
static json_t *json_of(const struct vocab *v, bool pairs)
{
    json_t *ids = json_object(), *merges = json_array();

    for (int i = 0; i < v->n; i++)
        json_object_set_new(ids, v->token[i], json_integer(i));
    for (int i = 0; i < v->n_merges; i++) {
        const char *a = v->token[v->left[i]], *b = v->token[v->right[i]];

        json_array_append_new(merges, pairs ? json_pack("[s, s]", a, b)
                                            : json_sprintf("%s %s", a, b));
    }
    return json_pack("{s: {s: s, s: o, s: o}}", "model", "type", "BPE", "vocab", ids,
                     "merges", merges);
}

static void set(json_t *root, const char *key, const char *text)
{
    json_error_t why;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &why);

    if (!value)
        fail_msg("%s: %s", why.text, text);
    json_object_set_new(root, key, value);
}

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
        int32_t *x, *y;
        size_t n, m;

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

/* ---- byte-level
 * ----------------------------------------------------------------------- */

#define LLAMA3_SPLIT                                                                   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"            \
    "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s" \
    "+(?!\\\\S)|\\\\s+"
#define QWEN2_SPLIT                                                                   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"           \
    "\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!" \
    "\\\\S)|\\\\s+"
#define BYTE_LEVEL                                                              \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true," \
    "\"use_regex\":false}"
#define SPLIT(regex)                                                                   \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"      \
    "\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false}," BYTE_LEVEL \
    "]}"

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
        set(root, "normalizer", w % 2 ? "{\"type\":\"NFC\"}" : "null");
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

/* ---- blanks as U+2581
 * ----------------------------------------------------------------- */

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

/* ---- special tokens
 * ------------------------------------------------------------------- */

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
        struct tokenizer *t = open_json(root, &err);

        if (!t)
            fail_msg("%s", err.msg);
        assert_int_equal(tokenizer_bos(t), cases[c].bos);
        assert_int_equal(tokenizer_adds_bos(t), cases[c].adds_bos);
        assert_int_equal(tokenizer_adds_eos(t), cases[c].adds_eos);
        tokenizer_close(t);
    }
    free(v);
}

/* ---- refusals
 * --------------------------------------------------------------------------- */

static void what_is_not_known_is_refused(void **state)
{
    static const struct {
        const char *key, *value, *says;
    } cases[] = {
        {"model", "{\"type\":\"Unigram\",\"vocab\":[]}", "type 'Unigram'"},
        {"model", "{\"type\":\"WordPiece\",\"vocab\":{}}", "type 'WordPiece'"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}", "no model.vocab"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0}}", "no model.merges"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}", "number -1"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":9999999999},\"merges\":[]}",
         "number 9999999999"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}",
         "two tokens have the number 0"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0.5},\"merges\":[]}", "no whole"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}",
         "merge 0 is not two tokens"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}",
         "not in the vocabulary"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}",
         "merge 0 is not two tokens"},
        {"model",
         "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],"
         "\"continuing_subword_prefix\":\"##\"}",
         "continuing_subword_prefix"},
        {"normalizer", "{\"type\":\"Lowercase\"}", "the normalizer 'Lowercase'"},
        {"pre_tokenizer", "{\"type\":\"Whitespace\"}",
         "the pre_tokenizer 'Whitespace'"},
        {"pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}",
         "add_prefix_space"},
        {"pre_tokenizer", SPLIT("[a[bc]]"), "regular expression"},
        {"pre_tokenizer", SPLIT("(a"), "is wrong at byte"},
        {"pre_tokenizer", "null", "byte_fallback"},
        {"added_tokens", "[{\"id\":3}]", "lacks its content"},
        {"added_tokens", "[{\"id\":3,\"content\":\"x\",\"lstrip\":true}]", "lstrip"},
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
        cmocka_unit_test(byte_level_as_in_gguf),
        cmocka_unit_test(unknown_patterns_cut),
        cmocka_unit_test(spm_as_in_gguf),
        cmocka_unit_test(merges_by_the_list),
        cmocka_unit_test(blanks_in_front),
        cmocka_unit_test(templates_say_what_is_put_around),
        cmocka_unit_test(what_is_not_known_is_refused),
        cmocka_unit_test(patterns_have_a_limit),
        cmocka_unit_test(damage_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

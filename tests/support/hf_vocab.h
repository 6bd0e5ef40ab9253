/* SPDX-License-Identifier: MIT
 *
 * hf_vocab.h - vocabularies made up for tests, and the two files that say them:
 * tokenizer.json and GGUF metadata
 */
#ifndef SLM_TESTS_HF_VOCAB_H
#define SLM_TESTS_HF_VOCAB_H

#include "tests/support/tokenizer_check.h"

#include <jansson.h>

#include "engine/gguf/gguf_put.h"
#include "engine/hf/hf_impl.h"

/* Pre-tokenizers as tokenizer.json has them. */
#define BYTE_LEVEL                                                              \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true," \
    "\"use_regex\":false}"
#define SPLIT(regex)                                                                   \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"      \
    "\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false}," BYTE_LEVEL \
    "]}"

static uint32_t random_state = 12345;

static inline uint32_t draw(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % n;
}

static inline size_t put_utf8(char *out, uint32_t c)
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
static inline size_t random_text(char *out)
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

/* ---- vocabularies ---------------------------------------------------------------- */

#define MAX_TOKENS 1200
#define MAX_TEXT   64

struct vocab {
    char token[MAX_TOKENS][MAX_TEXT];
    int n;
    int left[MAX_TOKENS], right[MAX_TOKENS], n_merges; /* token numbers */
};

static inline int find(const struct vocab *v, const char *text)
{
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->token[i], text))
            return i;
    return -1;
}

static inline int add(struct vocab *v, const char *text)
{
    const int there = find(v, text);

    if (there >= 0)
        return there;
    assert_true(v->n < MAX_TOKENS && strlen(text) < MAX_TEXT);
    memcpy(v->token[v->n], text, strlen(text) + 1);
    return v->n++;
}

/* Of two tokens their join, and the merge, if it is short and new. */
static inline void join(struct vocab *v, int a, int b)
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
static inline void alphabet(char *out, int byte)
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

static inline struct vocab *byte_level_vocab(void)
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
static inline struct vocab *spm_vocab(bool chains)
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

/* ---- the two files --------------------------------------------------------------- */

/* The pairs as a gguf over *image; free it after the gguf. */
static inline struct gguf *gguf_of_kvs(void **image, struct gguf_kvs *k,
                                       struct err *err)
{
    struct gguf_bytes head = {.n = 0};
    struct gguf *g = NULL;

    gguf_put_head(&head, 0, k);
    gguf_put_padding(&head);
    *image = aligned_alloc(64, (head.n + 63) / 64 * 64);
    assert_non_null(*image);
    memcpy(*image, head.data, head.n);
    gguf_parse(&g, *image, head.n, "vocab", err);
    free(head.data);
    free(k->bytes.data);
    return g;
}

static inline struct tokenizer *open_kvs(struct gguf_kvs *k, struct err *err)
{
    struct tokenizer *t = NULL;
    void *image;
    struct gguf *g = gguf_of_kvs(&image, k, err);

    if (g)
        tokenizer_open(&t, g, err);
    gguf_close(g);
    free(image);
    return t;
}

/* The pairs of a tokenizer.json, which is released; false on failure. */
static inline bool kvs_of_json(struct gguf_kvs *k, json_t *root, struct err *err)
{
    char *text = json_dumps(root, 0);

    assert_non_null(text);
    json_decref(root);
    *k = (struct gguf_kvs){.n = 0};
    gguf_kv_str(k, "general.architecture", "llama");
    const enum status st = hf_tokenizer_parse(k, text, strlen(text), err);

    free(text);
    if (st)
        free(k->bytes.data);
    return !st;
}

static inline struct tokenizer *open_json(json_t *root, struct err *err)
{
    struct gguf_kvs k;

    return kvs_of_json(&k, root, err) ? open_kvs(&k, err) : NULL;
}

/* pairs: merges as ["a", "b"], else "a b". */
static inline json_t *json_of(const struct vocab *v, bool pairs)
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

static inline void set(json_t *root, const char *key, const char *text)
{
    json_error_t why;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &why);

    if (!value)
        fail_msg("%s: %s", why.text, text);
    json_object_set_new(root, key, value);
}

/* The same with ' for ". */
static inline json_t *json_quoted(const char *text)
{
    char *json = strdup(text);
    json_error_t why;

    assert_non_null(json);
    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *value = json_loads(json, JSON_DECODE_ANY, &why);

    if (!value)
        fail_msg("%s: %s", why.text, text);
    free(json);
    return value;
}

#endif

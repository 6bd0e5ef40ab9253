/* SPDX-License-Identifier: MIT
 *
 * test_tokenizer_special.c - special tokens in a text: the longest wins, and however
 * many a file has, a text is searched in time that its own length bounds
 */
#include "tests/support/test.h"

#include "engine/gguf/gguf_put.h"
#include "engine/tokenizer/tokenizer.h"

enum { N_BYTES = 259 }; /* <unk>, <s>, </s> and the bytes come first */
enum { CONTROL = 3, USER = 4 };

struct token {
    char text[1100];
    int type;
};

/* A vocabulary of bytes and these. */
static struct tokenizer *open_vocab(const struct token *special, int n)
{
    struct gguf_kvs kvs = {.n = 0};
    struct gguf_bytes b = {.n = 0};
    struct err err = ERR_INIT;
    struct tokenizer *t = NULL;
    struct gguf *g;
    char byte[8];

    gguf_kv_str(&kvs, "tokenizer.ggml.model", "llama");
    gguf_kv_bool(&kvs, "tokenizer.ggml.add_space_prefix", false);
    gguf_kv_array(&kvs, "tokenizer.ggml.tokens", GGUF_STRING, (uint64_t)(N_BYTES + n));
    gguf_put_str(&kvs.bytes, "<unk>");
    gguf_put_str(&kvs.bytes, "<s>");
    gguf_put_str(&kvs.bytes, "</s>");
    for (unsigned i = 0; i < 256; i++) {
        snprintf(byte, sizeof byte, "<0x%02X>", i);
        gguf_put_str(&kvs.bytes, byte);
    }
    for (int i = 0; i < n; i++)
        gguf_put_str(&kvs.bytes, special[i].text);
    gguf_kv_array(&kvs, "tokenizer.ggml.scores", GGUF_F32, (uint64_t)(N_BYTES + n));
    for (int i = 0; i < N_BYTES + n; i++)
        gguf_put_f32(&kvs.bytes, 0);
    gguf_kv_array(&kvs, "tokenizer.ggml.token_type", GGUF_I32, (uint64_t)(N_BYTES + n));
    for (int i = 0; i < N_BYTES + n; i++)
        gguf_put_u32(&kvs.bytes, i == 0        ? 2
                                 : i < 3       ? CONTROL
                                 : i < N_BYTES ? 6
                                               : (uint32_t)special[i - N_BYTES].type);
    gguf_put_head(&b, 0, &kvs);
    gguf_put_padding(&b);
    assert_false(b.failed);
    if (gguf_parse(&g, b.data, b.n, "vocab", &err) || tokenizer_open(&t, g, &err))
        fail_msg("%s", err.msg);
    gguf_close(g);
    free(b.data);
    free(kvs.bytes.data);
    return t;
}

/* What the rule says: at each place the longest that may stand there, of equals the
 * first, else the byte. */
static size_t by_rule(const struct token *special, int n, const char *text, bool all,
                      int32_t *ids)
{
    size_t n_ids = 0;

    for (size_t at = 0; text[at];) {
        size_t longest = 0;
        int32_t id = 3 + (unsigned char)text[at];

        for (int i = 0; i < n; i++) {
            const size_t len = strlen(special[i].text);

            if ((all || special[i].type == USER) && len > longest &&
                !strncmp(text + at, special[i].text, len)) {
                longest = len;
                id = N_BYTES + i;
            }
        }
        ids[n_ids++] = id;
        at += longest ? longest : 1;
    }
    return n_ids;
}

static unsigned next_random(unsigned *seed)
{
    return (*seed = *seed * 1664525u + 1013904223u) >> 16;
}

static void the_longest_wins(void **state)
{
    static struct token special[60];
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 200; round++) {
        const int n = 1 + (int)(next_random(&seed) % 60);
        int32_t want[64], *have;
        char text[41] = "";
        size_t n_have;

        for (int i = 0; i < n; i++) {
            const unsigned len = 1 + next_random(&seed) % 5;

            memset(special[i].text, 0, sizeof special[i].text);
            for (unsigned k = 0; k < len; k++)
                special[i].text[k] = "ab\xff"[next_random(&seed) % 3];
            special[i].type = next_random(&seed) % 2 ? CONTROL : USER;
        }
        for (size_t i = 0; i < sizeof text - 1; i++)
            text[i] = "ab\xff"[next_random(&seed) % 3];

        struct tokenizer *t = open_vocab(special, n);

        for (int all = 0; all < 2; all++) {
            struct err err = ERR_INIT;
            const size_t n_want = by_rule(special, n, text, all, want);

            assert_int_equal(tokenizer_encode(t, text, strlen(text), false, all, &have,
                                              &n_have, &err),
                             ST_OK);
            assert_int_equal(n_have, n_want);
            assert_memory_equal(have, want, n_want * sizeof *want);
            free(have);
        }
        tokenizer_close(t);
    }
}

/* Each would be compared with each place of the text: hours. */
static void many_cost_no_more(void **state)
{
    const int n = 200000;
    const size_t len = 400000;
    struct token *special = calloc((size_t)n, sizeof *special);
    char *text = malloc(len);
    struct err err = ERR_INIT;
    struct tokenizer *t;
    int32_t *ids;
    size_t n_ids;

    (void)state;
    assert_non_null(special);
    assert_non_null(text);
    memset(text, '<', len);
    for (int i = 0; i < n; i++) {
        /* the first half is the same text again and again */
        snprintf(special[i].text, sizeof special[i].text, i < n / 2 ? "<x>" : "<%06x",
                 (unsigned)i);
        special[i].type = CONTROL;
    }
    t = open_vocab(special, n);
    assert_int_equal(tokenizer_encode(t, text, len, false, true, &ids, &n_ids, &err),
                     ST_OK);
    assert_int_equal(n_ids, len);
    free(ids);
    assert_int_equal(tokenizer_encode(t, "<x>", 3, false, true, &ids, &n_ids, &err),
                     ST_OK);
    assert_int_equal(n_ids, 1);
    assert_int_equal(ids[0], N_BYTES);
    free(ids);
    tokenizer_close(t);
    free(special);
    free(text);
}

/* A search looks at as many bytes as the longest has, at each place. */
static void long_ones_are_left_out(void **state)
{
    static struct token special[2];
    struct err err = ERR_INIT;
    int32_t *ids;
    size_t n_ids;

    (void)state;
    memset(special[0].text, 'a', 1024);
    memset(special[1].text, 'b', 1025);
    special[0].type = special[1].type = CONTROL;

    struct tokenizer *t = open_vocab(special, 2);

    assert_int_equal(
        tokenizer_encode(t, special[0].text, 1024, false, true, &ids, &n_ids, &err),
        ST_OK);
    assert_int_equal(n_ids, 1);
    free(ids);
    assert_int_equal(
        tokenizer_encode(t, special[1].text, 1025, false, true, &ids, &n_ids, &err),
        ST_OK);
    assert_int_equal(n_ids, 1025);
    free(ids);
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_wins),
        cmocka_unit_test(many_cost_no_more),
        cmocka_unit_test(long_ones_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

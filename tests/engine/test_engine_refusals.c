/* SPDX-License-Identifier: MIT
 *
 * test_engine_refusals.c - the public API on files whose hyperparameters are damaged,
 * and with parameters that cannot be
 */
#include "engine/engine.h"
#include "tests/support/test.h"

#define MODELS TEST_DATA "models/"

/* Open an image and expect a refusal whose message holds a word. */
static void expect_refusal(const void *image, size_t bytes,
                           const struct slm_params *like, enum status expected,
                           const char *word)
{
    struct slm_params p = *like;
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p.image = image;
    p.image_bytes = bytes;
    p.name = "damaged";
    const enum status st = slm_open(&m, &p, &err);
    if (st != expected || m || !strstr(err.msg, word))
        fail_msg("status %d and \"%s\" where %d and \"%s\" were expected", (int)st,
                 err.msg, (int)expected, word);
}

static char *find_bytes(char *image, size_t bytes, const char *what)
{
    char *at = memmem(image, bytes, what, strlen(what));

    assert_non_null(at);
    return at;
}

/* Key, its type (4: uint32), its value. */
static uint32_t patch_u32(char *image, size_t bytes, const char *key, uint32_t value)
{
    char *at = find_bytes(image, bytes, key) + strlen(key);
    uint32_t type, before;

    memcpy(&type, at, 4);
    assert_int_equal(type, 4);
    memcpy(&before, at + 4, 4);
    memcpy(at + 4, &value, 4);
    return before;
}

static void test_hostile_hyperparameters(void **state)
{
    static const struct {
        const char *key;
        uint32_t value;
        enum status status;
        const char *word;
    } cases[] = {
        {"llama.attention.head_count", 0, ST_INPUT, "head_count is 0"},
        {"llama.attention.head_count", 3, ST_INPUT, "3 heads cannot share"},
        {"llama.attention.head_count", 8, ST_INPUT, "rope.dimension_count"},
        {"llama.attention.head_count", 128, ST_INPUT, "the head size 1 is possible"},
        {"llama.attention.head_count", 256, ST_UNSUPPORTED, "heads of 0"},
        {"llama.attention.head_count", 0xffffffffu, ST_INPUT, "4294967295"},
        {"llama.attention.head_count_kv", 0, ST_INPUT, "head_count_kv is 0"},
        {"llama.attention.head_count_kv", 3, ST_INPUT, "3 key-value heads"},
        {"llama.attention.head_count_kv", 1, ST_INPUT, "blk.0.attn_k.weight"},
        {"llama.attention.head_count_kv", 0x80000000u, ST_INPUT, "2147483648"},
        {"llama.block_count", 0, ST_INPUT, "block_count is 0"},
        {"llama.block_count", 1, ST_UNSUPPORTED, "blk.1."},
        {"llama.block_count", 3, ST_INPUT, "blk.2.attn_norm.weight is missing"},
        {"llama.block_count", 0xffffffffu, ST_INPUT, "block_count"},
        {"llama.embedding_length", 0, ST_INPUT, "embedding_length is 0"},
        {"llama.embedding_length", 256, ST_INPUT, "token_embd.weight is 128 x 320"},
        {"llama.embedding_length", 0x7fffffffu, ST_INPUT, "2147483647"},
        {"llama.feed_forward_length", 0, ST_INPUT, "feed_forward_length is 0"},
        {"llama.feed_forward_length", 512, ST_INPUT, "ffn_gate.weight"},
        {"llama.context_length", 0, ST_INPUT, "context_length is 0"},
        {"llama.context_length", 0xffffffffu, ST_INPUT, "context_length"},
        {"llama.rope.dimension_count", 0, ST_INPUT, "dimension_count is 0"},
        {"llama.rope.dimension_count", 31, ST_INPUT, "dimension_count is 31"},
        {"llama.rope.dimension_count", 64, ST_INPUT, "dimension_count is 64"},
    };
    const struct slm_params like = slm_params_default();
    size_t bytes;
    char *image = test_read_file(MODELS "llama.gguf", &bytes);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t before = patch_u32(image, bytes, cases[i].key, cases[i].value);

        expect_refusal(image, bytes, &like, cases[i].status, cases[i].word);
        patch_u32(image, bytes, cases[i].key, before);
    }
    free(image);
}

static void test_hostile_experts(void **state)
{
    const struct slm_params like = slm_params_default();
    size_t bytes;
    char *image = test_read_file(MODELS "llama-moe.gguf", &bytes);

    (void)state;
    patch_u32(image, bytes, "llama.expert_used_count", 5);
    expect_refusal(image, bytes, &like, ST_INPUT, "expert_used_count is 5");
    patch_u32(image, bytes, "llama.expert_used_count", 0);
    expect_refusal(image, bytes, &like, ST_INPUT, "expert_used_count is 0");
    patch_u32(image, bytes, "llama.expert_used_count", 2);
    patch_u32(image, bytes, "llama.expert_count", 8);
    expect_refusal(image, bytes, &like, ST_INPUT, "ffn_gate_inp.weight");
    patch_u32(image, bytes, "llama.expert_count", 0);
    expect_refusal(image, bytes, &like, ST_INPUT, "ffn_gate.weight is missing");
    free(image);
}

/* Names, types and values that a table of numbers cannot say. */
static void test_hostile_tensors(void **state)
{
    const struct slm_params like = slm_params_default();
    const uint32_t i8 = 24, zero = 0;
    size_t bytes;
    char *image = test_read_file(MODELS "llama-mqa.gguf", &bytes), *at;

    (void)state;
    at = find_bytes(image, bytes, "general.architecture") + 20 + 4 + 8;
    memcpy(at, "lhama", 5);
    expect_refusal(image, bytes, &like, ST_UNSUPPORTED,
                   "supported are: apertus, arcee");
    memcpy(at, "llama", 5);

    at = find_bytes(image, bytes, "blk.1.attn_q.weight");
    at[11] = 'z';
    expect_refusal(image, bytes, &like, ST_INPUT, "blk.1.attn_q.weight is missing");
    at[11] = 'q';
    /* behind the name: dimensions, two lengths, type */
    at += strlen("blk.1.attn_q.weight") + 4 + 16;
    memcpy(at, &i8, 4);
    expect_refusal(image, bytes, &like, ST_UNSUPPORTED, "i8");
    memcpy(at, "\x08\0\0\0", 4);

    at = find_bytes(image, bytes, "rope_freqs.weight");
    at[0] = 'd';
    expect_refusal(image, bytes, &like, ST_UNSUPPORTED, "dope_freqs.weight");
    at[0] = 'r';

    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    assert_int_equal(gguf_parse(&g, image, bytes, "whole", &err), ST_OK);
    const struct gguf_tensor *t = gguf_tensor_find(g, "rope_freqs.weight");
    memcpy(image + t->offset, &zero, 4);
    gguf_close(g);
    expect_refusal(image, bytes, &like, ST_INPUT, "a factor of 0");
    free(image);
}

static void test_hostile_params(void **state)
{
    struct slm_params p = slm_params_default();
    struct slm_info info;
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    size_t bytes;
    char *image = test_read_file(MODELS "llama.gguf", &bytes);

    (void)state;
    p.n_threads = 0;
    expect_refusal(image, bytes, &p, ST_USAGE, "0 threads");
    p.n_threads_prefill = 2;
    expect_refusal(image, bytes, &p, ST_USAGE, "0 threads to decode");
    p.n_threads = 1;
    p.n_threads_prefill = -3;
    expect_refusal(image, bytes, &p, ST_USAGE, "-3 to prefill");
    p.n_threads_prefill = THREAD_POOL_MAX + 1;
    expect_refusal(image, bytes, &p, ST_USAGE, "1025 threads");
    p.n_threads_prefill = 0;
    p.n_ctx = -1;
    expect_refusal(image, bytes, &p, ST_USAGE, "-1");
    p.n_ctx = INT32_MAX; /* a TiB of KV cache */
    expect_refusal(image, bytes, &p, ST_NO_MEMORY, "2147483647 positions");
    p.n_ctx = 16;
    p.n_batch = -5;
    expect_refusal(image, bytes, &p, ST_USAGE, "-5");
    p.n_batch = 1 << 20;
    expect_refusal(image, bytes, &p, ST_USAGE, "1048576");

    p = slm_params_default();
    assert_int_equal(slm_open(&m, &p, &err), ST_USAGE);
    err_clear(&err);
    p.path = MODELS "not-there.gguf";
    assert_int_equal(slm_open(&m, &p, &err), ST_IO);
    assert_non_null(strstr(err.msg, "not-there.gguf"));
    assert_null(m);

    /* The plan of the same context is a number, not an error. */
    struct gguf *g = NULL;
    err_clear(&err);
    assert_int_equal(gguf_parse(&g, image, bytes, "whole", &err), ST_OK);
    p = slm_params_default();
    p.n_ctx = INT32_MAX;
    assert_int_equal(slm_plan(&info, g, &p, &err), ST_OK);
    assert_true(info.kv_bytes == info.kv_pos_bytes * (1ull << 31)); /* whole panels */
    gguf_close(g);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_hyperparameters),
        cmocka_unit_test(test_hostile_experts),
        cmocka_unit_test(test_hostile_tensors),
        cmocka_unit_test(test_hostile_params),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * test_forward.c - the forward pass against a plain one in double precision
 *
 * The models of the other architectures are in test_arch.c. Caches of quantised keys
 * and values are held to bounds of their own. It takes the tests through several blocks
 * of the KV cache, where recorded logits do not reach.
 */
#include <math.h>

#include "engine/engine.h"
#include "kernels/half.h"
#include "tests/support/reference.h"

#define MODELS TEST_DATA "models/"

/* ---- the tests ------------------------------------------------------------------- */

enum { N_TOKENS = 770 }; /* three blocks of positions and a bit */

/* A model file with a key for a sliding window put in front of its metadata, and one
 * that brings both to 64 bytes, so that tensors stay aligned. */
static char *with_window(const char *path, uint32_t window, size_t *bytes)
{
    static const char key[] = "llama.attention.sliding_window", pad[] = "a.pad";
    enum { HEADER = 24, KEYS = 64 };
    const uint64_t key_len = sizeof key - 1, pad_len = sizeof pad - 1;
    const uint32_t is_u32 = 4, is_bool = 7;
    uint64_t n_keys;
    FILE *f = fopen(path, "rb");
    char *image, *at;

    assert_true(f && fseek(f, 0, SEEK_END) == 0);
    *bytes = (size_t)ftell(f) + KEYS;
    rewind(f);
    image = aligned_alloc(64, (*bytes + 63) / 64 * 64);
    assert_non_null(image);
    assert_true(fread(image, 1, HEADER, f) == HEADER);
    memcpy(&n_keys, image + 16, sizeof n_keys);
    n_keys += 2;
    memcpy(image + 16, &n_keys, sizeof n_keys);
    at = image + HEADER;
    at = mempcpy(at, &key_len, sizeof key_len);
    at = mempcpy(at, key, key_len);
    at = mempcpy(at, &is_u32, sizeof is_u32);
    at = mempcpy(at, &window, sizeof window);
    at = mempcpy(at, &pad_len, sizeof pad_len);
    at = mempcpy(at, pad, pad_len);
    at = mempcpy(at, &is_bool, sizeof is_bool);
    *at++ = 0;
    assert_true(at == image + HEADER + KEYS);
    assert_true(fread(at, 1, *bytes - HEADER - KEYS, f) == *bytes - HEADER - KEYS);
    fclose(f);
    return image;
}

/* Tokens go in batches of n_batch, some at the end in batches of n_few: each pass of
 * more threads than there are CPUs waits for the system to give every one of them its
 * turn. */
static const struct way {
    int n_threads, n_batch, n_few;
    uint32_t isa_mask;
} WAYS[] = {{1, 64, 7, ~0u},
            {2, 64, 64, ~0u},
            {3, 100, 100, ~0u},
            {4, 70, 7, ~0u},
            {6, 90, 9, ~0u},
            {1, 1, 1, ~0u},
            {2, 50, 50, 1u << KERN_ISA_scalar}};

enum { N_WAYS = sizeof WAYS / sizeof WAYS[0] };

/* How far the last logits are from those of the reference. */
static double run_model(char *image, size_t bytes, enum kern_kv kv_type,
                        const struct way *way, const int32_t *tokens,
                        const float *exact)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    const int n_few = way->n_few, first = N_TOKENS - 2 - 6 * n_few;

    p.image = image;
    p.image_bytes = bytes;
    p.isa_mask &= way->isa_mask;
    p.kv_type = kv_type;
    p.n_threads = way->n_threads;
    p.n_batch = way->n_batch;
    p.n_ctx = N_TOKENS;
    if (slm_open(&m, &p, &err) ||
        slm_eval(m, tokens, (size_t)first, SLM_LOGITS_NONE, &err))
        fail_msg("%s", err.msg);
    for (int i = 0; i < 6; i++)
        if (slm_eval(m, tokens + first + i * n_few, (size_t)n_few, SLM_LOGITS_NONE,
                     &err))
            fail_msg("%s", err.msg);
    if (slm_eval(m, tokens + N_TOKENS - 2, 1, SLM_LOGITS_NONE, &err) ||
        slm_eval(m, tokens + N_TOKENS - 1, 1, SLM_LOGITS_LAST, &err))
        fail_msg("%s", err.msg);
    const double e = nmse(slm_logits(m, 0), exact, (size_t)slm_info(m)->n_vocab);
    slm_close(m);
    return e;
}

struct cache {
    enum kern_kv type;
    double bound;
};

/* All tokens but two in batches, the last of them in smaller ones, then two one by one,
 * with each number of threads; every way must come within a cache's bound of the
 * reference's last logits. With sanitizers every cache is met by half of the ways,
 * which half changes from model to model and from window to window. */
static void check_model(const char *path, uint32_t window, const struct cache *caches,
                        size_t n_caches)
{
    static size_t n_models; /* so far */
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    int32_t tokens[N_TOKENS];
    uint64_t rng = 3;
    size_t bytes;
    char *image = with_window(path, window, &bytes);

    assert_int_equal(gguf_parse(&g, image, bytes, path, &err), ST_OK);
    const struct traits llama = {
        .arch = "llama", .neighbours = true, .window = (int)window};
    struct reference r = reference_open(g, &llama, N_TOKENS);
    float *exact = malloc((size_t)r.n_vocab * sizeof *exact);
    for (int i = 0; i < N_TOKENS; i++) {
        tokens[i] = (int32_t)(test_random(&rng) % (uint64_t)r.n_vocab);
        reference_step(&r, tokens[i], i == N_TOKENS - 1 ? exact : NULL);
    }
    const size_t turn = n_models + n_models / 2;
    n_models++;
    for (size_t i = 0; i < n_caches * N_WAYS; i++) {
        const struct cache *cache = &caches[i / N_WAYS];
        const struct way *way = &WAYS[i % N_WAYS];

        if (test_thin() > 1 && (i + turn) % 2)
            continue;
        const double e = run_model(image, bytes, cache->type, way, tokens, exact);
        if (!(e <= cache->bound))
            fail_msg("%s, window %u, %s cache, %d threads, batches of %d: NMSE %g > %g",
                     path, window, kern_format_info(kern_kv_format(cache->type))->name,
                     way->n_threads, way->n_batch, e, cache->bound);
    }
    free(exact);
    reference_close(&r);
    gguf_close(g);
    forget_tensors();
    free(image);
}

/* Float weights: only the cache differs. Four KV heads of 8 elements, which the
 * quantised types pad to a block. */
static void test_float_model(void **state)
{
    static const struct cache caches[] = {{KERN_KV_f16, 1e-6},
                                          {KERN_KV_bf16, 6e-5},
                                          {KERN_KV_q8_0, 6e-5},
                                          {KERN_KV_q4_0, 1e-2}};

    (void)state;
    check_model(MODELS "stories260K-f32.gguf", 0, caches, 4);
}

/* One KV head: its positions are split among the members. Bound as in
 * test_engine.c. */
static void test_one_kv_head(void **state)
{
    static const struct cache caches[] = {{KERN_KV_f16, 4e-4},
                                          {KERN_KV_bf16, 4e-4},
                                          {KERN_KV_q8_0, 4e-4},
                                          {KERN_KV_q4_0, 3e-3}};

    (void)state;
    check_model(MODELS "llama-mqa.gguf", 0, caches, 4);
}

/* Windows of one position, within a panel, around its border, of several blocks. */
static void test_sliding_window(void **state)
{
    static const uint32_t windows[] = {1, 7, 16, 17, 300};
    static const struct cache f32 = {KERN_KV_f16, 1e-6}, mqa = {KERN_KV_f16, 4e-4};
    const size_t step = test_thin() > 1 ? 2 : 1;

    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i += step) {
        check_model(MODELS "stories260K-f32.gguf", windows[i], &f32, 1);
        check_model(MODELS "llama-mqa.gguf", windows[i], &mqa, 1);
    }
}

/* Logits of n tokens in one pass; malloc'ed. The model is a file, or image[bytes]. */
static float *all_logits(const char *path, char *image, size_t bytes,
                         enum kern_kv kv_type, const int32_t *tokens, size_t n,
                         size_t *n_vocab)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    float *out;

    p.path = path;
    p.image = image;
    p.image_bytes = bytes;
    p.kv_type = kv_type;
    p.n_ctx = p.n_batch = (int)n;
    if (slm_open(&m, &p, &err) || slm_eval(m, tokens, n, SLM_LOGITS_ALL, &err))
        fail_msg("%s", err.msg);
    *n_vocab = (size_t)slm_info(m)->n_vocab;
    out = malloc(n * *n_vocab * sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++)
        memcpy(out + i * *n_vocab, slm_logits(m, i), *n_vocab * sizeof *out);
    slm_close(m);
    return out;
}

static double log_of_sum(const float *x, size_t n)
{
    double max = -INFINITY, sum = 0;

    for (size_t i = 0; i < n; i++)
        max = fmax(max, (double)x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - max);
    return max + log(sum);
}

/* Mean over positions of KL(p || q), in nats. */
static double divergence(const float *p, const float *q, size_t n, size_t n_vocab)
{
    double total = 0;

    for (size_t i = 0; i < n; i++, p += n_vocab, q += n_vocab) {
        const double lp = log_of_sum(p, n_vocab), lq = log_of_sum(q, n_vocab);

        for (size_t v = 0; v < n_vocab; v++)
            total += exp((double)p[v] - lp) * ((double)p[v] - lp - (double)q[v] + lq);
    }
    return total / (double)n;
}

/* What Q8_0 keys and values cost: predictions of a trained model against those with
 * F16, on a text of its own making. Heads of 8 elements are a hard case: four bits do
 * them harm, which is why Q4_0 is held to the equations only, above. */
static void test_q8_0_cache_loses_little(void **state)
{
    static const struct {
        enum kern_kv type;
        double bound;
    } cases[] = {{KERN_KV_f16, 1e-12}, {KERN_KV_bf16, 1.5e-4}, {KERN_KV_q8_0, 4e-3}};
    const char *path = MODELS "stories260K-f32.gguf";
    enum { N = 128 };
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    int32_t tokens[N] = {1}; /* <s> */
    size_t n_vocab;

    (void)state;
    p.path = path;
    p.n_ctx = N;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    for (int i = 0; i + 1 < N; i++) {
        assert_int_equal(slm_eval(m, tokens + i, 1, SLM_LOGITS_LAST, &err), ST_OK);
        const float *l = slm_logits(m, 0);

        for (int v = 1; v < slm_info(m)->n_vocab; v++)
            if (l[v] > l[tokens[i + 1]])
                tokens[i + 1] = v;
    }
    slm_close(m);
    float *exact = all_logits(path, NULL, 0, KERN_KV_f16, tokens, N, &n_vocab);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        float *got = all_logits(path, NULL, 0, cases[c].type, tokens, N, &n_vocab);
        const double kl = divergence(exact, got, N, n_vocab);

        if (!(fabs(kl) <= cases[c].bound))
            fail_msg("%s keys and values: mean divergence %.3g > %.3g",
                     kern_format_info(kern_kv_format(cases[c].type))->name, kl,
                     cases[c].bound);
        free(got);
    }
    free(exact);
}

/* Multiply row `row` of a matrix of halves. */
static void scale_row(char *image, const struct gguf *g, const char *name, int layer,
                      size_t row, float factor)
{
    const struct gguf_tensor *t;
    char full[64];

    snprintf(full, sizeof full, "blk.%d.%s.weight", layer, name);
    t = gguf_tensor_find(g, full);
    assert_non_null(t);
    for (size_t i = 0; i < t->ne[0]; i++) {
        char *at = image + t->offset + (row * t->ne[0] + i) * sizeof(uint16_t);
        uint16_t half;

        memcpy(&half, at, sizeof half);
        half = half_from_f32(half_to_f32(half) * factor);
        memcpy(at, &half, sizeof half);
    }
}

/* Larger models have channels of keys that are many times larger than the others of
 * their block. Here a pair in each head of a trained model is made so: keys are
 * multiplied by a factor, and queries divided by it, which is the same function. With
 * keys rounded as they are, Q8_0 costs 1.9e-4 nats and Q4_0 0.052. */
static void test_large_channels(void **state)
{
    static const struct {
        enum kern_kv type;
        double bound;
    } cases[] = {{KERN_KV_q8_0, 1.3e-4}, {KERN_KV_q4_0, 0.025}};
    enum { N = 256, HEAD = 64, N_HEADS = 4, N_KV_HEADS = 2, N_LAYERS = 4 };
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    size_t bytes, n_vocab;
    int32_t tokens[N] = {1};
    uint64_t rng = 9;
    char *image = with_window(MODELS "shakespeare3M-f16.gguf", 0, &bytes);

    (void)state;
    assert_int_equal(gguf_parse(&g, image, bytes, "image", &err), ST_OK);
    for (int i = 0; i < N_LAYERS; i++)
        for (size_t pair = 40; pair < 42; pair++) {
            for (size_t head = 0; head < N_KV_HEADS; head++)
                scale_row(image, g, "attn_k", i, head * HEAD + pair, 16.0f);
            for (size_t head = 0; head < N_HEADS; head++)
                scale_row(image, g, "attn_q", i, head * HEAD + pair, 1 / 16.0f);
        }
    gguf_close(g);
    for (int i = 1; i < N; i++)
        tokens[i] = 259 + (int32_t)(test_random(&rng) % 253);
    float *exact = all_logits(NULL, image, bytes, KERN_KV_f16, tokens, N, &n_vocab);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        float *got = all_logits(NULL, image, bytes, cases[c].type, tokens, N, &n_vocab);
        const double kl = divergence(exact, got, N, n_vocab);

        if (!(kl <= cases[c].bound))
            fail_msg("%s: mean divergence %.3g > %.3g",
                     kern_format_info(kern_kv_format(cases[c].type))->name, kl,
                     cases[c].bound);
        free(got);
    }
    free(exact);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_model),
        cmocka_unit_test(test_one_kv_head),
        cmocka_unit_test(test_sliding_window),
        cmocka_unit_test(test_q8_0_cache_loses_little),
        cmocka_unit_test(test_large_channels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

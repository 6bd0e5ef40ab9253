/* SPDX-License-Identifier: MIT
 *
 * test_activation_hook.c - a listener hears every input of every matrix, once, and
 * changes nothing
 */
#include "tests/support/test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"

#define N_TOKENS 24
#define MOST     64 /* names */

static const int32_t tokens[N_TOKENS] = {1, 5, 9,  2, 7, 3, 3, 8, 1, 4, 6, 2,
                                         9, 9, 10, 5, 4, 1, 2, 3, 7, 8, 6, 5};

struct heard {
    char name[64];
    size_t n_slices, n;
    double rows[16]; /* by slice */
    double sum, square;
};

struct ear {
    pthread_mutex_t lock;
    struct heard heard[MOST];
    int n;
};

static void listen_to(void *arg, const char *name, size_t n_slices, size_t slice,
                      const float *x, size_t n)
{
    struct ear *ear = arg;
    int i = 0;

    pthread_mutex_lock(&ear->lock);
    while (i < ear->n && strcmp(ear->heard[i].name, name))
        i++;
    struct heard *h = &ear->heard[i];

    if (i == ear->n && ear->n++ < MOST)
        snprintf(h->name, sizeof h->name, "%s", name);
    h->n_slices = n_slices;
    h->n = n;
    h->rows[slice]++;
    for (size_t k = 0; k < n; k++) {
        h->sum += (double)x[k] * (double)(k % 7 + 1);
        h->square += (double)x[k] * (double)x[k];
    }
    pthread_mutex_unlock(&ear->lock);
}

static struct ear *ear_new(void)
{
    struct ear *ear = calloc(1, sizeof *ear);

    assert_non_null(ear);
    pthread_mutex_init(&ear->lock, NULL);
    return ear;
}

static const struct heard *hear(const struct ear *ear, const char *name)
{
    for (int i = 0; i < ear->n; i++)
        if (!strcmp(ear->heard[i].name, name))
            return &ear->heard[i];
    fail_msg("nothing was heard of %s", name);
    return NULL;
}

/* Evaluate all tokens, `batch` at a time, with or without a listener; logits of the
 * last. */
static void run(const char *path, int n_threads, size_t batch, struct ear *ear,
                float *logits, size_t n_logits)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;

    p.path = path;
    p.n_threads = n_threads;
    p.n_ctx = N_TOKENS;
    if (slm_open(&m, &p, &err))
        fail_msg("%s", err.msg);
    if (ear)
        slm_set_activation_hook(m, listen_to, ear);
    for (size_t i = 0; i < N_TOKENS; i += batch)
        if (slm_eval(m, tokens + i, batch, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
    assert_true(n_logits <= (size_t)slm_info(m)->n_vocab);
    memcpy(logits, slm_logits(m, 0), n_logits * sizeof *logits);
    slm_set_activation_hook(m, NULL, NULL);
    slm_close(m);
}

static void every_matrix_hears_every_token_once(void **state)
{
    static const char *const parts[] = {"attn_q",   "attn_k", "attn_v",  "attn_output",
                                        "ffn_gate", "ffn_up", "ffn_down"};
    const char *path = TEST_DATA "models/llama.gguf";
    float quiet[32], loud[32];
    struct ear *ear = ear_new();
    struct gguf *g;
    struct err err = ERR_INIT;
    uint64_t n_layers = 0;

    (void)state;
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_true(gguf_get_u64(g, "llama.block_count", &n_layers));
    run(path, 3, N_TOKENS, NULL, quiet, 32);
    run(path, 3, N_TOKENS, ear, loud, 32);
    assert_memory_equal(quiet, loud, sizeof quiet);
    for (uint64_t l = 0; l < n_layers; l++)
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            char name[64];

            snprintf(name, sizeof name, "blk.%d.%s.weight", (int)l, parts[i]);
            const struct heard *h = hear(ear, name);

            assert_true(h->rows[0] == N_TOKENS);
            assert_int_equal(h->n_slices, 1);
            assert_int_equal(h->n, gguf_tensor_find(g, name)->ne[0]);
        }
    assert_true(hear(ear, "output.weight")->rows[0] == 1);
    assert_true(hear(ear, "blk.0.ffn_gate.weight")->sum ==
                hear(ear, "blk.0.ffn_up.weight")->sum);
    gguf_close(g);
    free(ear);
}

/* What attention's first matrices see is the embeddings, normalised. */
static void inputs_are_what_they_should_be(void **state)
{
    const char *path = TEST_DATA "models/stories260K-f32.gguf";
    struct ear *ear = ear_new();
    struct err err = ERR_INIT;
    float logits[8];
    double sum = 0, square = 0, eps = 0;
    struct gguf *g;

    (void)state;
    run(path, 2, N_TOKENS, ear, logits, 8);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_true(gguf_get_f64(g, "llama.attention.layer_norm_rms_epsilon", &eps));
    const struct gguf_tensor *embd = gguf_tensor_find(g, "token_embd.weight");
    const float *w = gguf_tensor_data(g, gguf_tensor_find(g, "blk.0.attn_norm.weight"));
    const size_t n = (size_t)embd->ne[0];

    for (int t = 0; t < N_TOKENS; t++) {
        const float *x =
            (const float *)gguf_tensor_data(g, embd) + (size_t)tokens[t] * n;
        double mean = 0;

        for (size_t i = 0; i < n; i++)
            mean += (double)x[i] * (double)x[i] / (double)n;
        for (size_t i = 0; i < n; i++) {
            const double v = (double)x[i] * (double)w[i] / sqrt(mean + eps);

            sum += v * (double)(i % 7 + 1);
            square += v * v;
        }
    }
    const struct heard *h = hear(ear, "blk.0.attn_k.weight");

    assert_true(fabs(h->square - square) <= 1e-4 * square);
    assert_true(fabs(h->sum - sum) <= 1e-3 * sqrt(square * (double)n));
    gguf_close(g);
    free(ear);
}

/* Each token takes a few experts; what is heard does not depend on the batch. */
static void experts_hear_their_tokens(void **state)
{
    const char *path = TEST_DATA "models/llama-moe.gguf";
    struct ear *one = ear_new(), *all = ear_new();
    float logits[8];
    struct gguf *g;
    struct err err = ERR_INIT;
    uint64_t n_experts = 0, n_used = 0;

    (void)state;
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_true(gguf_get_u64(g, "llama.expert_count", &n_experts));
    assert_true(gguf_get_u64(g, "llama.expert_used_count", &n_used));
    assert_true(n_experts <= 16);
    run(path, 2, 1, one, logits, 8);
    run(path, 3, N_TOKENS, all, logits, 8);
    for (int i = 0; i < 2; i++) {
        const char *name =
            i ? "blk.0.ffn_down_exps.weight" : "blk.0.ffn_up_exps.weight";
        const struct heard *a = hear(one, name), *b = hear(all, name);
        double rows = 0;

        assert_int_equal(b->n_slices, n_experts);
        assert_int_equal(b->n, gguf_tensor_find(g, name)->ne[0]);
        for (uint64_t e = 0; e < n_experts; e++) {
            rows += b->rows[e];
            assert_true(a->rows[e] == b->rows[e]);
        }
        assert_true(rows == (double)(N_TOKENS * n_used));
        assert_true(fabs(a->square - b->square) <= 0.02 * b->square);
    }
    gguf_close(g);
    free(one);
    free(all);
}

/* Half of the smallest normal number. */
static float half_of_min(void)
{
    volatile float x = 0x1p-126f;

    x = x * 0.5f;
    return x;
}

static void look_at_subnormals(void *arg, const char *name, size_t n_slices,
                               size_t slice, const float *x, size_t n)
{
    atomic_int *seen = arg;

    (void)name, (void)n_slices, (void)slice, (void)x, (void)n;
    atomic_fetch_or(seen, half_of_min() > 0 ? 2 : 1);
}

/* They are slow and change nothing. The caller's own arithmetic stays as it was. */
static void subnormals_are_zeros_within_a_pass(void **state)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;
    atomic_int seen = 0;

    (void)state;
    p.path = TEST_DATA "models/llama.gguf";
    p.n_threads = 3;
    p.n_ctx = N_TOKENS;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    slm_set_activation_hook(m, look_at_subnormals, &seen);
    assert_int_equal(slm_eval(m, tokens, N_TOKENS, SLM_LOGITS_LAST, &err), ST_OK);
    assert_true(half_of_min() > 0);
    assert_int_equal(seen, 1);
    slm_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subnormals_are_zeros_within_a_pass),
        cmocka_unit_test(every_matrix_hears_every_token_once),
        cmocka_unit_test(inputs_are_what_they_should_be),
        cmocka_unit_test(experts_hear_their_tokens),
    };

    return cmocka_run_group_tests_name("activation hook", tests, NULL, NULL);
}

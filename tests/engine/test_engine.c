/* SPDX-License-Identifier: MIT
 *
 * test_engine.c - the public API on tiny models with known logits
 */
#include <math.h>

#include "tests/support/golden.h"
#include "tests/support/nmse.h"

static struct slm *open_threads(const char *name, int n_threads, int n_threads_prefill,
                                int n_ctx, int n_batch)
{
    struct slm_params p = slm_params_default();

    p.n_threads = n_threads;
    p.n_threads_prefill = n_threads_prefill;
    p.n_ctx = n_ctx;
    p.n_batch = n_batch;
    return golden_open(name, p);
}

static struct slm *open_model(const char *name, int n_threads, int n_ctx, int n_batch)
{
    return open_threads(name, n_threads, 0, n_ctx, n_batch);
}

static void eval(struct slm *m, const int32_t *tokens, size_t n, enum slm_logits which)
{
    struct err err = ERR_INIT;

    if (slm_eval(m, tokens, n, which, &err))
        fail_msg("%s", err.msg);
}

/* Logits of all tokens, evaluated step at a time, to out[n][n_vocab]. */
static void eval_all(struct slm *m, const int32_t *tokens, size_t n, size_t step,
                     float *out)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;

    for (size_t done = 0; done < n; done += step) {
        const size_t batch = n - done < step ? n - done : step;

        eval(m, tokens + done, batch, SLM_LOGITS_ALL);
        for (size_t i = 0; i < batch; i++)
            memcpy(out + (done + i) * n_vocab, slm_logits(m, i), n_vocab * sizeof *out);
    }
}

/* ---- values ---------------------------------------------------------------------- */

static void test_golden_logits(void **state)
{
    static const struct {
        int n_threads;
        size_t step;
    } ways[] = {{1, 64}, {1, 1}, {2, 64}, {2, 1}, {3, 7}, {5, 1}};
    static float logits[GOLDEN_TOKENS * GOLDEN_VOCAB];

    (void)state;
    for (size_t g = 0; g < N_GOLDEN_LLAMAS; g++) {
        const struct golden *golden = &golden_llamas[g];
        float *exact = golden_logits(golden->name);

        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            struct slm *m =
                open_model(golden->name, ways[w].n_threads, GOLDEN_TOKENS, 0);

            eval_all(m, golden_tokens, GOLDEN_TOKENS, ways[w].step, logits);
            const double e = nmse(logits, exact, GOLDEN_TOKENS * GOLDEN_VOCAB);
            if (!(e <= golden->bound))
                fail_msg("%s, %d threads, %zu at a time: NMSE %g > %g", golden->name,
                         ways[w].n_threads, ways[w].step, e, golden->bound);
            slm_close(m);
        }
        free(exact);
    }
}

/* Whichever levels multiply, in decoding and in prefill. */
static void test_golden_at_every_level(void **state)
{
    static float logits[GOLDEN_TOKENS * GOLDEN_VOCAB];
    const struct golden *golden = &golden_llamas[N_GOLDEN_LLAMAS - 1]; /* Q4_K_M */
    struct slm *m = open_model(golden->name, 2, GOLDEN_TOKENS, 0);
    struct slm_tuning tuning = slm_tuning_default();
    struct err err = ERR_INIT;
    float *exact = golden_logits(golden->name);

    (void)state;
    for (int i = 0; i < KERN_N_ISA; i++) {
        if (!(isa_usable() >> i & 1))
            continue;
        for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
            tuning.isa_mask[fmt] = (2u << i) - 1;
            tuning.isa_mask_prefill[fmt] = (2u << (i + 2) % KERN_N_ISA) - 1;
        }
        if (slm_tune(m, 2, 2, &tuning, &err))
            fail_msg("%s", err.msg);
        for (size_t step = 1; step <= GOLDEN_TOKENS; step += GOLDEN_TOKENS - 1) {
            slm_truncate(m, 0);
            eval_all(m, golden_tokens, GOLDEN_TOKENS, step, logits);
            const double e = nmse(logits, exact, GOLDEN_TOKENS * GOLDEN_VOCAB);
            if (!(e <= golden->bound))
                fail_msg("%s, %zu at a time: NMSE %g > %g", isa_name(i), step, e,
                         golden->bound);
        }
    }
    free(exact);
    slm_close(m);
}

/* LAST gives the last row of ALL, also when the prompt takes several batches. */
static void test_last_is_last_of_all(void **state)
{
    static float all[GOLDEN_TOKENS * GOLDEN_VOCAB];
    struct slm *m = open_model("llama", 2, 64, 16);

    (void)state;
    eval_all(m, golden_tokens, GOLDEN_TOKENS, 16, all);
    slm_truncate(m, 0);
    eval(m, golden_tokens, GOLDEN_TOKENS, SLM_LOGITS_LAST);
    assert_int_equal(slm_n_past(m), GOLDEN_TOKENS);
    assert_true(nmse(slm_logits(m, 0), all + (GOLDEN_TOKENS - 1) * GOLDEN_VOCAB,
                     GOLDEN_VOCAB) < 1e-6);
    slm_close(m);
}

/* What was forgotten leaves no trace. */
static void test_truncate(void **state)
{
    static float once[20 * GOLDEN_VOCAB], again[20 * GOLDEN_VOCAB];
    struct slm *m = open_model("llama-mqa", 2, 64, 0);

    (void)state;
    eval(m, golden_tokens, 10, SLM_LOGITS_NONE);
    eval_all(m, golden_tokens + 10, 20, 5, once);
    slm_truncate(m, 10);
    assert_int_equal(slm_n_past(m), 10);
    eval(m, golden_tokens + 30, 10, SLM_LOGITS_NONE);
    slm_truncate(m, 10);
    eval_all(m, golden_tokens + 10, 20, 5, again);
    assert_memory_equal(once, again, sizeof once);
    slm_close(m);
}

static void test_fill_synthetic(void **state)
{
    struct err err = ERR_INIT;
    float first[GOLDEN_VOCAB];
    struct slm *m = open_model("llama", 2, 700, 0);

    (void)state;
    eval(m, golden_tokens, 3, SLM_LOGITS_NONE);
    assert_int_equal(slm_fill_synthetic(m, 600, 9, &err), ST_OK);
    assert_int_equal(slm_n_past(m), 600);
    eval(m, golden_tokens, 1, SLM_LOGITS_LAST);
    memcpy(first, slm_logits(m, 0), sizeof first);
    for (int i = 0; i < GOLDEN_VOCAB; i++)
        assert_true(isfinite(first[i]));

    slm_truncate(m, 3);
    assert_int_equal(slm_fill_synthetic(m, 600, 9, &err), ST_OK);
    eval(m, golden_tokens, 1, SLM_LOGITS_LAST);
    assert_memory_equal(first, slm_logits(m, 0), sizeof first);

    slm_truncate(m, 3);
    assert_int_equal(slm_fill_synthetic(m, 600, 10, &err), ST_OK);
    eval(m, golden_tokens, 1, SLM_LOGITS_LAST);
    assert_memory_not_equal(first, slm_logits(m, 0), sizeof first);

    assert_int_equal(slm_fill_synthetic(m, 701, 9, &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(slm_fill_synthetic(m, 600, 9, &err), ST_USAGE);
    assert_int_equal(slm_n_past(m), 601);
    slm_close(m);
}

/* Prefill, decode and filling each run on their own number of threads, and what is
 * computed does not depend on it: the context is deep enough for heads to be split
 * into as many parts as decode has threads. */
static void test_two_thread_counts(void **state)
{
    static const int counts[][2] = {{1, 1}, {1, 4}, {4, 1}, {2, 3}, {3, 2}, {5, 0}};
    float first[GOLDEN_VOCAB];

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const int decode = counts[i][0];
        const int prefill = counts[i][1] ? counts[i][1] : decode;
        struct slm *m = open_threads("llama-mqa", decode, counts[i][1], 2000, 8);
        struct err err = ERR_INIT;

        assert_int_equal(thread_pool_size(slm_thread_pool(m)),
                         decode > prefill ? decode : prefill);
        assert_int_equal(slm_fill_synthetic(m, 1800, 3, &err), ST_OK);
        eval(m, golden_tokens, 20, SLM_LOGITS_NONE);
        assert_int_equal(thread_pool_size(slm_thread_pool(m)), prefill);
        eval(m, golden_tokens + 20, 1, SLM_LOGITS_LAST);
        assert_int_equal(thread_pool_size(slm_thread_pool(m)), decode);
        eval(m, golden_tokens + 21, 16, SLM_LOGITS_NONE);
        assert_int_equal(thread_pool_size(slm_thread_pool(m)), prefill);
        eval(m, golden_tokens + 37, 1, SLM_LOGITS_LAST);
        if (i == 0)
            memcpy(first, slm_logits(m, 0), sizeof first);
        else
            assert_true(nmse(slm_logits(m, 0), first, GOLDEN_VOCAB) < 1e-6);
        slm_close(m);
    }
}

/* ---- sizes ----------------------------------------------------------------------- */

/* Whether the build has products by tiles and this machine can run them. */
static bool has_tiles(void)
{
    size_t n;
    const struct kern_row *rows = kern_rows(&n);

    for (size_t i = 0; i < n; i++)
        if (rows[i].op == KERN_OP_gemm_x16 && rows[i].isa == KERN_ISA_amx_int8)
            return isa_usable() >> KERN_ISA_amx_int8 & 1;
    return false;
}

/* From some number of tokens on, which is measured, if at all. */
static void test_tiles_are_taken_where_there_are(void **state)
{
    struct slm *m = open_model("Q4_K_M", 1, 64, 0);
    bool takes = false;

    (void)state;
    for (size_t n = 1; n <= 512; n++) {
        assert_true(slm_takes_tiles(m, n) || !takes);
        takes = slm_takes_tiles(m, n);
        assert_true(!takes || (n > 1 && has_tiles()));
    }
    slm_close(m);
}

static void test_plan_is_what_is_opened(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDEN_LLAMAS; i++) {
        struct slm *m = open_model(golden_llamas[i].name, 3, 200, 32);
        const struct slm_info *info = slm_info(m);
        struct slm_params params = slm_params_default();
        struct slm_info plan;
        struct err err = ERR_INIT;

        memset(&plan, 0, sizeof plan);
        params.n_ctx = 200;
        params.n_batch = 32;
        params.n_threads = 3;
        assert_int_equal(slm_plan(&plan, slm_gguf(m), &params, &err), ST_OK);
        assert_string_equal(plan.arch, "llama");
        assert_string_equal(plan.name, "tiny-llama");
        assert_string_equal(plan.quant, i < 3 ? "Q8_0" : "Q4_K_M");
        assert_int_equal(plan.n_ctx, 200);
        assert_int_equal(plan.n_batch, 32);
        assert_int_equal(plan.n_vocab, GOLDEN_VOCAB);
        assert_true(plan.scratch_bytes == info->scratch_bytes &&
                    plan.scratch_bytes > 0);
        assert_int_equal(plan.n_logits, 32);
        params.n_logits = 2;
        params.n_threads = 3;
        assert_int_equal(slm_plan(&plan, slm_gguf(m), &params, &err), ST_OK);
        assert_true(plan.scratch_bytes ==
                    info->scratch_bytes - 30 * 4 * ((GOLDEN_VOCAB + 15) / 16 * 16));
        assert_true(plan.kv_bytes == info->kv_bytes);
        assert_true(plan.kv_bytes == 208 * plan.kv_pos_bytes); /* whole panels */
        assert_true(plan.weight_bytes == info->weight_bytes);
        assert_true(plan.weight_token_bytes == info->weight_token_bytes);
        assert_true(slm_bytes_per_token(&plan, 7) ==
                    plan.weight_token_bytes + 7 * plan.kv_pos_bytes);
        slm_close(m);
    }
}

/* Bytes per token by hand: Q8_0 has 34 bytes for 32 weights. */
static void test_bytes_per_token(void **state)
{
    const uint64_t attention = (128 * 128 * 2 + 128 * 64 * 2) / 32 * 34;
    const uint64_t ffn = 3 * 128 * 256 / 32 * 34;
    const uint64_t output = 320 * 128 / 32 * 34, row = 128 / 32 * 34;
    const uint64_t norms = 5 * 128 * 4;
    struct slm *dense = open_model("llama", 1, 16, 0);
    struct slm *moe = open_model("llama-moe", 1, 16, 0);

    (void)state;
    assert_true(slm_info(dense)->weight_token_bytes ==
                2 * (attention + ffn) + output + row + norms);
    /* two experts of four, and the router's four rows of 128 floats */
    assert_true(slm_info(moe)->weight_token_bytes ==
                2 * (attention + 2 * ffn + 4 * 128 * 4) + output + row + norms);
    assert_true(slm_info(dense)->kv_pos_bytes == 2 * 2 * 2 * 2 * 32);
    assert_true(slm_info(dense)->weight_bytes ==
                2 * (attention + ffn) + 2 * output + norms);
    slm_close(dense);
    slm_close(moe);
}

/* Multiply-adds by hand, and bytes of passes: a token takes two experts of four, two
 * tokens three, and many take all. */
static void test_experts_are_counted(void **state)
{
    const uint64_t attention = 128 * 128 * 2 + 128 * 64 * 2, ffn = 3 * 128 * 256;
    const uint64_t router = 4 * 128, output = 320 * 128;
    struct slm *dense = open_model("llama", 1, 16, 0);
    struct slm *moe = open_model("llama-moe", 1, 16, 0);
    const struct slm_info *d = slm_info(dense), *m = slm_info(moe);
    const double all = (double)m->weight_token_bytes, one = (double)m->expert_bytes;

    (void)state;
    assert_int_equal(d->weight_token_macs, 2 * (attention + ffn) + output);
    assert_int_equal(m->weight_token_macs, 2 * (attention + 2 * ffn + router) + output);
    assert_int_equal(m->output_macs, output);
    assert_int_equal(m->output_bytes, output / 32 * 34);
    assert_int_equal(m->expert_bytes, 2 * ffn / 32 * 34);
    assert_int_equal(d->expert_bytes, 0);
    assert_float_equal(slm_bytes_per_pass(m, 1), all, 1e-6);
    assert_float_equal(slm_bytes_per_pass(m, 2), all + one, 1e-6);
    assert_float_equal(slm_bytes_per_pass(m, 3), all + 1.5 * one, 1e-6);
    assert_float_equal(slm_bytes_per_pass(m, 512), all + 2 * one, 1e-6);
    assert_float_equal(slm_bytes_per_pass(d, 512), (double)d->weight_token_bytes, 1e-6);
    /* 2 + 2 + 1 tokens; only the last pass has logits */
    assert_float_equal(slm_bytes_per_prompt(m, 5, 2),
                       3 * all + 2 * one - 2 * (double)m->output_bytes, 1e-6);
    assert_float_equal(slm_bytes_per_prompt(d, 5, 8), (double)d->weight_token_bytes,
                       1e-6);
    slm_close(dense);
    slm_close(moe);
}

/* ---- the profile ----------------------------------------------------------------- */

/* What a profile counts is what the model has: every row of every matrix once per
 * pass and column, the keys and values of every position once. */
static void check_profile(const char *name, uint64_t matrix_bytes, int n_threads)
{
    const int32_t tokens[5] = {1, 2, 3, 4, 5};
    struct slm *m = open_model(name, n_threads, 16, 4);
    struct slm_profile *p = malloc(sizeof *p);
    uint64_t bytes = 0, macs = 0, kv = 0;
    struct err err = ERR_INIT;
    double ns = 0;

    assert_non_null(p);
    eval(m, tokens, 5, SLM_LOGITS_LAST);
    assert_int_equal(slm_profile_start(m, &err), ST_OK);
    slm_profile_read(m, p);
    assert_int_equal(p->n_passes, 0);
    assert_int_equal(p->n_rows, 0);
    eval(m, tokens, 1, SLM_LOGITS_LAST);
    eval(m, tokens, 1, SLM_LOGITS_LAST);
    slm_profile_read(m, p);
    assert_int_equal(p->n_passes, 2);
    for (size_t i = 0; i < p->n_rows; i++) {
        const struct slm_profile_row *r = &p->rows[i];

        assert_true(r->work_ns >= 0 && r->wait_ns >= 0);
        assert_true(i == 0 || r->op >= p->rows[i - 1].op);
        ns += r->work_ns + r->wait_ns;
        if (r->op == SLM_OP_ATTENTION)
            kv += r->bytes;
        else if (r->op != SLM_OP_EMBED) {
            bytes += r->bytes;
            macs += r->macs;
        }
    }
    assert_true(ns > 0);
    assert_int_equal(bytes, 2 * matrix_bytes);
    assert_int_equal(macs, 2 * slm_info(m)->weight_token_macs);
    /* positions 0..5, then 0..6 */
    assert_int_equal(kv, (6 + 7) * slm_info(m)->kv_pos_bytes);
    assert_int_equal(slm_profile_start(m, &err), ST_OK);
    slm_profile_read(m, p);
    assert_int_equal(p->n_rows, 0);
    free(p);
    slm_close(m);
}

static void test_profile(void **state)
{
    const uint64_t row = 128 / 32 * 34, norms = 5 * 128 * 4;

    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        static const char *const names[] = {"llama", "llama-moe"};

        for (int i = 0; i < 2; i++) {
            struct slm *m = open_model(names[i], 1, 16, 0);
            const uint64_t bytes = slm_info(m)->weight_token_bytes - row - norms;

            slm_close(m);
            check_profile(names[i], bytes, n_threads);
        }
    }
}

/* ---- refusals -------------------------------------------------------------------- */

static void test_eval_refuses(void **state)
{
    const int32_t outside[2] = {5, GOLDEN_VOCAB}, negative[1] = {-1};
    struct slm *m = open_model("llama", 1, 20, 8);
    struct err err = ERR_INIT;

    (void)state;
    eval(m, golden_tokens, 15, SLM_LOGITS_LAST);
    assert_int_equal(slm_eval(m, outside, 2, SLM_LOGITS_LAST, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "320"));
    err_clear(&err);
    assert_int_equal(slm_eval(m, negative, 1, SLM_LOGITS_LAST, &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(slm_eval(m, golden_tokens, 6, SLM_LOGITS_LAST, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "20"));
    err_clear(&err);
    assert_int_equal(slm_eval(m, golden_tokens, 0, SLM_LOGITS_LAST, &err), ST_USAGE);
    assert_int_equal(slm_n_past(m), 15);
    slm_truncate(m, 0);
    err_clear(&err);
    assert_int_equal(slm_eval(m, golden_tokens, 9, SLM_LOGITS_ALL, &err), ST_USAGE);
    eval(m, golden_tokens, 20, SLM_LOGITS_LAST);
    slm_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_logits),
        cmocka_unit_test(test_golden_at_every_level),
        cmocka_unit_test(test_last_is_last_of_all),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_fill_synthetic),
        cmocka_unit_test(test_two_thread_counts),
        cmocka_unit_test(test_plan_is_what_is_opened),
        cmocka_unit_test(test_bytes_per_token),
        cmocka_unit_test(test_experts_are_counted),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_tiles_are_taken_where_there_are),
        cmocka_unit_test(test_eval_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

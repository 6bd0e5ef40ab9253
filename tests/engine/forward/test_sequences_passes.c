/* SPDX-License-Identifier: MIT
 *
 * test_sequences_passes.c - passes of several sequences that are as long, as wide or as
 * deep as a pass may be
 */
#include "tests/engine/forward/sequences.h"

/* Positions of a few deep sequences are split among the threads as long as these have
 * room for the parts; of as many sequences as threads they are not. */
static void few_sequences_of_many_threads(void **state)
{
    enum { N = 600 };
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 7);
    struct err err = ERR_INIT;
    int32_t tokens[N], next[N_SEQS];
    struct slm *m, *alone;

    (void)state;
    for (int i = 0; i < N; i++)
        tokens[i] = i * 7 % N_VOCAB;
    p.n_sequences = N_SEQS;
    m = open_model(&p);
    p.n_sequences = p.n_threads = 1;
    alone = open_model(&p);
    assert_int_equal(slm_eval(m, tokens, N, SLM_LOGITS_NONE, &err), ST_OK);
    assert_int_equal(slm_eval(alone, tokens, N, SLM_LOGITS_NONE, &err), ST_OK);
    for (int n = 1; n <= N_SEQS; n++) {
        struct slm_part parts[N_SEQS];

        for (int i = 0; i < n; i++) {
            next[i] = i * 31 + n;
            if (i > 0)
                slm_seq_fork(m, 0, i);
            parts[i] = (struct slm_part){i, &next[i], 1, SLM_LOGITS_LAST};
        }
        if (slm_batch(m, parts, n, &err))
            fail_msg("%s", err.msg);
        slm_seq_truncate(m, 0, N);
        for (int i = 0; i < n; i++) {
            double off;

            assert_int_equal(slm_eval(alone, &next[i], 1, SLM_LOGITS_LAST, &err),
                             ST_OK);
            slm_truncate(alone, N);
            off = nmse(slm_batch_logits(m, i, 0), slm_logits(alone, 0), N_VOCAB);
            if (!(off < BOUND))
                fail_msg("of %d sequences number %d is off by %g", n, i, off);
        }
    }
    slm_close(alone);
    slm_close(m);
    synth_image_drop(&x);
}

/* A sequence without end may have all tokens of a pass, which several contexts together
 * make longer than one. */
static void passes_longer_than_a_context(void **state)
{
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 2);
    struct err err = ERR_INIT;
    struct slm *m, *alone;
    int32_t tokens[3 * N_BATCH];

    (void)state;
    p.kv_window = 24;
    p.n_back = 1;
    alone = open_model(&p);
    p.n_sequences = 3;
    p.n_ctx = 32;
    m = open_model(&p);
    assert_int_equal(slm_info(m)->n_batch, N_BATCH);
    assert_int_equal(slm_info(m)->n_back, N_BATCH);
    for (int i = 0; i < 3 * N_BATCH; i++)
        tokens[i] = i * 7 % N_VOCAB;
    for (int at = 0; at < 3 * N_BATCH; at += N_BATCH) {
        const struct slm_part part = {1, tokens + at, N_BATCH, SLM_LOGITS_ALL};

        if (slm_batch(m, &part, 1, &err) ||
            slm_eval(alone, tokens + at, N_BATCH, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (int i = 0; i < N_BATCH; i++) {
            const double off = nmse(slm_batch_logits(m, 0, (size_t)i),
                                    slm_logits(alone, (size_t)i), N_VOCAB);

            if (!(off < BOUND))
                fail_msg("position %d is off by %g", at + i, off);
        }
    }
    slm_close(alone);
    slm_close(m);
    synth_image_drop(&x);
}

/* More sequences than a context has positions. */
static void short_sequences(void **state)
{
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 1);
    const int32_t tokens[N_SEQS] = {1, 2, 3, 4, 5};
    struct slm_part parts[N_SEQS];
    struct err err = ERR_INIT;
    struct slm *m, *alone;

    (void)state;
    p.n_ctx = 1;
    alone = open_model(&p);
    p.n_sequences = N_SEQS;
    m = open_model(&p);
    assert_int_equal(slm_info(m)->n_batch, N_SEQS);
    for (int i = 0; i < N_SEQS; i++)
        parts[i] = (struct slm_part){i, tokens + i, 1, SLM_LOGITS_LAST};
    if (slm_batch(m, parts, N_SEQS, &err))
        fail_msg("%s", err.msg);
    for (int i = 0; i < N_SEQS; i++) {
        slm_truncate(alone, 0);
        assert_int_equal(slm_eval(alone, tokens + i, 1, SLM_LOGITS_LAST, &err), ST_OK);
        assert_true(nmse(slm_batch_logits(m, i, 0), slm_logits(alone, 0), N_VOCAB) <
                    BOUND);
    }
    slm_close(alone);
    slm_close(m);
    synth_image_drop(&x);
}

static struct slm *open_packed(const struct synth_image *x, int n_sequences)
{
    struct slm_params p = params_of(x, 2);
    struct err err = ERR_INIT;
    struct slm *m;

    p.n_ctx = 40;
    p.n_sequences = n_sequences;
    p.image_rewrite = true;
    m = open_model(&p);
    if (weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Steps of 2 to 9 sequences, with matrices in panels, the tied output among them: the
 * kernels have a way of their own for most of these numbers of columns. */
static void every_number_of_columns(void **state)
{
    struct synth_shape shape = tiny;
    static const enum quantmix mixes[] = {QUANTMIX_Q4_K_M, QUANTMIX_Q8_0};
    enum { MOST = 9 };

    (void)state;
    shape.n_layers = 2;
    shape.n_vocab = N_VOCAB;
    shape.tied_output = true;
    for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++) {
        struct synth_image x = synth_image_make(&shape, mixes[k], SEED);
        struct synth_image y = synth_image_make(&shape, mixes[k], SEED);
        struct slm *m = open_packed(&x, MOST), *alone = open_packed(&y, 1);
        struct err err = ERR_INIT;
        uint64_t random = 3;

        for (int n = 2; n <= MOST; n++) {
            struct slm_part parts[MOST];
            int32_t tokens[MOST][3];

            for (int i = 0; i < n; i++) {
                const int n_past = 1 + (i + n) % 2;

                for (int j = 0; j < 3; j++)
                    tokens[i][j] = (int32_t)random_below(&random, N_VOCAB);
                slm_seq_truncate(m, i, 0);
                parts[0] = (struct slm_part){i, tokens[i], n_past, SLM_LOGITS_NONE};
                assert_int_equal(slm_batch(m, parts, 1, &err), ST_OK);
            }
            for (int i = 0; i < n; i++)
                parts[i] = (struct slm_part){i, tokens[i] + slm_seq_n_past(m, i), 1,
                                             SLM_LOGITS_LAST};
            assert_int_equal(slm_batch(m, parts, n, &err), ST_OK);
            for (int i = 0; i < n; i++) {
                double off;

                slm_truncate(alone, 0);
                for (int j = 0; j < slm_seq_n_past(m, i); j++)
                    assert_int_equal(
                        slm_eval(alone, tokens[i] + j, 1, SLM_LOGITS_LAST, &err),
                        ST_OK);
                off = nmse(slm_batch_logits(m, i, 0), slm_logits(alone, 0), N_VOCAB);
                if (!(off < QUANTISED_BOUND))
                    fail_msg("%s: of %d sequences number %d is off by %g",
                             quantmix_name(mixes[k]), n, i, off);
            }
        }
        slm_close(m);
        slm_close(alone);
        synth_image_drop(&x);
        synth_image_drop(&y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_sequences_of_many_threads),
        cmocka_unit_test(passes_longer_than_a_context),
        cmocka_unit_test(short_sequences),
        cmocka_unit_test(every_number_of_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

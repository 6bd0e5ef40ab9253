/* SPDX-License-Identifier: MIT
 *
 * test_checkpoints.c - what sequences begin with, of models whose layers have windows
 * or states: logits behind a checkpoint are those of a text that was computed as a
 * whole
 */
#include "tests/engine/forward/sequences.h"
#include "tests/support/models/kept_shapes.h"

enum { N_TEXTS = FEWER / 20, N_CHECKPOINTS = 6 };

static struct slm *open_kept(const struct synth_image *x, struct slm_params p,
                             int n_pages, int n_ctx)
{
    struct slm *m;

    (void)x;
    p.n_sequences = 2;
    p.n_checkpoints = N_CHECKPOINTS;
    p.n_pool = (size_t)n_pages * SLM_PAGE;
    p.n_ctx = n_ctx;
    m = open_model(&p);
    assert_true(slm_keeps_prefixes(m));
    assert_int_equal(slm_info(m)->n_checkpoints, N_CHECKPOINTS);
    return m;
}

static void eval(struct slm *m, int seq, const int32_t *tokens, int n,
                 enum slm_logits which)
{
    const struct slm_part part = {seq, tokens, n, which};
    struct err err = ERR_INIT;

    if (slm_seq_pages(m, seq, n))
        slm_prefix_forget(m, slm_seq_pages(m, seq, n));
    if (slm_batch(m, &part, 1, &err))
        fail_msg("%s", err.msg);
}

/* Passes behind a checkpoint give the bits that the sequence had that went on: between
 * two passes. */
static void check_bits(enum kept_shape kind)
{
    enum { N = 150, AT = 101 }; /* within a panel, and behind the window */
    const struct synth_shape shape = kept_shape(kind);
    struct synth_image x = synth_image_make(&shape, QUANTMIX_F32, SEED);
    struct slm *m = open_kept(&x, params_of(&x, 2), 12, N_CTX);
    static float want[N - AT][N_VOCAB];
    int32_t tokens[N];
    int n_common;

    for (int i = 0; i < N; i++)
        tokens[i] = i * 13 % N_VOCAB;
    eval(m, 0, tokens, 60, SLM_LOGITS_NONE);
    slm_prefix_mark(m, 0, AT, SLM_MARK_END);
    eval(m, 0, tokens + 60, AT - 60, SLM_LOGITS_NONE);
    assert_int_equal(slm_prefix_checkpoints(m), 1);
    eval(m, 0, tokens + AT, N - AT, SLM_LOGITS_ALL);
    for (int i = 0; i < N - AT; i++)
        memcpy(want[i], slm_batch_logits(m, 0, (size_t)i), sizeof want[i]);
    for (int again = 0; again < 2; again++) { /* the first one runs, and has ended */
        assert_int_equal(slm_prefix_look(m, tokens, N, &n_common), AT);
        assert_int_equal(slm_prefix_take(m, 1, tokens, N), AT);
        assert_int_equal(slm_seq_n_past(m, 1), AT);
        eval(m, 1, tokens + AT, N - AT, SLM_LOGITS_ALL);
        for (int i = 0; i < N - AT; i++)
            assert_memory_equal(slm_batch_logits(m, 0, (size_t)i), want[i],
                                sizeof want[i]);
        slm_seq_truncate(m, 1, 0);
        slm_seq_truncate(m, 0, 0);
    }
    slm_close(m);
    synth_image_drop(&x);
}

static void logits_are_the_same_bits(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KEPT_SHAPES; kind++)
        check_bits((enum kept_shape)kind);
}

/* One that begins as an earlier one does, up to a random place. */
static struct text next_text(struct world *w, const struct text *kept, int n_kept)
{
    struct text t = {.n = 2 + (int)below(w, 250)};
    int same = 0;

    if (n_kept && below(w, 6)) {
        t = kept[below(w, (uint64_t)n_kept)];
        same = below(w, 2) ? t.n : 1 + (int)below(w, (uint64_t)t.n);
        t.n = same + 1 + (int)below(w, 60);
        t.n = t.n < N_CTX ? t.n : N_CTX;
    }
    for (int i = same; i < t.n; i++)
        t.tokens[i] = (int32_t)below(w, N_VOCAB);
    return t;
}

/* The rest of a text in batches, with up to three marks in each; now and then tokens
 * are taken back, before a checkpoint or behind it. */
static void eval_rest(struct world *w, const struct text *t, int seq, int done)
{
    struct err err = ERR_INIT;

    while (done < t->n) {
        const int left = t->n - done;
        const int n = 1 + (int)below(w, (uint64_t)(left < N_BATCH ? left : N_BATCH));
        const struct slm_part part = {seq, t->tokens + done, n, SLM_LOGITS_LAST};
        const size_t wanted = slm_seq_pages(w->m, seq, n);

        for (int i = (int)below(w, SLM_MAX_MARKS + 1); i > 0; i--)
            slm_prefix_mark(w->m, seq, done + 1 + (int)below(w, (uint64_t)n),
                            (enum slm_mark)below(w, 3));
        if (wanted)
            slm_prefix_forget(w->m, wanted);
        if (slm_batch(w->m, &part, 1, &err))
            fail_msg("%s", err.msg);
        done += n;
        if (done == t->n) {
            check_alone(w, t, 1, &part, 0);
        } else if (below(w, 20) == 0) {
            done = (int)below(w, (uint64_t)done);
            slm_seq_truncate(w->m, seq, done);
        }
    }
}

static void check_random(enum kept_shape kind, int n_pages, int n_ctx, int n_texts)
{
    const struct synth_shape shape = kept_shape(kind);
    struct synth_image x = synth_image_make(&shape, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 2);
    struct world *w = calloc(1, sizeof *w);
    struct text *kept = calloc((size_t)n_texts, sizeof *kept);
    int n_taken = 0;

    assert_true(w && kept);
    w->random = SEED + (uint64_t)kind;
    w->bound = BOUND;
    open_alone(w, p);
    w->m = open_kept(&x, p, n_pages, n_ctx);
    for (int i = 0; i < n_texts; i++) {
        const struct text t = next_text(w, kept, i);
        const int seq = (int)below(w, 2), longest = longest_common(kept, i, &t);
        int n_common, known = slm_prefix_look(w->m, t.tokens, t.n, &n_common);
        size_t n_free, n_all, n_kept, n_own, before;

        assert_int_equal(slm_prefix_take(w->m, seq, t.tokens, t.n), known);
        assert_true(known <= n_common && n_common <= longest && known < t.n);
        n_taken += known > 0;
        eval_rest(w, &t, seq, known);
        before = allocated();
        slm_prefix_keep(w->m, seq, t.tokens);
        assert_int_equal(allocated(), before);
        slm_seq_truncate(w->m, seq, 0);
        kept[i] = t;
        slm_pages(w->m, &n_all, &n_free);
        slm_prefix_pages(w->m, &n_kept, &n_own);
        assert_int_equal(n_free + n_own, n_all);
        assert_int_equal(n_kept, n_own);
        assert_int_equal(n_all > 0, kept_has_pages(kind));
        assert_true(slm_prefix_checkpoints(w->m) <= N_CHECKPOINTS);
    }
    assert_true(n_taken > n_texts / 4);
    slm_close(w->m);
    close_alone(w);
    free(kept);
    free(w);
    synth_image_drop(&x);
}

/* With rings that forget, and with some that hold a whole context; with room for all
 * pages, and for a few. */
static void texts_continue_from_checkpoints(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KEPT_SHAPES; kind++) {
        check_random((enum kept_shape)kind, 60, N_CTX, N_TEXTS);
        check_random((enum kept_shape)kind, 4, N_CTX, N_TEXTS / 2);
    }
}

/* A pass that fails keeps none, and gives the places back. */
static void what_fails_is_not_kept(void **state)
{
    const struct synth_shape shape = kept_shape(KEPT_DELTA);
    struct synth_image x = synth_image_make(&shape, QUANTMIX_F32, SEED);
    struct slm *m = open_kept(&x, params_of(&x, 1), 12, N_CTX);
    struct err err = ERR_INIT;
    int32_t tokens[N_BATCH];
    const struct slm_part part = {0, tokens, N_BATCH, SLM_LOGITS_LAST};
    int n_common;

    (void)state;
    for (int i = 0; i < N_BATCH; i++)
        tokens[i] = i;
    tokens[N_BATCH - 1] = N_VOCAB;
    for (int i = 0; i < 2 * N_CHECKPOINTS; i++) {
        slm_prefix_mark(m, 0, 40, SLM_MARK_END);
        assert_int_equal(slm_batch(m, &part, 1, &err), ST_USAGE);
        err_clear(&err);
        slm_prefix_keep(m, 0, tokens);
        assert_int_equal(slm_prefix_checkpoints(m), 0);
    }
    tokens[N_BATCH - 1] = 0;
    assert_int_equal(slm_batch(m, &part, 1, &err), ST_OK);
    assert_int_equal(slm_prefix_checkpoints(m), 0); /* the mark is gone, too */
    slm_prefix_keep(m, 0, tokens);
    assert_int_equal(slm_prefix_look(m, tokens, N_BATCH + 1, &n_common), N_BATCH);
    slm_close(m);
    synth_image_drop(&x);
}

/* Memory is as planned, and none where it is for nothing. */
static void memory_is_planned(void **state)
{
    (void)state;
    for (int kind = -1; kind < N_KEPT_SHAPES; kind++) {
        const struct synth_shape shape =
            kind < 0 ? small_plain : kept_shape((enum kept_shape)kind);
        struct synth_image x = synth_image_make(&shape, QUANTMIX_F32, SEED);
        struct slm_params p = params_of(&x, 1);
        struct slm_info none, some, endless;
        struct err err = ERR_INIT;

        p.n_sequences = 2;
        assert_int_equal(slm_plan(&none, x.g, &p, &err), ST_OK);
        assert_int_equal(none.n_checkpoints, 0);
        p.n_checkpoints = N_CHECKPOINTS;
        assert_int_equal(slm_plan(&some, x.g, &p, &err), ST_OK);
        assert_int_equal(some.n_checkpoints, kind < 0 ? 0 : N_CHECKPOINTS);
        assert_int_equal(some.kv_bytes - none.kv_bytes,
                         (uint64_t)some.n_checkpoints * some.checkpoint_bytes);
        if (kind >= 0 && kept_has_states((enum kept_shape)kind))
            assert_true(some.checkpoint_bytes >= some.state_bytes &&
                        some.checkpoint_bytes < some.state_bytes + 64);
        else if (kind >= 0) /* a window and what its first and last panels have more */
            assert_int_equal(some.checkpoint_bytes,
                             (uint64_t)some.n_window_layers * SMALL_POS_BYTES *
                                 ((SMALL_WINDOW + 29) / 16 * 16));
        p.kv_window = 100;
        assert_int_equal(slm_plan(&endless, x.g, &p, &err), ST_OK);
        assert_int_equal(endless.n_checkpoints, 0);
        p.n_checkpoints = -1;
        assert_int_equal(slm_plan(&endless, x.g, &p, &err), ST_USAGE);
        synth_image_drop(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_the_same_bits),
        cmocka_unit_test(texts_continue_from_checkpoints),
        cmocka_unit_test(what_fails_is_not_kept),
        cmocka_unit_test(memory_is_planned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

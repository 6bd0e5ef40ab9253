/* SPDX-License-Identifier: MIT
 *
 * test_sequences_prefix.c - what sequences begin with is kept, found again as far as it
 * is the same, and forgotten where there is no room
 */
#include "tests/engine/forward/sequences.h"

enum { N_TEXTS = FEWER / 5 };

/* One that begins as an earlier one does, up to a random place. */
static struct text next_text(struct world *w, const struct text *kept, int n_kept)
{
    struct text t = {.n = 2 + (int)below(w, 600)};
    int same = 0;

    if (n_kept && below(w, 5)) {
        t = kept[below(w, (uint64_t)n_kept)];
        same = 1 + (int)below(w, (uint64_t)t.n);
        t.n = same + 1 + (int)below(w, 60);
        t.n = t.n < N_CTX ? t.n : N_CTX;
    }
    for (int i = same; i < t.n; i++)
        t.tokens[i] = (int32_t)below(w, N_VOCAB);
    return t;
}

/* The rest of a text, behind what was taken, in batches. */
static void eval_rest(struct world *w, const struct text *t, int seq, int done)
{
    struct err err = ERR_INIT;

    while (done < t->n) {
        const int left = t->n - done, n = left < N_BATCH ? left : N_BATCH;
        const struct slm_part part = {seq, t->tokens + done, n, SLM_LOGITS_LAST};

        if (slm_seq_pages(w->m, seq, n))
            slm_prefix_forget(w->m, slm_seq_pages(w->m, seq, n));
        if (slm_batch(w->m, &part, 1, &err))
            fail_msg("%s", err.msg);
        done += n;
        if (done == t->n)
            check_alone(w, t, 1, &part, 0);
    }
}

static void prefixes_are_kept(void **state)
{
    /* room for all of them, or for a few; of one sequence, too */
    static const struct {
        int n_sequences, n_pages, n_ctx;
    } models[] = {{2, 200, 100 * SLM_PAGE}, {2, 6, N_CTX}, {1, 3, N_CTX}};
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 2);
    struct world *w = calloc(1, sizeof *w);
    struct text *kept = calloc(N_TEXTS, sizeof *kept);
    int n_taken = 0;

    (void)state;
    assert_true(w && kept);
    w->bound = BOUND;
    open_alone(w, p);
    p.paged = true;
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        const int seq = models[k].n_sequences - 1;
        size_t n_pages, n_free, n_kept, n_own;

        p.n_sequences = models[k].n_sequences;
        p.n_pool = (size_t)models[k].n_pages * SLM_PAGE;
        p.n_ctx = models[k].n_ctx;
        w->m = open_model(&p);
        assert_true(slm_keeps_prefixes(w->m));
        assert_int_equal(slm_info(w->m)->n_seq_pages, k ? 3 : 100);
        for (int i = 0; i < N_TEXTS; i++) {
            const struct text t = next_text(w, kept, i);
            const int most = longest_common(kept, i, &t);
            const int taken = slm_prefix_take(w->m, seq, t.tokens, t.n);
            size_t before;

            assert_int_equal(taken, slm_seq_n_past(w->m, seq));
            if (k > 0)
                assert_true(taken <= most);
            else
                assert_int_equal(taken, most < t.n ? most : t.n - 1);
            n_taken += taken > 0;
            eval_rest(w, &t, seq, taken);
            before = allocated();
            slm_prefix_keep(w->m, seq, t.tokens);
            assert_int_equal(allocated(), before);
            slm_seq_truncate(w->m, seq, 0);
            kept[i] = t;
            slm_pages(w->m, &n_pages, &n_free);
            slm_prefix_pages(w->m, &n_kept, &n_own);
            assert_int_equal(n_free + n_own, n_pages);
            assert_int_equal(n_kept, n_own);
            assert_int_equal(n_pages, models[k].n_pages);
        }
        slm_prefix_forget(w->m, n_pages);
        slm_pages(w->m, &n_pages, &n_free);
        assert_int_equal(n_free, n_pages);
        slm_close(w->m);
    }
    assert_true(n_taken > N_TEXTS * 3 / 2);
    close_alone(w);
    free(kept);
    free(w);
    synth_image_drop(&x);
}

/* Of a text that is longer than the context one position is left, too. */
static void texts_longer_than_a_context(void **state)
{
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 1);
    struct err err = ERR_INIT;
    int32_t tokens[N_CTX + 100];
    struct slm *m;

    (void)state;
    for (int i = 0; i < N_CTX + 100; i++)
        tokens[i] = i * 7 % N_VOCAB;
    p.n_sequences = 2;
    m = open_model(&p);
    assert_int_equal(slm_eval(m, tokens, N_CTX, SLM_LOGITS_NONE, &err), ST_OK);
    slm_prefix_keep(m, 0, tokens);
    assert_int_equal(slm_prefix_take(m, 1, tokens, 1), 0);
    assert_int_equal(slm_prefix_take(m, 1, tokens, N_CTX + 100), N_CTX - 1);
    assert_int_equal(slm_seq_n_free(m, 1), 1);
    slm_close(m);
    synth_image_drop(&x);
}

/* Without pages nothing is kept, and no sequence takes any. */
static void check_keeps_none(const struct synth_shape *shape, int n_sequences,
                             bool paged, bool has_pages)
{
    struct synth_image x = synth_image_make(shape, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 1);
    const int32_t tokens[] = {1, 2, 3};
    struct err err = ERR_INIT;
    size_t n_pages, n_free;
    struct slm *m;

    p.n_sequences = n_sequences;
    p.paged = paged;
    m = open_model(&p);
    assert_false(slm_keeps_prefixes(m));
    assert_int_equal(slm_eval(m, tokens, 3, SLM_LOGITS_NONE, &err), ST_OK);
    slm_pages(m, &n_pages, &n_free);
    assert_int_equal(n_pages > 0, has_pages);
    assert_int_equal(slm_info(m)->n_seq_pages > 0, has_pages);
    assert_int_equal(n_pages - n_free, has_pages);
    slm_prefix_keep(m, 0, tokens);
    slm_seq_truncate(m, 0, 0);
    assert_int_equal(slm_prefix_take(m, n_sequences - 1, tokens, 3), 0);
    slm_close(m);
    synth_image_drop(&x);
}

static void some_keep_none(void **state)
{
    const struct synth_shape some_windows = small_windows();
    struct synth_shape windows = small_plain;

    (void)state;
    windows.window = SMALL_WINDOW; /* of all layers */
    check_keeps_none(&small_plain, 1, false, false);
    check_keeps_none(&some_windows, 2, false, true);
    check_keeps_none(&some_windows, 1, true, true);
    check_keeps_none(&windows, 2, false, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_kept),
        cmocka_unit_test(texts_longer_than_a_context),
        cmocka_unit_test(some_keep_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

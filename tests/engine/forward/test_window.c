/* SPDX-License-Identifier: MIT
 *
 * test_window.c - layers with a sliding window, whose cache is a ring, against the same
 * model with a cache of all positions
 *
 * Blocks of positions end where the ring does, so sums are rounded in another order; a
 * position that is not the right one changes logits by far more.
 */
#include "tests/support/nmse.h"
#include "tests/support/synth_image.h"

enum {
    WINDOW = SMALL_WINDOW,
    N_VOCAB = SMALL_VOCAB,
    N_CTX = 700,
    BATCH = 24,
    N_WHOLE = SMALL_WHOLE,
    N_WINDOWS = SMALL_WINDOWS,
    POS_BYTES = SMALL_POS_BYTES,
};

/* Of the NMSE: rounded to few bits, a number that is off by little may be off by a
 * step. */
static const double BOUND[KERN_N_KV] = {[KERN_KV_f16] = 1e-7,
                                        [KERN_KV_bf16] = 1e-4,
                                        [KERN_KV_q8_0] = 1e-4,
                                        [KERN_KV_q4_0] = 1e-2};

struct fixture {
    struct synth_image image;
    int32_t tokens[N_CTX];
};

static int setup(void **state)
{
    static struct fixture x;
    const struct synth_shape shape = small_windows();

    x.image = synth_image_make(&shape, QUANTMIX_F32, 5);
    for (int i = 0; i < N_CTX; i++)
        x.tokens[i] = (i * 37 + i / 11) % N_VOCAB;
    *state = &x;
    return 0;
}

static int teardown(void **state)
{
    synth_image_drop(&((struct fixture *)*state)->image);
    return 0;
}

static struct slm_params params_of(const struct fixture *x, enum kern_kv type,
                                   int n_threads, int n_back)
{
    struct slm_params p = synth_image_params(&x->image, n_threads, N_CTX, BATCH);

    p.kv_type = type;
    p.n_back = n_back;
    return p;
}

/* The same sequence with a ring and with all positions. */
struct pair {
    const struct fixture *x;
    struct slm *ring, *whole;
    int n_past;
};

static struct pair open_pair(const struct fixture *x, enum kern_kv type, int n_threads,
                             int n_back)
{
    const struct slm_params ring = params_of(x, type, n_threads, n_back);
    const struct slm_params whole = params_of(x, type, n_threads, N_CTX);
    struct pair p = {.x = x, .ring = open_model(&ring), .whole = open_model(&whole)};

    assert_true(slm_info(p.ring)->kv_bytes < slm_info(p.whole)->kv_bytes / 2);
    return p;
}

static void close_pair(struct pair *p)
{
    slm_close(p->ring);
    slm_close(p->whole);
}

/* Go on to position `end`, n tokens at a time, and compare all logits. */
static void go_on(struct pair *p, int end, int n)
{
    struct err err = ERR_INIT;

    for (; p->n_past < end; p->n_past += n) {
        n = n < end - p->n_past ? n : end - p->n_past;
        const int32_t *tokens = p->x->tokens + p->n_past;

        if (slm_eval(p->ring, tokens, (size_t)n, SLM_LOGITS_ALL, &err) ||
            slm_eval(p->whole, tokens, (size_t)n, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (int j = 0; j < n; j++) {
            const float *got = slm_logits(p->ring, (size_t)j);
            const float *want = slm_logits(p->whole, (size_t)j);
            const double off = nmse(got, want, N_VOCAB);

            if (!(off <= BOUND[slm_info(p->ring)->kv_type]))
                fail_msg("position %d, %d at a time: NMSE %g", p->n_past + j, n, off);
        }
    }
}

static void cut(struct pair *p, int n_past)
{
    slm_truncate(p->ring, n_past);
    slm_truncate(p->whole, n_past);
    p->n_past = n_past;
}

/* The ring has 80 positions: passes of every length cross its end, also those after a
 * panel that is half full, with one thread or several, which in decoding split the
 * positions of a head. */
static void test_passes(void **state)
{
    static const struct {
        enum kern_kv type;
        int n_threads;
    } ways[] = {{KERN_KV_f16, 1},  {KERN_KV_f16, 5},  {KERN_KV_bf16, 1},
                {KERN_KV_bf16, 3}, {KERN_KV_q8_0, 1}, {KERN_KV_q8_0, 3},
                {KERN_KV_q4_0, 1}, {KERN_KV_q4_0, 2}};

    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct pair p = open_pair(*state, ways[w].type, ways[w].n_threads, BATCH);

        go_on(&p, 170, BATCH);
        go_on(&p, 260, 1);
        go_on(&p, 377, 7);
        go_on(&p, 520, 23);
        go_on(&p, 610, 1);
        go_on(&p, N_CTX, 16);
        close_pair(&p);
    }
}

/* Cut back by as much as the ring has to spare, nothing runs again: wherever the end
 * lies in the ring, in turns, and without going on in between. */
static void test_cut_back(void **state)
{
    enum { BACK = 33 };
    struct err err = ERR_INIT;

    for (int type = 0; type < KERN_N_KV; type++) {
        struct pair p = open_pair(*state, (enum kern_kv)type, 2, BACK);
        size_t before;

        go_on(&p, 150, BATCH);
        assert_int_equal(slm_profile_start(p.ring, &err), ST_OK);
        for (int end = 151; end < 400; end += 13) {
            go_on(&p, end, end % 3 ? BATCH : 1);
            cut(&p, end - end % 7);
            cut(&p, end - BACK);
            before = n_passes(p.ring);
            go_on(&p, end - BACK + 1, 1);
            assert_int_equal(n_passes(p.ring), before + 1);
            go_on(&p, end - BACK + 20, BATCH);
            /* the ring has seen end */
            cut(&p, end - BACK);
            before = n_passes(p.ring);
            go_on(&p, end - BACK + 2, 2);
            assert_int_equal(n_passes(p.ring), before + 1);
        }
        close_pair(&p);
    }
}

/* Cut back by more, the tokens run again, once: the same ones, other ones behind them
 * than before, and as few as fit into the window. Those that fit into the next pass are
 * part of it. */
static void test_cut_back_further(void **state)
{
    static const int ends[] = {420, 300, 299, 81, 41, 40, 39, 5, 0};
    struct err err = ERR_INIT;

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct pair p = open_pair(*state, KERN_KV_f16, 2, BATCH);
        const size_t again =
            ends[i] < BATCH ? 0 : (size_t)(ends[i] + BATCH - 1) / BATCH;

        go_on(&p, 500, BATCH);
        cut(&p, 450);
        cut(&p, ends[i]);
        assert_int_equal(slm_profile_start(p.ring, &err), ST_OK);
        go_on(&p, ends[i] + 1, 1);
        assert_int_equal(n_passes(p.ring), again + 1);
        go_on(&p, ends[i] + 30, 1);
        assert_int_equal(n_passes(p.ring), again + 30);
        go_on(&p, N_CTX, BATCH);
        close_pair(&p);
    }
}

/* Logits of one token behind a filled cache, in one pass. */
static void after_fill(struct slm *m, const struct fixture *x, float *logits)
{
    struct err err = ERR_INIT;

    assert_int_equal(slm_profile_start(m, &err), ST_OK);
    assert_int_equal(slm_eval(m, x->tokens, 1, SLM_LOGITS_LAST, &err), ST_OK);
    assert_int_equal(n_passes(m), 1);
    memcpy(logits, slm_logits(m, 0), N_VOCAB * sizeof *logits);
}

/* A filled cache can be returned to, and what layers see at its end does not depend on
 * what was there before. Where the window before its beginning was lost, that is
 * filled, too. */
static void test_synthetic(void **state)
{
    const struct fixture *x = *state;
    const struct slm_params params = params_of(x, KERN_KV_f16, 2, BATCH);
    struct slm *m = open_model(&params);
    struct err err = ERR_INIT;
    float first[N_VOCAB], again[N_VOCAB];

    assert_int_equal(slm_fill_synthetic(m, 600, 9, &err), ST_OK);
    after_fill(m, x, first);
    assert_int_equal(slm_eval(m, x->tokens, BATCH - 1, SLM_LOGITS_NONE, &err), ST_OK);
    slm_truncate(m, 600);
    after_fill(m, x, again);
    assert_memory_equal(first, again, sizeof first);

    assert_int_equal(slm_eval(m, x->tokens, 90, SLM_LOGITS_NONE, &err), ST_OK);
    slm_truncate(m, 0);
    assert_int_equal(slm_fill_synthetic(m, 600, 9, &err), ST_OK);
    after_fill(m, x, again);
    assert_memory_equal(first, again, sizeof first);

    assert_int_equal(slm_eval(m, x->tokens, 90, SLM_LOGITS_NONE, &err), ST_OK);
    slm_truncate(m, 600);
    assert_int_equal(slm_fill_synthetic(m, 602, 9, &err), ST_OK);
    after_fill(m, x, again);
    slm_close(m);
}

/* Bytes by hand, planned and allocated. */
static void test_bytes(void **state)
{
    static const struct {
        int n_ctx, n_batch, n_back, n_kept; /* n_kept: of a layer with a window */
    } cases[] = {
        {N_CTX, BATCH, BATCH, 80},  {N_CTX, BATCH, 1, 80},  {N_CTX, 1, 1, 64},
        {N_CTX, 100, BATCH, 160},   {100, BATCH, 1, 80},    {80, BATCH, 1, 80},
        {79, BATCH, 1, 80},         {50, BATCH, 1, 64},     {N_CTX, BATCH, 200, 256},
        {N_CTX, BATCH, N_CTX, 704}, {N_CTX, BATCH, 0, 704}, {32768, 0, 0, 1088}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slm_params p = params_of(*state, KERN_KV_f16, 1, cases[i].n_back);
        const int padded = (cases[i].n_ctx + 15) / 16 * 16;
        const bool full = cases[i].n_kept < cases[i].n_ctx;
        struct err err = ERR_INIT;
        struct slm_info plan;

        p.n_ctx = cases[i].n_ctx;
        p.n_batch = cases[i].n_batch;
        struct slm *m = open_model(&p);
        const struct slm_info *info = slm_info(m);

        assert_int_equal(info->n_window, WINDOW);
        assert_int_equal(info->n_window_layers, N_WINDOWS);
        assert_int_equal(info->kv_bytes,
                         (N_WHOLE * padded + N_WINDOWS * cases[i].n_kept) * POS_BYTES);
        assert_int_equal(info->kv_pos_bytes, (N_WHOLE + N_WINDOWS) * POS_BYTES);
        assert_int_equal(info->kv_more_bytes,
                         (N_WHOLE + (full ? 0 : N_WINDOWS)) * POS_BYTES);
        assert_int_equal(slm_plan(&plan, slm_gguf(m), &p, &err), ST_OK);
        assert_int_equal(plan.kv_bytes, info->kv_bytes);
        assert_int_equal(plan.kv_more_bytes, info->kv_more_bytes);
        slm_close(m);
    }
}

static void test_refusal(void **state)
{
    struct slm_params p = params_of(*state, KERN_KV_f16, 1, -1);
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    assert_int_equal(slm_open(&m, &p, &err), ST_USAGE);
    assert_null(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_cut_back),
        cmocka_unit_test(test_cut_back_further),
        cmocka_unit_test(test_synthetic),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_refusal),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

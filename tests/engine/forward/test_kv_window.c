/* SPDX-License-Identifier: MIT
 *
 * test_kv_window.c - a KV cache of the first and the last positions, whose sequence is
 * longer than its context, against the equations in double precision
 *
 * The reference keeps all keys and hides those that are not to be seen; it rotates a
 * query a second time for the first positions. Lengths of passes are such that they
 * begin and end wherever a ring does.
 */
#include "tests/support/reference.h"
#include "tests/support/synth_image.h"

enum {
    N_VOCAB = SMALL_VOCAB,
    N_TOKENS = 330,
    N_CTX = 90, /* far less than the tokens */
    BATCH = 24,
    OWN = SMALL_WINDOW, /* of Gemma's layers */
};

/* Of the NMSE: rounded to few bits, a number that is off by little may be off by a
 * step. */
static const double BOUND[KERN_N_KV] = {[KERN_KV_f16] = 1e-6,
                                        [KERN_KV_bf16] = 1e-4,
                                        [KERN_KV_q8_0] = 1e-4,
                                        [KERN_KV_q4_0] = 1.5e-2};

static const struct family {
    bool windows; /* the shape: small_windows(), or small_plain */
    struct traits t;
} LLAMA = {false, {.arch = "llama", .neighbours = true}},
  GEMMA = {true,
           {.arch = "gemma3",
            .act = R_GELU,
            .scaled = true,
            .window = OWN,
            .period = 6,
            .window_base = 10000}};

enum {
    GEMMA_WHOLE = SMALL_WHOLE,
    GEMMA_WINDOWS = SMALL_WINDOWS,
    POS_BYTES = SMALL_POS_BYTES,
};

/* ---- models ---------------------------------------------------------------------- */

struct fixture {
    const struct family *family;
    int recent, sinks;
    struct synth_image image;
    int32_t tokens[N_TOKENS];
    float exact[N_TOKENS][N_VOCAB];
};

static struct fixture *open_fixture(const struct family *family, int recent, int sinks)
{
    struct fixture *x = calloc(1, sizeof *x);
    struct traits t = family->t;
    const struct synth_shape shape = family->windows ? small_windows() : small_plain;

    assert_non_null(x);
    x->family = family;
    x->recent = t.recent = recent;
    x->sinks = t.sinks = sinks;
    x->image = synth_image_make(&shape, QUANTMIX_F32, 5);
    struct reference r = reference_open(x->image.g, &t, N_TOKENS);
    for (int i = 0; i < N_TOKENS; i++) {
        x->tokens[i] = (i * 37 + i / 11) % N_VOCAB;
        reference_step(&r, x->tokens[i], x->exact[i]);
    }
    reference_close(&r);
    forget_tensors();
    return x;
}

static void close_fixture(struct fixture *x)
{
    synth_image_drop(&x->image);
    free(x);
}

static struct slm_params params_of(const struct fixture *x, int n_threads, int n_batch)
{
    struct slm_params p = synth_image_params(&x->image, n_threads, N_CTX, n_batch);

    p.n_back = n_batch;
    p.kv_window = x->recent;
    p.n_sinks = x->sinks;
    return p;
}

/* Go on to position `end`, n tokens at a time, and compare all logits. */
static void check_to(struct slm *m, const struct fixture *x, int end, int n)
{
    const double bound = BOUND[slm_info(m)->kv_type];
    struct err err = ERR_INIT;

    for (int at = slm_n_past(m); at < end; at += n) {
        const int now = n < end - at ? n : end - at;

        if (slm_eval(m, x->tokens + at, (size_t)now, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (int j = 0; j < now; j++) {
            const double e = nmse(slm_logits(m, (size_t)j), x->exact[at + j], N_VOCAB);

            if (!(e <= bound))
                fail_msg("%s, window %d, sinks %d: position %d, %d at a time: NMSE %g",
                         x->family->t.arch, x->recent, x->sinks, at + j, n, e);
        }
    }
}

/* ---- what is seen ---------------------------------------------------------------- */

/* Windows of one position to nearly all, within panels and over several, sinks from
 * none to more than a panel, passes longer than the window; and Gemma's layers, whose
 * own window is shorter or longer. */
static void test_seen(void **state)
{
    static const struct {
        const struct family *family;
        int recent, sinks;
    } cases[] = {{&LLAMA, 1, 0},    {&LLAMA, 1, 1},         {&LLAMA, 5, 4},
                 {&LLAMA, 16, 0},   {&LLAMA, 33, 4},        {&LLAMA, 40, 16},
                 {&LLAMA, 60, 17},  {&LLAMA, N_TOKENS, 40}, {&GEMMA, OWN - 15, 4},
                 {&GEMMA, OWN, 4},  {&GEMMA, OWN + 1, 4},   {&GEMMA, 70, 0},
                 {&GEMMA, 100, 20}, {&LLAMA, 310, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture *x =
            open_fixture(cases[i].family, cases[i].recent, cases[i].sinks);
        struct slm_params p = params_of(x, 1 + (int)i % 3, BATCH);
        struct slm *m = open_model(&p);

        check_to(m, x, 130, BATCH);
        check_to(m, x, 190, 1);
        check_to(m, x, 260, 7);
        check_to(m, x, 280, 1);
        check_to(m, x, N_TOKENS, 23);
        slm_close(m);
        m = open_model(&p);
        check_to(m, x, N_TOKENS, 1);
        slm_close(m);
        p.n_batch = p.n_back = 64;
        m = open_model(&p);
        check_to(m, x, N_TOKENS, 64);
        slm_close(m);
        close_fixture(x);
    }
}

/* Quantised keys and values; more threads than KV heads, which split a head. */
static void test_caches(void **state)
{
    struct fixture *x = open_fixture(&LLAMA, 48, 4);

    (void)state;
    for (int type = 0; type < KERN_N_KV; type++) {
        struct slm_params p = params_of(x, 2, 19);

        p.kv_type = (enum kern_kv)type;
        struct slm *m = open_model(&p);
        check_to(m, x, 200, 19);
        check_to(m, x, N_TOKENS, 1);
        slm_close(m);
    }
    close_fixture(x);
}

static void test_split_heads(void **state)
{
    struct fixture *x = open_fixture(&LLAMA, 300, 4);
    struct slm_params p = params_of(x, 5, BATCH);

    (void)state;
    struct slm *m = open_model(&p);
    check_to(m, x, 290, BATCH);
    check_to(m, x, N_TOKENS, 1);
    slm_close(m);
    close_fixture(x);

    x = open_fixture(&LLAMA, 256, 20);
    p = params_of(x, 3, BATCH);
    m = open_model(&p);
    check_to(m, x, 250, BATCH);
    check_to(m, x, N_TOKENS, 1);
    slm_close(m);
    close_fixture(x);
}

/* As long as the window holds all, logits are bit-equal to those without one. */
static void test_same_until_full(void **state)
{
    struct fixture *x = open_fixture(&LLAMA, 60, 4);
    struct slm_params p = params_of(x, 2, BATCH);
    struct slm *windowed = open_model(&p);
    struct err err = ERR_INIT;

    (void)state;
    p.kv_window = 0;
    struct slm *whole = open_model(&p);
    for (int at = 0; at < 64; at += 16)
        for (int i = 0; i < 2; i++) {
            struct slm *m = i ? whole : windowed;

            assert_int_equal(slm_eval(m, x->tokens + at, 16, SLM_LOGITS_LAST, &err),
                             ST_OK);
            if (i)
                assert_memory_equal(slm_logits(windowed, 0), slm_logits(whole, 0),
                                    N_VOCAB * sizeof(float));
        }
    slm_close(whole);
    slm_close(windowed);
    close_fixture(x);
}

/* ---- going back ------------------------------------------------------------------ */

/* Wherever the end lies in the ring: back by as much as it has to spare nothing runs
 * again, though the beginning is forgotten; and to nothing, which begins anew. */
static void test_cut_back(void **state)
{
    enum { BACK = 33 };
    static const struct family *const families[] = {&LLAMA, &GEMMA};
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture *x = open_fixture(families[i], 50, 4);
        struct slm_params p = params_of(x, 2, BATCH);
        size_t before;

        p.n_back = BACK;
        struct slm *m = open_model(&p);
        check_to(m, x, 150, BATCH);
        assert_true(slm_min_past(m) > 0);
        assert_int_equal(slm_profile_start(m, &err), ST_OK);
        for (int end = 151; end < 300; end += 5) {
            check_to(m, x, end, end % 3 ? BATCH : 1);
            assert_true(slm_min_past(m) <= end - BACK);
            slm_truncate(m, end - end % 7);
            slm_truncate(m, end - BACK);
            before = n_passes(m);
            check_to(m, x, end - BACK + 1, 1);
            assert_int_equal(n_passes(m), before + 1);
            check_to(m, x, end - BACK + 20, BATCH);
            slm_truncate(m, end - BACK); /* the ring has seen end */
            before = n_passes(m);
            check_to(m, x, end - BACK + 2, 2);
            assert_int_equal(n_passes(m), before + 1);
        }
        slm_truncate(m, 0);
        assert_int_equal(slm_min_past(m), 0);
        check_to(m, x, N_TOKENS, 11);
        slm_close(m);
        close_fixture(x);
    }
}

/* Further back, the tokens run again, while all of them are known; then there is a
 * least position. */
static void test_least_past(void **state)
{
    struct fixture *x = open_fixture(&LLAMA, 20, 4);
    struct slm_params p = params_of(x, 1, BATCH);
    struct err err = ERR_INIT;

    (void)state;
    p.n_back = BATCH;
    for (int end = 0; end <= N_CTX; end += 10) {
        struct slm *m = open_model(&p);

        check_to(m, x, N_CTX, BATCH);
        assert_int_equal(slm_min_past(m), 0);
        slm_truncate(m, end);
        assert_int_equal(slm_profile_start(m, &err), ST_OK);
        check_to(m, x, end + 1, 1);
        /* 64 positions are in the ring, 19 of them before the first one seen */
        assert_int_equal(n_passes(m),
                         end >= N_CTX - 64 + 19 ? 1 : (end + BATCH - 1) / BATCH + 1);
        check_to(m, x, N_TOKENS, BATCH);
        slm_close(m);
    }
    struct slm *m = open_model(&p);

    check_to(m, x, N_CTX + 1, BATCH);
    assert_int_equal(slm_min_past(m), N_CTX + 1 - 64 + 19);
    slm_truncate(m, slm_min_past(m));
    check_to(m, x, N_TOKENS, BATCH);
    slm_close(m);
    close_fixture(x);
}

/* A cache filled with random keys has a depth, and what is seen there does not depend
 * on what was there before. */
static void test_synthetic(void **state)
{
    struct fixture *x = open_fixture(&GEMMA, 50, 4);
    struct slm_params p = params_of(x, 2, BATCH);
    struct err err = ERR_INIT;
    float first[N_VOCAB];

    (void)state;
    p.n_ctx = 400;
    struct slm *m = open_model(&p);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(slm_fill_synthetic(m, 390, 9, &err), ST_OK);
        assert_int_equal(slm_eval(m, x->tokens, 1, SLM_LOGITS_LAST, &err), ST_OK);
        if (i)
            assert_memory_equal(slm_logits(m, 0), first, sizeof first);
        memcpy(first, slm_logits(m, 0), sizeof first);
        assert_int_equal(slm_eval(m, x->tokens, 200, SLM_LOGITS_NONE, &err), ST_OK);
        slm_truncate(m, 0);
    }
    assert_int_equal(slm_fill_synthetic(m, 401, 9, &err), ST_USAGE);
    slm_close(m);
    close_fixture(x);
}

/* ---- memory, and what is refused ------------------------------------------------- */

/* Bytes by hand, planned and allocated, whatever the context; and those of a token. */
static void test_bytes(void **state)
{
    static const struct {
        int recent, sinks, n_ctx, n_batch, n_back;
        int n_whole, n_kept, n_own; /* positions of layers without and with a window */
        int n_windows;              /* of these layers */
    } cases[] = {{50, 4, N_CTX, BATCH, BATCH, 112, 6, 80, GEMMA_WINDOWS},
                 {50, 4, 32768, BATCH, BATCH, 112, 6, 80, GEMMA_WINDOWS},
                 {50, 0, 32768, BATCH, BATCH, 96, 6, 80, GEMMA_WINDOWS},
                 {50, 17, 32768, BATCH, BATCH, 128, 6, 80, GEMMA_WINDOWS},
                 {OWN - 1, 4, 32768, BATCH, BATCH, 96, 6, 0, 0},
                 {1000, 4, 32768, BATCH, 0, 2064, 6, 1088, GEMMA_WINDOWS}};
    struct fixture *x = open_fixture(&GEMMA, 50, 4);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slm_params p = params_of(x, 1, cases[i].n_batch);
        const int n_whole = GEMMA_WHOLE + GEMMA_WINDOWS - cases[i].n_windows;
        const int seen = cases[i].recent + cases[i].sinks;
        struct err err = ERR_INIT;
        struct slm_info plan;

        p.n_ctx = cases[i].n_ctx;
        p.n_back = cases[i].n_back;
        p.kv_window = cases[i].recent;
        p.n_sinks = cases[i].sinks;
        struct slm *m = open_model(&p);
        const struct slm_info *info = slm_info(m);

        assert_int_equal(info->n_window_layers, cases[i].n_windows);
        assert_int_equal(info->kv_bytes, (n_whole * cases[i].n_whole +
                                          cases[i].n_windows * cases[i].n_own) *
                                             POS_BYTES);
        assert_int_equal(info->kv_more_bytes, 0);
        assert_int_equal(info->kv_window, cases[i].recent);
        assert_int_equal(info->n_sinks, cases[i].sinks);
        assert_int_equal(slm_n_free(m), SLM_MAX_POSITIONS);
        assert_int_equal(slm_plan(&plan, slm_gguf(m), &p, &err), ST_OK);
        assert_int_equal(plan.kv_bytes, info->kv_bytes);
        assert_int_equal(slm_bytes_per_token(info, 100000) -
                             slm_bytes_per_token(info, 0),
                         (n_whole * seen + cases[i].n_windows * OWN) * POS_BYTES);
        assert_int_equal(slm_bytes_per_token(info, 30) - slm_bytes_per_token(info, 0),
                         7 * 30 * POS_BYTES);
        slm_close(m);
    }
    close_fixture(x);
}

static void test_refusals(void **state)
{
    static const int refused[][2] = {
        {-1, 4}, {SLM_MAX_WINDOW + 1, 4}, {10, -1}, {10, SLM_MAX_WINDOW + 1}};
    struct fixture *x = open_fixture(&LLAMA, 50, 4);

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct slm_params p = params_of(x, 1, BATCH);
        struct err err = ERR_INIT;
        struct slm *m = NULL;

        p.kv_window = refused[i][0];
        p.n_sinks = refused[i][1];
        assert_int_equal(slm_open(&m, &p, &err), ST_USAGE);
        assert_non_null(strstr(err.msg, "KV cache of the first"));
        assert_null(m);
    }
    close_fixture(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seen),        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_split_heads), cmocka_unit_test(test_same_until_full),
        cmocka_unit_test(test_cut_back),    cmocka_unit_test(test_least_past),
        cmocka_unit_test(test_synthetic),   cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

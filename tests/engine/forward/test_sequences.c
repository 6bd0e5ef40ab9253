/* SPDX-License-Identifier: MIT
 *
 * test_sequences.c - several sequences in one model: every one of them is as it is
 * alone
 *
 * Random batches of prompts and single tokens, copies, cuts and ends, in caches with
 * fewer pages than all sequences would take, of models that keep all positions,
 * windows, or states. After each batch a model with a single sequence, one for each,
 * has computed the tokens of its part, from the first one on after cuts and forks. It
 * multiplies with other kernels than a batch, so logits differ in their last bits.
 */
#include "tests/engine/forward/sequences.h"

/* ---- models ---------------------------------------------------------------------- */

/* Linear attention in every other layer. */
static struct synth_shape small_states(void)
{
    struct synth_shape s = small_plain;

    snprintf(s.name, sizeof s.name, "states");
    snprintf(s.arch, sizeof s.arch, "qwen35");
    s.n_layers = 4;
    s.n_rot = 16;
    s.full_attention_interval = 2;
    s.n_delta_k_heads = 2;
    s.n_delta_v_heads = 4;
    s.delta_head_dim = 16;
    s.n_delta_conv = 4;
    return s;
}

static struct synth_shape small_experts(void)
{
    struct synth_shape s = small_plain;

    snprintf(s.name, sizeof s.name, "experts");
    snprintf(s.arch, sizeof s.arch, "qwen3moe");
    s.n_ff = 32;
    s.n_experts = 8;
    s.n_experts_used = 2;
    return s;
}

/* ---- operations ------------------------------------------------------------------ */

static void batch(struct world *w)
{
    struct slm_part parts[N_SEQS];
    struct err err = ERR_INIT;
    size_t n_pages, n_free, before;
    int n_parts = 0, n_tokens = 0;

    for (int seq = 0; seq < N_SEQS; seq++) {
        struct text *t = &w->text[seq];
        int n = below(w, 3) ? 1 : 1 + (int)below(w, 40);

        if (below(w, 3) == 0)
            continue;
        n = n < N_CTX - t->n ? n : N_CTX - t->n;
        n = n < N_BATCH - n_tokens ? n : N_BATCH - n_tokens;
        if (n == 0)
            continue;
        for (int i = 0; i < n; i++)
            t->tokens[t->n + i] = (int32_t)below(w, N_VOCAB);
        parts[n_parts++] = (struct slm_part){seq, t->tokens + t->n, n,
                                             (enum slm_logits)(1 + below(w, 2))};
        n_tokens += n;
    }
    if (n_parts == 0)
        return;
    slm_pages(w->m, &n_pages, &n_free);
    assert_true(n_free <= n_pages && n_pages == w->n_pages);
    if (slm_batch_pages(w->m, parts, n_parts) > n_free) {
        assert_int_equal(slm_batch(w->m, parts, n_parts, &err), ST_NO_MEMORY);
        assert_non_null(strstr(err.msg, "end a sequence"));
        w->n_refused++;
        return;
    }
    before = allocated();
    if (slm_batch(w->m, parts, n_parts, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(allocated(), before);
    w->n_batches++;
    for (int i = 0; i < n_parts; i++) {
        struct text *t = &w->text[parts[i].seq];

        t->n += parts[i].n;
        assert_int_equal(slm_seq_n_past(w->m, parts[i].seq), t->n);
        check_alone(w, t, parts[i].n, &parts[i], i);
    }
}

static void fork_one(struct world *w)
{
    const int from = (int)below(w, N_SEQS), to = (int)below(w, N_SEQS);

    if (from == to)
        return;
    slm_seq_fork(w->m, from, to);
    w->text[to] = w->text[from];
    w->n_forks++;
}

static void cut(struct world *w, int seq, int n_past)
{
    slm_seq_truncate(w->m, seq, n_past);
    w->text[seq].n = n_past;
    w->n_cuts++;
}

static void check_random_operations(struct synth_shape shape, int n_threads,
                                    int kv_type, int kv_window, int n)
{
    struct synth_image x = synth_image_make(&shape, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, n_threads);
    struct world *w = calloc(1, sizeof *w);
    size_t n_pages, n_free;

    assert_non_null(w);
    w->random = (uint64_t)n_threads;
    p.kv_type = (enum kern_kv)kv_type;
    p.kv_window = kv_window;
    if (kv_window)
        p.n_back = N_BATCH;
    w->bound = kern_kv_is_quantised(p.kv_type) ? QUANTISED_BOUND : BOUND;
    open_alone(w, p);
    p.n_sequences = N_SEQS;
    p.n_pool = (size_t)N_PAGES * SLM_PAGE;
    w->m = open_model(&p);
    slm_pages(w->m, &w->n_pages, &n_free);
    assert_int_equal(w->n_pages, N_PAGES);
    for (int i = 0; i < n; i++) {
        const int seq = (int)below(w, N_SEQS);
        const uint64_t what = below(w, 20);

        if (what == 0)
            cut(w, seq, 0);
        else if (what < 3)
            cut(w, seq, (int)below(w, (uint64_t)w->text[seq].n + 1));
        else if (what < 5)
            fork_one(w);
        else
            batch(w);
    }
    assert_true(w->n_batches > n / 5 && w->n_forks > 0 && w->n_cuts > 0);
    assert_true(w->n_refused > 0 || n < OPERATIONS);
    for (int seq = 0; seq < N_SEQS; seq++)
        cut(w, seq, 0);
    slm_pages(w->m, &n_pages, &n_free);
    assert_int_equal(n_free, n_pages);
    slm_close(w->m);
    close_alone(w);
    free(w);
    synth_image_drop(&x);
}

static void all_positions(void **state)
{
    (void)state;
    check_random_operations(small_plain, 2, KERN_KV_f16, 0, OPERATIONS);
}

/* Single tokens of few sequences are split among many threads. */
static void many_threads(void **state)
{
    (void)state;
    check_random_operations(small_plain, 7, KERN_KV_f16, 0, FEWER);
}

/* Panels of pairs, and of blocks with their scales. */
static void other_types_of_cache(void **state)
{
    (void)state;
    check_random_operations(small_plain, 1, KERN_KV_bf16, 0, FEWER / 2);
    check_random_operations(small_plain, 1, KERN_KV_q8_0, 0, FEWER / 2);
}

/* Rings of the last positions that go round in two pages, behind the first ones; of
 * blocks, and beside layers whose own windows are shorter. */
static void windows_of_the_cache(void **state)
{
    (void)state;
    check_random_operations(small_plain, 2, KERN_KV_f16, 300, FEWER / 2);
    check_random_operations(small_plain, 1, KERN_KV_q8_0, 300, FEWER / 4);
    check_random_operations(small_windows(), 2, KERN_KV_f16, 300, FEWER / 4);
}

static void windows(void **state)
{
    (void)state;
    check_random_operations(small_windows(), 2, KERN_KV_f16, 0, FEWER);
}

static void states(void **state)
{
    (void)state;
    check_random_operations(small_states(), 2, KERN_KV_f16, 0, FEWER);
}

static void experts(void **state)
{
    (void)state;
    check_random_operations(small_experts(), 2, KERN_KV_f16, 0, FEWER);
}

/* ---- room ------------------------------------------------------------------------ */

static void copies_take_no_room(void **state)
{
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 1);
    struct err err = ERR_INIT;
    int32_t tokens[600];
    size_t n_pages, n_free;
    struct slm *m;

    (void)state;
    for (int i = 0; i < 600; i++)
        tokens[i] = i * 7 % N_VOCAB;
    p.n_sequences = 3;
    p.n_pool = 5 * SLM_PAGE;
    m = open_model(&p);
    assert_int_equal(slm_eval(m, tokens, 600, SLM_LOGITS_NONE, &err), ST_OK);
    slm_seq_fork(m, 0, 1);
    slm_seq_fork(m, 1, 2);
    slm_pages(m, &n_pages, &n_free);
    assert_int_equal(n_pages, 5);
    assert_int_equal(n_free, 2);
    /* the last page of each but the last owner is copied when it is written */
    struct slm_part all[3];
    for (int i = 0; i < 3; i++)
        all[i] = (struct slm_part){i, tokens, 1, SLM_LOGITS_LAST};
    assert_int_equal(slm_batch_pages(m, all, 3), 2);
    assert_int_equal(slm_batch_pages(m, all, 2), 2);
    assert_int_equal(slm_seq_pages(m, 1, 1), 1);
    struct slm_part one = {1, tokens, 1, SLM_LOGITS_LAST};
    assert_int_equal(slm_batch(m, &one, 1, &err), ST_OK);
    one.seq = 2;
    assert_int_equal(slm_batch(m, &one, 1, &err), ST_OK);
    slm_pages(m, &n_pages, &n_free);
    assert_int_equal(n_free, 0);
    assert_int_equal(slm_seq_pages(m, 0, 1), 0);
    /* the first two pages are still everybody's */
    slm_seq_truncate(m, 0, 300);
    slm_pages(m, &n_pages, &n_free);
    assert_int_equal(n_free, 1);
    slm_close(m);
    synth_image_drop(&x);
}

static size_t free_pages(const struct slm *m)
{
    size_t n_pages, n_free;

    slm_pages(m, &n_pages, &n_free);
    return n_free;
}

/* What is said of the room before a batch is what the batch takes: of rings, which go
 * round in their pages, and where tokens run again in pages that were shared. */
static void rings_take_their_pages_once(void **state)
{
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 1);
    struct err err = ERR_INIT;
    int32_t tokens[N_CTX];
    struct slm *m;

    (void)state;
    for (int i = 0; i < N_CTX; i++)
        tokens[i] = i * 7 % N_VOCAB;
    p.kv_window = 300;
    p.n_back = N_BATCH; /* room for 400 positions, 16 of them in front of the ring */
    p.n_sequences = 2;
    p.n_pool = 4 * SLM_PAGE;
    m = open_model(&p);
    assert_int_equal(free_pages(m), 4);
    assert_int_equal(slm_info(m)->n_seq_pages, 2);
    assert_int_equal(slm_seq_pages(m, 0, 256), 1);
    assert_int_equal(slm_seq_pages(m, 0, 257), 2);
    assert_int_equal(slm_seq_pages(m, 0, 690), 2);
    assert_int_equal(slm_eval(m, tokens, 390, SLM_LOGITS_NONE, &err), ST_OK);
    slm_seq_fork(m, 0, 1);
    assert_int_equal(slm_seq_pages(m, 1, 10), 1);
    assert_int_equal(slm_seq_pages(m, 1, 30), 2); /* it goes on in the first page */
    slm_seq_truncate(m, 1, 0);
    assert_int_equal(slm_eval(m, tokens, 210, SLM_LOGITS_NONE, &err), ST_OK);
    slm_seq_fork(m, 0, 1);
    assert_int_equal(free_pages(m), 2);
    slm_seq_truncate(m, 1, 300); /* the ring has lost what it sees there */
    assert_int_equal(slm_seq_pages(m, 1, 1), 2);
    const struct slm_part one = {1, tokens, 1, SLM_LOGITS_LAST};
    if (slm_batch(m, &one, 1, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(free_pages(m), 0);
    slm_close(m);
    synth_image_drop(&x);
}

/* What a sequence is filled with is no other one's, also where both had a page. */
static void a_fill_is_one_sequence_s(void **state)
{
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 1);
    struct err err = ERR_INIT;
    int32_t tokens[300];
    float *before = malloc(N_VOCAB * sizeof *before);
    const struct slm_part one = {0, tokens, 1, SLM_LOGITS_LAST};
    struct slm *m;

    (void)state;
    assert_non_null(before);
    for (int i = 0; i < 300; i++)
        tokens[i] = i * 7 % N_VOCAB;
    p.n_sequences = 2;
    p.n_pool = 4 * SLM_PAGE;
    m = open_model(&p);
    assert_int_equal(slm_eval(m, tokens, 300, SLM_LOGITS_NONE, &err), ST_OK);
    assert_int_equal(slm_batch(m, &one, 1, &err), ST_OK);
    memcpy(before, slm_batch_logits(m, 0, 0), N_VOCAB * sizeof *before);
    slm_seq_truncate(m, 0, 300);
    slm_seq_fork(m, 0, 1);
    assert_int_equal(slm_seq_fill_synthetic(m, 1, 600, 1, &err), ST_OK);
    assert_int_equal(free_pages(m), 0);
    assert_int_equal(slm_batch(m, &one, 1, &err), ST_OK);
    assert_memory_equal(before, slm_batch_logits(m, 0, 0), N_VOCAB * sizeof *before);
    assert_int_equal(slm_seq_fill_synthetic(m, 0, 513, 1, &err), ST_NO_MEMORY);
    assert_non_null(strstr(err.msg, "513 positions"));
    assert_int_equal(slm_seq_n_past(m, 0), 301);
    slm_close(m);
    free(before);
    synth_image_drop(&x);
}

static void wrong_batches_are_refused(void **state)
{
    struct synth_image x = synth_image_make(&small_plain, QUANTMIX_F32, SEED);
    struct slm_params p = params_of(&x, 1);
    const int32_t tokens[N_BATCH + 1] = {1, 2, 3}, wrong = N_VOCAB;
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    const struct {
        struct slm_part parts[2];
        int n;
        const char *why;
    } cases[] = {
        {{{.seq = 2, .tokens = tokens, .n = 1}}, 1, "sequence 2"},
        {{{.seq = -1, .tokens = tokens, .n = 1}}, 1, "sequence -1"},
        {{{.seq = 1, .tokens = tokens, .n = 1}, {.seq = 1, .tokens = tokens, .n = 1}},
         2,
         "twice"},
        {{{.seq = 0, .tokens = tokens, .n = 0}}, 1, "0 tokens"},
        {{{.seq = 0, .tokens = &wrong, .n = 1}}, 1, "vocabulary"},
        {{{.seq = 0, .tokens = tokens, .n = N_BATCH + 1}}, 1, "opened for"},
        {{{.seq = 0, .tokens = tokens, .n = 3, .which = SLM_LOGITS_ALL}},
         1,
         "3 of them with logits"},
        {{{.seq = 0, .tokens = tokens, .n = 2, .which = SLM_LOGITS_ALL},
          {.seq = 1, .tokens = tokens, .n = 2, .which = SLM_LOGITS_LAST}},
         2,
         "3 of them with logits"},
        {{{.seq = 1, .tokens = tokens, .n = 11}}, 1, "do not fit after 690"},
        {{{.seq = 0}}, 0, "0 sequences"}};

    (void)state;
    p.n_sequences = p.n_logits = 2;
    m = open_model(&p);
    assert_int_equal(slm_seq_fill_synthetic(m, 1, 690, 1, &err), ST_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err_clear(&err);
        assert_int_equal(slm_batch(m, cases[i].parts, cases[i].n, &err), ST_USAGE);
        if (!strstr(err.msg, cases[i].why))
            fail_msg("%s does not say %s", err.msg, cases[i].why);
    }
    assert_int_equal(slm_seq_n_past(m, 0), 0);
    assert_int_equal(slm_seq_n_past(m, 1), 690);
    slm_close(m);
    m = NULL;
    p.n_sequences = SLM_MAX_SEQUENCES + 1;
    err_clear(&err);
    assert_int_equal(slm_open(&m, &p, &err), ST_USAGE);
    synth_image_drop(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_positions),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(other_types_of_cache),
        cmocka_unit_test(windows_of_the_cache),
        cmocka_unit_test(windows),
        cmocka_unit_test(states),
        cmocka_unit_test(experts),
        cmocka_unit_test(copies_take_no_room),
        cmocka_unit_test(rings_take_their_pages_once),
        cmocka_unit_test(a_fill_is_one_sequence_s),
        cmocka_unit_test(wrong_batches_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

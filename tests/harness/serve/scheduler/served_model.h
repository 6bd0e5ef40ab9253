/* SPDX-License-Identifier: MIT
 *
 * served_model.h - small random models with several sequences, and completions of them
 *
 * A scheduler runs in the thread that opened the model. What is submitted before, and a
 * stop that lets it finish, make a run that needs no other thread.
 */
#ifndef SLM_TESTS_SERVED_MODEL_H
#define SLM_TESTS_SERVED_MODEL_H

#include <math.h>

#include "harness/serve/scheduler/scheduler.h"
#include "tests/support/synth_image.h"

enum { SERVED_VOCAB = 400, SERVED_MAX = 2048 };

struct served {
    struct synth_image image;
    struct slm *m, *alone; /* alone: one sequence, for what a text should be */
    struct slm *draft;     /* where completions draft by one; NULL */
    struct tokenizer *tok;
};

static const struct synth_shape SERVED_PLAIN = {.name = "plain",
                                                .arch = "llama",
                                                .n_layers = 2,
                                                .n_embd = 64,
                                                .n_ff = 96,
                                                .n_heads = 4,
                                                .n_kv_heads = 2,
                                                .head_dim = 32,
                                                .n_vocab = SERVED_VOCAB,
                                                .n_ctx_train = SERVED_MAX,
                                                .rope_base = 10000,
                                                .norm_eps = 1e-5F};

/* Checkpoints of all models that need some, from here on. */
static int served_checkpoints;

/* What completions draft by, in all schedulers from here on: a draft model is the model
 * itself. */
static enum session_drafts served_drafts;

/* With n_ctx positions, n_pages pages (0: enough for all). */
static inline void served_open(struct served *d, const struct synth_shape *shape,
                               int n_sequences, int n_ctx, int n_pages)
{
    struct slm_params p;
    struct err err = ERR_INIT;

    *d = (struct served){.image = synth_image_make(shape, QUANTMIX_F32, 5)};
    p = synth_image_params(&d->image, 2, n_ctx, 64);
    d->alone = open_model(&p);
    p.n_sequences = n_sequences;
    p.n_pool = (size_t)n_pages * SLM_PAGE;
    p.n_checkpoints = served_checkpoints;
    d->m = open_model(&p);
    if (served_drafts == DRAFTS_MODEL)
        d->draft = open_model(&p);
    if (tokenizer_open(&d->tok, slm_gguf(d->m), &err))
        fail_msg("%s", err.msg);
}

static inline void served_close(struct served *d)
{
    tokenizer_close(d->tok);
    slm_close(d->draft);
    slm_close(d->m);
    slm_close(d->alone);
    synth_image_drop(&d->image);
}

static inline struct scheduler *served_scheduler(struct served *d, int n_queue,
                                                 bool keep_prefixes)
{
    const struct scheduler_params p = {.m = d->m,
                                       .tok = d->tok,
                                       .n_queue = n_queue,
                                       .drafts = served_drafts,
                                       .draft = d->draft,
                                       .draft_tok = d->tok,
                                       .always_drafts = true,
                                       .keep_prefixes = keep_prefixes};
    struct scheduler *s = NULL;
    struct err err = ERR_INIT;

    if (scheduler_open(&s, &p, &err))
        fail_msg("%s", err.msg);
    return s;
}

/* A random prompt of text tokens. */
static inline void served_prompt(int32_t *prompt, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        prompt[i] = 260 + (int32_t)(test_random(&seed) % (SERVED_VOCAB - 260));
}

/* Greedy, of n tokens whatever they are. */
static inline struct completion_params served_params(const int32_t *prompt, int n,
                                                     int max_tokens)
{
    return (struct completion_params){.prompt = prompt,
                                      .n_prompt = (size_t)n,
                                      .max_tokens = max_tokens,
                                      .sampling = sampler_params_default(),
                                      .n_logprobs = -1,
                                      .ignore_end = true};
}

static inline struct completion *served_submit(struct scheduler *s,
                                               const struct completion_params *p)
{
    struct completion *c = NULL;
    struct err err = ERR_INIT;
    double retry_s = 0;
    bool full;

    if (scheduler_submit(s, p, &c, &full, &retry_s, &err))
        fail_msg("%s", err.msg);
    return c;
}

/* Until everything that was submitted is complete. */
static inline void served_run(struct scheduler *s)
{
    struct err err = ERR_INIT;

    scheduler_stop(s, true);
    if (scheduler_run(s, &err))
        fail_msg("%s", err.msg);
}

/* All that a completion has said. */
struct served_text {
    int32_t tokens[SERVED_MAX];
    int n;
    char text[8 * SERVED_MAX];
    size_t len;
    enum completion_end end;
    struct completion_usage usage;
};

static inline void served_read(struct completion *c, struct served_text *t)
{
    struct completion_piece piece;

    t->n = 0;
    t->len = 0;
    while (completion_read(c, &piece)) {
        assert_true(t->n < SERVED_MAX && t->len + piece.len < sizeof t->text);
        assert_int_equal(piece.text[piece.len], '\0');
        t->tokens[t->n++] = piece.token;
        memcpy(t->text + t->len, piece.text, piece.len);
        t->len += piece.len;
    }
    t->text[t->len] = '\0';
    t->end = completion_end(c);
    completion_read_usage(c, &t->usage);
    assert_int_equal(t->usage.n_generated, t->n);
}

/* Each token of a greedy text is the likeliest after those before it, by the model with
 * one sequence, or as good as: it rounds otherwise than one with several. */
static inline void served_check_greedy(struct served *d, const int32_t *prompt,
                                       int n_prompt, const struct served_text *t)
{
    const int n_vocab = slm_info(d->alone)->n_vocab;
    struct err err = ERR_INIT;

    slm_truncate(d->alone, 0);
    for (int i = 0; i < t->n; i++) {
        const float *logits;
        double sum = 0, best = -INFINITY;

        if (i == 0)
            assert_int_equal(
                slm_eval(d->alone, prompt, (size_t)n_prompt, SLM_LOGITS_LAST, &err),
                ST_OK);
        else
            assert_int_equal(
                slm_eval(d->alone, &t->tokens[i - 1], 1, SLM_LOGITS_LAST, &err), ST_OK);
        logits = slm_logits(d->alone, 0);
        for (int id = 0; id < n_vocab; id++) {
            sum += (double)logits[id] * (double)logits[id];
            best = (double)logits[id] > best ? (double)logits[id] : best;
        }
        if (!(best - (double)logits[t->tokens[i]] <= 0.02 * sqrt(sum / n_vocab)))
            fail_msg("token %d of %d: its logit is %g, the largest %g", i, t->n,
                     (double)logits[t->tokens[i]], best);
    }
}

static inline void served_check_idle_model(struct slm *m)
{
    size_t n, n_free, n_kept, n_own;

    for (int seq = 0; seq < slm_info(m)->n_sequences; seq++)
        assert_int_equal(slm_seq_n_past(m, seq), 0);
    slm_pages(m, &n, &n_free);
    slm_prefix_pages(m, &n_kept, &n_own);
    assert_int_equal(n_kept, n_own);
    assert_int_equal(n_free + n_own, n);
    if (slm_keeps_prefixes(m))
        assert_int_equal(slm_prefix_checkpoints(m) + slm_prefix_checkpoints_free(m),
                         slm_info(m)->n_checkpoints);
    slm_prefix_forget(m, n);
    slm_pages(m, &n, &n_free);
    assert_int_equal(n_free, n);
    assert_true(n == 0 || slm_prefix_checkpoints(m) == 0);
}

/* Nothing runs, and pages and checkpoints are free but for those that are kept. */
static inline void served_check_idle(struct served *d)
{
    served_check_idle_model(d->m);
    if (d->draft)
        served_check_idle_model(d->draft);
}

#endif

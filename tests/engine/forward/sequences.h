/* SPDX-License-Identifier: MIT
 *
 * sequences.h - texts in the sequences of one model, and a model that has each alone
 *
 * The other model computes the tokens of a text from the first one on. It multiplies
 * with other kernels than a batch, so logits differ in their last bits.
 */
#ifndef SLM_TESTS_ENGINE_FORWARD_SEQUENCES_H
#define SLM_TESTS_ENGINE_FORWARD_SEQUENCES_H

#include <malloc.h>

#include "engine/base/random.h"
#include "tests/support/nmse.h"
#include "tests/support/synth_image.h"

enum {
    N_VOCAB = SMALL_VOCAB,
    N_CTX = 700, /* not a multiple of a page */
    N_SEQS = 5,
    N_PAGES = 6, /* 3 each would be 15 */
    N_BATCH = 64,
    SEED = 5,
};

/* Under a sanitizer every access is checked, and takes long. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { OPERATIONS = 300, FEWER = 240 };
#else
enum { OPERATIONS = 1000, FEWER = 300 };
#endif

/* Mean squared difference of logits, relative to their mean square: halves in the cache
 * are rounded from sums in another order. */
static const double BOUND = 1e-5;

/* Activations, or keys and values, that differ in their last bits may be rounded to
 * another of 255 levels: one of them in each column of every product would be this
 * much. */
static const double QUANTISED_BOUND = 1e-4;

static inline struct slm_params params_of(const struct synth_image *x, int n_threads)
{
    return synth_image_params(x, n_threads, N_CTX, N_BATCH);
}

struct text {
    int32_t tokens[N_CTX];
    int n;
};

struct world {
    struct slm *m;
    struct slm *alone[N_SEQS];    /* models of one sequence and one thread */
    struct text computed[N_SEQS]; /* what each of them has computed */
    struct text text[N_SEQS];
    uint64_t random;
    size_t n_pages;
    double bound;
    int n_refused, n_batches, n_forks, n_cuts;
};

static inline uint64_t below(struct world *w, uint64_t n)
{
    return random_below(&w->random, n);
}

/* Bytes that the program has of malloc(); where that cannot be known 0. */
static inline size_t allocated(void)
{
#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

static inline void open_alone(struct world *w, struct slm_params p)
{
    p.n_threads = 1;
    for (int seq = 0; seq < N_SEQS; seq++)
        w->alone[seq] = open_model(&p);
}

static inline void close_alone(struct world *w)
{
    for (int seq = 0; seq < N_SEQS; seq++)
        slm_close(w->alone[seq]);
}

static inline void eval_alone(struct slm *m, const int32_t *tokens, int n,
                              enum slm_logits which)
{
    struct err err = ERR_INIT;

    if (n > 0 && slm_eval(m, tokens, (size_t)n, which, &err))
        fail_msg("%s", err.msg);
}

/* Logits of the last n tokens of a text, by a model that has nothing else. It keeps
 * what it has computed if the text goes on from there; after cuts and forks it begins
 * with the first token. */
static inline void check_alone(struct world *w, const struct text *t, int n,
                               const struct slm_part *part, int i)
{
    struct slm *m = w->alone[part->seq];
    struct text *computed = &w->computed[part->seq];
    const int before = t->n - n;

    if (computed->n > before || memcmp(computed->tokens, t->tokens,
                                       (size_t)computed->n * sizeof *t->tokens) != 0) {
        slm_truncate(m, 0);
        computed->n = 0;
    }
    eval_alone(m, t->tokens + computed->n, before - computed->n, SLM_LOGITS_NONE);
    eval_alone(m, t->tokens + before, n, part->which);
    *computed = *t;
    for (int k = 0; k < (part->which == SLM_LOGITS_ALL ? n : 1); k++) {
        const double off = nmse(slm_batch_logits(w->m, i, (size_t)k),
                                slm_logits(m, (size_t)k), N_VOCAB);

        if (!(off < w->bound))
            fail_msg("batch %d: sequence %d of %d tokens is off by %g", w->n_batches,
                     part->seq, t->n, off);
    }
}

/* Positions that a text has in common with one of the others. */
static inline int longest_common(const struct text *kept, int n_kept,
                                 const struct text *t)
{
    int longest = 0;

    for (int i = 0; i < n_kept; i++) {
        int n = 0;

        while (n < t->n && n < kept[i].n && kept[i].tokens[n] == t->tokens[n])
            n++;
        longest = n > longest ? n : longest;
    }
    return longest;
}

#endif

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
    struct slm *m, *alone;
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

/* Logits of the last n tokens of a text, by a model that has nothing else. It keeps
 * what it has computed if the text begins with that. */
static inline void check_alone(struct world *w, const struct text *t, int n,
                               const struct slm_part *part, int i)
{
    struct err err = ERR_INIT;

    slm_truncate(w->alone, 0);
    if (t->n > n)
        assert_int_equal(
            slm_eval(w->alone, t->tokens, (size_t)(t->n - n), SLM_LOGITS_NONE, &err),
            ST_OK);
    assert_int_equal(
        slm_eval(w->alone, t->tokens + t->n - n, (size_t)n, part->which, &err), ST_OK);
    for (int k = 0; k < (part->which == SLM_LOGITS_ALL ? n : 1); k++) {
        const double off = nmse(slm_batch_logits(w->m, i, (size_t)k),
                                slm_logits(w->alone, (size_t)k), N_VOCAB);

        if (!(off < w->bound))
            fail_msg("batch %d: sequence %d of %d tokens is off by %g", w->n_batches,
                     part->seq, t->n, off);
    }
}

#endif

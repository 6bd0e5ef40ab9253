/* SPDX-License-Identifier: MIT
 *
 * sampler.h - the next token from logits
 *
 * The last repeat_window accepted tokens become less likely by repeat_penalty: a
 * positive logit is divided by it, a negative one multiplied (Keskar et al. 2019, arXiv
 * 1909.05858). Then temperature 0 is greedy (ties: the lowest id). Otherwise candidates
 * are cut, all at the given temperature, to the top_k most likely, then to the smallest
 * set whose probability reaches top_p, then to those at least min_p times as likely as
 * the most likely (Nguyen et al. 2024, arXiv 2407.01082). The draw uses a generator
 * seeded by the caller, so that equal seeds give equal text.
 *
 * Threading: one sampler belongs to one thread. Nothing allocates after
 * sampler_open().
 */
#ifndef SLM_ENGINE_TEXT_SAMPLER_H
#define SLM_ENGINE_TEXT_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct sampler;

struct sampler_params {
    float temperature;
    int top_k;   /* 0: all */
    float top_p; /* 1: all */
    uint64_t seed;
    float min_p;          /* 0: all */
    float repeat_penalty; /* 1, or 0: none; below 1 repetition becomes more likely */
    int repeat_window;    /* tokens; 0: none */
};

/* The largest repeat_window, in tokens. */
#define SAMPLER_MAX_WINDOW (1 << 20)

/* Greedy, without a penalty. */
struct sampler_params sampler_params_default(void);

/* ST_USAGE (a parameter outside its range; the message names both), ST_NO_MEMORY. */
enum status sampler_open(struct sampler **s, const struct sampler_params *params,
                         int32_t n_vocab, struct err *err);
void sampler_close(struct sampler *s);

/* Add a token, 0 <= id < n_vocab, to the text so far: one of the prompt, or a drawn
 * one. */
void sampler_accept(struct sampler *s, int32_t id);

/* Draw a token, without accepting it. */
int32_t sampler_next(struct sampler *s, const float *logits /* [n_vocab] */);

/* From here on sampler_next() draws as before, but returns the next of these tokens,
 * and sampler_accept() advances to the one after it; after the last one it returns what
 * it draws again. tokens belong to the caller and must stay valid. For measuring on a
 * given text, which a model with random weights would never generate. */
void sampler_recite(struct sampler *s, const int32_t *tokens, size_t n);

/* From here on s draws and penalises as `of` would now: a draft model has the highest
 * acceptance rate with the random numbers that the model's sampler will use. Both were
 * opened with equal parameters; s may have fewer tokens. */
void sampler_follow(struct sampler *s, const struct sampler *of);

#endif

/* SPDX-License-Identifier: MIT
 *
 * sampler.h - the next token from logits
 *
 * temperature 0 is greedy (ties: the lowest id). Otherwise candidates are cut to
 * the top_k most likely (0: all), then to the smallest set whose probability
 * reaches top_p (1: all), at the given temperature, and one is drawn from a
 * generator seeded by the caller, so that equal seeds give equal text.
 *
 * Threading: one sampler belongs to one thread. Nothing allocates after
 * sampler_open().
 */
#ifndef SLM_ENGINE_SAMPLER_H
#define SLM_ENGINE_SAMPLER_H

#include <stdint.h>

#include "engine/status.h"

struct sampler;

struct sampler_params {
    float temperature;
    int top_k;
    float top_p;
    uint64_t seed;
};

/* ST_USAGE for a negative or non-finite temperature, negative top_k, or top_p
 * outside (0, 1]. */
enum status sampler_open(struct sampler **s, const struct sampler_params *params,
                         int32_t n_vocab, struct err *err);
void sampler_close(struct sampler *s);
int32_t sampler_next(struct sampler *s, const float *logits /* [n_vocab] */);

#endif

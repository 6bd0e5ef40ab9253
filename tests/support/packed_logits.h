/* SPDX-License-Identifier: MIT
 *
 * packed_logits.h - small models held in any way, and their logits
 */
#ifndef SLM_TESTS_PACKED_LOGITS_H
#define SLM_TESTS_PACKED_LOGITS_H

#include "tests/support/synth_file.h"

#include "engine/arch/arch.h"
#include "engine/engine.h"

#define N_TOKENS 21

/* The model at path, with its weights read in. */
static inline enum status try_open(struct slm **m, const char *path,
                                   enum weights_residency residency, int n_threads,
                                   uint32_t isa_mask, struct err *err)
{
    struct slm_params p = slm_params_default();

    p.path = path;
    p.residency = residency;
    p.n_threads = n_threads;
    p.n_ctx = N_TOKENS;
    p.isa_mask = isa_mask;
    const enum status st = slm_open(m, &p, err);

    return st ? st
              : weights_preload(slm_weights(*m), slm_thread_pool(*m), NULL, NULL, err);
}

static inline struct slm *open_model(const char *path, enum weights_residency residency,
                                     int n_threads, uint32_t isa_mask)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (try_open(&m, path, residency, n_threads, isa_mask, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Logits of N_TOKENS tokens: the first ones in one batch, the rest one by one. */
static inline float *logits_of(struct slm *m)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    const size_t first = N_TOKENS - 4;
    float *out = malloc(N_TOKENS * n_vocab * sizeof *out);
    int32_t tokens[N_TOKENS];
    struct err err = ERR_INIT;

    assert_non_null(out);
    for (size_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)((1 + 37 * i) % n_vocab);
    for (size_t i = 0; i < N_TOKENS; i += i ? 1 : first) {
        const size_t n = i ? 1 : first;

        if (slm_eval(m, tokens + i, n, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (size_t j = 0; j < n; j++)
            memcpy(out + (i + j) * n_vocab, slm_logits(m, j), n_vocab * sizeof *out);
    }
    return out;
}

#endif

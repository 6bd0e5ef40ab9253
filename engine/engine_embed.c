/* SPDX-License-Identifier: MIT
 *
 * engine_embed.c - vectors of texts: each is a sequence for the time of one pass
 */
#include "engine/engine_impl.h"

static enum status check_texts(const struct slm *m, const struct slm_text *texts,
                               int n_texts, enum slm_pooling pooling, struct err *err)
{
    int64_t n = 0;

    if (n_texts < 1 || n_texts > m->info.n_sequences)
        return err_set(err, ST_USAGE, "%d texts in a pass; the model was opened for %d",
                       n_texts, m->info.n_sequences);
    if (pooling < SLM_POOLING_NONE || pooling > SLM_POOLING_LAST)
        return err_set(err, ST_USAGE,
                       "pooling %d is not possible: only none, mean, first and last",
                       (int)pooling);
    for (int i = 0; i < n_texts; i++) {
        const enum status st =
            engine_check_tokens(m, i, texts[i].tokens, (size_t)texts[i].n, err);

        if (st)
            return st;
        n += texts[i].n;
    }
    if (n > m->info.n_batch)
        return err_set(err, ST_USAGE,
                       "texts of %lld tokens in a pass; the model was opened for %d",
                       (long long)n, m->info.n_batch);
    return ST_OK;
}

static void run(struct slm *m, const struct slm_text *texts, int n_texts,
                enum slm_pooling pooling)
{
    struct forward_part pass[SLM_MAX_SEQUENCES];

    m->n_logits = 0;
    m->n_parts = 0;
    for (int i = 0; i < n_texts; i++)
        pass[i] =
            (struct forward_part){.seq = i, .tokens = texts[i].tokens, .n = texts[i].n};
    engine_begin_pass(m, pass, n_texts);
    forward_embed(m->forward, pass, n_texts, pooling);
}

enum status slm_embed(struct slm *m, const struct slm_text *texts, int n_texts,
                      enum slm_pooling pooling, struct err *err)
{
    struct slm_part parts[SLM_MAX_SEQUENCES];
    enum status st = engine_begin(m, err);

    for (int i = 0; !st && i < n_texts && i < m->info.n_sequences; i++) {
        slm_seq_truncate(m, i, 0);
        parts[i] = (struct slm_part){i, texts[i].tokens, texts[i].n, SLM_LOGITS_NONE};
    }
    if (!st)
        st = check_texts(m, texts, n_texts, pooling, err);
    if (!st)
        st = engine_reserve(m, parts, n_texts, err);
    if (st)
        return st;
    for (int i = 0; i < n_texts; i++) /* states begin as before the first token */
        engine_run_again(m, i);
    if (!weights_check(m->w, NULL))
        run(m, texts, n_texts, pooling);
    st = engine_end(m, err);
    for (int i = 0; i < n_texts; i++)
        kvcache_cut(&m->kv, i, 0);
    return st;
}

const float *slm_vector(const struct slm *m, size_t i)
{
    return forward_vector(m->forward, i);
}

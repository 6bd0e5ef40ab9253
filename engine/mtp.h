/* SPDX-License-Identifier: MIT
 *
 * mtp.h - a model's own layer that predicts the token after the next ("multi-token
 * prediction"), as a source of drafts
 *
 * The layer reads pairs: the hidden state of a position and the token of the next one.
 * From them it guesses the token after that, and from its own hidden state and that
 * token the next, and so on. Its keys and values are in a cache of its own, a position
 * for each pair. The model keeps what it needs of every pass; pairs that have become
 * known since are evaluated with the next guess, or once many wait. Where hidden states
 * are missing (after slm_truncate() by much, or behind a kept prefix), the cache begins
 * again: guesses get worse, nothing else.
 *
 * Only of models opened with slm_params.mtp.
 *
 * Threading: as struct slm.
 * Source: DeepSeek-AI 2024 (arXiv 2412.19437, section 2.2).
 */
#ifndef SLM_ENGINE_MTP_H
#define SLM_ENGINE_MTP_H

#include "engine/engine.h"

struct mtp_guess {
    int seq;             /* each once in a call */
    int32_t id;          /* the token before the guessed one */
    const float *logits; /* [n_vocab] of the guess, until the next call; NULL: nothing
                            has been evaluated, or there is no room */
};

/* The token after id, which follows what the sequence has evaluated and has not been
 * evaluated yet; for g[n] sequences in one pass. */
void mtp_first(struct slm *m, struct mtp_guess *g, int n);

/* The same after id, which was drawn from the sequence's last guess. */
void mtp_next(struct slm *m, struct mtp_guess *g, int n);

#endif

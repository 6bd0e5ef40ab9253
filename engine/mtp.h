/* SPDX-License-Identifier: MIT
 *
 * mtp.h - a model's own layer that predicts the token after the next ("multi-token
 * prediction"), as a source of drafts
 *
 * The layer reads pairs: the hidden state of a position and the token of the next one.
 * From them it guesses the token after that, and from its own hidden state and that
 * token the next, and so on. Its keys and values are in a cache of its own, a position
 * for each pair. The model keeps what it needs of every pass; pairs that have become
 * known since are evaluated before the next pass, or with the next draft. Where hidden
 * states are missing (after slm_truncate() by much), the cache begins again: guesses
 * get worse, nothing else.
 *
 * Only of models opened with slm_params.mtp.
 *
 * Threading: as struct slm.
 * Source: DeepSeek-AI 2024 (arXiv 2412.19437, section 2.2).
 */
#ifndef SLM_ENGINE_MTP_H
#define SLM_ENGINE_MTP_H

#include "engine/engine.h"

/* Logits [n_vocab] of the token after id, which follows what the model has evaluated
 * and has not been evaluated yet; NULL: nothing has been evaluated, or there is no
 * room. Valid until the next call. */
const float *mtp_first(struct slm *m, int32_t id);

/* The same after id, which was drawn from the last logits; NULL: no room. */
const float *mtp_next(struct slm *m, int32_t id);

#endif

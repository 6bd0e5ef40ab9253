/* SPDX-License-Identifier: MIT
 *
 * importance.h - run a model over a text and collect an importance matrix
 *
 * The text's tokens are cut into chunks of ctx, each read from an empty cache with BOS
 * in its first place where the model needs one; an incomplete chunk at the end is not
 * used.
 *
 * Threading: one thread, the one that opened the model.
 */
#ifndef SLM_HARNESS_MODEL_IMPORTANCE_H
#define SLM_HARNESS_MODEL_IMPORTANCE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/quantize/imatrix.h"

struct importance_text {
    const int32_t *ids;
    size_t n_ids;
    size_t ctx;
    size_t from_chunk, n_chunks; /* chunks from_chunk .. from_chunk + n_chunks - 1 */
};

/* Chunks of ctx in n tokens. */
static inline size_t importance_n_chunks(size_t n, size_t ctx)
{
    return n / ctx;
}

/* Add the inputs of all matrices of m to im, with a progress line. *done is the number
 * of chunks that went in, also where an interrupt ended the work (which is no error
 * here). Errors: those of slm_eval() and imatrix_entry(); ST_INPUT (activations that
 * are no numbers). */
enum status importance_collect(struct imatrix *im, struct slm *m,
                               const struct importance_text *text, size_t *done,
                               struct err *err);

#endif

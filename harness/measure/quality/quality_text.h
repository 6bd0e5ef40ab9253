/* SPDX-License-Identifier: MIT
 *
 * quality_text.h - which models are compared, and the chunks of text they predict
 *
 * Model of the world: the text is tokenised once, with BOS in front where the model
 * wants one, and cut into chunks of ctx tokens; an incomplete one at the end is not
 * used. The first token of each chunk becomes BOS. In every chunk the tokens after
 * the first half are predicted, each from all that stand before it in the chunk:
 * positions ctx/2 .. ctx-2 give logits for tokens ctx/2+1 .. ctx-1. This is what
 * llama.cpp's perplexity tool does, so that figures can be compared.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_MEASURE_QUALITY_QUALITY_TEXT_H
#define SLM_HARNESS_MEASURE_QUALITY_QUALITY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/model/modelref.h"

struct quality_model {
    struct modelref ref;
    char name[MODELREF_NAME_MAX + 24]; /* the model's; "name:Q4_K_M" of what is
                                          quantised while it is loaded */
    char quant[24];                    /* "Q4_K_M" */
    uint64_t bytes;                    /* of the file, or of the one it would be */
    uint64_t n_params;
    int n_vocab, n_ctx_train;
    int max_chunk; /* tokens: n_ctx_train, unless a window makes longer ones possible */
    uint64_t key;  /* of this file as it is now */
};

/* From the file's metadata alone; requant as in struct modelref, or NULL. Errors: as
 * modelref_parse(), modelref_open() and slm_plan(); ST_USAGE (a synthetic model: it has
 * learned nothing). */
enum status quality_model_read(struct quality_model *m, const char *text,
                               const struct requant_params *requant, struct err *err);

/* Names and labels of their own for several (model_names.h). */
void quality_models_name(struct quality_model *models, size_t n);

/* F32, F16 or BF16: nothing was lost but by rounding. */
bool quality_model_is_float(const struct quality_model *m);

#define QUALITY_DEFAULT_TEXT "shakespeare-heldout.txt" /* in configs/texts */
#define QUALITY_DEFAULT_CTX  512
#define QUALITY_MIN_CTX      8

struct quality_text {
    char path[512], name[64]; /* name: without directory and ending */
    int ctx;
    size_t n_chunks;
    int32_t *ids; /* [n_chunks][ctx], BOS in its places */
    uint64_t key; /* of all ids and ctx; not of n_chunks: more chunks begin alike */
};

/* Read and cut the text at path (NULL: the one that comes with the program) with m's
 * tokenizer into chunks of ctx tokens, at most n_chunks (0: all). Errors: ST_IO,
 * ST_USAGE (too short for a chunk; a context that the model was not made for),
 * ST_INPUT (no UTF-8; the tokenizer). */
enum status quality_text_read(struct quality_text *t, const struct quality_model *m,
                              const char *path, int ctx, int n_chunks, struct err *err);
void quality_text_free(struct quality_text *t);

/* Positions scored in a chunk. */
static inline size_t quality_per_chunk(int ctx)
{
    return (size_t)(ctx - 1 - ctx / 2);
}

/* Does m cut the text into the same tokens, with a vocabulary of the same size as
 * like? Errors: ST_USAGE (it does not: divergence from it is not defined), and as
 * quality_text_read(). */
enum status quality_text_check(const struct quality_text *t,
                               const struct quality_model *like,
                               const struct quality_model *m, struct err *err);

#endif

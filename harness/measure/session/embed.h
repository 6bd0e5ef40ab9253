/* SPDX-License-Identifier: MIT
 *
 * embed.h - vectors of many texts
 *
 * Texts are tokenised first. So all sizes are known before a large model is read, and
 * the model is opened for exactly these texts. A pass takes several of them in the
 * order in which they were added; nothing is padded, so their lengths may differ.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_EMBED_H
#define SLM_HARNESS_MEASURE_SESSION_EMBED_H

#include "harness/measure/session/session.h"

/* Texts in one pass, at most: each takes a page of the KV cache at least. */
#define EMBED_MAX_PASS_TEXTS 64

struct embed_texts {
    struct slm_text *v; /* [n], their tokens malloc'ed */
    size_t n, cap;
    int64_t n_tokens;
    int n_longest; /* tokens of the longest */
    size_t n_cut;  /* texts that were cut */
};

/* The model, as far as texts need it. */
struct embed_model {
    struct tokenizer *tok;
    struct slm_info planned; /* of a context of one position */
    char name[256];          /* for messages */
};

/* *e is zeroed first. Errors: those of session_model(), modelref_open(),
 * tokenizer_open() and slm_plan(). */
enum status embed_look(struct embed_model *e, const struct session_params *params,
                       struct err *err);
void embed_close(struct embed_model *e);

/* The pooling that a user names ("mean", "cls", "last", "none"), or NULL: that of the
 * file, called model in messages. Errors: ST_USAGE (an unknown name; the file has
 * none), ST_UNSUPPORTED (it ranks pairs of texts). */
enum status embed_pooling(enum slm_pooling *pooling, const struct slm_info *info,
                          const char *model, const char *name, struct err *err);

/* Add a text, or one that is token ids already. A text that is longer than the model's
 * context is refused, or with `cut` ends there, with the token that ends texts; what
 * names it in messages. Errors: ST_USAGE (too long, no tokens, no such token), those of
 * tokenizer_encode(). */
enum status embed_add(struct embed_texts *t, const struct embed_model *e,
                      const char *text, size_t len, bool cut, const char *what,
                      struct err *err);
enum status embed_add_tokens(struct embed_texts *t, const struct embed_model *e,
                             const int *ids, size_t n, bool cut, const char *what,
                             struct err *err);

/* Every line of a file ("-": standard input) as a text, without its end. Errors: those
 * of textfile_read(), too. */
enum status embed_add_lines(struct embed_texts *t, const struct embed_model *e,
                            const char *path, bool cut, struct err *err);
void embed_texts_free(struct embed_texts *t);

/* Set in *params what a model for these texts is opened with; n_batch: most tokens in
 * a pass, unless one text has more. */
void embed_sizes(struct session_params *params, const struct embed_texts *t,
                 int n_batch);

/* What is called with the vectors of each text in turn: n_vectors of n floats, of a
 * text one, or with SLM_POOLING_NONE one of each token. */
typedef enum status embed_take_fn(void *arg, size_t text, const float *vectors,
                                  size_t n_vectors, size_t n, struct err *err);

/* v[n] divided by its length. */
void embed_normalise(float *v, size_t n);

/* The vectors of all texts, divided by their length if `normalise`, with a progress
 * line. Errors: those of slm_embed() and take(), ST_INTERRUPTED, ST_NO_MEMORY. */
enum status embed_run(struct slm *m, const struct embed_texts *t,
                      enum slm_pooling pooling, bool normalise, embed_take_fn *take,
                      void *arg, struct err *err);

#endif

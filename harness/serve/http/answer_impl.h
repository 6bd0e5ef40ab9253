/* SPDX-License-Identifier: MIT
 *
 * answer_impl.h - an answer and its choices, for answer*.c only
 */
#ifndef SLM_HARNESS_SERVE_HTTP_ANSWER_IMPL_H
#define SLM_HARNESS_SERVE_HTTP_ANSWER_IMPL_H

#include "harness/serve/http/answer.h"
#include "harness/serve/api/reply_form.h"

struct choice {
    struct completion *c; /* NULL: not begun, or read to its end */
    struct reply_choice reply;
    struct completion_usage usage;
    uint64_t last_ns; /* of its last text; 0: none yet */
    float *vectors;   /* [n_texts][n_vector], once it has ended */
};

struct answer {
    const struct answer_model *model;
    struct api_request request; /* empty once it was submitted */
    struct reply_head head;
    struct choice *choices; /* [n] */
    int n, n_open, n_each;  /* n_each: choices of one prompt */
    struct textbuf events;
    struct refusal failure; /* of a completion */
    uint64_t begin_ns, client;
    uint64_t schema_bytes; /* of its grammar */
    uint64_t whole_bytes;  /* of its choices, if it does not stream */
    void (*wake)(void *arg);
    void *arg;
    bool has_text;
    const struct chat_thinking *thinking; /* of a chat whose model thinks, or NULL */
    bool thinks;                          /* its prompt has begun to */
    const struct chat_calls *calls;       /* of a chat with tools, or NULL */

    struct textbuf text; /* of an answer without completions, or empty */

    int n_texts, dimensions; /* of an answer of vectors; n_texts 0: another one */
    bool base64;
};

/* Submits choice i, for which params needs no client, wake and arg. */
bool answer_submit(struct answer *a, int i, struct completion_params *params,
                   struct refusal *refusal);

/* Whether a whole answer may have n_bytes. */
bool answer_fits(const struct answer_model *m, uint64_t n_bytes,
                 struct refusal *refusal);

/* ---- answer_prompt.c: prompts as tokens, answers without a completion ------------ */

/* Whether the kind has such an answer; and makes it. */
bool answer_is_text(enum api_kind kind);
bool answer_make_text(struct answer *a, const struct answer_request *req,
                      struct refusal *refusal);

/* Whether the request may name its model so. */
bool answer_check_model(const struct answer_model *m, const struct api_request *r,
                        struct refusal *refusal);

/* The tokens of a->request's prompts. */
bool answer_encode(struct answer *a, struct refusal *refusal);

/* ---- answer_tokens.c ------------------------------------------------------------- */

/* {"tokens": [...]} of API_TOKENIZE, {"content": text} of API_DETOKENIZE. */
bool answer_put_tokens(const struct answer_model *m, const struct api_request *r,
                       struct textbuf *out, struct refusal *refusal);
bool answer_put_content(const struct answer_model *m, const struct api_request *r,
                        struct textbuf *out, struct refusal *refusal);

/* ---- answer_embed.c: vectors of texts -------------------------------------------- */

/* The bytes of its texts' vectors. */
static inline uint64_t answer_vector_bytes(const struct answer *a)
{
    return (uint64_t)a->n_texts * (uint64_t)a->model->n_vector * sizeof(float);
}

/* Submit the texts of a->request as one completion. */
bool answer_begin_vectors(struct answer *a, struct refusal *refusal);

/* The whole answer. False: it has not become one. */
bool answer_put_vectors(const struct answer *a, struct textbuf *out,
                        const struct reply_usage *usage, struct refusal *refusal);

#endif

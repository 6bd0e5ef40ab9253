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
    int prompt;
    struct textbuf text, thought; /* unless it streams */
    struct reply_calls calls;
    struct reply_logprobs logprobs;
    enum completion_end end;
    char *stop; /* owned, the stop string that ended it, of head.form; or NULL */
    struct completion_usage usage;
    bool has_spoken;  /* an event was written */
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
    struct reply_blocks blocks; /* of a stream with head.form */
    char *echo;                 /* owned, head.echo */
    struct refusal failure;     /* of a completion */
    uint64_t begin_ns;
    uint64_t schema_bytes; /* of its grammar */
    uint64_t whole_bytes;  /* of its choices, if it does not stream */
    void (*wake)(void *arg);
    void *arg;
    bool has_text;
    const struct chat_thinking *thinking; /* of a chat whose model thinks, or NULL */
    bool thinks;                          /* its prompt has begun to */
    const struct chat_calls *calls;       /* of a chat with tools, or NULL */

    int n_texts, dimensions; /* of an answer of vectors; n_texts 0: another one */
    bool base64;
};

/* Why the scheduler did not take a request. */
bool answer_refuse_submit(struct refusal *refusal, const struct err *err, bool full,
                          double retry_s);

/* Whether a whole answer may have n_bytes. */
bool answer_fits(uint64_t n_bytes, struct refusal *refusal);

/* ---- answer_prompt.c: prompts as tokens ------------------------------------------ */

/* Whether the request may name its model so. */
bool answer_check_model(const struct answer_model *m, const struct api_request *r,
                        struct refusal *refusal);

/* The tokens of a->request's prompts. */
bool answer_encode(struct answer *a, struct refusal *refusal);

/* ---- answer_embed.c: vectors of texts -------------------------------------------- */

/* The bytes of its texts' vectors. */
static inline uint64_t answer_vector_bytes(const struct answer *a)
{
    return (uint64_t)a->n_texts * (uint64_t)a->model->n_vector * sizeof(float);
}

/* Submit the texts of a->request as one completion. */
bool answer_begin_vectors(struct answer *a, const struct answer_request *req,
                          struct refusal *refusal);

/* The whole answer. False: it has not become one. */
bool answer_put_vectors(const struct answer *a, struct textbuf *out,
                        const struct reply_usage *usage, struct refusal *refusal);

#endif

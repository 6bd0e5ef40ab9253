/* SPDX-License-Identifier: MIT
 *
 * answer_embed.c - an answer of vectors: texts as tokens, vectors as JSON
 *
 * Source: OpenAI's API reference (embeddings): base64 is of little-endian float32.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer/tokenizer.h"
#include "harness/base/format.h"
#include "harness/measure/session/embed.h"
#include "harness/serve/http/answer_impl.h"

/* ---- texts ----------------------------------------------------------------------- */

static bool encode(const struct answer_model *m, struct api_prompt *p, size_t i,
                   struct refusal *refusal)
{
    struct err err = ERR_INIT;

    if (!p->ids && tokenizer_encode_whole(m->tok, p->text, p->len, (size_t)m->n_ctx,
                                          &p->ids, &p->n_ids, &err))
        return refuse_err(refusal, &err, "input");
    if (p->n_ids == 0)
        return refuse(refusal, 400, NULL, "input", "input %zu has no token", i);
    if (p->n_ids > (size_t)m->n_ctx)
        return refuse(refusal, 400, "context_length_exceeded", "input",
                      "input %zu has %s%zu tokens; the model's context is %d", i,
                      p->ids ? "" : "at least ", p->n_ids, m->n_ctx);
    return true;
}

/* All texts one after another. */
static bool join(const struct api_request *r, int32_t **ids, size_t *n, int **lengths,
                 struct refusal *refusal)
{
    size_t at = 0;

    *n = 0;
    for (size_t i = 0; i < r->n_prompts; i++)
        *n += r->prompts[i].n_ids;
    *ids = malloc(*n * sizeof **ids);
    *lengths = malloc(r->n_prompts * sizeof **lengths);
    if (!*ids || !*lengths)
        return refuse(refusal, 503, NULL, NULL, "no memory for %zu tokens", *n);
    for (size_t i = 0; i < r->n_prompts; i++) {
        const struct api_prompt *p = &r->prompts[i];

        memcpy(*ids + at, p->ids, p->n_ids * sizeof **ids);
        (*lengths)[i] = (int)p->n_ids;
        at += p->n_ids;
    }
    return true;
}

bool answer_begin_vectors(struct answer *a, struct refusal *refusal)
{
    const struct api_request *r = &a->request;
    const uint64_t limit = a->model->memory->answer;
    struct completion_params params = {.n_texts = (int)r->n_prompts, .n_logprobs = -1};
    int32_t *ids = NULL;
    int *lengths = NULL;
    bool ok = true;

    if (r->dimensions > a->model->n_vector)
        return refuse(refusal, 400, NULL, "dimensions",
                      "dimensions is %d, and vectors have %d", r->dimensions,
                      a->model->n_vector);
    a->dimensions = r->dimensions ? r->dimensions : a->model->n_vector;
    a->base64 = r->base64;
    a->n_texts = params.n_texts;
    a->n_each = 1;
    if (answer_vector_bytes(a) > limit)
        return refuse(refusal, 400, "answer_too_large", "input",
                      "%d vectors of %d numbers are more than %s; request %d at a time",
                      a->n_texts, a->model->n_vector, bytes_text(limit).text,
                      (int)(limit / sizeof(float)) / a->model->n_vector);
    a->choices = calloc(1, sizeof *a->choices);
    if (!a->choices)
        return refuse(refusal, 503, NULL, NULL, "no memory for an answer");
    a->n = 1;
    for (size_t i = 0; ok && i < r->n_prompts; i++)
        ok = encode(a->model, &r->prompts[i], i, refusal);
    ok = ok && join(r, &ids, &params.n_prompt, &lengths, refusal);
    params.prompt = ids;
    params.lengths = lengths;
    ok = ok && answer_submit(a, 0, &params, refusal);
    free(ids);
    free(lengths);
    return ok;
}

/* ---- vectors --------------------------------------------------------------------- */

static void put_base64(struct textbuf *out, const unsigned char *bytes, size_t n)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        const unsigned b1 = i + 1 < n ? bytes[i + 1] : 0;
        const unsigned b2 = i + 2 < n ? bytes[i + 2] : 0;
        const unsigned v = (unsigned)bytes[i] << 16 | b1 << 8 | b2;
        const char text[4] = {digits[v >> 18], digits[v >> 12 & 63],
                              i + 1 < n ? digits[v >> 6 & 63] : '=',
                              i + 2 < n ? digits[v & 63] : '='};

        textbuf_put(out, text, sizeof text);
    }
}

/* The first n numbers, divided by their length. */
static void put_vector(struct textbuf *out, float *v, int n, bool base64)
{
    embed_normalise(v, (size_t)n);
    textbuf_puts(out, base64 ? "\"" : "[");
    for (int i = 0; !base64 && i < n; i++)
        textbuf_printf(out, "%s%.9g", i ? "," : "", (double)v[i]);
    for (int i = 0; base64 && i < n; i++) {
        uint32_t bits;

        memcpy(&bits, v + i, sizeof bits);
        bits = htole32(bits);
        memcpy(v + i, &bits, sizeof bits);
    }
    if (base64)
        put_base64(out, (const unsigned char *)v, (size_t)n * sizeof *v);
    textbuf_puts(out, base64 ? "\"" : "]");
}

bool answer_put_vectors(const struct answer *a, struct textbuf *out,
                        const struct reply_usage *usage, struct refusal *refusal)
{
    float *vectors = a->choices[0].vectors;

    if (!vectors)
        return refuse(refusal, 500, "failed", NULL, "the answer was read before");
    textbuf_puts(out, "{\"object\":\"list\",\"data\":[");
    for (int i = 0; i < a->n_texts; i++) {
        textbuf_printf(out, "%s{\"object\":\"embedding\",\"index\":%d,\"embedding\":",
                       i ? "," : "", i);
        put_vector(out, vectors + (size_t)i * (size_t)a->model->n_vector, a->dimensions,
                   a->base64);
        textbuf_puts(out, "}");
    }
    textbuf_puts(out, "],\"model\":");
    textbuf_put_json(out, a->model->name, strlen(a->model->name));
    textbuf_printf(out, ",\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}",
                   usage->n_prompt, usage->n_prompt);
    reply_timings(out, usage);
    textbuf_puts(out, "}\n");
    return !out->failed || refuse(refusal, 503, NULL, NULL, "no memory for the answer");
}

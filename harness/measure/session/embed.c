/* SPDX-License-Identifier: MIT
 *
 * embed.c - texts as tokens, passes over several of them, their vectors
 */
#include "harness/measure/session/embed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/base/textfile.h"
#include "harness/model/modelref.h"

/* ---- the model ------------------------------------------------------------------- */

enum status embed_look(struct embed_model *e, const struct session_params *params,
                       struct err *err)
{
    struct slm_params smallest = slm_params_default();
    struct modelref ref;
    struct gguf *g = NULL;
    enum status st = session_model(&ref, params, err);

    *e = (struct embed_model){.tok = NULL};
    smallest.n_ctx = 1;
    if (st == ST_OK &&
        (modelref_open(&ref, &g, err) || tokenizer_open(&e->tok, g, err) ||
         slm_plan(&e->planned, g, &smallest, err)))
        st = err->code;
    if (!st)
        snprintf(e->name, sizeof e->name, "%s", gguf_path(g));
    gguf_close(g);
    return st;
}

void embed_close(struct embed_model *e)
{
    tokenizer_close(e->tok);
    e->tok = NULL;
}

enum status embed_pooling(enum slm_pooling *pooling, const struct slm_info *info,
                          const char *model, const char *name, struct err *err)
{
    static const char *const names[] = {"none", "mean", "cls", "last"};

    for (int i = 0; name && i <= SLM_POOLING_LAST; i++)
        if (!strcmp(name, names[i])) {
            *pooling = (enum slm_pooling)i;
            return ST_OK;
        }
    if (name)
        return err_set(err, ST_USAGE, "--pooling %s: mean, cls, last or none", name);
    if (!info->has_pooling)
        return err_set(err, ST_USAGE,
                       "%s has no pooling_type, so it was not made for vectors of "
                       "texts; choose one with --pooling: mean, cls, last or none",
                       model);
    if (info->pooling > SLM_POOLING_LAST)
        return err_set(err, ST_UNSUPPORTED,
                       "%s ranks pairs of texts (pooling_type 4), which is not "
                       "supported; --pooling mean, cls or last makes vectors",
                       model);
    *pooling = info->pooling;
    return ST_OK;
}

/* ---- texts ----------------------------------------------------------------------- */

static enum status make_room(struct embed_texts *t, struct err *err)
{
    struct slm_text *v = array_grow(t->v, t->n, &t->cap, sizeof *v);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu texts", t->n + 1);
    t->v = v;
    return ST_OK;
}

/* Takes ids, which are freed on failure. */
static enum status add(struct embed_texts *t, const struct embed_model *e, int32_t *ids,
                       size_t n, bool cut, const char *what, struct err *err)
{
    const size_t most = (size_t)e->planned.n_ctx_train;
    enum status st = ST_OK;

    if (n == 0)
        st = err_set(err, ST_USAGE, "%s has no tokens, so it has no vector", what);
    else if (n > most && !cut)
        st = err_set(err, ST_USAGE,
                     "%s has %zu tokens, and the model's context is %zu; shorten it, "
                     "or use --truncate to drop the rest",
                     what, n, most);
    if (!st)
        st = make_room(t, err);
    if (st) {
        free(ids);
        return st;
    }
    if (n > most) {
        if (tokenizer_adds_eos(e->tok))
            ids[most - 1] = tokenizer_eos(e->tok);
        n = most;
        t->n_cut++;
    }
    t->v[t->n++] = (struct slm_text){ids, (int)n};
    t->n_tokens += (int64_t)n;
    t->n_longest = (int)n > t->n_longest ? (int)n : t->n_longest;
    return ST_OK;
}

enum status embed_add(struct embed_texts *t, const struct embed_model *e,
                      const char *text, size_t len, bool cut, const char *what,
                      struct err *err)
{
    int32_t *ids;
    size_t n;

    if (tokenizer_encode_whole(e->tok, text, len, TOKENIZER_ANY, &ids, &n, err))
        return err->code;
    return add(t, e, ids, n, cut, what, err);
}

enum status embed_add_tokens(struct embed_texts *t, const struct embed_model *e,
                             const int *ids, size_t n, bool cut, const char *what,
                             struct err *err)
{
    int32_t *own;

    for (size_t i = 0; i < n; i++)
        if (ids[i] >= e->planned.n_vocab)
            return err_set(err, ST_USAGE,
                           "token %d is outside the vocabulary of %d tokens", ids[i],
                           e->planned.n_vocab);
    own = malloc((n + 1) * sizeof *own);
    if (!own)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu tokens", n);
    for (size_t i = 0; i < n; i++)
        own[i] = ids[i];
    return add(t, e, own, n, cut, what, err);
}

enum status embed_add_lines(struct embed_texts *t, const struct embed_model *e,
                            const char *path, bool cut, struct err *err)
{
    char *text = NULL, what[300];
    size_t len = 0, line = 0;
    enum status st = textfile_read(path, TEXTFILE_MAX_BYTES, &text, &len, err);

    for (size_t at = 0, n; !st && at < len; at += n + 1) {
        const char *end = memchr(text + at, '\n', len - at);

        n = end ? (size_t)(end - text) - at : len - at;
        snprintf(what, sizeof what, "line %zu of %s", ++line,
                 strcmp(path, "-") ? path : "standard input");
        st = embed_add(t, e, text + at, n && text[at + n - 1] == '\r' ? n - 1 : n, cut,
                       what, err);
        if (!st && interrupted())
            st = err_set(err, ST_INTERRUPTED, "interrupted");
    }
    free(text);
    return st;
}

void embed_texts_free(struct embed_texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        free((void *)t->v[i].tokens);
    free(t->v);
    *t = (struct embed_texts){0};
}

/* ---- passes ---------------------------------------------------------------------- */

/* How many texts from the first on are in a pass. */
static int pass_texts(const struct embed_texts *t, size_t first, int n_batch)
{
    int64_t n_tokens = 0;
    int n = 0;

    for (size_t i = first; i < t->n && n < EMBED_MAX_PASS_TEXTS; i++, n++) {
        n_tokens += t->v[i].n;
        if (n_tokens > n_batch)
            break;
    }
    return n;
}

void embed_sizes(struct session_params *params, const struct embed_texts *t,
                 int n_batch)
{
    n_batch = n_batch > t->n_longest ? n_batch : t->n_longest;
    params->setup.n_batch = n_batch;
    params->n_ctx = t->n_longest;
    params->n_logits = 1;
    params->n_sequences = 1;
    for (size_t i = 0, n; i < t->n; i += n) {
        size_t positions = 0;

        n = (size_t)pass_texts(t, i, n_batch);
        for (size_t k = 0; k < n; k++)
            positions += ((size_t)t->v[i + k].n + SLM_PAGE - 1) / SLM_PAGE * SLM_PAGE;
        if ((int)n > params->n_sequences)
            params->n_sequences = (int)n;
        if (positions > params->n_pool)
            params->n_pool = positions;
    }
}

void embed_normalise(float *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    for (size_t i = 0; sum > 0 && i < n; i++)
        v[i] = (float)((double)v[i] / sqrt(sum));
}

struct run {
    struct slm *m;
    enum slm_pooling pooling;
    bool normalise;
    embed_take_fn *take;
    void *arg;
    float *vectors; /* of one text */
    size_t n;       /* floats of a vector */
};

/* The vectors of texts first .. first + n - 1, which a pass has made. */
static enum status take_texts(struct run *r, const struct embed_texts *t, size_t first,
                              size_t n, struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0, at = 0; !st && i < n; i++) {
        const bool whole = r->pooling != SLM_POOLING_NONE;
        const size_t n_vectors = whole ? 1 : (size_t)t->v[first + i].n;

        for (size_t k = 0; k < n_vectors; k++) {
            float *v = r->vectors + k * r->n;

            memcpy(v, slm_vector(r->m, at + k), r->n * sizeof *v);
            if (r->normalise)
                embed_normalise(v, r->n);
        }
        at += n_vectors;
        st = r->take(r->arg, first + i, r->vectors, n_vectors, r->n, err);
    }
    return st;
}

enum status embed_run(struct slm *m, const struct embed_texts *t,
                      enum slm_pooling pooling, bool normalised, embed_take_fn *take,
                      void *arg, struct err *err)
{
    const struct slm_info *info = slm_info(m);
    const bool whole = pooling != SLM_POOLING_NONE;
    struct run r = {.m = m,
                    .pooling = pooling,
                    .normalise = normalised,
                    .take = take,
                    .arg = arg,
                    .n = (size_t)(whole ? info->n_vector : info->n_embd)};
    struct progress progress;
    enum status st = ST_OK;
    int64_t n_done = 0;

    r.vectors = malloc((whole ? 1 : (size_t)t->n_longest) * r.n * sizeof *r.vectors);
    if (!r.vectors)
        return err_set(err, ST_NO_MEMORY, "no memory for vectors of %zu numbers", r.n);
    progress_begin(&progress, "embedding");
    for (size_t i = 0; !st && i < t->n;) {
        const int n = pass_texts(t, i, info->n_batch);

        st = slm_embed(m, t->v + i, n, pooling, err);
        if (!st)
            st = take_texts(&r, t, i, (size_t)n, err);
        for (int k = 0; k < n; k++)
            n_done += t->v[i + (size_t)k].n;
        i += (size_t)n;
        progress_update(&progress, (double)n_done / (double)t->n_tokens, NULL);
        if (!st && interrupted())
            st = err_set(err, ST_INTERRUPTED, "interrupted");
    }
    progress_end(&progress);
    free(r.vectors);
    return st;
}

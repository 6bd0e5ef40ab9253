/* SPDX-License-Identifier: MIT
 *
 * importance.c - run a model over a text and collect an importance matrix
 */
#include "harness/model/importance.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/interrupt.h"
#include "harness/base/progress.h"

struct collector {
    struct imatrix *im;
    pthread_mutex_t lock; /* threads of the pool report their rows at the same time */
    struct err err;       /* the first */
};

/* x[n] is about to be multiplied with a slice of a matrix. */
static void add_input(void *arg, const char *name, size_t n_slices, size_t slice,
                      const float *x, size_t n)
{
    struct collector *c = arg;
    struct imatrix_entry *e = NULL;
    double sum = 0;

    pthread_mutex_lock(&c->lock);
    if (!c->err.code && !imatrix_entry(c->im, &e, name, n, n_slices, &c->err)) {
        double *sum2 = e->sum2 + slice * n;

        for (size_t i = 0; i < n; i++) {
            sum2[i] += (double)x[i] * (double)x[i];
            sum += (double)x[i] * (double)x[i];
        }
        e->counts[slice]++;
        if (!isfinite(sum))
            err_set(
                &c->err, ST_INPUT,
                "the input of %s is no number: the model does not work on this text",
                name);
    }
    pthread_mutex_unlock(&c->lock);
}

static enum status eval_chunk(struct slm *m, const struct importance_text *text,
                              size_t chunk, int32_t *ids, int32_t bos, struct err *err)
{
    memcpy(ids, text->ids + chunk * text->ctx, text->ctx * sizeof *ids);
    if (bos >= 0)
        ids[0] = bos;
    if (slm_info(m)->is_encoder)
        return slm_embed(m, &(struct slm_text){ids, (int)text->ctx}, 1,
                         SLM_POOLING_MEAN, err);
    slm_truncate(m, 0);
    return slm_eval(m, ids, text->ctx, SLM_LOGITS_NONE, err);
}

enum status importance_collect(struct imatrix *im, struct slm *m,
                               const struct importance_text *text, size_t *done,
                               struct err *err)
{
    struct tokenizer *t = NULL;
    struct collector c = {.im = im, .lock = PTHREAD_MUTEX_INITIALIZER, .err = ERR_INIT};
    int32_t *ids = malloc(text->ctx * sizeof *ids);
    struct progress bar;
    enum status st = tokenizer_open(&t, slm_gguf(m), err);
    int32_t bos = -1;

    *done = 0;
    if (!st && !ids)
        st = err_set(err, ST_NO_MEMORY, "no memory for a chunk of the text");
    if (!st && tokenizer_adds_bos(t))
        bos = tokenizer_bos(t);
    slm_set_activation_hook(m, add_input, &c);
    progress_begin(&bar, "reading");
    while (!st && *done < text->n_chunks && !interrupted()) {
        char detail[64];

        st = eval_chunk(m, text, text->from_chunk + *done, ids, bos, err);
        if (!st && c.err.code)
            st = err_set(err, c.err.code, "%s", c.err.msg);
        if (st)
            break;
        ++*done;
        snprintf(detail, sizeof detail, "chunk %zu of %zu", *done, text->n_chunks);
        progress_update(&bar, (double)*done / (double)text->n_chunks, detail);
    }
    progress_end(&bar);
    slm_set_activation_hook(m, NULL, NULL);
    tokenizer_close(t);
    free(ids);
    return st;
}

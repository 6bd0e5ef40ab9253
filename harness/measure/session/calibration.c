/* SPDX-License-Identifier: MIT
 *
 * calibration.c - texts as chunks, read by a model whose inputs an importance matrix
 * collects; matrices added, the file
 */
#include "harness/measure/session/calibration.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/base/textfile.h"

/* ---- input ----------------------------------------------------------------------- */

static enum status read_tokens(const struct calibration *c, struct slm *m,
                               int32_t **ids, size_t *n, struct err *err)
{
    struct tokenizer *t = NULL;
    char *text = NULL;
    size_t len = 0;
    enum status st = textfile_read(c->text, TEXTFILE_MAX_BYTES, &text, &len, err);

    if (!st)
        st = tokenizer_open(&t, slm_gguf(m), err);
    if (!st) {
        tokenizer_stop_when(t, interrupted);
        st = tokenizer_encode(t, text, len, tokenizer_adds_bos(t), false, ids, n, err);
    }
    tokenizer_close(t);
    free(text);
    return st;
}

/* Add one imatrix to another. */
static enum status merge(struct imatrix *to, const struct imatrix *from,
                         struct err *err)
{
    for (size_t i = 0; i < imatrix_n_entries(from); i++) {
        const struct imatrix_entry *f = imatrix_entry_at(from, i);
        struct imatrix_entry *t;

        if (imatrix_entry(to, &t, f->name, f->n_cols, f->n_slices, err))
            return err->code;
        for (uint64_t j = 0; j < f->n_cols * f->n_slices; j++)
            t->sum2[j] += f->sum2[j];
        for (uint64_t s = 0; s < f->n_slices; s++)
            t->counts[s] += f->counts[s];
    }
    for (size_t i = 0; i < imatrix_n_datasets(from); i++)
        if (imatrix_add_dataset(to, imatrix_dataset(from, i), err))
            return err->code;
    imatrix_add_chunks(to, imatrix_n_chunks(from));
    return ST_OK;
}

static enum status merge_files(struct imatrix *im, const struct calibration *c,
                               struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < c->in.n && !st; i++) {
        struct imatrix *one = NULL;

        st = imatrix_read(&one, c->in.v[i], err);
        if (!st)
            st = merge(im, one, err);
        imatrix_free(one);
    }
    return st;
}

static enum status choose_chunks(const struct calibration *c,
                                 struct importance_text *text, struct err *err)
{
    const size_t n = text->n_ids / text->ctx;

    text->from_chunk = (size_t)c->from_chunk;
    if (text->from_chunk >= n)
        return err_set(err, ST_USAGE,
                       "%s has %zu tokens, which is %zu chunk%s of %zu, none from %zu "
                       "on; take a longer text or a smaller --ctx",
                       c->text, text->n_ids, n, n == 1 ? "" : "s", text->ctx,
                       text->from_chunk);
    text->n_chunks = n - text->from_chunk;
    if (c->n_chunks && (size_t)c->n_chunks < text->n_chunks)
        text->n_chunks = (size_t)c->n_chunks;
    return ST_OK;
}

static enum status check_output(struct calibration *c, struct err *err)
{
    struct path_list inputs = {0};
    enum status st = session_inputs(&inputs, &c->session, err);

    if (!st)
        st = path_list_add(&inputs, c->text, err);
    for (size_t i = 0; i < c->in.n && !st; i++)
        st = path_list_add(&inputs, c->in.v[i], err);
    if (!st)
        st = path_list_check_output(&inputs, c->out, err);
    path_list_free(&inputs);
    return st;
}

/* ---- collecting ------------------------------------------------------------------ */

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

/* Add the inputs of all matrices of m to im, with a progress line. *done is the number
 * of chunks that went in, also where an interrupt ended the work, which is no error
 * here. */
static enum status read_chunks(struct imatrix *im, struct slm *m,
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

/* ---- all ------------------------------------------------------------------------- */

static enum status collect(const struct calibration *c, struct slm *m,
                           struct imatrix *im, struct calibration_result *r,
                           struct err *err)
{
    const uint64_t begin = clock_ns();
    int32_t *ids = NULL;
    enum status st;

    *r = (struct calibration_result){.text = {.ctx = (size_t)c->session.n_ctx}};
    st = read_tokens(c, m, &ids, &r->text.n_ids, err);
    r->text.ids = ids;
    if (!st)
        st = choose_chunks(c, &r->text, err);
    if (!st)
        st = read_chunks(im, m, &r->text, &r->done, err);
    free(ids);
    r->text.ids = NULL;
    if (!st && r->done == 0)
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    if (!st)
        st = imatrix_add_dataset(im, basename(c->text), err);
    if (st)
        return st;
    imatrix_add_chunks(im, (uint32_t)r->done);
    r->seconds = (double)(clock_ns() - begin) * 1e-9;
    return imatrix_write(im, c->out, err);
}

enum status calibrate(struct imatrix **im, struct calibration_result *r,
                      struct calibration *c, struct err *err)
{
    struct imatrix *made = NULL;
    struct slm *m = NULL;
    enum status st = ST_OK;

    if (check_output(c, err) || imatrix_new(&made, (uint32_t)c->session.n_ctx, err) ||
        merge_files(made, c, err) || session_open(&m, &c->session, NULL, err) ||
        collect(c, m, made, r, err))
        st = err->code;
    slm_close(m);
    if (st) {
        imatrix_free(made);
        return st;
    }
    *im = made;
    return r->done < r->text.n_chunks ? err_set(err, ST_INTERRUPTED, "interrupted")
                                      : ST_OK;
}

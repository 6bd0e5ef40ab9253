/* SPDX-License-Identifier: MIT
 *
 * quality_job.c - chunks through prefill, logits through the pool
 *
 * The first half of a chunk is only read; the second half goes in pieces whose
 * logits fit PIECE_BYTES, each scored before the next one overwrites them.
 */
#include "harness/measure/quality/quality_job.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "harness/base/interrupt.h"

#define PIECE_BYTES                                                   \
    ((size_t)64 << 20) /* a pass of 110 tokens with 152 k logits each \
                        */

struct runner {
    struct quality_job *job;
    struct slm *m;
    size_t n_vocab, n_per_chunk, n_piece;
    size_t row_bytes;
    unsigned char *rows;         /* [n_piece][row_bytes] */
    struct quality_score *score; /* [n_per_chunk] */
    const int32_t *next;         /* tokens that the piece's logits are for */
    size_t n, first;             /* of the piece: how many, and the first's score */
    bool make;                   /* rows, and not scores */
    atomic_int n_bad;
};

static struct quality_row *row_at(const struct runner *r, size_t i)
{
    return (struct quality_row *)(void *)(r->rows + i * r->row_bytes);
}

/* ---- one piece ------------------------------------------------------------------- */

static bool score_one(const struct runner *r, size_t i)
{
    const float *logits = slm_logits(r->m, i);

    if (r->make)
        return quality_row_make(row_at(r, i), logits, r->n_vocab, r->next[i]);
    if (!r->job->rows)
        return quality_score_alone(&r->score[r->first + i], logits, r->n_vocab,
                                   r->next[i]);
    return quality_score_against(&r->score[r->first + i], row_at(r, i), logits,
                                 r->n_vocab, r->next[i]);
}

static void score_piece(void *arg, int member, int n_members)
{
    struct runner *r = arg;

    (void)member, (void)n_members;
    for (size_t i; (i = thread_pool_next(slm_thread_pool(r->m), 1)) < r->n;)
        if (!score_one(r, i))
            atomic_fetch_add(&r->n_bad, 1);
}

static enum status read_rows(struct runner *r, size_t first, struct err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        struct quality_row *row = row_at(r, i);

        if (quality_store_read(r->job->rows, first + i, row, err))
            return err->code;
        if (row->top < 0 || (size_t)row->top >= r->n_vocab)
            return err_set(err, ST_INPUT, "%.300s is damaged; remove it",
                           quality_store_path(r->job->rows));
    }
    return ST_OK;
}

static enum status append_rows(struct runner *r, struct err *err)
{
    for (size_t i = 0; i < r->n; i++)
        if (quality_store_append(r->job->rows, row_at(r, i), err))
            return err->code;
    return ST_OK;
}

/* Evaluate ids[n] and score them; their scores begin at `first` of the chunk. */
static enum status run_piece(struct runner *r, const int32_t *ids, size_t n,
                             size_t chunk, size_t first, struct err *err)
{
    enum status st = slm_eval(r->m, ids, n, SLM_LOGITS_ALL, err);

    r->next = ids + 1;
    r->n = n;
    r->first = first;
    if (st == ST_OK && !r->make && r->job->rows)
        st = read_rows(r, chunk * r->n_per_chunk + first, err);
    if (st)
        return st;
    thread_pool_run(slm_thread_pool(r->m), score_piece, r);
    if (r->n_bad)
        return err_set(err, ST_INPUT,
                       "%s gives logits that are no numbers in chunk %zu of %s",
                       r->job->model->ref.text, chunk + 1, r->job->text->name);
    return r->make ? append_rows(r, err) : ST_OK;
}

/* ---- one chunk ------------------------------------------------------------------- */

static enum status stop_if_interrupted(struct err *err)
{
    return interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted") : ST_OK;
}

static void show(const struct runner *r, size_t chunk, double within)
{
    const struct quality_job *job = r->job;
    char detail[160];

    snprintf(detail, sizeof detail, "%s, chunk %zu of %zu", job->name, chunk + 1,
             job->text->n_chunks);
    progress_update(job->progress,
                    (*job->work_done + within * (double)job->model->n_params) /
                        job->work_total,
                    detail);
}

static enum status run_chunk(struct runner *r, size_t chunk, struct err *err)
{
    const size_t ctx = (size_t)r->job->text->ctx, half = ctx / 2;
    const int32_t *ids = r->job->text->ids + chunk * ctx;
    const size_t n_pieces = (r->n_per_chunk + r->n_piece - 1) / r->n_piece;
    enum status st;

    show(r, chunk, 0);
    slm_truncate(r->m, 0);
    st = slm_eval(r->m, ids, half, SLM_LOGITS_NONE, err);
    for (size_t k = 0, at = 0; k < n_pieces && st == ST_OK; k++) {
        /* equal pieces: a short last one would cost as much as a long one */
        const size_t end = (k + 1) * r->n_per_chunk / n_pieces;

        st = stop_if_interrupted(err);
        if (st == ST_OK)
            st = run_piece(r, ids + half + at, end - at, chunk, at, err);
        at = end;
        show(r, chunk, 0.5 + 0.5 * (double)end / (double)r->n_per_chunk);
    }
    if (st == ST_OK && !r->make)
        st = quality_store_append(r->job->scores, r->score, err);
    if (st == ST_OK)
        *r->job->work_done += (double)r->job->model->n_params;
    return st ? st : stop_if_interrupted(err);
}

/* ---- all of them ----------------------------------------------------------------- */

static enum status open_model(struct runner *r, struct err *err)
{
    struct session_params params = r->job->session;
    const size_t most = PIECE_BYTES / sizeof(float) / r->n_vocab;

    r->n_piece = r->n_per_chunk;
    if (r->n_piece > (size_t)SLM_DEFAULT_BATCH)
        r->n_piece = SLM_DEFAULT_BATCH;
    if (params.setup.n_batch && r->n_piece > (size_t)params.setup.n_batch)
        r->n_piece = (size_t)params.setup.n_batch;
    if (r->n_piece > most)
        r->n_piece = most ? most : 1;
    params.setup.model = r->job->model->ref;
    params.n_ctx = r->job->text->ctx;
    params.n_logits = (int)r->n_piece;
    r->rows = calloc(r->n_piece, r->row_bytes);
    r->score = calloc(r->n_per_chunk, sizeof *r->score);
    if (!r->rows || !r->score)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows of %zu bytes",
                       r->n_piece, r->row_bytes);
    progress_end(r->job->progress);
    return session_open(&r->m, &params, &r->job->n_threads, err);
}

static enum status run_chunks(struct quality_job *job, bool make, size_t first,
                              struct err *err)
{
    struct runner r = {.job = job,
                       .n_vocab = (size_t)job->model->n_vocab,
                       .n_per_chunk = quality_per_chunk(job->text->ctx),
                       .row_bytes = quality_row_bytes((size_t)job->model->n_vocab),
                       .make = make};
    enum status st = ST_OK;

    if (first < job->text->n_chunks)
        st = open_model(&r, err);
    for (size_t i = first; i < job->text->n_chunks && st == ST_OK; i++)
        st = run_chunk(&r, i, err);
    slm_close(r.m);
    free(r.rows);
    free(r.score);
    return st;
}

size_t quality_job_chunks_of_rows(const struct quality_job *job)
{
    return quality_store_n(job->rows) / quality_per_chunk(job->text->ctx);
}

enum status quality_job_make_rows(struct quality_job *job, struct err *err)
{
    const size_t n = quality_job_chunks_of_rows(job);

    if (quality_store_cut(job->rows, n * quality_per_chunk(job->text->ctx), err))
        return err->code;
    return run_chunks(job, true, n, err);
}

enum status quality_job_score(struct quality_job *job, struct err *err)
{
    return run_chunks(job, false, quality_store_n(job->scores), err);
}

enum status quality_job_copy_scores(struct quality_job *job, struct err *err)
{
    const size_t n = quality_per_chunk(job->text->ctx);
    struct quality_row *row = malloc(quality_row_bytes((size_t)job->model->n_vocab));
    struct quality_score *score = calloc(n, sizeof *score);
    enum status st = ST_OK;

    if (!row || !score)
        st = err_set(err, ST_NO_MEMORY, "no memory for %zu scores", n);
    for (size_t c = quality_store_n(job->scores);
         c < job->text->n_chunks && st == ST_OK; c++) {
        for (size_t i = 0; i < n && st == ST_OK; i++) {
            st = quality_store_read(job->rows, c * n + i, row, err);
            if (st == ST_OK)
                score[i] = (struct quality_score){.nll = row->nll, .same = 1};
        }
        if (st == ST_OK)
            st = quality_store_append(job->scores, score, err);
    }
    free(row);
    free(score);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * forward_profile.c - laps of each thread, and their sums
 */
#include "engine/forward/forward_impl.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"

void fwd_lap_take(struct fwd_laps *laps, enum slm_op op, enum kern_format fmt,
                  bool waited)
{
    const uint64_t now = clock_ns();
    struct fwd_lap *lap = &laps->of[op][fmt];

    *(waited ? &lap->wait_ns : &lap->work_ns) += now - laps->last_ns;
    laps->last_ns = now;
    laps->op = op;
    laps->fmt = fmt;
}

enum status forward_profile_start(struct forward *f, struct err *err)
{
    if (!f->laps)
        f->laps = calloc((size_t)f->n_threads, sizeof *f->laps);
    if (!f->laps)
        return err_set(err, ST_NO_MEMORY, "no memory for a profile of %d threads",
                       f->n_threads);
    memset(f->laps, 0, (size_t)f->n_threads * sizeof *f->laps);
    for (int i = 0; i < f->n_threads; i++)
        f->threads[i].laps = &f->laps[i];
    f->n_profiled = 0;
    f->n_timed = 1;
    return ST_OK;
}

void fwd_profile_begin(struct forward *f)
{
    const uint64_t now = clock_ns();

    f->n_timed = thread_pool_size(f->pool);
    for (int i = 0; i < f->n_timed; i++)
        f->laps[i].last_ns = now;
}

/* Time that a thread has not recorded is waiting for the others to end. */
void fwd_profile_end(struct forward *f)
{
    for (int i = 0; i < f->n_timed; i++)
        fwd_lap_take(&f->laps[i], f->laps[i].op, f->laps[i].fmt, true);
    f->n_profiled++;
}

static void sum_up(const struct forward *f, int op, int fmt,
                   struct slm_profile_row *row)
{
    *row =
        (struct slm_profile_row){.op = (enum slm_op)op, .fmt = (enum kern_format)fmt};
    for (int i = 0; i < f->n_threads; i++) {
        const struct fwd_lap *lap = &f->laps[i].of[op][fmt];

        row->work_ns += (double)lap->work_ns / f->n_timed;
        row->wait_ns += (double)lap->wait_ns / f->n_timed;
        row->bytes += lap->bytes;
        row->macs += lap->macs;
    }
}

void forward_profile_read(const struct forward *f, struct slm_profile *out)
{
    out->n_passes = f->laps ? f->n_profiled : 0;
    out->n_rows = 0;
    for (int op = 0; out->n_passes && op < SLM_N_OPS; op++)
        for (int fmt = 0; fmt <= KERN_N_FMT; fmt++) {
            struct slm_profile_row *row = &out->rows[out->n_rows];

            sum_up(f, op, fmt, row);
            out->n_rows += row->work_ns + row->wait_ns > 0;
        }
}

const char *slm_op_name(enum slm_op op)
{
    static const char *const names[SLM_N_OPS] = {
        [SLM_OP_EMBED] = "embed",
        [SLM_OP_READ] = "read",
        [SLM_OP_PREPARE] = "norm, quantise",
        [SLM_OP_QKV] = "q, k, v",
        [SLM_OP_ATTENTION] = "attention",
        [SLM_OP_ATTN_OUT] = "attn out",
        [SLM_OP_ROUTER] = "router",
        [SLM_OP_GATE_UP] = "gate, up",
        [SLM_OP_DOWN] = "down",
        [SLM_OP_OUTPUT] = "output",
    };

    return names[op];
}

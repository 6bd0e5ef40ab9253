/* SPDX-License-Identifier: MIT
 *
 * point_chunk.c - steps in which sequences are decoded and another one's prompt is read
 */
#include <stdlib.h>

#include "harness/measure/worker/point/point_worker.h"

/* Tokens of a prompt, unless a chunk has more. */
#define PROMPT 512

int point_chunk_prompt(const struct point *p)
{
    return p->n_chunk ? (PROMPT + p->n_chunk - 1) / p->n_chunk * p->n_chunk : 0;
}

double point_step_bytes(const struct point *p, const struct slm_info *info)
{
    const double weights = (double)info->weight_token_bytes;
    const int mean = (point_chunk_prompt(p) + p->n_chunk) / 2; /* end of a chunk */
    double bytes = slm_bytes_per_step(info, p->ctx, p->n_sequences);

    if (p->n_chunk)
        bytes += slm_bytes_per_pass(info, p->n_sequences + p->n_chunk) -
                 slm_bytes_per_pass(info, p->n_sequences) +
                 (double)slm_bytes_per_token(info, mean) - weights;
    return bytes;
}

double point_step_ops(const struct point *p, const struct slm_info *info)
{
    const double head = (double)info->output_macs;
    const double body = (double)info->weight_token_macs - head;
    const double n = p->n_sequences;
    /* only a prompt's last token has logits */
    const double chunks = p->n_chunk ? (double)p->n_chunk / point_chunk_prompt(p) : 0;

    return 2 * (body * (n + p->n_chunk) + head * (n + chunks));
}

enum status point_chunk_begin(struct point_worker *c, struct err *err)
{
    struct slm_stream streamed;

    /* A profile, and what was read of streamed weights, are of samples alone. */
    c->measured.takes_plain =
        c->p->n_chunk && !c->p->profile && !slm_stream_read(c->model, &streamed);
    if (!c->measured.takes_plain)
        return ST_OK;
    free(c->plain_ms);
    c->plain_ms = calloc((size_t)c->p->n_tokens, 2 * sizeof *c->plain_ms);
    return c->plain_ms
               ? ST_OK
               : err_set(err, ST_NO_MEMORY, "no memory for %d steps", c->p->n_tokens);
}

void point_chunk_sample(struct point_worker *c)
{
    if (c->measured.takes_plain)
        c->plain_ms[c->n_samples] = (double)c->measured.plain_ns * 1e-6;
}

void point_chunk_end(struct point_worker *c)
{
    if (c->measured.takes_plain && c->n_samples)
        c->step_plain_ms =
            stats_median(c->plain_ms, c->n_samples, c->plain_ms + c->n_samples);
    c->measured.takes_plain = false;
    free(c->plain_ms);
    c->plain_ms = NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * rewind.c - which states to restart from, and whether windows are still there
 */
#include "engine/kv/rewind.h"

#include <stdlib.h>
#include <string.h>

#include "engine/kv/checkpoint.h"

enum status rewind_open(struct rewind *r, const struct kvcache *kv, int seq, int n_ctx,
                        struct err *err)
{
    const bool endless = kv->shape.n_recent > 0;

    r->seq = seq;
    r->n_ctx = n_ctx;
    if (kv->shape.n_window_layers && (endless || kv->n_ring < (size_t)n_ctx))
        r->n_ring = (int)kv->n_ring;
    if (endless)
        r->n_recent = (int)(kv->n_slots - kv->n_kept);
    if (kv->shape.n_states == 0 && r->n_ring == 0 && r->n_recent == 0 &&
        kv->shape.n_checkpoints == 0)
        return ST_OK;
    r->tokens = calloc((size_t)n_ctx, sizeof *r->tokens);
    return r->tokens ? ST_OK
                     : err_set(err, ST_NO_MEMORY,
                               "no memory for the %d tokens of a context", n_ctx);
}

void rewind_close(struct rewind *r)
{
    free(r->tokens);
}

/* The least position whose next token sees nothing that rings have lost. The first
 * n_kept are no part of one. */
static int min_with_windows(const struct rewind *r, const struct kvcache *kv)
{
    const int lost = r->n_ring ? r->end - r->n_ring : 0;
    const int own = lost > r->begin ? lost : r->begin, other = r->end - r->n_recent;
    int least = 0;

    if (own > 0)
        least = own + kv->shape.window - 1;
    if (r->n_recent && other > (int)kv->n_kept &&
        other + kv->shape.n_recent - 1 > least)
        least = other + kv->shape.n_recent - 1;
    return least;
}

bool rewind_has_window(const struct rewind *r, const struct kvcache *kv, int n_past)
{
    return n_past >= min_with_windows(r, kv);
}

int rewind_min(const struct rewind *r, const struct kvcache *kv, int n_past)
{
    const int least = min_with_windows(r, kv);

    if (!r->tokens || r->known == 0)
        return 0;
    if (kv->shape.n_states == 0)
        return least < n_past ? least : n_past;
    return r->saved_at > 0 && r->saved_at >= r->known && r->saved_at >= least
               ? r->saved_at
               : n_past;
}

/* States of n_past, or of an earlier position. */
static void return_states(struct rewind *r, struct kvcache *kv, int n_past)
{
    if (r->saved_at > 0 && r->saved_at <= n_past) {
        kvcache_restore_states(kv, r->seq);
        r->at = r->saved_at;
    } else {
        kvcache_clear_states(kv, r->seq);
        r->at = r->saved_at = 0;
    }
    r->single = false;
}

int rewind_start(const struct rewind *r, const struct kvcache *kv, int n_past)
{
    int at = n_past;

    if (!r->tokens)
        return n_past;
    if (kv->shape.n_states && r->at != n_past)
        at = r->saved_at > 0 && r->saved_at <= n_past ? r->saved_at : 0;
    return rewind_has_window(r, kv, at) ? at : 0;
}

int rewind_to(struct rewind *r, struct kvcache *kv, int n_past)
{
    if (!r->tokens)
        return n_past;
    if (kv->shape.n_states == 0)
        r->at = n_past;
    else if (r->at != n_past)
        return_states(r, kv, n_past);
    if (!rewind_has_window(r, kv, r->at)) {
        if (kv->shape.n_states)
            return_states(r, kv, 0);
        r->at = r->end = 0;
    }
    if (r->at == 0)
        r->known = r->begin = 0;
    return r->at;
}

static void save(struct rewind *r, struct kvcache *kv)
{
    if (r->at == r->saved_at || kv->shape.n_states == 0)
        return;
    kvcache_save_states(kv, r->seq);
    r->saved_at = r->at;
}

void rewind_pass(struct rewind *r, struct kvcache *kv, const int32_t *tokens, int n,
                 int n_again)
{
    if (!r->tokens)
        return;
    if (n_again)
        r->saved_at = r->at + n_again;
    else if (n > 1 || !r->single)
        save(r, kv);
    for (int i = 0; i < n; i++) /* they may be these */
        r->tokens[(r->at + i) % r->n_ctx] = tokens[i];
    r->at += n;
    if (r->known < r->at - r->n_ctx)
        r->known = r->at - r->n_ctx;
    r->end = r->at > r->end ? r->at : r->end;
    r->single = n == 1;
}

void rewind_forget(struct rewind *r)
{
    r->at = -1;
    r->saved_at = 0;
}

int rewind_kept(const struct rewind *r, const struct kvcache *kv, int n_past)
{
    const bool copied = kv->shape.n_states && r->saved_at <= n_past;
    const int n = r->at == n_past ? n_past : copied ? r->saved_at : 0;

    return rewind_has_window(r, kv, n) ? n : 0;
}

const float *rewind_states(const struct rewind *r, const struct kvcache *kv, int n_past)
{
    if (kv->shape.n_states == 0)
        return NULL;
    return kvcache_state(kv, r->seq, r->at == n_past ? 0 : kv->shape.n_states);
}

void rewind_load(struct rewind *r, struct kvcache *kv, int place, const int32_t *tokens,
                 int n_past)
{
    memcpy(r->tokens, tokens, (size_t)n_past * sizeof *tokens);
    r->begin = (int)checkpoint_load(kv, place, r->seq, (size_t)n_past);
    r->at = r->end = n_past;
    r->known = r->saved_at = 0;
    r->single = false;
}

void rewind_fill(struct rewind *r, struct kvcache *kv, int n_past, bool kept)
{
    /* whole panels were written */
    const int end = (int)((n_past + KVCACHE_PANEL - 1) / KVCACHE_PANEL * KVCACHE_PANEL);

    if (!r->tokens)
        return;
    r->at = n_past;
    r->end = kept && r->end > end ? r->end : end;
    r->begin = kept ? r->begin : 0;
    r->single = false;
    save(r, kv);
}

void rewind_fork(struct rewind *to, const struct rewind *from)
{
    int32_t *tokens = to->tokens;
    const int seq = to->seq;

    if (tokens)
        memcpy(tokens, from->tokens, (size_t)from->n_ctx * sizeof *tokens);
    *to = *from;
    to->tokens = tokens;
    to->seq = seq;
}

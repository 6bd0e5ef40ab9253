/* SPDX-License-Identifier: MIT
 *
 * rewind.c - which states to restart from
 */
#include "engine/kv/rewind.h"

#include <stdlib.h>
#include <string.h>

enum status rewind_open(struct rewind *r, const struct kvcache *kv, int n_ctx,
                        struct err *err)
{
    if (kv->shape.n_states == 0)
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

int rewind_to(struct rewind *r, struct kvcache *kv, int n_past)
{
    if (!r->tokens || r->at == n_past)
        return n_past;
    if (r->saved_at > 0 && r->saved_at <= n_past) {
        kvcache_restore_states(kv);
        r->at = r->saved_at;
    } else {
        kvcache_clear_states(kv);
        r->at = r->saved_at = 0;
    }
    r->single = false;
    return r->at;
}

static void save(struct rewind *r, struct kvcache *kv)
{
    if (r->at == r->saved_at)
        return;
    kvcache_save_states(kv);
    r->saved_at = r->at;
}

void rewind_pass(struct rewind *r, struct kvcache *kv, const int32_t *tokens, int n)
{
    if (!r->tokens)
        return;
    if (n > 1 || !r->single)
        save(r, kv);
    memmove(r->tokens + r->at, tokens, (size_t)n * sizeof *tokens);
    r->at += n;
    r->single = n == 1;
}

void rewind_fill(struct rewind *r, struct kvcache *kv, int n_past)
{
    if (!r->tokens)
        return;
    r->at = n_past;
    r->single = false;
    save(r, kv);
}

/* SPDX-License-Identifier: MIT
 *
 * kvcopy.c - copies of what a sequence has in the cache: states, forks, checkpoints
 */
#include <string.h>

#include "engine/kv/checkpoint.h"

/* ---- states ---------------------------------------------------------------------- */

void kvcache_save_states(struct kvcache *kv, int seq)
{
    memcpy(kvcache_state(kv, seq, kv->shape.n_states), kvcache_state(kv, seq, 0),
           kvcache_state_bytes(&kv->shape));
}

void kvcache_restore_states(struct kvcache *kv, int seq)
{
    memcpy(kvcache_state(kv, seq, 0), kvcache_state(kv, seq, kv->shape.n_states),
           kvcache_state_bytes(&kv->shape));
}

void kvcache_clear_states(struct kvcache *kv, int seq)
{
    memset(kvcache_state(kv, seq, 0), 0, kvcache_state_bytes(&kv->shape));
}

/* ---- forks ----------------------------------------------------------------------- */

/* Rings, or states, are one after another. */
static void copy_ring(struct kvcache *kv, int from, int to, int layer, int head)
{
    const struct kvcache_heads *h = kvcache_heads(kv, layer);
    const size_t panels = kv->n_ring / KVCACHE_PANEL;
    unsigned char *keys = kvcache_head(kv, layer, head);
    unsigned char *values =
        keys + kvcache_places(kv, layer) / KVCACHE_PANEL * h->key_bytes;

    memcpy(keys + (size_t)to * panels * h->key_bytes,
           keys + (size_t)from * panels * h->key_bytes, panels * h->key_bytes);
    memcpy(values + (size_t)to * panels * h->value_bytes,
           values + (size_t)from * panels * h->value_bytes, panels * h->value_bytes);
}

void kvcache_fork(struct kvcache *kv, int from, int to, size_t n_past)
{
    const size_t seen = n_past < kv->n_slots ? n_past : kv->n_slots;

    if (kv->pages) {
        kvpages_cut(kv->pages, to, 0);
        for (size_t i = 0; i * KVCACHE_PAGE < seen; i++)
            kvpages_share(kv->pages, to, i, *kvpages_entry(kv->pages, from, i));
    }
    for (int layer = kvcache_n_whole(kv); layer < kv->shape.n_layers; layer++)
        for (int head = 0; head < kvcache_heads(kv, layer)->n; head++)
            copy_ring(kv, from, to, layer, head);
    if (kv->shape.n_states)
        memcpy(kvcache_state(kv, to, 0), kvcache_state(kv, from, 0),
               2 * kvcache_state_bytes(&kv->shape));
}

/* ---- checkpoints ----------------------------------------------------------------- */

/* Bytes after which a place or its panels begin. */
#define PLACE_UNIT 64

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Panels that hold a window, however it lies in them; at most those of a context. */
static size_t n_panels(const struct kvcache_shape *shape, int n_ctx)
{
    const size_t all = round_up((size_t)n_ctx, KVCACHE_PANEL) / KVCACHE_PANEL;
    const size_t seen = ((size_t)shape->window + 2 * KVCACHE_PANEL - 3) / KVCACHE_PANEL;

    if (shape->n_window_layers == 0)
        return 0;
    return seen < all ? seen : all;
}

uint64_t checkpoint_bytes(const struct kvcache_shape *shape, int n_ctx)
{
    const size_t states = round_up(kvcache_state_bytes(shape), PLACE_UNIT);

    return states + round_up(n_panels(shape, n_ctx) * KVCACHE_PANEL *
                                 kvcache_window_bytes(shape),
                             PLACE_UNIT);
}

float *checkpoint_states(const struct kvcache *kv, int place)
{
    return (float *)((unsigned char *)kv->kept.base +
                     (size_t)place * checkpoint_bytes(&kv->shape, kv->n_ctx));
}

/* The first position of the panels with the window before pos. */
static size_t window_begin(const struct kvcache *kv, size_t pos)
{
    const size_t hidden = (size_t)kv->shape.window - 1;

    return pos > hidden ? (pos - hidden) / KVCACHE_PANEL * KVCACHE_PANEL : 0;
}

/* Between a place and the ring, from one to the other. */
static void copy_run(unsigned char *place, unsigned char *ring, size_t n, bool load)
{
    memcpy(load ? ring : place, load ? place : ring, n);
}

/* The panels of one head; *at in the place moves behind them. */
static void copy_window(struct kvcache *kv, unsigned char **at, int seq, int layer,
                        int head, size_t pos, bool load)
{
    const struct kvcache_heads *h = kvcache_heads(kv, layer);
    const size_t begin = window_begin(kv, pos);
    const size_t end = round_up(pos, KVCACHE_PANEL);
    const size_t panels = n_panels(&kv->shape, kv->n_ctx);
    unsigned char *values = *at + panels * h->key_bytes;

    for (size_t p = begin, n; p < end; p += n) {
        const size_t from = (p - begin) / KVCACHE_PANEL;

        n = kvcache_run(kv, layer, p, end - p);
        copy_run(*at + from * h->key_bytes, kvcache_k(kv, seq, layer, head, p),
                 n / KVCACHE_PANEL * h->key_bytes, load);
        copy_run(values + from * h->value_bytes, kvcache_v(kv, seq, layer, head, p),
                 n / KVCACHE_PANEL * h->value_bytes, load);
    }
    *at = values + panels * h->value_bytes;
}

static void copy_windows(struct kvcache *kv, int place, int seq, size_t pos, bool load)
{
    unsigned char *at = (unsigned char *)checkpoint_states(kv, place) +
                        round_up(kvcache_state_bytes(&kv->shape), PLACE_UNIT);

    for (int layer = kvcache_n_whole(kv); layer < kv->shape.n_layers; layer++)
        for (int head = 0; head < kvcache_heads(kv, layer)->n; head++)
            copy_window(kv, &at, seq, layer, head, pos, load);
}

void checkpoint_save(struct kvcache *kv, int place, int seq, size_t pos,
                     const float *states)
{
    if (states)
        memcpy(checkpoint_states(kv, place), states, kvcache_state_bytes(&kv->shape));
    copy_windows(kv, place, seq, pos, false);
}

size_t checkpoint_load(struct kvcache *kv, int place, int seq, size_t pos)
{
    if (kv->shape.n_states)
        memcpy(kvcache_state(kv, seq, 0), checkpoint_states(kv, place),
               kvcache_state_bytes(&kv->shape));
    copy_windows(kv, place, seq, pos, true);
    return kv->shape.n_window_layers ? window_begin(kv, pos) : 0;
}

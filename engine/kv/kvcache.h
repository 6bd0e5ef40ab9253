/* SPDX-License-Identifier: MIT
 *
 * kvcache.h - keys and values of past positions, in panels of 16 positions
 *
 * One block of anonymous memory with 2 MiB pages:
 *
 *     [n_layers][n_kv_heads]{ panels of keys, panels of values }
 *
 * so that one head reads two contiguous runs for one token. Panels are laid out
 * for the kernels attn_dot and attn_mix (kernels/kernels.h). Keys are stored rotated.
 * A head is as long as its panels need: quantised types and values are padded with
 * zeros to whole blocks, or to 16 elements.
 *
 * Layers with a sliding window are the last ones. They keep a ring of positions, in
 * which position p has the place of p - ring: the window, and as many more as a pass
 * writes before it reads, or as the sequence may be cut back by while the window before
 * its new end is still there (n_spare). Passes may be as long as n_spare.
 *
 * The other layers keep all positions, or, with n_recent, the first n_sinks and such a
 * ring for the last n_recent: Xiao et al. 2023, Efficient Streaming Language Models
 * with Attention Sinks (arXiv 2309.17453). The first ones lie in whole panels in front
 * of the ring, with what else begins in these. A sequence may then be longer than
 * n_ctx, in the rings of both kinds of layers.
 *
 * Layers with linear attention have a state instead, which every token changes and
 * which cannot return to an earlier position. Therefore a copy is kept:
 *
 *     states [n_states][state_floats], the copy
 *
 * Threading: no locking; threads of a pool write different panels, or different
 * positions of one.
 */
#ifndef SLM_ENGINE_KV_KVCACHE_H
#define SLM_ENGINE_KV_KVCACHE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/mem.h"
#include "engine/base/status.h"
#include "kernels/kernels.h"

/* Positions of a panel. */
#define KVCACHE_PANEL ((size_t)KERN_PANEL_ROWS)

/* Longer heads are refused when a model is loaded. */
#define KVCACHE_MAX_HEAD_DIM KERN_MAX_HEAD_DIM

struct kvcache_shape {
    enum kern_kv type;
    int n_layers, n_kv_heads, head_dim; /* all positive */
    int n_window_layers;                /* of these, the last: they keep a ring; or 0 */
    int window;            /* positions that a token sees there, itself included */
    int n_recent, n_sinks; /* in the other layers: the last ones, itself included, and
                              the first; n_recent 0: all */
    int n_spare;           /* positions that rings keep in addition, positive */
    int n_states;          /* layers with a state of fixed size instead; or 0 */
    size_t state_floats;   /* of each */
};

struct kvcache {
    struct mem mem;
    struct kvcache_shape shape;
    int n_ctx;
    size_t n_slots, n_ring;        /* positions that a layer has room for, and one with
                                      a window; multiples of KVCACHE_PANEL */
    size_t n_kept;                 /* of n_slots, the first: they are no part of a ring;
                                      a multiple, too */
    size_t key_dim, value_dim;     /* elements as stored */
    size_t key_bytes, value_bytes; /* of a panel */
    struct mem states;             /* zeros at first */
};

/* Elements of a key and a value as stored. */
size_t kvcache_key_dim(enum kern_kv type, int head_dim);
size_t kvcache_value_dim(enum kern_kv type, int head_dim);

/* Bytes of a cache of n_ctx positions, rounded up to whole panels, and of states with
 * their copy; false when they exceed the address space. */
int kvcache_bytes(uint64_t *bytes, const struct kvcache_shape *shape, int n_ctx);

/* Bytes of all states, without the copy. */
uint64_t kvcache_state_bytes(const struct kvcache_shape *shape);

/* Bytes of K and V of one position in all layers. */
uint64_t kvcache_pos_bytes(const struct kvcache_shape *shape);

/* Bytes that a position more than n_ctx adds, where it begins no panel. */
uint64_t kvcache_more_bytes(const struct kvcache_shape *shape, int n_ctx);

/* Error: ST_NO_MEMORY. */
enum status kvcache_open(struct kvcache *kv, const struct kvcache_shape *shape,
                         int n_ctx, struct err *err);
void kvcache_close(struct kvcache *kv);

/* Layers without a window. */
static inline int kvcache_n_whole(const struct kvcache *kv)
{
    return kv->shape.n_layers - kv->shape.n_window_layers;
}

/* Positions that a layer has room for. */
static inline size_t kvcache_slots(const struct kvcache *kv, int layer)
{
    return layer < kvcache_n_whole(kv) ? kv->n_slots : kv->n_ring;
}

/* Where the layer has position pos. */
static inline size_t kvcache_slot(const struct kvcache *kv, int layer, size_t pos)
{
    const size_t n_kept = layer < kvcache_n_whole(kv) ? kv->n_kept : 0;

    return pos < n_kept ? pos
                        : n_kept + (pos - n_kept) % (kvcache_slots(kv, layer) - n_kept);
}

/* One head's keys, its values behind them. */
static inline unsigned char *kvcache_head(const struct kvcache *kv, int layer, int head)
{
    const size_t n_heads = (size_t)kv->shape.n_kv_heads;
    const int n_whole = kvcache_n_whole(kv), whole = layer < n_whole ? layer : n_whole;
    const size_t before =
        ((size_t)whole * kv->n_slots + (size_t)(layer - whole) * kv->n_ring) * n_heads +
        (size_t)head * kvcache_slots(kv, layer);

    return (unsigned char *)kv->mem.base +
           before / KVCACHE_PANEL * (kv->key_bytes + kv->value_bytes);
}

/* The panel of keys, or of values, that holds position pos of one head. */
static inline unsigned char *kvcache_k(const struct kvcache *kv, int layer, int head,
                                       size_t pos)
{
    return kvcache_head(kv, layer, head) +
           kvcache_slot(kv, layer, pos) / KVCACHE_PANEL * kv->key_bytes;
}

static inline unsigned char *kvcache_v(const struct kvcache *kv, int layer, int head,
                                       size_t pos)
{
    const size_t n_slots = kvcache_slots(kv, layer);

    return kvcache_head(kv, layer, head) + n_slots / KVCACHE_PANEL * kv->key_bytes +
           kvcache_slot(kv, layer, pos) / KVCACHE_PANEL * kv->value_bytes;
}

/* How many of the n positions from pos on lie one after another: the ring ends
 * there. */
static inline size_t kvcache_run(const struct kvcache *kv, int layer, size_t pos,
                                 size_t n)
{
    const size_t left = kvcache_slots(kv, layer) - kvcache_slot(kv, layer, pos);

    return n < left ? n : left;
}

/* State number i. */
static inline float *kvcache_state(const struct kvcache *kv, int i)
{
    return (float *)kv->states.base + (size_t)i * kv->shape.state_floats;
}

/* Copy the states, restore them from the copy, or reset them to before the first token.
 */
void kvcache_save_states(struct kvcache *kv);
void kvcache_restore_states(struct kvcache *kv);
void kvcache_clear_states(struct kvcache *kv);

/* Convert and write one position of one head: k, v are [head_dim]. */
void kvcache_store(struct kvcache *kv, const struct kern_set *kern, int layer, int head,
                   size_t pos, const float *k, const float *v);

/* A small cache of the same type and head size, filled with random numbers of the size
 * of real keys and values, to copy from. Close it like any. Error: ST_NO_MEMORY. */
enum status kvcache_make_pool(struct kvcache *pool, const struct kvcache *like,
                              const struct kern_set *kern, uint64_t seed,
                              struct err *err);

/* Fill positions begin..end-1 of one head from the pool, each head from other
 * positions; of a ring as many of them as it holds. end is at most n_ctx.
 */
void kvcache_fill(struct kvcache *kv, const struct kern_set *kern, int layer, int head,
                  int begin, int end, const struct kvcache *pool, uint64_t seed);

#endif

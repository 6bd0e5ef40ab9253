/* SPDX-License-Identifier: MIT
 *
 * kvcache.h - keys and values of past positions, in panels of 16 positions, of one or
 * several sequences
 *
 * One block of anonymous memory with 2 MiB pages:
 *
 *     [n_layers][n_kv_heads]{ panels of keys, panels of values }
 *
 * so that one head reads two contiguous runs for one token. Panels are laid out
 * for the kernels attn_dot and attn_mix (kernels/kernels.h).
 *
 * Several sequences share the room of a layer in pages of KVCACHE_PAGE positions (as in
 * Kwon et al. 2023, arXiv 2309.06180): a table says which page has which positions of a
 * sequence, the same one for all layers and heads. Sequences that begin alike may have
 * pages in common; they are counted, and one that is to be written is copied first
 * (kvpages.h). A page is as long as a block of attention, so a block is contiguous. A
 * single sequence can have the whole room, and no table. Rings and states are not
 * shared: each sequence has its own.
 * Keys are stored rotated. With latent attention the leading n_latent elements of a key
 * are the value, too, and no values are stored.
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
 * Recurrent layers have a state instead, which every token changes and
 * which cannot return to an earlier position. Therefore a copy is kept:
 *
 *     states [n_states][state_floats], the copy
 *
 * Threading: no locking; threads of a pool write different panels, or different
 * positions of one.
 */
#ifndef SLM_ENGINE_KV_KVCACHE_H
#define SLM_ENGINE_KV_KVCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/mem.h"
#include "engine/base/status.h"
#include "engine/kv/kvpages.h"
#include "kernels/kernels.h"

/* Positions of a panel. */
#define KVCACHE_PANEL ((size_t)KERN_PANEL_ROWS)

/* Longer heads are refused when a model is loaded. */
#define KVCACHE_MAX_HEAD_DIM KERN_MAX_HEAD_DIM

struct kvcache_shape {
    enum kern_kv type;
    int n_layers, n_kv_heads, head_dim; /* all positive */
    int n_latent;        /* a multiple of 16; 0: values have an own place, and head_dim
                            elements */
    int n_window_layers; /* of these, the last: they keep a ring; or 0 */
    int window;          /* positions that a token sees there, itself included */
    int n_window_heads, window_dim; /* their heads and the length of these; 0: as in the
                                       other layers */
    int n_recent, n_sinks; /* in the other layers: the last ones, itself included, and
                              the first; n_recent 0: all */
    int n_spare;           /* positions that rings keep in addition, positive */
    int n_sequences;       /* 0: one, whose positions are not in pages */
    size_t n_pool; /* with pages: positions of all sequences together, in layers without
                      a window; 0: as if all were as long as possible */
    int n_states;  /* layers with a state of fixed size instead; or 0 */
    size_t state_floats; /* of each */
    int n_checkpoints;   /* that can be kept: checkpoint.h; or 0 */
};

/* The heads of a layer. */
struct kvcache_heads {
    int n, dim;
    size_t key_dim, value_dim; /* elements as stored; n_latent of a key are values */
    size_t key_bytes, value_bytes; /* of a panel; values that are in keys have 0 */
};

struct kvcache {
    struct mem mem;
    struct kvcache_shape shape;
    int n_ctx;
    size_t n_slots, n_ring; /* positions that a layer has room for, and one with
                               a window; multiples of KVCACHE_PANEL */
    size_t n_kept;          /* of n_slots, the first: they are no part of a ring;
                               a multiple, too */
    size_t n_pool; /* positions of all sequences that a layer without a window has room
                      for: whole pages, or n_slots without them */
    struct kvpages *pages; /* which has which; NULL: none, as one sequence needs none,
                              and layers with a window neither */
    struct kvcache_heads heads[2]; /* of layers without a window, and with one */
    struct mem states;             /* [n_sequences]{states, copy}; zeros at first */
    struct mem kept;               /* [n_checkpoints] */
};

/* Elements of a key and a value as stored. */
size_t kvcache_key_dim(enum kern_kv type, int head_dim);
size_t kvcache_value_dim(enum kern_kv type, int head_dim);

/* Bytes of a cache of n_ctx positions of each sequence, rounded up to whole panels or
 * pages, of states with their copy, and of checkpoints; false when they exceed the
 * address space. */
int kvcache_bytes(uint64_t *bytes, const struct kvcache_shape *shape, int n_ctx);

/* Bytes of all states of a sequence, without the copy. */
uint64_t kvcache_state_bytes(const struct kvcache_shape *shape);

/* Bytes of K and V of one position in all layers. */
uint64_t kvcache_pos_bytes(const struct kvcache_shape *shape);

/* Bytes in the layers with a window. */
uint64_t kvcache_window_bytes(const struct kvcache_shape *shape);

/* Bytes that a position more than n_ctx adds, where it begins no panel. */
uint64_t kvcache_more_bytes(const struct kvcache_shape *shape, int n_ctx);

/* Pages that a sequence may take at most; 0: its positions are in none. */
size_t kvcache_sequence_pages(const struct kvcache_shape *shape, int n_ctx);

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

static inline int kvcache_n_sequences(const struct kvcache *kv)
{
    return kv->shape.n_sequences ? kv->shape.n_sequences : 1;
}

/* Positions of all sequences together that a layer has room for. */
static inline size_t kvcache_places(const struct kvcache *kv, int layer)
{
    return layer < kvcache_n_whole(kv) ? kv->n_pool
                                       : (size_t)kvcache_n_sequences(kv) * kv->n_ring;
}

static inline const struct kvcache_heads *kvcache_heads(const struct kvcache *kv,
                                                        int layer)
{
    return &kv->heads[layer >= kvcache_n_whole(kv)];
}

/* Bytes that a head of such a layer has for n positions. */
static inline size_t kvcache_run_bytes(const struct kvcache_heads *h, size_t n)
{
    return n / KVCACHE_PANEL * (h->key_bytes + h->value_bytes);
}

/* One head's keys, its values behind them. */
static inline unsigned char *kvcache_head(const struct kvcache *kv, int layer, int head)
{
    const struct kvcache_heads *all = kv->heads;
    const int n_whole = kvcache_n_whole(kv), whole = layer < n_whole ? layer : n_whole;
    const size_t n_rings = (size_t)kvcache_n_sequences(kv) * kv->n_ring;
    const size_t before =
        (size_t)whole * (size_t)all[0].n * kvcache_run_bytes(&all[0], kv->n_pool) +
        (size_t)(layer - whole) * (size_t)all[1].n *
            kvcache_run_bytes(&all[1], n_rings);

    return (unsigned char *)kv->mem.base + before +
           (size_t)head *
               kvcache_run_bytes(kvcache_heads(kv, layer), kvcache_places(kv, layer));
}

/* Where a layer has a slot of a sequence among the places of all of them. */
static inline size_t kvcache_place(const struct kvcache *kv, int seq, int layer,
                                   size_t slot)
{
    if (layer >= kvcache_n_whole(kv))
        return (size_t)seq * kv->n_ring + slot;
    return kv->pages ? kvpages_place(kv->pages, seq, slot) : slot;
}

/* The panel of keys, or of values, that holds position pos of one head. */
static inline unsigned char *kvcache_k(const struct kvcache *kv, int seq, int layer,
                                       int head, size_t pos)
{
    const size_t slot = kvcache_slot(kv, layer, pos);

    return kvcache_head(kv, layer, head) + kvcache_place(kv, seq, layer, slot) /
                                               KVCACHE_PANEL *
                                               kvcache_heads(kv, layer)->key_bytes;
}

static inline unsigned char *kvcache_v(const struct kvcache *kv, int seq, int layer,
                                       int head, size_t pos)
{
    const struct kvcache_heads *h = kvcache_heads(kv, layer);
    const size_t slot = kvcache_slot(kv, layer, pos);

    return kvcache_head(kv, layer, head) +
           kvcache_places(kv, layer) / KVCACHE_PANEL * h->key_bytes +
           kvcache_place(kv, seq, layer, slot) / KVCACHE_PANEL * h->value_bytes;
}

/* How many of the n positions from pos on lie one after another: the ring ends there,
 * or the page. */
static inline size_t kvcache_run(const struct kvcache *kv, int layer, size_t pos,
                                 size_t n)
{
    const size_t slot = kvcache_slot(kv, layer, pos);
    size_t left = kvcache_slots(kv, layer) - slot;

    if (kv->pages && layer < kvcache_n_whole(kv) &&
        KVCACHE_PAGE - slot % KVCACHE_PAGE < left)
        left = KVCACHE_PAGE - slot % KVCACHE_PAGE;
    return n < left ? n : left;
}

/* State number i of a sequence; from n_states on those of its copy. */
static inline float *kvcache_state(const struct kvcache *kv, int seq, int i)
{
    return (float *)kv->states.base +
           (size_t)(2 * seq * kv->shape.n_states + i) * kv->shape.state_floats;
}

/* Copy the states of a sequence, restore them from the copy, or reset them to before
 * the first token. */
void kvcache_save_states(struct kvcache *kv, int seq);
void kvcache_restore_states(struct kvcache *kv, int seq);
void kvcache_clear_states(struct kvcache *kv, int seq);

/* Positions begin .. end-1 of a sequence. */
struct kvcache_span {
    int seq;
    size_t begin, end;
};

/* Have room of the sequence's own for positions begin .. end-1, before they are
 * written: pages that it has in common with others are copied. False, and nothing has
 * changed: there are not enough pages. */
bool kvcache_reserve(struct kvcache *kv, int seq, size_t begin, size_t end);

/* Pages that it would take from the free ones, for all of them; each of another
 * sequence. */
size_t kvcache_reserve_pages(const struct kvcache *kv, const struct kvcache_span *spans,
                             int n);

/* Give up the room of positions from n_past on. */
void kvcache_cut(struct kvcache *kv, int seq, size_t n_past);

/* Make sequence `to` the same as `from`, which has n_past positions: pages are shared,
 * rings and states copied. */
void kvcache_fork(struct kvcache *kv, int from, int to, size_t n_past);

/* Read the key of one position of one head back: k[dim]. */
void kvcache_read(const struct kvcache *kv, const struct kern_set *kern, int seq,
                  int layer, int head, size_t pos, float *k);

/* Convert and write one position of one head; v is not read where keys hold the values:
 * k, v are [head_dim]. */
void kvcache_store(struct kvcache *kv, const struct kern_set *kern, int seq, int layer,
                   int head, size_t pos, const float *k, const float *v);

/* A small cache of the same type and sizes of heads, with a layer of each kind, filled
 * with random numbers of the size of real keys and values, to copy from. Close it like
 * any. Error: ST_NO_MEMORY. */
enum status kvcache_make_pool(struct kvcache *pool, const struct kvcache *like,
                              const struct kern_set *kern, uint64_t seed,
                              struct err *err);

/* Fill positions begin..end-1 of one head of a sequence, which has the room, from the
 * pool, each head from other
 * positions; in a ring as many of them as it holds. end is at most n_ctx.
 */
void kvcache_fill(struct kvcache *kv, const struct kern_set *kern, int seq, int layer,
                  int head, int begin, int end, const struct kvcache *pool,
                  uint64_t seed);

#endif

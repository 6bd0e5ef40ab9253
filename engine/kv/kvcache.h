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
#define KVCACHE_MAX_HEAD_DIM 4096

struct kvcache_shape {
    enum kern_kv type;
    int n_layers, n_kv_heads, head_dim; /* all positive */
    int n_states;        /* layers with a state of fixed size instead; or 0 */
    size_t state_floats; /* of each */
};

struct kvcache {
    struct mem mem;
    struct kvcache_shape shape;
    int n_ctx;
    size_t key_dim, value_dim;     /* elements as stored */
    size_t key_bytes, value_bytes; /* of a panel */
    size_t head_bytes;
    struct mem states; /* zeros at first */
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

/* Error: ST_NO_MEMORY. */
enum status kvcache_open(struct kvcache *kv, const struct kvcache_shape *shape,
                         int n_ctx, struct err *err);
void kvcache_close(struct kvcache *kv);

/* The panel of keys, or of values, that holds position pos of one head. */
static inline unsigned char *kvcache_k(const struct kvcache *kv, int layer, int head,
                                       size_t pos)
{
    const size_t i = (size_t)layer * (size_t)kv->shape.n_kv_heads + (size_t)head;

    return (unsigned char *)kv->mem.base + i * kv->head_bytes +
           pos / KVCACHE_PANEL * kv->key_bytes;
}

static inline unsigned char *kvcache_v(const struct kvcache *kv, int layer, int head,
                                       size_t pos)
{
    const size_t panels = ((size_t)kv->n_ctx + KVCACHE_PANEL - 1) / KVCACHE_PANEL;

    return kvcache_k(kv, layer, head, panels * KVCACHE_PANEL) +
           pos / KVCACHE_PANEL * kv->value_bytes;
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
 * positions.
 */
void kvcache_fill(struct kvcache *kv, const struct kern_set *kern, int layer, int head,
                  int begin, int end, const struct kvcache *pool, uint64_t seed);

#endif

/* SPDX-License-Identifier: MIT
 *
 * kvcache.h - keys and values of past positions, as F16
 *
 * One block of anonymous memory with 2 MiB pages:
 *
 *     [n_layers][n_kv_heads]{ K [n_ctx][head_dim], V [n_ctx][head_dim] }
 *
 * so that what one head reads for one token is two contiguous runs. Keys are
 * stored rotated.
 *
 * Threading: no locking; members of a team write different positions or heads.
 */
#ifndef SLM_ENGINE_KVCACHE_H
#define SLM_ENGINE_KVCACHE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/mem.h"
#include "engine/status.h"

struct kvcache {
    struct mem mem;
    int n_layers, n_kv_heads, head_dim, n_ctx;
};

/* Bytes of a cache; false when they do not fit an address. All arguments
 * positive. */
int kvcache_bytes(uint64_t *bytes, int n_layers, int n_kv_heads, int head_dim,
                  int n_ctx);

/* Bytes of K and V of one position in all layers. */
uint64_t kvcache_pos_bytes(int n_layers, int n_kv_heads, int head_dim);

/* Error: ST_NO_MEMORY. */
enum status kvcache_open(struct kvcache *kv, int n_layers, int n_kv_heads, int head_dim,
                         int n_ctx, struct err *err);
void kvcache_close(struct kvcache *kv);

static inline size_t kvcache_head_elems(const struct kvcache *kv)
{
    return (size_t)kv->n_ctx * (size_t)kv->head_dim;
}

/* Keys of one head: [n_ctx][head_dim] IEEE halves. */
static inline uint16_t *kvcache_k(const struct kvcache *kv, int layer, int head)
{
    const size_t i = (size_t)layer * (size_t)kv->n_kv_heads + (size_t)head;

    return (uint16_t *)kv->mem.base + i * 2 * kvcache_head_elems(kv);
}

static inline uint16_t *kvcache_v(const struct kvcache *kv, int layer, int head)
{
    return kvcache_k(kv, layer, head) + kvcache_head_elems(kv);
}

/* Random numbers about as large as real keys and values, to copy from. */
#define KVCACHE_POOL ((size_t)1 << 16)
void kvcache_make_pool(uint16_t *pool /* [KVCACHE_POOL] */, uint64_t seed);

/* Fill positions begin..end-1 of one head from the pool, each head from places
 * of its own. */
void kvcache_fill(struct kvcache *kv, int layer, int head, int begin, int end,
                  const uint16_t *pool, uint64_t seed);

#endif

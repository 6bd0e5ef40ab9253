/* SPDX-License-Identifier: MIT
 *
 * kvcache.c - layout, allocation and synthetic filling of the KV cache
 */
#include "engine/kvcache.h"

#include <assert.h>
#include <string.h>

int kvcache_bytes(uint64_t *bytes, int n_layers, int n_kv_heads, int head_dim,
                  int n_ctx)
{
    return !__builtin_mul_overflow(kvcache_pos_bytes(n_layers, n_kv_heads, head_dim),
                                   (uint64_t)n_ctx, bytes) &&
           *bytes <= SIZE_MAX / 2;
}

uint64_t kvcache_pos_bytes(int n_layers, int n_kv_heads, int head_dim)
{
    /* arch_*.c keep these at 2^12 at most each: no overflow. */
    return 2 * sizeof(uint16_t) * (uint64_t)n_layers * (uint64_t)n_kv_heads *
           (uint64_t)head_dim;
}

enum status kvcache_open(struct kvcache *kv, int n_layers, int n_kv_heads, int head_dim,
                         int n_ctx, struct err *err)
{
    struct kvcache new = {.n_layers = n_layers,
                          .n_kv_heads = n_kv_heads,
                          .head_dim = head_dim,
                          .n_ctx = n_ctx};
    uint64_t bytes;
    enum status st;

    if (!kvcache_bytes(&bytes, n_layers, n_kv_heads, head_dim, n_ctx))
        return err_set(err, ST_NO_MEMORY,
                       "a KV cache of %d positions is larger than an address space",
                       n_ctx);
    st = mem_alloc(&new.mem, (size_t)bytes, MEM_PAGES_2M, "KV cache", err);
    if (!st)
        *kv = new;
    return st;
}

void kvcache_close(struct kvcache *kv)
{
    mem_free(&kv->mem);
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Sign and mantissa at random, exponent 12..15 (2^-3 to below 2): uniform over
 * halves of that range, about 0.6 in the mean. Rotated keys and values of trained
 * models are of that size, so scores stay moderate and no product is denormal. */
void kvcache_make_pool(uint16_t *pool, uint64_t seed)
{
    for (size_t i = 0; i < KVCACHE_POOL; i++) {
        const uint64_t r = next_random(&seed);

        pool[i] =
            (uint16_t)((r & 0x8000u) | ((12 + (r >> 16 & 3)) << 10) | (r & 0x3ffu));
    }
}

/* Pieces of the pool, each beginning at a random place in its first half. */
static void fill_run(uint16_t *dst, size_t n, const uint16_t *pool, uint64_t *state)
{
    const size_t half = KVCACHE_POOL / 2;

    for (size_t done = 0; done < n;) {
        const size_t piece = n - done < half ? n - done : half;

        memcpy(dst + done, pool + next_random(state) % half, piece * sizeof *dst);
        done += piece;
    }
}

void kvcache_fill(struct kvcache *kv, int layer, int head, int begin, int end,
                  const uint16_t *pool, uint64_t seed)
{
    const size_t skip = (size_t)begin * (size_t)kv->head_dim;
    const size_t n = (size_t)(end - begin) * (size_t)kv->head_dim;
    uint64_t state = seed ^ ((uint64_t)layer << 32 | (uint64_t)head);

    assert(begin >= 0 && begin <= end && end <= kv->n_ctx);
    fill_run(kvcache_k(kv, layer, head) + skip, n, pool, &state);
    fill_run(kvcache_v(kv, layer, head) + skip, n, pool, &state);
}

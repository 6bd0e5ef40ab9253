/* SPDX-License-Identifier: MIT
 *
 * attention_tiles.h - what attention's vector levels share: chunks of positions, and
 *                     each tile's share in prefetching the next one
 */
#ifndef SLM_KERNELS_VECOPS_ATTENTION_TILES_H
#define SLM_KERNELS_VECOPS_ATTENTION_TILES_H

#include "kernels/kernels.h"
#include "kernels/simd/simd.h"

enum {
    PANEL = KERN_PANEL_ROWS,
    STEP = 4, /* panels of a chunk */
    CHUNK = STEP * PANEL,
    Q_TILE = 4, /* queries */
    BLOCK = 32, /* elements of a quantised block */
};

/* CALL(n) with the constant n = n_q, at most 4. */
#define FOR_QUERIES(n_q, CALL) \
    switch (n_q) {             \
    case 1:                    \
        CALL(1);               \
        break;                 \
    case 2:                    \
        CALL(2);               \
        break;                 \
    case 3:                    \
        CALL(3);               \
        break;                 \
    default:                   \
        CALL(4);               \
    }

SIMD_INLINE size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A share of the next chunk: where it starts, and how much of it to prefetch in each
 * iteration of a tile's loop. */
struct share {
    const char *at;
    size_t bytes; /* few cache lines */
};

/* The share of a tile that does parts first .. first + n - 1 of a chunk's n_parts of
 * work (one query's each), of the `bytes` behind the chunk at p; its loop has
 * n_iterations. Tiles of however many queries thus cover all of the next chunk. In
 * units of 1 / 256 byte: the divisions are the same for all tiles. */
SIMD_INLINE struct share share_of(const void *p, size_t bytes, size_t first, size_t n,
                                  size_t n_parts, size_t n_iterations)
{
    const size_t each = bytes * 256 / n_parts;

    return (struct share){(const char *)((uintptr_t)p + bytes + each * first / 256),
                          (each / n_iterations * n + 255) / 256};
}

SIMD_INLINE void prefetch_share(struct share s, size_t iteration)
{
    const uintptr_t at = (uintptr_t)s.at + iteration * s.bytes;
    size_t i = 0;

    do
        __builtin_prefetch((const void *)(at + i), 0, 3);
    while ((i += 64) < s.bytes);
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * blocks.h - rows of weights as kernel tests make them
 */
#ifndef SLM_TESTS_BLOCKS_H
#define SLM_TESTS_BLOCKS_H

#include "tests/support/acts.h"

#include <math.h>

#include "kernels/kernels.h"

enum weight_kind {
    WEIGHTS_RANDOM,      /* quantised random floats, one block in eight large */
    WEIGHTS_BYTES,       /* any bytes that give finite weights */
    WEIGHTS_MAXIMAL,     /* all bits set, as far as weights stay finite */
    WEIGHTS_ALTERNATING, /* +a -a +a ... */
    WEIGHTS_LARGE,       /* near the largest f16 */
    WEIGHTS_TINY,        /* scales that are subnormal as f16 */
    WEIGHTS_ZERO,
    N_WEIGHT_KINDS
};

/* ---- weights --------------------------------------------------------------------- */

struct format {
    enum kern_format id;
    const struct kern_format_info *info;
    kern_quantize_fn *quantize;
    kern_dequantize_fn *dequantize;
};

static inline struct format format_of(int id)
{
    const uint32_t scalar = 1u << KERN_ISA_scalar;

    return (struct format){
        .id = (enum kern_format)id,
        .info = kern_format_info((enum kern_format)id),
        .quantize = kern_best(KERN_OP_quantize, id, scalar)->fn.quantize,
        .dequantize = kern_best(KERN_OP_dequantize, id, scalar)->fn.dequantize,
    };
}

/* Whether the block gives weights that products with activations keep finite. */
static inline bool block_is_sane(const struct format *f, const void *block)
{
    float w[256];

    assert_true(f->info->block_elems <= 256);
    f->dequantize(block, w, f->info->block_elems);
    for (size_t i = 0; i < f->info->block_elems; i++)
        if (!(fabsf(w[i]) < 1e20f))
            return false;
    return true;
}

static inline void random_block(const struct format *f, uint8_t *block, uint64_t *seed)
{
    do
        for (size_t i = 0; i < f->info->block_bytes; i++)
            block[i] = (uint8_t)test_random(seed);
    while (!block_is_sane(f, block));
}

/* Each byte becomes 0xff, or 0x7b (the upper byte of the largest f16), if the
 * weights stay finite with it. */
static inline void maximal_block(const struct format *f, uint8_t *block)
{
    static const uint8_t wanted[] = {0xff, 0x7b, 0};

    memset(block, 0, f->info->block_bytes);
    for (size_t i = 0; i < f->info->block_bytes; i++)
        for (size_t v = 0; v < sizeof(wanted); v++) {
            block[i] = wanted[v];
            if (block_is_sane(f, block))
                break;
        }
}

static inline float source_weight(enum weight_kind kind, size_t i, uint64_t *seed)
{
    const float r = test_random_float(seed);

    switch (kind) {
    case WEIGHTS_ALTERNATING:
        return i % 2 == 0 ? 1.5f : -1.5f;
    case WEIGHTS_LARGE:
        return r * 6e4f;
    case WEIGHTS_TINY:
        return r * 4e-6f;
    default:
        return i / 32 % 8 == 5 ? r * 100 : r;
    }
}

/* Blocks of every kind, made once per format: rows are put together from them,
 * since some quantisers are slow. */
struct pool {
    struct format f;
    size_t n;                        /* blocks of a kind */
    uint8_t *blocks[N_WEIGHT_KINDS]; /* n each */
};

static inline void fill_pool(const struct pool *pool, enum weight_kind kind,
                             uint8_t *blocks, uint64_t *seed)
{
    const struct format *f = &pool->f;
    const size_t block_bytes = f->info->block_bytes;
    const size_t n = pool->n * (size_t)f->info->block_elems;

    if (kind == WEIGHTS_ZERO) {
        memset(blocks, 0, pool->n * block_bytes);
    } else if (kind == WEIGHTS_BYTES) {
        for (size_t b = 0; b < pool->n; b++)
            random_block(f, blocks + b * block_bytes, seed);
    } else if (kind == WEIGHTS_MAXIMAL) {
        maximal_block(f, blocks);
        for (size_t b = 1; b < pool->n; b++)
            memcpy(blocks + b * block_bytes, blocks, block_bytes);
    } else {
        float *source = floats_new(n);

        for (size_t i = 0; i < n; i++)
            source[i] = source_weight(kind, i, seed);
        f->quantize(source, NULL, blocks, n);
        free(source);
    }
}

static struct pool pools[KERN_N_FMT];

static inline const struct pool *pool_of(int format)
{
    struct pool *pool = &pools[format];
    uint64_t seed = 1;

    if (pool->f.info != NULL)
        return pool;
    pool->f = format_of(format);
    pool->n = test_thin() >= THIN_SMALL ? 4 : test_thin() > 1 ? 16 : 64;
    for (int kind = 0; kind < N_WEIGHT_KINDS; kind++) {
        pool->blocks[kind] = malloc(pool->n * (size_t)pool->f.info->block_bytes);
        assert_non_null(pool->blocks[kind]);
        fill_pool(pool, (enum weight_kind)kind, pool->blocks[kind], &seed);
    }
    return pool;
}

static inline void free_pools(void)
{
    for (int format = 0; format < KERN_N_FMT; format++)
        for (int kind = 0; kind < N_WEIGHT_KINDS; kind++)
            free(pools[format].blocks[kind]);
}

/* A row of blocks drawn from the pool. A single value's neighbours matter where
 * signs alternate, so there the order is kept. */
static inline void fill_row(const struct pool *pool, enum weight_kind kind,
                            uint8_t *row, size_t k, uint64_t *seed)
{
    const size_t bytes = pool->f.info->block_bytes;

    for (size_t b = 0; b < k / pool->f.info->block_elems; b++) {
        const size_t from = kind == WEIGHTS_ALTERNATING ? b : test_random(seed);

        memcpy(row + b * bytes, pool->blocks[kind] + from % pool->n * bytes, bytes);
    }
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * tile_rule.c - times of small products by tiles and by vectors
 */
#include "engine/forward/tile_rule.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/random.h"
#include "engine/forward/tuning.h"
#include "kernels/activations/activations.h"

#define N_ROUNDS  5
#define N_COLUMNS ((size_t)256)
#define N_PANELS  4
#define K         ((size_t)2048)

struct product {
    enum kern_format fmt;
    void *panels, *x;
    float *y;
    size_t x_stride;
};

/* Bytes of which any part is a scale of ordinary size: tiles draw power by their
 * operands, so that zeros would be too fast, and denormal numbers too slow. */
static void fill(unsigned char *to, size_t n)
{
    uint64_t state = 1;

    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)(0x20 + random_below(&state, 0x20));
}

static double time_of(const struct product *p, kern_gemm_x16_fn *gemm)
{
    static const struct kern_prefetch none;
    const uint64_t begin = clock_ns();

    gemm(N_PANELS, K, p->panels, N_COLUMNS, p->x, p->x_stride, p->y,
         N_PANELS * KERN_PANEL_ROWS, none);
    return (double)(clock_ns() - begin);
}

static size_t measure(const struct product *p, kern_gemm_x16_fn *by_vectors,
                      kern_gemm_x16_fn *by_tiles)
{
    double vectors = INFINITY, tiles = INFINITY;

    for (int round = 0; round < N_ROUNDS; round++) {
        vectors = fmin(vectors, time_of(p, by_vectors));
        tiles = fmin(tiles, time_of(p, by_tiles));
    }
    return tiles < vectors ? TILE_COLUMNS : TILES_NEVER;
}

static size_t measure_format(enum kern_format fmt, kern_gemm_x16_fn *by_vectors,
                             kern_gemm_x16_fn *by_tiles)
{
    const size_t n = N_COLUMNS, rows = N_PANELS * KERN_PANEL_ROWS;
    const size_t panel_bytes = KERN_ALIGN64(rows * kern_format_bytes(fmt, K));
    const size_t stride = kern_act_bytes(kern_format_info(fmt)->act, K);
    struct err ignored = ERR_INIT;
    struct mem memory = {.base = NULL};
    size_t from;

    if (mem_alloc(&memory, panel_bytes + n * stride + n * rows * sizeof(float),
                  MEM_PAGES_2M, "products to time", &ignored))
        return TILES_NEVER;
    unsigned char *const base = memory.base;
    const struct product p = {.fmt = fmt,
                              .panels = base,
                              .x = base + panel_bytes,
                              .y = (float *)(void *)(base + panel_bytes + n * stride),
                              .x_stride = stride};

    fill(base, panel_bytes);
    memset(p.x, 0, n * stride);
    fill(p.x, K);
    for (size_t j = 1; j < n; j++)
        memcpy((unsigned char *)p.x + j * stride, p.x, K);
    from = measure(&p, by_vectors, by_tiles);
    mem_free(&memory);
    return from;
}

size_t tile_columns(enum kern_format fmt, uint32_t isa_mask)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct known {
        uint32_t isa_mask;
        size_t from;
    } all[KERN_N_FMT];
    struct known *known = &all[fmt];
    struct kern_set vectors, tiles;
    size_t from;

    kern_select(&vectors, isa_mask & ~TUNING_TILE_LEVELS);
    kern_select(&tiles, isa_mask & TUNING_TILE_LEVELS);
    if (!tiles.gemm_x16[fmt] || !vectors.gemm_x16[fmt])
        return TILES_NEVER;
    pthread_mutex_lock(&mutex);
    if (known->isa_mask != isa_mask)
        *known = (struct known){
            isa_mask, measure_format(fmt, vectors.gemm_x16[fmt], tiles.gemm_x16[fmt])};
    from = known->from;
    pthread_mutex_unlock(&mutex);
    return from;
}

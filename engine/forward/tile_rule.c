/* SPDX-License-Identifier: MIT
 *
 * tile_rule.c - times of small products by tiles and by vectors, and what follows
 */
#include "engine/forward/tile_rule.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/random.h"
#include "kernels/activations/activations.h"

#define N_ROUNDS 9
#define N_PANELS 2
#define K        ((size_t)2048)

#define PRESUMED 64 /* columns */

const size_t tile_sizes[TILE_N_SIZES] = {
    2, 4, 8, 16, 32, SUMS_INT8_COLUMNS, 128, 256, 512,
};

/* ---- the rule -------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_ratio(int size, size_t n_rounds,
                           const struct tile_times times[][TILE_N_SIZES])
{
    double v[TILE_MAX_ROUNDS];

    assert(n_rounds >= 1 && n_rounds <= TILE_MAX_ROUNDS);
    for (size_t i = 0; i < n_rounds; i++)
        v[i] = times[i][size].tiles / times[i][size].vectors;
    qsort(v, n_rounds, sizeof *v, by_value);
    return n_rounds % 2 ? v[n_rounds / 2] : (v[n_rounds / 2 - 1] + v[n_rounds / 2]) / 2;
}

size_t tile_choose(size_t presumed, int first, int end, size_t n_rounds,
                   const struct tile_times times[][TILE_N_SIZES])
{
    size_t from = TILES_NEVER;

    for (int i = end - 1; i >= first; i--) {
        const double most =
            tile_sizes[i] >= presumed ? 1 / (1 - TILE_MARGIN) : 1 - TILE_MARGIN;

        if (!(median_ratio(i, n_rounds, times) < most))
            break;
        from = tile_sizes[i];
    }
    return from;
}

/* ---- times ----------------------------------------------------------------------- */

struct product {
    void *panels, *x;
    float *y;
    size_t x_stride;
    kern_gemm_x16_fn *vectors, *tiles;
};

/* Any part of these bytes is a scale of ordinary size: tiles draw power by their
 * operands, so that zeros would be too fast, and denormal numbers too slow. */
static void fill(unsigned char *to, size_t n)
{
    uint64_t state = 1;

    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)(0x20 + random_below(&state, 0x20));
}

static double time_of(const struct product *p, kern_gemm_x16_fn *gemm, size_t n)
{
    static const struct kern_prefetch none;
    const uint64_t begin = clock_thread_ns();
    uint64_t ns;

    gemm(N_PANELS, K, p->panels, n, p->x, p->x_stride, p->y, N_PANELS * KERN_PANEL_ROWS,
         none);
    ns = clock_thread_ns() - begin;
    return ns > 0 ? (double)ns : 1;
}

static size_t measure(const struct product *p, size_t presumed, int first, int end)
{
    struct tile_times times[N_ROUNDS][TILE_N_SIZES];

    _Static_assert(N_ROUNDS <= TILE_MAX_ROUNDS, "the rule takes as many");
    time_of(p, p->vectors, tile_sizes[end - 1]); /* fills the caches */
    time_of(p, p->tiles, tile_sizes[end - 1]);
    for (int round = 0; round < N_ROUNDS; round++)
        for (int i = first; i < end; i++) {
            times[round][i].vectors = time_of(p, p->vectors, tile_sizes[i]);
            times[round][i].tiles = time_of(p, p->tiles, tile_sizes[i]);
        }
    return tile_choose(presumed, first, end, N_ROUNDS, (const void *)times);
}

size_t tile_measure(enum kern_format fmt, enum kern_act act, kern_gemm_x16_fn *vectors,
                    kern_gemm_x16_fn *tiles, size_t presumed, int first, bool late)
{
    const size_t n = tile_sizes[(late ? TILE_N_SIZES : TILE_LATE) - 1],
                 rows = N_PANELS * KERN_PANEL_ROWS;
    const size_t panel_bytes = KERN_ALIGN64(rows * kern_format_bytes(fmt, K));
    const size_t stride = kern_act_bytes(act, K);
    struct err ignored = ERR_INIT;
    struct mem memory = {.base = NULL};
    size_t from;

    if (mem_alloc(&memory, panel_bytes + n * stride + n * rows * sizeof(float),
                  MEM_PAGES_4K, "products to time", &ignored))
        return presumed;
    unsigned char *const base = memory.base;
    const struct product p = {.panels = base,
                              .x = base + panel_bytes,
                              .y = (float *)(void *)(base + panel_bytes + n * stride),
                              .x_stride = stride,
                              .vectors = vectors,
                              .tiles = tiles};

    fill(base, panel_bytes);
    memset(p.x, 0, n * stride);
    fill(p.x, K);
    for (size_t j = 1; j < n; j++)
        memcpy((unsigned char *)p.x + j * stride, p.x, K);
    from = measure(&p, presumed, first, TILE_LATE);
    if (from == TILES_NEVER && late)
        from = measure(&p, TILES_NEVER, TILE_LATE, TILE_N_SIZES);
    mem_free(&memory);
    return from;
}

size_t tile_columns(enum kern_format fmt, enum slm_sums sums, uint32_t isa_mask)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct known {
        uint32_t isa_mask;
        size_t from;
    } all[KERN_N_FMT][SLM_N_SUMS];
    const bool int8 = sums == SLM_SUMS_INT8;
    const enum kern_act act = int8 ? KERN_ACT_q8_256 : kern_format_info(fmt)->act;
    struct known *known = &all[fmt][sums];
    struct kern_set vectors, tiles;
    size_t from;

    if (!(isa_mask & ISA_TILE_LEVELS))
        return TILES_NEVER;
    kern_select(&vectors, isa_mask & ~ISA_TILE_LEVELS);
    kern_select(&tiles, isa_mask & ISA_TILE_LEVELS);
    kern_gemm_x16_fn *const by_vectors =
        int8 ? vectors.gemm_x16_int8[fmt] : vectors.gemm_x16[fmt];
    kern_gemm_x16_fn *const by_tiles =
        int8 ? tiles.gemm_x16_int8[fmt] : tiles.gemm_x16[fmt];

    if (!by_tiles || !by_vectors)
        return TILES_NEVER;
    pthread_mutex_lock(&mutex);
    if (known->isa_mask != isa_mask)
        *known = (struct known){
            isa_mask, tile_measure(fmt, act, by_vectors, by_tiles,
                                   act == KERN_ACT_q8_256 ? PRESUMED : TILES_NEVER,
                                   int8 ? TILE_LATE - 1 : 0, !int8)};
    from = known->from;
    pthread_mutex_unlock(&mutex);
    return from;
}

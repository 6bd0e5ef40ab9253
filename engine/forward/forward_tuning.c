/* SPDX-License-Identifier: MIT
 *
 * forward_tuning.c - the kernels that a pass multiplies with, and its other settings
 */
#include "engine/forward/forward_impl.h"

#include <string.h>

/* Parts of a thread's share: for one column as few as leave threads of unequal speed
 * little to wait for (test_row_chunks.c), since chunks are read faster the longer they
 * are; more for several, so that what a chunk computes (of gate and up) is still in a
 * cache when it is used. */
#define CHUNKS_DECODE  3
#define CHUNKS_PREFILL 4

/* Measured on x86 with distances of 2 to 8 KiB and all hints: on each machine this
 * setting was the best one or close to it. Some prefetchers of CPUs follow panels
 * across pages; others restart in every page of 4 KiB, and then this one loads the next
 * page's lines. */
static const struct kern_prefetch default_prefetch = {4096, KERN_PREFETCH_T0, 4};

struct slm_tuning slm_tuning_default(void)
{
    struct slm_tuning t = {.chunks_decode = CHUNKS_DECODE,
                           .chunks_prefill = CHUNKS_PREFILL,
                           .pages = MEM_PAGES_2M};

    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        t.prefetch[fmt] = default_prefetch;
    return t;
}

/* The kernels of the ISA levels chosen (0: all); in *other if not all. */
static const struct kern_set *select_levels(const struct kern_set *all, uint32_t chosen,
                                            struct kern_set *other)
{
    const uint32_t mask = all->isa_mask & chosen;

    if (!chosen || mask == all->isa_mask)
        return all;
    kern_select(other, mask);
    return other;
}

void forward_tune(struct forward *f, const struct slm_tuning *tuning)
{
    struct kern_set all, decode, prefill, tiles;

    f->tuning = *tuning;
    kern_select(&all, f->isa_mask & ~ISA_TILE_LEVELS);
    kern_select(&tiles, f->isa_mask & ISA_TILE_LEVELS);
    if (f->m->latent.kv_rank) {
        memcpy(f->dot_tiles, tiles.attn_dot, sizeof f->dot_tiles);
        memcpy(f->mix_tiles, tiles.attn_mix, sizeof f->mix_tiles);
        memcpy(f->mix_keys_tiles, tiles.attn_mix_keys, sizeof f->mix_keys_tiles);
    }
    f->dot_tiles[KERN_KV_bf16] = tiles.attn_dot[KERN_KV_bf16];
    f->mix_tiles[KERN_KV_bf16] = tiles.attn_mix[KERN_KV_bf16];
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const struct kern_set *one =
            select_levels(&all, tuning->isa_mask[fmt], &decode);
        const struct kern_set *several =
            select_levels(&all, tuning->isa_mask_prefill[fmt], &prefill);

        f->kern.gemv[fmt] = one->gemv[fmt];
        f->kern.gemm[fmt] = several->gemm[fmt];
        /* Weights in panels stay there, also where a level has no panels. */
        f->kern.gemv_x16[fmt] = (one->gemv_x16[fmt] ? one : &all)->gemv_x16[fmt];
        f->kern.gemm_x16[fmt] =
            (several->gemm_x16[fmt] ? several : &all)->gemm_x16[fmt];
        const bool by_tiles = !tuning->isa_mask_prefill[fmt] ||
                              tuning->isa_mask_prefill[fmt] & ISA_TILE_LEVELS;
        const size_t *from = f->tiles_from[SLM_SUMS_EXACT];

        f->tiles[fmt] = (struct fwd_tiles){by_tiles ? from[fmt] : TILES_NEVER,
                                           tiles.gemm[fmt], tiles.gemm_x16[fmt]};
        f->int8_tiles[fmt] =
            by_tiles && f->tiles_from[SLM_SUMS_INT8][fmt] != TILES_NEVER;

        const struct kern_set *int8 = f->int8_tiles[fmt] ? &tiles : &all;

        f->int8[fmt] = (struct fwd_tiles){
            int8->gemm_x16_int8[fmt] ? SUMS_INT8_COLUMNS : TILES_NEVER,
            int8->gemm_int8[fmt], int8->gemm_x16_int8[fmt]};
    }
}

bool forward_takes_tiles(const struct forward *f, size_t n_tokens)
{
    bool takes = false;

    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        takes |= f->prefill_sums == SLM_SUMS_INT8 && n_tokens >= f->int8[fmt].from
                     ? f->int8_tiles[fmt]
                     : n_tokens >= f->tiles[fmt].from;
    return takes;
}

bool forward_attends_by_tiles(const struct forward *f)
{
    return f->dot_tiles[KERN_KV_f16] || f->dot_tiles[f->kv_type];
}

void forward_get_tuning(const struct forward *f, struct slm_tuning *tuning)
{
    *tuning = f->tuning;
}

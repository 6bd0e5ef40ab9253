/* SPDX-License-Identifier: MIT
 *
 * x16_super_amx.h - super-blocks of 256 weights times several columns, by tiles
 *
 * Weights are multiplied with the integer scales of their sub-blocks before, so that
 * products of a whole super-block are one sum in 32 bits, as x16_super.h has it. A
 * weight times its scale needs up to 14 bits with its sign: it is cut into a low
 * unsigned byte and a high signed one, of which each gets tiles of its own, exactly:
 *
 *   sum_i x_i * (scale * weight)_i = sum_i x_i * low_i + 256 * sum_i x_i * high_i
 *
 * Of `narrow` formats it fits one signed byte, then there is but one product. Range:
 * |sum_i x_i * low_i| <= 256 * 127 * 255 = 8290560; the sum of both is the one that the
 * format argues to fit.
 *
 * Scales of formats with minima are six bits, and weights have no bias: scales are cut
 * in two digits of three bits instead, since a weight of at most 31 times 7 fits an
 * unsigned byte, and one multiplication of a word by a digit makes two of them:
 *
 *   sum_i x_i * (scale * weight)_i = sum_i x_i * low_i + 8 * sum_i x_i * high_i
 */
#ifndef SLM_KERNELS_SIMD_X16_SUPER_AMX_H
#define SLM_KERNELS_SIMD_X16_SUPER_AMX_H

#include "kernels/simd/x16_amx_steps.h"
#include "kernels/simd/x16_super_tile.h" /* requantises */

SIMD_INLINE void amx_super_emit(const struct x16_sink sink, int four, vi w)
{
    sink.tile[four] = w;
}

/* The products of four weights (biased, in bytes) and a scale (in both words of every
 * dword), of even and of odd bytes. */
SIMD_INLINE void amx_scaled(const struct x16_super_format *f, vi w, vi scale, vi *even,
                            vi *odd)
{
    *even = v_and(w, v_set1_32(0x00ff00ff));
    *odd = v_srl16(w, 8);
    if (f->bias != 0) {
        *even = _mm512_sub_epi16(*even, _mm512_set1_epi16((short)f->bias));
        *odd = _mm512_sub_epi16(*odd, _mm512_set1_epi16((short)f->bias));
    }
    *even = _mm512_mullo_epi16(*even, scale);
    *odd = _mm512_mullo_epi16(*odd, scale);
}

/* The lower bytes of both, side by side again; the upper ones. */
SIMD_INLINE vi amx_low(vi even, vi odd)
{
    return v_select(v_set1_32(0x00ff00ff), even, _mm512_slli_epi16(odd, 8));
}

SIMD_INLINE vi amx_high(vi even, vi odd)
{
    return v_select(v_set1_32(0x00ff00ff), v_srl16(even, 8), odd);
}

/* Four biased weights times a scale, in place. */
SIMD_INLINE void amx_super_scale(const struct x16_super_format *f, vi scale, vi *low,
                                 vi *high)
{
    vi even, odd;

    if (amx_has_digits(f)) {
        *high = _mm512_mullo_epi16(*low, v_srl16(scale, 3));
        *low = _mm512_mullo_epi16(*low, v_and(scale, v_set1_32(0x00070007)));
        return;
    }
    amx_scaled(f, *low, scale, &even, &odd);
    *low = amx_low(even, odd);
    if (!f->narrow)
        *high = amx_high(even, odd);
}

SIMD_INLINE void amx_super_unpack(const struct x16_super_format *f, const uint8_t *body,
                                  const uint8_t *block_scales, struct amx_super *out)
{
    const int n_subs = f->unscaled ? 1 : f->n_subs, per_sub = 64 / n_subs;
    const struct x16_sink sink = {.tile = out->low};
    struct x16_scales sc;

    f->scales(body, block_scales, &sc);
    out->d = f->narrow < 0 ? v_mul(sc.d, v_set1_f(-1)) : sc.d;
    if (f->mins) {
        memcpy(out->pairs, sc.pairs, sizeof(out->pairs));
        out->dmin = sc.dmin;
    }
    SIMD_UNROLL_64
    for (int step = 0; step < f->steps; step++)
        f->weights(body, step, amx_super_emit, sink);
    for (int t = 0; f->order != NULL && t < 64; t += 4)
        amx_reorder(f->order, 16, out->low + t);
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s++) {
        vi scale = f->unscaled ? v_set1_32(0x00010001)
                               : v_select(v_set1_32(0xffff), sc.scale[s],
                                          v_sll32(sc.scale[s], 16));

        if (f->narrow < 0)
            scale = _mm512_sub_epi16(v_zero(), scale);
        for (int t = s * per_sub; t < (s + 1) * per_sub; t++)
            amx_super_scale(f, scale, out->low + t, out->high + t);
    }
}

/* See amx_sides_fn. */
SIMD_INLINE void amx_super_sides(const struct x16_super_format *f, size_t k,
                                 size_t from, size_t to,
                                 const struct amx_columns *columns)
{
    const size_t first = from / X16_SUPER, n_groups = columns->n_groups;

    for (size_t g = 0; g < n_groups; g++)
        for (size_t j = 0; j < amx_added(columns); j++) {
            const char *x = amx_column(columns, g, j);

            for (size_t b = first; b < to / X16_SUPER; b++) {
                struct amx_side *side = columns->side + (b - first) * n_groups + g;
                struct x16_column column;

                side->d[0][j] = act_q8_256_d(x, k)[b];
                if (!f->mins)
                    continue;
                x16_column(f, f->n_subs, false, false, x, k, b, &column);
                memcpy(side->sums + j * (size_t)f->n_subs, column.sums,
                       (size_t)f->n_subs * sizeof(int16_t));
            }
        }
}

/* See amx_panels_fn. */
SIMD_INLINE void amx_super_panels(const struct x16_super_format *f, const uint8_t *w,
                                  const struct x16_rows *rows, size_t k, size_t from,
                                  size_t to, const struct amx_columns *columns,
                                  float *y, size_t y_stride, size_t n_rows,
                                  struct kern_prefetch prefetch)
{
    const size_t n_blocks = k / X16_SUPER, first = from / X16_SUPER,
                 end = to / X16_SUPER;
    uint8_t body_buffer[X16_SUPER * X16_ROWS] __attribute__((aligned(64)));
    uint8_t scale_buffer[4 * X16_ROWS] __attribute__((aligned(64)));
    struct amx_acc acc[AMX_MAX_GROUPS];
    struct amx_super panels[AMX_PANELS];

    amx_start(columns, from, y, y_stride, n_rows, acc);
    for (size_t b = first; b < end; b++) {
        const struct amx_super_turn turn = {.panels = panels,
                                            .columns = columns,
                                            .at = (b - first) * X16_SUPER,
                                            .side = columns->side +
                                                    (b - first) * columns->n_groups,
                                            .acc = acc,
                                            .n_added = columns->n_cols};

        for (size_t p = 0; p < AMX_PANELS; p++) {
            const uint8_t *body, *block_scales;

            amx_block(&f->layout, w, rows, p, n_blocks, first, end, b, n_rows, prefetch,
                      body_buffer, scale_buffer, &body, &block_scales);
            amx_super_unpack(f, body, block_scales, &panels[p]);
        }
        amx_super_all(f, &turn);
    }
    amx_store(columns, from, acc, y, y_stride, n_rows);
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * mix_keys_scalar.c - mixes of keys that are values, too, in plain C, the reference
 */
#include "kernels/half.h"
#include "kernels/kernels.h"

enum { PANEL = KERN_PANEL_ROWS, BLOCK = 32 };

/* Element i of position t of keys [d]. */
typedef float element_fn(const void *keys, size_t d, size_t t, size_t i);

static float key_f16(const void *keys, size_t d, size_t t, size_t i)
{
    const uint16_t *panel = (const uint16_t *)keys + t / PANEL * PANEL * d;

    return half_to_f32(panel[i * PANEL + t % PANEL]);
}

static float key_bf16(const void *keys, size_t d, size_t t, size_t i)
{
    const uint16_t *panel = (const uint16_t *)keys + t / PANEL * PANEL * d;

    return bf16_to_f32(panel[(i / 2 * PANEL + t % PANEL) * 2 + i % 2]);
}

/* The scale of the block that has element i, and the byte `byte` of its body. */
static float key_block(const void *keys, size_t body_bytes, size_t d, size_t t,
                       size_t i, size_t byte, uint8_t *at)
{
    const size_t n_blocks = d / BLOCK, bodies = PANEL * body_bytes, b = i / BLOCK;
    const uint8_t *panel =
        (const uint8_t *)keys + t / PANEL * n_blocks * (bodies + 2 * PANEL);
    const uint8_t *scale =
        panel + kern_panel_scales_at(bodies, 2 * PANEL, b) + t % PANEL * 2;

    *at = panel[kern_panel_body_at(bodies, 2 * PANEL, n_blocks, b) +
                byte / 4 * 4 * PANEL + t % PANEL * 4 + byte % 4];
    return half_to_f32((uint16_t)(scale[0] | scale[1] << 8));
}

static float key_q8_0(const void *keys, size_t d, size_t t, size_t i)
{
    uint8_t at;
    const float scale = key_block(keys, 32, d, t, i, i % BLOCK, &at);

    return scale * (float)(int8_t)at;
}

/* Byte j of a body has elements j and j + 16, plus 8. */
static float key_q4_0(const void *keys, size_t d, size_t t, size_t i)
{
    uint8_t at;
    const float scale = key_block(keys, 16, d, t, i, i % 16, &at);

    return scale * (float)((at >> (i % BLOCK < 16 ? 0 : 4) & 15) - 8);
}

#define MIX_KEYS(type)                                                    \
    void kern_attn_mix_keys_##type##__scalar(                             \
        size_t n, size_t d, size_t key_dim, const void *keys, size_t n_q, \
        const float *p, size_t p_stride, float *out, size_t o_stride)     \
    {                                                                     \
        for (size_t t = 0; t < n; t++)                                    \
            for (size_t i = 0; i < d; i++) {                              \
                const float v = key_##type(keys, key_dim, t, i);          \
                                                                          \
                for (size_t q = 0; q < n_q; q++)                          \
                    out[q * o_stride + i] += p[q * p_stride + t] * v;     \
            }                                                             \
    }

MIX_KEYS(f16)
MIX_KEYS(bf16)
MIX_KEYS(q8_0)
MIX_KEYS(q4_0)

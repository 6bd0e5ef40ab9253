/* SPDX-License-Identifier: MIT
 *
 * vec_neon.h - the words of vec.h in 128-bit Arm registers
 *
 * A vector is four registers, so that its sixteen lanes are all rows of a panel. SDOT
 * multiplies signed bytes; weights of 0..127 are that too.
 */
#ifndef SLM_KERNELS_SIMD_VEC_NEON_H
#define SLM_KERNELS_SIMD_VEC_NEON_H

#include "kernels/simd/neon.h"

enum {
    V_LANES = 16,
    V_TILE_COLS = 4, /* columns whose sums fit the registers */
    V_FEW_COLS = 1,
};

#define V_DOT32      1
#define V_SIGNED     1
#define V_WIDE       0
#define V_BLOCK_ROWS 0
#define V_DOT_OF_16  1
#ifdef KERN_LEVEL_neon_i8mm
#define V_PAIRS 1
#endif

/* Named members: the compiler keeps those in registers, arrays not always. */
typedef struct {
    int32x4_t q0, q1, q2, q3;
} vi;
typedef struct {
    float32x4_t q0, q1, q2, q3;
} vf;

/* A word applied to each of the four registers of one, two or three vectors. */
#define V_EACH_1(type, f, a) ((type){f((a).q0), f((a).q1), f((a).q2), f((a).q3)})
#define V_EACH_2(type, f, a, b) \
    ((type){f((a).q0, (b).q0), f((a).q1, (b).q1), f((a).q2, (b).q2), f((a).q3, (b).q3)})
#define V_EACH_3(type, f, a, b, c)                                \
    ((type){f((a).q0, (b).q0, (c).q0), f((a).q1, (b).q1, (c).q1), \
            f((a).q2, (b).q2, (c).q2), f((a).q3, (b).q3, (c).q3)})
#define V_ALL(type, q) ((type){q, q, q, q})

/* 16 bytes at any address. */
SIMD_INLINE int32x4_t q_load(const void *p)
{
    return vreinterpretq_s32_u8(vld1q_u8(p));
}

SIMD_INLINE vi v_load(const void *p)
{
    const uint8_t *at = p;

    return (vi){q_load(at), q_load(at + 16), q_load(at + 32), q_load(at + 48)};
}

SIMD_INLINE void v_store(void *p, vi v)
{
    uint8_t *at = p;

    vst1q_u8(at, vreinterpretq_u8_s32(v.q0));
    vst1q_u8(at + 16, vreinterpretq_u8_s32(v.q1));
    vst1q_u8(at + 32, vreinterpretq_u8_s32(v.q2));
    vst1q_u8(at + 48, vreinterpretq_u8_s32(v.q3));
}

/* The same vector. */
SIMD_INLINE vi v_keep(vi v)
{
    return v;
}

/* The same address. */
SIMD_INLINE void v_made(vi v)
{
    (void)v;
}

SIMD_INLINE vi v_zero(void)
{
    return V_ALL(vi, vdupq_n_s32(0));
}

SIMD_INLINE vi v_set1_8(int v)
{
    return V_ALL(vi, vreinterpretq_s32_s8(vdupq_n_s8((int8_t)v)));
}

SIMD_INLINE vi v_set1_32(int v)
{
    return V_ALL(vi, vdupq_n_s32(v));
}

SIMD_INLINE int32x4_t q_bcast_4(const void *p)
{
    int32_t v;

    memcpy(&v, p, sizeof(v));
    return vdupq_n_s32(v);
}

SIMD_INLINE vi v_bcast_4(const void *p)
{
    return V_ALL(vi, q_bcast_4(p));
}

/* 16 bytes, repeated. */
SIMD_INLINE vi v_bcast_16(const void *p)
{
    return V_ALL(vi, q_load(p));
}

/* V_LANES unsigned or signed bytes, or signed 16-bit numbers, as integers. */
SIMD_INLINE vi v_u8(const void *p)
{
    const uint8x16_t v = vld1q_u8(p);
    const uint16x8_t low = vmovl_u8(vget_low_u8(v)), high = vmovl_high_u8(v);

    return (vi){vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))),
                vreinterpretq_s32_u32(vmovl_high_u16(low)),
                vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
                vreinterpretq_s32_u32(vmovl_high_u16(high))};
}

SIMD_INLINE vi v_from_s16(int16x8_t low, int16x8_t high)
{
    return (vi){vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low),
                vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)};
}

SIMD_INLINE vi v_s8(const void *p)
{
    const int8x16_t v = vld1q_s8(p);

    return v_from_s16(vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v));
}

SIMD_INLINE vi v_s16(const int16_t *p)
{
    return v_from_s16(vld1q_s16(p), vld1q_s16(p + 8));
}

/* out[i], i < 8: sums of two neighbours of sixteen 16-bit numbers, which fit 16 bits,
 * in the order 0, 2, 1, 3, 4, 6, 5, 7. */
SIMD_INLINE void v_sums_of_two(const int16_t *v, int16_t *out)
{
    static const uint8_t order[16] = {0, 1, 4,  5,  2,  3,  6,  7,
                                      8, 9, 12, 13, 10, 11, 14, 15};
    const int16x8_t two = vpaddq_s16(vld1q_s16(v), vld1q_s16(v + 8));

    vst1q_s16(out, vreinterpretq_s16_u8(
                       vqtbl1q_u8(vreinterpretq_u8_s16(two), vld1q_u8(order))));
}

/* out[i], i < 8: `by` times the sum of two neighbours of sixteen 16-bit numbers. */
SIMD_INLINE void v_sums_times(const int16_t *v, int by, int32_t *out)
{
    vst1q_s32(out, vmulq_n_s32(vpaddlq_s16(vld1q_s16(v)), by));
    vst1q_s32(out + 4, vmulq_n_s32(vpaddlq_s16(vld1q_s16(v + 8)), by));
}

/* to[i] = from[order[i]], i < 32; every order below 32. */
SIMD_INLINE void v_order_32(const void *from, const uint8_t *order, void *to)
{
    const uint8_t *at = from;
    const uint8x16x2_t table = {{vld1q_u8(at), vld1q_u8(at + 16)}};

    vst1q_u8(to, vqtbl2q_u8(table, vld1q_u8(order)));
    vst1q_u8((uint8_t *)to + 16, vqtbl2q_u8(table, vld1q_u8(order + 16)));
}

SIMD_INLINE vi v_and(vi a, vi b)
{
    return V_EACH_2(vi, vandq_s32, a, b);
}

SIMD_INLINE vi v_or(vi a, vi b)
{
    return V_EACH_2(vi, vorrq_s32, a, b);
}

SIMD_INLINE vi v_xor(vi a, vi b)
{
    return V_EACH_2(vi, veorq_s32, a, b);
}

SIMD_INLINE int32x4_t q_select(int32x4_t mask, int32x4_t a, int32x4_t b)
{
    return vbslq_s32(vreinterpretq_u32_s32(mask), a, b);
}

/* Bits of a where mask has ones, of b elsewhere. */
SIMD_INLINE vi v_select(vi mask, vi a, vi b)
{
    return V_EACH_3(vi, q_select, mask, a, b);
}

/* Shifts by a constant; as operators, since the intrinsics take literals only. */
#define Q_SRL8(v)  vreinterpretq_s32_u8(vreinterpretq_u8_s32(v) >> n)
#define Q_SRL16(v) vreinterpretq_s32_u16(vreinterpretq_u16_s32(v) >> n)
#define Q_SLL16(v) vreinterpretq_s32_u16(vreinterpretq_u16_s32(v) << n)
#define Q_SRL32(v) vreinterpretq_s32_u32(vreinterpretq_u32_s32(v) >> n)
#define Q_SLL32(v) vreinterpretq_s32_u32(vreinterpretq_u32_s32(v) << n)
#define Q_SRA32(v) ((v) >> n)

SIMD_INLINE vi v_srl8(vi v, int by)
{
    const uint8_t n = (uint8_t)by;

    return V_EACH_1(vi, Q_SRL8, v);
}

SIMD_INLINE vi v_srl16(vi v, int by)
{
    const uint16_t n = (uint16_t)by;

    return V_EACH_1(vi, Q_SRL16, v);
}

SIMD_INLINE vi v_sll16(vi v, int by)
{
    const uint16_t n = (uint16_t)by;

    return V_EACH_1(vi, Q_SLL16, v);
}

SIMD_INLINE vi v_srl32(vi v, int by)
{
    const uint32_t n = (uint32_t)by;

    return V_EACH_1(vi, Q_SRL32, v);
}

SIMD_INLINE vi v_sll32(vi v, int by)
{
    const uint32_t n = (uint32_t)by;

    return V_EACH_1(vi, Q_SLL32, v);
}

SIMD_INLINE vi v_sra32(vi v, int by)
{
    const int32_t n = (int32_t)by;

    return V_EACH_1(vi, Q_SRA32, v);
}

SIMD_INLINE int32x4_t q_add8(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_s8(
        vaddq_s8(vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b)));
}

SIMD_INLINE vi v_add8(vi a, vi b)
{
    return V_EACH_2(vi, q_add8, a, b);
}

SIMD_INLINE int32x4_t q_sub8(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_s8(
        vsubq_s8(vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b)));
}

SIMD_INLINE vi v_sub8(vi a, vi b)
{
    return V_EACH_2(vi, q_sub8, a, b);
}

SIMD_INLINE vi v_add32(vi a, vi b)
{
    return V_EACH_2(vi, vaddq_s32, a, b);
}

SIMD_INLINE vi v_sub32(vi a, vi b)
{
    return V_EACH_2(vi, vsubq_s32, a, b);
}

SIMD_INLINE vi v_mul32(vi a, vi b)
{
    return V_EACH_2(vi, vmulq_s32, a, b);
}

/* The larger of signed lanes. */
SIMD_INLINE vi v_max32(vi a, vi b)
{
    return V_EACH_2(vi, vmaxq_s32, a, b);
}

SIMD_INLINE int32x4_t q_shuffle(int32x4_t bytes, uint8x16_t from)
{
    return vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(bytes), from));
}

/* Byte i of every lane in all bytes of the lane. */
SIMD_INLINE vi v_lane_byte(vi v, int i)
{
    const uint32x4_t lanes = {0, 0x04040404, 0x08080808, 0x0c0c0c0c};
    const uint8x16_t from =
        vaddq_u8(vreinterpretq_u8_u32(lanes), vdupq_n_u8((uint8_t)i));

    return (vi){q_shuffle(v.q0, from), q_shuffle(v.q1, from), q_shuffle(v.q2, from),
                q_shuffle(v.q3, from)};
}

/* All ones in the bytes where a and b have a bit in common. */
SIMD_INLINE int32x4_t q_common(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_u8(
        vtstq_u8(vreinterpretq_u8_s32(a), vreinterpretq_u8_s32(b)));
}

/* a + b in the bytes where v and bit have a bit in common; bit has one in each. */
SIMD_INLINE vi v_add8_if(vi a, vi v, vi bit, vi b)
{
    const vi has = V_EACH_2(vi, q_common, v, bit);

    return v_add8(a, v_and(has, b));
}

SIMD_INLINE int32x4_t q_table16(int32x4_t table, int32x4_t index)
{
    return q_shuffle(table, vreinterpretq_u8_s32(index));
}

SIMD_INLINE vi v_table16(vi table, vi index)
{
    return V_EACH_2(vi, q_table16, table, index);
}

SIMD_INLINE vi v_table16_low(vi table, vi index)
{
    return v_table16(table, v_and(index, v_set1_8(15)));
}

SIMD_INLINE vi v_table16_high(vi table, vi index)
{
    return v_table16(table, v_srl8(index, 4));
}

/* table[i] for the integer i of every lane. */
SIMD_INLINE vi v_gather(const void *table, vi i)
{
    uint32_t index[16], entry[16];

    v_store(index, i);
    SIMD_UNROLL
    for (int lane = 0; lane < 16; lane++)
        memcpy(&entry[lane], (const char *)table + 4 * (size_t)index[lane], 4);
    return v_load(entry);
}

/* The 8-byte entries of a table: their first and their second four bytes. index: of
 * lane i the number of `bytes` bytes at index + 4 * i. */
SIMD_INLINE void v_gather_8(const uint8_t (*table)[8], const uint8_t *index, int bytes,
                            vi *first, vi *second)
{
    int32x4_t two[8];

    SIMD_UNROLL
    for (size_t i = 0; i < 8; i++) {
        const uint8_t *at = index + 8 * i;

        two[i] = vreinterpretq_s32_u8(
            vcombine_u8(vld1_u8(table[load_index(at, bytes)]),
                        vld1_u8(table[load_index(at + 4, bytes)])));
    }
    *first = (vi){vuzp1q_s32(two[0], two[1]), vuzp1q_s32(two[2], two[3]),
                  vuzp1q_s32(two[4], two[5]), vuzp1q_s32(two[6], two[7])};
    *second = (vi){vuzp2q_s32(two[0], two[1]), vuzp2q_s32(two[2], two[3]),
                   vuzp2q_s32(two[4], two[5]), vuzp2q_s32(two[6], two[7])};
}

SIMD_INLINE int32x4_t q_minus_where(int32x4_t v, int32x4_t from, int32x4_t bits,
                                    int32x4_t sel)
{
    const uint8x16_t where =
        vtstq_u8(vreinterpretq_u8_s32(bits), vreinterpretq_u8_s32(sel));

    return vbslq_s32(vreinterpretq_u32_u8(where), q_sub8(from, v), v);
}

/* v, but from - v in bytes where bits has the one bit that sel has. */
SIMD_INLINE vi v_minus_where(vi v, vi from, vi bits, vi sel)
{
    return (vi){q_minus_where(v.q0, from.q0, bits.q0, sel.q0),
                q_minus_where(v.q1, from.q1, bits.q1, sel.q1),
                q_minus_where(v.q2, from.q2, bits.q2, sel.q2),
                q_minus_where(v.q3, from.q3, bits.q3, sel.q3)};
}

/* ---- dot products ------------------------------------------------------------- */

SIMD_INLINE int32x4_t q_dot(int32x4_t sum, int32x4_t w, int8x16_t x)
{
    return vdotq_s32(sum, vreinterpretq_s8_s32(w), x);
}

SIMD_INLINE vi v_dot_s(vi part, vi w, const void *x)
{
    const int8x16_t b = vreinterpretq_s8_s32(q_bcast_4(x));

    return (vi){q_dot(part.q0, w.q0, b), q_dot(part.q1, w.q1, b),
                q_dot(part.q2, w.q2, b), q_dot(part.q3, w.q3, b)};
}

SIMD_INLINE vi v_dot_u(vi part, vi w, const void *x)
{
    return v_dot_s(part, w, x);
}

/* The same with four i of the sixteen activations at x. The instruction has i in it: it
 * is a constant, which intrinsics want to see. */
#define Q_DOT_OF_16(sum, w, x, i) vdotq_laneq_s32(sum, vreinterpretq_s8_s32(w), x, i)
#define V_DOT_OF(i)                                                           \
    ((vi){Q_DOT_OF_16(part.q0, w.q0, b, i), Q_DOT_OF_16(part.q1, w.q1, b, i), \
          Q_DOT_OF_16(part.q2, w.q2, b, i), Q_DOT_OF_16(part.q3, w.q3, b, i)})
SIMD_INLINE vi v_dot_of_16(vi part, vi w, const int8_t *x, int i)
{
    const int8x16_t b = vld1q_s8(x);

    return i == 0   ? V_DOT_OF(0)
           : i == 1 ? V_DOT_OF(1)
           : i == 2 ? V_DOT_OF(2)
                    : V_DOT_OF(3);
}

SIMD_INLINE vi v_dot_sum(vi part)
{
    return part;
}

/* Scale form: a 32-bit number. */
SIMD_INLINE vi v_scale(vi scale)
{
    return scale;
}

/* The scale form of unsigned byte i of every lane. */
SIMD_INLINE vi v_scale_u8(vi four, int i)
{
    return v_and(i == 0 ? four : v_srl32(four, 8 * i), v_set1_32(255));
}

SIMD_INLINE vi v_add_scaled(vi sum, vi part, vi scale)
{
    return V_EACH_3(vi, vmlaq_s32, sum, part, scale);
}

/* sum + the lower halves * two[0] + the upper halves * two[1]. */
SIMD_INLINE int32x4_t q_dot_pairs(int32x4_t sum, int32x4_t pairs, const int16_t *two)
{
    sum = vmlal_n_s16(sum, vmovn_s32(pairs), two[0]);
    return vmlal_n_s16(sum, vshrn_n_s32(pairs, 16), two[1]);
}

SIMD_INLINE vi v_dot_pairs(vi sum, vi pairs, const int16_t *two)
{
    return (vi){q_dot_pairs(sum.q0, pairs.q0, two), q_dot_pairs(sum.q1, pairs.q1, two),
                q_dot_pairs(sum.q2, pairs.q2, two), q_dot_pairs(sum.q3, pairs.q3, two)};
}

/* ---- floats ------------------------------------------------------------------- */

SIMD_INLINE vf v_half(const void *p)
{
    const uint8_t *at = p;

    return (vf){load_4_halves(at), load_4_halves(at + 8), load_4_halves(at + 16),
                load_4_halves(at + 24)};
}

SIMD_INLINE float32x4_t q_half_low(int32x4_t v)
{
    return vcvt_f32_f16(vreinterpret_f16_s16(vmovn_s32(v)));
}

/* The lower halves of the lanes. */
SIMD_INLINE vf v_half_low(vi v)
{
    return V_EACH_1(vf, q_half_low, v);
}

SIMD_INLINE vf v_float_bits(vi v)
{
    return V_EACH_1(vf, vreinterpretq_f32_s32, v);
}

SIMD_INLINE vf v_to_float(vi v)
{
    return V_EACH_1(vf, vcvtq_f32_s32, v);
}

SIMD_INLINE vf v_zero_f(void)
{
    return V_ALL(vf, vdupq_n_f32(0));
}

SIMD_INLINE vf v_set1_f(float v)
{
    return V_ALL(vf, vdupq_n_f32(v));
}

SIMD_INLINE vf v_mul(vf a, vf b)
{
    return V_EACH_2(vf, vmulq_f32, a, b);
}

SIMD_INLINE vf v_fma(vf a, vf b, vf c)
{
    return V_EACH_3(vf, vfmaq_f32, c, a, b);
}

SIMD_INLINE vf v_fnma(vf a, vf b, vf c)
{
    return V_EACH_3(vf, vfmsq_f32, c, a, b);
}

SIMD_INLINE void v_store_f(float *p, vf v)
{
    vst1q_f32(p, v.q0);
    vst1q_f32(p + 4, v.q1);
    vst1q_f32(p + 8, v.q2);
    vst1q_f32(p + 12, v.q3);
}

/* The first n < V_LANES lanes. */
SIMD_INLINE void v_store_some(float *p, vf v, size_t n)
{
    float all[V_LANES];

    v_store_f(all, v);
    memcpy(p, all, n * sizeof(float));
}

/* ---- rows to lanes ------------------------------------------------------------ */

/* out[j] = dword j of the 16 bytes at p + i * stride, i < V_LANES. */
SIMD_INLINE void v_rows_16(const uint8_t *p, size_t stride, vi out[4])
{
    int32x4_t m[4][4]; /* [four rows][dword] */

    SIMD_UNROLL
    for (size_t g = 0; g < 4; g++) {
        SIMD_UNROLL
        for (size_t r = 0; r < 4; r++)
            m[g][r] = q_load(p + (4 * g + r) * stride);
        transpose_4x4(m[g]);
    }
    SIMD_UNROLL
    for (int j = 0; j < 4; j++)
        out[j] = (vi){m[0][j], m[1][j], m[2][j], m[3][j]};
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * vec.h - one vector of 32-bit lanes, the same words on every ISA level
 *
 * A quantised format's kernels are written once, in <format>_simd.c, and compiled
 * for every vector level; the build defines KERN_LEVEL (avx2, avxvnni, avx512,
 * avx512vnni, avx512vbmi, neon, neon_i8mm) and KERN_LEVEL_<level>. This header
 * includes the level's words:
 *
 *   vi, vf            V_LANES lanes: 32-bit integers (or 4 bytes each), floats
 *   v_load            any address; v_bcast_4: four bytes into all lanes
 *   v_sums_of_two     sixteen 16-bit numbers to eight sums of two
 *   v_sums_times      the same sums, times a number; v_order_32: 32 bytes put in order
 *   v_half            V_LANES halves to floats; v_u8, v_s8, v_s16: to integers
 *   v_and v_or v_xor  v_srl32 v_sll32 v_sra32 (lane), v_srl16 (16-bit lanes), v_srl8
 *   v_add32 v_sub32 v_mul32 v_add8 v_sub8
 *   v_max32           v_lane_byte(v, i): byte i of a lane in all its bytes
 *   v_add8_if(a, v, bit, b)  a + b in bytes where v has the bit
 *   v_table16(t, i)   bytes t[i], every byte of i below 16
 *   v_table16_low(t, v), v_table16_high(t, v)  by the lower or the upper four bits of
 *                     every byte; t comes from v_bcast_16
 *   v_gather(t, i)    dwords t[i] of a table in memory; v_gather_8: 8-byte entries,
 *                     whose numbers are in memory
 *   v_words_256, v_words_512  words of a table in registers, where V_WORDS is defined
 *   v_minus_where     bytes subtracted from another where a sign bit is set
 *   v_keep, v_made    "steering the compiler" in simd.h
 *   v_dot_u, v_dot_s  dot products of 4 bytes per lane, see below
 *   v_fma(a, b, c)    a * b + c; v_fnma: c - a * b
 *   v_add v_div v_max_f v_abs_f v_round  v_min_u8 v_max_u8 v_add16 v_mul16 (x86 alone)
 *   v_rows_16(p, ...) 16 bytes of V_LANES rows as four vectors: v[j] has dword j
 *
 * Dot products multiply a lane's four weight bytes with four activation bytes that
 * are broadcast from memory, and add to a lane of a `part`. Weights are unsigned,
 * 0..127 (v_dot_u), or signed (v_dot_s). V_DOT_OF_16 1: or an instruction takes them
 * from a register of sixteen, v_dot_of_16(). What a part is depends on V_DOT32:
 *
 *   V_DOT32 1   a part is 32-bit sums; nothing overflows within a block
 *   V_DOT32 0   (no dot instruction) a part is pairs of 16-bit sums; at most
 *               V_RUN(max) products may be added for weights of at most max
 *
 * v_dot_sum() gives 32-bit sums, v_add_scaled() adds part * scale to 32-bit sums.
 * Scales are 16-bit numbers in the *scale form* of the level, made by v_scale() from
 * the lower 16 bits of each lane or by v_scale_u8() from one of its four bytes.
 *
 * V_FEW_COLS: of at most eight columns, this many at a time are multiplied straight
 * from the blocks; 1: unpacking into a tile first is as fast.
 *
 * V_TILE_PANELS: how many panels share the columns that are multiplied with unpacked
 * tiles; where more than one do, v_dot_x() is v_dot_u() of activations in a register.
 * V_TILE_SUMS_APART 1: registers hold parts, sums are in memory between sub-blocks.
 *
 * V_PAIRS 1: an instruction multiplies pairs of rows with pairs of columns; unpacked
 * tiles are then laid out for it (x16_pairs.h).
 *
 * V_BLOCK_ROWS 1: rows in file order of simple formats are multiplied as they are
 * (x16_block_rows.h), not interleaved first.
 *
 * V_SIGNS_APART 1: v_dot_signs() multiplies magnitudes with activations that take the
 * weights' signs, which v_signs() makes from bits; weights that come as magnitudes and
 * bits then need not be put together. v_greater_8() compares signed bytes.
 *
 * V_SIGNED 0 means that v_dot_s is missing: the dot instruction takes unsigned
 * weights, and formats of signed weights add a bias. V_WIDE 1 means that v_dot_u takes
 * all of 0..255, so that weights may be left in the upper bits of a byte and the sum
 * be shifted instead.
 */
#ifndef SLM_KERNELS_SIMD_VEC_H
#define SLM_KERNELS_SIMD_VEC_H

#include "kernels/simd/simd.h"

#if defined(KERN_LEVEL_avx512) || defined(KERN_LEVEL_avx512vnni) || \
    defined(KERN_LEVEL_avx512vbmi) || defined(KERN_LEVEL_amx_int8)
#include "kernels/simd/vec_512.h"
#elif defined(KERN_LEVEL_avx2) || defined(KERN_LEVEL_avxvnni)
#include "kernels/simd/vec_256.h"
#elif defined(KERN_LEVEL_neon) || defined(KERN_LEVEL_neon_i8mm)
#include "kernels/simd/vec_neon.h"
#ifdef V_PAIRS
#include "kernels/simd/vec_neon_pairs.h"
#endif
#else
#error "compile with -DKERN_LEVEL=<level> -DKERN_LEVEL_<level>"
#endif

/* V_AMX 1: a level of tiles (amx.h), which multiply several columns; its other words
 * are those of 512-bit registers. */
#ifdef KERN_LEVEL_amx_int8
#define V_AMX 1
#else
#define V_AMX 0
#endif
/* V_INT8 1: many columns may be multiplied with requantised weights (x16_int8.h). */
#if defined(KERN_LEVEL_avxvnni) || defined(KERN_LEVEL_avx512vnni) || \
    defined(KERN_LEVEL_amx_int8)
#define V_INT8 1
#else
#define V_INT8 0
#endif
#ifndef V_PAIRS
#define V_PAIRS 0
#endif
#ifndef V_TILE_PANELS
#define V_TILE_PANELS 1
#endif
#ifndef V_TILE_SUMS_APART
#define V_TILE_SUMS_APART 0
#endif
#ifndef V_SIGNS_APART
#define V_SIGNS_APART 0
#endif
#ifndef V_DOT_OF_16
#define V_DOT_OF_16 0
#endif

/* How many v_dot_u or v_dot_s of weights of at most `max` fit a part. */
#if V_DOT32
#define V_RUN(max) 1024
#else
#define V_RUN(max) (32767 / (2 * (max)*127))
#endif

#endif

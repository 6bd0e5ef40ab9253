/* SPDX-License-Identifier: MIT
 *
 * probe_simd.c - the bandwidth ceiling and the compute ceilings, every vector level
 *
 * A register is a vector of the compiler's own; only products are the level's. Sums
 * are independent and as many as hide the latency of an instruction: two units of four
 * or five cycles need ten, four units of four cycles (Arm) sixteen.
 */
#include "kernels/probe/probe.h"
#include "kernels/simd/simd.h"

#if defined(KERN_LEVEL_neon) || defined(KERN_LEVEL_neon_i8mm)
#include <arm_neon.h>
enum { REGISTER = 16, N_READ = 8, N_INT8 = 16, N_F32 = 16 };
#else
#include <immintrin.h>
#ifdef __AVX512F__
enum { REGISTER = 64, N_READ = 4, N_INT8 = 16, N_F32 = 16 };
#else
enum { REGISTER = 32, N_READ = 4, N_INT8 = 10, N_F32 = 12 };
#endif
#endif

typedef uint64_t vu64 __attribute__((vector_size(REGISTER), may_alias));
typedef uint32_t vu32 __attribute__((vector_size(REGISTER)));
typedef int8_t vs8 __attribute__((vector_size(REGISTER)));
typedef float vf32 __attribute__((vector_size(REGISTER)));

/* ---- multiply-adds of bytes --------------------------------------------------------
 */

/* The 32-bit sums may wrap: nobody reads them as numbers. Without a dot instruction a
 * 16-bit lane of maddubs holds 2 * 3 * -5. */
SIMD_INLINE vu32 multiply_add(vu32 acc, vs8 a, vs8 b)
{
#if defined(KERN_LEVEL_neon)
    return (vu32)vdotq_s32((int32x4_t)acc, (int8x16_t)a, (int8x16_t)b);
#elif defined(KERN_LEVEL_neon_i8mm)
    return (vu32)vmmlaq_s32((int32x4_t)acc, (int8x16_t)a, (int8x16_t)b);
#elif defined(KERN_LEVEL_avx512vnni)
    return (vu32)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#elif defined(KERN_LEVEL_avxvnni)
    return (vu32)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)a, (__m256i)b);
#elif defined(KERN_LEVEL_avx512)
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)a, (__m512i)b);

    return acc + (vu32)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#else
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)a, (__m256i)b);

    return acc + (vu32)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* In one such step; SMMLA multiplies 2 x 8 by 8 x 2 bytes. */
#ifdef KERN_LEVEL_neon_i8mm
enum { MULTIPLY_ADDS = 2 * REGISTER };
#else
enum { MULTIPLY_ADDS = REGISTER };
#endif

uint64_t KERN_LEVEL_NAME(peak_int8)(uint64_t n_iters, uint64_t *sink)
{
    vs8 a = (vs8){0} + 3;
    const vs8 b = (vs8){0} - 5;
    vu32 acc[N_INT8];

    /* opaque, so that equal sums are not merged into one and products of equal operands
     * are not shared */
    for (uint32_t i = 0; i < N_INT8; i++) {
        acc[i] = (vu32){0} + i;
        SIMD_OPAQUE(acc[i]);
    }
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_INT8; i++) {
            SIMD_OPAQUE(a);
            acc[i] = multiply_add(acc[i], a, b);
        }
    for (int i = 1; i < N_INT8; i++)
        acc[0] += acc[i];
    *sink = acc[0][0];
    return n_iters * N_INT8 * MULTIPLY_ADDS * 2;
}

/* What follows differs in the width of registers only: rows of kernels.def for the
 * lowest level of each. */
#if defined(KERN_LEVEL_avx2) || defined(KERN_LEVEL_avx512) || defined(KERN_LEVEL_neon)

/* ---- multiply-adds of floats -------------------------------------------------------
 */

/* x86: tends to 1, so it neither overflows nor becomes denormal. FMLA adds to its first
 * operand, so the sums grow, by 3/16 a round until that is less than a rounding. */
SIMD_INLINE vf32 multiply_add_f32(vf32 acc, vf32 a, vf32 b)
{
#if defined(KERN_LEVEL_neon)
    return (vf32)vfmaq_f32((float32x4_t)acc, (float32x4_t)a, (float32x4_t)b);
#elif defined(KERN_LEVEL_avx512)
    return (vf32)_mm512_fmadd_ps((__m512)acc, (__m512)a, (__m512)b);
#else
    return (vf32)_mm256_fmadd_ps((__m256)acc, (__m256)a, (__m256)b);
#endif
}

uint64_t KERN_LEVEL_NAME(peak_f32)(uint64_t n_iters, uint64_t *sink)
{
    const vf32 a = (vf32){0} + 0.75f, b = (vf32){0} + 0.25f;
    vf32 acc[N_F32];

    for (int i = 0; i < N_F32; i++) {
        acc[i] = (vf32){0} + (float)i;
        SIMD_OPAQUE(acc[i]);
    }
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_F32; i++)
            acc[i] = multiply_add_f32(acc[i], a, b);
    for (int i = 1; i < N_F32; i++)
        acc[0] += acc[i];
    *sink = (uint64_t)acc[0][0];
    return n_iters * N_F32 * (REGISTER / sizeof(float)) * 2;
}

/* ---- reading -----------------------------------------------------------------------
 */

/* Prefetch goes to the second level: on its way to the first a line would hold one
 * of few miss buffers for the whole latency of memory. */
SIMD_INLINE uint64_t read_streams(const char *p, size_t part, int n_streams,
                                  size_t distance)
{
    enum { PER_LINE = 64 / REGISTER };
    vu64 acc[N_READ] = {{0}};
    uint64_t sum = 0;

    for (size_t at = 0; at < part; at += 64)
        for (int s = 0; s < n_streams; s++) {
            const char *line = p + (size_t)s * part + at;
            vu64 *to = &acc[s * PER_LINE % N_READ];

            if (distance)
                __builtin_prefetch(line + distance, 0, 2);
            SIMD_UNROLL
            for (int i = 0; i < PER_LINE; i++)
                to[i] += ((const vu64 *)(const void *)line)[i];
        }
    for (int i = 1; i < N_READ; i++)
        acc[0] += acc[i];
    for (size_t i = 0; i < REGISTER / sizeof(uint64_t); i++)
        sum += acc[0][i];
    return sum;
}

/* Number of streams and whether to prefetch are constants in each call, so that
 * every variant is a loop of its own without branches. */
uint64_t KERN_LEVEL_NAME(stream_read)(const void *p, size_t bytes, int n_streams,
                                      size_t distance)
{
    const size_t part = bytes / 64 / (size_t)n_streams * 64;
    const size_t done = part * (size_t)n_streams;
    uint64_t sum;

#define READ(n) \
    (distance ? read_streams(p, part, n, distance) : read_streams(p, part, n, 0))
    if (n_streams == 4)
        sum = READ(4);
    else if (n_streams == 2)
        sum = READ(2);
    else
        sum = READ(1);
#undef READ
    return sum + read_streams((const char *)p + done, bytes - done, 1, 0);
}
#endif

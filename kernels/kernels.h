/* SPDX-License-Identifier: MIT
 *
 * kernels.h - quantised arithmetic on the caller's buffers
 *
 * Model of the world: a weight matrix is n_rows rows of k elements in one
 * *weight format* (blocks as GGUF stores them); an activation column is k
 * values in one *activation layout*. A kernel *variant* is one operation, on
 * one format, for one ISA level; all variants stand in kernels.def, and
 * registry.c turns that list into data. Variants of one operation agree to
 * rounding: quantised products are exact in integers, only the order of the
 * float additions differs.
 *
 * Besides the file's row after row, weights may be kept in *panels*: 16 rows
 * interleaved dword by dword (kernels/simd/x16.h), in exactly as many bytes and in the
 * order in which products read them, so that a panel is one ascending stream. `pack`
 * makes a panel; gemv_x16 and gemm_x16 work on panels that follow each other. Rows
 * that are left over, fewer than 16, stay as they are.
 *
 * Kernels do not allocate (they use up to 300 KiB of stack), do no I/O, start no
 * threads and report no errors: the caller guarantees shapes. k is a multiple of the
 * format's block size and, for quantised formats, of 32. Pointers need no alignment
 * beyond that of the element type (weights: none). Nothing outside the stated ranges is
 * read or written.
 *
 * Threading: no state; functions write to what their arguments point to only.
 */
#ifndef SLM_KERNELS_KERNELS_H
#define SLM_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/isa.h"

/* ---- formats ------------------------------------------------------------ */

enum kern_act {
#define KERN_ACT(name) KERN_ACT_##name,
#include "kernels/kernels.def"
    KERN_N_ACT
};

enum kern_format {
#define KERN_FORMAT(name, id, elems, bytes, act) KERN_FMT_##name,
#include "kernels/kernels.def"
    KERN_N_FMT
};

/* What the KV cache holds. */
enum kern_kv {
#define KERN_KV(name) KERN_KV_##name,
#include "kernels/kernels.def"
    KERN_N_KV
};

struct kern_format_info {
    const char *name;     /* "q4_K" */
    uint32_t ggml_id;     /* the type number in a GGUF tensor header */
    uint32_t block_elems; /* weights per block */
    uint32_t block_bytes;
    enum kern_act act; /* layout its gemv and gemm take x in */
};

const struct kern_format_info *kern_format_info(enum kern_format fmt);

/* KERN_N_FMT when unknown. Names compare without regard to case. */
enum kern_format kern_format_by_ggml_id(uint32_t ggml_id);
enum kern_format kern_format_by_name(const char *name);

/* Bytes of n elements; n is a multiple of block_elems. */
size_t kern_format_bytes(enum kern_format fmt, size_t n);

const char *kern_act_name(enum kern_act act);

/* The format that keys and values of a type are in, and back; KERN_N_KV when unknown.
 * Names are those of the formats. */
enum kern_format kern_kv_format(enum kern_kv kv);
enum kern_kv kern_kv_by_name(const char *name);

/* In blocks with a scale; else floats of 16 bits. */
bool kern_kv_is_quantised(enum kern_kv kv);

/* Bytes of one activation column of k elements, a multiple of 64, so that columns
 * stored one after another all start on a cache line. Quants take an odd number of
 * lines: the same bytes of 16 columns, which a tile of AMX loads, are then in 16 sets
 * of the first cache, where those of k = 14336 would be in one (a column of exactly 16
 * KiB). */
size_t kern_act_bytes(enum kern_act act, size_t k);

/* ---- operations --------------------------------------------------------- */

/* quantize: src[n] -> blocks, so that the sum of w e^2 over the errors e is small; w[n]
 * > 0 are importances, of which only the ratios count (within 2^-40..2^40), or NULL:
 * all equal. Levels agree but where codes are equally good, so that bytes that must not
 * depend on the machine come from the scalar row.
 * dequantize: blocks -> dst[n], bit-exact with the format's definition (reference code,
 * compiled without contraction). n is a multiple of the block size. */
typedef void kern_quantize_fn(const float *src, const float *w, void *dst, size_t n);
typedef void kern_dequantize_fn(const void *src, float *dst, size_t n);

/* quantize_act: one column src[k] into the activation layout at dst
 * (kern_act_bytes(act, k) bytes; layouts in activations/activations.h). */
typedef void kern_quantize_act_fn(const float *src, void *dst, size_t k);

/* gemv: y[i] = dot(row i of w, x) for i < n_rows; rows are w_stride bytes
 * apart; x is one activation column of k elements. */
typedef void kern_gemv_fn(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          const void *x, float *y);

/* gemm: y[j * y_stride + i] = dot(row i of w, column j of x) for i < n_rows and
 * j < n_cols; columns are x_stride bytes apart, y_stride counts floats. */
typedef void kern_gemm_fn(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          size_t n_cols, const void *x, size_t x_stride, float *y,
                          size_t y_stride);

/* Rows of a panel. */
#define KERN_PANEL_ROWS 16

/* Of any format: kernels hold blocks on the stack (registry.c asserts it). */
#define KERN_MAX_BLOCK_BYTES 256
#define KERN_MAX_BLOCK_ELEMS 256

/* In a panel, the *block scales* (16-bit d, dmin and the like) are stored apart from
 * the dwords of the blocks' bodies. Blocks form groups, of as many as fill a cache line
 * with their block scales; a group is first all its block scales, then all its bodies.
 * Where those of block b of n_blocks are, in bytes from the start of the panel; body
 * and scales are the bytes that one block has in a panel (x16.h draws the layout). */
static inline size_t kern_panel_group(size_t scales)
{
    return scales > 0 && scales < 64 ? 64 / scales : 1;
}

static inline size_t kern_panel_scales_at(size_t body, size_t scales, size_t b)
{
    const size_t in_group = b % kern_panel_group(scales);

    return (b - in_group) * (body + scales) + in_group * scales;
}

static inline size_t kern_panel_body_at(size_t body, size_t scales, size_t n_blocks,
                                        size_t b)
{
    const size_t group = kern_panel_group(scales), in_group = b % group;
    const size_t first = b - in_group;
    const size_t n = n_blocks - first < group ? n_blocks - first : group;

    return first * (body + scales) + n * scales + in_group * body;
}

/* pack: 16 rows of k elements, w_stride bytes apart, into one panel of 16 times a
 * row's bytes. The two may not overlap. */
typedef void kern_pack_fn(size_t k, const void *rows, size_t w_stride, void *panel);

/* unpack: row `row` of a panel, as it was before pack; bit for bit. */
typedef void kern_unpack_fn(size_t k, const void *panel, size_t row, void *dst);

/* Which caches a software prefetch brings a line to: all (T0), all but the first (T1),
 * or the first, in a place that is soon given up (NTA). On Arm: the first, the second,
 * the first as streaming. 2T0 is T0 twice: at the distance, and again when the use is
 * KERN_PREFETCH_AGAIN bytes nearer. Some CPUs drop a prefetch when they have no free
 * miss buffer (Zen 5 does). */
enum kern_prefetch_hint {
    KERN_PREFETCH_T0,
    KERN_PREFETCH_T1,
    KERN_PREFETCH_NTA,
    KERN_PREFETCH_2T0,
    KERN_N_PREFETCH
};

#define KERN_PREFETCH_AGAIN 2048

/* How weights in panels are read from memory. distance: bytes of a panel between what
 * is multiplied and what is prefetched meanwhile, 0 for no prefetch; hint: how;
 * n_panels: panels that are interleaved, some blocks of each, so that as many streams
 * are read at once: 1, 2 or 4, and 0 is 4. All are free at every call and change no
 * result. Passed by value. */
struct kern_prefetch {
    uint32_t distance;
    enum kern_prefetch_hint hint;
    uint32_t n_panels;
};

/* Panels that are interleaved at most. */
#define KERN_MAX_INTERLEAVED 4

static inline uint32_t kern_panels_interleaved(struct kern_prefetch prefetch)
{
    return prefetch.n_panels ? prefetch.n_panels : KERN_MAX_INTERLEAVED;
}

/* "T0", "T1", "NTA" or "2T0". */
const char *kern_prefetch_hint_name(enum kern_prefetch_hint hint);

/* gemv_x16: y[i] = dot(row i, x) for the 16 * n_panels rows of consecutive panels. w is
 * best aligned to 64 bytes. */
typedef void kern_gemv_x16_fn(size_t n_panels, size_t k, const void *w, const void *x,
                              float *y, struct kern_prefetch prefetch);

/* gemm_x16: the same for n_cols >= 1 columns, as in gemm. Of several columns the hints
 * NTA and 2T0 are taken as T0: some read a panel more than once. Five to eight columns
 * that AVX-512 multiplies straight from the panels prefetch with 2T0, 4096 bytes ahead
 * in four panels, whatever the way, unless the distance is 0. Many columns prefetch
 * what they unpack next, whatever the distance, unless it is 0; super-blocks of 256
 * weights with T1, whatever the hint. */
typedef void kern_gemm_x16_fn(size_t n_panels, size_t k, const void *w, size_t n_cols,
                              const void *x, size_t x_stride, float *y, size_t y_stride,
                              struct kern_prefetch prefetch);

/* gemm_int8, gemm_x16_int8: gemm and gemm_x16 with less exact weights, of a quantised
 * format. They first turn 256 weights of a row into a float d times integers of -127 ..
 * 127, where d is the largest magnitude of the 256 divided by 127. A weight is then off
 * by at most KERN_INT8_OFF * d; magnitudes below 2^-112 are all 0. Columns are
 * q8_256 for every format, and k is a multiple of 256. Few columns are multiplied
 * faster by gemm, which turns no weights. */
#define KERN_INT8_OFF 0.752
typedef kern_gemm_fn kern_gemm_int8_fn;
typedef kern_gemm_x16_fn kern_gemm_x16_int8_fn;

/* rmsnorm: y[i] = x[i] * w[i] / sqrt(mean(x^2) + eps). y may be x. */
typedef void kern_rmsnorm_fn(float *y, const float *x, const float *w, size_t n,
                             float eps);

/* rope: rotate neighbouring pairs in place,
 *   (v[2i], v[2i+1]) <- (v[2i] c_i - v[2i+1] s_i, v[2i] s_i + v[2i+1] c_i)
 * for i < n/2; cs[2i] = c_i, cs[2i+1] = s_i. */
typedef void kern_rope_fn(float *v, const float *cs, size_t n);

/* rope_neox: the same rotation of elements half a vector apart, in place,
 *   (v[i], v[h+i]) <- (v[i] c_i - v[h+i] s_i, v[i] s_i + v[h+i] c_i)
 * for i < h = n/2; cs[i] = c_i, cs[h+i] = s_i. (GPT-NeoX: Black et al. 2022, arXiv
 * 2204.06745) */
typedef void kern_rope_neox_fn(float *v, const float *cs, size_t n);

/* layernorm: y[i] = (x[i] - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * w[i] + b[i].
 * b may be NULL for none; y may be x. (Ba et al. 2016, arXiv 1607.06450) */
typedef void kern_layernorm_fn(float *y, const float *x, const float *w, const float *b,
                               size_t n, float eps);

/* silu_mul: y[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. y may be gate or up. */
typedef void kern_silu_mul_fn(float *y, const float *gate, const float *up, size_t n);

/* gelu_mul: y[i] = gelu(gate[i]) * up[i]; gelu: y[i] = gelu(x[i]). In the usual
 * approximation by tanh (Hendrycks and Gimpel 2016, arXiv 1606.08415),
 *   gelu(x) = x/2 (1 + tanh u) = x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3)
 * y may be an input. */
typedef void kern_gelu_mul_fn(float *y, const float *gate, const float *up, size_t n);
typedef void kern_gelu_fn(float *y, const float *x, size_t n);

/* relu_squared: x[i] = max(x[i], 0)^2, in place. */
typedef void kern_relu_squared_fn(float *x, size_t n);

/* xielu (Huang and Schlag 2024, arXiv 2411.13010), in place: with a = max(x, 0) and
 * b = min(x, 0), x = pos a^2 + neg (exp(b) - 1 - b) + beta x, to within 4 * 2^-24 of
 * the largest of the terms and of neg. */
typedef void kern_xielu_fn(float *x, size_t n, float pos, float neg, float beta);

/* softcap: x[i] = cap * tanh(x[i] / cap) in place, cap > 0, to within 4 * 2^-24 * cap.
 * (Gemma 2: arXiv 2408.00118) */
typedef void kern_softcap_fn(float *x, size_t n, float cap);

/* hadamard: each of the blocks of x[n] times H / sqrt(block), in place, where H is the
 * Hadamard matrix of Sylvester's order and a block the largest power of two that
 * divides n, at most KERN_MAX_HADAMARD. It is its own inverse. The same bits at every
 * level. */
#define KERN_MAX_HADAMARD 256
typedef void kern_hadamard_fn(float *x, size_t n);

/* add: y[i] += x[i]. */
typedef void kern_add_fn(float *y, const float *x, size_t n);

/* add_scaled: y[i] += a * x[i]. */
typedef void kern_add_scaled_fn(float *y, const float *x, float a, size_t n);

/* l2norm: x to the length `length`, in place: x[i] *= length / max(|x|, eps). */
typedef void kern_l2norm_fn(float *x, size_t n, float length, float eps);

/* Recurrent layers.
 *
 * conv_silu: a causal convolution of each of n channels, and SiLU:
 *   y[j * y_stride + i] = silu(bias[i] + sum over t < n_taps of
 *                              w[i * n_taps + t] * x[j + t][i])
 * for j < n_cols; x[n_cols + n_taps - 1] are the rows of inputs. bias NULL: none.
 *
 * short_conv: a causal convolution of products, and a factor (LFM2, Liquid AI 2025):
 *   u[n_taps - 1 + j][i] <- it * x[j * stride + i]
 *   y[j * y_stride + i] = f[j * stride + i] * sum over t < n_taps of
 *                                             w[i * n_taps + t] * u[j + t][i]
 * for j < n_cols; the first n_taps - 1 rows of u are products already.
 *
 * delta_rule (Yang et al. 2024, arXiv 2412.06464): n tokens of one head, one after
 * another, with the state s[d][d] (a row for each element of the keys), q, k and v
 * [n][stride] and out [n][out_stride] of d elements each: S <- keep[j] S;   S <- S + k
 * (rate[j] (v - S'k))';   out = S'q |k| <= 1, 0 <= keep, rate <= 1. No argument
 * overlaps another.
 *
 * ssm_scan (Mamba-2: Dao and Gu 2024, arXiv 2405.21060): n tokens of one head, with the
 * state s[d_key][d_value], b and c [n][key_stride] of d_key elements, x [n][x_stride]
 * and out [n][out_stride] of d_value:
 *   S <- keep[j] S + b (rate[j] x)';   out = S'c + skip x
 * 0 <= keep <= 1. No argument overlaps another. */
typedef void kern_conv_silu_fn(size_t n, size_t n_taps, const float *w,
                               const float *bias, size_t n_cols, const float *const *x,
                               float *y, size_t y_stride);
typedef void kern_short_conv_fn(size_t n, size_t n_taps, const float *w, size_t n_cols,
                                float *const *u, const float *x, const float *f,
                                size_t stride, float *y, size_t y_stride);
typedef void kern_ssm_scan_fn(size_t d_key, size_t d_value, size_t n, float *s,
                              const float *b, const float *c, size_t key_stride,
                              const float *x, size_t x_stride, const float *keep,
                              const float *rate, float skip, float *out,
                              size_t out_stride);
typedef void kern_delta_rule_fn(size_t d, size_t n, float *s, const float *q,
                                const float *k, const float *v, size_t stride,
                                const float *keep, const float *rate, float *out,
                                size_t out_stride);

/* Attention goes over cached positions in panels of 16, as weights do over rows. With
 * d elements of a head, at most KERN_MAX_HEAD_DIM (quantised types: a multiple of 32),
 * a panel of keys is
 *
 *   f16          [d][16] halves: element i of 16 positions side by side
 *   bf16         [d/2][16][2]: elements 2i and 2i + 1 of 16 positions; d is even
 *   q8_0, q4_0   16 rows as `pack` makes them: kernels/simd/x16.h
 *
 * and one of values
 *
 *   f16          [16][d] halves: row after row; d is a multiple of 16
 *   bf16         [8][d][2]: of positions 2j and 2j + 1 element after element; d is a
 *                multiple of 16
 *   q8_0, q4_0   the quants of block 0 of 16 positions, one position after another, of
 *                block 1, ...; then 16 scales of block 0, of block 1, ...
 *
 * so both are as large as 16 rows of the format. Positions that the last panel lacks
 * may hold anything.
 *
 * On a bf16 cache, levels with products of pairs (avx512bf16, amx_bf16) round queries
 * and weights to bf16, to nearest even, and take magnitudes below 2^-126 for zero, in
 * and out. An element of a query, or a weight, is then off by at most 2^-8 of itself: a
 * score by at most 2^-8 sum |query[i] key[i]|, an element of a mix by 2^-8 sum |p[t]
 * value[t]|, besides the rounding of sums as of any level. On an
 * f16 cache, levels with tiles of bf16 (amx_bf16) split queries and weights into two
 * bf16, and are off by at most 3 * 2^-16 where those are by 2^-8; they do not multiply
 * an infinity. Other levels multiply queries and weights as they are. */
#define KERN_MAX_HEAD_DIM 4096

/* attn_dot: scores of n_q queries (the heads that share one KV head, or several
 * tokens) against 16 n_panels cached keys, each key read once:
 *   s[q * s_stride + t] = dot(query[q], key[t])
 * query: float [n_q][d], or q8_32 columns for quantised keys, q_stride bytes apart.
 * At vector levels the scores of quantised keys are a gemm_x16. */
typedef void kern_attn_dot_fn(size_t n_panels, size_t d, const void *keys, size_t n_q,
                              const void *query, size_t q_stride, float *s,
                              size_t s_stride);

/* attn_weigh: scores of one more run of positions to weights (online softmax:
 * Milakov and Gimelshein 2018, arXiv 1805.02867). With M = max(*max, s[0..n_seen)):
 *   s[t] = exp(s[t] - M) for t < n_seen, 0 for n_seen <= t < n
 *   *sum = *sum * keep + sum of s, *max = M
 * Returns keep = exp(old *max - M), which what was mixed before is to be multiplied
 * by. n is a multiple of 16; *max starts at -infinity, *sum at 0. */
typedef float kern_attn_weigh_fn(float *s, size_t n_seen, size_t n, float *max,
                                 float *sum);

/* attn_mix: out[q * o_stride + i] += sum over t < n of p[q * p_stride + t] *
 * value[t][i] for i < d. p is read up to the next multiple of 16 positions. Of
 * quantised values, levels with products of bytes (avx512vnni) round each p times scale
 * of a position's block: in every 64 positions, to steps of 1 / KERN_MIX_STEPS of the
 * largest p times the largest scale. */
#define KERN_MIX_STEPS (127 * 128)

typedef void kern_attn_mix_fn(size_t n, size_t d, const void *values, size_t n_q,
                              const float *p, size_t p_stride, float *out,
                              size_t o_stride);

/* attn_mix_keys: the same of keys, whose first d elements of key_dim are the values,
 * too (latent attention: DeepSeek-AI 2024, arXiv 2405.04434); d is a multiple of 16.
 * p[n .. next multiple of 16) is 0. */
typedef void kern_attn_mix_keys_fn(size_t n, size_t d, size_t key_dim, const void *keys,
                                   size_t n_q, const float *p, size_t p_stride,
                                   float *out, size_t o_stride);

/* The largest finite value of a half. */
#define KERN_HALF_MAX 65504.0f

/* The largest finite value of a bf16. */
#define KERN_BF16_MAX 0x1.fep127f

/* to_kv: keys or values src[n] as a row of the cache's format, each rounded to the
 * nearest: no search as in quantize, since this is done for every token. What is too
 * large for a half, or a bf16, becomes the largest one, also as a scale: an infinity
 * times the weight 0 of a position that is not seen yet would be a NaN. A NaN stays one
 * as a half or bf16 and is 0 in a block. n: any of these, else whole blocks. */
typedef void kern_to_kv_fn(void *dst, const float *src, size_t n);

/* ---- prototypes of every variant ---------------------------------------- */

#define KERN_WEIGHT_ROW(op, format, isa) kern_##op##_fn kern_##op##_##format##__##isa;
#define KERN_ACT_ROW(op, act, isa)       kern_##op##_fn kern_##op##_##act##__##isa;
#define KERN_VEC_ROW(op, isa)            kern_##op##_fn kern_##op##__##isa;
#define KERN_KV_ROW(op, type, isa)       kern_##op##_fn kern_##op##_##type##__##isa;
#include "kernels/kernels.def"

/* ---- the registry ------------------------------------------------------- */

enum kern_op {
#define KERN_OP(op, per) KERN_OP_##op,
#include "kernels/kernels.def"
    KERN_N_OP
};

/* One row of kernels.def. Of the function pointers the one named after op is
 * set; rows for another CPU architecture than the build's are not in the list. */
struct kern_row {
    const char *name; /* "gemv/q4_K/avx2", "rmsnorm/avx2" */
    enum kern_op op;
    enum kern_isa isa;
    int what; /* enum kern_format, enum kern_act, enum kern_kv or -1, by op */
    union {
#define KERN_OP(op, per) kern_##op##_fn *op;
#include "kernels/kernels.def"
    } fn;
};

const char *kern_op_name(enum kern_op op);
const struct kern_row *kern_rows(size_t *n_rows);

/* One row of kernels.def, whether this build's architecture has it or not: what a
 * complete matrix is measured against. */
struct kern_entry {
    const char *name;
    enum kern_op op;
    enum kern_isa isa;
    int what; /* as in struct kern_row */
};

const struct kern_entry *kern_entries(size_t *n_entries);

/* The row with the highest usable level (isa_mask: bits 1u << isa), or NULL. */
const struct kern_row *kern_best(enum kern_op op, int what, uint32_t isa_mask);

/* The variants an engine calls: one pointer per operation and what it exists per, as in
 * set.gemv[format], set.attn_dot[kv], set.rmsnorm. pack, unpack, gemv_x16 and gemm_x16
 * are NULL, all four, where a format or the level has no panels; gemm_int8 and
 * gemm_x16_int8 where it has none. */
struct kern_set {
    uint32_t isa_mask;
#define KERN_SET_FMT [KERN_N_FMT]
#define KERN_SET_ACT [KERN_N_ACT]
#define KERN_SET_KV  [KERN_N_KV]
#define KERN_SET_VEC
#define KERN_OP(op, per) kern_##op##_fn *op KERN_SET_##per;
#include "kernels/kernels.def"
};

/* Fill *set with the best variants among isa_mask (isa_usable() for "what this
 * machine can"). Every pointer but those of panels and of int8 is set: each operation
 * has a scalar row, which a test asserts. */
void kern_select(struct kern_set *set, uint32_t isa_mask);

#endif

/* SPDX-License-Identifier: MIT
 *
 * registry.c - kernels.def as data, and the choice among its rows
 *
 * A row exists in the list when the build's architecture can compile it; each
 * ISA level has a macro ROWS_<level> that keeps or drops its argument.
 */
#include "kernels/kernels.h"

#include <strings.h>

#include "kernels/activations/activations.h"

/* ---- formats and activation layouts ----------------------------------------- */

static const struct kern_format_info formats[KERN_N_FMT] = {
#define KERN_FORMAT(name, id, elems, bytes, act) \
    [KERN_FMT_##name] = {#name, id, elems, bytes, KERN_ACT_##act},
#include "kernels/kernels.def"
};

static const char *const act_names[KERN_N_ACT] = {
#define KERN_ACT(name) [KERN_ACT_##name] = #name,
#include "kernels/kernels.def"
};

static const enum kern_format kv_formats[KERN_N_KV] = {
#define KERN_KV(name) [KERN_KV_##name] = KERN_FMT_##name,
#include "kernels/kernels.def"
};

const struct kern_format_info *kern_format_info(enum kern_format fmt)
{
    return &formats[fmt];
}

enum kern_format kern_format_by_ggml_id(uint32_t ggml_id)
{
    int fmt = 0;

    while (fmt < KERN_N_FMT && formats[fmt].ggml_id != ggml_id)
        fmt++;
    return (enum kern_format)fmt;
}

enum kern_format kern_format_by_name(const char *name)
{
    int fmt = 0;

    while (fmt < KERN_N_FMT && strcasecmp(formats[fmt].name, name) != 0)
        fmt++;
    return (enum kern_format)fmt;
}

size_t kern_format_bytes(enum kern_format fmt, size_t n)
{
    return n / formats[fmt].block_elems * formats[fmt].block_bytes;
}

const char *kern_prefetch_hint_name(enum kern_prefetch_hint hint)
{
    static const char *const names[KERN_N_PREFETCH] = {"T0", "T1", "NTA"};

    return names[hint];
}

const char *kern_act_name(enum kern_act act)
{
    return act_names[act];
}

enum kern_format kern_kv_format(enum kern_kv kv)
{
    return kv_formats[kv];
}

enum kern_kv kern_kv_by_name(const char *name)
{
    int kv = 0;

    while (kv < KERN_N_KV && strcasecmp(formats[kv_formats[kv]].name, name) != 0)
        kv++;
    return (enum kern_kv)kv;
}

size_t kern_act_bytes(enum kern_act act, size_t k)
{
    switch (act) {
    case KERN_ACT_q8_32:
        return KERN_ALIGN64(k) + 3 * KERN_ALIGN64(k / 32 * sizeof(float));
    case KERN_ACT_q8_256:
        return KERN_ALIGN64(k) + KERN_ALIGN64(k / 256 * sizeof(float)) +
               KERN_ALIGN64(k / 16 * sizeof(int16_t));
    case KERN_ACT_f32:
    case KERN_N_ACT:
        break;
    }
    return KERN_ALIGN64(k * sizeof(float));
}

/* ---- rows ------------------------------------------------------------------- */

#define ROWS_scalar(...) __VA_ARGS__,
#if defined(__x86_64__)
#define ROWS_avx2(...)       __VA_ARGS__,
#define ROWS_avxvnni(...)    __VA_ARGS__,
#define ROWS_avx512(...)     __VA_ARGS__,
#define ROWS_avx512vnni(...) __VA_ARGS__,
#define ROWS_avx512vbmi(...) __VA_ARGS__,
#else
#define ROWS_avx2(...)
#define ROWS_avxvnni(...)
#define ROWS_avx512(...)
#define ROWS_avx512vnni(...)
#define ROWS_avx512vbmi(...)
#endif
#if defined(__aarch64__)
#define ROWS_neon(...)      __VA_ARGS__,
#define ROWS_neon_i8mm(...) __VA_ARGS__,
#else
#define ROWS_neon(...)
#define ROWS_neon_i8mm(...)
#endif

/* Products of quantised weights on levels that a build leaves out (SLM_LEVELS_OFF in
 * cmake/isa.cmake). */
#define PRODUCT_ROWS_scalar(...) ROWS_scalar(__VA_ARGS__)
#ifdef SLM_LEVEL_OFF_avx2
#define PRODUCT_ROWS_avx2(...)
#else
#define PRODUCT_ROWS_avx2(...) ROWS_avx2(__VA_ARGS__)
#endif
#ifdef SLM_LEVEL_OFF_avxvnni
#define PRODUCT_ROWS_avxvnni(...)
#else
#define PRODUCT_ROWS_avxvnni(...) ROWS_avxvnni(__VA_ARGS__)
#endif
#ifdef SLM_LEVEL_OFF_avx512
#define PRODUCT_ROWS_avx512(...)
#else
#define PRODUCT_ROWS_avx512(...) ROWS_avx512(__VA_ARGS__)
#endif
#ifdef SLM_LEVEL_OFF_avx512vnni
#define PRODUCT_ROWS_avx512vnni(...)
#else
#define PRODUCT_ROWS_avx512vnni(...) ROWS_avx512vnni(__VA_ARGS__)
#endif
#ifdef SLM_LEVEL_OFF_avx512vbmi
#define PRODUCT_ROWS_avx512vbmi(...)
#else
#define PRODUCT_ROWS_avx512vbmi(...) ROWS_avx512vbmi(__VA_ARGS__)
#endif
#ifdef SLM_LEVEL_OFF_neon
#define PRODUCT_ROWS_neon(...)
#else
#define PRODUCT_ROWS_neon(...) ROWS_neon(__VA_ARGS__)
#endif
#ifdef SLM_LEVEL_OFF_neon_i8mm
#define PRODUCT_ROWS_neon_i8mm(...)
#else
#define PRODUCT_ROWS_neon_i8mm(...) ROWS_neon_i8mm(__VA_ARGS__)
#endif

/* Those of floats are left out on their own. */
#define FLOAT_ROWS_avx2(...) ROWS_avx2(__VA_ARGS__)
#ifdef SLM_LEVEL_OFF_avx512_floats
#define FLOAT_ROWS_avx512(...)
#else
#define FLOAT_ROWS_avx512(...) ROWS_avx512(__VA_ARGS__)
#endif
#define FLOAT_ROWS_neon(...) ROWS_neon(__VA_ARGS__)

/* clang-format off */
static const struct kern_row rows[] = {
#define WEIGHT_ROW(rows_of, o, f, level)                                                 \
    rows_of##level({.name = #o "/" #f "/" #level, .op = KERN_OP_##o,                     \
                  .isa = KERN_ISA_##level, .what = KERN_FMT_##f,                         \
                  .fn.o = kern_##o##_##f##__##level})
#define KERN_WEIGHT_ROW(o, f, level) WEIGHT_ROW(PRODUCT_ROWS_, o, f, level)
#define KERN_FLOAT_ROW(o, f, level)  WEIGHT_ROW(FLOAT_ROWS_, o, f, level)
#define KERN_ACT_ROW(o, a, level)                                                        \
    ROWS_##level({.name = #o "/" #a "/" #level, .op = KERN_OP_##o,                       \
                  .isa = KERN_ISA_##level, .what = KERN_ACT_##a,                         \
                  .fn.o = kern_##o##_##a##__##level})
#define KERN_VEC_ROW(o, level)                                                           \
    ROWS_##level({.name = #o "/" #level, .op = KERN_OP_##o,                              \
                  .isa = KERN_ISA_##level, .what = -1,                                   \
                  .fn.o = kern_##o##__##level})
#define KERN_KV_ROW(o, t, level)                                                         \
    ROWS_##level({.name = #o "/" #t "/" #level, .op = KERN_OP_##o,                       \
                  .isa = KERN_ISA_##level, .what = KERN_KV_##t,                          \
                  .fn.o = kern_##o##_##t##__##level})
#include "kernels/kernels.def"
};

static const struct kern_entry entries[] = {
#define KERN_WEIGHT_ROW(o, f, level)                                                     \
    {#o "/" #f "/" #level, KERN_OP_##o, KERN_ISA_##level, KERN_FMT_##f},
#define KERN_ACT_ROW(o, a, level)                                                        \
    {#o "/" #a "/" #level, KERN_OP_##o, KERN_ISA_##level, KERN_ACT_##a},
#define KERN_VEC_ROW(o, level)                                                           \
    {#o "/" #level, KERN_OP_##o, KERN_ISA_##level, -1},
#define KERN_KV_ROW(o, t, level)                                                         \
    {#o "/" #t "/" #level, KERN_OP_##o, KERN_ISA_##level, KERN_KV_##t},
#include "kernels/kernels.def"
};
/* clang-format on */

static const char *const op_names[KERN_N_OP] = {
    [KERN_OP_quantize] = "quantize",
    [KERN_OP_dequantize] = "dequantize",
    [KERN_OP_quantize_act] = "quantize_act",
    [KERN_OP_gemv] = "gemv",
    [KERN_OP_gemm] = "gemm",
    [KERN_OP_pack] = "pack",
    [KERN_OP_gemv_x16] = "gemv_x16",
    [KERN_OP_gemm_x16] = "gemm_x16",
    [KERN_OP_rmsnorm] = "rmsnorm",
    [KERN_OP_layernorm] = "layernorm",
    [KERN_OP_rope] = "rope",
    [KERN_OP_rope_neox] = "rope_neox",
    [KERN_OP_silu_mul] = "silu_mul",
    [KERN_OP_gelu_mul] = "gelu_mul",
    [KERN_OP_gelu] = "gelu",
    [KERN_OP_softcap] = "softcap",
    [KERN_OP_add] = "add",
    [KERN_OP_attn_weigh] = "attn_weigh",
    [KERN_OP_to_f16] = "to_f16",
    [KERN_OP_attn_dot] = "attn_dot",
    [KERN_OP_attn_mix] = "attn_mix",
};

const char *kern_op_name(enum kern_op op)
{
    return op_names[op];
}

const struct kern_row *kern_rows(size_t *n_rows)
{
    *n_rows = sizeof(rows) / sizeof(rows[0]);
    return rows;
}

const struct kern_entry *kern_entries(size_t *n_entries)
{
    *n_entries = sizeof(entries) / sizeof(entries[0]);
    return entries;
}

const struct kern_row *kern_best(enum kern_op op, int what, uint32_t isa_mask)
{
    const struct kern_row *best = NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct kern_row *row = &rows[i];

        if (row->op == op && row->what == what && (isa_mask >> row->isa & 1) != 0 &&
            (best == NULL || row->isa > best->isa))
            best = row;
    }
    return best;
}

/* Every choice in one pass over the rows: [op][what + 1], NULL where there is none. */
struct choices {
    const struct kern_row *best[KERN_N_OP][KERN_N_FMT + 1];
};

_Static_assert((int)KERN_N_ACT <= (int)KERN_N_FMT && (int)KERN_N_KV <= (int)KERN_N_FMT,
               "what + 1 fits");

static void choose(struct choices *c, uint32_t isa_mask)
{
    *c = (struct choices){0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct kern_row *row = &rows[i];
        const struct kern_row **best = &c->best[row->op][row->what + 1];

        if ((isa_mask >> row->isa & 1) != 0 &&
            (*best == NULL || row->isa > (*best)->isa))
            *best = row;
    }
}

#define BEST(o, what)                                                                \
    (c.best[KERN_OP_##o][(what) + 1] != NULL ? c.best[KERN_OP_##o][(what) + 1]->fn.o \
                                             : NULL)

void kern_select(struct kern_set *set, uint32_t isa_mask)
{
    struct choices c;

    choose(&c, isa_mask);
    set->isa_mask = isa_mask;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        set->quantize[fmt] = BEST(quantize, fmt);
        set->dequantize[fmt] = BEST(dequantize, fmt);
        set->gemv[fmt] = BEST(gemv, fmt);
        set->gemm[fmt] = BEST(gemm, fmt);
        set->pack[fmt] = BEST(pack, fmt);
        set->gemv_x16[fmt] = BEST(gemv_x16, fmt);
        set->gemm_x16[fmt] = BEST(gemm_x16, fmt);
    }
    for (int act = 0; act < KERN_N_ACT; act++)
        set->quantize_act[act] = BEST(quantize_act, act);
    set->rmsnorm = BEST(rmsnorm, -1);
    set->layernorm = BEST(layernorm, -1);
    set->rope = BEST(rope, -1);
    set->rope_neox = BEST(rope_neox, -1);
    set->silu_mul = BEST(silu_mul, -1);
    set->gelu_mul = BEST(gelu_mul, -1);
    set->gelu = BEST(gelu, -1);
    set->softcap = BEST(softcap, -1);
    set->add = BEST(add, -1);
    set->attn_weigh = BEST(attn_weigh, -1);
    set->to_f16 = BEST(to_f16, -1);
    for (int kv = 0; kv < KERN_N_KV; kv++) {
        set->attn_dot[kv] = BEST(attn_dot, kv);
        set->attn_mix[kv] = BEST(attn_mix, kv);
    }
}

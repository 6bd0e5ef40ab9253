/* SPDX-License-Identifier: MIT
 *
 * registry.c - kernels.def as data, and the choice among its rows
 *
 * The list has the rows that this build compiles. cmake/isa.cmake writes which into
 * kernels_built.h, for every ISA level: SLM_HAS_<level>, SLM_HAS_<level>_<format> (rows
 * of quantised weights), SLM_HAS_<level>_floats, each 0 or 1.
 */
#include "kernels/kernels.h"

#include <strings.h>

#include "kernels/activations/activations.h"
#include "kernels_built.h"

/* ---- formats and activation layouts ----------------------------------------- */

static const struct kern_format_info formats[KERN_N_FMT] = {
#define KERN_FORMAT(name, id, elems, bytes, act) \
    [KERN_FMT_##name] = {#name, id, elems, bytes, KERN_ACT_##act},
#include "kernels/kernels.def"
};

#define KERN_FORMAT(name, id, elems, bytes, act)                                       \
    _Static_assert((elems) <= KERN_MAX_BLOCK_ELEMS && (bytes) <= KERN_MAX_BLOCK_BYTES, \
                   "a block of " #name " does not fit what kernels have for one");
#include "kernels/kernels.def"

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
    static const char *const names[KERN_N_PREFETCH] = {"T0", "T1", "NTA", "2T0"};

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

bool kern_kv_is_quantised(enum kern_kv kv)
{
    return formats[kv_formats[kv]].act != KERN_ACT_f32;
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
        return (KERN_ALIGN64(k) + 3 * KERN_ALIGN64(k / 32 * sizeof(float))) | 64;
    case KERN_ACT_q8_256:
        return (KERN_ALIGN64(k) + KERN_ALIGN64(k / 256 * sizeof(float)) +
                KERN_ALIGN64(k / 16 * sizeof(int16_t))) |
               64;
    case KERN_ACT_f32:
    case KERN_N_ACT:
        break;
    }
    return KERN_ALIGN64(k * sizeof(float));
}

/* ---- rows ------------------------------------------------------------------- */

#define ROW_IF_0(...)
#define ROW_IF_1(...)        __VA_ARGS__,
#define ROW_IF_VALUE(v, ...) ROW_IF_##v(__VA_ARGS__)
#define ROW_IF(has, ...)     ROW_IF_VALUE(has, __VA_ARGS__)

/* clang-format off */
static const struct kern_row rows[] = {
#define ROW(has, o, what_, level, name_, function)                                       \
    ROW_IF(has, {.name = name_, .op = KERN_OP_##o, .isa = KERN_ISA_##level,              \
                 .what = what_, .fn.o = function})
#define KERN_WEIGHT_ROW(o, f, level)                                                     \
    ROW(SLM_HAS_##level##_##f, o, KERN_FMT_##f, level, #o "/" #f "/" #level,             \
        kern_##o##_##f##__##level)
#define KERN_FLOAT_ROW(o, f, level)                                                      \
    ROW(SLM_HAS_##level##_floats, o, KERN_FMT_##f, level, #o "/" #f "/" #level,          \
        kern_##o##_##f##__##level)
#define KERN_ACT_ROW(o, a, level)                                                        \
    ROW(SLM_HAS_##level, o, KERN_ACT_##a, level, #o "/" #a "/" #level,                   \
        kern_##o##_##a##__##level)
#define KERN_VEC_ROW(o, level)                                                           \
    ROW(SLM_HAS_##level, o, -1, level, #o "/" #level, kern_##o##__##level)
#define KERN_KV_ROW(o, t, level)                                                         \
    ROW(SLM_HAS_##level, o, KERN_KV_##t, level, #o "/" #t "/" #level,                    \
        kern_##o##_##t##__##level)
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
#define KERN_OP(op, per) [KERN_OP_##op] = #op,
#include "kernels/kernels.def"
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
#define SELECT(op, n)             \
    for (int i = 0; i < (n); i++) \
        set->op[i] = BEST(op, i);
#define SELECT_FMT(op)   SELECT(op, KERN_N_FMT)
#define SELECT_ACT(op)   SELECT(op, KERN_N_ACT)
#define SELECT_KV(op)    SELECT(op, KERN_N_KV)
#define SELECT_VEC(op)   set->op = BEST(op, -1);
#define KERN_OP(op, per) SELECT_##per(op)
#include "kernels/kernels.def"
}

/* SPDX-License-Identifier: MIT
 *
 * quantmix.c - the rules of each quantisation mix, as a table
 *
 * A mix is a base format plus exceptions: the tensors whose quantisation costs most
 * quality get more bits. The exceptions are those of llama.cpp's quantiser, which made
 * the files that people download, so that sizes and bytes per token agree with them.
 */
#include "engine/quantize/quantmix.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum role {
    ROLE_OTHER,
    ROLE_OUTPUT, /* output.weight, or a tied token_embd.weight, and what per-layer
                    embeddings such a model has */
    ROLE_EMBD,
    ROLE_ATTN_Q,
    ROLE_ATTN_K,
    ROLE_ATTN_V,
    ROLE_ATTN_QKV,
    ROLE_ATTN_OUTPUT,
    ROLE_FFN_IN, /* gate and up */
    ROLE_FFN_DOWN,
    ROLE_KEPT, /* small, never quantised */
};

enum where {
    WHERE_ALL,
    WHERE_GROUPED, /* at least four heads share a KV head */
    WHERE_SHARED,  /* the same, or four experts share the attention */
    WHERE_PLAIN,   /* no importance matrix */
    WHERE_PLAIN_FIRST_EIGHTH,
    WHERE_WEIGHED_FIRST_EIGHTH, /* with an importance matrix */
    WHERE_FIRST_TWO,
    WHERE_FIRST_FOUR,
    WHERE_FIRST_SIXTEENTH,
    WHERE_FIRST_EIGHTH,
    WHERE_MIDDLE,             /* without the first and the last eighth */
    WHERE_MORE_BITS,          /* first eighth, last eighth, every third in between */
    WHERE_MORE_BITS_OF_EIGHT, /* the same, where there are eight experts */
};

#define MIX(mix, file_type, base, output, embd) \
    [QUANTMIX_##                                \
        mix] = {#mix, file_type, KERN_FMT_##base, KERN_FMT_##output, KERN_FMT_##embd}

static const struct mix {
    const char *name;
    uint32_t file_type; /* general.file_type */
    enum kern_format base, output, embd;
} mixes[QUANTMIX_N] = {
    MIX(F32, 0, f32, f32, f32),
    MIX(F16, 1, f16, f16, f16),
    MIX(BF16, 32, bf16, bf16, bf16),
    MIX(Q4_0, 2, q4_0, q6_K, q4_0),
    MIX(Q4_1, 3, q4_1, q6_K, q4_1),
    MIX(Q5_0, 8, q5_0, q6_K, q5_0),
    MIX(Q5_1, 9, q5_1, q6_K, q5_1),
    MIX(Q8_0, 7, q8_0, q8_0, q8_0),
    MIX(Q2_K, 10, q2_K, q6_K, q2_K),
    MIX(Q2_K_S, 21, q2_K, q6_K, q2_K),
    MIX(Q3_K_S, 11, q3_K, q6_K, q3_K),
    MIX(Q3_K_M, 12, q3_K, q6_K, q3_K),
    MIX(Q3_K_L, 13, q3_K, q6_K, q3_K),
    MIX(Q4_K_S, 14, q4_K, q6_K, q4_K),
    MIX(Q4_K_M, 15, q4_K, q6_K, q4_K),
    MIX(Q5_K_S, 16, q5_K, q6_K, q5_K),
    MIX(Q5_K_M, 17, q5_K, q6_K, q5_K),
    MIX(Q6_K, 18, q6_K, q6_K, q6_K),
    MIX(IQ1_S, 24, iq1_s, q5_K, q2_K),
    MIX(IQ1_M, 31, iq1_m, q5_K, q2_K),
    MIX(IQ2_XXS, 19, iq2_xxs, q5_K, q2_K),
    MIX(IQ2_XS, 20, iq2_xs, q5_K, q2_K),
    MIX(IQ2_S, 28, iq2_xs, q5_K, iq3_s),
    MIX(IQ2_M, 29, iq2_s, q5_K, iq3_s),
    MIX(IQ3_XXS, 23, iq3_xxs, q5_K, iq3_s),
    MIX(IQ3_XS, 22, iq3_s, q6_K, iq3_s),
    MIX(IQ3_S, 26, iq3_s, q6_K, iq3_s),
    MIX(IQ3_M, 27, iq3_s, q6_K, iq3_s),
    MIX(IQ4_NL, 25, iq4_nl, q6_K, iq4_nl),
    MIX(IQ4_XS, 30, iq4_xs, q6_K, iq4_xs),
    MIX(TQ1_0, 36, tq1_0, q6_K, q4_K),
    MIX(TQ2_0, 37, tq2_0, q6_K, q4_K),
    MIX(MXFP4, 38, mxfp4, q6_K, mxfp4),
    MIX(NVFP4, 39, nvfp4, q6_K, q6_K), /* no program multiplies embeddings with a
                                          tensor's scale */
    MIX(Q1_0, 40, q1_0, q6_K, q4_K),
    MIX(Q2_0, 41, q2_0, q6_K, q4_K),
};

/* The exceptions; the first that applies wins. */
static const struct rule {
    enum quantmix mix;
    enum role role;
    enum where where;
    enum kern_format fmt;
} rules[] = {
    /* With an importance matrix few values of the first layers dominate; in a format
     * without a minimum one scale must span them all. */
    {QUANTMIX_Q4_0, ROLE_FFN_DOWN, WHERE_WEIGHED_FIRST_EIGHTH, KERN_FMT_q4_1},
    {QUANTMIX_Q5_0, ROLE_FFN_DOWN, WHERE_WEIGHED_FIRST_EIGHTH, KERN_FMT_q5_1},

    {QUANTMIX_Q2_K, ROLE_ATTN_V, WHERE_GROUPED, KERN_FMT_q4_K},
    {QUANTMIX_Q2_K, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_q3_K},
    {QUANTMIX_Q2_K, ROLE_FFN_DOWN, WHERE_ALL, KERN_FMT_q3_K},
    {QUANTMIX_Q2_K, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_q3_K},

    {QUANTMIX_Q2_K_S, ROLE_ATTN_V, WHERE_GROUPED, KERN_FMT_q4_K},
    {QUANTMIX_Q2_K_S, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_q4_K},

    {QUANTMIX_Q3_K_M, ROLE_ATTN_V, WHERE_FIRST_TWO, KERN_FMT_q5_K},
    {QUANTMIX_Q3_K_M, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_q4_K},
    {QUANTMIX_Q3_K_M, ROLE_FFN_DOWN, WHERE_FIRST_SIXTEENTH, KERN_FMT_q5_K},
    {QUANTMIX_Q3_K_M, ROLE_FFN_DOWN, WHERE_ALL, KERN_FMT_q4_K},
    {QUANTMIX_Q3_K_M, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_q4_K},
    {QUANTMIX_Q3_K_M, ROLE_ATTN_QKV, WHERE_ALL, KERN_FMT_q4_K},

    {QUANTMIX_Q3_K_L, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_q5_K},
    {QUANTMIX_Q3_K_L, ROLE_FFN_DOWN, WHERE_ALL, KERN_FMT_q5_K},
    {QUANTMIX_Q3_K_L, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_q5_K},
    {QUANTMIX_Q3_K_L, ROLE_ATTN_QKV, WHERE_ALL, KERN_FMT_q4_K},

    {QUANTMIX_Q4_K_S, ROLE_ATTN_V, WHERE_FIRST_FOUR, KERN_FMT_q5_K},
    {QUANTMIX_Q4_K_S, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_q5_K},

    {QUANTMIX_Q4_K_M, ROLE_ATTN_V, WHERE_MORE_BITS, KERN_FMT_q6_K},
    {QUANTMIX_Q4_K_M, ROLE_FFN_DOWN, WHERE_MORE_BITS, KERN_FMT_q6_K},
    {QUANTMIX_Q4_K_M, ROLE_ATTN_QKV, WHERE_ALL, KERN_FMT_q5_K},

    {QUANTMIX_Q5_K_M, ROLE_ATTN_V, WHERE_MORE_BITS, KERN_FMT_q6_K},
    {QUANTMIX_Q5_K_M, ROLE_FFN_DOWN, WHERE_MORE_BITS, KERN_FMT_q6_K},
    {QUANTMIX_Q5_K_M, ROLE_ATTN_QKV, WHERE_ALL, KERN_FMT_q6_K},

    {QUANTMIX_IQ1_S, ROLE_ATTN_V, WHERE_SHARED, KERN_FMT_q4_K},
    {QUANTMIX_IQ1_S, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_q2_K},
    {QUANTMIX_IQ1_S, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_q2_K},
    {QUANTMIX_IQ1_S, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_iq2_xxs},

    {QUANTMIX_IQ1_M, ROLE_ATTN_V, WHERE_SHARED, KERN_FMT_q4_K},
    {QUANTMIX_IQ1_M, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_q2_K},
    {QUANTMIX_IQ1_M, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_q2_K},
    {QUANTMIX_IQ1_M, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_iq2_xxs},

    {QUANTMIX_IQ2_XXS, ROLE_ATTN_V, WHERE_SHARED, KERN_FMT_q4_K},
    {QUANTMIX_IQ2_XXS, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_q2_K},
    {QUANTMIX_IQ2_XXS, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_q2_K},

    {QUANTMIX_IQ2_XS, ROLE_ATTN_V, WHERE_SHARED, KERN_FMT_q4_K},
    {QUANTMIX_IQ2_XS, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_q2_K},
    {QUANTMIX_IQ2_XS, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_q2_K},

    {QUANTMIX_IQ2_S, ROLE_ATTN_V, WHERE_SHARED, KERN_FMT_q4_K},
    {QUANTMIX_IQ2_S, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_iq3_s},
    {QUANTMIX_IQ2_S, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_iq3_s},
    {QUANTMIX_IQ2_S, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_iq3_s},

    {QUANTMIX_IQ2_M, ROLE_ATTN_V, WHERE_SHARED, KERN_FMT_q4_K},
    {QUANTMIX_IQ2_M, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_iq3_s},
    {QUANTMIX_IQ2_M, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_iq3_s},
    {QUANTMIX_IQ2_M, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_iq3_s},

    {QUANTMIX_IQ3_XXS, ROLE_ATTN_V, WHERE_GROUPED, KERN_FMT_q4_K},
    {QUANTMIX_IQ3_XXS, ROLE_ATTN_V, WHERE_PLAIN, KERN_FMT_iq3_s},
    {QUANTMIX_IQ3_XXS, ROLE_ATTN_K, WHERE_ALL, KERN_FMT_iq2_s},
    {QUANTMIX_IQ3_XXS, ROLE_ATTN_Q, WHERE_ALL, KERN_FMT_iq2_s},
    {QUANTMIX_IQ3_XXS, ROLE_FFN_DOWN, WHERE_PLAIN_FIRST_EIGHTH, KERN_FMT_q4_K},
    {QUANTMIX_IQ3_XXS, ROLE_FFN_DOWN, WHERE_PLAIN, KERN_FMT_q3_K},
    {QUANTMIX_IQ3_XXS, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_iq3_s},

    {QUANTMIX_IQ3_XS, ROLE_ATTN_V, WHERE_GROUPED, KERN_FMT_q4_K},
    {QUANTMIX_IQ3_XS, ROLE_ATTN_K, WHERE_ALL, KERN_FMT_iq3_xxs},
    {QUANTMIX_IQ3_XS, ROLE_ATTN_Q, WHERE_ALL, KERN_FMT_iq3_xxs},
    {QUANTMIX_IQ3_XS, ROLE_FFN_IN, WHERE_MIDDLE, KERN_FMT_iq3_xxs},

    {QUANTMIX_IQ3_S, ROLE_ATTN_V, WHERE_GROUPED, KERN_FMT_q4_K},

    {QUANTMIX_IQ3_M, ROLE_ATTN_V, WHERE_ALL, KERN_FMT_q4_K},
    {QUANTMIX_IQ3_M, ROLE_FFN_DOWN, WHERE_FIRST_EIGHTH, KERN_FMT_q4_K},
    {QUANTMIX_IQ3_M, ROLE_FFN_DOWN, WHERE_MORE_BITS_OF_EIGHT, KERN_FMT_q4_K},
    {QUANTMIX_IQ3_M, ROLE_ATTN_OUTPUT, WHERE_ALL, KERN_FMT_q4_K},
    {QUANTMIX_IQ3_M, ROLE_ATTN_QKV, WHERE_ALL, KERN_FMT_q4_K},

    {QUANTMIX_IQ4_NL, ROLE_ATTN_V, WHERE_GROUPED, KERN_FMT_q5_K},
    {QUANTMIX_IQ4_NL, ROLE_FFN_DOWN, WHERE_PLAIN_FIRST_EIGHTH, KERN_FMT_q5_K},

    {QUANTMIX_IQ4_XS, ROLE_ATTN_V, WHERE_GROUPED, KERN_FMT_q5_K},
    {QUANTMIX_IQ4_XS, ROLE_FFN_DOWN, WHERE_PLAIN_FIRST_EIGHTH, KERN_FMT_q5_K},
};

const char *quantmix_name(enum quantmix mix)
{
    return mixes[mix].name;
}

enum quantmix quantmix_by_name(const char *name)
{
    for (int i = 0; i < QUANTMIX_N; i++) {
        if (!strcasecmp(name, mixes[i].name))
            return (enum quantmix)i;
    }
    return QUANTMIX_N;
}

uint32_t quantmix_file_type(enum quantmix mix)
{
    return mixes[mix].file_type;
}

enum kern_format quantmix_base(enum quantmix mix)
{
    return mixes[mix].base;
}

enum kern_format quantmix_base_named(const char *name)
{
    const enum quantmix mix = quantmix_by_name(name);

    return mix != QUANTMIX_N ? quantmix_base(mix) : kern_format_by_name(name);
}

enum quantmix quantmix_by_base(enum kern_format fmt)
{
    fmt = quantmix_written(fmt);
    for (int i = 0; i < QUANTMIX_N; i++) {
        if (fmt == mixes[i].base)
            return (enum quantmix)i;
    }
    return QUANTMIX_N;
}

int quantmix_wants_importance(enum quantmix mix)
{
    return mix == QUANTMIX_IQ1_S || mix == QUANTMIX_IQ1_M || mix == QUANTMIX_IQ2_XXS ||
           mix == QUANTMIX_IQ2_XS || mix == QUANTMIX_IQ2_S || mix == QUANTMIX_IQ2_M ||
           mix == QUANTMIX_IQ3_XXS || mix == QUANTMIX_Q2_K_S;
}

enum quantmix quantmix_by_file_type(uint32_t ftype)
{
    for (int i = 0; i < QUANTMIX_N; i++) {
        if (ftype == mixes[i].file_type)
            return (enum quantmix)i;
    }
    return QUANTMIX_N;
}

/* "blk.3.attn_v.weight" -> "attn_v.weight"; other names as they are. */
static const char *without_layer(const char *name)
{
    const char *p = name;

    if (strncmp(p, "blk.", 4))
        return name;
    for (p += 4; isdigit((unsigned char)*p); p++)
        ;
    return *p == '.' ? p + 1 : name;
}

/* Parts of the names of tensors that are never quantised. */
static const char *const kept[] = {
    "_norm",       "ffn_gate_inp", "position_embd",
    "token_types", "rope_f",       "ssm_conv1d",
    "ssm_a",       "ssm_dt",       "ssm_beta_alpha",
    "attn_rel_b",  "time_mix",     "shortconv.conv",
    "altup",       "laurel",       "per_layer_model_proj",
};

static int is_kept(const char *part)
{
    const size_t n = strlen(part);

    if (n < 7 || strcmp(part + n - 7, ".weight"))
        return 1;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (strstr(part, kept[i]))
            return 1;
    return 0;
}

static enum role role_of(const struct quantmix_tensor *t)
{
    const char *part = without_layer(t->name);

    if (t->n_dims < 2 || is_kept(part))
        return ROLE_KEPT;
    if (!strcmp(part, "output.weight"))
        return ROLE_OUTPUT;
    if (!strcmp(part, "token_embd.weight") ||
        !strcmp(part, "per_layer_token_embd.weight"))
        return t->tied_output ? ROLE_OUTPUT : ROLE_EMBD;
    if (!strcmp(part, "attn_q.weight"))
        return ROLE_ATTN_Q;
    if (!strcmp(part, "attn_k.weight"))
        return ROLE_ATTN_K;
    if (!strcmp(part, "attn_v.weight") || !strcmp(part, "attn_kv_b.weight"))
        return ROLE_ATTN_V;
    if (!strcmp(part, "attn_qkv.weight"))
        return ROLE_ATTN_QKV;
    if (!strncmp(part, "ffn_down", 8)) /* also ffn_down_exps */
        return ROLE_FFN_DOWN;
    if (!strncmp(part, "ffn_gate", 8) || !strncmp(part, "ffn_up", 6))
        return ROLE_FFN_IN;
    if (!strcmp(part, "attn_output.weight"))
        return ROLE_ATTN_OUTPUT;
    return ROLE_OTHER;
}

int quantmix_is_matrix(const struct quantmix_tensor *t)
{
    return role_of(t) != ROLE_KEPT;
}

static int applies(enum where where, const struct quantmix_tensor *t)
{
    const int layer = t->layer, n = t->n_layers;

    switch (where) {
    case WHERE_ALL:
        return 1;
    case WHERE_GROUPED:
        return t->n_heads >= 4 * t->n_kv_heads;
    case WHERE_SHARED:
        return t->n_heads >= 4 * t->n_kv_heads || t->n_experts >= 4;
    case WHERE_PLAIN:
        return !t->has_importance;
    case WHERE_PLAIN_FIRST_EIGHTH:
        return !t->has_importance && layer < n / 8;
    case WHERE_WEIGHED_FIRST_EIGHTH:
        return t->has_importance && layer < n / 8;
    case WHERE_FIRST_TWO:
        return layer < 2;
    case WHERE_FIRST_FOUR:
        return layer < 4;
    case WHERE_FIRST_SIXTEENTH:
        return layer < n / 16;
    case WHERE_FIRST_EIGHTH:
        return layer < n / 8;
    case WHERE_MIDDLE:
        return layer >= n / 8 && layer < 7 * n / 8;
    case WHERE_MORE_BITS_OF_EIGHT:
    case WHERE_MORE_BITS:
        return (where == WHERE_MORE_BITS || t->n_experts == 8) &&
               (layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2);
    }
    return 0;
}

/* The format of 32-element blocks that replaces one of larger blocks that do not divide
 * the row. */
static enum kern_format small_block(enum kern_format fmt)
{
    switch (fmt) {
    case KERN_FMT_tq1_0:
    case KERN_FMT_tq2_0:
    case KERN_FMT_q1_0:
    case KERN_FMT_q2_0:
        return KERN_FMT_q4_0;
    case KERN_FMT_q4_K:
        return KERN_FMT_q5_0;
    case KERN_FMT_q5_K:
        return KERN_FMT_q5_1;
    case KERN_FMT_q6_K:
        return KERN_FMT_q8_0;
    default:
        return KERN_FMT_iq4_nl;
    }
}

enum kern_format quantmix_written(enum kern_format fmt)
{
    return fmt == KERN_FMT_q2_0_128 ? KERN_FMT_q2_0 : fmt;
}

enum kern_format quantmix_fit_row(enum kern_format fmt, uint64_t row_elems)
{
    fmt = quantmix_written(fmt);
    if (row_elems % kern_format_info(fmt)->block_elems == 0)
        return fmt;
    /* Some are not even a multiple of 32. */
    return row_elems % 32 == 0 ? small_block(fmt) : KERN_FMT_f16;
}

/* The mixes of one and two bits. */
static int is_low(enum quantmix mix)
{
    return mix >= QUANTMIX_IQ1_S && mix <= QUANTMIX_IQ2_M;
}

/* The 70B models have 80 layers and grouped heads: attn_v is so small there that one
 * more bit costs next to nothing. The mixes of one and two bits do not do this. */
static int deserves_more(enum quantmix mix, const struct quantmix_tensor *t)
{
    return t->n_layers == 80 && t->n_heads != t->n_kv_heads && !is_low(mix);
}

/* Eight experts share one attention, so its few matrices may take more bits. */
static enum kern_format beside_eight_experts(enum quantmix mix, enum role role,
                                             enum kern_format fmt)
{
    switch (role) {
    case ROLE_ATTN_V:
        return is_low(mix) ? fmt : KERN_FMT_q8_0;
    case ROLE_ATTN_K:
        return is_low(mix) ? KERN_FMT_q4_K : KERN_FMT_q8_0;
    case ROLE_ATTN_OUTPUT:
        switch (mix) {
        case QUANTMIX_Q4_0:
        case QUANTMIX_Q4_1:
        case QUANTMIX_Q5_0:
        case QUANTMIX_Q5_1:
        case QUANTMIX_Q8_0:
        case QUANTMIX_Q2_K_S:
        case QUANTMIX_Q3_K_L:
        case QUANTMIX_Q5_K_S:
        case QUANTMIX_Q5_K_M:
        case QUANTMIX_Q6_K:
        case QUANTMIX_TQ1_0:
        case QUANTMIX_TQ2_0:
        case QUANTMIX_MXFP4:
        case QUANTMIX_NVFP4:
        case QUANTMIX_Q1_0:
        case QUANTMIX_Q2_0:
            return mixes[mix].base;
        default:
            return KERN_FMT_q5_K;
        }
    default:
        return fmt;
    }
}

enum kern_format quantmix_format(enum quantmix mix, const struct quantmix_tensor *t)
{
    const enum role role = role_of(t);
    enum kern_format fmt = mixes[mix].base;

    if (role == ROLE_KEPT)
        return KERN_FMT_f32;
    if (role == ROLE_OUTPUT)
        fmt = t->row_elems % 256 == 0 || mixes[mix].output == mixes[mix].base
                  ? mixes[mix].output
                  : KERN_FMT_q8_0;
    if (role == ROLE_EMBD)
        fmt = mixes[mix].embd;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *r = &rules[i];

        if (r->mix == mix && r->role == role && applies(r->where, t)) {
            fmt = r->fmt;
            break;
        }
    }
    if (t->n_experts == 8 && kern_format_info(mixes[mix].base)->block_elems > 1)
        fmt = beside_eight_experts(mix, role, fmt);
    if (role == ROLE_ATTN_V && (fmt == KERN_FMT_q3_K || fmt == KERN_FMT_q4_K) &&
        deserves_more(mix, t))
        fmt = KERN_FMT_q5_K;
    return quantmix_fit_row(fmt, t->row_elems);
}

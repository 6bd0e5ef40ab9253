/* SPDX-License-Identifier: MIT
 *
 * quantmix.c - the rules of each quantisation mix, as a table
 *
 * A mix is a base format plus exceptions: the tensors whose coarseness costs
 * most quality get more bits. The exceptions below are those of the files that
 * people download (made by llama.cpp's quantiser without an importance matrix),
 * so that sizes and bytes per token agree with them.
 */
#include "engine/quantmix.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum role {
    ROLE_OTHER,
    ROLE_OUTPUT, /* output.weight, or token_embd.weight that serves as both */
    ROLE_ATTN_V,
    ROLE_ATTN_QKV,
    ROLE_FFN_DOWN,
    ROLE_ROUTER, /* ffn_gate_inp: chooses experts, tiny, never quantised */
};

enum layers {
    LAYERS_ALL,
    LAYERS_FIRST_FOUR,
    LAYERS_FIRST_EIGHTH,
    LAYERS_MORE_BITS, /* first eighth, last eighth, every third in between */
};

static const struct mix {
    const char *name;
    uint32_t file_type; /* general.file_type */
    enum kern_format base;
} mixes[QUANTMIX_N] = {
    [QUANTMIX_F32] = {"F32", 0, KERN_FMT_f32},
    [QUANTMIX_F16] = {"F16", 1, KERN_FMT_f16},
    [QUANTMIX_BF16] = {"BF16", 32, KERN_FMT_bf16},
    [QUANTMIX_Q4_0] = {"Q4_0", 2, KERN_FMT_q4_0},
    [QUANTMIX_Q8_0] = {"Q8_0", 7, KERN_FMT_q8_0},
    [QUANTMIX_Q4_K_S] = {"Q4_K_S", 14, KERN_FMT_q4_K},
    [QUANTMIX_Q4_K_M] = {"Q4_K_M", 15, KERN_FMT_q4_K},
    [QUANTMIX_Q5_K_S] = {"Q5_K_S", 16, KERN_FMT_q5_K},
    [QUANTMIX_Q5_K_M] = {"Q5_K_M", 17, KERN_FMT_q5_K},
    [QUANTMIX_Q6_K] = {"Q6_K", 18, KERN_FMT_q6_K},
};

/* The exceptions; the first that applies wins. */
static const struct rule {
    enum quantmix mix;
    enum role role;
    enum layers layers;
    enum kern_format fmt;
} rules[] = {
    {QUANTMIX_Q4_0, ROLE_OUTPUT, LAYERS_ALL, KERN_FMT_q6_K},
    {QUANTMIX_Q4_K_S, ROLE_OUTPUT, LAYERS_ALL, KERN_FMT_q6_K},
    {QUANTMIX_Q4_K_M, ROLE_OUTPUT, LAYERS_ALL, KERN_FMT_q6_K},
    {QUANTMIX_Q5_K_S, ROLE_OUTPUT, LAYERS_ALL, KERN_FMT_q6_K},
    {QUANTMIX_Q5_K_M, ROLE_OUTPUT, LAYERS_ALL, KERN_FMT_q6_K},

    {QUANTMIX_Q4_K_S, ROLE_ATTN_V, LAYERS_FIRST_FOUR, KERN_FMT_q5_K},
    {QUANTMIX_Q4_K_S, ROLE_FFN_DOWN, LAYERS_FIRST_EIGHTH, KERN_FMT_q5_K},

    {QUANTMIX_Q4_K_M, ROLE_ATTN_V, LAYERS_MORE_BITS, KERN_FMT_q6_K},
    {QUANTMIX_Q4_K_M, ROLE_FFN_DOWN, LAYERS_MORE_BITS, KERN_FMT_q6_K},
    {QUANTMIX_Q4_K_M, ROLE_ATTN_QKV, LAYERS_ALL, KERN_FMT_q5_K},

    {QUANTMIX_Q5_K_M, ROLE_ATTN_V, LAYERS_MORE_BITS, KERN_FMT_q6_K},
    {QUANTMIX_Q5_K_M, ROLE_FFN_DOWN, LAYERS_MORE_BITS, KERN_FMT_q6_K},
    {QUANTMIX_Q5_K_M, ROLE_ATTN_QKV, LAYERS_ALL, KERN_FMT_q6_K},
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

static enum role role_of(const struct quantmix_tensor *t)
{
    const char *part = without_layer(t->name);

    if (!strcmp(part, "output.weight"))
        return ROLE_OUTPUT;
    if (!strcmp(part, "token_embd.weight"))
        return t->tied_output ? ROLE_OUTPUT : ROLE_OTHER;
    if (!strcmp(part, "attn_v.weight"))
        return ROLE_ATTN_V;
    if (!strcmp(part, "attn_qkv.weight"))
        return ROLE_ATTN_QKV;
    if (!strncmp(part, "ffn_down", 8)) /* also ffn_down_exps */
        return ROLE_FFN_DOWN;
    if (!strncmp(part, "ffn_gate_inp", 12))
        return ROLE_ROUTER;
    return ROLE_OTHER;
}

static int layer_is_in(enum layers layers, int layer, int n)
{
    switch (layers) {
    case LAYERS_ALL:
        return 1;
    case LAYERS_FIRST_FOUR:
        return layer < 4;
    case LAYERS_FIRST_EIGHTH:
        return layer < n / 8;
    case LAYERS_MORE_BITS:
        return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
    }
    return 0;
}

/* Rows that the block does not divide. The quantisers of the wild use Q5_0 for
 * Q4_K and Q5_1 for Q5_K there; without those formats the next larger one of
 * 32-element blocks, Q8_0, takes both places (and Q6_K's, where it is the
 * custom). Rows that not even 32 divides become F16. */
static enum kern_format fit_row(enum kern_format fmt, uint64_t row_elems)
{
    if (row_elems % kern_format_info(fmt)->block_elems == 0)
        return fmt;
    if (row_elems % kern_format_info(KERN_FMT_q8_0)->block_elems == 0)
        return KERN_FMT_q8_0;
    return KERN_FMT_f16;
}

enum kern_format quantmix_format(enum quantmix mix, const struct quantmix_tensor *t)
{
    const enum role role = role_of(t);
    enum kern_format fmt = mixes[mix].base;

    if (t->n_dims < 2 || role == ROLE_ROUTER)
        return KERN_FMT_f32;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *r = &rules[i];

        if (r->mix == mix && r->role == role &&
            layer_is_in(r->layers, t->layer, t->n_layers)) {
            fmt = r->fmt;
            break;
        }
    }
    /* The 70B models are told by 80 layers and grouped heads: attn_v is so small
     * there that a bit more costs next to nothing. */
    if (role == ROLE_ATTN_V && t->n_layers == 80 && t->n_heads != t->n_kv_heads &&
        fmt == KERN_FMT_q4_K)
        fmt = KERN_FMT_q5_K;
    return fit_row(fmt, t->row_elems);
}

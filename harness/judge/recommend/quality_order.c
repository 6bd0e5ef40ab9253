/* SPDX-License-Identifier: MIT
 *
 * quality_order.c - types by what they keep of a model
 *
 * The order follows the divergences of docs/quality.md, which measures every type on
 * one model, with three rules where these differ by less than other models and other
 * quantisers do:
 *   - more bits of the same family first: Q4_K_M is Q4_K_S with more bits in some
 * tensors
 *   - K-quants before the legacy types of as many bits: a scale per 16 or 32 weights
 *     within a super-block spends fewer bits on scales than one F16 per 32 weights
 *   - a type that is good only with an importance matrix comes after one of about the
 * same divergence that needs none: a file does not show how it was made
 */
#include "harness/judge/recommend/recommend_choice.h"

#include <math.h>
#include <strings.h>

#include "kernels/kernels.h"

static const enum quantmix order[] = {
    /* nothing is lost but rounding */
    QUANTMIX_F32,
    QUANTMIX_F16,
    QUANTMIX_BF16,
    QUANTMIX_Q8_0,
    /* 6 and 5 bits: divergence of .0005 to .0015 nats */
    QUANTMIX_Q6_K,
    QUANTMIX_Q5_K_M,
    QUANTMIX_Q5_K_S,
    QUANTMIX_Q5_1,
    QUANTMIX_Q5_0,
    /* 4 bits: .004 to .006; MXFP4 has powers of two as scales: .012 */
    QUANTMIX_Q4_K_M,
    QUANTMIX_Q4_K_S,
    QUANTMIX_Q4_1,
    QUANTMIX_IQ4_NL,
    QUANTMIX_IQ4_XS,
    QUANTMIX_NVFP4,
    QUANTMIX_Q4_0,
    QUANTMIX_MXFP4,
    /* 3 bits: .012 to .029 */
    QUANTMIX_Q3_K_L,
    QUANTMIX_Q3_K_M,
    QUANTMIX_IQ3_M,
    QUANTMIX_IQ3_S,
    QUANTMIX_IQ3_XS,
    QUANTMIX_Q3_K_S,
    QUANTMIX_IQ3_XXS,
    /* 2 bits: .039 to .114 */
    QUANTMIX_IQ2_M,
    QUANTMIX_Q2_K,
    QUANTMIX_IQ2_S,
    QUANTMIX_Q2_K_S,
    QUANTMIX_IQ2_XS,
    QUANTMIX_IQ2_XXS,
    /* less: .15 and more; ternary types suit only models trained for them */
    QUANTMIX_Q2_0,
    QUANTMIX_IQ1_M,
    QUANTMIX_IQ1_S,
    QUANTMIX_TQ2_0,
    QUANTMIX_TQ1_0,
    QUANTMIX_Q1_0,
};

#define N_ORDERED ((int)(sizeof order / sizeof order[0]))

_Static_assert(sizeof order / sizeof order[0] == QUANTMIX_N, "every type has a rank");

static int rank_of(enum quantmix mix)
{
    for (int i = 0; i < N_ORDERED; i++)
        if (order[i] == mix)
            return i;
    return QUANTMIX_N;
}

/* Bits of most of its weights. */
static double mix_bits(enum quantmix mix)
{
    const struct kern_format_info *f = kern_format_info(quantmix_base(mix));

    return 8.0 * f->block_bytes / f->block_elems;
}

/* Bits per weight of the file; NAN: not known. */
static double file_bits(const struct row *r)
{
    return r->file_bytes > 0 && r->n_params > 0
               ? 8.0 * (double)r->file_bytes / (double)r->n_params
               : NAN;
}

/* A type of another program ranks behind the last one that has no fewer bits. */
static int weights_rank(const struct row *r)
{
    const enum quantmix mix = quantmix_by_name(r->quant);
    const double bits = file_bits(r);
    int rank = -1;

    if (mix < QUANTMIX_N)
        return rank_of(mix);
    for (int i = 0; i < N_ORDERED; i++)
        if (mix_bits(order[i]) >= bits)
            rank = i;
    return isnan(bits) ? QUANTMIX_N : rank + 1;
}

/* Keys and values in BF16 and Q8_0 cost less than weights in that type do, those in
 * Q4_0 about as much as weights in Q5_0 (docs/quality.md). Types of other programs and
 * versions rank last: what they lose is not known. */
static int kv_rank(const struct row *r)
{
    switch (r->kv_type) {
    case FIELD_NO_ENUM:
    case KERN_KV_f16:
        return 0;
    case KERN_KV_bf16:
        return rank_of(QUANTMIX_BF16);
    case KERN_KV_q8_0:
        return rank_of(QUANTMIX_Q8_0);
    case KERN_KV_q4_0:
        return rank_of(QUANTMIX_Q5_0);
    default:
        return strcasecmp(row_kv_type_text(r), "f32") ? QUANTMIX_N : 0;
    }
}

/* int8 sums add .00005 to .00016 to a divergence (docs/quality.md): with them, weights
 * in Q8_0 are between Q8_0 and Q6_K. */
static int sums_rank(const struct row *r)
{
    return r->prefill_sums == SLM_SUMS_INT8    ? rank_of(QUANTMIX_Q6_K)
           : r->prefill_sums == SLM_SUMS_EXACT ? 0
           : r->prefill_sums == FIELD_NO_ENUM  ? 0
                                               : QUANTMIX_N;
}

int quality_rank(const struct row *r)
{
    const int weights = weights_rank(r), kv = kv_rank(r), sums = sums_rank(r);
    const int most = weights > kv ? weights : kv;

    return most > sums ? most : sums;
}

bool quality_has_few_bits(const struct row *r)
{
    const enum quantmix mix = quantmix_by_name(r->quant);

    return (mix < QUANTMIX_N ? mix_bits(mix) : file_bits(r)) < 4;
}

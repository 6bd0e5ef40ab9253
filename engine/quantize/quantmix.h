/* SPDX-License-Identifier: MIT
 *
 * quantmix.h - quantisation mixes: which tensor gets which format
 *
 * "Q4_K_M" is not a format but a mix: most matrices are Q4_K, those whose quantisation
 * costs most quality Q6_K. The rules are those of published GGUF files, so that bytes
 * per token agree with them.
 *
 * Threading: pure functions.
 */
#ifndef SLM_ENGINE_QUANTIZE_QUANTMIX_H
#define SLM_ENGINE_QUANTIZE_QUANTMIX_H

#include <stdint.h>

#include "kernels/kernels.h"

enum quantmix {
    QUANTMIX_F32,
    QUANTMIX_F16,
    QUANTMIX_BF16,
    QUANTMIX_Q4_0,
    QUANTMIX_Q4_1,
    QUANTMIX_Q5_0,
    QUANTMIX_Q5_1,
    QUANTMIX_Q8_0,
    QUANTMIX_Q2_K,
    QUANTMIX_Q2_K_S,
    QUANTMIX_Q3_K_S,
    QUANTMIX_Q3_K_M,
    QUANTMIX_Q3_K_L,
    QUANTMIX_Q4_K_S,
    QUANTMIX_Q4_K_M,
    QUANTMIX_Q5_K_S,
    QUANTMIX_Q5_K_M,
    QUANTMIX_Q6_K,
    QUANTMIX_IQ1_S,
    QUANTMIX_IQ1_M,
    QUANTMIX_IQ2_XXS,
    QUANTMIX_IQ2_XS,
    QUANTMIX_IQ2_S,
    QUANTMIX_IQ2_M,
    QUANTMIX_IQ3_XXS,
    QUANTMIX_IQ3_XS,
    QUANTMIX_IQ3_S,
    QUANTMIX_IQ3_M,
    QUANTMIX_IQ4_NL,
    QUANTMIX_IQ4_XS,
    QUANTMIX_TQ1_0,
    QUANTMIX_TQ2_0,
    QUANTMIX_MXFP4,
    QUANTMIX_NVFP4,
    QUANTMIX_Q1_0,
    QUANTMIX_Q2_0,
    QUANTMIX_N
};

/* What a rule may depend on. */
struct quantmix_tensor {
    const char *name; /* "blk.3.attn_v.weight" */
    int layer;        /* -1 outside blk.* */
    int n_layers;
    int n_heads, n_kv_heads;
    int n_dims;
    uint64_t row_elems; /* ne[0] */
    int tied_output;    /* token_embd is the output matrix too */
    int n_experts;      /* 0: none */
    int has_importance; /* quantised with an importance matrix */
};

const char *quantmix_name(enum quantmix mix);        /* "Q4_K_M" */
enum quantmix quantmix_by_name(const char *name);    /* any case; QUANTMIX_N: unknown */
uint32_t quantmix_file_type(enum quantmix mix);      /* general.file_type */
enum quantmix quantmix_by_file_type(uint32_t ftype); /* QUANTMIX_N: unknown */

/* The format of most matrices. */
enum kern_format quantmix_base(enum quantmix mix);

/* A mix' or a format's, by its name; KERN_N_FMT: not known. */
enum kern_format quantmix_base_named(const char *name);

/* The mix with this base and the fewest exceptions, or QUANTMIX_N. */
enum quantmix quantmix_by_base(enum kern_format fmt);

/* Whether the mix needs an importance matrix: it has so few bits that equal importances
 * cost much of a model's quality. */
int quantmix_wants_importance(enum quantmix mix);

/* Whether tensors of this name may be quantised: matrices of products. Norms, routers,
 * biases, convolutions and position tables are not. */
int quantmix_is_matrix(const struct quantmix_tensor *t);

/* Format of one tensor; F32 where quantmix_is_matrix() is false. Where the row length
 * is not a multiple of the block, the fallback of quantmix_fit_row(). */
enum kern_format quantmix_format(enum quantmix mix, const struct quantmix_tensor *t);

/* fmt, or the layout in which files are written today where fmt is an older one. */
enum kern_format quantmix_written(enum kern_format fmt);

/* quantmix_written(), or llama.cpp's fallback for rows that are not a multiple of its
 * block. */
enum kern_format quantmix_fit_row(enum kern_format fmt, uint64_t row_elems);

#endif

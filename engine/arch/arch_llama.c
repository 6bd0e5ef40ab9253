/* SPDX-License-Identifier: MIT
 *
 * arch_llama.c - Llama 2 and 3, Mistral, Yi, TinyLlama, Mixtral
 *
 * RMSNorm, rotated neighbouring pairs, grouped heads, a SiLU-gated feed-forward
 * part; with experts each token takes the few that the router scores highest,
 * weighted by a softmax over those few.
 * Sources: Touvron et al. 2023 (arXiv 2307.09288), Jiang et al. 2024 (Mixtral,
 * arXiv 2401.04088); tensor names and metadata keys as in the GGUF specification.
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_gate.weight", MATRIX(EMBD, FF, gate), .when = WHEN_DENSE},
    {"ffn_up.weight", MATRIX(EMBD, FF, up), .when = WHEN_DENSE},
    {"ffn_down.weight", MATRIX(FF, EMBD, down), .when = WHEN_DENSE},
    TENSORS_EXPERTS,
    {0},
};

static enum status setup(struct loader *l, struct model *m)
{
    const enum status st = loader_experts(l, m);

    return st ? st : loader_windows(l, m, 0, 1);
}

const struct arch arch_llama = {
    .name = "llama",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};

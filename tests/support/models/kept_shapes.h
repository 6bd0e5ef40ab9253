/* SPDX-License-Identifier: MIT
 *
 * kept_shapes.h - small shapes that need checkpoints to keep what sequences begin with:
 * with windows in some layers and in all, with states of each mechanism
 */
#ifndef SLM_TESTS_KEPT_SHAPES_H
#define SLM_TESTS_KEPT_SHAPES_H

#include "tests/support/synth_image.h"

enum kept_shape {
    KEPT_WINDOWS,
    KEPT_ALL_WINDOWS,
    KEPT_DELTA,
    KEPT_CONV,
    KEPT_MAMBA,
    KEPT_NEXT_TO_ATTENTION,
    N_KEPT_SHAPES
};

static inline bool kept_has_pages(enum kept_shape kind)
{
    return kind != KEPT_ALL_WINDOWS && kind != KEPT_MAMBA;
}

static inline bool kept_has_states(enum kept_shape kind)
{
    return kind >= KEPT_DELTA;
}

/* small_plain with other layers. */
static inline struct synth_shape kept_shape(enum kept_shape kind)
{
    static const char *const archs[] = {"gemma3", "llama",  "qwen35",
                                        "lfm2",   "mamba2", "falcon-h1"};
    struct synth_shape s = kind == KEPT_WINDOWS ? small_windows() : small_plain;

    snprintf(s.arch, sizeof s.arch, "%s", archs[kind]);
    if (kind == KEPT_ALL_WINDOWS)
        s.window = SMALL_WINDOW;
    if (kind == KEPT_DELTA) {
        s.n_layers = 4;
        s.full_attention_interval = 2;
        s.n_delta_k_heads = 2;
        s.n_delta_v_heads = 4;
        s.delta_head_dim = 16;
        s.n_delta_conv = 4;
    }
    if (kind == KEPT_CONV)
        snprintf(s.attention_layers, sizeof s.attention_layers, "1");
    if (kind >= KEPT_CONV)
        s.n_conv = kind == KEPT_CONV ? 3 : 4;
    if (kind >= KEPT_MAMBA) {
        s.n_ssm_groups = 2;
        s.n_ssm_heads = 4;
        s.ssm_head_dim = 32;
        s.ssm_state_dim = 16;
    }
    return s;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * engine_info.c - the part of the public API that needs a model's numbers alone
 */
#include "engine/engine.h"

enum weights_residency slm_choose_residency(const struct slm_info *info,
                                            uint64_t memory_bytes)
{
    const uint64_t rest = info->kv_bytes + info->scratch_bytes;

    if (info->made_on_load)
        return WEIGHTS_PACKED;
    return rest <= memory_bytes && info->weight_bytes <= memory_bytes - rest
               ? WEIGHTS_PACKED
               : WEIGHTS_MMAP;
}

uint64_t slm_bytes_per_token(const struct slm_info *info, int n_past)
{
    const uint64_t all = (uint64_t)n_past * info->kv_pos_bytes;
    const uint64_t layer =
        info->kv_pos_bytes / (uint64_t)(info->n_layers - info->n_recurrent);
    uint64_t hidden = 0;

    if (info->n_window && n_past > info->n_window)
        hidden = (uint64_t)(n_past - info->n_window) * (uint64_t)info->n_window_layers *
                 layer;
    return info->weight_token_bytes + info->state_bytes + all - hidden;
}

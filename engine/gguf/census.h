/* SPDX-License-Identifier: MIT
 *
 * census.h - totals over the tensors of a model
 *
 * Uses only names and shapes, so it works for architectures and formats that this
 * program cannot run as well.
 *
 * Threading: pure function.
 */
#ifndef SLM_ENGINE_GGUF_CENSUS_H
#define SLM_ENGINE_GGUF_CENSUS_H

#include "engine/gguf/gguf.h"

#define CENSUS_MAX_TYPES     64
#define CENSUS_UNKNOWN_TYPES UINT32_MAX /* all types without a known size together */

struct census_type {
    uint32_t ggml_id;
    uint64_t n_tensors, n_elems, bytes;
};

struct census {
    uint64_t n_params; /* elements of all tensors */
    uint64_t bytes;    /* of all tensors of a known type */

    /* Read to decode one token: every tensor, except that lookup tables (token_embd,
     * position_embd, token_types, per_layer_token_embd) count one row and a layer's
     * experts the share that is used. A tied token_embd also counts as the output
     * matrix. Layers that predict further tokens (nextn_predict_layers, the last ones)
     * do not count, nor keys and values of layers that read those of others
     * (shared_kv_layers, the last ones). The same sum as slm_info's weight_token_bytes.
     */
    uint64_t token_bytes;
    uint64_t n_layers_read;             /* UINT64_MAX: all */
    uint64_t n_layers_own_kv;           /* the same, of keys and values */
    uint64_t unread_bytes;              /* of what does not count */
    bool tied_output;                   /* token_embd serves as the output matrix */
    bool is_encoder;                    /* there is no output matrix */
    uint64_t n_experts, n_experts_used; /* 0: no experts */

    struct census_type types[CENSUS_MAX_TYPES]; /* most bytes first */
    int n_types;
};

void census_take(struct census *c, const struct gguf *g);

#endif

/* SPDX-License-Identifier: MIT
 *
 * hf_tensors_impl.h - a folder's tensors as those of a GGUF file; for hf_tensors.c and
 * hf_rows.c only
 */
#ifndef SLM_ENGINE_HF_HF_TENSORS_IMPL_H
#define SLM_ENGINE_HF_HF_TENSORS_IMPL_H

#include <stdatomic.h>

#include "engine/base/strtab.h"
#include "engine/hf/hf_impl.h"

#define HF_NAME_BYTES 72

struct hf_entry {
    char name[HF_NAME_BYTES];
    enum hf_how how;
    const struct safetensor **parts; /* [n_parts], into hf_tensors.parts */
    size_t n_parts;
    const float *made; /* values from config.json instead of parts */
    int n_dims;
    uint64_t ne[4], part_rows; /* rows of one part */
    uint64_t n_heads;  /* HF_ROPE_*, HF_VALUES...: heads in the rows, or columns */
    uint64_t n_groups; /* HF_VALUES...: heads of keys, each shared by several */
    uint64_t fixed;    /* HF_VALUES: leading rows that stay */
    enum kern_format fmt;
    atomic_uint_least64_t n_read; /* rows, repeated reads included */
};

struct hf_tensors {
    struct safetensors *s;
    const struct safetensor **parts;
    struct hf_entry *entries;
    size_t n;
    struct strtab index;
    float *made[HF_MAX_VECTORS];
    kern_dequantize_fn *to_floats[KERN_N_FMT];
};

#endif

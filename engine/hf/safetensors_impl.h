/* SPDX-License-Identifier: MIT
 *
 * safetensors_impl.h - the members of struct safetensors, for safetensors*.c only
 */
#ifndef SLM_ENGINE_HF_SAFETENSORS_IMPL_H
#define SLM_ENGINE_HF_SAFETENSORS_IMPL_H

#include "engine/base/strtab.h"
#include "engine/hf/safetensors.h"

struct shard {
    char *path;
    int fd; /* -1: a header in memory */
    uint64_t bytes;
};

struct safetensors {
    struct shard *shards;
    size_t n_shards;
    struct safetensor *tensors;
    size_t n_tensors, cap;
    struct strtab index; /* names -> tensors */
};

enum status safetensors_too_short(const struct shard *f, struct err *err);

/* The first 8 bytes of a file as the length of its header, checked. */
enum status safetensors_head_length(uint64_t *n, const struct shard *f,
                                    const uint8_t *bytes, struct err *err);

/* Add the tensors of shard f, whose header is text[len]. */
enum status safetensors_head_parse(struct safetensors *s, uint32_t f, const char *text,
                                   size_t len, struct err *err);

/* Names of all shards together, each once. */
enum status safetensors_index(struct safetensors *s, struct err *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * pack_impl.h - shared by the files of pack, for pack*.c only
 */
#ifndef SLM_ENGINE_PACK_PACK_IMPL_H
#define SLM_ENGINE_PACK_PACK_IMPL_H

#include "engine/gguf/gguf_panels.h"
#include "engine/pack/pack.h"
#include "kernels/kernels.h"

/* A tensor of the file that is made. */
struct pack_tensor {
    const struct gguf_tensor *from;
    int layer; /* -1: no layer */
    bool in_panels;
    uint64_t offset;   /* in the data */
    uint64_t checksum; /* known when it has been written */
};

struct pack_plan {
    struct pack_tensor *tensors; /* [n], in the order of the file */
    size_t n;
    size_t head_bytes;   /* in front of the data */
    uint64_t data_bytes; /* of all tensors, each to the end of its last page */
};

/* What the file will hold, and where. Errors: those of pack_write(). */
enum status pack_plan_make(struct pack_plan *plan, const struct gguf *g,
                           const struct kern_set *kern, struct err *err);
void pack_plan_free(struct pack_plan *plan);

/* The head, with the checksums of plan->tensors: *head of *bytes, to be freed. Error:
 * ST_NO_MEMORY. */
enum status pack_head(unsigned char **head, size_t *bytes, const struct pack_plan *plan,
                      const struct gguf *g, struct err *err);

/* The checksum of head[n], whose own is stored at head + at and set to 0. */
uint64_t pack_head_checksum(unsigned char *head, size_t n, size_t at);

#endif

/* SPDX-License-Identifier: MIT
 *
 * model_head.h - the metadata and table of tensors of a model's shape, for planning,
 * without making its weights
 *
 * Threading: as gguf.h.
 */
#ifndef SLM_HARNESS_MODEL_MODEL_HEAD_H
#define SLM_HARNESS_MODEL_MODEL_HEAD_H

#include "harness/model/modelref.h"

struct model_head {
    struct gguf *g;
    void *image; /* of a shape: address space for all of it, in which only the head has
                    pages; the data of its tensors are zeros */
    uint64_t bytes;
};

/* The plan of a synthetic model with that name. Errors: ST_NO_MEMORY (no address space
 * for it), gguf_parse()'s. */
enum status model_head_of_plan(struct model_head *h, const struct synth_plan *plan,
                               const char *name, struct err *err);

void model_head_close(struct model_head *h);

#endif

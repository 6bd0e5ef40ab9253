/* SPDX-License-Identifier: MIT
 *
 * weights_impl.h - what a residency policy provides, for weights*.c only
 */
#ifndef SLM_ENGINE_WEIGHTS_IMPL_H
#define SLM_ENGINE_WEIGHTS_IMPL_H

#include "engine/weights.h"

struct weights {
    const struct gguf *g;
    const struct weights_policy *policy;
    size_t begin, end; /* of the tensor data, offsets in the image */
};

struct weights_policy {
    const char *name;
    bool wants_mapping; /* a gguf from gguf_open(), not from gguf_parse() */
    enum status (*preload)(struct weights *w,
                           int (*progress)(void *arg, size_t done, size_t total),
                           void *arg, struct err *err);
};

extern const struct weights_policy weights_policy_mmap;
extern const struct weights_policy weights_policy_memory;

#endif

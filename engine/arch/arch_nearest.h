/* SPDX-License-Identifier: MIT
 *
 * arch_nearest.h - which known architecture a file of an unknown one is nearest to
 *
 * Two architectures are as far apart as tensors are in one of them alone, by name and
 * with numbers left out; among equals the one counts that reads most of the file's
 * metadata.
 *
 * Threading: pure functions.
 */
#ifndef SLM_ENGINE_ARCH_ARCH_NEAREST_H
#define SLM_ENGINE_ARCH_ARCH_NEAREST_H

#include "engine/arch/arch.h"

/* A text owned by its list, printable: others wrote the file. */
struct name_list {
    char (*name)[72];
    size_t n;
};

struct arch_nearest {
    const struct arch *arch;  /* NULL: no tensor of the file is one of a known one */
    size_t n_shared;          /* names of tensors in both */
    struct name_list unknown; /* tensors of the file that arch does not read,
                                 "blk.#.x.weight" */
    struct name_list missing; /* tensors that arch needs and the file lacks */
    struct name_list unread;  /* keys of the file's architecture that arch does not
                                 read, without its name; empty if there is a why_not */
    char why_not[256];        /* the metadata cannot be arch's, and why; "": they can */
};

/* Compare g, whose architecture is none of ours, with all. Costs time in proportion to
 * its tensors and keys. Error: ST_NO_MEMORY. */
enum status arch_find_nearest(struct arch_nearest *out, const struct gguf *g,
                              struct err *err);
void arch_nearest_free(struct arch_nearest *n);

#endif

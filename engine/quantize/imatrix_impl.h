/* SPDX-License-Identifier: MIT
 *
 * imatrix_impl.h - the members of struct imatrix, for imatrix*.c only
 */
#ifndef SLM_ENGINE_QUANTIZE_IMATRIX_IMPL_H
#define SLM_ENGINE_QUANTIZE_IMATRIX_IMPL_H

#include "engine/base/strtab.h"
#include "engine/quantize/imatrix.h"

/* Names in the order in which they came, and where each is. */
struct imatrix_names {
    struct strtab index;
    size_t cap;
};

struct imatrix {
    struct imatrix_entry **entries; /* each allocated: they do not move */
    size_t n_entries;
    struct imatrix_names entry_names;
    char **datasets;
    size_t n_datasets;
    struct imatrix_names dataset_names;
    uint32_t n_chunks, chunk_size;
};

#endif

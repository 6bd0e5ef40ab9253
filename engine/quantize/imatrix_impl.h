/* SPDX-License-Identifier: MIT
 *
 * imatrix_impl.h - the members of struct imatrix, for imatrix*.c only
 */
#ifndef SLM_ENGINE_QUANTIZE_IMATRIX_IMPL_H
#define SLM_ENGINE_QUANTIZE_IMATRIX_IMPL_H

#include "engine/quantize/imatrix.h"

struct imatrix {
    struct imatrix_entry **entries; /* each allocated: they do not move */
    size_t n_entries;
    char **datasets;
    size_t n_datasets;
    uint32_t n_chunks, chunk_size;
};

#endif

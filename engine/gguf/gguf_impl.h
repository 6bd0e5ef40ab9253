/* SPDX-License-Identifier: MIT
 *
 * gguf_impl.h - the members of struct gguf, for gguf*.c only
 */
#ifndef SLM_ENGINE_GGUF_GGUF_IMPL_H
#define SLM_ENGINE_GGUF_GGUF_IMPL_H

#include "engine/base/strtab.h"
#include "engine/gguf/gguf.h"
#include "engine/gguf/mapguard.h"

struct gguf {
    char *path;
    const unsigned char *image;
    size_t bytes;              /* of the whole file */
    size_t head_bytes;         /* of it in image */
    bool mapped;               /* image is a mapping of this gguf */
    int fd;                    /* of the mapped file; -1: none */
    struct mapguard *guard;    /* of the mapping; NULL: none */
    struct gguf_source source; /* read NULL: not assembled; else image is the head,
                                  malloc'ed */

    uint32_t version;
    uint32_t alignment;
    uint32_t layout; /* of panels; 0: no packed file */
    uint64_t data_offset;

    struct gguf_kv *kvs;
    size_t n_kvs;
    uint64_t **strings; /* [n_kvs]: for a string array, the offset of each element
                           from kv->data; NULL for the others */
    struct gguf_tensor *tensors;
    size_t n_tensors;
    struct strtab kv_index, tensor_index;
};

/* Fill the members below `source` from image[bytes]; on failure gguf_close() releases
 * what g holds. */
enum status gguf_parse_image(struct gguf *g, struct err *err);

/* gguf_panels.c: gguf_read_rows() of a tensor in panels. */
enum status gguf_read_panels(const struct gguf *g, const struct gguf_tensor *t,
                             uint64_t row, uint64_t n_rows, bool drop, void *dst,
                             struct err *err);

/* Bytes of a scalar; 0 for strings, arrays and unknown numbers. */
size_t gguf_scalar_bytes(uint32_t type);

#endif

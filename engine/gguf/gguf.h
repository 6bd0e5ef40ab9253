/* SPDX-License-Identifier: MIT
 *
 * gguf.h - bounded, read-only reader of GGUF versions 2 and 3
 *
 * A GGUF file is a header, n key-value pairs, n tensor descriptions and the
 * tensor data. No byte of it is trusted: every count, length, type and offset
 * is checked against the bytes of the file before it is used, sizes are computed
 * without overflow, and the file's size bounds what parsing it allocates. Any
 * inconsistency is one ST_INPUT sentence that names the file and the fault.
 *
 * The whole file is mapped (or given in memory); strings and arrays point into it. The
 * third kind is assembled: its head is in memory and its tensors are computed while
 * they are read, from files in another format or with other types (gguf_assemble()).
 *
 * Threading: a struct gguf is immutable after opening; any thread may use it.
 * Source: the GGUF specification in the ggml project (docs/gguf.md).
 */
#ifndef SLM_ENGINE_GGUF_GGUF_H
#define SLM_ENGINE_GGUF_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "kernels/kernels.h"

struct gguf;

enum gguf_type {
    GGUF_U8 = 0,
    GGUF_I8 = 1,
    GGUF_U16 = 2,
    GGUF_I16 = 3,
    GGUF_U32 = 4,
    GGUF_I32 = 5,
    GGUF_F32 = 6,
    GGUF_BOOL = 7,
    GGUF_STRING = 8,
    GGUF_ARRAY = 9,
    GGUF_U64 = 10,
    GGUF_I64 = 11,
    GGUF_F64 = 12,
};

/* Bytes inside the file, not zero-terminated. */
struct gguf_str {
    const char *data;
    size_t len;
};

struct gguf_kv {
    struct gguf_str key;
    enum gguf_type type;      /* GGUF_ARRAY: see below */
    enum gguf_type elem_type; /* of an array; equal to type otherwise */
    uint64_t n;               /* elements of an array, 1 otherwise */
    const void *data;         /* first element, unaligned, little-endian */
};

struct gguf_tensor {
    char *name;           /* zero-terminated copy, owned by the gguf */
    uint32_t ggml_id;     /* type as the file has it; in panels: that of its rows;
                             GGUF_Q2_0_128 */
    enum kern_format fmt; /* KERN_N_FMT: no kernels for it */
    int n_dims;           /* 1..4 */
    uint64_t ne[4];       /* elements per dimension, ne[0] is a row; unused: 1 */
    uint64_t n_elems;
    uint64_t bytes;      /* 0 where the type is unknown */
    uint64_t offset;     /* of the data, from the start of the file */
    uint64_t panel_rows; /* leading rows of each slice that the file has in panels, a
                            multiple of KERN_PANEL_ROWS; 0: all are rows, as in every
                            file but packed ones (gguf_panels.h) */
};

/* Open, check and map a file (MAP_SHARED, read-only): what another process
 * cuts off while it is open reads as zeros from then on, and gguf_check() says so.
 * Errors: ST_IO, ST_INPUT, ST_NO_MEMORY. */
enum status gguf_open(struct gguf **g, const char *path, struct err *err);

/* ST_IO where the mapped file has become shorter, or unreadable, since it was opened:
 * what was read from its image may not be used then. */
enum status gguf_check(const struct gguf *g, struct err *err);

/* The same over the caller's memory, which must outlive the gguf and begin at a
 * multiple of 64, so that tensors are as aligned as in a file. name stands for it in
 * messages. */
enum status gguf_parse(struct gguf **g, const void *image, size_t bytes,
                       const char *name, struct err *err);

/* The source of an assembled gguf's tensors. read() writes rows row .. row + n_rows - 1
 * of t, counted through all slices, in t's type to dst; several threads may call it.
 * drop: the source's bytes are not needed again, so they may leave the page cache.
 * close() releases it. */
struct gguf_source {
    enum status (*read)(void *arg, const struct gguf_tensor *t, uint64_t row,
                        uint64_t n_rows, bool drop, void *dst, struct err *err);
    void (*close)(void *arg);
    void *arg;
};

/* A gguf whose head (all up to the tensor data, padded) is head[bytes], malloc'ed. The
 * gguf takes over head and source, also on failure. Errors: those of gguf_parse(). */
enum status gguf_assemble(struct gguf **g, void *head, size_t bytes, const char *name,
                          const struct gguf_source *source, struct err *err);

void gguf_close(struct gguf *g);

const char *gguf_path(const struct gguf *g); /* path, or the name given */
uint32_t gguf_version(const struct gguf *g);
uint32_t gguf_alignment(const struct gguf *g);
const void *gguf_image(const struct gguf *g);  /* the file; for an assembled gguf
                                                  the head */
size_t gguf_image_bytes(const struct gguf *g); /* of the whole file, assembled ones
                                                  included */
bool gguf_is_mapped(const struct gguf *g);     /* gguf_open() */
bool gguf_is_assembled(const struct gguf *g);  /* gguf_assemble() */
bool gguf_is_folder(const struct gguf *g);     /* assembled from a folder */
uint64_t gguf_data_offset(const struct gguf *g);

/* Descriptor of a mapped file, for read(), where a missing page is an error instead of
 * a signal; -1 for an image in memory. The gguf closes it. */
int gguf_fd(const struct gguf *g);

size_t gguf_n_tensors(const struct gguf *g);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i);
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name);

/* A tensor's data in the image, in panels where t->panel_rows says so; not for an
 * assembled gguf. */
const void *gguf_tensor_data(const struct gguf *g, const struct gguf_tensor *t);

/* Rows row .. row + n_rows - 1 of a tensor of any gguf to dst, counted through all
 * slices; a file is read by read(), not through its mapping, and rows of panels are
 * unpacked. drop as in struct gguf_source. Errors: ST_IO, those of the source,
 * ST_UNSUPPORTED (rows of panels, and no usable level has kernels for them). */
enum status gguf_read_rows(const struct gguf *g, const struct gguf_tensor *t,
                           uint64_t row, uint64_t n_rows, bool drop, void *dst,
                           struct err *err);

/* n bytes of a mapped file from offset on, as they are, by read(). Error: ST_IO. */
enum status gguf_read_bytes(const struct gguf *g, void *dst, size_t n, uint64_t offset,
                            struct err *err);

size_t gguf_n_kvs(const struct gguf *g);
const struct gguf_kv *gguf_kv_at(const struct gguf *g, size_t i);
const struct gguf_kv *gguf_kv_find(const struct gguf *g, const char *key);

/* Typed access to a scalar. False, *out untouched, when the key is missing or
 * its type does not convert without loss (any integer type to u64 if >= 0; any
 * number to f64). */
bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *out);
bool gguf_get_f64(const struct gguf *g, const char *key, double *out);
bool gguf_get_bool(const struct gguf *g, const char *key, bool *out);
bool gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *out);

/* Element i < kv->n of an array (or the scalar, i = 0), converted the same
 * way. Strings of an array are found through an index built at opening, so
 * access is O(1). */
bool gguf_elem_u64(const struct gguf_kv *kv, uint64_t i, uint64_t *out);
bool gguf_elem_i64(const struct gguf_kv *kv, uint64_t i, int64_t *out);
bool gguf_elem_f64(const struct gguf_kv *kv, uint64_t i, double *out);
bool gguf_elem_bool(const struct gguf_kv *kv, uint64_t i, bool *out);
bool gguf_elem_str(const struct gguf *g, const struct gguf_kv *kv, uint64_t i,
                   struct gguf_str *out);

const char *gguf_type_name(enum gguf_type type); /* "u32" */

/* The type number with two layouts, and the number that struct gguf_tensor and packed
 * files have for the older one, 128 weights in 34 bytes: no other file has it. */
#define GGUF_Q2_0     42u
#define GGUF_Q2_0_128 0x802au

/* Name of any ggml tensor type number, also of those without kernels ("iq2_xs"); NULL
 * if unknown. Block geometry likewise; false if unknown. */
const char *gguf_ggml_name(uint32_t ggml_id);
bool gguf_ggml_block(uint32_t ggml_id, uint32_t *elems, uint32_t *bytes);

#endif

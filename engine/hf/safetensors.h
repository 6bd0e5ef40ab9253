/* SPDX-License-Identifier: MIT
 *
 * safetensors.h - bounded, read-only reader of safetensors files, also sharded
 *
 *     header bytes u64 | JSON: name -> {dtype, shape, data_offsets} | data
 *
 * A folder has one model.safetensors, or model.safetensors.index.json and the files
 * it names, all in the folder itself. They are untrusted: lengths, types, shapes
 * and offsets are checked against the bytes of the file, and tensors against each
 * other, before anything is used; any inconsistency is one ST_INPUT sentence that names
 * the file.
 *
 * Threading: immutable once opened; safetensors_read() from any thread.
 * Source: the format's description in huggingface/safetensors.
 */
#ifndef SLM_ENGINE_HF_SAFETENSORS_H
#define SLM_ENGINE_HF_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "kernels/kernels.h"

#define SAFETENSORS_MAX_DIMS 8

struct safetensors;

struct safetensor {
    char *name;           /* owned */
    const char *dtype;    /* "BF16" */
    enum kern_format fmt; /* f32, f16 or bf16; KERN_N_FMT: another type */
    int n_dims;           /* 0 to SAFETENSORS_MAX_DIMS */
    uint64_t shape[SAFETENSORS_MAX_DIMS]; /* outermost first */
    uint64_t n_elems, bytes;
    uint32_t file;   /* which shard */
    uint64_t offset; /* in that file */
};

/* Open the shards of a folder and read their headers. Errors: ST_IO, ST_INPUT,
 * ST_NO_MEMORY. */
enum status safetensors_open(struct safetensors **s, const char *dir, struct err *err);
void safetensors_close(struct safetensors *s);

/* Add the tensors of dir/folder/model.safetensors, named "folder/<name>". Errors: the
 * same. */
enum status safetensors_add(struct safetensors *s, const char *dir, const char *folder,
                            struct err *err);

/* Tensors in the order of files and of their data. */
size_t safetensors_count(const struct safetensors *s);
const struct safetensor *safetensors_at(const struct safetensors *s, size_t i);

/* n bytes of a tensor from its byte `at` on to dst. Error: ST_IO. */
enum status safetensors_read(const struct safetensors *s, const struct safetensor *t,
                             uint64_t at, size_t n, void *dst, struct err *err);

/* Drop bytes that are not needed again from the page cache. */
void safetensors_drop(const struct safetensors *s, const struct safetensor *t,
                      uint64_t at, uint64_t n);

/* For tests and fuzzing: one file's header, image[bytes]; the result has tensors
 * without data. */
enum status safetensors_parse(struct safetensors **s, const void *image, size_t bytes,
                              const char *name, struct err *err);

#endif

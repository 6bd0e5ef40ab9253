/* SPDX-License-Identifier: MIT
 *
 * weights_file.h - a model's file, opened once more to be read past the page cache
 *
 * It is opened as the descriptor that the gguf has, by its name in /proc, so that it is
 * the same file even if another one has its path now. File systems that do not read
 * like that (tmpfs, some network file systems) are read through the page cache.
 *
 * Threading: data; one thread opens and closes.
 */
#ifndef SLM_ENGINE_WEIGHTS_WEIGHTS_FILE_H
#define SLM_ENGINE_WEIGHTS_WEIGHTS_FILE_H

#include <stdbool.h>

#include "engine/gguf/gguf.h"
#include "engine/weights/extent_reader.h"

/* Disks of virtual machines need several large requests to reach their bandwidth. */
#define WEIGHTS_FILE_DEPTH         STREAM_RING_DEPTH
#define WEIGHTS_FILE_REQUEST_BYTES ((uint32_t)2 << 20)

struct weights_file {
    const struct gguf *g;
    int own;     /* descriptor; -1: the gguf's */
    bool direct; /* it reads past the page cache */
};

/* A descriptor of the file of a mapped gguf, with more flags of open(): the caller's to
 * close; -1: there is none. */
int weights_file_open_again(const struct gguf *g, int flags);

/* g is mapped and must outlive *f; memory: a block, which begins at a page, to try a
 * read. Never fails. */
void weights_file_open(struct weights_file *f, const struct gguf *g, void *memory);
void weights_file_close(struct weights_file *f);

/* The descriptor to read from. */
int weights_file_fd(const struct weights_file *f);

/* How an extent_reader reads it; the source is the caller's. */
struct extent_reader_params weights_file_params(const struct weights_file *f);

#endif

/* SPDX-License-Identifier: MIT
 *
 * gguf_split.h - one gguf from a model in several GGUF files
 *
 * Parts are called NAME-00001-of-00003.gguf and so on. The first has the metadata; each
 * has its number (split.no, from 0) and their count (split.count), and tensors lie in
 * any of them. The result is an assembled gguf without the split.* pairs.
 *
 * Threading: as gguf.h; rows may be read from several threads.
 * Source: the files that gguf-split of ggml-org/llama.cpp writes.
 */
#ifndef SLM_ENGINE_GGUF_GGUF_SPLIT_H
#define SLM_ENGINE_GGUF_GGUF_SPLIT_H

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"

/* Number of parts by the name of one, path; 1 for any other name. */
int gguf_split_count(const char *path);

/* Path of part i, from 0, given the path of any part; false: longer than cap. */
bool gguf_split_path(char *out, size_t cap, const char *path, int i);

/* Length of a part's path up to the end of NAME; for any other path its whole length.
 */
size_t gguf_split_stem(const char *path);

/* Whether g is a part of a split model. */
bool gguf_split_is(const struct gguf *g);

/* All parts as one gguf, given any part, which the result takes over, also on failure.
 * Errors: ST_INPUT (its name is not a part's; name and metadata differ; tensors are
 * missing), those of gguf_open() and gguf_assemble(). */
enum status gguf_split_join(struct gguf **out, struct gguf *part, struct err *err);

#endif

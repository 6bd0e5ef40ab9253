/* SPDX-License-Identifier: MIT
 *
 * gguf_split.h - a model in several GGUF files as one
 *
 * Parts are called NAME-00001-of-00003.gguf and so on. The first has the metadata; each
 * says which it is (split.no, from 0) and of how many (split.count), and tensors lie in
 * any of them. The result is an assembled gguf without the split.* pairs.
 *
 * Threading: as gguf.h; rows may be read from several threads.
 * Source: the files that gguf-split of ggml-org/llama.cpp writes.
 */
#ifndef SLM_ENGINE_GGUF_GGUF_SPLIT_H
#define SLM_ENGINE_GGUF_GGUF_SPLIT_H

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"

/* How many parts the model has of which `path` is called one; 1 for any other name. */
int gguf_split_count(const char *path);

/* Path of part i, from 0, given that of any; false: longer than cap. */
bool gguf_split_path(char *out, size_t cap, const char *path, int i);

/* Length of NAME in a part's path, of any other path its whole length. */
size_t gguf_split_stem(const char *path);

/* True for a part of several. */
bool gguf_split_is(const struct gguf *g);

/* All parts together, given any, which belongs to the result from here on, also on
 * failure. Errors: ST_INPUT (it is not called a part; a part that says it is another,
 * or of another number; tensors are missing), those of gguf_open() and gguf_assemble().
 */
enum status gguf_split_join(struct gguf **out, struct gguf *part, struct err *err);

#endif

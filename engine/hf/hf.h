/* SPDX-License-Identifier: MIT
 *
 * hf.h - a Hugging Face model folder opened as if it were a GGUF file
 *
 * config.json becomes hyperparameters, *.safetensors tensors, tokenizer.json (with
 * the small JSON files beside it, and chat_template.jinja) the vocabulary. The result
 * is an assembled gguf with the keys, names, shapes and orders of the same model's GGUF
 * files, so other modules need not distinguish them: rows of Q and K that are rotated
 * as neighbouring pairs are reordered, experts are stacked, Gemma's norms get 1 added,
 * one-dimensional tensors are F32.
 *
 * Everything in the folder is untrusted, like a GGUF file.
 *
 * Threading: as gguf.h; rows may be read from several threads.
 * Source: the models' published config.json files and implementations in
 * huggingface/transformers; tensor names and keys of the GGUF specification.
 */
#ifndef SLM_ENGINE_HF_HF_H
#define SLM_ENGINE_HF_HF_H

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"

/* Whether path is a directory. */
bool hf_is_folder(const char *path);

/* ST_OK if dir has a config.json, else ST_USAGE; the message says what the directory
 * seems to be, and for a Hub cache which folder in it is the model's. */
enum status hf_check_folder(const char *dir, struct err *err);

/* The model's name: the last part of the path, in a cache of the Hub the repository's
 * ("org--name" without the organisation). Points into dir. */
const char *hf_folder_name(const char *dir, size_t *len);

/* What is outside the folder and belongs to the model: calls fn, which may be NULL, for
 * each file that a link of the folder leads to, and in a cache of the Hub for its
 * folder of blobs; paths are absolute and without links. Error: ST_INPUT (a link to
 * another file, with a name that is read), and fn's. */
typedef enum status hf_path_fn(void *arg, const char *path, struct err *err);
enum status hf_links(const char *dir, hf_path_fn *fn, void *arg, struct err *err);

/* Errors: those of hf_check_folder() and hf_links(), ST_IO, ST_INPUT (a faulty file of
 * the folder), ST_UNSUPPORTED (an unknown model, type or tokenizer; the message lists
 * the known ones), ST_NO_MEMORY. A folder without tokenizer.json has no vocabulary. */
enum status hf_open(struct gguf **g, const char *dir, struct err *err);

#endif

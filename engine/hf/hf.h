/* SPDX-License-Identifier: MIT
 *
 * hf.h - a Hugging Face model folder opened as if it were a GGUF file
 *
 * config.json becomes hyperparameters, *.safetensors tensors, tokenizer.json (with
 * the small JSON files beside it, and chat_template.jinja) the vocabulary. The result
 * is an assembled gguf with the keys, names, shapes and orders that GGUF files of the
 * same model have, so nobody else needs to know where it came from: rows of Q and K
 * that are rotated as neighbouring pairs change places, experts are stacked, Gemma's
 * norms get their 1, one-dimensional tensors are F32.
 *
 * Everything in the folder is untrusted, as a GGUF file is.
 *
 * Threading: as gguf.h; rows may be read from several threads.
 * Source: the models' published config.json files and implementations in
 * huggingface/transformers; tensor names and keys of the GGUF specification.
 */
#ifndef SLM_ENGINE_HF_HF_H
#define SLM_ENGINE_HF_HF_H

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"

/* True if path is a directory. */
bool hf_is_folder(const char *path);

/* ST_OK where there is a config.json, or else ST_USAGE and what the directory may be
 * instead: of a Hub cache, where the model's folder lies in it. */
enum status hf_check_folder(const char *dir, struct err *err);

/* What its model is called: the last part of the path, in a cache of the Hub that of
 * the repository ("org--name" less the organisation). Points into dir. */
const char *hf_folder_name(const char *dir, size_t *len);

/* Errors: those of hf_check_folder(), ST_IO, ST_INPUT (a file of the folder; what is
 * wrong), ST_UNSUPPORTED (a model, a type or a tokenizer that is not known here; the
 * message lists those that are), ST_NO_MEMORY. A folder without tokenizer.json has no
 * vocabulary. */
enum status hf_open(struct gguf **g, const char *dir, struct err *err);

#endif

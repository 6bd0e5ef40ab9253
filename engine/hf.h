/* SPDX-License-Identifier: MIT
 *
 * hf.h - a Hugging Face model folder opened as if it were a GGUF file
 *
 * config.json becomes hyperparameters, *.safetensors tensors, tokenizer.json (with
 * tokenizer_config.json and generation_config.json) the vocabulary. The result is an
 * assembled gguf with the keys, names, shapes and orders that GGUF files of the same
 * model have, so nobody else needs to know where it came from: rows of Q and K that
 * are rotated as neighbouring pairs change places, experts are stacked, Gemma's norms
 * get their 1, one-dimensional tensors are F32.
 *
 * Everything in the folder is untrusted, as a GGUF file is.
 *
 * Threading: as gguf.h; rows may be read from several threads.
 * Source: the models' published config.json files and implementations in
 * huggingface/transformers; tensor names and keys of the GGUF specification.
 */
#ifndef SLM_ENGINE_HF_H
#define SLM_ENGINE_HF_H

#include "engine/gguf.h"
#include "engine/status.h"

/* True if path is a directory. */
bool hf_is_folder(const char *path);

/* Errors: ST_IO, ST_INPUT (a file of the folder; what is wrong), ST_UNSUPPORTED (a
 * model, a type or a tokenizer that is not known here; the message lists those that
 * are), ST_NO_MEMORY. A folder without tokenizer.json has no vocabulary. */
enum status hf_open(struct gguf **g, const char *dir, struct err *err);

#endif

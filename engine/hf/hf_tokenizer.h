/* SPDX-License-Identifier: MIT
 *
 * hf_tokenizer.h - a tokenizer.json while it is converted, for hf_*.c only
 */
#ifndef SLM_ENGINE_HF_HF_TOKENIZER_H
#define SLM_ENGINE_HF_HF_TOKENIZER_H

#include "engine/hf/hf_impl.h"

struct hf_token {
    const char *text; /* in the JSON; NULL: an id without a token */
    uint32_t type;    /* enum token_type */
    bool strips;      /* removes the blanks after it */
};

struct hf_vocab {
    struct jsonfile file;
    const json_t *model;
    struct hf_pretok pre;
    struct hf_token *tokens; /* [n] */
    size_t n, cap, n_strips;
    int64_t unknown; /* -1: none */
};

/* Put the tokens that begin and end a text, and the chat template, from tokenizer.json
 * and the JSON files beside it in dir (NULL: none). */
enum status hf_special_put(struct gguf_kvs *k, const struct hf_vocab *v,
                           const char *dir, struct err *err);

#endif

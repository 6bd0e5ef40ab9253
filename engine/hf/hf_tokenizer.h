/* SPDX-License-Identifier: MIT
 *
 * hf_tokenizer.h - a tokenizer.json on its way to a vocabulary, for hf_*.c only
 */
#ifndef SLM_ENGINE_HF_HF_TOKENIZER_H
#define SLM_ENGINE_HF_HF_TOKENIZER_H

#include "engine/hf/hf_impl.h"

struct hf_token {
    const char *text; /* in the JSON; NULL: a number without a token */
    uint32_t type;    /* enum token_type */
    bool strips;      /* swallows the blanks behind it */
};

struct hf_vocab {
    struct jsonfile file;
    const json_t *model;
    struct hf_pretok pre;
    struct hf_token *tokens; /* [n] */
    size_t n, cap, n_strips;
    int64_t unknown; /* -1: none */
};

/* Which tokens begin and end a text, and the chat template, from tokenizer.json and
 * its companions in dir (NULL: there are none). */
enum status hf_special_put(struct gguf_kvs *k, const struct hf_vocab *v,
                           const char *dir, struct err *err);

#endif

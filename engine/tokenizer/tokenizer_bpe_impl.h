/* SPDX-License-Identifier: MIT
 *
 * tokenizer_bpe_impl.h - a vocabulary with merges; for tokenizer_bpe*.c only
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_BPE_IMPL_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_BPE_IMPL_H

#include "engine/tokenizer/tokenizer_impl.h"
#include "engine/tokenizer/tokenizer_pre.h"

#define BPE_MAX_AFFIX 64 /* bytes */

/* Two tokens that join to one; the rank is the index in the list. */
struct merge {
    int32_t left, right; /* the key in bpe.ranks: no padding between the two */
    int32_t whole;       /* -1: text does not become this token */
};

struct bpe {
    bool whole_words; /* a piece that is a token becomes it without joins */
    struct merge *merges;
    struct strtab ranks; /* left and right of a merge -> its index */
    /* of vocabularies of bytes */
    struct pre_tokenizer *pre;
    char *bytes; /* of all tokens, one after another */
    size_t *at;  /* [n_vocab + 1] into bytes */
    /* of vocabularies of characters, whose texts t->pieces cuts */
    bool chars;
    struct gguf_str prefix, suffix; /* of characters behind the first, and of the last;
                                       into affixes */
    char affixes[2 * BPE_MAX_AFFIX];
    bool falls_to_bytes, fuses; /* see the keys */
};

#define MERGE_KEY_BYTES (2 * sizeof(int32_t))

/* tokenizer_bpe_load.c */
enum status bpe_load(struct tokenizer *t, const struct gguf *g, struct err *err);
void bpe_unload(struct tokenizer *t);

#endif

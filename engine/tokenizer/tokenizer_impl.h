/* SPDX-License-Identifier: MIT
 *
 * tokenizer_impl.h - a vocabulary in memory, and what an algorithm provides; for
 * tokenizer*.c only
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_IMPL_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_IMPL_H

#include "engine/base/strtab.h"
#include "engine/tokenizer/tokenizer.h"

/* tokenizer.ggml.token_type */
enum token_type {
    TOKEN_UNDEFINED = 0,
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER = 4, /* found in any text before the algorithm sees it */
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6, /* "<0x00>" to "<0xFF>" */
};

/* What a tokenizer.json says and the GGUF keys have no words for; our own keys. */
#define TOKENIZER_KEY_PATTERNS    "slmbench.tokenizer.pre_patterns"
#define TOKENIZER_KEY_WHOLE_WORDS "slmbench.tokenizer.whole_words"
#define TOKENIZER_KEY_MERGES      "slmbench.tokenizer.merges" /* "llama" */
#define TOKENIZER_KEY_SPACE_FIRST                       \
    "slmbench.tokenizer.space_first" /* in front of the \
       text, not behind a special token */
#define TOKENIZER_KEY_SPACE_ONCE                        \
    "slmbench.tokenizer.space_once" /* not where a text \
       begins with a blank */
#define TOKENIZER_KEY_STRIPS                         \
    "slmbench.tokenizer.strips" /* of each token: it \
       swallows the blanks behind it */

#define MAX_ENDS 16

struct tokenizer {
    const struct tokenizer_algo *algo;
    int32_t n_vocab;
    char *text;          /* all tokens, one after another */
    size_t *at;          /* [n_vocab + 1]: token i is text[at[i]] .. text[at[i + 1]] */
    unsigned char *type; /* [n_vocab], enum token_type */
    float *score;        /* [n_vocab]; zeros where the file has none */
    struct strtab ids;   /* what plain text may become -> id; the algorithm's */
    int32_t byte_id[256];

    int32_t bos, eos, unknown; /* -1: none */
    bool adds_bos, adds_eos, adds_space;
    bool space_first, space_once; /* see the keys */
    int32_t end[MAX_ENDS];
    int n_ends;

    /* Tokens found as they stand in a text, grouped by their first byte and
     * longest first: group b is special[special_at[b]] .. [special_at[b + 1]]. */
    int32_t *special;
    size_t special_at[257];
    bool *strips;    /* [n_vocab]: special tokens that swallow the blanks behind them in
                        the text; NULL: none does */
    struct bpe *bpe; /* tokenizer_bpe.c's own */
    struct strtab merges; /* tokenizer_spm.c: of a token and the bytes of its left part
                             -> rank; empty where scores decide */
    uint32_t (*merge_keys)[2]; /* what merges is keyed by */
};

/* Ids on their way out. */
struct id_list {
    int32_t *v;
    size_t n, cap;
};

enum status id_list_add(struct id_list *list, int32_t id, struct err *err);

/* What differs between kinds of vocabulary. */
struct tokenizer_algo {
    const char *name;                                  /* tokenizer.ggml.model */
    int32_t default_bos, default_eos, default_unknown; /* -1: none */
    bool needs_scores;
    bool spells_bytes;         /* "<0xHH>" is a byte where the file has no types */
    bool adds_bos, adds_space; /* unless the file says otherwise */

    /* After everything else has been loaded: fill ids and what else is needed. */
    enum status (*load)(struct tokenizer *t, const struct gguf *g, struct err *err);
    void (*unload)(struct tokenizer *t); /* also after a failed load; may be NULL */

    /* Append the ids of text[len], len >= 1, which stands at the beginning of the
     * text (first) or behind a special token. */
    enum status (*encode)(const struct tokenizer *t, const char *text, size_t len,
                          bool first, struct id_list *ids, struct err *err);

    /* As tokenizer_piece(), for tokens that are neither control, unknown nor
     * byte. */
    size_t (*piece)(const struct tokenizer *t, int32_t id, char *buf, size_t cap);
};

extern const struct tokenizer_algo tokenizer_spm, tokenizer_bpe;

/* tokenizer_vocab.c: fill everything but algo from the metadata; on failure t
 * holds what tokenizer_close() releases. */
enum status tokenizer_load_vocab(struct tokenizer *t, const struct gguf *g,
                                 struct err *err);

/* The ids of the bytes of text[len], for which there is no better token. */
enum status tokenizer_emit_bytes(const struct tokenizer *t, const char *text,
                                 size_t len, struct id_list *ids, struct err *err);

static inline const char *token_text(const struct tokenizer *t, int32_t id, size_t *len)
{
    *len = t->at[id + 1] - t->at[id];
    return t->text + t->at[id];
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * tokenizer_impl.h - a vocabulary in memory, and the interface of an algorithm; for
 * tokenizer*.c only
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_IMPL_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_IMPL_H

#include "engine/base/strtab.h"
#include "engine/tokenizer/tokenizer_norm.h"
#include "engine/tokenizer/tokenizer_pieces.h"
#include "engine/tokenizer/tokenizer.h"

/* tokenizer.ggml.token_type */
enum token_type {
    TOKEN_UNDEFINED = 0,
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER = 4,   /* recognised in any text before the algorithm runs */
    TOKEN_UNUSED = 5, /* no text, and no text becomes it: padding of the embedding */
    TOKEN_BYTE = 6,   /* "<0x00>" to "<0xFF>" */
};

/* Keys of this project for settings of a tokenizer.json that GGUF has no keys for. */
#define TOKENIZER_KEY_PATTERNS    "slmbench.tokenizer.pre_patterns"
#define TOKENIZER_KEY_WHOLE_WORDS "slmbench.tokenizer.whole_words"
#define TOKENIZER_KEY_MERGES      "slmbench.tokenizer.merges" /* "llama" */
#define TOKENIZER_KEY_SPACE_FIRST \
    "slmbench.tokenizer.space_first" /* before the text, not after a special token */
#define TOKENIZER_KEY_SPACE_ONCE \
    "slmbench.tokenizer.space_once" /* not before a text that begins with a blank */
#define TOKENIZER_KEY_CUTS "slmbench.tokenizer.cuts_at_blanks" /* "t5" */
#define TOKENIZER_KEY_STRIPS \
    "slmbench.tokenizer.strips" /* of older files: TOKEN_RSTRIP of each token */
#define TOKENIZER_KEY_FLAGS \
    "slmbench.tokenizer.token_flags" /* of each token, enum token_flag */
#define TOKENIZER_KEY_NORMALIZER \
    "slmbench.tokenizer.normalizer" /* JSON, see tokenizer_norm.h */
#define TOKENIZER_KEY_STEPS \
    "slmbench.tokenizer.pre_tokenizer" /* JSON, see tokenizer_pieces.h */
#define TOKENIZER_KEY_DECODER \
    "slmbench.tokenizer.decoder" /* JSON, see tokenizer_decode.c */
#define TOKENIZER_KEY_SCORES \
    "slmbench.tokenizer.scores" /* of unigram models, as doubles */
#define TOKENIZER_KEY_PAIRS \
    "slmbench.tokenizer.merge_ids" /* of the two tokens of each merge */
#define TOKENIZER_KEY_SUBWORD \
    "slmbench.tokenizer.subword_prefix" /* of tokens that go on in a word */
#define TOKENIZER_KEY_SUFFIX \
    "slmbench.tokenizer.word_suffix" /* of tokens that end a word */
#define TOKENIZER_KEY_MAX_CHARS \
    "slmbench.tokenizer.max_word_chars" /* longer words are unknown */
#define TOKENIZER_KEY_BYTES \
    "slmbench.tokenizer.byte_fallback" /* unknown characters are "<0xHH>" */
#define TOKENIZER_KEY_FUSES \
    "slmbench.tokenizer.fuse_unk" /* neighbours without a token are one unknown one */

/* Models of a tokenizer.json that no model of GGUF stands for. */
#define TOKENIZER_OWN       "slmbench-" /* their names begin with it */
#define TOKENIZER_BPE       "slmbench-bpe"
#define TOKENIZER_UNIGRAM   "slmbench-unigram"
#define TOKENIZER_WORDPIECE "slmbench-wordpiece"
#define TOKENIZER_WORDS     "slmbench-words"

/* How a token is found in a text by its spelling. */
enum token_flag {
    TOKEN_RSTRIP = 1,     /* it takes the blanks after it */
    TOKEN_LSTRIP = 2,     /* those before it */
    TOKEN_WORD = 4,       /* only where no letter or digit touches it */
    TOKEN_NORMALIZED = 8, /* in the text as the normaliser makes it */
};

#define MAX_SPECIAL_BYTES 1024 /* of a token that is looked for in texts */

struct tokenizer {
    const struct tokenizer_algo *algo;
    int32_t n_vocab;
    char *text;          /* all tokens, one after another */
    size_t *at;          /* [n_vocab + 1]: token i is text[at[i]] .. text[at[i + 1]] */
    unsigned char *type; /* [n_vocab], enum token_type */
    float *score;        /* [n_vocab]; zeros where the file has none */
    struct strtab ids; /* tokens that plain text may become -> id; for the algorithm */
    int32_t byte_id[256];

    size_t longest; /* bytes of the longest token as it is spelled, at least 1 */
    int32_t bos, eos, unknown; /* -1: none */
    bool adds_bos, adds_eos, adds_space;
    bool space_first, space_once; /* see the keys */
    bool *ends;                   /* [n_vocab]: it ends a text */

    /* Tokens recognised by their spelling, in the order of their bytes: those that
     * begin with byte b are special[special_at[b]] .. [special_at[b + 1]]. */
    int32_t *special;
    size_t special_at[257];
    unsigned char *flags; /* [n_vocab] enum token_flag; NULL: none */
    bool has_normalized;  /* a token has TOKEN_NORMALIZED, and there is a normaliser */
    struct normalizer *norm; /* NULL: texts stay as they are */
    struct pieces *pieces;   /* how texts are cut; NULL: as the algorithm does */
    char *decoded;         /* bytes of all tokens; NULL: as the algorithm spells them */
    size_t *decoded_at;    /* [n_vocab + 1] */
    char note[256];        /* tokenizer_note() */
    bool (*stopped)(void); /* tokenizer_stop_when(); or NULL */
    struct bpe *bpe;       /* of tokenizer_bpe.c */
    struct unigram *unigram; /* of tokenizer_unigram.c */
    struct words *words;     /* of tokenizer_word.c */
    struct strtab merges;    /* tokenizer_spm.c: a token and the bytes of its left part
                                -> rank; empty where scores decide */
    uint32_t (*merge_keys)[2]; /* the keys of merges */
    uint64_t *neighbours; /* tokenizer_spm.c: a bit for each two characters that stand
                             next to each other in a token, by their hash */
    int neighbour_bits;   /* of a hash */
};

/* The ids of a text so far. */
struct id_list {
    int32_t *v;
    size_t n, cap, most;   /* with more than most, encoding ends */
    bool is_full;          /* it has ended for that */
    uint64_t allowed_ns;   /* what is left of regex_allowance() */
    bool (*stopped)(void); /* the tokenizer's */
};

enum status id_list_add(struct id_list *list, int32_t id, struct err *err);

/* Before a part of a text is encoded that has at least that many tokens. Where they are
 * too many the list is full; that, and ST_INTERRUPTED, end encoding without a message.
 */
enum status id_list_check(struct id_list *list, size_t n_more);

/* An algorithm and its defaults. */
struct tokenizer_algo {
    const char *name;                                  /* tokenizer.ggml.model */
    int32_t default_bos, default_eos, default_unknown; /* -1: none */
    bool needs_scores;
    bool spells_bytes;                   /* "<0xHH>" is a byte in files without types */
    bool adds_bos, adds_eos, adds_space; /* defaults of the file's keys */

    /* Called when all else is loaded: fill ids and the algorithm's own members. */
    enum status (*load)(struct tokenizer *t, const struct gguf *g, struct err *err);
    void (*unload)(struct tokenizer *t); /* also after a failed load; may be NULL */

    /* Append the ids of text[len], len >= 1, which begins the text (first) or follows a
     * special token. */
    enum status (*encode)(const struct tokenizer *t, const char *text, size_t len,
                          bool first, struct id_list *ids, struct err *err);

    /* As tokenizer_piece(), for tokens other than control, unknown and byte tokens. */
    size_t (*piece)(const struct tokenizer *t, int32_t id, char *buf, size_t cap);
};

extern const struct tokenizer_algo tokenizer_spm, tokenizer_spm_merges, tokenizer_bpe,
    tokenizer_unigram, tokenizer_word_piece, tokenizer_word_level;

/* tokenizer_decode.c: make the bytes of all tokens by a decoder, JSON. Errors:
 * ST_INPUT, ST_UNSUPPORTED (a step), ST_NO_MEMORY. */
enum status tokenizer_load_decoder(struct tokenizer *t, const char *json, size_t len,
                                   const char *path, struct err *err);
size_t tokenizer_decoded_piece(const struct tokenizer *t, int32_t id, char *buf,
                               size_t cap);

/* tokenizer_spm.c: text[len] with U+2581 for blanks, and one before it where the
 * vocabulary has adds_space; *out is malloc'ed. */
enum status tokenizer_escape(const struct tokenizer *t, const char *text, size_t len,
                             bool first, char **out, size_t *n_out, struct err *err);

/* As tokenizer_piece(), with blanks for U+2581. */
size_t tokenizer_blank_piece(const struct tokenizer *t, int32_t id, char *buf,
                             size_t cap);

/* tokenizer_vocab.c: fill all members but algo from the metadata; on failure
 * tokenizer_close() releases t. */
enum status tokenizer_load_vocab(struct tokenizer *t, const struct gguf *g,
                                 struct err *err);

/* tokenizer_markers.c: whether the token of that text ends turns of chats. */
bool tokenizer_ends_turns(const char *text, size_t len);

/* Type markers of chats as control tokens where the file has them as text; t->note
 * names them. Time: linear in the vocabulary and the template. */
enum status tokenizer_type_markers(struct tokenizer *t, const struct gguf *g,
                                   struct err *err);

/* Append the byte tokens of text[len], which has no other token. */
enum status tokenizer_emit_bytes(const struct tokenizer *t, const char *text,
                                 size_t len, struct id_list *ids, struct err *err);

/* The least number of tokens that have that many bytes, if each byte is part of one. */
static inline size_t tokenizer_min_tokens(const struct tokenizer *t, size_t bytes)
{
    return (bytes + t->longest - 1) / t->longest;
}

static inline const char *token_text(const struct tokenizer *t, int32_t id, size_t *len)
{
    *len = t->at[id + 1] - t->at[id];
    return t->text + t->at[id];
}

#endif

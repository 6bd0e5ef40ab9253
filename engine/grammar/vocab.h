/* SPDX-License-Identifier: MIT
 *
 * vocab.h - the tokens of a vocabulary as a tree of their bytes; for engine/grammar
 *
 * The tree's nodes are in depth-first order, so that the nodes below one follow it: a
 * walk goes forward through one array, and leaves out what lies below a node by jumping
 * to its end.
 *
 * Threading: the tree is immutable; machines are under the mutex.
 */
#ifndef SLM_ENGINE_GRAMMAR_VOCAB_H
#define SLM_ENGINE_GRAMMAR_VOCAB_H

#include <pthread.h>

#include "engine/grammar/grammar.h"

#define TOKEN_MAX_BYTES 192 /* longer ones are never allowed */
#define MAX_END_TOKENS  64

struct trie_node {
    uint32_t end;   /* the first node that is not below this one */
    uint32_t token; /* the first of n_tokens in tokens[] whose bytes end here */
    uint8_t n_tokens;
    uint8_t byte;
    uint8_t depth;   /* bytes before this one */
    uint8_t longest; /* bytes of the longest token that begins with these */
};

struct machine;

struct grammar_vocab {
    int n_vocab;
    bool adds_space;
    struct trie_node *nodes; /* [n_nodes] without a root */
    uint32_t n_nodes;
    int32_t *tokens; /* [n_tokens] in the order of their bytes; among equals first those
                        that the tokenizer writes */
    uint32_t n_tokens;
    int32_t *by_length;                     /* [n_tokens] the longest first */
    uint32_t n_longer[TOKEN_MAX_BYTES + 2]; /* tokens of more bytes than that */
    char *text;                             /* bytes of all tokens */
    uint32_t *at; /* [n_vocab + 1] token i is text[at[i]] .. text[at[i + 1]]; empty for
                     tokens that are no text. A control token is as call_form.h has
                     it */
    int32_t end[MAX_END_TOKENS];
    int n_ends;
    uint32_t max_bytes;    /* of a token */
    uint32_t max_brackets; /* opening ones in a token */
    bool has_byte[256];    /* some token is just that byte */

    pthread_mutex_t lock;
    int n_refs;               /* the owner's, and one for each state */
    struct machine *machines; /* the last used first */
};

void grammar_vocab_ref(struct grammar_vocab *v);

#endif

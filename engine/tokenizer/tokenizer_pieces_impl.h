/* SPDX-License-Identifier: MIT
 *
 * tokenizer_pieces_impl.h - the steps; for tokenizer_pieces*.c only
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_PIECES_IMPL_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_PIECES_IMPL_H

#include "engine/tokenizer/tokenizer_pieces.h"
#include "engine/tokenizer/tokenizer_regex.h"

#define PIECES_MAX_STEPS 34
#define PIECES_MAX_TEXT  256 /* bytes of a text that is looked for or put in */

enum piece_kind {
    PIECE_CUT_REGEX,
    PIECE_CUT_TEXT,
    PIECE_CUT_CLASS, /* each character of a class is a match */
    PIECE_CUT_SCRIPT,
    PIECE_CUT_LENGTH,
    PIECE_REPLACE, /* blanks by `text` */
    PIECE_PREFIX,  /* text before pieces that do not begin with it */
    PIECE_BYTES,   /* to GPT-2's characters */
};

/* What becomes of matches and of the text between them. */
enum piece_behavior {
    PIECE_REMOVED, /* the matches */
    PIECE_ISOLATED,
    PIECE_WITH_PREVIOUS,
    PIECE_WITH_NEXT,
    PIECE_CONTIGUOUS,
};

struct piece_step {
    enum piece_kind kind;
    enum piece_behavior behavior;
    bool invert;         /* matches are what lies between them */
    bool first_only;     /* PREFIX: the text's first piece only */
    struct regex *regex; /* owned */
    bool (*class)(uint32_t c);
    char text[PIECES_MAX_TEXT];
    size_t n;      /* bytes of text */
    size_t length; /* CUT_LENGTH: characters */
};

struct pieces {
    struct piece_step steps[PIECES_MAX_STEPS];
    int n_steps;
    bool foreign; /* a pattern is the file's */
};

#endif

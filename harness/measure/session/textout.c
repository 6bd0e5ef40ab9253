/* SPDX-License-Identifier: MIT
 *
 * textout.c - tokens to standard output one by one, in whole characters
 */
#include "harness/measure/session/textout.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/utf8.h"

enum status textout_open(struct textout *t, const struct tokenizer *tok,
                         struct err *err)
{
    *t = (struct textout){.tok = tok, .piece_cap = 1};
    for (int32_t id = 0; id < tokenizer_n_vocab(tok); id++) {
        const size_t n = tokenizer_piece(tok, id, NULL, 0);

        t->piece_cap = n > t->piece_cap ? n : t->piece_cap;
    }
    t->piece = malloc(t->piece_cap);
    t->out = malloc(t->piece_cap + 4);
    if (isatty(STDOUT_FILENO))
        t->shown = malloc(4 * (t->piece_cap + 4));
    if (t->piece && t->out && (t->shown || !isatty(STDOUT_FILENO)))
        return ST_OK;
    textout_close(t);
    return err_set(err, ST_NO_MEMORY, "no memory for a token of %zu bytes",
                   t->piece_cap);
}

void textout_close(struct textout *t)
{
    free(t->piece);
    free(t->out);
    free(t->shown);
    t->piece = t->out = t->shown = NULL;
}

void textout_begin(struct textout *t, bool drops_space)
{
    t->utf8 = (struct utf8_stream){.n_pending = 0};
    t->drops_space = drops_space;
    t->last = '\0';
}

static enum status print_bytes(struct textout *t, const char *bytes, size_t n,
                               struct err *err)
{
    if (n == 0)
        return ST_OK;
    t->last = bytes[n - 1];
    if (t->shown) {
        n = utf8_terminal(t->shown, bytes, n);
        bytes = t->shown;
    }
    if (fwrite(bytes, 1, n, stdout) != n || fflush(stdout))
        return err_set_errno(err, ST_IO, "cannot write the text");
    return ST_OK;
}

enum status textout_token(struct textout *t, int32_t id, struct err *err)
{
    size_t n = tokenizer_piece(t->tok, id, t->piece, t->piece_cap), skip = 0;

    if (n == 0)
        return ST_OK;
    if (t->drops_space && t->piece[0] == ' ')
        skip = 1;
    t->drops_space = false;
    n = utf8_stream_push(&t->utf8, t->piece + skip, n - skip, t->out);
    return print_bytes(t, t->out, n, err);
}

enum status textout_end(struct textout *t, struct err *err)
{
    char rest[4];
    const size_t n = utf8_stream_flush(&t->utf8, rest);
    const enum status st = print_bytes(t, rest, n, err);

    return st || t->last == '\n' ? st : print_bytes(t, "\n", 1, err);
}

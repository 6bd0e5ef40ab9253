/* SPDX-License-Identifier: MIT
 *
 * textmodel.c - a model with its vocabulary, for commands that make text
 */
#include "harness/measure/session/textmodel.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/utf8.h"
#include "harness/base/format.h"

static enum status look_into(struct textmodel *t, const struct gguf *g, bool may_embed,
                             const char *chat_template, struct err *err)
{
    struct slm_params smallest = slm_params_default();
    enum status st = ST_OK;

    smallest.n_ctx = 1;
    if (tokenizer_open(&t->tok, g, err) || slm_plan(&t->planned, g, &smallest, err) ||
        (!may_embed && slm_check_predicts(&t->planned, err)))
        st = err->code;
    if (!st && tokenizer_n_vocab(t->tok) > t->planned.n_vocab)
        st = err_set(err, ST_INPUT,
                     "%s: the tokenizer has %d tokens, and the model knows %d of them",
                     gguf_path(g), (int)tokenizer_n_vocab(t->tok), t->planned.n_vocab);
    if (!st && *tokenizer_note(t->tok))
        fprintf(stderr,
                "bench: %s types %s as text; they are markers here, as its chat "
                "template or their names show\n",
                gguf_path(g), tokenizer_note(t->tok));
    if (!st)
        chat_template_open(&t->chat, g, t->tok, chat_template, &t->why_no_chat);
    return st;
}

/* Keys further apart than in training are worth nothing. */
static enum status check_window(const struct textmodel *t, int window, struct err *err)
{
    const int most = t->planned.n_ctx_train - SLM_DEFAULT_SINKS;

    return window <= most
               ? ST_OK
               : err_set(err, ST_USAGE,
                         "--kv-window %d: %s was made for contexts of %d positions; "
                         "with the first %d at most %d can be the last ones",
                         window, t->ref.text, t->planned.n_ctx_train, SLM_DEFAULT_SINKS,
                         most > 0 ? most : 0);
}

enum status textmodel_look(struct textmodel *t, const struct session_params *params,
                           const char *chat_template, struct err *err)
{
    struct gguf *g = NULL;
    enum status st = ST_OK;

    *t = (struct textmodel){.m = NULL};
    if (session_model(&t->ref, params, err) || modelref_open(&t->ref, &g, err) ||
        look_into(t, g, params->serves, chat_template, err) ||
        (params->setup.kv_window && check_window(t, params->setup.kv_window, err)))
        st = err->code;
    gguf_close(g);
    return st;
}

static void print_reclaimed(void *arg, const struct memory_relief *r)
{
    const struct slm_info *info = slm_info(r->m);

    (void)arg;
    fprintf(stderr,
            "bench: memory is lacking, so %s of weights were given back; about %s are "
            "read from disk for every token from now on\n",
            bytes_text(r->bytes).text, bytes_text(info->streamed_bytes).text);
}

enum status textmodel_open(struct textmodel *t, const struct session_params *params,
                           struct err *err)
{
    struct session_params decoding = *params;

    decoding.decodes = true;
    decoding.setup.model = t->ref;
    const enum status st = session_open(&t->m, &decoding, &t->n_threads, err);

    t->relief.tell = print_reclaimed;
    if (!st)
        memory_relief_begin(&t->relief, t->m);
    return st;
}

void textmodel_close(struct textmodel *t)
{
    memory_relief_end(&t->relief);
    slm_close(t->m);
    chat_template_close(t->chat);
    tokenizer_close(t->tok);
    t->m = NULL;
    t->tok = NULL;
    t->chat = NULL;
}

/* ---- tokens on standard output --------------------------------------------------- */

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

/* SPDX-License-Identifier: MIT
 *
 * completion_token.c - what a token means: text, an end, tokens that it forces
 */
#include <assert.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/text/chat.h"
#include "harness/serve/scheduler/scheduler_impl.h"

/* Tokens that a grammar forces at once. */
enum { MAX_FORCED = 64 };

enum status completion_reserve(struct completion *c, int cap, struct err *err)
{
    int32_t *more;

    if (cap <= c->cap)
        return ST_OK;
    cap += cap / 2 + 64;
    more = realloc(c->tokens, (size_t)cap * sizeof *c->tokens);
    if (!more)
        return err_set(err, ST_NO_MEMORY, "no memory for a text of %d tokens", cap);
    c->tokens = more;
    c->cap = cap;
    return ST_OK;
}

static enum status append(struct completion *c, int32_t id, struct err *err)
{
    if (completion_reserve(c, c->n + 1, err))
        return err->code;
    c->tokens[c->n++] = id;
    sampler_accept(c->sampler, id);
    return completion_count(c, id, err);
}

int completion_left(const struct completion *c)
{
    return c->n_max - (c->n - c->n_prompt);
}

static bool is_end(const struct completion *c, int32_t id)
{
    if (c->ignore_end && !c->state)
        return false;
    return tokenizer_is_end(c->tok, id) ||
           (c->chat && chat_is_end(c->chat, c->tok, id));
}

/* Append the tokens that must come next. They are sent with the next token that is
 * drawn, or at once (completion_step()). One that would end a chat's answer is left to
 * be written in pieces. */
static enum status append_forced(struct completion *c, struct err *err)
{
    int32_t ids[MAX_FORCED];
    enum status st = ST_OK;
    int n = 0;

    if (!c->state || completion_left(c) <= 0)
        return ST_OK;
    n = grammar_state_forced(c->state, ids,
                             completion_left(c) < MAX_FORCED ? completion_left(c)
                                                             : MAX_FORCED);
    for (int i = 0; !st && i < n; i++) {
        if (is_end(c, ids[i])) {
            n = i;
            break;
        }
        if (!grammar_state_accept(c->state, ids[i]))
            return err_set(err, ST_CHECK, "the grammar forces a token and refuses it");
        st = append(c, ids[i], err);
    }
    pthread_mutex_lock(&c->mu);
    c->usage.n_forced += n;
    pthread_mutex_unlock(&c->mu);
    return st;
}

enum status completion_begin(struct completion *c, int n_vocab, bool guesses,
                             struct err *err)
{
    enum status st;

    if (c->sampler)
        return ST_OK;
    st = sampler_open(&c->sampler, &c->sampling, n_vocab, err);
    if (!st && guesses)
        st = sampler_open(&c->draft_sampler, &c->sampling, n_vocab, err);
    if (st)
        return st;
    for (int i = 0; i < c->n_prompt; i++)
        sampler_accept(c->sampler, c->tokens[i]);
    return append_forced(c, err);
}

/* The text of a token into c->text.out. */
static enum status add_text(struct completion *c, int32_t id, struct err *err)
{
    size_t n = tokenizer_piece(c->tok, id, c->bytes, c->cap_bytes), skip = 0;

    assert(n <= c->cap_bytes);
    if (n && c->drops_blank) {
        skip = c->bytes[0] == ' ';
        c->drops_blank = false;
    }
    return completion_text_add(&c->text, c->bytes + skip, n - skip, err);
}

/* The token at c->n_sent goes to the reader; piece has its log-probabilities. */
static enum status send_token(struct completion *c, struct completion_piece *piece,
                              struct err *err)
{
    const int32_t id = c->tokens[c->n_sent];
    const bool ends = is_end(c, id), is_last = c->n_sent + 1 == c->n;
    enum completion_end end = COMPLETION_RUNS;
    enum status st;

    piece->begins = c->text.n_chars;
    st = ends ? completion_text_add(&c->text, "", 0, err) : add_text(c, id, err);
    if (st)
        return st;
    if (ends || c->text.stopped ||
        (is_last && c->state && grammar_state_ended(c->state)))
        end = COMPLETION_STOP;
    else if (c->n_sent + 1 - c->n_prompt == c->n_max)
        end = COMPLETION_LENGTH;
    if (end) {
        completion_text_end(&c->text);
        if (c->text.stopped)
            end = COMPLETION_STOP;
    }
    c->n_sent++;
    piece->token = id;
    piece->text = c->text.out;
    piece->len = c->text.n_out;
    st = completion_send(c, piece, err);
    if (!st && end)
        completion_finish(c, end, NULL);
    return st;
}

/* Tokens behind n_sent that are not the last one drawn were forced. */
static enum status send_all(struct completion *c, int drawn,
                            struct completion_piece *piece, struct err *err)
{
    enum status st = ST_OK;

    while (!st && !c->ending && c->n_sent < c->n) {
        struct completion_piece forced = {.n_top = 0};

        st = send_token(c, c->n_sent == drawn ? piece : &forced, err);
    }
    return st;
}

static enum status draw(struct completion *c, const float *logits, int n_vocab,
                        float *scratch, struct err *err)
{
    const int drawn = c->n;
    struct completion_piece piece;
    enum status st;
    int32_t id;

    /* Forced from the beginning, and now computed. */
    st = send_all(c, -1, NULL, err);
    if (st || c->ending)
        return st;
    if (!completion_choose(c, logits, n_vocab, scratch, &id, &piece))
        return err_set(err, ST_CHECK,
                       "the model's logits have no token that the grammar allows");
    st = append(c, id, err);
    if (!st && c->state && !is_end(c, id)) {
        if (!grammar_state_accept(c->state, id))
            return err_set(err, ST_CHECK, "the grammar allows a token and refuses it");
        st = append_forced(c, err);
    }
    return st ? st : send_all(c, drawn, &piece, err);
}

void completion_step(struct completion *c, const float *logits, int n_vocab,
                     float *scratch)
{
    struct err err = ERR_INIT;

    if (!c->first_ns) {
        c->first_ns = clock_ns();
        pthread_mutex_lock(&c->mu);
        c->usage.prefill_s = scheduler_seconds(c->admitted_ns, c->first_ns);
        pthread_mutex_unlock(&c->mu);
    }
    if (draw(c, logits, n_vocab, scratch, &err))
        completion_finish(c, COMPLETION_FAILED, &err);
}

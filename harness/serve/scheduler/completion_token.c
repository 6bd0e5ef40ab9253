/* SPDX-License-Identifier: MIT
 *
 * completion_token.c - what a token means: text, an end, tokens that it forces
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
    size_t n;
    const char *text = tokenizer_text(c->tok, id, &n);

    if ((c->ignore_end && !c->state) ||
        completion_thinking_knows(&c->thinking, text, n))
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

enum status completion_begin(struct completion *c, int n_vocab, int n_guessed,
                             struct err *err)
{
    enum status st;

    if (c->sampler)
        return ST_OK;
    st = sampler_open(&c->sampler, &c->sampling, n_vocab, err);
    if (!st && n_guessed)
        st = sampler_open(&c->draft_sampler, &c->sampling, n_guessed, err);
    if (st)
        return st;
    for (int i = 0; i < c->n_prompt; i++)
        sampler_accept(c->sampler, c->tokens[i]);
    return append_forced(c, err);
}

/* Bytes of the answer as text, or as calls. */
static enum status add_answer(struct completion *c, const char *bytes, size_t n,
                              bool is_last, struct err *err)
{
    struct call_reader *r = &c->reader;
    enum status st = ST_OK;

    if (!c->calls)
        return completion_text_add(&c->text, bytes, n, err);
    st = call_reader_add(r, bytes, n, err);
    if (!st && is_last)
        st = call_reader_end(r, err);
    return st ? st : completion_text_add(&c->text, r->text.s, r->text.n, err);
}

/* A control token has no text, and may be part of a call's markers. */
static size_t spell_control(const struct completion *c, int32_t id)
{
    size_t n;
    const char *text = tokenizer_text(c->tok, id, &n);

    if (!c->calls || !tokenizer_is_special(c->tok, id) || n + 2 > c->cap_bytes)
        return 0;
    c->bytes[0] = c->bytes[n + 1] = CALL_CONTROL;
    memcpy(c->bytes + 1, text, n);
    return n + 2;
}

/* A token's bytes as thoughts or text. A control token has no bytes, and may be a
 * marker's; after the last token nothing is held back. */
static enum status add_split(struct completion *c, int32_t id, const char *bytes,
                             size_t n, bool is_last, struct err *err)
{
    struct thinking_bytes b = {.thought = c->split,
                               .answer = c->split + c->cap_bytes + THINKING_MAX_HELD};
    const bool runs = c->thinking.state == THINKING_RUNS;
    enum status st;
    size_t n_spelled;
    const char *spelled = tokenizer_text(c->tok, id, &n_spelled);

    if (n == 0 && !c->calls && n_spelled <= c->cap_bytes &&
        completion_thinking_knows(&c->thinking, spelled, n_spelled))
        completion_thinking_add(&c->thinking, spelled, n_spelled, true, &b);
    else
        completion_thinking_add(&c->thinking, bytes, n, n && *bytes == CALL_CONTROL,
                                &b);
    c->n_thought += runs && c->thinking.state == THINKING_RUNS;
    if (is_last)
        completion_thinking_end(&c->thinking, &b);
    st = completion_text_add(&c->thought, b.thought, b.n_thought, err);
    return st ? st : add_answer(c, b.answer, b.n_answer, is_last, err);
}

/* The text of a token into c->text.out, or c->thought.out. An end has none. */
static enum status add_text(struct completion *c, int32_t id, bool ends, bool is_last,
                            struct err *err)
{
    size_t n = ends ? 0 : tokenizer_piece(c->tok, id, c->bytes, c->cap_bytes), skip = 0;

    if (!n && !ends)
        n = spell_control(c, id);
    assert(n <= c->cap_bytes);
    if (n && c->drops_blank) {
        skip = c->bytes[0] == ' ';
        c->drops_blank = false;
    }
    if (c->split)
        return add_split(c, id, c->bytes + skip, n - skip, is_last, err);
    return add_answer(c, c->bytes + skip, n - skip, is_last, err);
}

/* How the text ends with the token at c->n_sent. An end token may be what is left where
 * a grammar's text cannot continue: then the text is cut. */
static enum completion_end end_with(const struct completion *c, bool ends, bool is_full)
{
    const bool is_last = c->n_sent + 1 == c->n;

    if (c->text.stopped || (is_last && c->state && grammar_state_ended(c->state)))
        return COMPLETION_STOP;
    if (ends)
        return !c->state || grammar_state_complete(c->state) ? COMPLETION_STOP
                                                             : COMPLETION_LENGTH;
    return is_full ? COMPLETION_LENGTH : COMPLETION_RUNS;
}

/* The token at c->n_sent goes to the reader; piece has its log-probabilities. */
static enum status send_token(struct completion *c, struct completion_piece *piece,
                              struct err *err)
{
    const int32_t id = c->tokens[c->n_sent];
    const bool ends = is_end(c, id);
    const bool is_full = c->n_sent + 1 - c->n_prompt == c->n_max;
    enum completion_end end;
    enum status st;

    piece->begins = c->text.n_chars;
    st = add_text(c, id, ends, ends || is_full, err);
    if (st)
        return st;
    end = end_with(c, ends, is_full);
    if (end) {
        completion_text_end(&c->text);
        completion_text_end(&c->thought);
        if (c->text.stopped)
            end = COMPLETION_STOP;
    }
    c->n_sent++;
    piece->token = id;
    piece->text = c->text.out;
    piece->len = c->text.n_out;
    piece->thought = c->thought.out;
    piece->n_thought = c->thought.n_out;
    piece->call = c->reader.calls.s;
    piece->n_call = c->calls ? c->reader.calls.n : 0;
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

/* Thoughts that have had their tokens end with the marker, as if it had been drawn. */
static enum status close_thoughts(struct completion *c, struct err *err)
{
    enum status st = ST_OK;
    int n = 0;

    if (c->ending || !c->closing || c->thinking.state != THINKING_RUNS ||
        c->n_thought < c->max_thought)
        return ST_OK;
    for (; !st && n < c->n_closing && completion_left(c) > 0; n++) {
        if (c->state && !grammar_state_accept(c->state, c->closing[n]))
            return err_set(err, ST_CHECK, "the grammar refuses the end of thoughts");
        st = append(c, c->closing[n], err);
    }
    c->n_closing = 0;
    pthread_mutex_lock(&c->mu);
    c->usage.n_forced += n;
    pthread_mutex_unlock(&c->mu);
    return st ? st : send_all(c, -1, NULL, err);
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
    if (!st)
        st = send_all(c, drawn, &piece, err);
    return st ? st : close_thoughts(c, err);
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

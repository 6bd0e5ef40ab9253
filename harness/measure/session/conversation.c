/* SPDX-License-Identifier: MIT
 *
 * conversation.c - questions and answers with a model that remembers them
 *
 * The context holds the tokens of the last prompt and of its answer as they were
 * evaluated. An answer that was stopped has a last token that was printed, but not
 * evaluated: it is pending, and goes in front of the next question.
 *
 * Where the KV cache has a window, the context has no end: nothing is dropped from the
 * messages, and of the tokens the last ones are kept.
 */
#include "harness/measure/session/conversation.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "engine/base/clock.h"
#include "harness/base/array.h"
#include "harness/base/interrupt.h"

struct conversation {
    struct textmodel *model;
    struct conversation_params params;
    struct sampler *sampler;
    struct speculator *speculator; /* NULL: decoding is plain */
    struct textout out;

    struct chat_message *messages; /* texts malloc'ed, but for the system's */
    size_t n, cap;
    char *done; /* [n_done] the text that the context holds; NULL: nothing is known */
    size_t n_done;
    int32_t *context; /* [2 * n_ctx] tokens of the sequence from position n_gone on */
    size_t n_gone;    /* 0 unless the context has no end */
    int32_t pending;  /* or -1 */
    int32_t *answer;  /* [cap_answer] */
    size_t n_answer, cap_answer;
    struct conversation_stats stats;
    struct speculate_stats speculated; /* before the last question */
    uint64_t question_ns;              /* when the last question came */
};

enum status conversation_open(struct conversation **c, struct textmodel *model,
                              const struct conversation_params *params, struct err *err)
{
    const size_t n_ctx = (size_t)slm_info(model->m)->n_ctx;
    struct conversation *new = calloc(1, sizeof *new);
    enum status st = ST_OK;

    if (new) {
        new->model = model;
        new->params = *params;
        new->pending = -1;
        new->cap = 16;
        new->messages = calloc(new->cap, sizeof *new->messages);
        new->context = calloc(2 * n_ctx, sizeof *new->context);
        new->cap_answer = n_ctx + 1;
        new->answer = calloc(new->cap_answer, sizeof *new->answer);
    }
    if (!new || !new->messages || !new->context || !new->answer)
        st = err_set(err, ST_NO_MEMORY, "no memory for a conversation");
    if (!st)
        st = sampler_open(&new->sampler, &params->sampling,
                          tokenizer_n_vocab(model->tok), err);
    if (!st)
        st = textout_open(&new->out, model->tok, err);
    if (!st && params->drafts)
        st = speculate_open(
            &new->speculator, model->m, new->sampler, model->tok,
            &(struct speculate_params){.mtp = params->drafts == DRAFTS_MTP,
                                       .sampling = &params->sampling},
            err);
    if (st) {
        conversation_close(new);
        return st;
    }
    if (params->system)
        new->messages[new->n++] = (struct chat_message){CHAT_SYSTEM, params->system};
    *c = new;
    return ST_OK;
}

static bool is_endless(const struct conversation *c)
{
    return slm_info(c->model->m)->kv_window > 0;
}

/* What the context holds is no longer the conversation's beginning for sure. */
static void forget_context(struct conversation *c)
{
    free(c->done);
    c->done = NULL;
    c->n_done = 0;
    c->pending = -1;
}

/* Cut the sequence back to n_past. Where the beginning is forgotten that may be
 * impossible: then the sequence is empty, and the conversation is to be read again. */
static void cut_back(struct conversation *c, int n_past)
{
    struct slm *m = c->model->m;

    if (n_past < slm_min_past(m)) {
        n_past = 0;
        forget_context(c);
    }
    slm_truncate(m, n_past);
    if (n_past == 0)
        c->n_gone = 0;
}

/* Tokens ids[n] are at position pos and following; n is at most n_ctx. */
static void remember(struct conversation *c, size_t pos, const int32_t *ids, size_t n)
{
    const size_t n_ctx = (size_t)slm_info(c->model->m)->n_ctx;
    size_t at = pos - c->n_gone;

    if (at + n > 2 * n_ctx) {
        memmove(c->context, c->context + at - n_ctx, n_ctx * sizeof *c->context);
        c->n_gone = pos - n_ctx;
        at = n_ctx;
    }
    memcpy(c->context + at, ids, n * sizeof *ids);
}

static size_t n_kept(const struct conversation *c)
{
    return c->params.system != NULL;
}

/* Forget messages[from .. to). */
static void forget(struct conversation *c, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        free((char *)c->messages[i].text);
    memmove(c->messages + from, c->messages + to, (c->n - to) * sizeof *c->messages);
    c->n -= to - from;
}

void conversation_close(struct conversation *c)
{
    if (!c)
        return;
    if (c->messages)
        forget(c, n_kept(c) < c->n ? n_kept(c) : c->n, c->n);
    free(c->messages);
    free(c->done);
    free(c->context);
    free(c->answer);
    textout_close(&c->out);
    speculate_close(c->speculator);
    sampler_close(c->sampler);
    free(c);
}

void conversation_reset(struct conversation *c)
{
    forget(c, n_kept(c), c->n);
    cut_back(c, 0);
    forget_context(c);
}

void conversation_read_stats(const struct conversation *c,
                             struct conversation_stats *out)
{
    *out = c->stats;
    out->n_past = slm_n_past(c->model->m);
    out->n_ctx = slm_info(c->model->m)->n_ctx;
    out->n_seen = is_endless(c) ? slm_info(c->model->m)->n_sinks +
                                      slm_info(c->model->m)->kv_window
                                : 0;
    out->n_messages = (int)c->n;
    out->speculates = c->speculator != NULL;
    if (!c->speculator)
        return;
    speculate_read_stats(c->speculator, &out->all_speculation);
    out->speculation = (struct speculate_stats){
        .n_passes = out->all_speculation.n_passes - c->speculated.n_passes,
        .n_tokens = out->all_speculation.n_tokens - c->speculated.n_tokens,
        .n_drafted = out->all_speculation.n_drafted - c->speculated.n_drafted,
        .n_accepted = out->all_speculation.n_accepted - c->speculated.n_accepted};
}

/* text becomes the conversation's. */
static enum status add_message(struct conversation *c, enum chat_role role, char *text,
                               struct err *err)
{
    struct chat_message *more = array_grow(c->messages, c->n, &c->cap, sizeof *more);

    if (more)
        c->messages = more;
    if (!more || !text) {
        free(text);
        return err_set(err, ST_NO_MEMORY, "no memory for a message");
    }
    c->messages[c->n++] = (struct chat_message){role, text};
    return ST_OK;
}

/* ---- the question ---------------------------------------------------------------- */

/* A prompt, and those of its tokens that are to be evaluated behind the first *n_past
 * of the context. */
struct reading {
    struct jinja_text prompt;
    int32_t *ids;
    size_t n;
    int n_past;
};

static void reading_free(struct reading *r)
{
    jinja_text_free(&r->prompt);
    free(r->ids);
    *r = (struct reading){.ids = NULL};
}

static enum status render(const struct conversation *c, const struct chat_message *m,
                          size_t n, struct jinja_text *prompt, struct err *err)
{
    json_t *conversation = chat_conversation(m, n);
    enum status st;

    if (!conversation)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu messages", n);
    st = chat_render(c->params.chat, conversation, prompt, err);
    json_decref(conversation);
    return st;
}

/* All tokens after those that the context already holds, and can be cut back to. */
static enum status read_again(struct conversation *c, struct reading *r,
                              struct err *err)
{
    const size_t n_past = (size_t)slm_n_past(c->model->m);
    size_t same = 0;

    if (chat_tokens(c->params.chat, c->model->tok, &r->prompt, 0, TOKENIZER_ANY,
                    &r->ids, &r->n, err))
        return err->code;
    while (!c->n_gone && same < n_past && same + 1 < r->n &&
           r->ids[same] == c->context[same])
        same++;
    if (same < (size_t)slm_min_past(c->model->m))
        same = 0;
    r->n -= same;
    memmove(r->ids, r->ids + same, r->n * sizeof *r->ids);
    r->n_past = (int)same;
    return ST_OK;
}

/* The tokens of the text behind the one that the context holds. */
static enum status read_rest(struct conversation *c, struct reading *r, struct err *err)
{
    enum status st = chat_tokens(c->params.chat, c->model->tok, &r->prompt, c->n_done,
                                 TOKENIZER_ANY, &r->ids, &r->n, err);
    int32_t *more;

    r->n_past = slm_n_past(c->model->m);
    if (st || c->pending < 0)
        return st;
    more = realloc(r->ids, (r->n + 1) * sizeof *more);
    if (!more)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu tokens", r->n + 1);
    memmove(more + 1, more, r->n * sizeof *more);
    more[0] = c->pending;
    r->ids = more;
    r->n++;
    return ST_OK;
}

/* A template may now write earlier messages differently, without their thinking for
 * example. Then the prompt is read from where it differs. */
static enum status read_on(struct conversation *c, struct reading *r, struct err *err)
{
    reading_free(r);
    if (render(c, c->messages, c->n, &r->prompt, err))
        return err->code;
    if (c->done && c->n_done < r->prompt.len &&
        !memcmp(c->done, r->prompt.text, c->n_done))
        return read_rest(c, r, err);
    forget_context(c);
    return read_again(c, r, err);
}

/* Tokens of the question without the conversation. */
static enum status count_alone(const struct conversation *c, size_t *n, struct err *err)
{
    const struct chat_message alone[2] = {c->messages[0], c->messages[c->n - 1]};
    const size_t skip = 1 - n_kept(c);
    struct jinja_text prompt;
    int32_t *ids = NULL;
    enum status st = render(c, alone + skip, 2 - skip, &prompt, err);

    if (st)
        return st;
    st = chat_tokens(c->params.chat, c->model->tok, &prompt, 0, TOKENIZER_ANY, &ids, n,
                     err);
    jinja_text_free(&prompt);
    free(ids);
    return st;
}

/* Free the context for the question and an answer of a quarter of the context by
 * dropping the oldest exchanges. A question that cannot fit drops none. */
static enum status fit(struct conversation *c, struct reading *r, int *n_dropped,
                       bool *too_long, struct err *err)
{
    const size_t n_ctx = (size_t)slm_info(c->model->m)->n_ctx;
    const size_t first = n_kept(c), wanted = n_ctx - n_ctx / 4;
    size_t n_alone = 0;
    enum status st;

    if (is_endless(c))
        return read_on(c, r, err);
    st = count_alone(c, &n_alone, err);
    *too_long = n_alone > n_ctx;
    if (st || *too_long)
        return st;
    st = read_on(c, r, err);
    while (!st && (size_t)r->n_past + r->n > wanted && first + 2 < c->n) {
        forget(c, first, first + 2);
        *n_dropped += 2;
        forget_context(c);
        st = read_on(c, r, err);
    }
    return st;
}

/* Batch by batch, so that an interrupt ends it. */
static enum status prefill(struct conversation *c, const struct reading *r,
                           struct err *err)
{
    struct slm *m = c->model->m;
    const size_t most = (size_t)slm_info(m)->n_batch;
    const uint64_t start_ns = clock_ns();
    enum status st = ST_OK;

    cut_back(c, r->n_past);
    for (size_t done = 0; !st && done < r->n && !interrupted();) {
        const size_t left = r->n - done, n = left < most ? left : most;

        st = slm_eval(m, r->ids + done, n,
                      n == left ? SLM_LOGITS_LAST : SLM_LOGITS_NONE, err);
        if (st)
            break;
        remember(c, (size_t)r->n_past + done, r->ids + done, n);
        for (size_t i = 0; i < n; i++)
            sampler_accept(c->sampler, r->ids[done + i]);
        done += n;
    }
    c->stats.n_prefill = (size_t)(slm_n_past(m) - r->n_past);
    c->stats.prefill_ns = clock_ns() - start_ns;
    return st;
}

/* ---- the answer ------------------------------------------------------------------ */

/* Evaluates id and samples the following tokens into out. */
static enum status next_tokens(struct conversation *c, int32_t id, int32_t *out, int *n,
                               struct err *err)
{
    struct slm *m = c->model->m;
    enum status st;

    if (c->speculator)
        return speculate_next(c->speculator, id, SPECULATE_MAX + 1, out, n, err);
    st = slm_eval(m, &id, 1, SLM_LOGITS_LAST, err);
    if (!st) {
        out[0] = sampler_next(c->sampler, slm_logits(m, 0));
        sampler_accept(c->sampler, out[0]);
        *n = 1;
    }
    return st;
}

static enum status add_to_answer(struct conversation *c, int32_t id, struct err *err)
{
    int32_t *more = array_grow(c->answer, c->n_answer, &c->cap_answer, sizeof *more);

    if (!more)
        return err_set(err, ST_NO_MEMORY, "no memory for an answer of %zu tokens",
                       c->n_answer + 1);
    c->answer = more;
    c->answer[c->n_answer++] = c->pending = id;
    return ST_OK;
}

/* Whether the answer has reached the end of the context at position pos; in a context
 * without end, whether it has as many tokens. */
static bool is_full(const struct conversation *c, int pos)
{
    const int n_ctx = slm_info(c->model->m)->n_ctx;

    if (is_endless(c) && c->params.n_max)
        return false;
    return is_endless(c) ? c->n_answer == (size_t)n_ctx : pos == n_ctx;
}

/* Print ids[n], the first for position pos, and record them. *over: the
 * answer ends with one of them; then the cache holds the positions before it. */
static enum status print_tokens(struct conversation *c, const int32_t *ids, int n,
                                int pos, enum conversation_end *end, bool *over,
                                struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; !st && !*over && i < n; i++) {
        if (chat_is_end(c->params.chat, c->model->tok, ids[i])) {
            c->pending = -1;
            *over = true;
        } else {
            st = add_to_answer(c, ids[i], err);
            if (!st)
                st = textout_token(&c->out, ids[i], err);
            if (interrupted())
                *end = CONVERSATION_STOPPED;
            else if (c->params.n_max && c->n_answer == (size_t)c->params.n_max)
                *end = CONVERSATION_CUT;
            else if (is_full(c, pos + i))
                *end = CONVERSATION_FULL;
            *over = *end != CONVERSATION_ANSWERED;
        }
        if (*over)
            cut_back(c, pos + i);
        else
            remember(c, (size_t)(pos + i), &ids[i], 1);
    }
    return st;
}

static enum status answer(struct conversation *c, enum conversation_end *end,
                          struct err *err)
{
    struct slm *m = c->model->m;
    const uint64_t start_ns = clock_ns();
    int32_t ids[SPECULATE_MAX + 1];
    enum status st = ST_OK;
    bool over = false;
    int n = 1, pos = slm_n_past(m);

    if (c->speculator)
        st = speculate_begin(c->speculator, c->context, (size_t)pos - c->n_gone, err);
    textout_begin(&c->out, tokenizer_adds_space(c->model->tok));
    *end = CONVERSATION_ANSWERED;
    ids[0] = sampler_next(c->sampler, slm_logits(m, 0));
    sampler_accept(c->sampler, ids[0]);
    c->stats.first_ns = clock_ns() - c->question_ns;
    while (!st && !(st = print_tokens(c, ids, n, pos, end, &over, err)) && !over) {
        pos += n;
        st = next_tokens(c, ids[n - 1], ids, &n, err);
        c->stats.n_decode += st ? 0 : (size_t)n;
        c->stats.decode_ns = clock_ns() - start_ns;
    }
    return st ? st : textout_end(&c->out, err);
}

/* The answer's bytes, as text for when it must be read again; malloc'ed. */
static char *answer_text(const struct conversation *c)
{
    const struct tokenizer *tok = c->model->tok;
    char *text = malloc(c->n_answer * c->out.piece_cap + 1);
    size_t n = 0;

    if (!text)
        return NULL;
    for (size_t i = 0; i < c->n_answer; i++) {
        const size_t len =
            tokenizer_piece(tok, c->answer[i], text + n, c->out.piece_cap);
        const bool drops = n == 0 && len && text[0] == ' ' && tokenizer_adds_space(tok);

        if (drops)
            memmove(text, text + 1, len - 1);
        for (size_t k = n; k < n + len - drops; k++)
            text[k] = text[k] ? text[k] : ' '; /* a string ends at a zero */
        n += len - drops;
    }
    text[n] = '\0';
    return text;
}

/* The context holds the prompt and the answer as it was generated. */
static enum status remember_text(struct conversation *c, const struct reading *r,
                                 struct err *err)
{
    const char *answer = c->messages[c->n - 1].text;
    const size_t n = r->prompt.len, n_answer = strlen(answer);

    c->done = malloc(n + n_answer + 1);
    if (!c->done)
        return err_set(err, ST_NO_MEMORY, "no memory for a conversation");
    memcpy(c->done, r->prompt.text, n);
    memcpy(c->done + n, answer, n_answer + 1);
    c->n_done = n + n_answer;
    return ST_OK;
}

static enum status read_and_answer(struct conversation *c, struct reading *r,
                                   enum conversation_end *end, int *n_dropped,
                                   struct err *err)
{
    bool too_long = false;
    enum status st = fit(c, r, n_dropped, &too_long, err);

    if (!st && too_long) {
        *end = CONVERSATION_TOO_LONG;
        forget(c, c->n - 1, c->n);
        return ST_OK;
    }
    if (!st)
        st = prefill(c, r, err);
    if (st || interrupted()) {
        *end = CONVERSATION_STOPPED;
        forget(c, c->n - 1, c->n);
        if (slm_n_past(c->model->m) > r->n_past)
            cut_back(c, r->n_past);
        return st;
    }
    forget_context(c);
    c->n_answer = 0;
    st = answer(c, end, err);
    if (!st)
        st = add_message(c, CHAT_ASSISTANT, answer_text(c), err);
    return st ? st : remember_text(c, r, err);
}

enum status conversation_answer(struct conversation *c, const char *question,
                                enum conversation_end *end, int *n_dropped,
                                struct err *err)
{
    struct reading r = {.ids = NULL};
    enum status st = add_message(c, CHAT_USER, strdup(question), err);

    *n_dropped = 0;
    c->stats.n_prefill = c->stats.n_decode = 0;
    c->stats.prefill_ns = c->stats.decode_ns = c->stats.first_ns = 0;
    c->question_ns = clock_ns();
    if (c->speculator)
        speculate_read_stats(c->speculator, &c->speculated);
    if (!st)
        st = read_and_answer(c, &r, end, n_dropped, err);
    c->stats.all_prefill += c->stats.n_prefill;
    c->stats.all_decode += c->stats.n_decode;
    c->stats.all_prefill_ns += c->stats.prefill_ns;
    c->stats.all_decode_ns += c->stats.decode_ns;
    reading_free(&r);
    return st;
}

/* ---- what speculation gained ----------------------------------------------------- */

void speculation_print(const struct speculate_stats *s)
{
    if (!s->n_drafted)
        return;
    fprintf(stderr, "acceptance by position: ");
    for (int i = 0; i < SPECULATE_MAX && s->drafted_at[i]; i++)
        fprintf(stderr, "%s%.0f %%", i ? ", " : "",
                100.0 * (double)s->accepted_at[i] / (double)s->drafted_at[i]);
    if (s->gain > 0)
        fprintf(stderr, "; %.2f times the speed of plain decoding, by the passes' cost",
                s->gain);
    fputc('\n', stderr);
}

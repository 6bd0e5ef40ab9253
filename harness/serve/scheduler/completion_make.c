/* SPDX-License-Identifier: MIT
 *
 * completion_make.c - a completion from its parameters, which are checked
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/serve/scheduler/scheduler_impl.h"

#define MAX_BIAS 1e9F

/* Bytes of a control token's spelling, with what marks it. */
enum { MAX_CONTROL = 256 };

static enum status check_prompt(const struct scheduler *s,
                                const struct completion_params *p, struct err *err)
{
    if (p->n_prompt == 0)
        return err_set(err, ST_USAGE, "the prompt is empty");
    if (p->n_prompt > (size_t)s->max_positions)
        return err_set(err, ST_USAGE,
                       "the prompt has %zu tokens; the context has room for %d",
                       p->n_prompt, s->max_positions);
    for (size_t i = 0; i < p->n_prompt; i++)
        if (p->prompt[i] < 0 || p->prompt[i] >= s->n_vocab)
            return err_set(err, ST_USAGE,
                           "token %d of the prompt is outside the vocabulary of %d "
                           "tokens",
                           (int)p->prompt[i], s->n_vocab);
    return ST_OK;
}

static enum status check_texts(const struct scheduler *s,
                               const struct completion_params *p, struct err *err)
{
    const int most =
        s->max_positions < s->max_step_tokens ? s->max_positions : s->max_step_tokens;

    if (p->n_texts < 1)
        return err_set(err, ST_USAGE, "there is no text to make a vector of");
    for (int i = 0; i < p->n_texts; i++)
        if (p->lengths[i] < 1 || p->lengths[i] > most)
            return err_set(err, ST_USAGE, "text %d has %d tokens; 1 to %d are possible",
                           i, p->lengths[i], most);
    for (size_t i = 0; i < p->n_prompt; i++)
        if (p->prompt[i] < 0 || p->prompt[i] >= s->n_vocab)
            return err_set(err, ST_USAGE,
                           "token %d is outside the vocabulary of %d tokens",
                           (int)p->prompt[i], s->n_vocab);
    return ST_OK;
}

static enum status check_penalty(const char *name, float penalty, struct err *err)
{
    if (penalty >= -2.0F && penalty <= 2.0F)
        return ST_OK;
    return err_set(err, ST_USAGE, "%s penalty %g: it must be between -2 and 2", name,
                   (double)penalty);
}

static enum status check_choice(const struct scheduler *s,
                                const struct completion_params *p, struct err *err)
{
    enum status st = check_penalty("presence", p->presence_penalty, err);
    struct sampler *sampler = NULL;

    if (!st)
        st = check_penalty("frequency", p->frequency_penalty, err);
    for (int i = 0; !st && i < p->n_biases; i++)
        if (p->biases[i].id < 0 || p->biases[i].id >= s->n_vocab)
            st = err_set(err, ST_USAGE,
                         "a bias for token %d: the vocabulary has %d tokens",
                         (int)p->biases[i].id, s->n_vocab);
        else if (!(fabsf(p->biases[i].bias) <= MAX_BIAS))
            st = err_set(err, ST_USAGE, "a bias of %g: it must be a finite number",
                         (double)p->biases[i].bias);
    /* Opened again with the sequence, so that what waits takes little memory. */
    if (!st)
        st = sampler_open(&sampler, &p->sampling, s->n_vocab, err);
    if (!st)
        sampler_close(sampler);
    return st;
}

static enum status check_params(const struct scheduler *s,
                                const struct completion_params *p, struct err *err)
{
    const enum status st =
        s->params.embeds ? check_texts(s, p, err) : check_prompt(s, p, err);

    if (st || s->params.embeds)
        return st;
    if (p->max_tokens < 0)
        return err_set(err, ST_USAGE,
                       "at most %d tokens: it must be 1 or more, or 0 for as many as "
                       "fit",
                       p->max_tokens);
    if (p->n_logprobs < -1 || p->n_logprobs > COMPLETION_MAX_LOGPROBS)
        return err_set(err, ST_USAGE,
                       "log-probabilities of %d tokens: between 0 and %d are possible",
                       p->n_logprobs, COMPLETION_MAX_LOGPROBS);
    if (p->n_stops < 0 || p->n_stops > COMPLETION_MAX_STOPS)
        return err_set(err, ST_USAGE, "%d stop strings: at most %d are possible",
                       p->n_stops, COMPLETION_MAX_STOPS);
    return check_choice(s, p, err);
}

/* Tokens that may be generated: the last one takes no position. */
static int max_tokens(const struct scheduler *s, const struct completion_params *p)
{
    const struct slm_info *info = slm_info(s->params.m);
    const int room = s->max_positions - (int)p->n_prompt + 1;

    if (s->params.embeds)
        return 1;
    if (p->max_tokens == 0)
        return info->kv_window && info->n_ctx < room ? info->n_ctx : room;
    return p->max_tokens < room ? p->max_tokens : room;
}

static enum status copy(struct completion *c, const struct completion_params *p,
                        struct err *err)
{
    c->cap = (int)p->n_prompt + 64;
    c->tokens = malloc((size_t)c->cap * sizeof *c->tokens);
    c->bytes = malloc(c->cap_bytes);
    if (p->n_biases)
        c->biases = malloc((size_t)p->n_biases * sizeof *c->biases);
    if (p->n_texts)
        c->lengths = malloc((size_t)p->n_texts * sizeof *c->lengths);
    if (!c->tokens || !c->bytes || (p->n_biases && !c->biases) ||
        (p->n_texts && !c->lengths))
        return err_set(err, ST_NO_MEMORY, "no memory for a prompt of %zu tokens",
                       p->n_prompt);
    memcpy(c->tokens, p->prompt, p->n_prompt * sizeof *c->tokens);
    c->n = c->n_prompt = c->n_sent = c->n_counted = (int)p->n_prompt;
    if (p->n_biases)
        memcpy(c->biases, p->biases, (size_t)p->n_biases * sizeof *c->biases);
    c->n_biases = p->n_biases;
    if (p->n_texts)
        memcpy(c->lengths, p->lengths, (size_t)p->n_texts * sizeof *c->lengths);
    c->n_texts = p->n_texts;
    return ST_OK;
}

static enum status begin_grammar(struct completion *c, struct scheduler *s,
                                 struct grammar *g, struct err *err)
{
    enum status st = ST_OK;

    pthread_mutex_lock(&s->vocab_mu);
    if (!s->vocab)
        st = grammar_vocab_open(&s->vocab, s->params.tok, err);
    pthread_mutex_unlock(&s->vocab_mu);
    if (st)
        return st;
    c->grammar = grammar_ref(g);
    if (c->calls) {
        call_reader_open(&c->reader, c->calls, grammar_parameter_types, g);
        c->reader.first = grammar_calls_first(g);
    }
    c->mask.mask = calloc(GRAMMAR_MASK_WORDS(s->n_vocab), sizeof *c->mask.mask);
    if (!c->mask.mask)
        return err_set(err, ST_NO_MEMORY, "no memory for the mask of a grammar");
    st = grammar_state_open(&c->state, g, s->vocab, err);
    c->mask.state = c->state;
    return st;
}

/* Thoughts have buffers of their own, and what closes their block is cut into tokens.
 */
static enum status begin_thinking(struct completion *c,
                                  const struct completion_params *p, struct err *err)
{
    const char *closing = p->thinking->closing;
    enum status st = completion_text_open(&c->thought, NULL, 0, err);
    size_t n = 0;

    completion_thinking_open(&c->thinking, p->thinking, p->thinks, p->calls != NULL);
    c->max_thought = p->max_thought;
    c->split = malloc(2 * (c->cap_bytes + THINKING_MAX_HELD));
    if (!st && !c->split)
        st = err_set(err, ST_NO_MEMORY, "no memory for thoughts");
    if (!st && p->max_thought >= 0)
        st = tokenizer_encode(c->tok, closing, strlen(closing), false, true,
                              &c->closing, &n, err);
    c->n_closing = (int)n;
    return st;
}

static struct completion *make_empty(const struct scheduler *s,
                                     const struct completion_params *p)
{
    struct completion *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->tok = s->params.tok;
    c->chat = s->params.chat;
    c->ends = &s->ends;
    c->sampling = p->sampling;
    c->presence_penalty = p->presence_penalty;
    c->frequency_penalty = p->frequency_penalty;
    c->n_logprobs = p->n_logprobs;
    c->ignore_end = p->ignore_end;
    c->computes_all = p->computes_all;
    c->client = p->client;
    c->n_max = max_tokens(s, p);
    c->wake = p->wake;
    c->arg = p->arg;
    c->seq = -1;
    c->calls = p->calls;
    c->cap_bytes = s->max_bytes < MAX_CONTROL ? MAX_CONTROL : s->max_bytes;
    c->drops_blank = p->begins_text && tokenizer_adds_space(c->tok);
    c->submitted_ns = clock_ns();
    c->usage.n_prompt = (int)p->n_prompt;
    atomic_init(&c->n_owners, 1);
    atomic_init(&c->closed, false);
    pthread_mutex_init(&c->mu, NULL);
    pthread_cond_init(&c->woken, NULL);
    return c;
}

enum status completion_make(struct completion **out, struct scheduler *s,
                            const struct completion_params *p, struct err *err)
{
    struct completion *c;
    enum status st = check_params(s, p, err);

    if (st)
        return st;
    c = make_empty(s, p);
    if (!c)
        return err_set(err, ST_NO_MEMORY, "no memory for a completion");
    st = copy(c, p, err);
    if (!st)
        st = completion_text_open(&c->text, p->stops, p->n_stops, err);
    if (!st && p->thinking)
        st = begin_thinking(c, p, err);
    if (!st && p->grammar)
        st = begin_grammar(c, s, p->grammar, err);
    if (st)
        completion_release(c);
    else
        *out = c;
    return st;
}

void completion_release(struct completion *c)
{
    if (atomic_fetch_sub(&c->n_owners, 1) > 1)
        return;
    while (c->first) {
        struct stored_piece *p = c->first;

        c->first = p->next;
        free(p);
    }
    free(c->reading);
    completion_text_close(&c->text);
    completion_text_close(&c->thought);
    call_reader_close(&c->reader);
    free(c->split);
    free(c->closing);
    sampler_close(c->sampler);
    sampler_close(c->draft_sampler);
    if (c->state)
        grammar_state_close(c->state);
    if (c->grammar)
        grammar_unref(c->grammar);
    free(c->mask.mask);
    free(c->biases);
    free(c->counts);
    free(c->tokens);
    free(c->lengths);
    free(c->vectors);
    free(c->bytes);
    pthread_mutex_destroy(&c->mu);
    pthread_cond_destroy(&c->woken);
    free(c);
}

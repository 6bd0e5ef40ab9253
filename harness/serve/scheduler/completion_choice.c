/* SPDX-License-Identifier: MIT
 *
 * completion_choice.c - the next token: the logits as the request wants them, a draw,
 * and what the model itself thought of it
 */
#include <math.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/serve/scheduler/scheduler_impl.h"

enum status completion_count(struct completion *c, int32_t id, struct err *err)
{
    struct token_count *more;

    if (!(fabsf(c->presence_penalty) > 0) && !(fabsf(c->frequency_penalty) > 0))
        return ST_OK;
    for (int i = 0; i < c->n_counts; i++)
        if (c->counts[i].id == id) {
            c->counts[i].n++;
            return ST_OK;
        }
    more = array_grow(c->counts, (size_t)c->n_counts, &c->cap_counts, sizeof *more);
    if (!more)
        return err_set(err, ST_NO_MEMORY, "no memory for penalties of %d tokens",
                       c->n_counts + 1);
    c->counts = more;
    c->counts[c->n_counts++] = (struct token_count){id, 1};
    return ST_OK;
}

static void set_bit(uint32_t *mask, int32_t id, bool on)
{
    const uint32_t bit = (uint32_t)1 << id % 32;

    mask[id / 32] = on ? mask[id / 32] | bit : mask[id / 32] & ~bit;
}

/* Tokens that end a chat's answer are no text of a grammar, whatever their type in the
 * vocabulary; they may come where the text may end. */
static void mask_chat_ends(struct completion *c)
{
    uint32_t *mask = c->mask.mask;
    const int32_t own = c->ends->own;
    const bool may_end = own >= 0 && mask[own / 32] >> own % 32 & 1;

    for (int i = 0; i < c->ends->n; i++)
        set_bit(mask, c->ends->id[i], may_end);
}

static bool changes_logits(const struct completion *c)
{
    return c->n_biases || c->n_counts || (c->state && !c->mask.all);
}

static bool is_allowed(const struct completion *c, int32_t id)
{
    return !c->state || (c->mask.mask[id / 32] >> id % 32 & 1);
}

static const float *change_logits(const struct completion *c, const float *logits,
                                  int n_vocab, float *out)
{
    memcpy(out, logits, (size_t)n_vocab * sizeof *out);
    for (int i = 0; i < c->n_biases; i++)
        out[c->biases[i].id] += c->biases[i].bias;
    for (int i = 0; i < c->n_counts; i++)
        out[c->counts[i].id] -=
            c->presence_penalty + (float)c->counts[i].n * c->frequency_penalty;
    if (c->state && !c->mask.all)
        for (int i = 0; i < n_vocab; i++)
            if (!(c->mask.mask[i / 32] >> i % 32 & 1))
                out[i] = -INFINITY;
    return out;
}

/* The logarithm of the sum of exp(logits). NaN counts as nothing. */
static double log_sum(const float *logits, int n)
{
    float max = -INFINITY;
    double sum = 0;

    for (int i = 0; i < n; i++)
        max = logits[i] > max ? logits[i] : max;
    if (!isfinite(max))
        return (double)max;
    for (int i = 0; i < n; i++)
        if (logits[i] > -INFINITY)
            sum += (double)expf(logits[i] - max);
    return (double)max + log(sum);
}

/* JSON has no infinities: a token that the model rules out is very unlikely. */
static float log_probability(float logit, double all)
{
    const double p = (double)logit - all;

    return p > -9999.0 ? (float)p : -9999.0F;
}

/* The likeliest tokens, of equal ones the lowest ids. */
static void find_top(const float *logits, int n_vocab, int n_top, double all,
                     struct completion_piece *piece)
{
    int n = 0;

    for (int id = 0; id < n_vocab; id++) {
        int at = n;

        if (isnan(logits[id]) ||
            (n == n_top && !(logits[id] > piece->top[n - 1].logprob)))
            continue;
        if (n < n_top)
            n++;
        else
            at--;
        for (; at > 0 && piece->top[at - 1].logprob < logits[id]; at--)
            piece->top[at] = piece->top[at - 1];
        piece->top[at] = (struct completion_top){id, logits[id]};
    }
    for (int i = 0; i < n; i++)
        piece->top[i].logprob = log_probability(piece->top[i].logprob, all);
    piece->n_top = n;
}

bool completion_choose(struct completion *c, const float *logits, int n_vocab,
                       float *scratch, int32_t *id, struct completion_piece *piece)
{
    if (c->state)
        mask_chat_ends(c);
    const float *changed =
        changes_logits(c) ? change_logits(c, logits, n_vocab, scratch) : logits;

    *id = sampler_next(c->sampler, changed);
    if (c->mask.all && !is_allowed(c, *id)) { /* padding, which is no text */
        c->mask.all = false;
        *id = sampler_next(c->sampler, change_logits(c, logits, n_vocab, scratch));
    }
    piece->token = *id;
    piece->logprob = 0;
    piece->n_top = 0;
    if (c->n_logprobs >= 0) {
        const double all = log_sum(logits, n_vocab);

        piece->logprob = log_probability(logits[*id], all);
        if (c->n_logprobs > 0)
            find_top(logits, n_vocab, c->n_logprobs, all, piece);
    }
    return is_allowed(c, *id);
}

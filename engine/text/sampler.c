/* SPDX-License-Identifier: MIT
 *
 * sampler.c - repetition penalty, then greedy or top-k / top-p / min-p sampling
 *
 * Candidates are in a binary max-heap by logit: building it is linear, and only the
 * candidates that the cuts keep are popped, few of a large vocabulary. Popped
 * candidates are stored, in order, at the free end of the same array.
 */
#include "engine/text/sampler.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"

struct candidate {
    float logit;
    int32_t id;
};

struct sampler {
    struct sampler_params params;
    uint64_t rng;
    int32_t n_vocab;
    struct candidate *heap; /* [n_vocab]; the sorted ones grow down from the end */
    float *logits;          /* [n_vocab], penalised; NULL without a penalty */
    int32_t *recent;        /* ring of the last accepted tokens; NULL too */
    size_t n_accepted;      /* accepted so far */
    const int32_t *given;   /* remaining tokens of sampler_recite() */
    size_t n_given;
};

struct sampler_params sampler_params_default(void)
{
    return (struct sampler_params){.top_p = 1.0f};
}

/* 53 uniform bits in [0, 1). */
static double next_uniform(uint64_t *rng)
{
    return (double)(random_bits(rng) >> 11) * 0x1p-53;
}

static enum status check_params(const struct sampler_params *p, int32_t n_vocab,
                                struct err *err)
{
    if (!(p->temperature >= 0.0f) || isinf(p->temperature))
        return err_set(err, ST_USAGE,
                       "temperature %g: it must be 0 (greedy) or a positive number",
                       (double)p->temperature);
    if (p->top_k < 0)
        return err_set(err, ST_USAGE, "top-k %d: it must be 0 (all) or more", p->top_k);
    if (!(p->top_p > 0.0f && p->top_p <= 1.0f))
        return err_set(err, ST_USAGE,
                       "top-p %g: it must be above 0 and at most 1 (all)",
                       (double)p->top_p);
    if (!(p->min_p >= 0.0f && p->min_p <= 1.0f))
        return err_set(err, ST_USAGE, "min-p %g: it must be between 0 (all) and 1",
                       (double)p->min_p);
    if (!(p->repeat_penalty >= 0.0f) || isinf(p->repeat_penalty))
        return err_set(err, ST_USAGE,
                       "repeat-penalty %g: it must be a positive number, 1 for none",
                       (double)p->repeat_penalty);
    if (p->repeat_window < 0 || p->repeat_window > SAMPLER_MAX_WINDOW)
        return err_set(err, ST_USAGE,
                       "repeat-window %d: it must be between 0 (none) and %d tokens",
                       p->repeat_window, SAMPLER_MAX_WINDOW);
    if (n_vocab < 1)
        return err_set(err, ST_USAGE, "a vocabulary of %d tokens cannot be sampled",
                       (int)n_vocab);
    return ST_OK;
}

static bool penalises(const struct sampler_params *p)
{
    const float r = p->repeat_penalty;

    return p->repeat_window > 0 && r > 0.0f && (r < 1.0f || r > 1.0f);
}

enum status sampler_open(struct sampler **s, const struct sampler_params *p,
                         int32_t n_vocab, struct err *err)
{
    const enum status st = check_params(p, n_vocab, err);
    struct sampler *new;
    bool ok;

    if (st)
        return st;
    new = calloc(1, sizeof *new);
    ok = new && (new->heap = malloc((size_t)n_vocab * sizeof *new->heap));
    if (ok && penalises(p)) {
        new->logits = malloc((size_t)n_vocab * sizeof *new->logits);
        new->recent = malloc((size_t)p->repeat_window * sizeof *new->recent);
        ok = new->logits &&new->recent;
    }
    if (!ok) {
        sampler_close(new);
        return err_set(err, ST_NO_MEMORY, "no memory to sample from %d tokens",
                       (int)n_vocab);
    }
    new->params = *p;
    new->rng = p->seed;
    new->n_vocab = n_vocab;
    *s = new;
    return ST_OK;
}

void sampler_close(struct sampler *s)
{
    if (!s)
        return;
    free(s->heap);
    free(s->logits);
    free(s->recent);
    free(s);
}

void sampler_accept(struct sampler *s, int32_t id)
{
    assert(id >= 0 && id < s->n_vocab);
    if (s->recent)
        s->recent[s->n_accepted++ % (size_t)s->params.repeat_window] = id;
    if (s->n_given) {
        s->given++;
        s->n_given--;
    }
}

void sampler_recite(struct sampler *s, const int32_t *tokens, size_t n)
{
    s->given = tokens;
    s->n_given = n;
}

void sampler_follow(struct sampler *s, const struct sampler *of)
{
    assert(s->params.repeat_window == of->params.repeat_window);
    s->rng = of->rng;
    s->n_accepted = of->n_accepted;
    if (s->recent)
        memcpy(s->recent, of->recent,
               (size_t)s->params.repeat_window * sizeof *s->recent);
}

/* Computed from the caller's logits, so that a token that was accepted twice is
 * penalised once. */
static const float *penalise(struct sampler *s, const float *logits)
{
    const size_t window = (size_t)s->params.repeat_window;
    const float r = s->params.repeat_penalty;

    if (!s->recent)
        return logits;
    memcpy(s->logits, logits, (size_t)s->n_vocab * sizeof *logits);
    for (size_t i = 0; i < window && i < s->n_accepted; i++) {
        const int32_t id = s->recent[i];

        if (id < s->n_vocab) /* one of sampler_follow()'s may not be */
            s->logits[id] = logits[id] > 0.0f ? logits[id] / r : logits[id] * r;
    }
    return s->logits;
}

/* A NaN compares false and is never chosen. */
static int32_t greedy(const float *logits, int32_t n)
{
    int32_t best = 0;

    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best] || (isnan(logits[best]) && !isnan(logits[i])))
            best = i;
    return best;
}

/* Higher logit first; equal ones by id, so that the order is a total one. */
static int before(struct candidate a, struct candidate b)
{
    return a.logit > b.logit || (!(a.logit < b.logit) && a.id < b.id);
}

static void sift_down(struct candidate *heap, size_t n, size_t i)
{
    const struct candidate moved = heap[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], moved))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

/* Move the most likely of heap[0..n) to heap[n - 1]. */
static void pop(struct candidate *heap, size_t n)
{
    const struct candidate top = heap[0];

    heap[0] = heap[n - 1];
    sift_down(heap, n - 1, 0);
    heap[n - 1] = top;
}

/* Unnormalised probability: 1 for the most likely token. */
static double weight(const struct sampler *s, float logit, float max)
{
    return exp(((double)logit - (double)max) / (double)s->params.temperature);
}

/* One of heap[n-1], heap[n-2], ... (n_kept of them, their weights sum to mass). */
static int32_t draw(struct sampler *s, size_t n, size_t n_kept, double mass, float max)
{
    const double target = next_uniform(&s->rng) * mass;
    double sum = 0.0;

    for (size_t i = 0; i + 1 < n_kept; i++) {
        sum += weight(s, s->heap[n - 1 - i].logit, max);
        if (sum > target)
            return s->heap[n - 1 - i].id;
    }
    return s->heap[n - n_kept].id;
}

/* Every possible token, into heap[]; their weights sum to *total. */
static size_t collect(struct sampler *s, const float *logits, float max, double *total)
{
    size_t n = 0;

    *total = 0.0;
    for (int32_t i = 0; i < s->n_vocab; i++)
        if (logits[i] > -INFINITY) {
            s->heap[n++] = (struct candidate){.logit = logits[i], .id = i};
            *total += weight(s, logits[i], max);
        }
    return n;
}

/* Sort the top_k of heap[0..n) and cut them by top_p and min_p to n_kept, whose weights
 * sum to *mass. */
static size_t cut(struct sampler *s, size_t n, double total, float max, double *mass)
{
    const struct sampler_params *p = &s->params;
    const size_t top_k = (size_t)p->top_k;
    size_t n_popped = 0, n_kept = 0;

    for (size_t i = n / 2; i-- > 0;)
        sift_down(s->heap, n, i);
    if (top_k > 0 && top_k < n)
        for (total = 0.0; n_popped < top_k; n_popped++) {
            pop(s->heap, n - n_popped);
            total += weight(s, s->heap[n - 1 - n_popped].logit, max);
        }
    const size_t n_max = n_popped ? n_popped : n;
    const double wanted = (double)p->top_p * total;

    for (*mass = 0.0; n_kept < n_max; n_kept++) {
        if (p->top_p < 1.0f && *mass >= wanted)
            break;
        if (n_kept == n_popped) {
            pop(s->heap, n - n_popped);
            n_popped++;
        }
        const double w = weight(s, s->heap[n - 1 - n_kept].logit, max);

        if (w < (double)p->min_p)
            break;
        *mass += w;
    }
    return n_kept;
}

/* Draw from the logits. */
static int32_t choose(struct sampler *s, const float *raw)
{
    const struct sampler_params *p = &s->params;
    const float *logits = penalise(s, raw);
    const int32_t best = greedy(logits, s->n_vocab);
    const float max = logits[best];
    double total, mass;
    size_t n, n_kept;

    /* Temperature 0, or no finite logit to weigh the others against. */
    if (!(p->temperature > 0.0f) || !isfinite(max))
        return best;
    n = n_kept = collect(s, logits, max, &total);
    mass = total;
    if (p->top_k > 0 || p->top_p < 1.0f || p->min_p > 0.0f)
        n_kept = cut(s, n, total, max, &mass);
    return draw(s, n, n_kept, mass, max);
}

int32_t sampler_next(struct sampler *s, const float *logits)
{
    const int32_t id = choose(s, logits);

    return s->n_given ? *s->given : id;
}

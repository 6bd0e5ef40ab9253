/* SPDX-License-Identifier: MIT
 *
 * sampler.c - greedy and temperature / top-k / top-p sampling
 *
 * Candidates stand in a binary max-heap by logit: building it is linear, and
 * only as many are popped as the cuts keep, which is few of a large vocabulary.
 * Popped candidates collect, in order, at the free end of the same array.
 */
#include "engine/sampler.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "engine/random.h"

struct candidate {
    float logit;
    int32_t id;
};

struct sampler {
    struct sampler_params params;
    uint64_t rng;
    int32_t n_vocab;
    struct candidate *heap; /* [n_vocab]; the sorted ones grow down from the end */
};

/* 53 uniform bits in [0, 1). */
static double next_uniform(uint64_t *rng)
{
    return (double)(random_bits(rng) >> 11) * 0x1p-53;
}

enum status sampler_open(struct sampler **s, const struct sampler_params *p,
                         int32_t n_vocab, struct err *err)
{
    struct sampler *new;

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
    if (n_vocab < 1)
        return err_set(err, ST_USAGE, "a vocabulary of %d tokens cannot be sampled",
                       (int)n_vocab);

    new = malloc(sizeof *new);
    if (new)
        new->heap = malloc((size_t)n_vocab * sizeof *new->heap);
    if (!new || !new->heap) {
        free(new);
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
    free(s);
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

int32_t sampler_next(struct sampler *s, const float *logits)
{
    const int32_t best = greedy(logits, s->n_vocab);
    const float max = logits[best];
    const size_t top_k = (size_t)s->params.top_k;
    size_t n = 0, n_popped = 0;
    double total = 0.0, mass = 0.0;

    /* Temperature 0, and nothing finite to weigh the others against. */
    if (!(s->params.temperature > 0.0f) || !isfinite(max))
        return best;
    for (int32_t i = 0; i < s->n_vocab; i++)
        if (logits[i] > -INFINITY) {
            s->heap[n++] = (struct candidate){.logit = logits[i], .id = i};
            total += weight(s, logits[i], max);
        }
    for (size_t i = n / 2; i-- > 0;)
        sift_down(s->heap, n, i);
    if (top_k > 0 && top_k < n) {
        for (total = 0.0; n_popped < top_k; n_popped++) {
            pop(s->heap, n - n_popped);
            total += weight(s, s->heap[n - 1 - n_popped].logit, max);
        }
    }
    const size_t n_most = n_popped ? n_popped : n;
    const double wanted = (double)s->params.top_p * total;
    size_t n_kept = 0;

    while (n_kept < n_most && (s->params.top_p >= 1.0f || mass < wanted)) {
        if (n_kept == n_popped && s->params.top_p < 1.0f) {
            pop(s->heap, n - n_popped);
            n_popped++;
        }
        mass += weight(s, s->heap[n - 1 - n_kept].logit, max);
        n_kept++;
    }
    return draw(s, n, n_kept, mass, max);
}

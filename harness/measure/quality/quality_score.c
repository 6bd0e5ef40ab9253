/* SPDX-License-Identifier: MIT
 *
 * quality_score.c - softmax, divergence and their summary
 *
 * Sums are of doubles: a divergence of 1e-6 is a difference of sums near 10.
 */
#include "harness/measure/quality/quality_score.h"

#include <math.h>
#include <string.h>

#include "harness/stats/stats.h"

#define CODE_MAX 65535

/* The parameters of softmax for a row of logits. */
struct peak {
    float max;
    int32_t top;
    double log_sum; /* ln of the sum of exp(l - max) */
};

static bool find_peak(struct peak *p, const float *l, size_t n)
{
    double sum = 0;
    size_t top = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(l[i]))
            return false;
        if (l[i] > l[top])
            top = i;
    }
    for (size_t i = 0; i < n; i++)
        sum += exp((double)l[i] - (double)l[top]);
    p->max = l[top];
    p->top = (int32_t)top;
    p->log_sum = log(sum);
    return true;
}

static double nll_of(const struct peak *p, const float *l, int32_t next)
{
    return (double)p->max + p->log_sum - (double)l[next];
}

size_t quality_row_bytes(size_t n_vocab)
{
    return sizeof(struct quality_row) + (n_vocab * sizeof(uint16_t) + 7) / 8 * 8;
}

static const uint16_t *codes_of(const struct quality_row *row)
{
    return (const uint16_t *)(row + 1);
}

bool quality_score_alone(struct quality_score *score, const float *logits,
                         size_t n_vocab, int32_t next)
{
    struct peak p;

    if (!find_peak(&p, logits, n_vocab))
        return false;
    *score = (struct quality_score){.nll = nll_of(&p, logits, next), .same = 1};
    return true;
}

bool quality_row_make(struct quality_row *row, const float *logits, size_t n_vocab,
                      int32_t next)
{
    uint16_t *code = (uint16_t *)(row + 1);
    float min = logits[0];
    struct peak p;

    if (!find_peak(&p, logits, n_vocab))
        return false;
    for (size_t i = 1; i < n_vocab; i++)
        min = logits[i] < min ? logits[i] : min;
    memset(row, 0, quality_row_bytes(n_vocab));
    row->nll = nll_of(&p, logits, next);
    row->top = p.top;
    row->step =
        (float)(fmin((double)p.max - (double)min, QUALITY_RANGE) / (double)CODE_MAX);
    for (size_t i = 0; i < n_vocab && row->step > 0; i++) {
        const double steps = ((double)p.max - (double)logits[i]) / (double)row->step;

        code[i] = steps < CODE_MAX ? (uint16_t)(steps + 0.5) : CODE_MAX;
    }
    return true;
}

/* With a_i = ln q_i and b_i = ln p_i, each but for the constant that normalises it:
 * KL = sum(e^a (a - b)) / sum(e^a) - ln sum(e^a) + ln sum(e^b). */
bool quality_score_against(struct quality_score *score, const struct quality_row *row,
                           const float *logits, size_t n_vocab, int32_t next)
{
    const uint16_t *code = codes_of(row);
    const double step = (double)row->step;
    double sum = 0, weighted = 0;
    struct peak p;

    if (!find_peak(&p, logits, n_vocab))
        return false;
    for (size_t i = 0; i < n_vocab; i++) {
        const double a = -step * code[i], e = exp(a);

        sum += e;
        weighted += e * (a - ((double)logits[i] - (double)p.max));
    }
    score->nll = nll_of(&p, logits, next);
    score->extra = score->nll - row->nll;
    score->kl = fmax(0, weighted / sum - log(sum) + p.log_sum);
    score->same = p.top == row->top;
    return true;
}

/* ---- summary --------------------------------------------------------------------- */

/* Mean of v[n] and its standard error. */
static void mean_of(const double *v, size_t n, double *mean, double *se)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - *mean) * (v[i] - *mean);
    *se = sqrt(squares / (double)(n - 1) / (double)n);
}

void quality_summarise(struct quality_summary *s, const struct quality_score *v,
                       size_t n, double *scratch)
{
    double mean, se, n_same = 0;

    s->n = n;
    for (size_t i = 0; i < n; i++)
        scratch[i] = v[i].nll;
    mean_of(scratch, n, &mean, &se);
    s->perplexity = exp(mean);
    s->perplexity_se = s->perplexity * se;

    for (size_t i = 0; i < n; i++)
        scratch[i] = v[i].extra;
    mean_of(scratch, n, &mean, &se);
    s->ratio = exp(mean);
    s->ratio_se = s->ratio * se;

    for (size_t i = 0; i < n; i++) {
        scratch[i] = v[i].kl;
        n_same += (double)v[i].same;
    }
    mean_of(scratch, n, &s->kl_mean, &s->kl_se);
    s->same = n_same / (double)n;
    s->same_se = sqrt(s->same * (1 - s->same) / (double)(n - 1));
    s->kl_median = stats_median(scratch, n, scratch); /* sorts it */
    s->kl_p99 = stats_quantile_sorted(scratch, n, 0.99);
}

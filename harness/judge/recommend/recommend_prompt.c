/* SPDX-License-Identifier: MIT
 *
 * recommend_prompt.c - how long a prompt takes with a setting
 *
 * The prefill rows of the setting decide, with whatever number of threads is fastest:
 * it need not be that of decode. A prompt of another length is taken to be processed at
 * the speed of the nearest one measured: the shortest that is longer, whose speed is no
 * higher, or else the longest. Attention makes a longer prompt slower per token, so
 * beyond the longest one the time is too short.
 */
#include "harness/judge/recommend/recommend_choice.h"

#include <math.h>

static bool is_prompt(const struct chooser *c, const struct row *r)
{
    return r->kind == POINT_PREFILL && r->n_prompt > 0 && row_trust(r) >= ROW_PARTIAL &&
           !row_above_roof(r) &&
           (c->params->max_threads <= 0 || r->n_threads <= c->params->max_threads);
}

/* The requested one; else the longest measured, and no less than the usual one. */
int64_t prompt_wanted(const struct chooser *c)
{
    int64_t longest = 0, usual = RECOMMEND_USUAL_PROMPT;

    for (size_t i = 0; i < c->rows.n; i++) {
        const struct row *r = c->rows.v[i];

        if (!recommend_is_model(c, r) || !is_prompt(c, r))
            continue;
        if (r->n_prompt > longest)
            longest = r->n_prompt;
        if (r->model_ctx > 0 && r->model_ctx < usual)
            usual = r->model_ctx;
    }
    return !longest                  ? 0
           : c->params->n_prompt > 0 ? c->params->n_prompt
           : longest > usual         ? longest
                                     : usual;
}

/* Whether a prompt of a tokens is a better measure of one of n than one of b is. */
static bool is_nearer(int64_t a, int64_t b, int64_t n)
{
    if ((a >= n) != (b >= n))
        return a >= n;
    return a >= n ? a < b : a > b;
}

/* A row of one or two passes has no interval worth the name. */
static struct speed speed_of(const struct row *r)
{
    struct speed s = speed_measured(r);

    if (row_trust(r) == ROW_PARTIAL) {
        s.sigma_lo = fmax(s.sigma_lo, SPEED_UNKNOWN_SPREAD);
        s.sigma_hi = fmax(s.sigma_hi, SPEED_UNKNOWN_SPREAD);
    }
    return s;
}

/* What a row counts with: its speed, or, where a floor has to be reached for certain,
 * the least that it shows. */
static double figure(const struct chooser *c, const struct row *r)
{
    const struct speed s = speed_of(r);

    return c->params->max_ttft_s > 0 ? speed_lo(&s) : s.median;
}

/* The row of the setting [begin, end) that a prompt of n tokens is judged by: of the
 * nearest length the fastest, or without a floor fewer threads that are as fast. NULL:
 * none. */
static const struct row *find_row(const struct chooser *c, size_t begin, size_t end,
                                  int64_t n)
{
    const double more = c->params->max_ttft_s > 0 ? 0 : RECOMMEND_MAX_REGRET;
    const struct row *found = NULL;

    for (size_t i = begin; i < end; i++) {
        const struct row *r = c->rows.v[i];

        if (!is_prompt(c, r) || (found && is_nearer(found->n_prompt, r->n_prompt, n)))
            continue;
        /* rows are in order of threads */
        if (!found || r->n_prompt != found->n_prompt ||
            figure(c, r) * (1 - more) > figure(c, found))
            found = r;
    }
    return found;
}

void prompt_of(struct recommend_prompt *p, const struct chooser *c, size_t i)
{
    size_t begin = i, end = i;
    const struct row *r;
    struct speed s;

    while (begin > 0 && report_same_setting(c->rows.v[begin - 1], c->rows.v[i]))
        begin--;
    while (end < c->rows.n && report_same_setting(c->rows.v[end], c->rows.v[i]))
        end++;
    *p = (struct recommend_prompt){.warm_s = NAN, .warm_max_s = NAN, .cold_s = NAN};
    r = c->n_prompt > 0 ? find_row(c, begin, end, c->n_prompt) : NULL;
    if (!r)
        return;
    s = speed_of(r);
    p->n_prompt = c->n_prompt;
    p->n_measured = r->n_prompt;
    p->n_threads = r->n_threads;
    p->tok_per_s = r->tok_per_s;
    p->disturbed = row_trust(r) == ROW_DISTURBED;
    p->warm_s = r->n_prompt == c->n_prompt && row_ttft_warm_s(r) > 0
                    ? row_ttft_warm_s(r)
                    : (double)c->n_prompt / s.median;
    p->warm_max_s = fmax(p->warm_s, (double)c->n_prompt / speed_lo(&s));
    p->sigma = s.sigma_lo;
    p->cold_s = p->warm_s + r->load_s;
}

double prompt_in_time(const struct recommend_prompt *p, double max_s)
{
    const struct speed s = {
        .median = 1 / p->warm_s, .sigma_lo = p->sigma, .sigma_hi = p->sigma};

    return speed_reaches(&s, 1 / max_s);
}

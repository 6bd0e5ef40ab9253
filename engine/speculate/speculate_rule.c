/* SPDX-License-Identifier: MIT
 *
 * speculate_rule.c - measured costs and acceptance rates, and the draft length that
 * follows from them
 */
#include "engine/speculate/speculate_rule.h"

#include <string.h>

/* Limits of what drafts may lose: in plain passes, and as a share of all time. */
#define LOSS_PASSES  0.2
#define LOSS_SHARE   0.008
#define LOSS_TRUSTED 8.0

/* Acceptance rate assumed at first: enough for a trial of a narrow pass. It weighs as
 * much as FIRST_COUNT observations. */
#define FIRST_RATE  0.5
#define FIRST_COUNT 2

/* The same of a source that was trained to be right: published layers that predict the
 * token after the next are so in 85 to 90 % of cases (arXiv 2412.19437, section 5.4.3).
 */
#define TRUSTED_RATE  0.8
#define TRUSTED_COUNT 8

/* The most that a column of a width not yet tried is assumed to cost, in plain passes:
 * kernels work on several columns at a time, so that an expensive second column says
 * little about the eighth. */
#define MAX_SLOPE 0.5

/* A share of waiting from which on wide passes are tried at once. */
#define MOSTLY_STREAMED 0.5

/* The least cost of a column, whatever single passes measure. */
#define MIN_SLOPE 0.01

/* Weight of the newest value in a moving mean. */
#define NEWEST 0.1

/* Weight for the rate of a draft model or layer, which drafts alone test: by
 * NEWEST a few wrong guesses ended drafts that pay, for hundreds of tokens. */
#define NEWEST_TRAINED 0.05

/* The same for the plain pass that gains are computed against: a draft is chosen where
 * plain passes seem slow, so the same few passes would overstate its gain. */
#define NEWEST_PLAIN 0.02

/* A pass longer than this multiple of others of its width was interrupted. */
#define OUTLIER 1.3

/* Rate at which the acceptance rate returns to FIRST_RATE while nothing is drafted. */
#define FORGET 0.002

/* Passes that measure the cost of plain decoding before drafts are tried. */
#define N_PLAIN 3

/* ---- acceptance ------------------------------------------------------------------ */

void speculate_rates_begin(struct speculate_rates *r, bool trusted)
{
    *r = (struct speculate_rates){.first_rate = trusted ? TRUSTED_RATE : FIRST_RATE,
                                  .first_count = trusted ? TRUSTED_COUNT : FIRST_COUNT};
    for (int i = 0; i < SPECULATE_SOURCES; i++)
        r->rate[i] = r->first_rate;
}

void speculate_rates_follow(struct speculate_rates *r, const struct speculate_rates *of)
{
    *r = *of;
    for (int i = 0; i < SPECULATE_SOURCES; i++)
        r->n[i] = of->n[i] > 0;
}

/* Source of token i of a draft: each accepted token makes the match one longer. */
static int source_of(int source, int i)
{
    const int longest = SPECULATE_SOURCES - 1;

    return !source || source + i < longest ? source + (source ? i : 0) : longest;
}

double speculate_rates_at(const struct speculate_rates *r, int source, int i)
{
    const int at = source_of(source, i);

    return r->rate[r->n[at] ? at : source];
}

/* A mean of all observations at first, then a moving one. */
void speculate_rates_compare(struct speculate_rates *r, int source, bool accepted)
{
    const double weight = 1.0 / (++r->n[source] + r->first_count);
    const double newest = source ? NEWEST : NEWEST_TRAINED;

    r->rate[source] += (weight > newest ? weight : newest) *
                       ((accepted ? 1.0 : 0.0) - r->rate[source]);
}

void speculate_rates_learn(struct speculate_rates *r, int source, int n_drafted,
                           int n_accepted)
{
    for (int i = 0; i < n_drafted && i <= n_accepted; i++)
        speculate_rates_compare(r, source_of(source, i), i < n_accepted);
    if (n_drafted && n_accepted == n_drafted) {
        /* The token after the draft was not tested: a longer match is taken to be no
         * worse than this one; otherwise drafts would stay too short for ever. */
        double *next = &r->rate[source_of(source, n_drafted)];
        const double last = r->rate[source_of(source, n_drafted - 1)];

        if (*next < last)
            *next += NEWEST * (last - *next);
    }
}

void speculate_rates_forget(struct speculate_rates *r, int source)
{
    r->rate[source] += FORGET * (r->first_rate - r->rate[source]);
}

void speculate_rule_begin(struct speculate_rule *r, double streamed)
{
    memset(r, 0, sizeof *r);
    r->streamed = streamed;
    speculate_rates_begin(&r->rates, false);
    r->loss_passes = LOSS_PASSES;
}

void speculate_rule_trust(struct speculate_rule *r)
{
    r->loss_passes = LOSS_TRUSTED;
    speculate_rates_begin(&r->rates, true);
}

/* ---- expected cost and gain ------------------------------------------------------ */

/* A line through plain decoding and the widest measured pass below width. */
static double extrapolate(const struct speculate_rule *r, int width)
{
    int known = width - 1;
    double slope = SPECULATE_COLUMN * (1.0 - r->streamed) * r->pass_ns[1];

    while (known > 1 && !r->n_measured[known])
        known--;
    if (known > 1)
        slope = (r->pass_ns[known] - r->pass_ns[1]) / (known - 1);
    if (slope > MAX_SLOPE * r->pass_ns[1])
        slope = MAX_SLOPE * r->pass_ns[1];
    if (slope < 0.0)
        slope = 0.0;
    return r->pass_ns[known] + slope * (width - known);
}

/* Nanoseconds of a pass. A width that was measured once is estimated at most at the
 * extrapolated cost, since a width that seems expensive is not tried again. */
static double pass_cost(const struct speculate_rule *r, int width)
{
    const double measured = r->pass_ns[width];
    double cost = measured, line;

    if (width == 1)
        return measured;
    if (r->n_measured[width] < 2) {
        line = extrapolate(r, width);
        cost = r->n_measured[width] && measured < line ? measured : line;
    }
    line = (1.0 + MIN_SLOPE * (width - 1)) * r->pass_ns[1];
    return cost > line ? cost : line;
}

/* Expected tokens of a pass with a draft of n; *all: the probability that all n are
 * accepted. */
static double expected(const struct speculate_rule *r, int source, int n, double *all)
{
    double sum = 1.0;

    *all = 1.0;
    for (int i = 0; i < n; i++) {
        *all *= speculate_rates_at(&r->rates, source, i);
        sum += *all;
    }
    return sum;
}

/* Widths are explored step by step, unless they hardly add to what is waited for. */
static int widest_to_try(const struct speculate_rule *r)
{
    int width = SPECULATE_MAX + 1;

    if (r->streamed > MOSTLY_STREAMED)
        return width;
    while (width > 1 && !r->n_measured[width])
        width--;
    return 2 * width;
}

int speculate_rule_length(const struct speculate_rule *r, int source, int n_max)
{
    const double allowance = r->loss_passes * r->pass_ns[1] + LOSS_SHARE * r->all_ns;
    const int most = widest_to_try(r) - 1;
    double best_gain = SPECULATE_MIN_GAIN;
    int best = 0;

    if (r->n_measured[1] < N_PLAIN)
        return 0;
    for (int n = 1; n <= n_max && n <= most; n++) {
        double all;
        const double tokens = expected(r, source, n, &all);
        const double pass = pass_cost(r, n + 1) + n * r->draft_ns;
        const double cost = pass + (1.0 - all) * r->again_ns;
        const double gain = tokens * r->pass_ns[1] / cost;
        const double risk = pass + r->again_ns - r->pass_ns[1];

        if (gain > best_gain && r->gained_ns - risk > -allowance) {
            best_gain = gain;
            best = n;
        }
    }
    return best;
}

double speculate_gain(const struct speculate_costs *c, double rate)
{
    double best = SPECULATE_MIN_GAIN, tokens = 1, all = 1;
    bool pays = false;

    for (int n = 1; n <= SPECULATE_MAX; n++) {
        all *= rate;
        tokens += all;
        const double gain =
            tokens / (c->pass[n + 1] + n * c->guess + (1 - all) * c->wrong);

        if (gain >= best) {
            best = gain;
            pays = true;
        }
    }
    return pays ? best : 1;
}

/* ---- learning -------------------------------------------------------------------- */

/* The median of the last SPECULATE_RECENT; of two the lesser, since the first pass of a
 * width meets cold caches. */
static void learn_time(struct speculate_rule *r, int width, double ns)
{
    const int at = r->n_measured[width]++ % SPECULATE_RECENT;
    const int n = at == r->n_measured[width] - 1 ? at + 1 : SPECULATE_RECENT;
    double sorted[SPECULATE_RECENT];

    r->recent_ns[width][at] = ns;
    for (int i = 0; i < n; i++) {
        const double v = r->recent_ns[width][i];
        int to = i;

        for (; to > 0 && sorted[to - 1] > v; to--)
            sorted[to] = sorted[to - 1];
        sorted[to] = v;
    }
    r->pass_ns[width] = sorted[(n - 1) / 2];
}

static void learn_draft(struct speculate_rule *r, const struct speculate_step *s)
{
    if (s->draft_ns > 0.0 && !s->source) {
        const double each = s->draft_ns / s->n_drafted;

        r->draft_ns += (r->draft_ns > 0.0 ? NEWEST : 1.0) * (each - r->draft_ns);
    }
    speculate_rates_learn(&r->rates, s->source, s->n_drafted, s->n_accepted);
}

/* Time above this was an interruption by the machine, not a cost of the draft. */
static double without_interruption(const struct speculate_rule *r, int width, double ns)
{
    const double line = (1.0 + MAX_SLOPE * (width - 1)) * r->pass_ns[1];
    double most = r->pass_ns[width];

    if (r->n_measured[width] < 3 && line > 0.0 && line < most)
        most = line;
    return ns < OUTLIER * most ? ns : OUTLIER * most;
}

void speculate_rule_learn(struct speculate_rule *r, const struct speculate_step *s)
{
    const int width = s->n_drafted + 1;
    double pass_ns = s->pass_ns, again_ns = 0.0;

    if (s->again && r->n_measured[1]) {
        /* The time above the usual is a cost of the rejected draft before. */
        again_ns = pass_ns - pass_cost(r, width);
        again_ns = again_ns > 0.0 ? again_ns : 0.0;
        pass_ns -= again_ns;
        r->again_ns += (r->again_ns > 0.0 ? NEWEST : 1.0) * (again_ns - r->again_ns);
    } else {
        learn_time(r, width, pass_ns);
    }
    pass_ns = without_interruption(r, width, pass_ns);
    r->all_ns += pass_ns + again_ns + s->draft_ns;
    r->gained_ns -= again_ns + s->draft_ns;
    if (s->n_drafted) {
        r->gained_ns += (s->n_accepted + 1) * r->plain_ns - pass_ns;
        learn_draft(r, s);
    } else if (r->n_measured[1] <= N_PLAIN) {
        r->plain_ns = r->pass_ns[1];
    } else {
        const double weight = 1.0 / r->n_measured[1];

        r->plain_ns +=
            (weight > NEWEST_PLAIN ? weight : NEWEST_PLAIN) * (pass_ns - r->plain_ns);
    }
}

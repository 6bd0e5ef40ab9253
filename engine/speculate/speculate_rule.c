/* SPDX-License-Identifier: MIT
 *
 * speculate_rule.c - costs of passes, chances of guesses, and what follows from them
 */
#include "engine/speculate/speculate_rule.h"

#include <string.h>

/* What a guess must promise over plain decoding. */
#define WORTH_WHILE 1.05

/* What guesses may lose: of a plain pass at once, and of all time. */
#define LOSS_PASSES 0.2
#define LOSS_SHARE  0.008

/* How often guesses are right before that is known: enough for a trial of a narrow
 * pass. It counts as much as so many observations. */
#define FIRST_TRUST 0.5
#define FIRST_COUNT 2

/* What a column adds to a pass before that is known, and the most it is taken to add
 * where nothing as wide has been tried: kernels work on several columns at a time, so
 * that a dear second column says little about the eighth. Of a plain pass. */
#define FIRST_SLOPE 0.1
#define MOST_SLOPE  0.5

/* The least it adds, whatever single passes say. */
#define LEAST_SLOPE 0.01

/* Weight of the newest value in a moving mean. */
#define NEWEST 0.1

/* The same for what gains are counted against: a guess is chosen where plain passes
 * seem slow, so the same few passes would flatter it. */
#define SLOWLY 0.02

/* A pass that took so much longer than others of its width was interrupted. */
#define OUTLIER 1.3

/* How soon a draft that did not pay is worth another trial. */
#define FORGET 0.002

/* Passes that tell what plain decoding costs. */
#define N_PLAIN 3

void speculate_rule_begin(struct speculate_rule *r)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < SPECULATE_SOURCES; i++)
        r->right[i] = FIRST_TRUST;
}

/* ---- what is expected ----------------------------------------------------------- */

/* A line through plain decoding and the widest pass below that was measured. */
static double extrapolate(const struct speculate_rule *r, int width)
{
    int known = width - 1;
    double slope = FIRST_SLOPE * r->pass_ns[1];

    while (known > 1 && !r->n_measured[known])
        known--;
    if (known > 1)
        slope = (r->pass_ns[known] - r->pass_ns[1]) / (known - 1);
    if (slope > MOST_SLOPE * r->pass_ns[1])
        slope = MOST_SLOPE * r->pass_ns[1];
    if (slope < 0.0)
        slope = 0.0;
    return r->pass_ns[known] + slope * (width - known);
}

/* Nanoseconds of a pass. One that was measured once gets a second chance, since a width
 * that looks dear is not tried again. */
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
    line = (1.0 + LEAST_SLOPE * (width - 1)) * r->pass_ns[1];
    return cost > line ? cost : line;
}

/* The first token of a guess has its source's chances; where it is right the match is
 * one longer. */
static int source_of(int source, int i)
{
    const int longest = SPECULATE_SOURCES - 1;

    return !source || source + i < longest ? source + (source ? i : 0) : longest;
}

/* Tokens that come out of a pass with a guess of n; *all: the chance that all of it is
 * right. */
static double expected(const struct speculate_rule *r, int source, int n, double *all)
{
    double sum = 1.0;

    *all = 1.0;
    for (int i = 0; i < n; i++) {
        const int at = source_of(source, i);

        *all *= r->right[r->n_right[at] ? at : source];
        sum += *all;
    }
    return sum;
}

/* Widths are explored step by step. */
static int widest_to_try(const struct speculate_rule *r)
{
    int width = SPECULATE_MAX + 1;

    while (width > 1 && !r->n_measured[width])
        width--;
    return 2 * width;
}

int speculate_rule_length(const struct speculate_rule *r, int source, int n_most)
{
    const double room = LOSS_PASSES * r->pass_ns[1] + LOSS_SHARE * r->all_ns;
    const int most = widest_to_try(r) - 1;
    double best_gain = WORTH_WHILE;
    int best = 0;

    if (r->n_measured[1] < N_PLAIN)
        return 0;
    for (int n = 1; n <= n_most && n <= most; n++) {
        double all;
        const double tokens = expected(r, source, n, &all);
        const double pass = pass_cost(r, n + 1) + n * r->guess_ns;
        const double cost = pass + (1.0 - all) * r->again_ns;
        const double gain = tokens * r->pass_ns[1] / cost;
        const double risk = pass + r->again_ns - r->pass_ns[1];

        if (gain > best_gain && r->gained_ns - risk > -room) {
            best_gain = gain;
            best = n;
        }
    }
    return best;
}

/* ---- learning ------------------------------------------------------------------- */

/* The median of the last few; of two the lesser, since the first pass of a width meets
 * cold caches. */
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

/* A mean of all at first, then a moving one. */
static void learn_chance(struct speculate_rule *r, int source, bool right)
{
    const double weight = 1.0 / (++r->n_right[source] + FIRST_COUNT);

    r->right[source] +=
        (weight > NEWEST ? weight : NEWEST) * ((right ? 1.0 : 0.0) - r->right[source]);
}

static void learn_guess(struct speculate_rule *r, const struct speculate_step *s)
{
    if (s->guess_ns > 0.0 && !s->source) {
        const double each = s->guess_ns / s->n_guessed;

        r->guess_ns += (r->guess_ns > 0.0 ? NEWEST : 1.0) * (each - r->guess_ns);
    }
    for (int i = 0; i < s->n_guessed && i <= s->n_accepted; i++)
        learn_chance(r, source_of(s->source, i), i < s->n_accepted);
    if (s->n_accepted == s->n_guessed) {
        /* What might have come next was not asked: a longer match is no worse than
         * this one, or too little would be guessed for ever. */
        double *next = &r->right[source_of(s->source, s->n_guessed)];
        const double last = r->right[source_of(s->source, s->n_guessed - 1)];

        if (*next < last)
            *next += NEWEST * (last - *next);
    }
}

/* What is more was the machine's doing, not the guess's. */
static double credible(const struct speculate_rule *r, int width, double ns)
{
    const double line = (1.0 + MOST_SLOPE * (width - 1)) * r->pass_ns[1];
    double most = r->pass_ns[width];

    if (r->n_measured[width] < 3 && line > 0.0 && line < most)
        most = line;
    return ns < OUTLIER * most ? ns : OUTLIER * most;
}

void speculate_rule_learn(struct speculate_rule *r, const struct speculate_step *s)
{
    const int width = s->n_guessed + 1;
    double pass_ns = s->pass_ns, again_ns = 0.0;

    if (s->again && r->n_measured[1]) {
        /* What is more than usual is the guess's before it, which was wrong. */
        again_ns = pass_ns - pass_cost(r, width);
        again_ns = again_ns > 0.0 ? again_ns : 0.0;
        pass_ns -= again_ns;
        r->again_ns += (r->again_ns > 0.0 ? NEWEST : 1.0) * (again_ns - r->again_ns);
    } else {
        learn_time(r, width, pass_ns);
    }
    pass_ns = credible(r, width, pass_ns);
    r->all_ns += pass_ns + again_ns + s->guess_ns;
    r->gained_ns -= again_ns + s->guess_ns;
    if (s->n_guessed) {
        r->gained_ns += (s->n_accepted + 1) * r->plain_ns - pass_ns;
        learn_guess(r, s);
    } else if (r->n_measured[1] <= N_PLAIN) {
        r->plain_ns = r->pass_ns[1];
    } else {
        const double weight = 1.0 / r->n_measured[1];

        r->plain_ns += (weight > SLOWLY ? weight : SLOWLY) * (pass_ns - r->plain_ns);
    }
}

void speculate_rule_compare(struct speculate_rule *r, int source, bool right)
{
    learn_chance(r, source, right);
}

void speculate_rule_forget(struct speculate_rule *r, int source)
{
    r->right[source] += FORGET * (FIRST_TRUST - r->right[source]);
}

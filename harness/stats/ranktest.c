/* SPDX-License-Identifier: MIT
 *
 * ranktest.c - Mann-Whitney, Hodges-Lehmann, Holm
 *
 * Mann and Whitney 1947; Hodges and Lehmann 1963; Holm 1979. The exact distribution
 * counts, for every sum, how many choices of n_a of all ranks have it. Midranks of
 * ties are halves, so ranks are doubled: sums are integers up to N (N + 1).
 *
 * Wilcoxon 1945 for pairs: under the hypothesis each rank has either sign alike, so the
 * sum of the positive ones counts subsets of 1..n.
 */
#include "harness/stats/ranktest.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness/stats/stats.h"

#define EXACT_MAX  40 /* samples of both series; the counts stay below 2^53 */
#define MAX_SUM    (EXACT_MAX * (EXACT_MAX + 1))
#define Z_95       1.959964
#define TAIL_95    0.025
#define ROUND_SLIP 1e-9 /* of sums of counts that are divided by their total */

struct sample {
    double value;
    int of_a;
};

static int by_value(const void *a, const void *b)
{
    const double x = ((const struct sample *)a)->value;
    const double y = ((const struct sample *)b)->value;

    return (x > y) - (x < y);
}

/* Doubled midranks of s[n], sorted, into rank[]; the sum of t^3 - t over ties. */
static double midranks(const struct sample *s, size_t n, int *rank)
{
    double ties = 0;

    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && s[end].value == s[i].value; end++)
            ;
        const double t = (double)(end - i);

        for (size_t k = i; k < end; k++)
            rank[k] = (int)(i + 1 + end); /* twice the mean of i+1 .. end */
        ties += t * t * t - t;
    }
    return ties;
}

/* count[s]: choices of n_a among rank[n] whose sum is s, as a share of all. */
static void sum_distribution(const int *rank, size_t n, size_t n_a,
                             double count[MAX_SUM + 1])
{
    static _Thread_local double ways[EXACT_MAX / 2 + 1][MAX_SUM + 1];
    double total = 0;
    int top = 0; /* sum of the ranks so far */

    memset(ways, 0, (n_a + 1) * sizeof ways[0]);
    ways[0][0] = 1;
    for (size_t i = 0; i < n; i++) {
        top += rank[i];
        for (size_t k = n_a < i + 1 ? n_a : i + 1; k > 0; k--) {
            const double *without = ways[k - 1];
            double *with = ways[k] + rank[i];

            for (int s = 0; s <= top - rank[i]; s++)
                with[s] += without[s];
        }
    }
    for (int s = 0; s <= MAX_SUM; s++)
        total += ways[n_a][s];
    for (int s = 0; s <= MAX_SUM; s++)
        count[s] = ways[n_a][s] / total;
}

static double exact_p(const int *rank, size_t n, size_t n_a, int sum)
{
    double count[MAX_SUM + 1], p = 0;
    const double mean = (double)n_a * (double)(n + 1); /* of doubled ranks */

    sum_distribution(rank, n, n_a, count);
    for (int s = 0; s <= MAX_SUM; s++)
        if (fabs(s - mean) >= fabs(sum - mean))
            p += count[s];
    return p < 1 ? p : 1;
}

static double normal_p(double n_a, double n_b, double doubled_sum, double ties)
{
    const double n = n_a + n_b, mean = n_a * (n + 1) / 2;
    const double variance = n_a * n_b / 12 * (n + 1 - ties / (n * (n - 1)));
    const double off = fabs(doubled_sum / 2 - mean) - 0.5; /* continuity */

    if (!(variance > 0) || off <= 0)
        return 1;
    return erfc(off / sqrt(variance) / sqrt(2));
}

double rank_test(const double *a, size_t n_a, const double *b, size_t n_b)
{
    const size_t n = n_a + n_b;
    struct sample *s = malloc(n * sizeof *s + 1);
    int *rank = malloc(n * sizeof *rank + 1);
    double p = 1, sum = 0;

    if (s && rank && n_a && n_b) {
        const int a_is_shorter = n_a <= n_b;

        for (size_t i = 0; i < n; i++)
            s[i] = (struct sample){i < n_a ? a[i] : b[i - n_a], i < n_a};
        qsort(s, n, sizeof *s, by_value);
        const double ties = midranks(s, n, rank);
        for (size_t i = 0; i < n; i++)
            sum += s[i].of_a == a_is_shorter ? rank[i] : 0;
        const size_t n_short = a_is_shorter ? n_a : n_b;
        p = n <= EXACT_MAX
                ? exact_p(rank, n, n_short, (int)sum)
                : normal_p((double)n_short, (double)(n - n_short), sum, ties);
    }
    free(s);
    free(rank);
    return p;
}

double rank_test_min_p(size_t n_a, size_t n_b)
{
    double log_choices = 0;

    if (!n_a || !n_b)
        return 1;
    for (size_t i = 1; i <= n_a; i++)
        log_choices += log((double)(n_b + i)) - log((double)i);
    return fmin(1, 2 * exp(-log_choices));
}

/* How many of the sorted quotients to cut off at each end; 0: the series are too
 * short for an interval. U, the rank sum less its least value, is at most k - 1 with
 * a probability of 2.5 % or less. */
static size_t cut(size_t n_a, size_t n_b)
{
    const size_t n = n_a + n_b, n_short = n_a < n_b ? n_a : n_b;
    const double product = (double)n_a * (double)n_b;

    if (n > EXACT_MAX) {
        const double k =
            floor(product / 2 - Z_95 * sqrt(product * (double)(n + 1) / 12));

        return k > 0 ? (size_t)k : 0;
    }
    int rank[EXACT_MAX];
    double count[MAX_SUM + 1], below = 0;
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        rank[i] = 2 * (int)(i + 1);
    sum_distribution(rank, n, n_short, count);
    for (int s = (int)(n_short * (n_short + 1)); s <= MAX_SUM; s += 2) {
        below += count[s];
        if (below > TAIL_95 + ROUND_SLIP)
            break;
        k++;
    }
    return k;
}

enum status rank_ratio(struct rank_ratio *r, const double *a, size_t n_a,
                       const double *b, size_t n_b, struct err *err)
{
    const size_t n = n_a * n_b;
    double *quotient = malloc(n * sizeof *quotient);

    if (!quotient)
        return err_set(err, ST_NO_MEMORY, "no memory to compare %zu samples",
                       n_a + n_b);
    for (size_t i = 0; i < n_a; i++)
        for (size_t j = 0; j < n_b; j++)
            quotient[i * n_b + j] = b[j] / a[i];
    stats_sort(quotient, n);
    const size_t k = cut(n_a, n_b);
    r->ratio = stats_quantile_sorted(quotient, n, 0.5);
    r->lo = k ? quotient[k - 1] : 0;
    r->hi = k ? quotient[n - k] : INFINITY;
    free(quotient);
    return ST_OK;
}

static double signs_variance(double n)
{
    return n * (n + 1) * (2 * n + 1) / 24;
}

/* Ranks 1..n without ties, each with either sign alike: tails[n][s] is the probability
 * that the positive ones sum to s or more. The sum is symmetric, so the probability of
 * s or less stands at n (n + 1) / 2 - s. */
static double tails[EXACT_MAX + 1][MAX_SUM / 2 + 1];
static pthread_once_t tails_once = PTHREAD_ONCE_INIT;

static void fill_tails(void)
{
    static double count[MAX_SUM / 2 + 1];

    count[0] = 1;
    for (int n = 0; n <= EXACT_MAX; n++) {
        double above = 0;

        for (int s = n * (n + 1) / 2; s >= 0 && n > 0; s--)
            count[s] = (count[s] + (s >= n ? count[s - n] : 0)) / 2;
        for (int s = n * (n + 1) / 2; s >= 0; s--)
            tails[n][s] = above += count[s];
    }
}

static const double *untied_tails(size_t n)
{
    pthread_once(&tails_once, fill_tails);
    return tails[n];
}

static void untied_signs(size_t n, int doubled_sum, double *above, double *below)
{
    const size_t sum = (size_t)doubled_sum / 2;
    const double *tail = untied_tails(n);

    *above = tail[sum];
    *below = tail[n * (n + 1) / 2 - sum];
}

/* count[s]: the probability that those of the doubled rank[n] that get a plus sum to s;
 * n <= EXACT_MAX. */
static void sign_distribution(const int *rank, size_t n, double count[MAX_SUM + 1])
{
    int most = 0;

    memset(count, 0, (MAX_SUM + 1) * sizeof *count);
    count[0] = 1;
    for (size_t i = 0; i < n; i++) {
        most += rank[i];
        for (int s = most; s >= 0; s--)
            count[s] = (count[s] + (s >= rank[i] ? count[s - rank[i]] : 0)) / 2;
    }
}

static void exact_signs(const int *rank, size_t n, int sum, double *above,
                        double *below)
{
    double count[MAX_SUM + 1];

    sign_distribution(rank, n, count);
    for (int s = 0; s <= MAX_SUM; s++) {
        *above += s >= sum ? count[s] : 0;
        *below += s <= sum ? count[s] : 0;
    }
}

static void normal_signs(double n, double ties, double sum, double *above,
                         double *below)
{
    const double off = sum - n * (n + 1) / 4;
    const double scale = sqrt(2 * (signs_variance(n) - ties / 48));

    *above = erfc((off - 0.5) / scale) / 2; /* continuity */
    *below = erfc((-off - 0.5) / scale) / 2;
}

void rank_signs(const double *v, size_t n, double *above, double *below)
{
    struct sample *s = malloc(n * sizeof *s + 1);
    int *rank = malloc(n * sizeof *rank + 1), sum = 0;
    size_t n_left = 0;

    *above = *below = s && rank ? 0 : 1;
    for (size_t i = 0; s && rank && i < n; i++)
        if (v[i] != 0)
            s[n_left++] = (struct sample){fabs(v[i]), v[i] > 0};
    if (s && rank) {
        qsort(s, n_left, sizeof *s, by_value);
        const double ties = midranks(s, n_left, rank);
        for (size_t i = 0; i < n_left; i++)
            sum += s[i].of_a ? rank[i] : 0;
        if (n_left <= EXACT_MAX && ties == 0)
            untied_signs(n_left, sum, above, below);
        else if (n_left <= EXACT_MAX)
            exact_signs(rank, n_left, sum, above, below);
        else
            normal_signs((double)n_left, ties, sum / 2.0, above, below);
        *above = fmin(1, *above);
        *below = fmin(1, *below);
    }
    free(s);
    free(rank);
}

/* The smallest sum of positive ranks that n values have with a probability of 2.5 % or
 * less; one more than the largest sum: none. */
static size_t signs_cut(size_t n)
{
    const size_t largest = n * (n + 1) / 2;
    size_t sum = (largest + 1) / 2;

    for (; sum <= largest; sum++) {
        double above, below;

        if (n <= EXACT_MAX)
            above = untied_tails(n)[sum];
        else
            normal_signs((double)n, 0, (double)sum, &above, &below);
        if (above <= TAIL_95 + ROUND_SLIP)
            break;
    }
    return sum;
}

enum status rank_middle(struct rank_middle *r, const double *v, size_t n,
                        struct err *err)
{
    const size_t n_means = n * (n + 1) / 2, cut = signs_cut(n);
    double *mean = malloc(n_means * sizeof *mean);
    size_t at = 0;

    if (!mean)
        return err_set(err, ST_NO_MEMORY, "no memory to compare %zu launches", n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            mean[at++] = (v[i] + v[j]) / 2;
    stats_sort(mean, n_means);
    /* About a value, as many means of two lie above it as the positive ranks sum to. */
    r->middle = stats_quantile_sorted(mean, n_means, 0.5);
    r->lo = cut <= n_means ? mean[n_means - cut] : NAN;
    r->hi = cut <= n_means ? mean[cut - 1] : NAN;
    free(mean);
    return ST_OK;
}

struct place {
    double p;
    size_t at;
};

static int by_p(const void *a, const void *b)
{
    const double x = ((const struct place *)a)->p, y = ((const struct place *)b)->p;

    return (x > y) - (x < y);
}

enum status rank_holm(double *p, size_t n, struct err *err)
{
    struct place *order = malloc(n * sizeof *order + 1);
    double least = 0;

    if (!order)
        return err_set(err, ST_NO_MEMORY, "no memory to compare %zu rows", n);
    for (size_t i = 0; i < n; i++)
        order[i] = (struct place){p[i], i};
    qsort(order, n, sizeof *order, by_p);
    for (size_t i = 0; i < n; i++) {
        least = fmax(least, order[i].p * (double)(n - i));
        p[order[i].at] = fmin(1, least);
    }
    free(order);
    return ST_OK;
}

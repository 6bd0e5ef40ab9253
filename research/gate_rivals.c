/* SPDX-License-Identifier: MIT
 *
 * gate_rivals.c - the other tools' rules
 */
#include "research/gate_rivals.h"

#include <assert.h>
#include <math.h>

#include "engine/base/random.h"
#include "harness/stats/ranktest.h"

#define LEVEL       0.05
#define PLAIN       1.02
#define ACTION      2.0
#define THRESHOLD   0.01 /* of criterion's noise_threshold */
#define N_RESAMPLES 400

static const char *const names[RIVAL_N] = {
    [RIVAL_PLAIN] = "plain 2 %",
    [RIVAL_ACTION] = "github-action-benchmark",
    [RIVAL_T_TEST] = "t test",
    [RIVAL_CRITERION] = "criterion",
    [RIVAL_MANN_WHITNEY] = "Mann-Whitney",
};

const char *rival_name(enum rival rival)
{
    return names[rival];
}

static double mean(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

struct moments {
    double mean, variance;
};

static struct moments moments(const double *v, size_t n)
{
    struct moments m = {mean(v, n), 0};

    for (size_t i = 0; i < n; i++)
        m.variance += (v[i] - m.mean) * (v[i] - m.mean);
    m.variance /= (double)(n - 1);
    return m;
}

/* Welch's t of b over a; 0 where neither varies. */
static double welch(const double *a, const double *b, size_t n)
{
    const struct moments x = moments(a, n), y = moments(b, n);
    const double error = sqrt((x.variance + y.variance) / (double)n);

    return error > 0 ? (y.mean - x.mean) / error : 0;
}

/* Student's 97.5 % quantile, within 0.001 from 8 degrees of freedom on (Abramowitz and
 * Stegun 26.7.5). */
static double student_975(double v)
{
    const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;

    return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

static bool t_test(const double *a, const double *b, size_t n)
{
    const struct moments x = moments(a, n), y = moments(b, n);
    const double u = x.variance / (double)n, w = y.variance / (double)n;
    const double freedom = (u + w) * (u + w) * (double)(n - 1) / (u * u + w * w);

    return u + w > 0 && welch(a, b, n) > student_975(freedom);
}

static void resample(double *out, const double *a, const double *b, size_t n,
                     uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        const size_t at = (random_bits(seed) >> 32) * (b ? 2 * n : n) >> 32;

        out[i] = at < n ? a[at] : b[at - n];
    }
}

#define MOST 256

/* Under the hypothesis both series are drawn from the pool; the change of the mean is
 * drawn from each one alone, and 2.5 % of its draws may lie below the threshold. Either
 * count ends the test as soon as it is too high. */
static bool criterion(const double *a, const double *b, size_t n, uint64_t seed)
{
    const double t = fabs(welch(a, b, n));
    double x[MOST], y[MOST];
    size_t n_beyond = 0, n_small = 0;

    assert(n <= MOST);
    for (int i = 0; i < N_RESAMPLES && (double)n_beyond < LEVEL * N_RESAMPLES; i++) {
        resample(x, a, b, n, &seed);
        resample(y, a, b, n, &seed);
        n_beyond += fabs(welch(x, y, n)) >= t;
    }
    if ((double)n_beyond >= LEVEL * N_RESAMPLES)
        return false;
    for (int i = 0; i < N_RESAMPLES && (double)n_small < LEVEL / 2 * N_RESAMPLES; i++) {
        resample(x, a, NULL, n, &seed);
        resample(y, b, NULL, n, &seed);
        n_small += mean(y, n) / mean(x, n) - 1 <= THRESHOLD;
    }
    return (double)n_small < LEVEL / 2 * N_RESAMPLES;
}

bool rival_alarm(enum rival rival, const double *a, const double *b, size_t n,
                 uint64_t seed)
{
    const double ratio = mean(b, n) / mean(a, n);

    switch (rival) {
    case RIVAL_PLAIN:
        return ratio > PLAIN;
    case RIVAL_ACTION:
        return ratio > ACTION;
    case RIVAL_T_TEST:
        return t_test(a, b, n);
    case RIVAL_CRITERION:
        return criterion(a, b, n, seed);
    case RIVAL_MANN_WHITNEY:
        return ratio > 1 && rank_test(a, n, b, n) < LEVEL;
    case RIVAL_N:
        break;
    }
    return false;
}

/* SPDX-License-Identifier: MIT
 *
 * test_delta.c - recurrent layers' kernels against their equations in double precision
 */
#include "tests/support/vecops.h"

#include <stdlib.h>

/* ---- conv_silu ------------------------------------------------------------------- */

/* A sum of n_taps products, and SiLU, whose slope is below 1.1 and which takes a few
 * roundings. */
static void conv_once(const struct kern_row *row, size_t n, size_t n_taps,
                      size_t n_cols, float size, bool biased, uint64_t *seed)
{
    const size_t n_rows = n_cols + n_taps - 1, stride = n + 3;
    float *w = floats(n * n_taps), *y = floats((n_cols - 1) * stride + n);
    float *bias = floats(n), **x = malloc(n_rows * sizeof *x);

    assert_non_null(x);
    fill(w, n * n_taps, 1, seed);
    fill(bias, n, size, seed);
    for (size_t r = 0; r < n_rows; r++) {
        x[r] = floats(n);
        fill(x[r], n, size, seed);
    }
    for (size_t i = 0; i < (n_cols - 1) * stride + n; i++)
        y[i] = 12345;
    row->fn.conv_silu(n, n_taps, w, biased ? bias : NULL, n_cols,
                      (const float *const *)x, y, stride);
    for (size_t j = 0; j < n_cols; j++) {
        for (size_t i = 0; i < n; i++) {
            double sum = biased ? bias[i] : 0, sizes = fabs(sum);

            for (size_t t = 0; t < n_taps; t++) {
                const double term = (double)w[i * n_taps + t] * x[j + t][i];

                sum += term;
                sizes += fabs(term);
            }
            check(row->name, i, y[j * stride + i], sum / (1 + exp(-sum)),
                  EPS * (1.1 * (double)(n_taps + 2) * sizes + 8 * fabs(sum)) + 1e-35);
        }
        for (size_t i = n; i < stride && j + 1 < n_cols; i++)
            assert_true(y[j * stride + i] == 12345);
    }
    for (size_t r = 0; r < n_rows; r++)
        free_floats(x[r], n);
    free(x);
    free_floats(w, n * n_taps);
    free_floats(bias, n);
    free_floats(y, (n_cols - 1) * stride + n);
}

static void conv_silu(void **state)
{
    static const size_t sizes[] = {1, 5, 15, 16, 17, 33, 64, 100, 128};
    uint64_t seed = 31;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_conv_silu, &at));)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (size_t n_cols = 1; n_cols < 8; n_cols += 3) {
                conv_once(row, sizes[s], 4, n_cols, 3, false, &seed);
                conv_once(row, sizes[s], 4, n_cols, 60, false, &seed); /* exp's ends */
                conv_once(row, sizes[s], 4, n_cols, 3, true, &seed);
                conv_once(row, sizes[s], 1, n_cols, 3, true, &seed);
                conv_once(row, sizes[s], 7, n_cols, 3, false, &seed);
                conv_once(row, sizes[s], 7, n_cols, 3, true, &seed);
            }
}

/* ---- short_conv ------------------------------------------------------------------ */

/* Products stay where their first factors were; each takes one rounding more. */
static void short_once(const struct kern_row *row, size_t n, size_t n_taps,
                       size_t n_cols, uint64_t *seed)
{
    const size_t n_rows = n_cols + n_taps - 1, stride = n + 5, y_stride = n + 3;
    const size_t n_x = (n_cols - 1) * stride + n, n_y = (n_cols - 1) * y_stride + n;
    float *w = floats(n * n_taps), *x = floats(n_x), *f = floats(n_x), *y = floats(n_y);
    float **u = malloc(n_rows * sizeof *u);
    double *products = malloc(n_rows * n * sizeof *products);

    assert_true(u && products);
    fill(w, n * n_taps, 1, seed);
    fill(x, n_x, 2, seed);
    fill(f, n_x, 2, seed);
    for (size_t r = 0; r < n_rows; r++) {
        u[r] = floats(n);
        fill(u[r], n, 3, seed);
        for (size_t i = 0; i < n; i++)
            products[r * n + i] =
                u[r][i] *
                (r + 1 < n_taps ? 1.0 : (double)x[(r + 1 - n_taps) * stride + i]);
    }
    for (size_t i = 0; i < n_y; i++)
        y[i] = 12345;
    row->fn.short_conv(n, n_taps, w, n_cols, u, x, f, stride, y, y_stride);
    for (size_t j = 0; j < n_cols; j++) {
        for (size_t i = 0; i < n; i++) {
            double sum = 0, sizes = 0;

            for (size_t t = 0; t < n_taps; t++) {
                const double term =
                    (double)w[i * n_taps + t] * products[(j + t) * n + i];

                sum += term;
                sizes += fabs(term);
            }
            check(row->name, i, y[j * y_stride + i], (double)f[j * stride + i] * sum,
                  EPS * (double)(n_taps + 2) * sizes * fabs(f[j * stride + i]) + 1e-35);
        }
        for (size_t i = n; i < y_stride && j + 1 < n_cols; i++)
            assert_true(y[j * y_stride + i] == 12345);
    }
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t i = 0; i < n; i++)
            check(row->name, i, u[r][i], products[r * n + i],
                  EPS * fabs(products[r * n + i]));
        free_floats(u[r], n);
    }
    free(u);
    free(products);
    free_floats(w, n * n_taps);
    free_floats(x, n_x);
    free_floats(f, n_x);
    free_floats(y, n_y);
}

static void short_conv(void **state)
{
    static const size_t sizes[] = {1, 5, 8, 15, 16, 17, 33, 64, 100};
    uint64_t seed = 33;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_short_conv, &at));)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (size_t n_cols = 1; n_cols < 9; n_cols += 1 + n_cols)
                for (size_t n_taps = 1; n_taps < 7; n_taps++)
                    short_once(row, sizes[s], n_taps, n_cols, &seed);
}

/* ---- delta_rule ------------------------------------------------------------------ */

/* How much of the state tokens keep. */
enum decay { KEEPS_ALL, KEEPS_MOST, KEEPS_SOME, KEEPS_NOTHING, N_DECAYS };

struct delta {
    size_t d, n, stride, out_stride;
    float *s, *q, *k, *v, *keep, *rate, *out;
    double *state; /* of the reference */
};

static float between_0_and_1(uint64_t *seed)
{
    return 0.5F * (1.0F + test_random_float(seed));
}

static float *unit_rows(size_t n, size_t d, size_t stride, uint64_t *seed)
{
    float *p = floats((n - 1) * stride + d);

    fill(p, (n - 1) * stride + d, 1, seed);
    for (size_t j = 0; j < n; j++) {
        double sum = 0;

        for (size_t i = 0; i < d; i++)
            sum += (double)p[j * stride + i] * p[j * stride + i];
        for (size_t i = 0; i < d; i++)
            p[j * stride + i] = (float)(p[j * stride + i] / sqrt(sum + 1e-12));
    }
    return p;
}

static void delta_open(struct delta *t, size_t d, size_t n, enum decay decay,
                       uint64_t *seed)
{
    t->d = d;
    t->n = n;
    t->stride = d + 5;
    t->out_stride = d + 3;
    t->s = floats(d * d);
    fill(t->s, d * d, 1, seed);
    t->q = unit_rows(n, d, t->stride, seed);
    t->k = unit_rows(n, d, t->stride, seed);
    /* Neighbours alike, so that what one token learns is read by the next. */
    for (size_t j = 1; j < n; j += 2)
        memcpy(t->k + j * t->stride, t->k + (j - 1) * t->stride, d * sizeof *t->k);
    t->v = floats((n - 1) * t->stride + d);
    fill(t->v, (n - 1) * t->stride + d, 2, seed);
    t->keep = floats(n);
    t->rate = floats(n);
    for (size_t j = 0; j < n; j++) {
        const float x = between_0_and_1(seed);

        t->keep[j] = decay == KEEPS_ALL    ? 1
                     : decay == KEEPS_MOST ? 1 - 0.01F * x
                     : decay == KEEPS_SOME ? x
                                           : (j % 5 ? 1e-30F : 0);
        t->rate[j] = j % 4 == 3 ? 1 : between_0_and_1(seed);
    }
    t->out = floats((n - 1) * t->out_stride + d);
    for (size_t i = 0; i < (n - 1) * t->out_stride + d; i++)
        t->out[i] = 12345;
    t->state = malloc(d * d * sizeof *t->state);
    assert_non_null(t->state);
    for (size_t i = 0; i < d * d; i++)
        t->state[i] = t->s[i];
}

static void delta_close(struct delta *t)
{
    free_floats(t->s, t->d * t->d);
    free_floats(t->q, (t->n - 1) * t->stride + t->d);
    free_floats(t->k, (t->n - 1) * t->stride + t->d);
    free_floats(t->v, (t->n - 1) * t->stride + t->d);
    free_floats(t->keep, t->n);
    free_floats(t->rate, t->n);
    free_floats(t->out, (t->n - 1) * t->out_stride + t->d);
    free(t->state);
}

/* A token reads with |k| = 1 and learns by at most what it reads, so that errors of the
 * state do not grow: each token adds those of a sum of d products to an element. */
static void delta_check(const struct kern_row *row, struct delta *t)
{
    const size_t d = t->d;
    double most = 3;

    for (size_t i = 0; i < d * d; i++)
        most = fmax(most, fabs(t->state[i]) * sqrt((double)d));
    const double bound = EPS * most * ((double)d / 4 + 16 + (double)t->n);

    for (size_t j = 0; j < t->n; j++) {
        const float *q = t->q + j * t->stride, *k = t->k + j * t->stride;

        for (size_t e = 0; e < d; e++) {
            double *s = t->state + e, error = t->v[j * t->stride + e], out = 0;

            for (size_t i = 0; i < d; i++) {
                s[i * d] *= t->keep[j];
                error -= k[i] * s[i * d];
            }
            for (size_t i = 0; i < d; i++) {
                s[i * d] += k[i] * (t->rate[j] * error);
                out += q[i] * s[i * d];
            }
            check(row->name, j * d + e, t->out[j * t->out_stride + e], out, bound);
        }
        for (size_t e = d; e < t->out_stride && j + 1 < t->n; e++)
            assert_true(t->out[j * t->out_stride + e] == 12345);
    }
    for (size_t i = 0; i < d * d; i++)
        check(row->name, i, t->s[i], t->state[i], bound);
}

static void delta_rule(void **state)
{
    static const size_t sizes[] = {1, 7, 16, 31, 48, 64, 100, 128};
    static const size_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 33, 70};
    const unsigned thin = test_thin();
    unsigned shape = 0;
    uint64_t seed = 32;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_delta_rule, &at));)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
                for (int decay = 0; decay < N_DECAYS; decay++) {
                    struct delta t;

                    if (shape++ % thin != 0)
                        continue;
                    delta_open(&t, sizes[i], lengths[l], (enum decay)decay, &seed);
                    row->fn.delta_rule(t.d, t.n, t.s, t.q, t.k, t.v, t.stride, t.keep,
                                       t.rate, t.out, t.out_stride);
                    delta_check(row, &t);
                    delta_close(&t);
                }
}

/* ---- ssm_scan -------------------------------------------------------------------- */

/* The state and each output against sums in double precision; an element of the state
 * takes a rounding for each token, and an output those of d_key products. */
static void scan_once(const struct kern_row *row, size_t d_key, size_t d, size_t n,
                      enum decay decay, uint64_t *seed)
{
    const size_t key_stride = d_key + 5, x_stride = d + 2, out_stride = d + 3;
    const size_t n_keys = (n - 1) * key_stride + d_key, n_x = (n - 1) * x_stride + d;
    const size_t n_out = (n - 1) * out_stride + d;
    float *s = floats(d_key * d), *b = floats(n_keys), *c = floats(n_keys);
    float *x = floats(n_x), *keep = floats(n), *rate = floats(n), *out = floats(n_out);
    double *exact = malloc(2 * d_key * d * sizeof *exact), *sizes = exact + d_key * d;
    const float skip = 0.75F;

    assert_non_null(exact);
    fill(s, d_key * d, 1, seed);
    fill(b, n_keys, 1, seed);
    fill(c, n_keys, 1, seed);
    fill(x, n_x, 2, seed);
    for (size_t j = 0; j < n; j++) {
        const float at = between_0_and_1(seed);

        keep[j] = decay == KEEPS_ALL    ? 1
                  : decay == KEEPS_MOST ? 1 - 0.01F * at
                  : decay == KEEPS_SOME ? at
                                        : (j % 5 ? 1e-30F : 0);
        rate[j] = 2 * between_0_and_1(seed);
    }
    for (size_t i = 0; i < n_out; i++)
        out[i] = 12345;
    for (size_t i = 0; i < d_key * d; i++) {
        exact[i] = s[i];
        sizes[i] = fabs(exact[i]);
    }
    row->fn.ssm_scan(d_key, d, n, s, b, c, key_stride, x, x_stride, keep, rate, skip,
                     out, out_stride);
    for (size_t j = 0; j < n; j++)
        for (size_t e = 0; e < d; e++) {
            const double v = (double)rate[j] * x[j * x_stride + e];
            double y = (double)skip * x[j * x_stride + e], all = fabs(y);

            for (size_t i = 0; i < d_key; i++) {
                const double key = b[j * key_stride + i], q = c[j * key_stride + i];
                const size_t at = i * d + e;

                exact[at] = keep[j] * exact[at] + key * v;
                sizes[at] = keep[j] * sizes[at] + fabs(key * v);
                y += q * exact[at];
                all += fabs(q) * sizes[at];
            }
            check(row->name, j * d + e, out[j * out_stride + e], y,
                  EPS * all * ((double)d_key / 8 + 8 + (double)j) + 1e-35);
            if (e + 1 == d && j + 1 < n)
                assert_true(out[j * out_stride + d] == 12345);
        }
    for (size_t i = 0; i < d_key * d; i++)
        check(row->name, i, s[i], exact[i], EPS * sizes[i] * (4 + (double)n) + 1e-35);
    free_floats(s, d_key * d);
    free_floats(b, n_keys);
    free_floats(c, n_keys);
    free_floats(x, n_x);
    free_floats(keep, n);
    free_floats(rate, n);
    free_floats(out, n_out);
    free(exact);
}

static void ssm_scan(void **state)
{
    static const size_t sizes[][2] = {{1, 1},   {7, 16},   {16, 7},   {31, 33},
                                      {64, 64}, {128, 64}, {100, 80}, {256, 64}};
    static const size_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 15, 33, 70};
    const unsigned thin = test_thin();
    unsigned shape = 0;
    uint64_t seed = 34;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_ssm_scan, &at));)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
                for (int decay = 0; decay < N_DECAYS; decay++)
                    if (shape++ % thin == 0)
                        scan_once(row, sizes[i][0], sizes[i][1], lengths[l],
                                  (enum decay)decay, &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_silu),
        cmocka_unit_test(short_conv),
        cmocka_unit_test(delta_rule),
        cmocka_unit_test(ssm_scan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

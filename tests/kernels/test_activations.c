/* SPDX-License-Identifier: MIT
 *
 * test_activations.c - every quantize_act row against the layout's definition
 *
 * One test per row of the registry. All levels must write the same bits as the
 * scalar row, and those must be what activations.h says.
 */
#include "tests/support/acts.h"

#include <float.h>
#include <math.h>

/* ---- activation quantisation ----------------------------------------------------- */

/* Where the arrays of a layout lie and how many bytes of each are data. */
static void compare_columns(int act, size_t k, const char *a, const char *b)
{
    if (act == KERN_ACT_f32) {
        assert_memory_equal(a, b, k * sizeof(float));
        return;
    }
    assert_memory_equal(a, b, k);
    if (act == KERN_ACT_q8_32) {
        assert_memory_equal(act_q8_32_d(a, k), act_q8_32_d(b, k),
                            k / 32 * sizeof(float));
        assert_memory_equal(act_q8_32_s(a, k), act_q8_32_s(b, k),
                            k / 32 * sizeof(float));
        assert_memory_equal(act_q8_32_sums(a, k), act_q8_32_sums(b, k),
                            k / 16 * sizeof(int16_t));
    } else {
        assert_memory_equal(act_q8_256_d(a, k), act_q8_256_d(b, k),
                            k / 256 * sizeof(float));
        assert_memory_equal(act_q8_256_sums(a, k), act_q8_256_sums(b, k),
                            k / 16 * sizeof(int16_t));
    }
}

/* d is max / 127, every value is within half a step, the sums are what they say. */
static void check_block(int act, const float *x, const char *column, size_t k, size_t b)
{
    const size_t block = act_block(act);
    const int8_t *q = act_q(column) + b * block;
    const float d =
        act == KERN_ACT_q8_32 ? act_q8_32_d(column, k)[b] : act_q8_256_d(column, k)[b];
    float largest = 0;
    int sum = 0;

    for (size_t i = 0; i < block; i++) {
        largest = fmaxf(largest, fabsf(x[b * block + i]));
        sum += q[i];
    }
    assert_true(d == (largest < ACT_TINY ? 0 : largest / 127));
    for (size_t i = 0; i < block; i++) {
        const double error = fabs((double)x[b * block + i] - (double)d * q[i]);

        assert_in_range(q[i] + 127, 0, 254);
        assert_true(error <= (double)d * (0.5 + 1e-4) + (double)ACT_TINY);
    }
    if (act == KERN_ACT_q8_32) {
        assert_int_equal(act_q8_32_sums(column, k)[2 * b] +
                             act_q8_32_sums(column, k)[2 * b + 1],
                         sum);
        sum = 0;
        for (size_t i = 0; i < 16; i++)
            sum += q[i];
        assert_int_equal(act_q8_32_sums(column, k)[2 * b], sum);
        sum = 0;
        for (size_t i = 0; i < 32; i++)
            sum += q[i];
        assert_true(act_q8_32_s(column, k)[b] == d * (float)sum);
    }
    for (size_t j = 0; act == KERN_ACT_q8_256 && j < block / 16; j++) {
        sum = 0;
        for (size_t i = 0; i < 16; i++)
            sum += q[j * 16 + i];
        assert_int_equal(act_q8_256_sums(column, k)[b * 16 + j], sum);
    }
}

static void quantize_column(const struct kern_row *row, const float *source, size_t k)
{
    const struct kern_row *scalar =
        kern_best(KERN_OP_quantize_act, row->what, 1u << KERN_ISA_scalar);
    const size_t bytes = kern_act_bytes((enum kern_act)row->what, k);
    struct buffer x = buffer_new(k * sizeof(float));
    struct buffer got = buffer_new(bytes), want = buffer_new(bytes);

    memcpy(x.p, source, k * sizeof(float));
    memset(got.p, 0x55, bytes);
    row->fn.quantize_act(x.p, got.p, k);
    scalar->fn.quantize_act(x.p, want.p, k);
    compare_columns(row->what, k, got.p, want.p);
    if (row->what == KERN_ACT_f32)
        assert_memory_equal(got.p, source, k * sizeof(float));
    else
        for (size_t b = 0; b < k / act_block(row->what); b++)
            check_block(row->what, source, got.p, k, b);
    buffer_free(x);
    buffer_free(got);
    buffer_free(want);
}

/* A value that is not finite spoils its own block, visibly, and no other. */
static void spoilt_block(const struct kern_row *row, float bad, size_t at)
{
    const size_t block = act_block(row->what), k = 2 * block;
    struct buffer got = buffer_new(kern_act_bytes((enum kern_act)row->what, k));
    float *x = floats_new(k);
    const float *d =
        row->what == KERN_ACT_q8_32 ? act_q8_32_d(got.p, k) : act_q8_256_d(got.p, k);

    for (size_t i = 0; i < k; i++)
        x[i] = 1;
    x[at] = bad;
    row->fn.quantize_act(x, got.p, k);
    assert_false(isfinite(d[at / block]));
    assert_true(d[1 - at / block] == 1.0f / 127);
    for (size_t i = 0; i < block; i++)
        assert_int_equal(act_q(got.p)[at / block * block + i], 0);
    buffer_free(got);
    free(x);
}

static void quantize_act_row(void **state)
{
    static const size_t blocks[] = {1, 2, 3, 7, 8, 16, 31};
    const struct kern_row *row = *state;
    const size_t block = act_block(row->what);
    uint64_t seed = 7;

    if (unusable(row))
        skip();
    for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++)
        for (int kind = 0; kind < N_ACT_KINDS; kind++)
            for (int repeat = 0; repeat < 5; repeat++) {
                const size_t k = blocks[b] * block;
                float *source = floats_new(k);

                fill_column((enum act_kind)kind, source, k, &seed);
                if (repeat == 1)
                    source[k / 2] = FLT_MAX;
                quantize_column(row, source, k);
                free(source);
            }
    for (size_t at = 0; block > 1 && at < 2 * block; at++) {
        spoilt_block(row, NAN, at);
        spoilt_block(row, -NAN, at);
        spoilt_block(row, INFINITY, at);
        spoilt_block(row, -INFINITY, at);
    }
}

/* ---- one test per row ------------------------------------------------------------ */

int main(void)
{
    size_t n_rows, n = 0;
    const struct kern_row *rows = kern_rows(&n_rows);
    struct CMUnitTest *tests = calloc(n_rows, sizeof(*tests));
    int failed;

    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].op == KERN_OP_quantize_act)
            tests[n++] = (struct CMUnitTest){.name = rows[i].name,
                                             .test_func = quantize_act_row,
                                             .initial_state = (void *)&rows[i]};
    failed = _cmocka_run_group_tests("activations", tests, n, NULL, NULL);
    free(tests);
    return failed;
}

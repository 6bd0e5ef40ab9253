/* SPDX-License-Identifier: MIT
 *
 * test_to_kv.c - every to_kv row: rounding, what is too large, what is no number; all
 * levels give the same bytes
 */
#include "tests/support/vecops.h"

enum { BLOCK = 32, N = 6 * BLOCK };

static const float edge[] = {
    0,
    -0.0f,
    1,
    65504,
    65519.9f,
    65520,
    -65520,
    1e30f,
    -1e30f,
    INFINITY,
    -INFINITY,
    0x1p-24f,
    0x1p-25f,
    0x1.8p-25f,
    0x1.002p0,
    0x1.006p0,
    6e-8f,
    -3e-5f,
    1e-40f,
    -1e-45f,
    NAN,
    0x1.01p0,
    0x1.03p0,
    0x1.fep127f,
    0x1.fefffep127f,
    0x1.ffp127f,
    -0x1.fffffep127f,
};
enum { N_EDGE = sizeof edge / sizeof edge[0] };

/* Of all sizes; with_edges: every other value is one of the edges. */
static void make(float *x, size_t n, bool with_edges, uint64_t *seed)
{
    const int size = (int)(test_random(seed) % 40) - 24;

    for (size_t i = 0; i < n; i++)
        x[i] = with_edges && i % 2 ? edge[test_random(seed) % N_EDGE]
                                   : ldexpf(test_random_float(seed), size);
}

static float limited(float x, float most)
{
    return x > most ? most : x < -most ? -most : x;
}

/* x as 16 bits, and back. */
static uint16_t rounded(int type, float x)
{
    return type == KERN_KV_bf16 ? bf16_from_f32(limited(x, KERN_BF16_MAX))
                                : half_from_f32(limited(x, KERN_HALF_MAX));
}

static float back_from(int type, uint16_t x)
{
    return type == KERN_KV_bf16 ? bf16_to_f32(x) : half_to_f32(x);
}

static void floats_are_rounded_and_limited(void **state)
{
    uint64_t seed = 7;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_to_kv, &at));)
        for (size_t n = 1; n < 70 && !kern_kv_is_quantised((enum kern_kv)row->what);
             n += 1 + n / 4) {
            float *src = floats(n);
            uint16_t *dst = guard_alloc(n * sizeof *dst);

            make(src, n, true, &seed);
            row->fn.to_kv(dst, src, n);
            for (size_t i = 0; i < n; i++) {
                const float back = back_from(row->what, dst[i]);

                if (isnan(src[i]) ? !isnan(back) : dst[i] != rounded(row->what, src[i]))
                    fail_msg("%s: %g becomes %g", row->name, (double)src[i],
                             (double)back);
            }
            free_floats(src, n);
            guard_free(dst, n * sizeof *dst);
        }
}

/* A step is what the largest magnitude makes it; no value is off by more than half of
 * it and what the scale lost as a half. Of 16 steps the last one is missing on one
 * side. */
static void check_block(const struct kern_row *row, const float *x, const float *back)
{
    const bool few = row->what == KERN_KV_q4_0;
    double largest = 0;

    for (size_t i = 0; i < BLOCK; i++)
        largest = isnan(x[i]) ? largest : fmax(largest, fabs((double)x[i]));

    const double step = fmin(largest / (few ? 8 : 127), 65504);
    const double top = step * (few ? 8 : 127);

    for (size_t i = 0; i < BLOCK; i++) {
        const double want = isnan(x[i]) ? 0 : fmax(-top, fmin(top, (double)x[i]));
        const double half = few && fabs(want) > 7 * step ? 1.01 * step : 0.5 * step;

        check(row->name, i, (double)back[i], want,
              half + fabs(want) * 0x1p-10 + (few ? 8 : 127) * 0x1p-24);
    }
}

static void blocks_are_rounded_and_limited(void **state)
{
    uint64_t seed = 9;
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_to_kv, &at));)
        for (int round = 0;
             round < 200 && kern_kv_is_quantised((enum kern_kv)row->what); round++) {
            const enum kern_format fmt = kern_kv_format((enum kern_kv)row->what);
            const size_t bytes = kern_format_bytes(fmt, N);
            float *src = floats(N), back[N];
            uint8_t *got = guard_alloc(bytes), want[N * 2];

            make(src, N, round % 2, &seed);
            row->fn.to_kv(got, src, N);
            kern_best(KERN_OP_to_kv, row->what, 1u << KERN_ISA_scalar)
                ->fn.to_kv(want, src, N);
            assert_memory_equal(got, want, bytes);
            kern_best(KERN_OP_dequantize, (int)fmt, 1)->fn.dequantize(got, back, N);
            for (size_t b = 0; b < N; b += BLOCK)
                check_block(row, src + b, back + b);
            free_floats(src, N);
            guard_free(got, bytes);
        }
}

/* A position of infinite values that is not seen yet has the weight 0. */
static void infinite_values_spoil_no_other_position(void **state)
{
    size_t at = 0;

    (void)state;
    for (const struct kern_row *row; (row = next_row(KERN_OP_to_kv, &at));) {
        uint16_t values[2 * BLOCK];
        float x[2 * BLOCK], out[BLOCK] = {0}, p[KERN_PANEL_ROWS] = {1, 0};

        if (kern_kv_is_quantised((enum kern_kv)row->what))
            continue;
        /* of bf16, the positions of a pair lie side by side */
        for (size_t i = 0; i < 2 * BLOCK; i++) {
            const bool pairs = row->what == KERN_KV_bf16;
            const size_t position = pairs ? i % 2 : i / BLOCK;
            const size_t element = pairs ? i / 2 : i % BLOCK;

            x[i] = position == 0 ? (float)element : element % 2 ? INFINITY : -3e38f;
        }
        row->fn.to_kv(values, x, 2 * BLOCK);
        kern_best(KERN_OP_attn_mix, row->what, isa_usable())
            ->fn.attn_mix(2, BLOCK, values, 1, p, KERN_PANEL_ROWS, out, BLOCK);
        for (size_t i = 0; i < BLOCK; i++)
            check(row->name, i, (double)out[i], (double)i, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_rounded_and_limited),
        cmocka_unit_test(blocks_are_rounded_and_limited),
        cmocka_unit_test(infinite_values_spoil_no_other_position),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

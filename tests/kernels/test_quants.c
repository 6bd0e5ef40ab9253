/* SPDX-License-Identifier: MIT
 *
 * test_quants.c - quantise and dequantise rows against reference data
 *
 * tests/data/quants/index.csv lists the formats and their files. Dequantisation
 * is held to the bit; a quantiser may find other quants than the reference, but
 * not worse ones.
 */
#include "tests/support/test.h"

#include <float.h>
#include <math.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

#define N 7680 /* values in every file */

struct reference {
    char type[16], quantised[32], dequantised[32];
    unsigned ggml_id, block_elems, block_bytes, n;
    double rmse;
};

static void read_file(const char *name, void *dst, size_t bytes)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), TEST_DATA "quants/%s", name);
    f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("cannot open %s", path);
    assert_int_equal(fread(dst, 1, bytes, f), bytes);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

/* The index's rows; returns how many. */
static size_t read_index(struct reference *refs, size_t capacity)
{
    FILE *f = fopen(TEST_DATA "quants/index.csv", "r");
    char line[256];
    size_t n = 0;

    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f)); /* the header */
    while (fgets(line, sizeof(line), f) != NULL) {
        struct reference *r = &refs[n++];

        assert_true(n <= capacity);
        assert_int_equal(sscanf(line, "%15[^,],%u,%u,%u,%u,%31[^,],%31[^,],%lf",
                                r->type, &r->ggml_id, &r->block_elems, &r->block_bytes,
                                &r->n, r->quantised, r->dequantised, &r->rmse),
                         8);
        assert_int_equal(r->n, N);
    }
    fclose(f);
    return n;
}

static void every_format_has_reference_data(void **state)
{
    struct reference refs[KERN_N_FMT];
    const size_t n = read_index(refs, KERN_N_FMT);

    (void)state;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const struct kern_format_info *info = kern_format_info((enum kern_format)fmt);
        size_t i = 0;

        while (i < n && strcmp(refs[i].type, info->name) != 0)
            i++;
        if (fmt == KERN_FMT_f32)
            continue; /* source.f32 itself */
        if (i == n)
            fail_msg("tests/data/quants/index.csv has no row for %s", info->name);
        assert_int_equal(refs[i].ggml_id, info->ggml_id);
        assert_int_equal(refs[i].block_elems, info->block_elems);
        assert_int_equal(refs[i].block_bytes, info->block_bytes);
    }
}

/* The formats with small scales of their own kind: random blocks with every code and
 * every scale. */
static void every_code_and_scale_is_dequantised_to_the_bit(void **state)
{
    static const char *const types[] = {"mxfp4", "nvfp4", "q1_0", "q2_0"};
    enum { N_CODES = 8192 };
    static float want[N_CODES], got[N_CODES];

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const enum kern_format fmt = kern_format_by_name(types[i]);
        const size_t bytes = kern_format_bytes(fmt, N_CODES);
        void *blocks = guard_alloc(bytes);
        char name[64];

        snprintf(name, sizeof name, "codes/%s.bin", types[i]);
        read_file(name, blocks, bytes);
        snprintf(name, sizeof name, "codes/%s.f32", types[i]);
        read_file(name, want, sizeof(want));
        kern_best(KERN_OP_dequantize, (int)fmt, 1u << KERN_ISA_scalar)
            ->fn.dequantize(blocks, got, N_CODES);
        for (size_t e = 0; e < N_CODES; e++)
            if (got[e] != want[e])
                fail_msg("%s: value %zu is %.9g, should be %.9g", types[i], e,
                         (double)got[e], (double)want[e]);
        guard_free(blocks, bytes);
    }
}

static void dequantises_to_the_bit(void **state)
{
    static float want[N], got[N];
    struct reference refs[KERN_N_FMT];
    const size_t n = read_index(refs, KERN_N_FMT);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const enum kern_format fmt = kern_format_by_name(refs[i].type);
        const size_t bytes = kern_format_bytes(fmt, N);
        const struct kern_row *row =
            kern_best(KERN_OP_dequantize, (int)fmt, 1u << KERN_ISA_scalar);
        void *blocks = guard_alloc(bytes);

        assert_non_null(row);
        read_file(refs[i].quantised, blocks, bytes);
        read_file(refs[i].dequantised, want, sizeof(want));
        row->fn.dequantize(blocks, got, N);
        for (size_t e = 0; e < N; e++)
            if (float_bits(got[e]) != float_bits(want[e]))
                fail_msg("%s: value %zu is %.9g, should be %.9g", refs[i].type, e,
                         (double)got[e], (double)want[e]);
        guard_free(blocks, bytes);
    }
}

/* n values of random blocks, with all that their bits may say: the same bits at every
 * level, but for NaN, which has many. */
static void same_values(const struct kern_row *row, size_t n, uint64_t *seed)
{
    const size_t bytes = kern_format_bytes((enum kern_format)row->what, n);
    unsigned char *blocks = guard_alloc(bytes);
    float *got = guard_alloc(n * sizeof *got), *want = malloc(n * sizeof *want);

    assert_non_null(want);
    for (size_t i = 0; i < bytes; i++)
        blocks[i] = (unsigned char)test_random(seed);
    if (row->what == KERN_FMT_f16 && n == 65536) /* each of them */
        for (size_t i = 0; i < bytes; i++)
            blocks[i] = (unsigned char)(i % 2 ? i / 2 >> 8 : i / 2);
    kern_best(KERN_OP_dequantize, row->what, 1u << KERN_ISA_scalar)
        ->fn.dequantize(blocks, want, n);
    row->fn.dequantize(blocks, got, n);
    for (size_t i = 0; i < n; i++)
        if (float_bits(got[i]) != float_bits(want[i]) &&
            !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s: value %zu of %zu is %.9g, should be %.9g", row->name, i, n,
                     (double)got[i], (double)want[i]);
    guard_free(blocks, bytes);
    guard_free(got, n * sizeof *got);
    free(want);
}

static void dequantises_alike_at_every_level(void **state)
{
    size_t n_rows;
    const struct kern_row *rows = kern_rows(&n_rows);
    uint64_t seed = 12;

    (void)state;
    for (size_t i = 0; i < n_rows; i++) {
        const size_t block =
            rows[i].op != KERN_OP_dequantize
                ? 0
                : kern_format_info((enum kern_format)rows[i].what)->block_elems;

        if (block == 0 || !(isa_usable() >> rows[i].isa & 1))
            continue;
        for (size_t n_blocks = 1; n_blocks <= 35; n_blocks++)
            same_values(&rows[i], n_blocks * block, &seed);
        same_values(&rows[i], 65536, &seed);
    }
}

static const struct kern_row *quantiser(enum kern_format fmt, uint32_t isa_mask)
{
    return kern_best(KERN_OP_quantize, (int)fmt, isa_mask);
}

/* Halves have no choice but in NaN's payload. */
static void halves_are_rounded_alike_at_every_level(void **state)
{
    static const float edge[] = {
        0,      -0.0f,  INFINITY, -INFINITY,  NAN,      65504,       65519.996f,
        65520,  -65536, 0x1p-14f, 0x1p-24f,   0x1p-25f, 0x1.8p-25f,  0x1p-26f,
        1e-42f, 3e38f,  2049,     2050.9999f, 2051,     0x1.ffcp-15f};
    enum { N_EDGE = sizeof edge / sizeof edge[0], MOST = 1000 };
    uint64_t seed = 13;
    size_t n_rows;
    const struct kern_row *rows = kern_rows(&n_rows);

    (void)state;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t n = 1;
             n <= MOST && rows[i].op == KERN_OP_quantize &&
             rows[i].what == KERN_FMT_f16 && isa_usable() >> rows[i].isa & 1;
             n = n < 40 ? n + 1 : n + 320) {
            float *src = guard_alloc(n * sizeof *src);
            uint16_t *got = guard_alloc(n * sizeof *got), want[MOST];

            for (size_t e = 0; e < n; e++)
                src[e] = e < N_EDGE ? edge[(e + n) % N_EDGE]
                                    : float_from_bits((uint32_t)test_random(&seed));
            quantiser(KERN_FMT_f16, 1u << KERN_ISA_scalar)
                ->fn.quantize(src, NULL, want, n);
            rows[i].fn.quantize(src, NULL, got, n);
            for (size_t e = 0; e < n; e++)
                if (got[e] != want[e] && !isnan(src[e]))
                    fail_msg("%s: %.9g is %#x, should be %#x", rows[i].name,
                             (double)src[e], got[e], want[e]);
            guard_free(src, n * sizeof *src);
            guard_free(got, n * sizeof *got);
        }
}

static void quantises_no_worse_than_the_reference(void **state)
{
    static float source[N], got[N];
    struct reference refs[KERN_N_FMT];
    const size_t n = read_index(refs, KERN_N_FMT);

    (void)state;
    read_file("source.f32", source, sizeof(source));
    for (size_t i = 0; i < n; i++) {
        const enum kern_format fmt = kern_format_by_name(refs[i].type);
        const size_t bytes = kern_format_bytes(fmt, N);
        const uint32_t scalar = 1u << KERN_ISA_scalar;
        void *blocks = guard_alloc(bytes);
        const struct kern_row *rows[2] = {quantiser(fmt, scalar),
                                          quantiser(fmt, isa_usable())};

        for (int level = 0; level < (rows[0] == rows[1] ? 1 : 2); level++) {
            double squares = 0;

            rows[level]->fn.quantize(source, NULL, blocks, N);
            kern_best(KERN_OP_dequantize, (int)fmt, scalar)
                ->fn.dequantize(blocks, got, N);
            for (size_t e = 0; e < N; e++)
                squares += pow((double)got[e] - (double)source[e], 2);
            /* 1e-6: the index's figure has nine digits and was added up in float */
            if (!(sqrt(squares / N) <= refs[i].rmse * (1 + 1e-6)))
                fail_msg("%s: root mean square error %.9g, the reference has %.9g",
                         rows[level]->name, sqrt(squares / N), refs[i].rmse);
        }
        guard_free(blocks, bytes);
    }
}

/* Sum of w e^2 after quantising source[N] with the importances `with`. */
static double weighed_error(const struct kern_row *row, const float *source,
                            const float *with, const float *w)
{
    static float got[N];
    const size_t bytes = kern_format_bytes((enum kern_format)row->what, N);
    void *blocks = guard_alloc(bytes);
    double sum = 0;

    row->fn.quantize(source, with, blocks, N);
    kern_best(KERN_OP_dequantize, row->what, 1u << KERN_ISA_scalar)
        ->fn.dequantize(blocks, got, N);
    for (size_t e = 0; e < N; e++)
        sum += (double)w[e] * pow((double)got[e] - (double)source[e], 2);
    guard_free(blocks, bytes);
    return sum;
}

/* Importances that differ by a factor of twenty take at least some of the error away
 * where they are high; equal ones of any size change nothing. The formats below take
 * none: their steps are fine. */
static void errors_count_where_importances_are_high(void **state)
{
    static float source[N], w[N], equal[N];
    uint64_t seed = 11;

    (void)state;
    read_file("source.f32", source, sizeof(source));
    for (size_t e = 0; e < N; e++) {
        w[e] = expf(1.5f * test_random_float(&seed));
        equal[e] = 37;
    }
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const struct kern_row *rows[2] = {
            quantiser((enum kern_format)fmt, 1u << KERN_ISA_scalar),
            quantiser((enum kern_format)fmt, isa_usable())};
        const bool takes = kern_format_info((enum kern_format)fmt)->block_elems > 1 &&
                           fmt != KERN_FMT_q8_0;

        for (int level = 0; level < (rows[0] == rows[1] ? 1 : 2); level++) {
            const double none = weighed_error(rows[level], source, NULL, w);
            const double with = weighed_error(rows[level], source, w, w);
            const double even = weighed_error(rows[level], source, NULL, equal);
            const double same = weighed_error(rows[level], source, equal, equal);
            /* mxfp4's scale is a power of two, of which little can be chosen, and
             * q1_0 is a scale and signs */
            const double share = !takes ? 1
                                 : fmt == KERN_FMT_mxfp4 || fmt == KERN_FMT_q1_0
                                     ? 0.9995
                                     : 0.99;

            if (!(with <= none * share))
                fail_msg("%s: weighed error %.6g with importances, %.6g without",
                         rows[level]->name, with, none);
            if (!(fabs(same - even) <= 0.002 * even))
                fail_msg("%s: equal importances give %.6g, none %.6g",
                         rows[level]->name, same, even);
        }
    }
}

/* Blocks that leave a quantiser nothing to divide by, or too much. Values that a
 * format can hold exactly must come back, all others must stay finite. */
static void survives_odd_blocks(void **state)
{
    static const float fills[] = {0,     -0.0f, 1e-45f, -1e-40f, 1e-30f, 6e-8f,
                                  1e-5f, 1,     -1,     1000,    -6e4f};
    float source[512], got[512];

    (void)state;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++) {
            const size_t bytes = kern_format_bytes((enum kern_format)fmt, 512);
            const uint32_t scalar = 1u << KERN_ISA_scalar;
            /* mxfp4's scale is a power of two: 1.25 is 1 or 1.5; nvfp4's has three
             * bits behind it, and ends at 448 */
            const float share = fmt == KERN_FMT_mxfp4   ? 0.2f
                                : fmt == KERN_FMT_nvfp4 ? 0.04f
                                                        : 0.01f;
            void *blocks = guard_alloc(bytes);

            for (int e = 0; e < 512; e++)
                source[e] = fills[i];
            if (fmt == KERN_FMT_nvfp4 && fabsf(fills[i]) > 6 * 448) {
                guard_free(blocks, bytes);
                continue;
            }
            quantiser((enum kern_format)fmt, i % 2 ? scalar : isa_usable())
                ->fn.quantize(source, NULL, blocks, 512);
            kern_best(KERN_OP_dequantize, fmt, scalar)->fn.dequantize(blocks, got, 512);
            for (int e = 0; e < 512; e++)
                if (!(fabsf(got[e] - fills[i]) <= fabsf(fills[i]) * share + 1e-5f))
                    fail_msg("%s: a block of %g comes back as %g",
                             kern_format_info((enum kern_format)fmt)->name,
                             (double)fills[i], (double)got[e]);
            guard_free(blocks, bytes);
        }
}

/* Weights that no f16 scale reaches, and no numbers at all, beside ordinary ones. */
static void stays_finite_whatever_comes(void **state)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, 1e10f};
    float source[512], got[512];
    uint64_t seed = 3;

    (void)state;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const size_t bytes = kern_format_bytes((enum kern_format)fmt, 512);
        const uint32_t scalar = 1u << KERN_ISA_scalar;

        if (kern_format_info((enum kern_format)fmt)->block_elems == 1)
            continue; /* these hold infinities */
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
            void *blocks = guard_alloc(bytes);

            for (int e = 0; e < 512; e++)
                source[e] = e % 37 == 5 || e >= 480 ? odd[i] : test_random_float(&seed);
            quantiser((enum kern_format)fmt, i % 2 ? scalar : isa_usable())
                ->fn.quantize(source, NULL, blocks, 512);
            kern_best(KERN_OP_dequantize, fmt, scalar)->fn.dequantize(blocks, got, 512);
            for (int e = 0; e < 512; e++)
                if (!isfinite(got[e]))
                    fail_msg("%s: beside %g, %g comes back as %g",
                             kern_format_info((enum kern_format)fmt)->name,
                             (double)odd[i], (double)source[e], (double)got[e]);
            guard_free(blocks, bytes);
        }
    }
}

/* The ends of mxfp4's scale, from the definition of E8M0. */
static void mxfp4_scales_reach_both_ends(void **state)
{
    static const struct {
        uint8_t e;
        float half, six; /* E2M1 codes 1 and 7 */
    } cases[] = {
        {0, 0x1p-128f, 0x1.8p-125f}, {1, 0x1p-127f, 0x1.8p-124f},
        {2, 0x1p-126f, 0x1.8p-123f}, {127, 0.5f, 6},
        {252, 0x1p124f, 0x1.8p127f}, {254, 0x1p126f, INFINITY},
    };
    uint8_t block[17];
    float got[32];

    (void)state;
    memset(block, 0x71, sizeof(block)); /* low codes 1, high codes 7 */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        block[0] = cases[i].e;
        kern_dequantize_mxfp4__scalar(block, got, 32);
        for (int e = 0; e < 32; e++)
            assert_true(got[e] == (e < 16 ? cases[i].half : cases[i].six));
    }
    block[0] = 255;
    kern_dequantize_mxfp4__scalar(block, got, 32);
    for (int e = 0; e < 32; e++)
        assert_true(isnan(got[e]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_has_reference_data),
        cmocka_unit_test(dequantises_to_the_bit),
        cmocka_unit_test(every_code_and_scale_is_dequantised_to_the_bit),
        cmocka_unit_test(dequantises_alike_at_every_level),
        cmocka_unit_test(halves_are_rounded_alike_at_every_level),
        cmocka_unit_test(quantises_no_worse_than_the_reference),
        cmocka_unit_test(errors_count_where_importances_are_high),
        cmocka_unit_test(survives_odd_blocks),
        cmocka_unit_test(stays_finite_whatever_comes),
        cmocka_unit_test(mxfp4_scales_reach_both_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

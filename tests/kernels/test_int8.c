/* SPDX-License-Identifier: MIT
 *
 * test_int8.c - products of requantised weights: every gemm_int8 and gemm_x16_int8 row
 *
 * What a row makes of each weight shows in its products with columns of one value each.
 * A weight may be off by KERN_INT8_OFF * d, d = the largest of its 256 / 127. Products
 * with other columns are then those of the weights as they were made: sums within
 * 256 are exact, so that only a few float operations per 256 round. Every buffer ends
 * at a guard page; weights start at odd addresses, rows, columns and results have gaps.
 *
 * In panels the rows that exist are whole panels. Panels are made by the `pack` row of
 * the level. Tiles must give what vectors of their width give, bit for bit.
 *
 * SLM_TEST_TRAP: see tests/support/traps/traps.h.
 */
#include "tests/support/blocks.h"

#include <float.h>

#include "tests/support/traps/traps.h"

#define UNTOUCHED 12345.678f

struct shape {
    size_t n_rows, k;
    size_t w_pad, x_pad, y_pad; /* gaps: bytes, bytes, floats */
};

struct weights {
    const struct kern_row *row;
    struct shape s;
    struct buffer w; /* as the row takes them */
    size_t stride;
    float *plain; /* dequantised, [n_rows][k] */
    float *made;  /* as the row requantises them */
};

struct columns {
    struct buffer x;
    size_t n, stride;
};

static struct weights weights_new(const struct kern_row *row, const struct shape *s,
                                  enum weight_kind kind, uint64_t *seed)
{
    const struct pool *pool = pool_of(row->what);
    const size_t row_bytes = kern_format_bytes(pool->f.id, s->k);
    struct weights w = {.row = row, .s = *s, .stride = row_bytes + s->w_pad};

    w.w = buffer_new((s->n_rows - 1) * w.stride + row_bytes);
    w.plain = floats_new(s->n_rows * s->k);
    w.made = floats_new(s->n_rows * s->k);
    memset(w.w.p, 0xff, w.w.bytes);
    for (size_t i = 0; i < s->n_rows; i++) {
        uint8_t *at = (uint8_t *)w.w.p + i * w.stride;

        fill_row(pool, kind, at, s->k, seed);
        pool->f.dequantize(at, w.plain + i * s->k, s->k);
    }
    if (row->op == KERN_OP_gemm_x16_int8) {
        const struct kern_row *pack =
            kern_best(KERN_OP_pack, row->what, isa_included(row->isa));
        const struct buffer panels = buffer_new(s->n_rows * row_bytes);

        for (size_t i = 0; i < s->n_rows; i += KERN_PANEL_ROWS)
            pack->fn.pack(s->k, (const char *)w.w.p + i * w.stride, w.stride,
                          (char *)panels.p + i * row_bytes);
        buffer_free(w.w);
        w.w = panels;
    }
    return w;
}

static void weights_free(struct weights *w)
{
    buffer_free(w->w);
    free(w->plain);
    free(w->made);
}

static struct columns columns_new(const struct shape *s, size_t n)
{
    struct columns c = {.n = n,
                        .stride = kern_act_bytes(KERN_ACT_q8_256, s->k) + s->x_pad};

    c.x = buffer_new((n - 1) * c.stride + kern_act_bytes(KERN_ACT_q8_256, s->k));
    memset(c.x.p, 0xff, c.x.bytes); /* padding and gaps: not numbers */
    return c;
}

static void set_column(const struct columns *c, const struct shape *s, size_t j,
                       const float *values)
{
    kern_best(KERN_OP_quantize_act, KERN_ACT_q8_256, 1u << KERN_ISA_scalar)
        ->fn.quantize_act(values, (char *)c->x.p + j * c->stride, s->k);
}

/* y[n columns][n_rows + y_pad], to be freed. */
static struct buffer multiply_by(const struct weights *w, const struct columns *c)
{
    const struct shape *s = &w->s;
    const size_t y_stride = s->n_rows + s->y_pad;
    const struct buffer y =
        buffer_new(((c->n - 1) * y_stride + s->n_rows) * sizeof(float));

    for (size_t i = 0; i < y.bytes / sizeof(float); i++)
        ((float *)y.p)[i] = UNTOUCHED;
    if (w->row->op == KERN_OP_gemm_int8)
        w->row->fn.gemm_int8(s->n_rows, s->k, w->w.p, w->stride, c->n, c->x.p,
                             c->stride, y.p, y_stride);
    else
        w->row->fn.gemm_x16_int8(
            s->n_rows / KERN_PANEL_ROWS, s->k, w->w.p, c->n, c->x.p, c->stride, y.p,
            y_stride, (struct kern_prefetch){.distance = s->x_pad ? 1024 : 0});
    if (trap_holds_tiles())
        fail_msg("%s leaves tiles configured", w->row->name);
    for (size_t j = 0; j + 1 < c->n; j++)
        for (size_t i = s->n_rows; i < y_stride; i++)
            if (((float *)y.p)[j * y_stride + i] != UNTOUCHED)
                fail_msg("%s writes behind column %zu", w->row->name, j);
    return y;
}

static struct buffer multiply(const struct weights *w, const struct columns *c)
{
    const struct buffer y = multiply_by(w, c);
    struct weights same = *w;

    if (w->row->isa == KERN_ISA_amx_int8) {
        same.row =
            kern_best(w->row->op, w->row->what, isa_included(KERN_ISA_avx512vnni));
        assert_non_null(same.row);

        const struct buffer want = multiply_by(&same, c);

        if (memcmp(y.p, want.p, y.bytes) != 0)
            fail_msg("%s, %zu rows of %zu, %zu columns: not what %s gives",
                     w->row->name, w->s.n_rows, w->s.k, c->n, same.row->name);
        buffer_free(want);
    }
    return y;
}

/* Fills in w->made and compares it with w->plain. */
static void check_weights(struct weights *w, int kind)
{
    const struct shape *s = &w->s;
    const struct columns one = columns_new(s, s->k);
    float *values = floats_new(s->k);
    struct buffer y;

    for (size_t e = 0; e < s->k; e++) {
        values[e] = 1;
        set_column(&one, s, e, values);
        values[e] = 0;
    }
    y = multiply(w, &one);
    for (size_t i = 0; i < s->n_rows; i++)
        for (size_t b = 0; b < s->k; b += 256) {
            const float *plain = w->plain + i * s->k + b;
            double largest = 0, bound;

            for (size_t e = 0; e < 256; e++)
                largest = fmax(largest, fabs((double)plain[e]));
            /* and the rounding of floats on the way, of terms that may be larger than
             * the weights; zeros for the tiniest weights */
            bound = largest * (KERN_INT8_OFF / 127 + 0x1p-18) + 0x1p-112;
            for (size_t e = 0; e < 256; e++) {
                const float made = ((float *)y.p)[(b + e) * (s->n_rows + s->y_pad) + i];

                w->made[i * s->k + b + e] = made;
                if (!(fabs((double)made - (double)plain[e]) <= bound))
                    fail_msg(
                        "%s, weights %d, %zu rows of %zu: weight %zu of row %zu is "
                        "%.9g, should be %.9g within %.3g",
                        w->row->name, kind, s->n_rows, s->k, b + e, i, (double)made,
                        (double)plain[e], bound);
            }
        }
    free(values);
    buffer_free(y);
    buffer_free(one.x);
}

static void check_products(const struct weights *w, size_t n_cols, enum act_kind acts,
                           uint64_t *seed)
{
    const struct shape *s = &w->s;
    const struct columns c = columns_new(s, n_cols);
    float *values = floats_new(s->k);
    struct buffer y;

    for (size_t j = 0; j < n_cols; j++) {
        fill_column(acts, values, s->k, seed);
        set_column(&c, s, j, values);
    }
    y = multiply(w, &c);
    for (size_t j = 0; j < n_cols; j++)
        for (size_t i = 0; i < s->n_rows; i++) {
            const double is = (double)((float *)y.p)[j * (s->n_rows + s->y_pad) + i];
            double want = 0, terms = 0;

            for (size_t e = 0; e < s->k; e++) {
                const double term =
                    (double)w->made[i * s->k + e] *
                    act_value(KERN_ACT_q8_256, (char *)c.x.p + j * c.stride, s->k, e);

                want += term;
                terms += fabs(term);
            }
            /* three operations for each 256; made weights are rounded, too */
            if (!(fabs(is - want) <= ((double)s->k / 256 + 8) * 0x1p-22 * terms +
                                         (double)s->k * (double)FLT_MIN))
                fail_msg(
                    "%s, activations %d, %zu rows of %zu, %zu columns: y[%zu][%zu] "
                    "is %.9g, should be %.9g",
                    w->row->name, (int)acts, s->n_rows, s->k, n_cols, j, i, is, want);
        }
    free(values);
    buffer_free(y);
    buffer_free(c.x);
}

/* By tiles: n_cols columns, compared with vectors alone. */
static void check_tiles(const struct kern_row *row, bool panels, size_t k,
                        size_t n_cols, uint64_t *seed)
{
    const struct shape s = {.n_rows = panels ? 16 : 3, .k = k, .y_pad = 1};
    struct weights w = weights_new(row, &s, WEIGHTS_RANDOM, seed);
    const struct columns c = columns_new(&s, n_cols);
    float *values = floats_new(s.k);

    for (size_t j = 0; j < c.n; j++) {
        fill_column(ACTS_RANDOM, values, s.k, seed);
        set_column(&c, &s, j, values);
    }
    buffer_free(multiply(&w, &c)); /* compares it with vectors */
    free(values);
    buffer_free(c.x);
    weights_free(&w);
}

/* Odd numbers of panels, single rows, one column, columns that do not fill a group, and
 * more than share requantised weights; rows longer than the columns that are prepared
 * together are. */
static void int8_row(void **state)
{
    static const size_t in_file[] = {1, 5, 17, 33}, in_panels[] = {16, 48, 32, 80};
    static const size_t n_cols[] = {1, 3, 8, 13, 37};
    static const size_t tile_cols[] = {9, 10, 11, 12, 14, 15, 16, 17, 31, 32, 33};
    const struct kern_row *row = *state;
    const bool panels = row->op == KERN_OP_gemm_x16_int8;
    const bool few = trapping() && test_thin() > 1; /* tiles in software are slow */
    const unsigned step = few ? 11 : test_thin() > 1 ? 5 : 1;
    uint64_t seed = 3;

    if (unusable(row) && !trapping())
        skip();
    trap_set();
    for (unsigned mix = 0; mix < 4 * N_WEIGHT_KINDS; mix += step) {
        const enum weight_kind kind = (enum weight_kind)(mix % N_WEIGHT_KINDS);
        const struct shape s = {.n_rows = (panels ? in_panels : in_file)[mix % 4],
                                .k = mix % 3 ? 256 * (mix % 3) : 768,
                                .w_pad = mix % 4 * 3,
                                .x_pad = mix % 3 * 4,
                                .y_pad = mix % 2 * 5};
        struct weights w = weights_new(row, &s, kind, &seed);

        check_weights(&w, (int)kind);
        check_products(&w, n_cols[mix % 5], (enum act_kind)(mix % N_ACT_KINDS), &seed);
        weights_free(&w);
    }
    if (!few) {
        const struct shape s = {.n_rows = panels ? 48 : 19, .k = 1280, .y_pad = 3};
        struct weights w = weights_new(row, &s, WEIGHTS_RANDOM, &seed);

        check_weights(&w, (int)WEIGHTS_RANDOM);
        check_products(&w, test_thin() > 1 ? 133 : 530, ACTS_RANDOM, &seed);
        weights_free(&w);
    }
    if (row->isa != KERN_ISA_amx_int8)
        return;
    check_tiles(row, panels, 18 * 256, 250, &seed); /* not taken as a whole */
    for (size_t i = 0; i < sizeof tile_cols / sizeof tile_cols[0]; i++)
        check_tiles(row, panels, 512, tile_cols[i], &seed);
}

/* Weights that are no numbers are found in what comes out. */
static void not_a_number_stays(void **state)
{
    const struct kern_row *row =
        kern_best(KERN_OP_gemm_int8, KERN_FMT_q8_0, isa_usable());
    const struct shape s = {.n_rows = 1, .k = 256};
    const size_t block_bytes = kern_format_bytes(KERN_FMT_q8_0, 32);
    const uint16_t bad[] = {0x7c00, 0x7e00}; /* infinity, NaN: one block in eight */
    uint64_t seed = 4;

    (void)state;
    if (row == NULL)
        skip();
    for (size_t i = 0; i < 2; i++)
        for (size_t b = 0; b < 8; b++) {
            struct weights w = weights_new(row, &s, WEIGHTS_RANDOM, &seed);
            const struct columns c = columns_new(&s, 1);
            float *values = floats_new(s.k);
            struct buffer y;

            memcpy((char *)w.w.p + b * block_bytes, &bad[i], sizeof(bad[i]));
            fill_column(ACTS_RANDOM, values, s.k, &seed);
            set_column(&c, &s, 0, values);
            y = multiply(&w, &c);
            assert_false(isfinite(((float *)y.p)[0]));
            buffer_free(y);
            buffer_free(c.x);
            free(values);
            weights_free(&w);
        }
}

int main(void)
{
    size_t n_rows, n = 0;
    const struct kern_row *rows = kern_rows(&n_rows);
    const char *why = trapping() ? trap_refused() : NULL;
    struct CMUnitTest *tests;
    int failed;

    if (why != NULL) {
        printf("skipped: %s\n", why);
        return 0;
    }
    tests = calloc(n_rows + 1, sizeof(*tests));
    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < n_rows; i++)
        if ((rows[i].op == KERN_OP_gemm_int8 || rows[i].op == KERN_OP_gemm_x16_int8) &&
            !trap_leaves_out(rows[i].isa))
            tests[n++] = (struct CMUnitTest){.name = rows[i].name,
                                             .test_func = int8_row,
                                             .initial_state = (void *)&rows[i]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(not_a_number_stays);
    failed = _cmocka_run_group_tests("int8", tests, n, NULL, NULL);
    free(tests);
    free_pools();
    return failed;
}

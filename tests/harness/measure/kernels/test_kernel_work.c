/* SPDX-License-Identifier: MIT
 *
 * test_kernel_work.c - what is timed is checked, and a wrong kernel is refused
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/measure/kernels/kernel_parts.h"
#include "harness/measure/kernels/kernel_work.h"

static uint32_t usable_rows(const struct kern_row **rows, size_t *n)
{
    *rows = kern_rows(n);
    return isa_usable();
}

static void every_row_passes_its_check(void **state)
{
    const struct kern_row *rows;
    size_t n;
    const uint32_t usable = usable_rows(&rows, &n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        const struct kernel_product *p = kernel_product(rows[i].op);

        if ((usable >> rows[i].isa & 1) == 0)
            continue;
        if (p)
            parts_check_product(&rows[i], p->has_columns ? 5 : 1, NULL, &err);
        else
            parts_check_other(&rows[i], &err);
        if (err.code != ST_OK)
            fail_msg("%s: %s", rows[i].name, err.msg);
    }
}

static struct kern_row scalar_row(enum kern_op op, int what)
{
    return *kern_best(op, what, 1u << KERN_ISA_scalar);
}

/* Right but for one result in its last row. */
static void gemv_off_by_little(size_t n_rows, size_t k, const void *w, size_t w_stride,
                               const void *x, float *y)
{
    kern_best(KERN_OP_gemv, KERN_FMT_q4_K, 1u << KERN_ISA_scalar)
        ->fn.gemv(n_rows, k, w, w_stride, x, y);
    y[n_rows - 1] += 0.01f;
}

static void gemv_not_a_number(size_t n_rows, size_t k, const void *w, size_t w_stride,
                              const void *x, float *y)
{
    (void)k, (void)w, (void)w_stride, (void)x;
    memset(y, 0xff, n_rows * sizeof *y);
}

/* Leaves the last column alone. */
static void gemm_short(size_t n_rows, size_t k, const void *w, size_t w_stride,
                       size_t n_cols, const void *x, size_t x_stride, float *y,
                       size_t y_stride)
{
    kern_best(KERN_OP_gemm, KERN_FMT_q8_0, 1u << KERN_ISA_scalar)
        ->fn.gemm(n_rows, k, w, w_stride, n_cols - 1, x, x_stride, y, y_stride);
}

static void dequantize_nothing(const void *src, float *dst, size_t n)
{
    (void)src, (void)dst, (void)n;
}

static void quantize_act_off_by_one(const float *src, void *dst, size_t k)
{
    kern_best(KERN_OP_quantize_act, KERN_ACT_q8_32, 1u << KERN_ISA_scalar)
        ->fn.quantize_act(src, dst, k);
    *(int8_t *)dst ^= 1;
}

static void expect_refused(enum status st, const struct err *err)
{
    assert_int_equal(st, ST_CHECK);
    assert_non_null(strstr(err->msg, "not timed"));
}

static void wrong_rows_are_refused(void **state)
{
    struct kern_row row = scalar_row(KERN_OP_gemv, KERN_FMT_q4_K);
    struct err err = ERR_INIT;

    (void)state;
    row.fn.gemv = gemv_off_by_little;
    expect_refused(parts_check_product(&row, 1, NULL, &err), &err);
    assert_non_null(strstr(err.msg, "row 18"));
    err_clear(&err);
    row.fn.gemv = gemv_not_a_number;
    expect_refused(parts_check_product(&row, 1, NULL, &err), &err);
    err_clear(&err);
    row = scalar_row(KERN_OP_gemm, KERN_FMT_q8_0);
    row.fn.gemm = gemm_short;
    expect_refused(parts_check_product(&row, 4, NULL, &err), &err);
    assert_non_null(strstr(err.msg, "column 3"));
    err_clear(&err);
    row = scalar_row(KERN_OP_dequantize, KERN_FMT_q6_K);
    row.fn.dequantize = dequantize_nothing;
    expect_refused(parts_check_other(&row, &err), &err);
    err_clear(&err);
    row = scalar_row(KERN_OP_quantize_act, KERN_ACT_q8_32);
    row.fn.quantize_act = quantize_act_off_by_one;
    expect_refused(parts_check_other(&row, &err), &err);
}

/* Hot products, other operations and peaks: open, run, what a call costs. */
static void works_run(void **state)
{
    static const struct {
        const char *name;
        double bytes, ops, n_weights;
    } table[] = {
        {"gemv/q4_K/scalar/rows:112/cols:4096/hot", 112 * 2304, 2.0 * 112 * 4096,
         112 * 4096},
        {"dequantize/q8_0/scalar/n:4096", 4096 * 4 + 4352, 4096, 4096},
        {"rmsnorm/scalar/n:4096", 3 * 4096 * 4, 4 * 4096, 0},
        {"delta_rule/scalar/n:32", (2 * 128 * 128 + 4 * 32 * 128) * 4,
         6.0 * 32 * 128 * 128, 0},
        {"ssm_scan/scalar/n:32", (2 * 128 * 128 + 4 * 32 * 128) * 4,
         4.0 * 32 * 128 * 128, 0},
        {"conv_silu/scalar/n:4096", 9 * 4096 * 4, 8 * 4096, 0},
        {"short_conv/scalar/n:4096", 12 * 4096 * 4, 10 * 4096, 0},
        {"attn_mix/f16/scalar/n:1024", 1024 * 128 * 2, 2.0 * 8 * 1024 * 128, 0},
        {"roof/int8/scalar/threads:2", 0, -1, 0},
    };
    struct topology *topo = calloc(1, sizeof *topo);
    struct err err = ERR_INIT;
    struct kernel_fixture *fixture;

    (void)state;
    assert_non_null(topo);
    assert_int_equal(topology_read(topo, "", &err), ST_OK);
    assert_int_equal(kernel_fixture_open(&fixture, topo, PLACEMENT_SPREAD, &err),
                     ST_OK);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct kernel_case c;
        struct kernel_work *work;

        assert_true(kernel_case_parse(&c, table[i].name));
        if (kernel_work_open(&work, fixture, &c, &err))
            fail_msg("%s: %s", table[i].name, err.msg);
        const struct kernel_cost cost = kernel_work_cost(work);
        assert_true(cost.bytes == table[i].bytes);
        assert_true(table[i].ops < 0 ? cost.ops > 0 : cost.ops == table[i].ops);
        assert_true(cost.n_weights == table[i].n_weights);
        assert_true(kernel_work_batch(work) >= 1);
        kernel_work_run(work, 3);
        kernel_work_close(work);
    }
    kernel_fixture_close(fixture);
    free(topo);
}

static void what_cannot_run_is_said(void **state)
{
    struct topology *topo = calloc(1, sizeof *topo);
    struct err err = ERR_INIT;
    struct kernel_fixture *fixture;
    struct kernel_work *work;
    struct kernel_case c;

    (void)state;
    assert_non_null(topo);
    assert_int_equal(topology_read(topo, "", &err), ST_OK);
    assert_int_equal(kernel_fixture_open(&fixture, topo, PLACEMENT_NONE, &err), ST_OK);
    assert_true(kernel_case_parse(&c, "gemv/q4_K/x87/rows:16/cols:4096/hot"));
    assert_int_equal(kernel_work_open(&work, fixture, &c, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "x87"));
    kernel_fixture_close(fixture);
    free(topo);
}

/* Every CPU has products of this format; how fast they are depends on it. */
static void products_are_timed_against_the_peak(void **state)
{
    static const bool wanted[KERN_N_FMT] = {[KERN_FMT_q8_0] = true};
    double share[KERN_N_FMT];
    struct topology *topo = calloc(1, sizeof *topo);
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(topo);
    assert_int_equal(topology_read(topo, "", &err), ST_OK);
    assert_int_equal(kernel_product_shares(share, wanted, topo, &err), ST_OK);
    assert_true(share[KERN_FMT_q8_0] > 0);
    assert_true(isnan(share[KERN_FMT_q4_0]));
    free(topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_passes_its_check),
        cmocka_unit_test(wrong_rows_are_refused),
        cmocka_unit_test(works_run),
        cmocka_unit_test(what_cannot_run_is_said),
        cmocka_unit_test(products_are_timed_against_the_peak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

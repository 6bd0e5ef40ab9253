/* SPDX-License-Identifier: MIT
 *
 * test_shares.c - shares of rows, what is expected of other machines, and the file
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/predict/shares.h"

static struct share share_of(const char *machine, enum share_kind kind,
                             enum kern_format format, int n_threads, double median)
{
    struct share s = {.kind = kind,
                      .format = format,
                      .n_threads = n_threads,
                      .n = 9,
                      .lo = 0.9 * median,
                      .median = median,
                      .hi = 1.1 * median};

    snprintf(s.machine, sizeof s.machine, "%s", machine);
    return s;
}

static struct share_band expect(const struct shares *s, const char *machine,
                                enum kern_format format, int n_threads, bool leave_out)
{
    const struct share_want want = {.kind = SHARE_DECODE,
                                    .format = format,
                                    .n_threads = n_threads,
                                    .machine = machine,
                                    .leave_out = leave_out};
    struct share_band band = {0};

    assert_true(shares_expect(s, &want, &band));
    assert_true(band.lo < band.mid && band.mid < band.hi);
    return band;
}

static void the_mean_of_machines_is_expected(void **state)
{
    struct share v[] = {share_of("a", SHARE_DECODE, KERN_FMT_q4_0, 2, 0.8),
                        share_of("a", SHARE_DECODE, KERN_FMT_q4_0, 8, 0.5),
                        share_of("b", SHARE_DECODE, KERN_FMT_q4_0, 2, 0.9),
                        share_of("b", SHARE_PREFILL, KERN_FMT_q4_0, 2, 0.3)};
    const struct shares s = {v, 4};
    struct share_band band;

    (void)state;
    band = expect(&s, "", KERN_FMT_q4_0, 2, false);
    assert_float_equal(band.mid, sqrt(0.8 * 0.9), 1e-9);
    assert_int_equal(band.basis, SHARE_SAME_FORMAT);
    assert_int_equal(band.n_machines, 2);

    /* with other threads the nearest count; 0: the most */
    assert_float_equal(expect(&s, "", KERN_FMT_q4_0, 16, false).mid, sqrt(0.5 * 0.9),
                       1e-9);
    assert_float_equal(expect(&s, "", KERN_FMT_q4_0, 1, false).mid, sqrt(0.8 * 0.9),
                       1e-9);
    assert_float_equal(expect(&s, "", KERN_FMT_q4_0, 0, false).mid, sqrt(0.5 * 0.9),
                       1e-9);
}

static void a_known_cpu_counts_alone_and_can_be_left_out(void **state)
{
    struct share v[] = {share_of("a", SHARE_DECODE, KERN_FMT_q4_0, 2, 0.8),
                        share_of("b", SHARE_DECODE, KERN_FMT_q4_0, 2, 0.9)};
    const struct shares s = {v, 2};
    const struct share_band own = expect(&s, "b", KERN_FMT_q4_0, 2, false);
    const struct share_band other = expect(&s, "b", KERN_FMT_q4_0, 2, true);

    (void)state;
    assert_float_equal(own.mid, 0.9, 1e-9);
    assert_int_equal(own.basis, SHARE_SAME_CPU);
    assert_float_equal(other.mid, 0.8, 1e-9);
    assert_int_equal(other.n_machines, 1);
    /* what was not measured is less certain */
    assert_true(other.hi / other.lo > own.hi / own.lo);
    /* one machine alone, left out, leaves nothing */
    const struct share_want want = {.kind = SHARE_DECODE,
                                    .format = KERN_FMT_q4_0,
                                    .machine = "a",
                                    .leave_out = true};
    const struct shares one = {v, 1};
    struct share_band band;
    assert_false(shares_expect(&one, &want, &band));
}

/* By hand: one machine, so its own quantiles, and a deviation of 0.08 twice over (of
 * machines, and of the one that is the mean). */
static void the_band_is_that_of_launches_and_machines(void **state)
{
    struct share v[] = {share_of("a", SHARE_DECODE, KERN_FMT_q4_0, 2, 0.8)};
    const struct shares s = {v, 1};
    const struct share_band band = expect(&s, "b", KERN_FMT_q4_0, 2, false);
    const double machines = 1.645 * 0.08 * sqrt(2);

    (void)state;
    assert_float_equal(log(band.mid / band.lo), hypot(log(1 / 0.9), machines), 1e-9);
    assert_float_equal(log(band.hi / band.mid), hypot(log(1.1), machines), 1e-9);
}

/* A format that no sweep has: all formats, and slower where its kernel is. */
static void a_kernel_alone_stands_for_its_format(void **state)
{
    struct share v[] = {share_of("a", SHARE_DECODE, KERN_FMT_q4_0, 2, 0.8),
                        share_of("a", SHARE_KERNEL, KERN_FMT_q4_0, 2, 0.8),
                        share_of("a", SHARE_KERNEL, KERN_FMT_iq1_s, 2, 0.2),
                        share_of("a", SHARE_KERNEL, KERN_FMT_q8_0, 2, 0.9)};
    const struct shares s = {v, 4};
    const struct share_band slow = expect(&s, "", KERN_FMT_iq1_s, 2, false);

    (void)state;
    assert_float_equal(slow.mid, 0.2, 1e-9);
    assert_int_equal(slow.basis, SHARE_OTHER_FORMATS);
    assert_float_equal(expect(&s, "", KERN_FMT_q8_0, 2, false).mid, 0.8, 1e-9);
    assert_float_equal(expect(&s, "", KERN_FMT_q6_K, 2, false).mid, 0.8, 1e-9);
    assert_float_equal(expect(&s, "", KERN_N_FMT, 2, false).mid, 0.8, 1e-9);
}

static struct share_band expect_prompt(const struct shares *s, const char *machine,
                                       enum kern_format format, double product_share)
{
    const struct share_want want = {.kind = SHARE_PREFILL,
                                    .format = format,
                                    .n_threads = 1,
                                    .machine = machine,
                                    .leave_out = true,
                                    .product_share = product_share};
    struct share_band band = {0};

    assert_true(shares_expect(s, &want, &band));
    return band;
}

/* Prefill comes to nine tenths of the products of its machine, whatever these reach. */
static void prompts_are_expected_from_products(void **state)
{
    struct share v[] = {
        share_of("AMD EPYC; L3 1", SHARE_PREFILL, KERN_FMT_q4_0, 1, 0.54),
        share_of("AMD EPYC; L3 1", SHARE_PRODUCT, KERN_FMT_q4_0, 1, 0.6),
        share_of("AMD EPYC; L3 1", SHARE_PRODUCT, KERN_FMT_q6_K, 1, 0.5),
        share_of("Intel Xeon; L3 2", SHARE_PRODUCT, KERN_FMT_q4_0, 1, 0.4),
        share_of("Intel Xeon; L3 2", SHARE_PRODUCT, KERN_FMT_q6_K, 1, 0.3)};
    const struct shares s = {v, 5};
    struct share_band band = expect_prompt(&s, "Intel Xeon; L3 2", KERN_FMT_q4_0, 0);

    (void)state;
    assert_float_equal(band.mid, 0.9 * 0.4, 1e-9);
    assert_int_equal(band.basis, SHARE_SAME_FORMAT);
    /* what was measured on the machine itself comes first: here by tiles */
    assert_float_equal(expect_prompt(&s, "Intel Xeon; L3 2", KERN_FMT_q4_0, 2).mid, 1.8,
                       1e-9);
    /* a machine of the same name, and one of the same maker */
    assert_float_equal(expect_prompt(&s, "Intel Xeon; L3 3", KERN_FMT_q4_0, 0).mid,
                       0.36, 1e-9);
    assert_float_equal(expect_prompt(&s, "Intel Core; L3 3", KERN_FMT_q4_0, 0).mid,
                       0.36, 1e-9);
    /* a format without a sweep, by its products */
    band = expect_prompt(&s, "Intel Xeon; L3 2", KERN_FMT_q6_K, 0);
    assert_float_equal(band.mid, 0.9 * 0.3, 1e-9);
    assert_int_equal(band.basis, SHARE_OTHER_FORMATS);
    /* of another maker nothing but the peak is known, and less well */
    assert_float_equal(expect_prompt(&s, "Neoverse; L3 3", KERN_FMT_q4_0, 0).mid, 0.54,
                       1e-9);
    assert_true(expect_prompt(&s, "Neoverse; L3 3", KERN_FMT_q4_0, 0).lo / 0.54 <
                expect_prompt(&s, "Intel Xeon; L3 2", KERN_FMT_q4_0, 0).lo / 0.36);
}

static void rows_have_shares_of_their_roofs(void **state)
{
    struct row r;
    enum share_kind kind;

    (void)state;
    row_init(&r);
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    r.tok_per_s = 8;
    r.bytes_per_token = 5000000000;
    r.roof_gbps = 50;
    assert_float_equal(share_of_row(&r, &kind), 0.8, 1e-9);
    assert_int_equal(kind, SHARE_DECODE);
    r.n_streamed = 3;
    assert_true(isnan(share_of_row(&r, &kind)));
    r.n_streamed = 0;
    r.limiter = LIMITER_PAGING;
    assert_true(isnan(share_of_row(&r, &kind)));
    r.limiter = LIMITER_COMPUTE;
    r.kind = POINT_PREFILL;
    r.gops = 300;
    r.roof_gops = 600;
    assert_float_equal(share_of_row(&r, &kind), 0.5, 1e-9);
    assert_int_equal(kind, SHARE_PREFILL);
    r.roof_gops = 5000; /* of tiles: shares are of the peak of vectors */
    r.roof_vectors_gops = 600;
    assert_float_equal(share_of_row(&r, &kind), 0.5, 1e-9);
    r.isa = KERN_ISA_amx_int8;
    assert_true(isnan(share_of_row(&r, &kind)));
    r.isa = KERN_ISA_avx512vnni;
    r.status = ROW_STATUS_OOM;
    assert_true(isnan(share_of_row(&r, &kind)));

    assert_int_equal(quantmix_base_named("Q4_K_M"), KERN_FMT_q4_K);
    assert_int_equal(quantmix_base_named("q8_0"), KERN_FMT_q8_0);
    assert_int_equal(quantmix_base_named("mixed"), KERN_N_FMT);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void broken_files_get_a_sentence(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"shares: [{machine: a, kind: decode, format: q4_0, threads: 2, n: 3, lo: 0.7, "
         "median: 0.8, hi: 0.7}]\n",
         "share 1: 0.7 is outside"},
        {"shares: [{machine: a, kind: dec, format: q4_0, threads: 2, n: 3, lo: 0.7, "
         "median: 0.8, hi: 0.9}]\n",
         "'dec'"},
        {"shares: [{machine: a, kind: decode, format: q9, threads: 2, n: 3, lo: 0.7, "
         "median: 0.8, hi: 0.9}]\n",
         "'q9' is no weight format"},
        {"shares: [{machine: a, kind: decode, format: q4_0, threads: 0, n: 3, lo: 0.7, "
         "median: 0.8, hi: 0.9}]\n",
         "share 1: 0 is outside"},
        {"shares: [{machine: a, kind: decode, format: q4_0, threads: 2, n: none, lo: "
         "0.7, median: 0.8, hi: 0.9}]\n",
         "'none'"},
        {"shares: [{machine: a, kind: decode, format: q4_0, threads: 2, n: 3, lo: 0, "
         "median: 0.8, hi: 0.9}]\n",
         "share 1: 0 is outside"},
        {"shares: [{machine: a, kind: decode, format: q4_0, threads: 2, n: 3, lo: 0.7, "
         "median: 0.6, hi: 0.9}]\n",
         "share 1: 0.6 is outside"},
        {"shares: [{machine: a}]\n", "is missing"},
        {"shares: []\n", ""},
        {"share: 1\n", "there is no key 'share'"},
    };
    char path[] = "/tmp/slm_shares_XXXXXX";
    const int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shares s;
        struct err err = ERR_INIT;

        write_text(path, cases[i].text);
        assert_int_equal(shares_load(&s, path, &err), ST_INPUT);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_of_machines_is_expected),
        cmocka_unit_test(a_known_cpu_counts_alone_and_can_be_left_out),
        cmocka_unit_test(the_band_is_that_of_launches_and_machines),
        cmocka_unit_test(a_kernel_alone_stands_for_its_format),
        cmocka_unit_test(prompts_are_expected_from_products),
        cmocka_unit_test(rows_have_shares_of_their_roofs),
        cmocka_unit_test(broken_files_get_a_sentence),
    };

    return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}

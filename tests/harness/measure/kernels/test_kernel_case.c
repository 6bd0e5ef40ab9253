/* SPDX-License-Identifier: MIT
 *
 * test_kernel_case.c - names of cases, their roofs, and that no row is without one
 */
#include "tests/support/test.h"

#include "harness/measure/kernels/kernel_plan.h"
#include "kernels/probe/probe.h"

static const int threads[] = {1, 2};

static struct kernel_case *all_cases(size_t *n)
{
    struct err err = ERR_INIT;
    struct kernel_case *cases = NULL;

    assert_int_equal(kernel_cases_all(&cases, n, threads, 2, &err), ST_OK);
    return cases;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void names_say_everything(void **state)
{
    struct kernel_case parsed;
    size_t n;
    struct kernel_case *cases = all_cases(&n);
    char(*all)[KERNEL_NAME_MAX] = malloc(n * sizeof *all);

    (void)state;
    assert_non_null(all);
    for (size_t i = 0; i < n; i++) {
        const struct kernel_case *c = &cases[i];
        const struct kernel_name name = kernel_case_name(c);

        assert_true(kernel_case_parse(&parsed, name.text));
        assert_string_equal(kernel_case_name(&parsed).text, name.text);
        assert_string_equal(parsed.op, c->op);
        assert_string_equal(parsed.what, c->what);
        assert_string_equal(parsed.isa, c->isa);
        assert_int_equal(parsed.rows, c->rows);
        assert_int_equal(parsed.cols, c->cols);
        assert_int_equal(parsed.n_x, c->n_x);
        assert_int_equal(parsed.n, c->n);
        assert_int_equal(parsed.cache, c->cache);
        assert_int_equal(parsed.n_threads, c->n_threads);
        assert_int_equal(parsed.prefetch.n_panels, c->prefetch.n_panels);
        assert_int_equal(parsed.prefetch.distance, c->prefetch.distance);
        assert_int_equal(parsed.prefetch.hint, c->prefetch.hint);
        strcpy(all[i], name.text);
    }
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 1; i < n; i++)
        assert_string_not_equal(all[i - 1], all[i]);
    free(all);
    free(cases);
}

static void names_are_the_documented_ones(void **state)
{
    struct kernel_case c;

    (void)state;
    assert_true(kernel_case_parse(&c, "gemv/q4_K/avx512vnni/rows:4096/cols:4096/cold"));
    assert_string_equal(c.what, "q4_K");
    assert_int_equal(c.rows, 4096);
    assert_int_equal(c.cache, KERNEL_COLD);
    assert_int_equal(c.n_threads, 1);
    assert_int_equal(c.n_x, 1);
    assert_int_equal(c.prefetch.n_panels, 0);
    assert_true(kernel_case_parse(
        &c, "gemv_x16/q4_K/avx512/rows:4096/cols:4096/cold/prefetch:T1-4096/panels:2"));
    assert_int_equal(c.prefetch.n_panels, 2);
    assert_int_equal(c.prefetch.distance, 4096);
    assert_int_equal(c.prefetch.hint, KERN_PREFETCH_T1);
    assert_true(kernel_case_parse(&c, "rmsnorm/avx2/n:4096"));
    assert_string_equal(c.what, "");
    assert_string_equal(c.isa, "avx2");
    assert_int_equal(c.n, 4096);
    assert_true(kernel_case_parse(&c, "roof/read/avx512/threads:2"));
    assert_true(kernel_case_is_roof(&c));
    assert_int_equal(c.n_threads, 2);
}

static void other_names_are_refused(void **state)
{
    static const char *const names[] = {
        "",
        "/",
        "gemv",
        "gemv/",
        "gemv//avx2",
        "gemv/q4_K/avx2/rows:",
        "gemv/q4_K/avx2/rows:0",
        "gemv/q4_K/avx2/rows:-4",
        "gemv/q4_K/avx2/rows:4x",
        "gemv/q4_K/avx2/rows:99999999999999999999",
        "gemv/q4_K/avx2/warm",
        "gemv/q4_K/avx2/extra/rows:3",
        "gemv/q4_K/a_level_with_a_very_long_name/rows:3",
        "gemv/q4_K/avx2/hot/real_time",
        "gemv_x16/q4_K/avx2/cold/prefetch:T0-4096",
        "gemv_x16/q4_K/avx2/cold/panels:2",
        "gemv_x16/q4_K/avx2/cold/prefetch:T0/panels:2",
        "gemv_x16/q4_K/avx2/cold/prefetch:T0-0/panels:2",
        "gemv_x16/q4_K/avx2/cold/prefetch:T2-64/panels:2",
        "gemv_x16/q4_K/avx2/cold/prefetch:off/panels:5",
    };
    struct kernel_case c = {.n = 77};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (kernel_case_parse(&c, names[i]))
            fail_msg("'%s' was taken for a case", names[i]);
    assert_int_equal(c.n, 77);
}

static void every_row_has_its_cases(void **state)
{
    size_t n, n_entries, n_ways, n_columns;
    struct kernel_case *cases = all_cases(&n);
    const struct kern_entry *entries = kern_entries(&n_entries);
    struct {
        size_t hot, cold, ways, any;
    } *seen = calloc(n_entries, sizeof *seen);

    (void)state;
    kernel_prefetches(&n_ways);
    kernel_columns(&n_columns);
    assert_non_null(seen);
    for (size_t i = 0; i < n; i++) {
        const struct kern_entry *e = kernel_case_entry(&cases[i]);

        if (!e)
            continue; /* roofs are no rows */
        seen[e - entries].any++;
        seen[e - entries].hot += cases[i].cache == KERNEL_HOT;
        if (cases[i].prefetch.n_panels)
            seen[e - entries].ways++;
        else
            seen[e - entries].cold += cases[i].cache == KERNEL_COLD;
    }
    for (size_t e = 0; e < n_entries; e++) {
        const struct kernel_product *p = kernel_product(entries[e].op);

        if (seen[e].any == 0)
            fail_msg("%s has no benchmark", entries[e].name);
        if (p && !p->has_columns) {
            assert_int_equal(seen[e].hot, 1);
            assert_int_equal(seen[e].cold, 2); /* one per thread count */
            assert_int_equal(seen[e].ways, p->packed ? 2 * n_ways : 0);
        }
        if (p && p->has_columns)
            assert_int_equal(seen[e].cold, 2 * n_columns);
    }
    free(seen);
    free(cases);
}

static void hot_matrices_fit_the_second_level(void **state)
{
    size_t n;
    struct kernel_case *cases = all_cases(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const struct kern_entry *e = kernel_case_entry(&cases[i]);

        if (cases[i].cache != KERNEL_HOT)
            continue;
        const size_t bytes = (size_t)cases[i].rows *
                             kern_format_bytes((enum kern_format)e->what, KERNEL_COLS);
        assert_in_range(bytes, (size_t)64 << 10, (size_t)256 << 10);
        assert_int_equal(cases[i].rows % 16, 0);
    }
    free(cases);
}

static void expect_roof(const char *name, const char *roof_name)
{
    struct kernel_case c, roof;

    assert_true(kernel_case_parse(&c, name));
    assert_true(kernel_case_roof(&roof, &c));
    assert_string_equal(kernel_case_name(&roof).text, roof_name);
}

static void roofs_are_of_the_level_itself(void **state)
{
    struct kernel_case c, roof;

    (void)state;
    expect_roof("gemv/q4_K/scalar/rows:112/cols:4096/hot", "roof/int8/scalar");
    expect_roof("gemv/f16/scalar/rows:32/cols:4096/hot", "roof/f32/scalar");
#if defined(__x86_64__)
    expect_roof("gemv/q4_K/avx2/rows:112/cols:4096/hot", "roof/int8/avx2");
    expect_roof("gemm/q8_0/avx512vnni/rows:256/cols:4096/n_x:512/cold/threads:2",
                "roof/int8/avx512vnni/threads:2");
    expect_roof("gemv/f16/avx512/rows:32/cols:4096/hot", "roof/f32/avx512");
#endif
    for (int n_x = 1; n_x <= 16; n_x++) {
        c = (struct kernel_case){.op = "gemm",
                                 .what = "q4_0",
                                 .isa = "scalar",
                                 .rows = 4096,
                                 .cols = 4096,
                                 .n_x = n_x,
                                 .cache = KERNEL_COLD,
                                 .n_threads = 2};
        assert_true(kernel_case_roof(&roof, &c));
        assert_string_equal(roof.what, "read");
        assert_int_equal(roof.n_threads, 2);
    }
    assert_true(kernel_case_parse(&c, "rmsnorm/scalar/n:4096"));
    assert_false(kernel_case_roof(&roof, &c));
    assert_true(kernel_case_parse(&c, "gemv/q9_Z/scalar/rows:3/cols:4096/hot"));
    assert_false(kernel_case_roof(&roof, &c));
}

/* How many of the plan's rows have this name. */
static int planned(const struct kernel_plan *plan, const char *name)
{
    int n = 0;

    for (size_t i = 0; i < plan->n_run; i++)
        n += !strcmp(kernel_case_name(&plan->run[i]).text, name);
    return n;
}

/* Machines made up, a product of bytes with 512 columns at one level each. */
static void a_run_on_a_cpu_with_tiles_has_both_peaks(void **state)
{
    static const struct {
        enum kern_isa best;
        const char *level;
        int tiles, vectors, avx2;
    } machines[] = {{KERN_ISA_amx_int8, "amx_int8", 1, 1, 0},
                    {KERN_ISA_amx_int8, "avx512vnni", 1, 1, 0},
                    {KERN_ISA_amx_int8, "avx2", 1, 1, 1},
                    {KERN_ISA_avx512vnni, "avx512vnni", 0, 1, 0},
                    {KERN_ISA_avx512vnni, "avx2", 0, 0, 1}};
    static struct topology topo;
    int columns = 512;

    (void)state;
    if (probe_kernel_best(PROBE_OP_peak_int8, ~0u)->isa != KERN_ISA_amx_int8)
        skip(); /* another architecture */
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        const struct kernel_wish wish = {.formats = "q4_K",
                                         .ops = "gemm_x16",
                                         .isa = machines[i].level,
                                         .columns = {&columns, 1}};
        struct kernel_plan plan;
        struct err err = ERR_INIT;
        char name[100];

        topo.isa_mask = 1u << KERN_ISA_scalar | isa_included(machines[i].best);
        topo.threads_default = 1;
        if (kernel_plan_make(&plan, &wish, &topo, &err))
            fail_msg("%s", err.msg);
        snprintf(name, sizeof name, "gemm_x16/q4_K/%s/rows:256/cols:4096/n_x:512/cold",
                 machines[i].level);
        assert_int_equal(planned(&plan, name), 1);
        assert_int_equal(planned(&plan, "roof/int8/amx_int8"), machines[i].tiles);
        assert_int_equal(planned(&plan, "roof/int8/avx512vnni"), machines[i].vectors);
        assert_int_equal(planned(&plan, "roof/int8/avx2"), machines[i].avx2);
        assert_int_equal(plan.n_run, plan.n_roofs + 1);
        kernel_plan_free(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_say_everything),
        cmocka_unit_test(names_are_the_documented_ones),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(every_row_has_its_cases),
        cmocka_unit_test(hot_matrices_fit_the_second_level),
        cmocka_unit_test(roofs_are_of_the_level_itself),
        cmocka_unit_test(a_run_on_a_cpu_with_tiles_has_both_peaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

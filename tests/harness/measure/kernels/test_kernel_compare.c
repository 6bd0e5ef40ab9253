/* SPDX-License-Identifier: MIT
 *
 * test_kernel_compare.c - comparing two runs whose difference is known
 *
 * Files as google-benchmark writes them are made up: repetitions of a row are its
 * true time, times 1 + noise of one per cent.
 */
#include "tests/support/test.h"

#include <math.h>
#include <sys/stat.h>

#include "harness/measure/kernels/kernel_report.h"

#define N_ROWS 40

static uint64_t seed = 1;
static char dir[] = "/tmp/slm_compare_XXXXXX";
static char path[2][64];

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path[0], sizeof path[0], "%s/old.json", dir);
    snprintf(path[1], sizeof path[1], "%s/new.json", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path[0]);
    unlink(path[1]);
    return rmdir(dir);
}

struct file {
    FILE *f;
    const char *lead;
};

static struct file begin(int which, const char *cpu)
{
    struct file file = {fopen(path[which], "w"), ""};

    assert_non_null(file.f);
    fprintf(file.f,
            "{\"context\": {\"cpu_model\": \"%s\", \"num_cpus\": 2,"
            " \"slmbench_compiler\": \"GNU 12.2.0 Release\"},\n\"benchmarks\": [\n",
            cpu);
    return file;
}

/* n repetitions of a row that truly takes us microseconds, and an aggregate. */
static void row(struct file *file, const char *name, int n, double us)
{
    for (int i = 0; i < n; i++) {
        const double noise = 1 + 0.01 * (double)test_random_float(&seed);

        fprintf(
            file->f,
            "%s{\"name\": \"%s\", \"run_name\": \"%s\", \"run_type\": \"iteration\","
            " \"repetition_index\": %d, \"real_time\": %.9g, \"cpu_time\": 1,"
            " \"time_unit\": \"us\", \"GB/s\": 1.5, \"GOPS\": 3}",
            file->lead, name, name, i, us * noise);
        file->lead = ",\n";
    }
    fprintf(file->f,
            "%s{\"name\": \"%s_median\", \"run_name\": \"%s\","
            " \"run_type\": \"aggregate\", \"real_time\": 1e9, \"time_unit\": \"us\"}",
            file->lead, name, name);
    file->lead = ",\n";
}

static void failed_row(struct file *file, const char *name, const char *why)
{
    fprintf(file->f,
            "%s{\"name\": \"%s\", \"run_name\": \"%s\", \"run_type\": \"iteration\","
            " \"error_occurred\": true, \"error_message\": \"%s\"}",
            file->lead, name, name, why);
    file->lead = ",\n";
}

static void end(struct file *file)
{
    fprintf(file->f, "]}\n");
    assert_int_equal(fclose(file->f), 0);
}

/* N_ROWS rows of n repetitions, one file's times being factor times the other's for
 * row 0, and roof times for all rows and the reading roof. */
static void write_pair(int n, double factor, double roof)
{
    for (int which = 0; which < 2; which++) {
        struct file file = begin(which, "Test CPU");

        for (int i = 0; i < N_ROWS; i++) {
            char name[96];
            double us = 100 + 10 * i;

            if (which)
                us *= roof * (i == 0 ? factor : 1);
            snprintf(name, sizeof name, "gemv/q4_0/scalar/rows:%d/cols:4096/cold",
                     16 * (i + 1));
            row(&file, name, n, us);
        }
        row(&file, "roof/read/avx512", n, which ? 1000 * roof : 1000);
        end(&file);
    }
}

struct pair {
    struct kernel_results old, new;
    struct kernel_comparison c;
};

static void compare(struct pair *p, double least)
{
    struct err err = ERR_INIT;

    if (kernel_results_read(&p->old, path[0], &err) ||
        kernel_results_read(&p->new, path[1], &err) ||
        kernel_compare(&p->c, &p->old, &p->new, least, &err))
        fail_msg("%s", err.msg);
}

static void release(struct pair *p)
{
    kernel_compare_free(&p->c);
    kernel_results_free(&p->old);
    kernel_results_free(&p->new);
}

/* 50 pairs of equal runs: at a level of 5 % for any false alarm, more than 8 are less
 * likely than one in a thousand. */
static void equal_runs_are_equal(void **state)
{
    int n_alarms = 0;

    (void)state;
    for (int round = 0; round < 50; round++) {
        struct pair p;

        write_pair(9, 1, 1);
        compare(&p, 0);
        assert_int_equal(p.c.n, N_ROWS + 1);
        n_alarms += p.c.n_verdict[KERNEL_SLOWER] || p.c.n_verdict[KERNEL_FASTER];
        release(&p);
    }
    assert_true(n_alarms <= 8);
}

static void a_file_equals_itself(void **state)
{
    struct pair p;

    (void)state;
    write_pair(9, 1, 1);
    assert_int_equal(rename(path[0], path[1]), 0);
    assert_int_equal(link(path[1], path[0]), 0);
    compare(&p, 0);
    assert_int_equal(p.c.n_verdict[KERNEL_SAME], N_ROWS);
    assert_int_equal(p.c.n_warnings, 0);
    release(&p);
    unlink(path[1]);
}

static void a_slower_row_is_found(void **state)
{
    struct pair p;

    (void)state;
    write_pair(9, 1.10, 1);
    compare(&p, 0.02);
    assert_int_equal(p.c.n_verdict[KERNEL_SLOWER], 1);
    assert_int_equal(p.c.n_verdict[KERNEL_FASTER], 0);
    assert_int_equal(p.c.v[0].verdict, KERNEL_SLOWER);
    assert_float_equal(p.c.v[0].speed.ratio, 1 / 1.10, 0.02);
    assert_true(p.c.v[0].speed.lo <= 1 / 1.10 + 0.01);
    assert_true(p.c.v[0].speed.hi >= 1 / 1.10 - 0.01);
    assert_true(p.c.v[0].p < 0.05);
    release(&p);
}

static void a_faster_row_is_found(void **state)
{
    struct pair p;

    (void)state;
    write_pair(9, 0.8, 1);
    compare(&p, 0.02);
    assert_int_equal(p.c.n_verdict[KERNEL_SLOWER], 0);
    assert_int_equal(p.c.v[0].verdict, KERNEL_FASTER);
    assert_float_equal(p.c.v[0].speed.ratio, 1.25, 0.03);
    release(&p);
}

/* Everything, the roof too, takes 20 % longer: that is the machine. One row takes
 * another 20 %: that is the row. */
static void the_machine_is_not_blamed_on_the_kernels(void **state)
{
    struct pair p;

    (void)state;
    write_pair(9, 1.2, 1.2);
    compare(&p, 0.02);
    assert_int_equal(p.c.n_verdict[KERNEL_SLOWER], 1);
    assert_int_equal(p.c.v[0].verdict, KERNEL_SLOWER);
    assert_int_equal(p.c.n_verdict[KERNEL_WITH_ROOF], N_ROWS - 1);
    assert_true(p.c.v[N_ROWS].is_roof);
    assert_float_equal(p.c.v[N_ROWS].speed.ratio, 1 / 1.2, 0.02);
    assert_float_equal(p.c.v[3].roof, 1 / 1.2, 0.02);
    release(&p);
}

static void small_changes_are_counted_only(void **state)
{
    struct pair p;

    (void)state;
    write_pair(15, 1.04, 1);
    compare(&p, 0.10);
    assert_int_equal(p.c.n_verdict[KERNEL_SLOWER], 0);
    assert_int_equal(p.c.v[0].verdict, KERNEL_SMALL);
    release(&p);
}

static void too_few_repetitions_are_said(void **state)
{
    struct pair p;

    (void)state;
    write_pair(3, 2, 1);
    compare(&p, 0.02);
    assert_int_equal(p.c.n_verdict[KERNEL_SLOWER], 0);
    assert_int_equal(p.c.n_verdict[KERNEL_SAME], 0);
    assert_int_equal(p.c.n_verdict[KERNEL_UNDECIDED], N_ROWS);
    assert_true(kernel_compare_is_empty(&p.c));
    assert_int_equal(p.c.n_warnings, 1);
    assert_non_null(strstr(p.c.warning[0], "too few repetitions"));
    /* 40 * 2 / C(2n, n) <= 0.05 from n = 7 on */
    assert_non_null(strstr(p.c.warning[0], "--repetitions 7"));
    release(&p);
}

static void rows_of_one_file_and_failures(void **state)
{
    struct file file = begin(0, "Test CPU");
    struct pair p;

    (void)state;
    row(&file, "a", 9, 10);
    row(&file, "gone", 9, 10);
    row(&file, "broken", 9, 10);
    row(&file, "stopped", 9, 10);
    failed_row(&file, "never", "wrong result");
    end(&file);
    file = begin(1, "Another CPU");
    row(&file, "fresh", 9, 10);
    row(&file, "a", 9, 10);
    failed_row(&file, "broken", "wrong result");
    fprintf(file.f, "%s{\"name\": \"stopped\", \"interrupted\": 1.0}", file.lead);
    failed_row(&file, "never", "wrong result");
    end(&file);
    compare(&p, 0.02);
    assert_int_equal(p.c.n, 4);
    assert_int_equal(p.c.n_only_old, 1);
    assert_int_equal(p.c.n_only_new, 1);
    assert_int_equal(p.c.n_verdict[KERNEL_SAME], 1);
    assert_int_equal(p.c.n_verdict[KERNEL_NO_FIGURE], 3);
    assert_int_equal(p.c.n_broken, 1);
    assert_true(p.new.v[3].interrupted);
    assert_non_null(strstr(p.c.warning[0], "CPU differs"));
    release(&p);
}

static void reads_what_is_there(void **state)
{
    struct file file = begin(0, "Test CPU");
    struct kernel_results r;
    struct err err = ERR_INIT;

    (void)state;
    row(&file, "roof/read/avx2", 4, 2.5);
    end(&file);
    assert_int_equal(kernel_results_read(&r, path[0], &err), ST_OK);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.v[0].n, 4); /* not the aggregate */
    assert_float_equal(r.v[0].ns[2], 2500, 26);
    assert_float_equal(r.v[0].gbps[0], 1.5, 0);
    assert_float_equal(r.v[0].gops[3], 3, 0);
    assert_true(isnan(r.v[0].wps[0]));
    assert_string_equal(r.cpu_model, "Test CPU");
    assert_int_equal(r.n_cpus, 2);
    assert_string_equal(r.host, "");
    kernel_results_free(&r);
}

/* Reading takes time in proportion to the file: compared with each other, the names
 * below would take minutes. */
static void many_rows_are_found_by_name(void **state)
{
    enum { N = 200000 };
    struct kernel_results r;
    struct err err = ERR_INIT;
    FILE *f = fopen(path[0], "w");
    char name[32];

    (void)state;
    assert_non_null(f);
    fprintf(f, "{\"benchmarks\": [");
    for (int i = 0; i < 2 * N; i++)
        fprintf(f, "%s{\"name\":\"row/%d\",\"real_time\":%d,\"time_unit\":\"ns\"}",
                i ? "," : "", i % N, i + 1);
    fprintf(f, "]}");
    fclose(f);
    assert_int_equal(kernel_results_read(&r, path[0], &err), ST_OK);
    assert_int_equal(r.n, N);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "row/%d", i);
        const struct kernel_result *found = kernel_results_find(&r, name);

        assert_ptr_equal(found, &r.v[i]);
        assert_int_equal(found->n, 2);
        assert_float_equal(found->ns[1], N + i + 1, 0);
    }
    assert_null(kernel_results_find(&r, "row"));
    kernel_results_free(&r);
}

/* A pipe that never speaks and a device without end are refused at once. */
static void only_regular_files_are_read(void **state)
{
    struct kernel_results r;
    struct err err = ERR_INIT;

    (void)state;
    unlink(path[0]);
    assert_int_equal(mkfifo(path[0], 0600), 0);
    assert_int_equal(kernel_results_read(&r, path[0], &err), ST_INPUT);
    unlink(path[0]);
    err_clear(&err);
    assert_int_equal(kernel_results_read(&r, "/dev/zero", &err), ST_INPUT);
}

static void expect_refused(const char *text, size_t len, const char *fragment)
{
    struct kernel_results r;
    struct err err = ERR_INIT;
    FILE *f = fopen(path[0], "w");

    assert_non_null(f);
    fwrite(text, 1, len, f);
    fclose(f);
    assert_int_equal(kernel_results_read(&r, path[0], &err), ST_INPUT);
    if (!strstr(err.msg, fragment))
        fail_msg("no '%s' in: %s", fragment, err.msg);
}

static void other_files_are_refused(void **state)
{
    static const char whole[] =
        "{\"context\":{},\"benchmarks\":[{\"name\":\"a\",\"run_type\":\"iteration\","
        "\"real_time\":1.0,\"time_unit\":\"ns\"}]}";
    struct kernel_results r;
    struct err err = ERR_INIT;

    (void)state;
    for (size_t len = 0; len < sizeof whole - 1; len++)
        expect_refused(whole, len, "no JSON");
    expect_refused("[]", 2, "no JSON object");
    expect_refused("{\"benchmarks\": 3}", 17, "\"benchmarks\"");
    expect_refused("{\"benchmarks\": []}", 18, "no benchmark");
    expect_refused("{\"benchmarks\": [3]}", 19, "has no name");
    expect_refused("{\"benchmarks\": [{\"name\":\"a\",\"run_type\":\"aggregate\"}]}",
                   53, "repetitions");
    unlink(path[0]);
    assert_int_equal(kernel_results_read(&r, path[0], &err), ST_IO);
}

/* Units and counts of CPUs that google-benchmark never writes. */
static void odd_contexts_and_units(void **state)
{
    static const char text[] =
        "{\"context\": {\"num_cpus\": 1e9, \"host_name\": \"a\\u001bb\"}, "
        "\"benchmarks\": ["
        "{\"name\": \"none\", \"real_time\": 1},"
        "{\"name\": \"days\", \"real_time\": 1, \"time_unit\": \"d\"},"
        "{\"name\": \"endless\", \"real_time\": 1e308, \"time_unit\": \"s\"},"
        "{\"name\": \"s\", \"real_time\": 2, \"time_unit\": \"s\"},"
        "{\"name\": \"failed\", \"error_occurred\": true},"
        "{\"name\": \"failed\", \"error_occurred\": true, \"error_message\": \"b\"},"
        "{\"name\": \"cut\", \"interrupted\": 1}]}";
    static const char *const errors[] = {"no time in the file",
                                         "no time in the file",
                                         "no time in the file",
                                         "",
                                         "failed",
                                         ""};
    struct kernel_results r;
    struct err err = ERR_INIT;
    FILE *f = fopen(path[0], "w");

    (void)state;
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(kernel_results_read(&r, path[0], &err), ST_OK);
    assert_int_equal(r.n_cpus, 0);
    assert_string_equal(r.host, "a\\x1bb");
    assert_int_equal(r.n, 6);
    for (size_t i = 0; i < r.n; i++) {
        assert_string_equal(r.v[i].error, errors[i]);
        assert_int_equal(r.v[i].n, i == 3);
        assert_true(r.v[i].interrupted == (i == 5));
    }
    assert_float_equal(r.v[3].ns[0], 2e9, 0);
    kernel_results_free(&r);
}

/* Times that are none are failures of their row. */
static void odd_times_are_no_figures(void **state)
{
    static const char *const times[] = {"0", "-1", "\"fast\"", "null"};
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct kernel_results r;
        FILE *f = fopen(path[0], "w");

        assert_non_null(f);
        fprintf(f,
                "{\"benchmarks\": [{\"name\": \"a\", \"real_time\": %s,"
                " \"time_unit\": \"ns\"}]}",
                times[i]);
        fclose(f);
        assert_int_equal(kernel_results_read(&r, path[0], &err), ST_OK);
        assert_int_equal(r.v[0].n, 0);
        assert_string_not_equal(r.v[0].error, "");
        kernel_results_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_runs_are_equal),
        cmocka_unit_test(a_file_equals_itself),
        cmocka_unit_test(a_slower_row_is_found),
        cmocka_unit_test(a_faster_row_is_found),
        cmocka_unit_test(the_machine_is_not_blamed_on_the_kernels),
        cmocka_unit_test(small_changes_are_counted_only),
        cmocka_unit_test(too_few_repetitions_are_said),
        cmocka_unit_test(rows_of_one_file_and_failures),
        cmocka_unit_test(reads_what_is_there),
        cmocka_unit_test(many_rows_are_found_by_name),
        cmocka_unit_test(only_regular_files_are_read),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(odd_contexts_and_units),
        cmocka_unit_test(odd_times_are_no_figures),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

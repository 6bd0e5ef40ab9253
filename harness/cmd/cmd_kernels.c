/* SPDX-License-Identifier: MIT
 *
 * cmd_kernels.c - `bench kernels`: the matrix of formats, levels and operations
 */
#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/cmd/cmd.h"

#include <stdlib.h>
#include <unistd.h>

#include "harness/base/dirs.h"
#include "harness/base/interrupt.h"
#include "harness/base/newfile.h"
#include "harness/base/pathlist.h"
#include "harness/machine/measuring.h"
#include "harness/base/options.h"
#include "harness/measure/kernels/kernel_report.h"
#include "harness/measure/kernels/kernel_plan.h"

static const struct opt_usage usage = {
    .synopsis = "kernels [options] | --from FILE | --compare OLD NEW",
    .about =
        "Times kernels with google-benchmark (bench_kernels, in the folder of this "
        "program) and prints a table by format and ISA level. Default: gemv hot (in "
        "the L2 cache) and cold (from memory; one thread and all), gemm with 512 "
        "columns, every format at the best level. Each row is checked before it is "
        "timed; rows and the machine's roofs are interleaved in random order.\n\nDIR "
        "receives kernels.json, kernels.csv and a roofline chart. --compare tests by "
        "rank which rows differ. Exit code 1: a row became slower or fails; 4: no row "
        "could be decided.",
    .example = "bench kernels\n"
               "bench kernels --formats q4_K,q8_0 --all-isa\n"
               "bench kernels --ops gemm --columns 2,3,4,6 --threads 2\n"
               "bench kernels --compare before/kernels.json now/kernels.json",
};

struct settings {
    struct kernel_wish wish;
    int n_repetitions; /* 0: the default */
    double min_time_s; /* 0: the default */
    double min_change;
    enum placement placement;
    const char *out, *from;
    bool quick, list, compare, no_charts, json;
};

#define EXIT_UNDECIDED 4 /* as bench gate */

#define REPETITIONS       9
#define QUICK_REPETITIONS 3
#define MIN_TIME_S        0.1
#define QUICK_MIN_TIME_S  0.02

/* ---- comparing ------------------------------------------------------------------- */

static enum status compare(const struct settings *s, char **paths, int *code,
                           struct err *err)
{
    struct kernel_results old = {.n = 0}, new = {.n = 0};
    struct kernel_comparison c = {.n = 0};
    enum status st = kernel_results_read(&old, paths[0], err);

    if (st == ST_OK)
        st = kernel_results_read(&new, paths[1], err);
    if (st == ST_OK)
        st = kernel_compare(&c, &old, &new, s->min_change / 100, err);
    if (st == ST_OK && s->json)
        st = cmd_print_json(kernel_compare_json(&c), 6, err);
    else if (st == ST_OK)
        kernel_compare_print(stdout, &c);
    *code = c.n_verdict[KERNEL_SLOWER] || c.n_broken ? 1
            : kernel_compare_is_empty(&c)            ? EXIT_UNDECIDED
                                                     : 0;
    kernel_compare_free(&c);
    kernel_results_free(&old);
    kernel_results_free(&new);
    return st;
}

/* ---- measuring ------------------------------------------------------------------- */

static void print_plan(const struct kernel_plan *plan)
{
    for (size_t i = 0; i < plan->n_run; i++)
        printf("%s\n", kernel_case_name(&plan->run[i]).text);
    for (size_t i = 0; i < plan->n_skip; i++)
        printf("%s  skipped: %s\n", kernel_case_name(&plan->skip[i].c).text,
               plan->skip[i].reason);
}

/* Makes the reports from kernels.json in dir (or s->from). */
static enum status report(const struct settings *s, const char *dir,
                          const char *json_path, const struct kernel_plan *plan,
                          bool *has_failure, struct err *err)
{
    struct kernel_results results = {.n = 0};
    struct kernel_report r = {.n = 0};
    char path[700], again[1400];
    enum status st = kernel_results_read(&results, json_path, err);

    if (st == ST_OK)
        st = kernel_report_make(&r, &results, plan, err);
    if (st == ST_OK) {
        kernel_report_print(stdout, &r);
        *has_failure = kernel_report_has_failure(&r);
    }
    snprintf(path, sizeof path, "%s/kernels.csv", dir ? dir : "");
    if (st == ST_OK && dir)
        st = kernel_report_csv(&r, path, err);
    snprintf(again, sizeof again, "bench kernels --from %s -o %s", json_path,
             dir ? dir : "");
    if (st == ST_OK && dir && !s->no_charts) {
        struct err why = ERR_INIT;

        if (kernel_report_chart(&r, dir, again, &why))
            message_print(why.msg);
    }
    if (st == ST_OK && dir)
        printf("\nResults are in %s\n", format_path(dir).text);
    kernel_report_free(&r);
    kernel_results_free(&results);
    return st;
}

/* Writes kernels.json, atomically; an interrupted run writes the finished rows, if
 * there are any. */
static enum status run(const struct settings *s, const struct kernel_plan *plan,
                       const char *json_path, struct err *err)
{
    struct kernel_results written = {.n = 0};
    struct err unreadable = ERR_INIT, why = ERR_INIT;
    struct newfile n;
    char part[40];
    const struct kernel_run_params params = {
        .plan = plan,
        .n_repetitions = s->n_repetitions ? s->n_repetitions
                         : s->quick       ? QUICK_REPETITIONS
                                          : REPETITIONS,
        .min_time_s = s->min_time_s > 0 ? s->min_time_s
                      : s->quick        ? QUICK_MIN_TIME_S
                                        : MIN_TIME_S,
        .placement = choices_placement.name((int)s->placement),
    };

    if (newfile_replace(&n, json_path, err))
        return err->code;
    snprintf(part, sizeof part, "/proc/self/fd/%d", fileno(n.f));
    const enum status st = kernel_run(&params, fileno(n.f), err);
    if (st != ST_OK &&
        (st != ST_INTERRUPTED || kernel_results_read(&written, part, &unreadable))) {
        newfile_abort(&n);
        return st;
    }
    kernel_results_free(&written);
    if (newfile_commit(&n, json_path, &why))
        return err_set(err, why.code, "%s", why.msg);
    return st;
}

static enum status measure(const struct settings *s, const struct topology *topo,
                           bool *has_failure, struct err *err)
{
    struct kernel_plan plan = {.n_run = 0};
    char dir[512], json_path[600];
    enum status st = kernel_plan_make(&plan, &s->wish, topo, err);

    if (st)
        return st;
    if (s->list) {
        print_plan(&plan);
        kernel_plan_free(&plan);
        return ST_OK;
    }
    if (s->out)
        snprintf(dir, sizeof dir, "%s", s->out);
    else
        dirs_results(dir, sizeof dir, "kernels-");
    snprintf(json_path, sizeof json_path, "%s/kernels.json", dir);
    st = dirs_make(dir, err);
    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK)
        st = run(s, &plan, json_path, err);
    if (st == ST_OK || (st == ST_INTERRUPTED && !access(json_path, R_OK))) {
        struct err later = ERR_INIT; /* an interruption stays one */

        if (report(s, dir, json_path, &plan, has_failure, st ? &later : err) && !st)
            st = err->code;
    }
    kernel_plan_free(&plan);
    return st;
}

/* ---------------------------------------------------------------------------------- */

static enum status check_arguments(const struct settings *s,
                                   const struct opt_args *args, struct err *err)
{
    if (s->compare && args->n != 2)
        return err_set(
            err, ST_USAGE,
            "--compare takes two files, OLD.json and NEW.json, but %d %s given",
            args->n, args->n == 1 ? "was" : "were");
    if (!s->compare && args->n)
        return err_set(err, ST_USAGE,
                       "unexpected argument '%s'; see `bench kernels --help`",
                       args->v[0]);
    if (s->json && !s->compare)
        return err_set(
            err, ST_USAGE,
            "--json requires --compare; a run writes kernels.json to its directory");
    if (s->wish.isa && s->wish.all_isa)
        return err_set(err, ST_USAGE, "--isa and --all-isa contradict each other");
    return ST_OK;
}

static enum status check_from(const struct settings *s, struct err *err)
{
    static const char *const names[] = {"kernels.csv", NULL};
    struct path_list inputs = {0};
    enum status st = path_list_add(&inputs, s->from, err);

    if (st == ST_OK)
        st = path_list_check_folder(&inputs, s->out, names, err);
    path_list_free(&inputs);
    return st;
}

static enum status run_command(const struct settings *s, const struct opt_args *args,
                               int *code, struct err *err)
{
    bool is_bad = false;
    struct topology *topo = NULL;
    enum status st = check_arguments(s, args, err);

    if (st)
        return st;
    if (s->compare)
        return compare(s, args->v, code, err);
    if (s->from) {
        st = check_from(s, err);
        if (st == ST_OK && s->out)
            st = dirs_make(s->out, err);
        if (st == ST_OK)
            st = report(s, s->out, s->from, NULL, &is_bad, err);
        *code = is_bad;
        return st;
    }
    interrupt_catch();
    st = topology_open(&topo, "", err);
    if (st == ST_OK)
        st = measure(s, topo, &is_bad, err);
    *code = is_bad;
    free(topo);
    return st;
}

/* clang-format off */
int cmd_kernels(int argc, char **argv)
{
    struct settings s = {.min_change = 2};
    struct kernel_wish *w = &s.wish;
    const struct opt opts[] = {
        OPT_STR(0, "formats", &w->formats, "LIST", "weight formats, as q4_K,q8_0 (default: all)"),
        OPT_STR(0, "ops", &w->ops, "LIST", "operations or all (default: gemv,gemm)"),
        OPT_STR(0, "isa", &w->isa, "LIST", "ISA levels, as avx2,avx512vnni (default: the best)"),
        OPT_FLAG(0, "all-isa", &w->all_isa, "every level; unavailable ones are listed as skipped"),
        OPT_INTS(0, "columns", &w->columns, "LIST", "columns of gemm: 2-6, 8, 16, 64, 128, 512, 2048 (default 512)", 2, 2048),
        OPT_STR(0, "weights", &w->weights, "hot|cold", "gemv from the cache or from memory (default: both)"),
        OPT_INTS('t', "threads", &w->threads, "LIST", "threads of cold rows (default: 1, for gemv also all)", 1, TOPO_MAX_CPUS),
        OPT_STR(0, "prefetch", &w->prefetch, "LIST", "ways to read panels, as T0-4096,off or all (gemv_x16)"),
        OPT_INTS(0, "panels", &w->panels, "LIST", "with --prefetch: interleaved panels (default 1,2,4)", 1, KERN_MAX_INTERLEAVED),
        OPT_CHOICE(0, "placement", &s.placement, "P", "spread, compact, smt or none (default spread)", &choices_placement),
        OPT_INT(0, "repetitions", &s.n_repetitions, "N", "repetitions of every row (default 9)", 1, 1000),
        OPT_SECONDS(0, "min-time", &s.min_time_s, "S", "seconds of one repetition (default 0.1)", 0.0001, 60),
        OPT_FLAG(0, "quick", &s.quick, "3 repetitions of 0.02 s: too few to compare"),
        OPT_FLAG(0, "list", &s.list, "list the rows, measure nothing"),
        OPT_STR('o', "output", &s.out, "DIR", "output (default: results/kernels-<host>-<utc>)"),
        OPT_FLAG(0, "no-charts", &s.no_charts, "draw no chart"),
        OPT_STR(0, "from", &s.from, "FILE", "report an earlier kernels.json; -o: CSV and charts"),
        OPT_FLAG(0, "compare", &s.compare, "compare two files, OLD.json NEW.json"),
        OPT_DOUBLE(0, "least-change", &s.min_change, "PCT", "smallest change that --compare reports (default 2)", 0, 100),
        OPT_FLAG(0, "json", &s.json, "print the comparison as JSON"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;
    int code = 0;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    const enum status st = run_command(&s, &args, &code, &err);
    free(w->columns.v);
    free(w->panels.v);
    free(w->threads.v);
    if (st)
        return cmd_end(&err);
    return code;
}
/* clang-format on */

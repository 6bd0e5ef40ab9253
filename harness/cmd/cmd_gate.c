/* SPDX-License-Identifier: MIT
 *
 * cmd_gate.c - `bench gate`: did the last change make it slower?
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/gate/gate_options.h"
#include "harness/gate/gate_report.h"
#include "harness/gate/gate_settings.h"

static const struct opt_usage usage = {
    .synopsis = "gate --a PROGRAM --b PROGRAM [-m MODEL] [--budget 10m] [--margin 2%]\n"
                "       bench gate --baseline RESULTS --rows NEW|-m MODEL\n"
                "       bench gate --record DB --rows NEW | --history RESULTS",
    .about =
        "Is B slower than A by more than the margin? Two builds take turns on this\n"
        "machine, launch after launch of both, until that is clear or the budget is "
        "over.\n"
        "Exit code 0 (pass: no slowdown beyond the margin), 1 (fail: there is one), 4\n"
        "(inconclusive), 2 (wrong input, or a program died), 3 (not possible here), "
        "130\n"
        "(interrupted; what was measured is written).\n"
        "\n"
        "--a and --b compare builds; --calibrate says what that can see on this "
        "machine;\n"
        "--record keeps rows of runs; --baseline judges new rows by those of the same\n"
        "machine, model and settings (exit code 3: there are none, or too few), and\n"
        "--history names the commits with which they have changed. docs/gate.md "
        "explains\n"
        "all of it, configs/gates/default.yaml every setting; options come on top.",
    .example = "bench gate --a old/bench --b new/bench -m model.gguf --budget 5m\n"
               "bench gate --record results.db --rows new\n"
               "bench gate --baseline results.db --rows new --margin 5%\n"
               "bench gate --history results.db -o history",
};

/* The ways it can be run; one of both functions. */
struct mode {
    const char *option;
    enum status (*judge)(const struct gate_options *o, struct gate_result *r,
                         struct err *err);
    enum status (*run)(const struct gate_options *o, struct err *err);
};

static enum status run_mode(const struct gate_options *o, struct gate_result *r,
                            const struct mode **chosen, struct err *err)
{
    /* A mode has its row's function once its file is there. */
    static const struct mode modes[] = {
        {"--a and --b", gate_ab, NULL},        {"--baseline", gate_baseline, NULL},
        {"--report", gate_report, NULL},       {"--history", NULL, gate_history},
        {"--calibrate", NULL, gate_calibrate}, {"--record", NULL, gate_store},
    };
    const bool given[] = {(o->a || o->b) && !o->calibrate && !o->baseline,
                          o->baseline != NULL,
                          o->report != NULL,
                          o->history != NULL,
                          o->calibrate,
                          o->record && !o->baseline};

    *chosen = NULL;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (!given[i])
            continue;
        if (*chosen)
            return err_set(err, ST_USAGE, "%s and %s exclude each other",
                           (*chosen)->option, modes[i].option);
        *chosen = &modes[i];
    }
    if (!*chosen)
        return err_set(err, ST_USAGE,
                       "what is to be compared? Two programs, with --a OLD/bench and "
                       "--b NEW/bench; `bench gate --help` lists the other ways");
    if (o->counts && (*chosen)->judge != gate_ab)
        return err_set(err, ST_USAGE,
                       "--counts needs two programs, --a and --b, and does not go with "
                       "%s",
                       (*chosen)->option);
    if ((*chosen)->judge)
        return (*chosen)->judge(o, r, err);
    if ((*chosen)->run)
        return (*chosen)->run(o, err);
    return err_set(err, ST_UNSUPPORTED, "this build cannot do %s", (*chosen)->option);
}

/* Prints, writes, and says with which code to exit. */
static enum status conclude(const struct gate_options *o, struct gate_result *r,
                            int *code, struct err *err)
{
    const struct gate_report_paths paths = {.json = o->json,
                                            .markdown = o->markdown,
                                            .junit = o->junit,
                                            .annotations = o->annotations ? "-" : NULL};
    struct err chart = ERR_INIT;
    enum status st = ST_OK;

    gate_print(stdout, r);
    if (o->report)
        snprintf(r->dir, sizeof r->dir, "%s", o->report);
    if (*r->dir)
        st = gate_report_dir(r, r->dir, false, err);
    if (st == ST_OK)
        st = gate_report_write(r, &paths, err);
    /* A verdict is worth no less for want of a chart. */
    if (st == ST_OK && *r->dir && !o->no_charts && gate_forest_draw(r, r->dir, &chart))
        printf("no chart: %s\n", chart.msg);
    if (st == ST_OK && *r->dir)
        printf("results: %s\n", r->dir);
    *code = o->codes[r->verdict == GATE_PASS ? 0 : r->verdict == GATE_FAIL ? 1 : 2];
    if (r->end == GATE_END_INTERRUPTED) {
        fprintf(stderr, "bench: interrupted\n");
        *code = status_exit_code(ST_INTERRUPTED);
    }
    return st;
}

int cmd_gate(int argc, char **argv)
{
    int codes[3] = {0, 1, 4}; /* of pass, fail, inconclusive */
    struct gate_options o = {.argc = argc, .argv = argv, .codes = codes};
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('a', "a", &o.a, "PROGRAM", "the old build's `bench`"),
        OPT_STR('b', "b", &o.b, "PROGRAM", "the new build's (default: this one)"),
        OPT_STR(0, "baseline", &o.baseline, "RESULTS", "compare with rows of earlier runs instead: results.csv, SQLite file or directory"),
        OPT_STR(0, "history", &o.history, "DB", "find where a series of results has changed"),
        OPT_STR(0, "record", &o.record, "DB", "put rows into an SQLite database, for --baseline and --history"),
        OPT_STRS(0, "rows", &o.rows, "FILE|DIR", "the new rows: what `bench sweep` has written, or `bench decode --json` printed; may be repeated"),
        OPT_STR(0, "metric", &o.metrics, "LIST", "columns to judge (default: tok_per_s)"),
        OPT_STR(0, "only", &o.only, "TEXT", "only series with this in their name"),
        OPT_STR(0, "commit", &o.commit, "NAME", "what was measured, where --record is not to take the commit of bench"),
        OPT_FLAG(0, "here", &o.here, "rows without a machine.json are from this machine"),
        OPT_FLAG(0, "disturbed", &o.disturbed, "disturbed rows count, too"),
        OPT_U64(0, "runs", &o.runs, "N", "measurements of each point with --baseline and -m (default: 3)"),
        OPT_U64(0, "last", &o.last, "N", "runs of a series that are looked at, the latest (default: 500)"),
        OPT_STR(0, "report", &o.report, "DIR", "the outputs of a gate that has run, again"),
        OPT_FLAG(0, "calibrate", &o.calibrate, "A against A: what this gate sees on this machine, and which budget it needs"),
        OPT_STR('c', "config", &o.config, "CONFIG", "YAML file, or a name in configs/gates (default: default)"),
        OPT_STR('m', "model", &o.model, "MODEL", "GGUF file or SHAPE:QUANT"),
        OPT_STR('t', "threads", &o.threads, "LIST", "thread counts"),
        OPT_STR(0, "prefill", &o.prefill, "LIST", "prompt lengths; none for no such metric"),
        OPT_STR(0, "ctx", &o.ctx, "LIST", "context depths of decoding; none for no such metric"),
        OPT_STR(0, "weights", &o.weights, "W", "mmap (both sides share the page cache's memory; default), or packed"),
        OPT_STR(0, "mem", &o.mem, "LIMIT", "memory limit around both programs together, as 6G; none for no sandbox"),
        OPT_STR(0, "budget", &o.budget, "TIME", "longest time it may take: 90s, 10m (the default), 1h"),
        OPT_STR(0, "margin", &o.margin, "P", "slowdown that may pass, in percent (default: 2)"),
        OPT_STR(0, "inject-slowdown", &o.inject, "P", "slow B down by P percent, to see the gate bite"),
        OPT_FLAG(0, "counts", &o.counts, "count instructions of some kernels and of a token in both programs, too, exactly; this takes a minute after the budget, needs valgrind where the CPU does not count, and does not change the verdict"),
        OPT_U64(0, "seed", &o.seed, "N", "of orders and tokens (default: by the clock)"),
        OPT_STR('o', "out", &o.out, "DIR", "where the results go (default: results/gate-<host>-<utc>)"),
        OPT_STR(0, "json", &o.json, "FILE", "the result as JSON"),
        OPT_STR(0, "markdown", &o.markdown, "FILE", "a summary for people, such as $GITHUB_STEP_SUMMARY"),
        OPT_STR(0, "junit", &o.junit, "FILE", "the result as JUnit XML"),
        OPT_FLAG(0, "annotations", &o.annotations, "print GitHub workflow commands"),
        OPT_FLAG(0, "no-charts", &o.no_charts, "draw no charts"),
        OPT_STR(0, "exit-codes", &o.exit_codes, "P,F,I", "exit codes of pass, fail, inconclusive (default: 0,1,4)"),
        OPT_END
    };
    /* clang-format on */
    struct gate_result *r = calloc(1, sizeof *r);
    const struct mode *mode;
    struct opt_args args;
    struct err err = ERR_INIT;
    enum status st;
    int code = 0;

    st = r ? opt_parse(&args, argc, argv, opts, &usage, &err)
           : err_set(&err, ST_NO_MEMORY, "no memory");
    if (st == ST_OK && !args.help) {
        if (args.n)
            st = err_set(&err, ST_USAGE,
                         "what is '%s'? Programs are given by --a and --b, a model by "
                         "-m",
                         args.v[0]);
        interrupt_catch();
        if (st == ST_OK && o.exit_codes)
            st = gate_exit_codes_parse(o.exit_codes, "--exit-codes", codes, &err);
        if (st == ST_OK)
            st = run_mode(&o, r, &mode, &err);
        if (st == ST_OK && mode->judge)
            st = conclude(&o, r, &code, &err);
    }
    if (st)
        code = cmd_fail(&err);
    free(o.rows.v);
    if (r)
        gate_result_free(r);
    free(r);
    return code;
}

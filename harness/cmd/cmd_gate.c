/* SPDX-License-Identifier: MIT
 *
 * cmd_gate.c - `bench gate`: did the last change make it slower?
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/decide/gate/gate_options.h"
#include "harness/decide/gate/gate_settings.h"
#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_gates.h"

static const struct opt_usage usage = {
    .synopsis = "gate --a OLD/bench [--b NEW/bench] [-m MODEL] [--budget 10m]\n"
                "       bench gate --calibrate [--a PROGRAM] [-m MODEL]\n"
                "       bench gate --report DIR",
    .about = "Checks whether build B is slower than build A by more than the margin. "
             "Both run\n"
             "interleaved on this machine, launch after launch, until the answer is "
             "clear or the\n"
             "budget is spent. Exit code 0 (pass: no slowdown beyond the margin), 1 "
             "(fail: a\n"
             "slowdown beyond it), 4 (inconclusive), 2 (wrong input, or a program "
             "died), 3 (not\n"
             "possible here), 130 (interrupted; what was measured so far is written). "
             "docs/gate.md\n"
             "explains the rule, configs/gates/default.yaml has every setting. See "
             "also `bench\n"
             "history`.",
    .example = "bench gate --a old/bench --b new/bench -m model.gguf --budget 5m\n"
               "bench gate --a old/llama-bench --b new/llama-bench -m model.gguf\n"
               "bench gate -m model-q8_0.gguf --b-model model-q4_k_m.gguf",
    .no_arguments = "programs are given by --a and --b, a model by -m",
};

/* ---- modes ----------------------------------------------------------------------- */

/* Its own report stands already. */
static enum status add_to_database(const struct gate_result *r, const char *path,
                                   struct err *err)
{
    size_t n_new = 0;
    const enum status st = history_gates_add(path, r, &n_new, err);

    if (st == ST_OK)
        printf("%s: %zu of %zu measures added\n", format_path(path).text, n_new,
               r->n_metrics);
    return st;
}

/* Prints and writes; *code is the exit code. */
static enum status judge(enum status (*mode)(const struct gate_options *o,
                                             struct gate_result *r, struct err *err),
                         const struct gate_options *o, int *code, struct err *err)
{
    struct gate_result *r = calloc(1, sizeof *r);
    enum status st = r ? mode(o, r, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a gate's result");

    if (st == ST_OK)
        st = gate_report_all(r, &o->outputs, err);
    if (st == ST_OK)
        *code = gate_exit_code(r, o->codes);
    if (st == ST_OK && o->add_to)
        st = add_to_database(r, o->add_to, err);
    if (st == ST_OK && r->end == GATE_END_INTERRUPTED)
        fprintf(stderr, "bench: interrupted\n");
    free(r);
    return st;
}

static enum status run(const struct gate_options *o, int *code, struct err *err)
{
    if (o->report && (o->calibrate || o->a || o->b))
        return err_set(err, ST_USAGE, "--report and %s exclude each other",
                       o->calibrate ? "--calibrate" : "--a and --b");
    if (o->add_to && o->calibrate)
        return err_set(err, ST_USAGE,
                       "--add-to stores verdicts, and --calibrate gives none");
    if (o->add_to && history_db_check_output(o->add_to, err))
        return err->code;
    if (o->b_model && (o->report || o->calibrate))
        return err_set(err, ST_USAGE, "--b-model and %s exclude each other",
                       o->calibrate ? "--calibrate" : "--report");
    if (o->calibrate)
        return gate_calibrate(o, err);
    if (o->report)
        return judge(gate_report, o, code, err);
    if (!o->a && !o->b && !o->b_model)
        return err_set(err, ST_USAGE,
                       "name two programs with --a OLD/bench and --b NEW/bench, or two "
                       "models with -m and --b-model; `bench history compare` compares "
                       "with stored results");
    return judge(gate_ab, o, code, err);
}

int cmd_gate(int argc, char **argv)
{
    int codes[3] = {0, 1, 4}, code = 0; /* of pass, fail, inconclusive */
    struct gate_options o = {.codes = codes};
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('a', "a", &o.a, "PROGRAM", "old `bench` (default: this one), or a command"),
        OPT_STR('b', "b", &o.b, "PROGRAM", "the new one, of the same kind"),
        OPT_FLAG(0, "calibrate", &o.calibrate, "compare A with itself to find which slowdowns a budget can detect"),
        OPT_STR(0, "report", &o.report, "DIR", "rewrite the reports of a finished gate in DIR"),
        OPT_STR('c', "config", &o.config, "CONFIG", "YAML file, or a name in configs/gates"),
        OPT_STR('m', "model", &o.model, "MODEL", "GGUF file or SHAPE:QUANT"),
        OPT_STR(0, "b-model", &o.b_model, "MODEL", "another model for B: the program with two models"),
        OPT_STR('t', "threads", &o.threads, "LIST", "thread counts"),
        OPT_STR(0, "prefill", &o.prefill, "LIST", "prompt lengths, or none"),
        OPT_STR(0, "ctx", &o.ctx, "LIST", "context depths of decoding, or none"),
        OPT_STR(0, "weights", &o.weights, "W", "mmap (default), packed, stream"),
        OPT_STR(0, "mem", &o.mem, "LIMIT", "memory limit around both programs, as 6G"),
        OPT_STR(0, "budget", &o.budget, "TIME", "longest time: 90s, 10m (default), 1h"),
        OPT_STR(0, "margin", &o.margin, "P", "accepted slowdown, percent (default: 2)"),
        OPT_STR(0, "inject-slowdown", &o.inject, "P", "slow B down by P percent, as a test"),
        OPT_U64(0, "seed", &o.seed, "N", "random seed (default: current time)"),
        OPT_STR('o', "output", &o.out, "DIR", "default: results/gate-<host>-<utc>"),
        OPT_STR(0, "add-to", &o.add_to, "DB", "add the verdicts to this database of `bench history`"),
        OPT_STR(0, "json", &o.outputs.json, "FILE", "the result as JSON"),
        OPT_STR(0, "markdown", &o.outputs.markdown, "FILE", "a summary for people"),
        OPT_STR(0, "junit", &o.outputs.junit, "FILE", "the result as JUnit XML"),
        OPT_FLAG(0, "annotations", &o.outputs.annotations, "print GitHub workflow commands"),
        OPT_FLAG(0, "no-charts", &o.outputs.no_charts, "draw no charts"),
        OPT_STR(0, "exit-codes", &o.exit_codes, "P,F,I", "pass, fail, inconclusive (default: 0,1,4)"),
        OPT_END
    };
    /* clang-format on */
    struct opt_args args;
    struct err err = ERR_INIT;
    enum status st = opt_parse(&args, argc, argv, opts, &usage, &err);

    if (st == ST_OK && !args.help) {
        interrupt_catch();
        if (o.exit_codes)
            st = gate_exit_codes_parse(o.exit_codes, "--exit-codes", codes, &err);
        if (st == ST_OK)
            st = run(&o, &code, &err);
    }
    return st ? cmd_end(&err) : code;
}

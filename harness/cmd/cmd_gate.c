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
#include "harness/decide/gate/gate_commits.h"
#include "harness/decide/gate/gate_options.h"
#include "harness/decide/gate/gate_settings.h"
#include "harness/decide/history/history_db.h"
#include "harness/decide/history/history_gates.h"

static const struct opt_usage usage = {
    .synopsis = "gate --a OLD/bench [--b NEW/bench] [-m MODEL] [--budget 10m]",
    .about =
        "Checks whether B is slower than A by more than the margin; both run "
        "interleaved.\n"
        "Exit code 0 (pass), 1 (fail), 4 (inconclusive), 2 (wrong input, or a program "
        "died),\n"
        "3 (not possible here), 130 (interrupted). docs/gate.md explains the rule.",
    .example =
        "bench gate --a old/llama-bench --b new/llama-bench -m model.gguf\n"
        "bench gate -m model-q8_0.gguf --b-model model-q4_k_m.gguf --max-kl 0.02",
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

/* A server's command is a side of its own kind, which {port} shows. */
static enum status take_launches(struct gate_options *o, const char *const launch[2],
                                 struct err *err)
{
    const char **const side[2] = {&o->a, &o->b};

    for (int i = 0; i < 2; i++) {
        if (!launch[i])
            continue;
        if (*side[i])
            return err_set(err, ST_USAGE, "--%c and --%c-launch exclude each other",
                           'a' + i, 'a' + i);
        if (!strstr(launch[i], "{port}") || strstr(launch[i], "{model}"))
            return err_set(err, ST_USAGE,
                           "--%c-launch: a server's command has {port} where its port "
                           "belongs, and names its model itself, as 'llama-server -m "
                           "model.gguf --port {port}'",
                           'a' + i);
        *side[i] = launch[i];
    }
    return ST_OK;
}

/* Commits without a difference need no gate. */
static enum status compare(const struct gate_options *o, int *code, struct err *err)
{
    struct gate_commits *c;
    enum status st;
    bool same;

    if (!gate_options_have_commits(o))
        return judge(gate_ab, o, code, err);
    c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ST_NO_MEMORY, "no memory for two commits");
    st = gate_commits_find(c, o, err);
    same = st == ST_OK && gate_commits_same(c);
    if (same)
        printf("%s and %s have the same files: there is nothing to compare\n",
               format_path(c->side[0].name).text, c->side[1].name);
    free(c);
    if (same)
        *code = o->codes[0];
    return st || same ? st : judge(gate_ab, o, code, err);
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
    if (o->detect && !o->calibrate)
        return err_set(err, ST_USAGE, "--detect belongs to --calibrate");
    if (o->calibrate)
        return gate_calibrate(o, err);
    if (o->report)
        return judge(gate_report, o, code, err);
    if (!o->a && !o->b && !o->b_model && !gate_options_have_commits(o))
        return err_set(err, ST_USAGE,
                       "name two programs with --a OLD/bench and --b NEW/bench, or two "
                       "models with -m and --b-model; `bench history compare` compares "
                       "with stored results");
    return compare(o, code, err);
}

int cmd_gate(int argc, char **argv)
{
    int codes[3] = {0, 1, 4}, code = 0; /* of pass, fail, inconclusive */
    struct gate_options o = {.codes = codes};
    const char *launch[2] = {NULL, NULL};
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR('a', "a", &o.a, "PROGRAM", "old `bench` (default: this one), or a command"),
        OPT_STR('b', "b", &o.b, "PROGRAM", "the new one, of the same kind"),
        OPT_STR(0, "a-launch", &launch[0], "COMMAND", "A is a server, started with {port}; or --a URL"),
        OPT_STR(0, "b-launch", &launch[1], "COMMAND", "the same for B"),
        OPT_STR(0, "build", &o.build, "COMMAND", "--a and --b are commits, each built by it,"),
        OPT_STR(0, "run", &o.run, "PROGRAM", "... and this is the side, below its tree"),
        OPT_STR(0, "since", &o.since, "COMMIT", "the working tree against where it left COMMIT"),
        OPT_FLAG(0, "calibrate", &o.calibrate, "compare A with itself: what can a budget detect?"),
        OPT_STR(0, "detect", &o.detect, "P", "... fail if it cannot detect P percent"),
        OPT_STR(0, "report", &o.report, "DIR", "rewrite the reports of a finished gate in DIR"),
        OPT_STR('c', "config", &o.config, "CONFIG", "YAML file, or a name in configs/gates"),
        OPT_STR('m', "model", &o.model, "MODEL", "GGUF file or SHAPE:QUANT"),
        OPT_STR(0, "b-model", &o.b_model, "MODEL", "another model for B: the program with two models"),
        OPT_STR(0, "max-kl", &o.max_kl, "NATS", "bound of the divergence of its answers"),
        OPT_STR('t', "threads", &o.threads, "LIST", "thread counts"),
        OPT_STR(0, "prefill", &o.prefill, "LIST", "prompt lengths, or none"),
        OPT_STR(0, "ctx", &o.ctx, "LIST", "context depths of decoding, or none"),
        OPT_STR(0, "weights", &o.weights, "W", "mmap (default), packed, stream"),
        OPT_STR(0, "mem", &o.mem, "LIMIT", "memory limit around both programs, as 6G"),
        OPT_STR(0, "budget", &o.budget, "TIME", "longest time: 90s, 10m (default), 1h"),
        OPT_STR(0, "margin", &o.margin, "P", "accepted slowdown, percent (default: 2)"),
        OPT_STR(0, "inject-slowdown", &o.inject, "P", "slow B down by P percent, as a test"),
        OPT_U64(0, "seed", &o.seed, "N", "seed (default: a random one)"),
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
            st = take_launches(&o, launch, &err);
        if (st == ST_OK)
            st = run(&o, &code, &err);
    }
    return st ? cmd_end(&err) : code;
}

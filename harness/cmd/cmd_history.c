/* SPDX-License-Identifier: MIT
 *
 * cmd_history.c - `bench history`: rows of many runs, kept, compared, searched for
 * change points
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/interrupt.h"
#include "harness/base/suggest.h"
#include "harness/decide/gate/gate_settings.h"
#include "harness/decide/history/history_options.h"

/* A command of a command, which reads o. */
struct verb {
    const char *name;
    struct opt_usage usage;
    const struct opt *opts;
    /* NULL: compare, which sets the exit code, too */
    enum status (*run)(const struct history_options *o, struct err *err);
    bool takes_rows; /* as further arguments */
};

static int codes[3] = {0, 1, 4}; /* of pass, fail, inconclusive */
static struct history_options o = {.codes = codes};

/* clang-format off */
#define COMMIT    OPT_STR(0, "commit", &o.commit, "NAME", "commit of the measured program (default: the rows' commit)")
#define HERE      OPT_FLAG(0, "here", &o.here, "rows without a machine.json are from this machine")
#define METRIC    OPT_STR(0, "metric", &o.metrics, "LIST", "columns to judge (default: tok_per_s)")
#define ONLY      OPT_STR(0, "only", &o.only, "TEXT", "only series with TEXT in their name")
#define DISTURBED OPT_FLAG(0, "disturbed", &o.disturbed, "use disturbed rows, too")
#define JSON      OPT_STR(0, "json", &o.outputs.json, "FILE", "the result as JSON")
#define MARKDOWN  OPT_STR(0, "markdown", &o.outputs.markdown, "FILE", "a summary for people")
#define NO_CHARTS OPT_FLAG(0, "no-charts", &o.outputs.no_charts, "draw no charts")

static const struct opt add_opts[] = {COMMIT, HERE, OPT_END};

static const struct opt compare_opts[] = {
    OPT_STRS(0, "rows", &o.rows, "FILE|DIR", "the new rows; may be repeated"),
    OPT_STR(0, "add-to", &o.add_to, "DB", "add the new rows and the verdict to this database"),
    COMMIT, HERE, METRIC, ONLY, DISTURBED,
    OPT_STR('c', "config", &o.config, "CONFIG", "YAML file, or a name in configs/gates"),
    OPT_STR(0, "margin", &o.margin, "P", "accepted slowdown, percent (default: 2)"),
    OPT_STR('o', "output", &o.out, "DIR", "output directory"),
    JSON, MARKDOWN,
    OPT_STR(0, "junit", &o.outputs.junit, "FILE", "the result as JUnit XML"),
    OPT_FLAG(0, "annotations", &o.outputs.annotations, "print GitHub workflow commands"),
    NO_CHARTS,
    OPT_STR(0, "exit-codes", &o.exit_codes, "P,F,I", "pass, fail, inconclusive (default: 0,1,4)"),
    OPT_END
};

static const struct opt changes_opts[] = {
    METRIC, ONLY,
    OPT_U64(0, "last", &o.last, "N", "latest runs of a series (default: 500)"),
    DISTURBED, HERE,
    OPT_STR('o', "output", &o.out, "DIR", "write a trend page, Markdown, JSON and a chart there"),
    JSON, MARKDOWN, NO_CHARTS, OPT_END
};

static const struct opt gates_opts[] = {
    OPT_STR(0, "only", &o.only, "TEXT", "only gates with TEXT in model, machine or measure"),
    OPT_U64(0, "last", &o.last, "N", "the latest gates (default: all)"),
    JSON, OPT_END
};
/* clang-format on */

static enum status run_compare(int *code, struct err *err)
{
    struct gate_result *r = calloc(1, sizeof *r);
    enum status st = r ? history_compare(&o, r, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a result");

    if (st == ST_OK)
        st = gate_report_all(r, &o.outputs, err);
    if (st == ST_OK)
        *code = gate_exit_code(r, o.codes);
    free(r);
    return st;
}

static const struct verb verbs[] = {
    {.name = "add",
     .run = history_add,
     .opts = add_opts,
     .takes_rows = true,
     .usage =
         {.synopsis = "history add DB ROWS...",
          .about =
              "Adds rows with their machine, commit and time to the SQLite database "
              "DB, which is\n"
              "created if it is missing. ROWS is a directory of `bench sweep` or one "
              "above several, a\n"
              "sweep.csv, or a row of `bench decode --json`. Rows that DB already has "
              "are skipped.",
          .example = "bench history add results.db new",
          .no_kernels = true}},
    {.name = "compare",
     .opts = compare_opts,
     .usage =
         {.synopsis = "history compare RESULTS --rows NEW",
          .about =
              "Checks whether new rows are slower than stored runs of the same "
              "machine, model and\n"
              "settings. RESULTS is a database of `bench history add`, a directory "
              "with sweeps, or a\n"
              "CSV. Exit code 0 (pass: no slowdown beyond the margin), 1 (fail), 4 "
              "(inconclusive), 3\n"
              "(too few stored runs, or none that can be compared), 2 (wrong input). "
              "docs/history.md\n"
              "explains the rule.",
          .example = "bench history compare results.db --rows new --margin 5%",
          .no_kernels = true}},
    {.name = "changes",
     .run = history_changes,
     .opts = changes_opts,
     .usage = {.synopsis = "history changes RESULTS [-o DIR]",
               .about = "Finds the change points of every series in RESULTS (a "
                        "database, a directory with\n"
                        "sweeps, or a CSV): commit, size with its 95 % interval, and "
                        "the commit before.",
               .example = "bench history changes results.db -o history",
               .no_kernels = true}},
    {.name = "gates",
     .run = history_list_gates,
     .opts = gates_opts,
     .usage = {.synopsis = "history gates DB [--only TEXT] [--last N]",
               .about = "Lists the gates in DB, the oldest first: those of `bench gate "
                        "--add-to` and of\n"
                        "`bench history compare --add-to`, with each measure's effect, "
                        "its 95 % interval\n"
                        "and verdict.",
               .example = "bench history gates results.db --last 10",
               .no_kernels = true}},
};
#define N_VERBS ((int)(sizeof verbs / sizeof verbs[0]))

static enum status print_help(int argc, char **argv, struct err *err)
{
    static const struct opt_verb help[] = {
        {"add", "add rows of `bench sweep` or `bench decode --json` to a database"},
        {"compare", "check whether new rows are slower than the stored ones"},
        {"changes", "find the commits at which a series changed"},
        {"gates", "list the stored verdicts of gates"},
        {NULL, NULL},
    };
    static const struct opt no_opts[] = {OPT_END};
    static const struct opt_usage usage = {
        .synopsis = "history COMMAND",
        .about = "Stores the results of many runs and finds what changed over days and "
                 "commits. `bench history COMMAND --help` lists a command's options; "
                 "docs/history.md explains all.",
        .example = "bench history add results.db new\n"
                   "bench history compare results.db --rows new --margin 5%\n"
                   "bench history changes results.db -o history",
        .no_kernels = true,
        .verbs = help,
    };
    struct opt_args args;

    return opt_parse(&args, argc, argv, no_opts, &usage, err);
}

static enum status find_verb(const struct verb **verb, const char *name,
                             struct err *err)
{
    const char *names[sizeof verbs / sizeof verbs[0]];

    for (int i = 0; i < N_VERBS; i++) {
        names[i] = verbs[i].name;
        *verb = &verbs[i];
        if (name && !strcmp(name, names[i]))
            return ST_OK;
    }
    const char *near = name ? suggest(name, names, N_VERBS) : NULL;
    if (near)
        return err_set(
            err, ST_USAGE,
            "there is no `bench history %.40s`; did you mean `bench history %s`?", name,
            near);
    return err_set(err, ST_USAGE,
                   "history needs a command, add, compare, changes or gates%s%.40s%s; "
                   "`bench history --help` explains them",
                   name ? ", not '" : "", name ? name : "", name ? "'" : "");
}

/* The history, and the rows of a verb that takes them. */
static enum status take_arguments(const struct verb *verb, const struct opt_args *args,
                                  struct err *err)
{
    if (args->n < 1)
        return err_set(err, ST_USAGE, "no history is named; usage: bench %s",
                       verb->usage.synopsis);
    if (args->n > 1 && !verb->takes_rows)
        return err_set(err, ST_USAGE, "unexpected argument '%s'; usage: bench %s",
                       args->v[1], verb->usage.synopsis);
    o.path = args->v[0];
    if (!verb->takes_rows)
        return ST_OK;
    o.rows.n = (size_t)args->n - 1;
    o.rows.v = malloc((o.rows.n + 1) * sizeof *o.rows.v);
    if (!o.rows.v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu names", o.rows.n);
    memcpy(o.rows.v, args->v + 1, o.rows.n * sizeof *o.rows.v);
    return ST_OK;
}

static enum status run_verb(const struct verb *verb, int argc, char **argv, int *code,
                            struct err *err)
{
    char name[32];
    struct opt_args args;

    snprintf(name, sizeof name, "history %s", verb->name);
    argv[0] = name; /* in messages about options */
    enum status st = opt_parse(&args, argc, argv, verb->opts, &verb->usage, err);
    argv[0] = (char *)(uintptr_t)verb->name;
    if (st || args.help)
        return st;
    if (take_arguments(verb, &args, err) ||
        (o.exit_codes &&
         gate_exit_codes_parse(o.exit_codes, "--exit-codes", codes, err)))
        return err->code;
    interrupt_catch();
    return verb->run ? verb->run(&o, err) : run_compare(code, err);
}

int cmd_history(int argc, char **argv)
{
    const struct verb *verb;
    struct err err = ERR_INIT;
    int code = 0;

    if (argc > 1 && argv[1][0] == '-')
        return print_help(argc, argv, &err) ? cmd_end(&err) : 0;

    enum status st = find_verb(&verb, argc > 1 ? argv[1] : NULL, &err);
    if (st == ST_OK)
        st = run_verb(verb, argc - 1, argv + 1, &code, &err);
    free(o.rows.v);
    return st ? cmd_end(&err) : code;
}

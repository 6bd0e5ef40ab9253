/* SPDX-License-Identifier: MIT
 *
 * main.c - `bench-research`: how often gates, histories and intervals are wrong, and
 * what they find
 *
 * A program of its own, built with everything else and not installed: what it finds out
 * stands in docs/research.md, and `bench` promises what is found there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "research/research.h"

#define PROGRAM "bench-research"

struct command {
    const char *name, *help;
    enum status (*run)(const struct research_options *o, struct err *err);
    struct opt_usage usage;
    const char *argument; /* what its one argument is; NULL: it has none */
    bool takes_several;   /* of such arguments */
    const struct opt *opts;
};

static struct research_options given;

/* clang-format off */
#define TRACES OPT_STRS(0, "trace", &given.traces, "FILE", "a recorded machine, or a gate's rounds.csv; may be repeated (default: those in research/traces)")
#define SEED   OPT_U64(0, "seed", &given.seed, "N", "other random numbers (default: 1)")

static const struct opt gates_opts[] = {
    OPT_U64('n', "gates", &given.n, "N", "gates of each kind (default: 10000)"),
    TRACES,
    OPT_STR('t', "threads", &given.threads, "N", "threads (default: all CPUs)"),
    OPT_STR(0, "margin", &given.margin, "P", "slowdown that may pass, in percent (default: 2)"),
    SEED,
    OPT_STR('o', "output", &given.out, "DIR", "keep rows, tables and charts there"),
    OPT_FLAG(0, "no-charts", &given.no_charts, "draw no charts"),
    OPT_END
};

static const struct opt histories_opts[] = {
    OPT_U64('n', "histories", &given.n, "N", "histories; five times as many comparisons with stored runs (default: 200)"),
    TRACES,
    SEED,
    OPT_END
};

static const struct opt coverage_opts[] = {
    OPT_U64('n', "launches", &given.n, "N", "launches of a repeat (default: 3)"),
    OPT_END
};

static const struct opt no_opts[] = {OPT_END};

static const struct opt trace_opts[] = {
    OPT_STR('m', "model", &given.model, "MODEL", "GGUF file or SHAPE:QUANT"),
    OPT_STR('t', "threads", &given.threads, "N", "threads"),
    OPT_U64('n', "turns", &given.n, "N", "turns to record (default: 2000)"),
    OPT_STR(0, "note", &given.note, "TEXT", "the machine's state: idle, building, ..."),
    OPT_END
};
/* clang-format on */

static const struct command commands[] = {
    {.name = "gates",
     .help = "gates on invented and recorded machines; other tools' rules",
     .run = research_gates,
     .opts = gates_opts,
     .usage =
         {.program = PROGRAM,
          .synopsis = "gates [-n N] [--trace FILE...] [-o DIR]",
          .about =
              "Thousands of gates on machines whose truth is known: invented noises "
              "and\n"
              "recorded times. How often equal builds fail (false-positive rate), and "
              "which\n"
              "slowdowns are found (detection power), for `bench gate` and for the "
              "rules of\n"
              "other tools. A run that was stopped is continued with the same -o. "
              "Exit code 1\n"
              "if equal builds fail more often than the rule promises.",
          .example = "bench-research gates -o sim\n"
                     "bench-research gates -n 300 --trace mine.txt"}},
    {.name = "histories",
     .help = "change points, thresholds and comparisons with stored runs",
     .run = research_histories,
     .opts = histories_opts,
     .usage =
         {.program = PROGRAM,
          .synopsis = "histories [-n N] [--trace FILE...]",
          .about =
              "Invented histories whose change points are known: how many of them "
              "`bench\n"
              "history changes` and thresholds find, and how often they are wrong. "
              "Then new\n"
              "runs against such histories, as `bench history compare` judges them.",
          .example = "bench-research histories -n 1000"}},
    {.name = "coverage",
     .help = "how often a sweep's intervals hold the true figure",
     .run = research_coverage,
     .opts = coverage_opts,
     .argument = "the directory of a sweep with many launches, DIR",
     .usage = {.program = PROGRAM,
               .synopsis = "coverage DIR [-n N]",
               .about =
                   "Takes the launches of a long sweep of few points as many sweeps of "
                   "N launches\n"
                   "each, gives every point of each the interval that `bench sweep` "
                   "would, and\n"
                   "counts how many hold the figure of all launches together.",
               .example =
                   "bench sweep -m nano:Q4_K_M --launches 300 --max-launches 300 "
                   "-o long\n"
                   "bench-research coverage long"}},
    {.name = "shares",
     .help = "print configs/shares.yaml of measured sweeps",
     .run = research_shares,
     .opts = no_opts,
     .argument = "directories of sweeps, DIR...",
     .takes_several = true,
     .usage = {.program = PROGRAM,
               .synopsis = "shares DIR...",
               .about =
                   "Prints which shares of the machines' limits undisturbed launches "
                   "reached, for\n"
                   "`bench predict --shares FILE`; results/examples/*2vcpu* make "
                   "configs/shares.yaml.",
               .example = "bench-research shares results/examples/*2vcpu* my/sweep"}},
    {.name = "record-trace",
     .help = "record how long equal turns take on this machine",
     .run = research_record_trace,
     .opts = trace_opts,
     .argument = "the file to write, FILE",
     .usage = {.program = PROGRAM,
               .synopsis = "record-trace FILE -m MODEL [-t N] [--note TEXT]",
               .about =
                   "Decodes the same number of tokens again and again and writes the "
                   "time of each\n"
                   "turn, in milliseconds, for `bench-research gates --trace FILE`.",
               .example = "bench-research record-trace mine.txt -m model.gguf -t 2"}},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(FILE *f)
{
    fputs("bench-research - how often gates, histories and intervals are wrong, and "
          "what\nthey find\n\n"
          "usage: bench-research COMMAND [options]\n\ncommands:\n",
          f);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(f, "  %-13s %s\n", commands[i].name, commands[i].help);
    fputs("\n`bench-research COMMAND --help` lists its options. docs/research.md has "
          "what was\nfound.\n",
          f);
}

static int fail(const struct err *err)
{
    fprintf(stderr, PROGRAM ": %s\n",
            err->code == ST_INTERRUPTED ? "interrupted" : err->msg);
    return status_exit_code(err->code);
}

static enum status take_argument(const struct command *c, const struct opt_args *args,
                                 struct err *err)
{
    const int wanted = c->argument ? 1 : 0;

    if (args->n > wanted && !c->takes_several)
        return err_set(err, ST_USAGE, "unexpected argument '%s'", args->v[wanted]);
    if (args->n < wanted)
        return err_set(err, ST_USAGE, "%s needs %s", c->name, c->argument);
    given.paths = (const char *const *)args->v;
    given.n_paths = (size_t)args->n;
    given.path = wanted ? args->v[0] : NULL;
    return ST_OK;
}

static int run(const struct command *c, int argc, char **argv)
{
    struct opt_args args;
    struct err err = ERR_INIT;
    enum status st = opt_parse(&args, argc, argv, c->opts, &c->usage, &err);

    if (st == ST_OK && args.help)
        return 0;
    if (st == ST_OK)
        st = take_argument(c, &args, &err);
    if (st == ST_OK) {
        interrupt_catch();
        st = c->run(&given, &err);
    }
    free(given.traces.v);
    return st ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout);
        return 0;
    }
    if (!strcmp(name, "--version")) {
        printf(PROGRAM " %s, %s\n", build_version(), build_compiler());
        return 0;
    }
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(name, commands[i].name))
            return run(&commands[i], argc - 1, argv + 1);
    fprintf(stderr,
            PROGRAM ": there is no command '%s'; `" PROGRAM " --help` lists them.\n",
            format_path(name).text);
    return 2;
}

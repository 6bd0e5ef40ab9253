/* SPDX-License-Identifier: MIT
 *
 * cmd_recommend.c - `bench recommend`: the setting to deploy with
 */
#include "harness/cmd/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/options.h"
#include "harness/report/report.h"
#include "harness/result/report_rows.h"

static const struct opt_usage usage = {
    .synopsis = "recommend DIR [--min-tps X] [--ctx N] [--mem LIMIT] [--model M]",
    .about =
        "Chooses from the rows of DIR/sweep.csv the quantisation, threads and "
        "placement\n"
        "to deploy with, and says why. Only finished points count, measured at the\n"
        "context depth asked for or above, within the memory limit, with no more\n"
        "threads than the machine's quota and affinity allow. Speeds are known as well "
        "as\n"
        "their 95 % intervals say; the least expected loss against the fastest wins.\n"
        "Among settings within 3 % of it the larger quantisation, then the fewer "
        "threads,\n"
        "are preferred, or, where DIR/quality.csv (`bench quality -o DIR`) knows what "
        "a\n"
        "quantisation of weights or KV cache loses, the one that diverges less; what\n"
        "diverges by more than --max-kl is left out. A point that was disturbed "
        "competes\n"
        "with an estimate from its setting's other depths, else with its own speed, "
        "which\n"
        "is a lower bound; the answer says so.\n"
        "Exit code 1: nothing qualifies.",
    .example = "bench recommend results/myhost-20260115T101500Z --ctx 4096 --min-tps 2",
};

static int print(const struct recommendation *rec, bool as_json)
{
    if (!as_json) {
        recommend_print(stdout, rec);
        return 0;
    }
    json_t *json = recommend_json(rec);

    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(json);
    return 0;
}

static enum status run(struct recommendation *rec, const char *dir,
                       struct recommend_params *params, struct err *err)
{
    struct report_machine machine;
    struct row *rows = NULL;
    size_t n_rows = 0;
    enum status st = report_rows_read(dir, &rows, &n_rows, err);

    if (st)
        return st;
    report_machine_read(&machine, dir);
    if (!params->max_threads)
        params->max_threads = machine.max_threads;
    st = recommend(rec, rows, n_rows, params, err);
    free(rows);
    return st;
}

int cmd_recommend(int argc, char **argv)
{
    struct recommend_params params = {.ctx = -1};
    bool as_json = false;
    const struct opt opts[] = {
        OPT_DOUBLE(0, "min-tps", &params.min_tps, "X",
                   "at least so many tokens per second (lower end of the interval)", 0,
                   1e9),
        OPT_INT(0, "ctx", &params.ctx, "N",
                "context depth to serve (default: the deepest measured)", 0, INT_MAX),
        OPT_BYTES(0, "mem", &params.mem_limit, "LIMIT",
                  "memory there will be (default: the limit of each point)"),
        OPT_INT(0, "max-threads", &params.max_threads, "N",
                "CPUs there will be (default: as machine.json says)", 1, INT_MAX),
        OPT_DOUBLE(
            0, "max-kl", &params.max_kl, "X",
            "most divergence from the reference, nats, where `bench quality` has "
            "measured it (default: 0.05, unless nothing else qualifies)",
            1e-9, 1e9),
        OPT_STR(0, "model", &params.model, "M", "this model only"),
        OPT_FLAG(0, "json", &as_json, "print JSON"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;

    if (opt_parse(&args, argc, argv, opts, &usage, &err))
        return cmd_fail(&err);
    if (args.help)
        return 0;
    if (args.n != 1) {
        err_set(&err, ST_USAGE,
                "recommend takes one directory with a sweep.csv, but %d arguments were "
                "given; see `bench recommend --help`",
                args.n);
        return cmd_fail(&err);
    }
    struct recommendation *rec = calloc(1, sizeof *rec);
    if (!rec)
        return cmd_fail((err_set(&err, ST_NO_MEMORY, "no memory for an answer"), &err));

    const int rc =
        run(rec, args.v[0], &params, &err) ? cmd_fail(&err) : print(rec, as_json);
    free(rec);
    return rc;
}

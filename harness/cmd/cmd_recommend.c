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
        "Chooses the quantisation, threads and placement to deploy with from the rows "
        "of DIR/sweep.csv, and gives the reasons. A point counts if it is finished, "
        "was measured at the requested context depth or above, and fits the memory "
        "limit, CPU quota and affinity. Speeds are as uncertain as their 95 % "
        "intervals; the least expected loss against the fastest wins. Among settings "
        "within 3 % of it, the larger quantisation, then fewer threads, are preferred, "
        "or, where DIR/quality.csv (`bench quality -o DIR`) has measured it, the "
        "smaller divergence; larger ones than --max-kl are excluded. A disturbed point "
        "competes with an estimate from other depths of its setting, else with its own "
        "speed as a lower bound; the answer says so. Exit code 1: no point qualifies.",
    .example = "bench recommend results/myhost-20260115T101500Z --ctx 4096 --min-tps 2",
    .no_kernels = true,
};

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
                   "least tokens per second (lower end of the interval)", 0, 1e9),
        OPT_INT(0, "ctx", &params.ctx, "N",
                "context depth (default: the deepest measured)", 0, INT_MAX),
        OPT_BYTES(0, "mem", &params.mem_limit, "LIMIT",
                  "memory limit (default: that of each point)"),
        OPT_INT(0, "max-threads", &params.max_threads, "N",
                "available CPUs (default: as in machine.json)", 1, INT_MAX),
        OPT_DOUBLE(0, "max-kl", &params.max_kl, "X",
                   "greatest divergence in nats (default: 0.05, unless nothing else "
                   "qualifies)",
                   1e-9, 1e9),
        OPT_STR(0, "model", &params.model, "M", "only this model"),
        OPT_FLAG(0, "json", &as_json, "print JSON"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n != 1) {
        err_set(&err, ST_USAGE,
                "recommend takes one directory with a sweep.csv, but %d arguments were "
                "given; see `bench recommend --help`",
                args.n);
        return cmd_end(&err);
    }
    struct recommendation *rec = calloc(1, sizeof *rec);
    if (!rec)
        return cmd_end((err_set(&err, ST_NO_MEMORY, "no memory for an answer"), &err));

    if (run(rec, args.v[0], &params, &err) == ST_OK) {
        if (as_json)
            cmd_print_json(recommend_json(rec), 6, &err);
        else
            recommend_print(stdout, rec);
    }
    free(rec);
    return cmd_end(&err);
}

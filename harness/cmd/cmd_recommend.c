/* SPDX-License-Identifier: MIT
 *
 * cmd_recommend.c - `bench recommend`: the setting to deploy with
 */
#include "harness/cmd/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/options.h"
#include "harness/report/recommend.h"
#include "harness/result/report_rows.h"
#include "harness/settings/setting.h"

static const struct opt_usage usage = {
    .synopsis = "recommend DIR [--min-tps X] [--max-ttft S] [--prompt N] [--ctx N] "
                "[--mem LIMIT] [--model M]",
    .about =
        "Chooses the quantisation, threads and placement to deploy with from the rows "
        "of DIR/sweep.csv, for each model, and gives the reasons. With --min-tps or "
        "--max-ttft the best quality wins that is known to reach them (by the lower "
        "end of its 95 % interval): the least divergence in DIR/quality.csv (`bench "
        "quality -o DIR`), else the better type. Without them the least expected loss "
        "against the fastest wins; of what is within 3 % of it the better quality, "
        "then "
        "fewer threads. What diverges by more than --max-kl is excluded, and what "
        "diverges more must be faster by 5 % for each tenth of that limit. Points "
        "count if they are finished, at --ctx or deeper, and fit the memory limit, CPU "
        "quota and affinity. A disturbed point competes with an estimate from its "
        "setting's other depths, else with its own speed as a lower bound. Exit code "
        "1: no point qualifies.",
    .example = "bench recommend results/myhost-20260115T101500Z --ctx 4096 --min-tps 2",
    .no_kernels = true,
};

static enum status run(struct recommend_answers *answers, const char *dir,
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
    st = recommend_each(answers, rows, n_rows, params, err);
    free(rows);
    return st;
}

int cmd_recommend(int argc, char **argv)
{
    struct recommend_params params = {.ctx = -1};
    struct recommend_answers answers = {NULL, 0};
    const char *mem = NULL;
    bool as_json = false;
    const struct opt opts[] = {
        OPT_DOUBLE(0, "min-tps", &params.min_tps, "X", "least tokens per second", 0,
                   1e9),
        OPT_DOUBLE(0, "max-ttft", &params.max_ttft_s, "S",
                   "most seconds to the first token, the model loaded", 0, 1e9),
        OPT_INT(0, "prompt", &params.n_prompt, "N",
                "length of the prompt (default: the longest measured)", 1, INT_MAX),
        OPT_INT(0, "ctx", &params.ctx, "N",
                "context depth (default: the deepest measured)", 0, INT_MAX),
        OPT_STR(0, "mem", &mem, "LIMIT",
                "memory limit, as 6G; container: the one in force here (default: that "
                "of each point)"),
        OPT_DOUBLE(0, "cpus-quota", &params.quota_cpus, "CPUS",
                   "points measured with this CPU quota (default: without one)", 0.01,
                   TOPO_MAX_CPUS),
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
    if (mem && setting_parse(SETTING_mem, mem, "--mem", &params.mem_limit,
                             sizeof params.mem_limit, &err))
        return cmd_end(&err);
    if (run(&answers, args.v[0], &params, &err) == ST_OK) {
        if (as_json)
            cmd_print_json(recommend_json_each(&answers), 6, &err);
        else
            recommend_print_each(stdout, &answers);
    }
    recommend_answers_free(&answers);
    return cmd_end(&err);
}

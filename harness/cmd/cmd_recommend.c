/* SPDX-License-Identifier: MIT
 *
 * cmd_recommend.c - `bench recommend`: the setting to deploy with
 */
#include "harness/cmd/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "harness/base/format.h"
#include "harness/base/options.h"
#include "harness/report/deploy.h"
#include "harness/report/recommend.h"
#include "harness/result/report_rows.h"
#include "harness/settings/setting.h"

static const struct opt_usage usage = {
    .synopsis = "recommend DIR [--min-tps X] [--max-ttft S] [--prompt N] [--ctx N] "
                "[--mem LIMIT] [--model M] [--for TARGET]",
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
    .example =
        "bench recommend results/myhost-20260115T101500Z --ctx 4096 --min-tps 2\n"
        "bench recommend results/myhost-20260115T101500Z --ctx 4096 --for llama.cpp\n"
        "bench recommend results/myhost-20260115T101500Z --for slmbench --sequences 4",
    .no_kernels = true,
};

struct request {
    struct recommend_params params;
    const char *mem, *target, *engine;
    int n_sequences; /* 0: not said */
    bool as_json;
};

/* The rows of one program. */
static enum status keep_engine(struct row *rows, size_t *n_rows, const char *engine,
                               struct err *err)
{
    const char *wanted = strcmp(engine, "slmbench") ? engine : "";
    size_t n = 0;

    for (size_t i = 0; i < *n_rows; i++)
        if (!strcmp(rows[i].engine, wanted))
            rows[n++] = rows[i];
    *n_rows = n;
    return n ? ST_OK
             : err_set(err, ST_USAGE,
                       "--engine: no row of %.60s is there; `bench sweep --engine` "
                       "measures other programs",
                       format_path(engine).text);
}

static enum status answer(const struct request *q, struct row *rows, size_t n_rows,
                          struct err *err)
{
    struct recommend_answers answers = {NULL, 0};
    enum status st = q->engine ? keep_engine(rows, &n_rows, q->engine, err) : ST_OK;

    if (st == ST_OK)
        st = recommend_each(&answers, rows, n_rows, &q->params, err);
    if (st == ST_OK && q->as_json)
        cmd_print_json(recommend_json_each(&answers), 6, err);
    else if (st == ST_OK)
        recommend_print_each(stdout, &answers);
    recommend_answers_free(&answers);
    return err->code;
}

static enum status deploy(const struct request *q, const struct row *rows,
                          size_t n_rows, struct err *err)
{
    struct deploy *d = malloc(sizeof *d);
    int target = 0;
    enum status st = d ? choice_parse(&choices_deploy, q->target, "--for", &target, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for a recommendation");

    if (st == ST_OK && q->as_json)
        st = err_set(err, ST_USAGE, "--for and --json exclude each other");
    if (st == ST_OK) {
        const struct deploy_wish wish = {.target = (enum deploy_target)target,
                                         .engine = q->engine,
                                         .n_sequences =
                                             q->n_sequences ? q->n_sequences : 1};

        st = deploy_make(d, &wish, rows, n_rows, &q->params, err);
    }
    if (st == ST_OK)
        st = deploy_print(stdout, d, err);
    free(d);
    return st;
}

static enum status run(struct request *q, const char *dir, struct err *err)
{
    struct report_machine machine;
    struct row *rows = NULL;
    size_t n_rows = 0;
    enum status st = report_rows_read(dir, &rows, &n_rows, err);

    if (st)
        return st;
    report_machine_read(&machine, dir);
    if (!q->params.max_threads)
        q->params.max_threads = machine.max_threads;
    st = q->target ? deploy(q, rows, n_rows, err) : answer(q, rows, n_rows, err);
    free(rows);
    return st;
}

int cmd_recommend(int argc, char **argv)
{
    struct request q = {.params = {.ctx = -1}};
    const struct opt opts[] = {
        OPT_DOUBLE(0, "min-tps", &q.params.min_tps, "X", "least tokens per second", 0,
                   1e9),
        OPT_DOUBLE(0, "max-ttft", &q.params.max_ttft_s, "S",
                   "most seconds to the first token, the model loaded", 0, 1e9),
        OPT_INT(0, "prompt", &q.params.n_prompt, "N",
                "length of the prompt (default: the longest measured)", 1, INT_MAX),
        OPT_INT(0, "ctx", &q.params.ctx, "N",
                "context depth (default: the deepest measured)", 0, INT_MAX),
        OPT_STR(0, "mem", &q.mem, "LIMIT",
                "memory limit, as 6G; container: the one in force here (default: that "
                "of each point)"),
        OPT_DOUBLE(0, "cpus-quota", &q.params.quota_cpus, "CPUS",
                   "points measured with this CPU quota (default: without one)", 0.01,
                   TOPO_MAX_CPUS),
        OPT_INT(0, "max-threads", &q.params.max_threads, "N",
                "available CPUs (default: as in machine.json)", 1, INT_MAX),
        OPT_DOUBLE(0, "max-kl", &q.params.max_kl, "X",
                   "greatest divergence in nats (default: 0.05, unless nothing else "
                   "qualifies)",
                   1e-9, 1e9),
        OPT_STR(0, "model", &q.params.model, "M", "only this model"),
        OPT_STR(0, "engine", &q.engine, "NAME",
                "only rows of this program (slmbench: ours)"),
        OPT_STR(0, "for", &q.target, "TARGET",
                "print the command or file for slmbench, llama.cpp, ollama, docker or "
                "k8s"),
        OPT_INT(0, "sequences", &q.n_sequences, "N",
                "with --for: answers at once (default: 1)", 1, SLM_MAX_SEQUENCES),
        OPT_FLAG(0, "json", &q.as_json, "print JSON"),
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
    if (q.n_sequences && !q.target) {
        err_set(&err, ST_USAGE,
                "--sequences says what is deployed: which program? add --for");
        return cmd_end(&err);
    }
    if (q.mem && setting_parse(SETTING_mem, q.mem, "--mem", &q.params.mem_limit,
                               sizeof q.params.mem_limit, &err))
        return cmd_end(&err);
    run(&q, args.v[0], &err);
    return cmd_end(&err);
}

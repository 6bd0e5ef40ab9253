/* SPDX-License-Identifier: MIT
 *
 * cmd_recommend.c - `bench recommend`: the setting to deploy with
 */
#include "harness/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "harness/base/format.h"
#include "harness/judge/recommend/deploy.h"
#include "harness/judge/recommend/recommend.h"
#include "harness/rows/result_set.h"
#include "harness/judge/users/users.h"

static const struct opt_usage usage = {
    .synopsis = "recommend [PATH] [--min-tps X] [--max-ttft S] [--prompt N] [--ctx N] "
                "[--mem LIMIT] [--model M] [--for TARGET] | --users N [--slo NAME]",
    .about =
        "Chooses, for each model, the quantisation, threads and placement to deploy "
        "from the rows at PATH, and gives the reasons. PATH is a directory of `bench "
        "sweep`, a folder of such directories, a database of `bench history` or a CSV "
        "(default: the newest sweep in results); the machine measured last counts. "
        "With --min-tps or --max-ttft, the best quality wins among the points known to "
        "reach them (by the lower end of the 95 % interval). Best quality is the least "
        "divergence in quality.csv (`bench quality -o DIR`), else the better type. "
        "Without them, the least expected loss against the fastest wins; within 3 % of "
        "it (10 % where quality was not measured) the better quality wins, then fewer "
        "threads. A point that diverges by more than --max-kl is excluded; one that "
        "diverges more than another must be 5 % faster for each tenth of that limit. "
        "Points count if they are finished, at --ctx or deeper, and fit the memory "
        "limit, CPU quota and affinity. A disturbed point competes with an estimate "
        "from its setting's other depths, else with its own speed as a lower bound. "
        "From results of `bench load` it prints how many users each server can serve "
        "or, with --users, which server can serve N. Exit code 1: nothing qualifies.",
    .example =
        "bench recommend results/myhost-20260115T101500Z --ctx 4096 --min-tps 2\n"
        "bench recommend results/myhost-20260115T101500Z --ctx 4096 --for llama.cpp\n"
        "bench recommend results/myhost-20260115T101500Z --for slmbench --sequences 4\n"
        "bench recommend results/load --users 4 --slo interactive",
    .no_kernels = true,
};

struct request {
    struct recommend_params params;
    struct users_wish users;
    const char *engine;
    int target;      /* enum deploy_target; negative: not given */
    int n_sequences; /* 0: not given */
    bool as_json;
};

static enum status answer(const struct request *q, const struct row *rows,
                          size_t n_rows, struct err *err)
{
    struct recommend_answers answers = {NULL, 0};
    const enum status st = recommend_each(&answers, rows, n_rows, &q->params, err);

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
    enum status st =
        d ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a recommendation");

    if (st == ST_OK && q->as_json)
        st = err_set(err, ST_USAGE, "--for and --json exclude each other");
    if (st == ST_OK) {
        const struct deploy_wish wish = {.target = (enum deploy_target)q->target,
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

static bool has_kind(const struct row *rows, size_t n_rows, bool load)
{
    for (size_t i = 0; i < n_rows; i++)
        if ((rows[i].kind == ROW_LOAD) == load)
            return true;
    return false;
}

/* Both, where a directory has both; as JSON the decision of one user. */
static enum status answer_all(const struct request *q, const char *dir,
                              struct row *rows, size_t n_rows, struct err *err)
{
    const bool is_about_users = q->users.n_users || q->users.slo;
    const bool has_load = has_kind(rows, n_rows, true);
    const bool is_of_one =
        !is_about_users && (has_kind(rows, n_rows, false) || !has_load);
    enum status st = is_of_one ? answer(q, rows, n_rows, err) : ST_OK;
    json_t *json = NULL;

    if (st || (is_of_one && (!has_load || q->as_json)))
        return st;
    if (is_of_one)
        putchar('\n');
    st = users_recommend(stdout, q->as_json ? &json : NULL, &q->users, dir, rows,
                         n_rows, err);
    return json ? cmd_print_json(json, 6, err) : st;
}

static enum status run(struct request *q, const char *path, struct err *err)
{
    struct result_set set;
    struct result_part *part;
    enum status st = result_set_open(&set, path, RESULT_LAST, err);

    part = set.parts;
    if (st == ST_OK && !q->params.max_threads)
        q->params.max_threads = part->run->about.max_threads;
    if (st == ST_OK && q->target >= 0)
        st = deploy(q, part->rows, part->n, err);
    else if (st == ST_OK && q->engine)
        part->n = rows_keep(part->rows, part->n, "engine",
                            strcmp(q->engine, "slmbench") ? q->engine : "");
    if (st == ST_OK && q->engine && q->target < 0 && !part->n)
        st = err_set(err, ST_USAGE,
                     "--engine: no row of %.60s is there; `bench sweep --engine` "
                     "measures other programs",
                     format_path(q->engine).text);
    if (st == ST_OK && q->target < 0)
        st = answer_all(q, part->run->dir, part->rows, part->n, err);
    result_set_free(&set);
    return st;
}

int cmd_recommend(int argc, char **argv)
{
    struct request q = {.params = {.ctx = -1}, .target = -1};
    const struct opt opts[] = {
        RECOMMEND_OPTS(q.params),
        OPT_DOUBLE(0, "cpus-quota", &q.params.quota_cpus, "CPUS",
                   "points measured with this CPU quota (default: without one)", 0.01,
                   TOPO_MAX_CPUS),
        OPT_STR(0, "model", &q.params.model, "M", "only this model"),
        OPT_STR(0, "engine", &q.engine, "NAME",
                "only rows of this program (slmbench: ours)"),
        OPT_CHOICE(
            0, "for", &q.target, "TARGET",
            "print the command or file for slmbench, llama.cpp, ollama, docker or k8s",
            &choices_deploy),
        OPT_INT(0, "sequences", &q.n_sequences, "N",
                "with --for: concurrent answers (default: 1)", 1, SLM_MAX_SEQUENCES),
        OPT_INT(0, "users", &q.users.n_users, "N",
                "choose the measured server that can serve N users", 1, 100000),
        OPT_STR(0, "slo", &q.users.slo, "NAME",
                "latency limits: interactive, reading, batch, or 2s/200ms (default: "
                "those measured)"),
        OPT_FLAG(0, "json", &q.as_json, "print JSON"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;
    char newest[4096] = "";

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n > 1) {
        err_set(&err, ST_USAGE,
                "recommend takes one directory, database or CSV with rows, but %d "
                "arguments were given; see `bench recommend --help`",
                args.n);
        return cmd_end(&err);
    }
    if (!args.n) {
        if (result_newest(newest, sizeof newest, &err))
            return cmd_end(&err);
        fprintf(stderr, "the newest sweep: %s\n", format_path(newest).text);
    }
    if (q.n_sequences && q.target < 0) {
        err_set(&err, ST_USAGE, "--sequences needs --for with the program to deploy");
        return cmd_end(&err);
    }
    if ((q.users.n_users || q.users.slo) && q.target >= 0) {
        err_set(&err, ST_USAGE,
                "--for prints the setting for one user: --users and --slo choose among "
                "servers that bench load measured");
        return cmd_end(&err);
    }
    q.users.model = q.params.model;
    run(&q, args.n ? args.v[0] : newest, &err);
    return cmd_end(&err);
}

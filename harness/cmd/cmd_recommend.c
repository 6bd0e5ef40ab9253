/* SPDX-License-Identifier: MIT
 *
 * cmd_recommend.c - `bench recommend`: the setting to deploy with
 */
#include "harness/cmd/cmd.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/base/options.h"
#include "harness/judge/recommend/deploy.h"
#include "harness/judge/recommend/recommend.h"
#include "harness/rows/result_set.h"
#include "harness/rows/settings/setting.h"
#include "harness/judge/users/users.h"

static const struct opt_usage usage = {
    .synopsis = "recommend PATH [--min-tps X] [--max-ttft S] [--prompt N] [--ctx N] "
                "[--mem LIMIT] [--model M] [--for TARGET] | --users N [--slo NAME]",
    .about =
        "Chooses, for each model, the quantisation, threads and placement to "
        "deploy from the rows at PATH, and gives the reasons. PATH is a directory "
        "of `bench sweep`, a folder of such directories, a database of `bench "
        "history` or a CSV; the machine measured last counts if there are several, "
        "and for each point its latest run. With "
        "--min-tps or --max-ttft, the best quality wins among the points known to "
        "reach them (by the lower end of the 95 % interval). Best quality is the "
        "least divergence in quality.csv (`bench quality -o DIR`), else the "
        "better type. Without them, the least expected loss against the fastest "
        "wins; within 3 % of it the better quality wins, then fewer threads. A "
        "point that diverges by more than --max-kl is excluded; one that diverges "
        "more than another must be 5 % faster for each tenth of that limit. "
        "Points count if they are finished, at --ctx or deeper, and fit the "
        "memory limit, CPU quota and affinity. A disturbed point competes with an "
        "estimate from its setting's other depths, else with its own speed as a "
        "lower bound. From results of `bench load` it prints how many users each "
        "server can serve or, with --users, which server can serve N. Exit code "
        "1: no point, or no server, qualifies.",
    .example =
        "bench recommend results/myhost-20260115T101500Z --ctx 4096 --min-tps 2\n"
        "bench recommend results/myhost-20260115T101500Z --ctx 4096 --for llama.cpp\n"
        "bench recommend results/myhost-20260115T101500Z --for slmbench --sequences 4\n"
        "bench recommend results/load --users 4 --slo interactive",
    .no_kernels = true,
};

struct request {
    struct recommend_params params;
    const char *mem, *target, *engine, *slo;
    int n_sequences; /* 0: not said */
    int n_users;     /* 0: not asked */
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

/* ---- users -------------------------------------------------------------------------
 */

static bool has_kind(const struct row *rows, size_t n_rows, bool load)
{
    for (size_t i = 0; i < n_rows; i++)
        if ((rows[i].kind == ROW_LOAD) == load)
            return true;
    return false;
}

static enum status set_slo(const struct request *q, const char *dir, struct row *rows,
                           size_t *n_rows, struct err *err)
{
    struct samples requests = {0};
    struct slo slo;
    enum status st = slo_parse(&slo, q->slo, err);

    if (st == ST_OK)
        st = requests_read(&requests, dir, err);
    if (st == ST_OK)
        users_set_slo(rows, n_rows, &requests, &slo);
    samples_free(&requests);
    return st;
}

static json_t *choice_json(const struct users_series *s, int n_users, const char *text)
{
    const struct users_level *at = users_level_for(s, n_users);
    const int64_t n_threads = s->first->n_threads;

    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:i, s:i, s:o, s:o, s:o, s:s}",
                     "answer", text, "users", n_users, "slo", s->first->slo, "server",
                     s->name, "model", s->first->model, "n_threads",
                     n_threads > 0 ? json_integer((json_int_t)n_threads) : json_null(),
                     "carries", s->carries, "measured_users", at->n_users, "tok_per_s",
                     json_number(at->tok_per_s.v), "ttft_p90_s",
                     json_number(at->ttft_p90_s.v), "tpot_p90_ms",
                     json_number(at->tpot_p90_ms.v), "command", at->row->command);
}

/* Prints the server for --users, or that no server qualifies. */
static enum status print_choice(const struct request *q, const struct users *u,
                                struct err *err)
{
    const struct users_series *s = users_choose(u, q->n_users);
    char text[1200];

    users_append_choice(u, q->n_users, text, sizeof text);
    if (!s)
        return err_set(err, ST_CHECK, "%s", text);
    if (q->as_json)
        return cmd_print_json(choice_json(s, q->n_users, text), 6, err);
    text_wrap(stdout, text, 0, 0, 79, false);
    if (*users_level_for(s, q->n_users)->row->command)
        printf("\nMeasured with:\n%s\n", users_level_for(s, q->n_users)->row->command);
    return ST_OK;
}

/* The rows of one model, which servers name as they like. */
static void keep_model(struct row *rows, size_t *n_rows, const char *model)
{
    size_t n = 0;

    for (size_t i = 0; i < *n_rows; i++)
        if (!strcmp(rows[i].model, model))
            rows[n++] = rows[i];
    *n_rows = n;
}

/* What servers carry; under other limits than those they were measured with, too. */
static enum status answer_users(const struct request *q, const char *dir,
                                struct row *rows, size_t n_rows, struct err *err)
{
    struct users u = {0};
    char text[1200];
    enum status st = q->slo ? set_slo(q, dir, rows, &n_rows, err) : ST_OK;

    if (q->params.model)
        keep_model(rows, &n_rows, q->params.model);
    if (st == ST_OK)
        st = users_find(&u, rows, n_rows, err);
    if (st == ST_OK && !u.n) {
        st =
            err_set(err, ST_CHECK, "no server was measured%s%s: `bench load` does that",
                    q->params.model ? " with this model" : "",
                    q->slo ? " with these limits, or with times of each request" : "");
    } else if (st == ST_OK && q->n_users) {
        st = print_choice(q, &u, err);
    } else if (st == ST_OK) {
        users_answer(&u, text, sizeof text);
        if (q->as_json)
            st = cmd_print_json(json_pack("{s:s}", "answer", text), 6, err);
        else
            text_wrap(stdout, text, 0, 0, 79, false);
    }
    users_free(&u);
    return st;
}

/* Both, where a directory has both; as JSON the decision of one user. */
static enum status answer_all(const struct request *q, const char *dir,
                              struct row *rows, size_t n_rows, struct err *err)
{
    const bool asks_users = q->n_users || q->slo;
    const bool has_load = has_kind(rows, n_rows, true);
    const bool is_of_one = !asks_users && (has_kind(rows, n_rows, false) || !has_load);
    const enum status st = is_of_one ? answer(q, rows, n_rows, err) : ST_OK;

    if (st || (is_of_one && (!has_load || q->as_json)))
        return st;
    if (is_of_one)
        putchar('\n');
    return answer_users(q, dir, rows, n_rows, err);
}

static enum status run(struct request *q, const char *path, struct err *err)
{
    struct result_set set;
    struct result_part *part;
    enum status st = result_set_open(&set, path, RESULT_LAST, err);

    part = set.parts;
    if (st == ST_OK && !q->params.max_threads)
        q->params.max_threads = part->run->about.max_threads;
    if (st == ST_OK && q->target)
        st = deploy(q, part->rows, part->n, err);
    else if (st == ST_OK && q->engine)
        st = keep_engine(part->rows, &part->n, q->engine, err);
    if (st == ST_OK && !q->target)
        st = answer_all(q, part->run->dir, part->rows, part->n, err);
    result_set_free(&set);
    return st;
}

int cmd_recommend(int argc, char **argv)
{
    struct request q = {.params = {.ctx = -1}};
    const struct opt opts[] = {
        OPT_DOUBLE(0, "min-tps", &q.params.min_tps, "X", "minimum tokens per second", 0,
                   1e9),
        OPT_DOUBLE(0, "max-ttft", &q.params.max_ttft_s, "S",
                   "maximum seconds to the first token, with the model loaded", 0, 1e9),
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
                   "maximum divergence in nats (default: 0.05, unless nothing else "
                   "qualifies)",
                   1e-9, 1e9),
        OPT_STR(0, "model", &q.params.model, "M", "only this model"),
        OPT_STR(0, "engine", &q.engine, "NAME",
                "only rows of this program (slmbench: ours)"),
        OPT_STR(0, "for", &q.target, "TARGET",
                "print the command or file for slmbench, llama.cpp, ollama, docker or "
                "k8s"),
        OPT_INT(0, "sequences", &q.n_sequences, "N",
                "with --for: concurrent answers (default: 1)", 1, SLM_MAX_SEQUENCES),
        OPT_INT(0, "users", &q.n_users, "N",
                "choose the measured server that can serve N users", 1, 100000),
        OPT_STR(0, "slo", &q.slo, "NAME",
                "latency limits: interactive, reading, batch, or 2s/200ms (default: "
                "those measured)"),
        OPT_FLAG(0, "json", &q.as_json, "print JSON"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    if (args.n != 1) {
        err_set(&err, ST_USAGE,
                "recommend takes one directory, database or CSV with rows, but %d "
                "arguments were given; see `bench recommend --help`",
                args.n);
        return cmd_end(&err);
    }
    if (q.n_sequences && !q.target) {
        err_set(&err, ST_USAGE, "--sequences needs --for with the program to deploy");
        return cmd_end(&err);
    }
    if ((q.n_users || q.slo) && q.target) {
        err_set(&err, ST_USAGE,
                "--for prints the setting for one user: --users and --slo choose among "
                "servers that bench load measured");
        return cmd_end(&err);
    }
    if (q.mem && setting_parse(SETTING_mem, q.mem, "--mem", &q.params.mem_limit,
                               sizeof q.params.mem_limit, &err))
        return cmd_end(&err);
    run(&q, args.v[0], &err);
    return cmd_end(&err);
}

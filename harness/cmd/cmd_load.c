/* SPDX-License-Identifier: MIT
 *
 * cmd_load.c - `bench load`: how many users a server carries
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/interrupt.h"
#include "harness/base/parse.h"
#include "harness/client/client.h"
#include "harness/measure/engines/launch.h"
#include "harness/serve/load/load_servers.h"
#include "harness/machine/measuring.h"

static const struct opt_usage usage = {
    .synopsis = "load URL | --launch NAME=COMMAND... [--slo NAME] [-o DIR] [options]",
    .about = "Sends requests to a server with OpenAI's interface "
             "(/v1/chat/completions, streamed) and finds how many users it can serve. "
             "It tries 1, 2, 4 ... users until throughput stops growing and the limits "
             "are missed, then searches for the largest number of users for which 90 % "
             "of requests meet the limits. Each user sends the next request when the "
             "last has ended. With --open-loop it then sends requests at random times; "
             "latency counts from those times. docs/serving.md explains the figures.",
    .no_kernels = true,
    .example =
        "bench load http://127.0.0.1:8080 --slo reading\n"
        "bench load http://127.0.0.1:8080 --users 1,4 --prompt 100-900 -o DIR\n"
        "bench load http://127.0.0.1:8080 --rate 0.5 --requests 300 --level-time 600",
};

struct request {
    struct load_plan plan;
    const char *prompt, *output, *slo, *sessions, *rate;
    bool json;
};

/* Each --launch is a server with a name of its own. */
static enum status check_launches(const struct load_plan *p, struct err *err)
{
    char names[LOAD_MAX_SERVERS][LAUNCH_MAX_NAME + 1];
    const char *command;
    enum status st = ST_OK;

    if (p->launches.n > LOAD_MAX_SERVERS)
        return err_set(err, ST_USAGE, "--launch: %zu servers are more than %d",
                       p->launches.n, LOAD_MAX_SERVERS);
    for (size_t i = 0; i < p->launches.n && st == ST_OK; i++) {
        st = launch_parse(p->launches.v[i], names[i], &command, err);
        for (size_t k = 0; k < i && st == ST_OK; k++)
            if (!strcmp(names[k], names[i]))
                st = err_set(err, ST_USAGE, "--launch: two servers have the name %s",
                             names[i]);
    }
    return st;
}

/* Settings that leave nothing of each other. */
static enum status check_together(const struct load_plan *p, struct err *err)
{
    const struct load_settings *s = &p->s;

    if (p->resume && !p->dir_path)
        return err_set(err, ST_USAGE, "--resume: which directory? add -o DIR");
    if ((p->mem_limit || p->quota_cpus > 0 || p->cpus) && !p->launches.n)
        return err_set(err, ST_USAGE, "%s is for servers that --launch starts",
                       p->mem_limit ? "--mem"
                       : p->cpus    ? "--cpus"
                                    : "--cpus-quota");
    if (p->n_rounds > 1 && !p->launches.n)
        return err_set(err, ST_USAGE, "--rounds repeats servers that --launch starts");
    if ((s->rate > 0 || s->speed > 0) && (s->users.n || s->open_loop))
        return err_set(err, ST_USAGE,
                       "--rate is an open loop alone: leave out --users and "
                       "--open-loop, or --rate");
    if (s->embeddings && (s->completions || *s->sessions.text))
        return err_set(err, ST_USAGE,
                       "--embeddings are requests of their own: leave out %s",
                       s->completions ? "--completions" : "--sessions");
    if (*s->sessions.text && (s->speed > 0 || s->open_loop || s->completions))
        return err_set(err, ST_USAGE,
                       "--sessions are chats, of users or of --rate R sessions a "
                       "second: leave out --rate x, --open-loop and --completions");
    if (*s->sessions.text && !(s->rate > 0) && !(s->sessions.tools_pct > 0) &&
        s->sessions.think.a >= s->level_s)
        return err_set(err, ST_USAGE,
                       "--sessions: users who think for %g s send no second request in "
                       "a load level of %g s: let them think less, or add --level-time",
                       s->sessions.think.a, s->level_s);
    if (!s->file && s->prompt.kind != LOAD_LOGNORMAL &&
        s->n_prefix + LOAD_UNIQUE_WORDS > s->prompt.b && s->n_prefix)
        return err_set(err, ST_USAGE,
                       "--prefix: %d tokens leave no room in a --prompt of %g for the "
                       "%d words that make prompts differ",
                       s->n_prefix, s->prompt.b, LOAD_UNIQUE_WORDS);
    return ST_OK;
}

static enum status check(struct request *q, struct err *err)
{
    struct load_plan *p = &q->plan;
    enum status st = load_dist_parse(&p->s.prompt, q->prompt, "--prompt", err);

    if (st == ST_OK)
        st = load_dist_parse(&p->s.output, q->output, "--output", err);
    if (st == ST_OK && q->rate)
        st = parse_double(q->rate + (*q->rate == 'x'), "--rate", LOAD_MIN_RATE,
                          LOAD_MAX_RATE, *q->rate == 'x' ? &p->s.speed : &p->s.rate,
                          err);
    if (st == ST_OK && q->sessions)
        st = session_settings_parse(&p->s.sessions, q->sessions, err);
    if (st == ST_OK)
        st = slo_parse(&p->s.slo, q->slo, err);
    if (st == ST_OK)
        st = check_launches(p, err);
    if (st == ST_OK)
        st = check_together(p, err);
    return st ? st : load_client_check(err); /* before anything is written or started */
}

static bool has_levels(const struct load_found *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->a && f->a[i].n_levels)
            return true;
    return false;
}

/* What was measured, also by a run that was ended or whose server stopped answering. */
static enum status print(const struct request *q, const struct load_found *f,
                         struct err *err)
{
    json_t *object;

    if (!q->json)
        return load_found_print(stdout, f, &q->plan, err);
    object = load_found_json(f, &q->plan, err);
    return err->code ? err->code : cmd_print_json(object, 9, err);
}

static enum status run(struct request *q, struct err *err)
{
    struct load_found found = {.a = NULL};
    enum status st = check(q, err);

    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK)
        st = load_servers_run(&found, &q->plan, err);
    if (has_levels(&found)) {
        struct err printing = ERR_INIT;

        if (print(q, &found, &printing) && st == ST_OK)
            st = err_set(err, printing.code, "%s", printing.msg);
    }
    if (st == ST_OK && found.is_kept)
        st = load_found_draw(q->json ? NULL : stdout, &q->plan, err);
    load_found_free(&found);
    return st;
}

int cmd_load(int argc, char **argv)
{
    struct request q = {.plan = {.s = {.max_users = 64,
                                       .n_requests = 60,
                                       .level_s = LOAD_LEVEL_S,
                                       .silence_s = LOAD_SILENCE_S,
                                       .max_late_ms = 5,
                                       .seed = LOAD_SEED},
                                 .start_s = 600,
                                 .n_rounds = 1,
                                 .argc = argc,
                                 .argv = argv},
                        .prompt = "512",
                        .output = "128",
                        .slo = "reading"};
    struct load_plan *p = &q.plan;
    struct load_settings *s = &p->s;
    struct err err = ERR_INIT;
    struct opt_args args;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR(0, "slo", &q.slo, "NAME", "interactive, reading (default), batch, or as 2s/200ms"),
        OPT_INTS(0, "users", &s->users, "LIST", "try only these numbers of users", 1, LOAD_MAX_USERS),
        OPT_INT(0, "max-users", &s->max_users, "N", "largest number of users to try (default 64)", 1, LOAD_MAX_USERS),
        OPT_INT(0, "requests", &s->n_requests, "N", "measured requests per load level (default 60)", 5, 100000),
        OPT_SECONDS(0, "level-time", &s->level_s, "S", "send for at most S seconds per load level (300)", 0.1, 86400),
        OPT_FLAG(0, "open-loop", &s->open_loop, "then send at 50, 70 and 90 % of the capacity's rate"),
        OPT_STR(0, "rate", &q.rate, "R", "only an open loop: requests (or sessions) a second, or a trace's x1"),
        OPT_STR(0, "prompt", &q.prompt, "TOKENS", "prompt: 512 (default), 100-900, lognormal:400:0.8"),
        OPT_STR(0, "output", &q.output, "TOKENS", "longest answer, as for --prompt (default 128)"),
        OPT_STR(0, "sessions", &q.sessions, "SPEC", "conversations, as turns=5,think=10,next=64"),
        OPT_STR(0, "prompts", &s->file, "FILE", "prompts and answer lengths (ShareGPT) or a trace"),
        OPT_INT(0, "prefix", &s->n_prefix, "TOKENS", "length of a prefix shared by all prompts (default 0)", 0, LOAD_MAX_TOKENS),
        OPT_FLAG(0, "ignore-eos", &s->ignore_eos, "request answers of full length (llama.cpp, vLLM)"),
        OPT_STR(0, "body", &s->fields, "JSON", "an object whose members all requests have, too"),
        OPT_FLAG(0, "completions", &s->completions, "use /v1/completions"),
        OPT_FLAG(0, "embeddings", &s->embeddings, "use /v1/embeddings"),
        OPT_STR(0, "model", &s->model, "NAME", "model name in requests (default: the server's first)"),
        OPT_STR(0, "api-key-env", &s->key_env, "VAR", "environment variable with the API key"),
        OPT_SECONDS(0, "timeout", &s->silence_s, "S", "a request fails after S seconds without text (120)", 0.1, 86400),
        OPT_DOUBLE(0, "max-late", &s->max_late_ms, "MS", "accept up to MS of client lateness, p99 (5)", 0.01, 1e4),
        OPT_U64(0, "seed", &s->seed, "N", "seed of lengths, words and times (default 1)"),
        OPT_STRS(0, "launch", &p->launches, "NAME=CMD", "start this server, {port} in CMD; several: interleaved"),
        OPT_INT(0, "rounds", &p->n_rounds, "N", "rounds over all launches (default 1)", 1, 100),
        OPT_BYTES(0, "mem", &p->mem_limit, "SIZE", "memory limit of a launched server, as 6G"),
        OPT_DOUBLE(0, "cpus-quota", &p->quota_cpus, "CPUS", "CPU quota of a launched server, as 1.5", 0.01, TOPO_MAX_CPUS),
        OPT_STR(0, "cpus", &p->cpus, "LIST", "CPUs for the server, as 0,2-3; the client has the rest"),
        OPT_SECONDS(0, "start-timeout", &p->start_s, "S", "seconds until the server must be ready (600)", 1, 86400),
        OPT_STR('o', "output-dir", &p->dir_path, "DIR", "keep rows and times there"),
        OPT_FLAG(0, "resume", &p->resume, "continue a run that ended early"),
        OPT_FLAG(0, "no-roof", &p->no_roof, "do not probe memory bandwidth around each row"),
        OPT_FLAG(0, "json", &q.json, "print JSON"),
        OPT_END,
    };
    /* clang-format on */

    if (opt_parse(&args, argc, argv, opts, &usage, &err) == ST_OK && !args.help) {
        if (args.n + (p->launches.n > 0) != 1) {
            err_set(&err, ST_USAGE,
                    "load takes the address of a server, as http://127.0.0.1:8080, or "
                    "--launch");
        } else {
            s->url = args.n ? args.v[0] : NULL;
            interrupt_catch();
            run(&q, &err);
        }
    }
    free(s->users.v);
    free(p->launches.v);
    return cmd_end(&err);
}

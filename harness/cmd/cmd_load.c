/* SPDX-License-Identifier: MIT
 *
 * cmd_load.c - `bench load`: how many users a server carries
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/dirs.h"
#include "harness/base/interrupt.h"
#include "harness/load/load.h"
#include "harness/machine/measuring.h"
#include "harness/sweep/sweep.h"

static const struct opt_usage usage = {
    .synopsis = "load URL [--slo NAME] [-o DIR] [options]",
    .about =
        "Sends requests to a server with OpenAI's interface (/v1/chat/completions, "
        "streamed) and says how many users it carries: 1, 2, 4 ... users until "
        "throughput stops growing, then the most of whose requests 90 % meet the "
        "limits. Each user sends the next request when the last has ended. Then, with "
        "--open-loop, requests at random times, whose latency counts from those times. "
        "docs/serving.md says what the figures mean.",
    .no_kernels = true,
    .example = "bench load http://127.0.0.1:8080 --slo reading\n"
               "bench load http://127.0.0.1:8080 --users 1,4 --prompt 100-900 -o DIR\n"
               "bench load http://127.0.0.1:8080 --rate 0.5 --requests 300",
};

struct request {
    struct load_settings s;
    const char *prompt, *output, *slo, *dir_path;
    struct sweep_dir *dir;
    bool json, resume;
    int argc;
    char **argv;
};

static enum status on_row(void *arg, const struct row *row,
                          const struct point_samples *samples, struct err *err)
{
    const struct request *q = arg;

    return q->dir ? sweep_dir_append(q->dir, row, samples, err) : ST_OK;
}

static enum status open_dir(struct request *q, struct err *err)
{
    struct topology *topo = calloc(1, sizeof *topo);
    struct sweep_settings *settings = calloc(1, sizeof *settings);
    json_t *machine = NULL;
    enum status st = topo && settings ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    if (st == ST_OK)
        st = (q->resume ? sweep_dir_resume : sweep_dir_create)(&q->dir, q->dir_path,
                                                               err);
    if (st == ST_OK)
        st = topology_read(topo, "", err);
    if (st == ST_OK && q->resume) {
        st = sweep_dir_read_machine(q->dir, &machine, err);
        if (st == ST_OK)
            st = sweep_machine_check(machine, topo, q->dir_path, err);
    } else if (st == ST_OK) {
        st = sweep_settings_init(settings, topo, err);
        if (st == ST_OK) {
            machine = sweep_machine_json(topo, NULL, settings, q->argc, q->argv);
            json_object_del(machine, "sweep"); /* it is none */
            st = sweep_dir_write_machine(q->dir, machine, err);
            sweep_settings_free(settings);
        }
    }
    json_decref(machine);
    free(settings);
    free(topo);
    return st;
}

static enum status print(const struct load_answer *a, const struct request *q,
                         struct err *err)
{
    json_t *object, *rows;
    char text[600];

    if (!q->json) {
        load_print(stdout, a, &q->s);
        if (q->dir)
            printf("Rows and times are in %s.\n", q->dir_path);
        return ST_OK;
    }
    load_answer_text(a, &q->s, text, sizeof text);
    rows = json_array();
    for (size_t i = 0; i < a->n_steps; i++)
        json_array_append_new(rows, row_json(&a->step[i].row));
    object =
        json_pack("{s:s, s:i, s:i, s:b, s:o}", "answer", text, "carries", a->carries,
                  "misses", a->misses, "undecided", a->undecided, "rows", rows);
    return cmd_print_json(object, 9, err);
}

static enum status run(struct request *q, struct err *err)
{
    struct load_answer *a = calloc(1, sizeof *a);
    const struct row *rows = NULL;
    size_t n = 0;
    enum status st = a ? load_dist_parse(&q->s.prompt, q->prompt, "--prompt", err)
                       : err_set(err, ST_NO_MEMORY, "no memory for an answer");

    if (st == ST_OK)
        st = load_dist_parse(&q->s.output, q->output, "--output", err);
    if (st == ST_OK)
        st = load_slo_parse(&q->s.slo, q->slo, err);
    if (st == ST_OK && q->resume && !q->dir_path)
        st = err_set(err, ST_USAGE, "--resume: which directory? add -o DIR");
    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK && q->dir_path) {
        st = open_dir(q, err);
        if (st == ST_OK)
            rows = sweep_dir_rows(q->dir, &n);
    }
    if (st == ST_OK) {
        struct row *done = malloc((n + 1) * sizeof *done); /* the directory's grow */

        if (done && n)
            memcpy(done, rows, n * sizeof *done);
        st = done ? load_run(a, &q->s, done, n, on_row, q, err)
                  : err_set(err, ST_NO_MEMORY, "no memory for rows");
        free(done);
    }
    if (a && a->n_steps && (st == ST_OK || st == ST_INTERRUPTED)) {
        struct err printing = ERR_INIT;

        if (st == ST_INTERRUPTED)
            a->n_steps--; /* the one that was cut off */
        if (a->n_steps && print(a, q, &printing) && st == ST_OK)
            st = err_set(err, printing.code, "%s", printing.msg);
    }
    if (q->dir)
        sweep_dir_close(q->dir);
    free(a);
    return st;
}

int cmd_load(int argc, char **argv)
{
    struct request q = {.s = {.max_users = 64,
                              .n_requests = 60,
                              .step_s = 300,
                              .silence_s = 120,
                              .max_late_ms = 5,
                              .seed = 1},
                        .prompt = "512",
                        .output = "128",
                        .slo = "reading",
                        .argc = argc,
                        .argv = argv};
    struct load_settings *s = &q.s;
    struct err err = ERR_INIT;
    struct opt_args args;
    /* clang-format off */
    const struct opt opts[] = {
        OPT_STR(0, "slo", &q.slo, "NAME", "interactive, reading (default), batch, or as 2s/200ms"),
        OPT_INTS(0, "users", &s->users, "LIST", "these numbers of users only", 1, LOAD_MOST_USERS),
        OPT_INT(0, "max-users", &s->max_users, "N", "the ladder ends there (default 64)", 1, LOAD_MOST_USERS),
        OPT_INT(0, "requests", &s->n_requests, "N", "that count in a step (default 60)", 5, 100000),
        OPT_DOUBLE(0, "step-time", &s->step_s, "S", "seconds of sending in a step, at most (default 300)", 0.1, 86400),
        OPT_FLAG(0, "open-loop", &s->open_loop, "then 50, 70 and 90 % of the capacity's rate"),
        OPT_DOUBLE(0, "rate", &s->rate, "R", "an open loop of R requests a second only", 1e-4, 1e4),
        OPT_STR(0, "prompt", &q.prompt, "TOKENS", "512 (default), 100-900, lognormal:400:0.8"),
        OPT_STR(0, "output", &q.output, "TOKENS", "likewise, at most (default 128)"),
        OPT_STR(0, "prompts", &s->file, "FILE", "prompts of a JSONL file, as ShareGPT's"),
        OPT_INT(0, "prefix", &s->n_prefix, "TOKENS", "all prompts begin with the same so many (default 0)", 0, LOAD_MAX_TOKENS),
        OPT_FLAG(0, "ignore-eos", &s->ignore_eos, "ask for whole outputs (llama.cpp, vLLM)"),
        OPT_FLAG(0, "completions", &s->completions, "use /v1/completions"),
        OPT_STR(0, "model", &s->model, "NAME", "what requests name (default: the server's first)"),
        OPT_STR(0, "api-key-env", &s->key_env, "VAR", "environment variable with the API key"),
        OPT_DOUBLE(0, "timeout", &s->silence_s, "S", "a request that is silent for so long has failed (120)", 0.1, 86400),
        OPT_DOUBLE(0, "max-late", &s->max_late_ms, "MS", "p99 of our own lateness that is no disturbance (5)", 0.01, 1e4),
        OPT_U64(0, "seed", &s->seed, "N", "of the prompts and times (default 1)"),
        OPT_STR('o', "output-dir", &q.dir_path, "DIR", "keep rows and times there"),
        OPT_FLAG(0, "resume", &q.resume, "go on with a run that ended early"),
        OPT_FLAG(0, "json", &q.json, "print JSON"),
        OPT_END,
    };
    /* clang-format on */

    if (opt_parse(&args, argc, argv, opts, &usage, &err) == ST_OK && !args.help) {
        if (args.n != 1) {
            err_set(&err, ST_USAGE,
                    "load takes the address of a server, as http://127.0.0.1:8080");
        } else {
            s->url = args.v[0];
            interrupt_catch();
            run(&q, &err);
        }
    }
    free(s->users.v);
    return cmd_end(&err);
}

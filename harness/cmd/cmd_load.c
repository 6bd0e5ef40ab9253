/* SPDX-License-Identifier: MIT
 *
 * cmd_load.c - `bench load`: how many users a server carries
 */
#include "harness/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/load/client.h"
#include "harness/load/launch.h"
#include "harness/load/load.h"
#include "harness/load/requests.h"
#include "harness/machine/measuring.h"
#include "harness/sweep/sweep.h"
#include "harness/users/users.h"

#define LOAD_MAX_LAUNCHES 8

static const struct opt_usage usage = {
    .synopsis = "load URL | --launch NAME=COMMAND... [--slo NAME] [-o DIR] [options]",
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
    struct str_list launches;
    uint64_t mem_limit;
    double start_s;
    int n_rounds;
    struct launch *running; /* NULL: the server at a URL */
    struct topology *topo;  /* where there are launches */
    bool json, resume;
    int argc;
    char **argv;
};

static enum status on_row(void *arg, const struct row *row,
                          const struct load_samples *samples, struct err *err)
{
    const struct request *q = arg;
    struct row own = *row;
    enum status st = ST_OK;

    if (q->running) {
        launch_note(q->running, &own);
        if (q->mem_limit)
            own.mem_limit_bytes = (int64_t)q->mem_limit;
    }
    if (q->dir)
        st = requests_append(q->dir_path, &own, samples->requests, samples->n_requests,
                             err);
    return q->dir && st == ST_OK ? sweep_dir_append(q->dir, &own, &samples->e2e, err)
                                 : st;
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

/* The rows that are there already, a copy: the directory's grow. */
struct done {
    struct row *rows;
    size_t n;
};

static enum status read_done(struct request *q, struct done *d, struct err *err)
{
    const struct row *rows = NULL;
    enum status st = q->dir_path ? open_dir(q, err) : ST_OK;

    if (st == ST_OK && q->dir)
        rows = sweep_dir_rows(q->dir, &d->n);
    if (st == ST_OK && !(d->rows = malloc((d->n + 1) * sizeof *d->rows)))
        st = err_set(err, ST_NO_MEMORY, "no memory for rows");
    if (st == ST_OK && d->n)
        memcpy(d->rows, rows, d->n * sizeof *rows);
    return st;
}

/* Steps of one server, which is started for them, behind those that a has. */
static enum status run_launch(struct request *q, const char *text,
                              const struct load_settings *s, const struct done *d,
                              struct load_answer *a, struct err *err)
{
    struct load_answer *now = calloc(1, sizeof *now);
    struct load_settings own = *s;
    struct launch l = {.child = CHILD_INIT};
    enum status st =
        now ? launch_start(&l, text, q->mem_limit, q->start_s, q->topo, err)
            : err_set(err, ST_NO_MEMORY, "no memory for an answer");

    own.url = l.url;
    own.name = l.name;
    q->running = &l;
    if (st == ST_OK)
        st = load_run(now, &own, d->rows, d->n, on_row, q, err);
    q->running = NULL;
    launch_stop(&l);
    if (now && !a->n_steps)
        *a = *now;
    else if (now)
        load_answer_join(a, now);
    free(now);
    return st;
}

/* Several servers: round by round and step by step, in an order drawn for each step,
 * and each time started anew. Without --users each is asked for its capacity in turn.
 */
static enum status run_launches(struct request *q, const struct done *d,
                                struct load_answer *a, struct err *err)
{
    const size_t n = q->launches.n, n_steps = q->s.users.n ? q->s.users.n : 1;
    const size_t n_all = n * n_steps * (size_t)q->n_rounds;
    uint64_t random = q->s.seed * 2 + 1;
    enum status st;

    q->topo = calloc(1, sizeof *q->topo);
    st = q->topo ? topology_read(q->topo, "", err)
                 : err_set(err, ST_NO_MEMORY, "no memory for the machine");

    for (size_t i = 0; i < n_all && st == ST_OK; i += n) {
        struct load_settings s = q->s;
        size_t order[LOAD_MAX_LAUNCHES];

        s.round = 1 + (int)(i / n / n_steps);
        if (s.users.n)
            s.users = (struct int_list){q->s.users.v + i / n % n_steps, 1};
        for (size_t k = 0; k < n; k++) {
            const size_t at = random_below(&random, k + 1);

            if (at != k)
                order[k] = order[at];
            order[at] = k;
        }
        for (size_t k = 0; k < n && st == ST_OK; k++)
            st = run_launch(q, q->launches.v[order[k]], &s, d, &a[order[k]], err);
    }
    return st;
}

static enum status check(struct request *q, struct err *err)
{
    enum status st = load_dist_parse(&q->s.prompt, q->prompt, "--prompt", err);
    char name[LAUNCH_MAX_NAME + 1];
    const char *command;

    if (st == ST_OK)
        st = load_dist_parse(&q->s.output, q->output, "--output", err);
    if (st == ST_OK)
        st = slo_parse(&q->s.slo, q->slo, err);
    if (st == ST_OK && q->resume && !q->dir_path)
        st = err_set(err, ST_USAGE, "--resume: which directory? add -o DIR");
    if (st == ST_OK && q->launches.n > LOAD_MAX_LAUNCHES)
        st = err_set(err, ST_USAGE, "--launch: %zu servers are more than %d",
                     q->launches.n, LOAD_MAX_LAUNCHES);
    for (size_t i = 0; i < q->launches.n && st == ST_OK; i++)
        st = launch_parse(q->launches.v[i], name, &command, err);
    if (st == ST_OK && q->mem_limit && !q->launches.n)
        st = err_set(err, ST_USAGE, "--mem limits a server that --launch starts");
    return st ? st : load_client_check(err); /* before anything is written or started */
}

/* All rows of the directory, or where there is none those of this run; *own is to be
 * freed. */
static enum status all_rows(const struct load_answer *a, const struct request *q,
                            const struct row **rows, size_t *n, struct row **own,
                            struct err *err)
{
    *own = NULL;
    *n = 0;
    if (q->dir) {
        *rows = sweep_dir_rows(q->dir, n);
        return ST_OK;
    }
    *rows = *own = malloc(LOAD_MAX_LAUNCHES * LOAD_MAX_STEPS * sizeof **own);
    if (!*own)
        return err_set(err, ST_NO_MEMORY, "no memory for rows");
    for (size_t i = 0; i < LOAD_MAX_LAUNCHES; i++)
        for (size_t k = 0; k < a[i].n_steps; k++)
            (*own)[(*n)++] = a[i].step[k].row;
    return ST_OK;
}

/* Several servers beside each other, the answer of all first. */
static enum status print_together(const struct load_answer *a, const struct request *q,
                                  struct err *err)
{
    const struct row *rows;
    struct row *own;
    struct users u = {0};
    char text[1200];
    size_t n;
    enum status st = all_rows(a, q, &rows, &n, &own, err);

    if (st == ST_OK)
        st = users_find(&u, rows, n, err);
    if (st == ST_OK && u.n > 1) {
        users_answer(&u, text, sizeof text);
        if (q->json) {
            st = cmd_print_json(json_pack("{s:s}", "answer", text), 9, err);
        } else {
            text_wrap(stdout, text, 0, 0, 79, false);
            users_print_pairs(stdout, &u);
            putchar('\n');
        }
    }
    users_free(&u);
    free(own);
    return st;
}

/* Without gnuplot the rows are what there is. */
static enum status draw(const struct request *q, struct err *err)
{
    struct err why = ERR_INIT;
    const struct row *rows;
    bool any = false;
    size_t n;

    rows = sweep_dir_rows(q->dir, &n);
    if (!users_charts(q->dir_path, rows, n, &any, &why)) {
        if (any && !q->json)
            printf("Charts are in %s.\n", format_path(q->dir_path).text);
        return ST_OK;
    }
    if (why.code == ST_UNSUPPORTED) {
        fprintf(stderr, "bench: %s\n", why.msg);
        return ST_OK;
    }
    return err_set(err, why.code, "%s", why.msg);
}

/* a[one for each launch, or one]: what was measured, also of a run that was ended. */
static void print_all(struct load_answer *a, struct request *q, enum status st,
                      struct err *err)
{
    const size_t n = q->launches.n ? q->launches.n : 1;

    for (size_t i = 0; i < n; i++)
        if (st == ST_INTERRUPTED && a[i].n_steps &&
            a[i].step[a[i].n_steps - 1].row.status != ROW_STATUS_OK)
            a[i].n_steps--; /* the one that was cut off */
    if (n > 1)
        print_together(a, q, err);
    for (size_t i = 0; i < n; i++) {
        char name[LAUNCH_MAX_NAME + 1] = "";
        const char *command;
        struct err ignored = ERR_INIT;

        if (!a[i].n_steps)
            continue;
        if (q->launches.n > 1 && !q->json) {
            launch_parse(q->launches.v[i], name, &command, &ignored);
            printf("%s%s\n\n", i ? "\n" : "", name);
        }
        print(&a[i], q, err);
    }
}

static enum status run(struct request *q, struct err *err)
{
    struct load_answer *a = calloc(LOAD_MAX_LAUNCHES, sizeof *a);
    struct done d = {NULL, 0};
    enum status st =
        a ? check(q, err) : err_set(err, ST_NO_MEMORY, "no memory for answers");

    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK)
        st = read_done(q, &d, err);
    if (st == ST_OK)
        st = q->launches.n ? run_launches(q, &d, a, err)
                           : load_run(a, &q->s, d.rows, d.n, on_row, q, err);
    if (st == ST_OK || st == ST_INTERRUPTED) {
        struct err printing = ERR_INIT;

        print_all(a, q, st, &printing);
        if (st == ST_OK && printing.code)
            st = err_set(err, printing.code, "%s", printing.msg);
        if (st == ST_OK && q->dir)
            st = draw(q, err);
    }
    if (q->dir)
        sweep_dir_close(q->dir);
    free(d.rows);
    free(q->topo);
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
                        .start_s = 600,
                        .n_rounds = 1,
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
        OPT_STRS(0, "launch", &q.launches, "NAME=CMD", "start this server, with {port} in CMD; repeatable: interleaved"),
        OPT_INT(0, "rounds", &q.n_rounds, "N", "of all launches (default 1)", 1, 100),
        OPT_BYTES(0, "mem", &q.mem_limit, "SIZE", "memory of such a server, as 6G"),
        OPT_DOUBLE(0, "start-timeout", &q.start_s, "S", "until it must be ready (600)", 1, 86400),
        OPT_STR('o', "output-dir", &q.dir_path, "DIR", "keep rows and times there"),
        OPT_FLAG(0, "resume", &q.resume, "go on with a run that ended early"),
        OPT_FLAG(0, "json", &q.json, "print JSON"),
        OPT_END,
    };
    /* clang-format on */

    if (opt_parse(&args, argc, argv, opts, &usage, &err) == ST_OK && !args.help) {
        if (args.n + (q.launches.n > 0) != 1) {
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
    free(q.launches.v);
    return cmd_end(&err);
}

/* SPDX-License-Identifier: MIT
 *
 * engine_run.c - a point in a sandbox, measured by another program
 */
#include "harness/measure/engines/engine_run.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <limits.h>
#include <stdint.h>

#include "harness/base/format.h"
#include "harness/client/client.h"
#include "harness/client/server_ready.h"
#include "harness/measure/engines/engine_child.h"
#include "harness/measure/engines/engine_command.h"
#include "harness/measure/engines/engine_row.h"
#include "harness/machine/noise.h"
#include "harness/measure/point/point_run.h"
#include "harness/measure/engines/engine.h"

/* A program that spins is ended after this many budgets, in addition to --timeout. */
#define MAX_BUDGETS 4

/* Positions of a server's context in addition to the requested ones: what it adds to a
 * prompt, and the short request that warms it up. */
#define SPARE_WINDOW 32

/* ---- what can be measured -------------------------------------------------------- */

enum status engine_check_model(const struct modelref *model, struct err *err)
{
    struct stat sb;

    if (model->at_load)
        return err_set(err, ST_USAGE,
                       "%s is quantised while slmbench loads it, which no other engine "
                       "does: write the file with `bench quantize`, and measure that",
                       format_path(model->text).text);
    if (!model->synthetic && stat(model->path, &sb) == 0 && S_ISDIR(sb.st_mode))
        return err_set(
            err, ST_USAGE,
            "%s is a folder of Hugging Face, which other engines do not "
            "read: write a GGUF file with `bench quantize`, and measure that",
            format_path(model->text).text);
    return ST_OK;
}

enum status engine_check_point(const struct point *p, struct err *err)
{
    const char *unknown = p->kind == POINT_SPECULATE             ? "--speculate"
                          : p->profile                           ? "--profile"
                          : p->setup.kv_window                   ? "--kv-window"
                          : p->setup.prefill_sums                ? "--prefill-sums"
                          : p->setup.residency == WEIGHTS_MEMORY ? "--weights memory"
                                                                 : NULL;

    if (unknown)
        return err_set(err, ST_USAGE,
                       "%s and --engine exclude each other: it is a "
                       "setting of slmbench alone",
                       unknown);
    return engine_check_model(&p->setup.model, err);
}

/* ---- running --------------------------------------------------------------------- */

/* What the sandbox is charged while it runs. */
static void look(struct engine_run *x)
{
    const struct sandbox_usage *u = &x->r->usage;

    if (!x->r->sandbox)
        return;
    point_run_usage(x->r);
    if (u->current_bytes > x->peak_bytes)
        x->peak_bytes = u->current_bytes;
    if (sandbox_resident_bytes(u) > x->resident_bytes)
        x->resident_bytes = sandbox_resident_bytes(u);
}

static void on_tick(void *arg, double elapsed_s)
{
    struct engine_run *x = arg;
    const double part = elapsed_s / x->expected_s;

    look(x);
    if (x->r->progress)
        x->r->progress(x->r->progress_arg, "measure", part > 1 ? 1 : part);
}

static void start_params(struct engine_run *x, struct engine_child *c,
                         char *const *argv)
{
    const struct model_setup *setup = &x->r->settings.setup;

    *c = (struct engine_child){
        .params = {.program = x->path,
                   .argv = argv,
                   .sandbox = x->r->around,
                   .foreign = true,
                   .cpus = setup->explicit_cpus ? setup->cpus : NULL,
                   .n_cpus = setup->n_threads},
        .tick = on_tick,
        .arg = x,
    };
}

/* What a run of it with one option prints. */
static enum status run_option(struct engine_run *x, struct engine_child *c,
                              const char *option, struct err *err)
{
    char *argv[] = {(char *)(uintptr_t)engine_word(&x->e, 0), (char *)(uintptr_t)option,
                    NULL};

    start_params(x, c, argv);
    c->limit_s = ENGINE_HELP_S;
    return engine_child_run(c, err);
}

/* Whether it is llama-bench or llama-server, and how its options are, by its help.
 * False: the row has the reason why it is not known, or *status. */
static bool find_kind(struct engine_run *x, enum status *status, struct err *err)
{
    struct err why = ERR_INIT;
    bool known = false;
    struct engine_child c;

    if (x->e.kind != ENGINE_LLAMA)
        return true;
    *status = run_option(x, &c, "--help", err);
    if (*status == ST_OK && (c.end != ENGINE_ENDED || WIFSIGNALED(c.wstatus) ||
                             WEXITSTATUS(c.wstatus) > 1)) {
        engine_row_end(x, &c);
    } else if (*status == ST_OK &&
               engine_read_server_help(&x->serving, c.output, c.n_output)) {
        x->e.kind = ENGINE_LLAMA_SERVER;
        known = true;
    } else if (*status == ST_OK) {
        x->e.kind = ENGINE_LLAMA_BENCH;
        known = engine_read_help(&x->depth, &x->e, c.output, c.n_output, &why) == ST_OK;
        if (!known)
            engine_row_fails(x, why.msg);
    }
    engine_child_free(&c);
    return known;
}

/* For a llama-server that has no build_info in /props, as ik_llama.cpp's. */
static enum status find_version(struct engine_run *x, struct err *err)
{
    struct engine_child c;
    enum status st;

    if (x->e.kind != ENGINE_LLAMA_SERVER || *x->figures.version ||
        !(x->figures.n || x->figures.mean > 0))
        return ST_OK;
    st = run_option(x, &c, "--version", err);
    if (st == ST_OK)
        engine_read_version_words(x->figures.version, sizeof x->figures.version,
                                  c.last_words);
    engine_child_free(&c);
    return st;
}

/* At the ceiling; a token of a prompt takes no longer than one that is decoded. */
static double prompt_s(const struct engine_run *x)
{
    const struct point *p = &x->r->settings;
    const double tps = x->r->row->roof_tok_per_s > 0 ? x->r->row->roof_tok_per_s : 1;

    return (p->kind == POINT_PREFILL ? p->n_prompt : p->ctx) / tps;
}

/* What it should take, at the ceiling, and the time after which it is ended. */
static void set_limits(struct engine_run *x, struct engine_child *c)
{
    const struct point *p = &x->r->settings;
    const int n_prompts =
        engine_is_server(&x->e) && p->kind != POINT_PREFILL ? 1 : x->effort.n_reps + 1;
    const double fill_s = n_prompts * prompt_s(x);

    x->expected_s = p->budget_s + (double)x->r->weight_bytes / 1e9 + fill_s / 4;
    c->limit_s = p->load_budget_s + MAX_BUDGETS * p->budget_s + fill_s;
}

/* The requests to a server. */
static void set_talk(struct engine_run *x, const struct engine_child *c)
{
    const struct point *p = &x->r->settings;
    const bool is_prefill = p->kind == POINT_PREFILL;

    x->talk = (struct engine_talk){
        .port = x->serving.port,
        .n_prompt = is_prefill ? p->n_prompt
                    : p->ctx   ? p->ctx
                               : 1,
        .n_output = is_prefill ? 1 : x->effort.n_reps + 1,
        .n_requests = is_prefill ? x->effort.n_reps : 1,
        .n_vocab = x->r->n_vocab,
        .seed = p->setup.seed,
        .ready_s = p->load_budget_s,
        .silence_s = p->load_budget_s + prompt_s(x),
        .max_s = c->limit_s,
        .budget_s = p->budget_s,
    };
}

/* The words of its command. False: the row has the reason. */
static bool make_command(struct engine_run *x, struct engine_command *command)
{
    const struct point *p = &x->r->settings;
    struct engine_serving *s = &x->serving;
    struct err why = ERR_INIT;
    enum status st;

    if (!engine_is_server(&x->e)) {
        st = engine_make_command(command, &x->e, p, x->depth, &x->effort, &why);
    } else {
        s->port = server_free_port();
        s->n_window =
            SPARE_WINDOW +
            (p->kind == POINT_PREFILL ? p->n_prompt : p->ctx + x->effort.n_reps);
        st = s->port ? engine_make_server(command, &x->e, p, &x->effort, s, &why)
                     : err_set(&why, ST_IO, "no port of this machine is free");
        if (st == ST_OK)
            st = load_client_check(&why);
    }
    if (st)
        engine_row_fails(x, why.msg);
    x->requested = command->requested;
    return st == ST_OK;
}

/* The measurement itself, with the noise of its time. */
static enum status measure(struct engine_run *x, struct err *err)
{
    struct engine_command *command = calloc(1, sizeof *command);
    struct engine_child c = {.output = NULL};
    struct noise before;
    uint64_t peak_before;
    enum status st = ST_OK;

    if (!command)
        return err_set(err, ST_NO_MEMORY, "no memory for a command");
    x->effort = engine_effort(&x->e, &x->r->settings, x->depth,
                              x->r->row->roof_tok_per_s, x->r->fits);
    if (!make_command(x, command)) {
        free(command);
        return ST_OK;
    }
    start_params(x, &c, command->argv);
    set_limits(x, &c);
    set_talk(x, &c);
    point_run_usage(x->r);
    peak_before = x->r->usage.peak_bytes; /* with the buffer of the ceiling's probe */
    noise_read(&before, "");
    st = engine_is_server(&x->e) ? engine_talk_run(&c, &x->talk, err)
                                 : engine_child_run(&c, err);
    if (st == ST_OK) {
        noise_since(&x->noise, &before, "");
        look(x);
        if (x->r->usage.peak_bytes > peak_before)
            x->peak_bytes = x->r->usage.peak_bytes;
        x->wall_s = c.wall_s;
        x->maxrss_bytes = (uint64_t)c.usage.ru_maxrss * 1024;
        engine_row_end(x, &c);
        st = find_version(x, err);
    }
    engine_child_free(&c);
    free(command);
    return st;
}

/* p: as the caller gave it, which is what the row is of. */
static enum status run(struct engine_run *x, const struct point *p, struct err *err)
{
    struct point_run *r = x->r;
    struct err why = ERR_INIT;
    bool goes_on;
    enum status st = ST_OK;

    point_describe(r, p);
    engine_row_begin(x);
    if (engine_find(&x->e, x->path, sizeof x->path, &why)) {
        engine_row_fails(x, why.msg);
        return ST_OK;
    }
    if (point_run_pin(r, err) || point_run_start(r, &goes_on, err))
        return err->code;
    engine_row_cpus(x);
    goes_on = goes_on && point_run_need(r, &st, err);
    if (st || (goes_on && !point_may_try(r)))
        return st;
    goes_on = goes_on && point_run_roof(r, &st, err);
    if (goes_on) {
        engine_row_ceiling(x);
        goes_on = find_kind(x, &st, err);
    }
    if (st == ST_OK && goes_on)
        st = measure(x, err);
    if (st == ST_OK && (x->figures.n || x->figures.mean > 0))
        point_run_roof(r, &st, err);
    if (st)
        return st;
    engine_row_worker(x, goes_on);
    worker_client_end(&r->worker, false);
    engine_row_conclude(x);
    return ST_OK;
}

enum status engine_run(const struct point *p, const struct topology *topo,
                       struct row *row, struct point_samples *samples,
                       point_progress_fn *progress, void *arg, struct err *err)
{
    struct engine_run *x = calloc(1, sizeof *x);
    enum status st = ST_OK;

    if (!x)
        return err_set(err, ST_NO_MEMORY, "no memory to run a point in");
    if (engine_parse(&x->e, p->engine, "--engine", err) || engine_check_point(p, err) ||
        point_run_begin(&x->r, p, topo, row, progress, arg, err))
        st = err->code;
    if (st == ST_OK) {
        x->r->settings.setup.residency = WEIGHTS_MMAP;
        x->r->settings.setup.n_threads_prefill = 0;
        st = run(x, p, err);
    }
    point_run_end(x->r, samples, st == ST_OK);
    free(x);
    return st;
}

/* ---- before it is measured ------------------------------------------------------- */

static enum status check_help(const struct engine *e, const struct engine_child *c,
                              struct err *err)
{
    struct engine_serving serving = {.port = 0};
    enum engine_depth depth;
    struct engine copy = *e;

    if (c->end == ENGINE_INTERRUPTED)
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (c->end != ENGINE_ENDED || WIFSIGNALED(c->wstatus) ||
        WEXITSTATUS(c->wstatus) > 1)
        return err_set(err, ST_INPUT, "%s: %s --help %s%s%s", e->name,
                       format_path(engine_word(e, 0)).text,
                       c->end == ENGINE_ENDED ? "fails" : "does not end",
                       *c->last_words ? ": " : "", c->last_words);
    if (engine_read_server_help(&serving, c->output, c->n_output))
        return ST_OK;
    copy.kind = ENGINE_LLAMA_BENCH;
    return engine_read_help(&depth, &copy, c->output, c->n_output, err);
}

enum status engine_check(const char *text, bool start_it, struct err *err)
{
    char path[PATH_MAX], help[] = "--help";
    struct engine_child c = {.limit_s = ENGINE_HELP_S};
    struct engine e;
    enum status st = engine_parse(&e, text, "--engine", err);

    if (st == ST_OK)
        st = engine_find(&e, path, sizeof path, err);
    if (st || e.kind != ENGINE_LLAMA || !start_it)
        return st;
    char *argv[] = {(char *)(uintptr_t)engine_word(&e, 0), help, NULL};

    c.params = (struct child_params){.program = path, .argv = argv, .foreign = true};
    st = engine_child_run(&c, err);
    if (st == ST_OK)
        st = check_help(&e, &c, err);
    engine_child_free(&c);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * gate_servers.c - a gate's sides that are servers: started here, or there already
 *
 * A side is a shell's command with {port} and without {model}, started by each launch
 * (launch.h), or the address of a server that is there. Both are in memory at a
 * time, and one of them is requested at a time: a turn is a short request that warms
 * up, then one whose tokens are timed as they arrive (TPOT), or some that end with
 * their first token (TTFT). Prompts are token ids, or words where a server refuses
 * those.
 *
 * The CPU time of a server that was started here is its own, and no disturbance. A
 * server that computes while nobody requests anything would slow down the other one: it
 * is refused.
 */
#include "harness/decide/gate/gate_sides.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/client/client.h"
#include "harness/client/server_ready.h"
#include "harness/measure/engines/engine_talk.h"
#include "harness/measure/engines/launch.h"
#include "harness/measure/worker/model_worker.h"

#define PILOT_TOKENS 8
#define IDLE_S       3 /* after its first requests, a server idles within so long */

struct servers {
    struct gate_settings s; /* the gate's, less what servers do not have */
    struct server {
        bool is_here;      /* it is started here */
        bool is_container; /* ... by another process, so what it takes is not known */
        struct launch launch;
        char url[560];
        char *model; /* that requests name; malloc'ed. NULL: none */
        bool in_words;
        double load_s;
    } side[2];
    struct engine_talk talk;
    int n_threads; /* one step for all: a server's threads stand in its command */
};

static struct server *server(const struct gate_run *run, int side)
{
    return &((struct servers *)run->own)->side[side];
}

static const char *name_of(int side)
{
    return side ? "B" : "A";
}

static bool is_url(const char *text)
{
    return !strncmp(text, "http://", 7) || !strncmp(text, "https://", 8);
}

static enum status is_server(const struct gate_run *run, int side, bool *is,
                             struct err *err)
{
    const char *text = run->program[side];

    (void)err;
    *is = is_url(text) || (strstr(text, "{port}") && !strstr(text, "{model}"));
    return ST_OK;
}

/* docker and podman are clients: the container is no child of theirs, or of ours. Any
 * word of the command counts, as sudo and others may begin it. */
static bool runs_container(const char *command)
{
    static const char *const clients[] = {"docker", "docker-compose", "podman",
                                          "nerdctl"};
    static const char between[] = " \t\r\n'\"`()$;&|\\";
    bool is = false;

    for (const char *at = command; !is && *(at += strspn(at, between));) {
        const size_t n = strcspn(at, between);
        const char *slash = memrchr(at, '/', n), *name = slash ? slash + 1 : at;

        for (size_t i = 0; i < sizeof clients / sizeof *clients; i++)
            is |= strlen(clients[i]) == n - (size_t)(name - at) &&
                  !strncmp(name, clients[i], strlen(clients[i]));
        at += n;
    }
    return is;
}

/* ---- what can be compared -------------------------------------------------------- */

/* "127.0.0.1" of "http://127.0.0.1:8080/v1"; all names of this machine are one. */
static void host_of(const char *url, char *host, size_t cap)
{
    const char *at = strstr(url, "://") + 3;
    const size_t n = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ":/");

    snprintf(host, cap, "%.*s", (int)n, at);
    if (!strcmp(host, "localhost") || !strcmp(host, "[::1]"))
        snprintf(host, cap, "127.0.0.1");
}

static enum status check_urls(struct gate_run *run, struct err *err)
{
    char host[2][256];

    for (int side = 0; side < 2; side++) {
        struct server *v = server(run, side);
        size_t n = strlen(run->program[side]);

        while (n && run->program[side][n - 1] == '/')
            n--;
        if (n >= 3 && !strncmp(run->program[side] + n - 3, "/v1", 3))
            n -= 3;
        if (n >= sizeof v->url)
            return err_set(err, ST_USAGE, "--%c: the address is too long", 'a' + side);
        snprintf(v->url, sizeof v->url, "%.*s", (int)n, run->program[side]);
        host_of(v->url, host[side], sizeof host[side]);
    }
    if (!strcmp(server(run, 0)->url, server(run, 1)->url))
        return err_set(err, ST_USAGE,
                       "A and B are one server, %s: start the other one at a port of "
                       "its own, or let the gate start both with --a-launch and "
                       "--b-launch",
                       format_path(server(run, 0)->url).text);
    if (strcmp(host[0], host[1]) != 0)
        return err_set(err, ST_USAGE,
                       "A is on %.100s and B on %.100s: between two machines it is not "
                       "the programs alone that differ; run both on one",
                       host[0], host[1]);
    return ST_OK;
}

static enum status fit_settings(struct gate_run *run, struct err *err)
{
    struct servers *x = run->own;
    struct gate_settings *s = &x->s;
    const bool is_here = server(run, 0)->is_here;

    s->over_http = true;
    s->load = s->load && is_here;
    s->memory = s->memory && is_here && !server(run, 0)->is_container &&
                !server(run, 1)->is_container;
    s->threads = (struct int_list){.v = &x->n_threads, .n = 1};
    if (s->kernels.n)
        return err_set(
            err, ST_USAGE,
            "kernels of a server cannot be timed: leave out the key kernels");
    if (s->has_b_model)
        return err_set(err, ST_USAGE,
                       "--b-model and servers exclude each other: the command of each "
                       "server names its model");
    if (s->of_command)
        return err_set(err, ST_USAGE,
                       "%s and servers exclude each other: the command of each server "
                       "has its own model, threads and weights",
                       s->of_command);
    if (s->setup.mem_limit && !is_here)
        return err_set(err, ST_USAGE,
                       "--mem limits what the gate starts, and these servers are there "
                       "already");
    if (s->setup.mem_limit &&
        (server(run, 0)->is_container || server(run, 1)->is_container))
        return err_set(
            err, ST_USAGE,
            "--mem does not reach into a container: limit it in its command, "
            "with --memory");
    if (is_here && (server(run, 0)->is_container || server(run, 1)->is_container))
        snprintf(run->r->notes, sizeof run->r->notes,
                 "what a container takes is not known to the gate: its memory is not "
                 "judged, and other programs' CPU time disturbs no round");
    if (!is_here)
        snprintf(run->r->notes, sizeof run->r->notes,
                 "the gate did not start these servers: its verdict is of these two "
                 "processes, and what differs between two starts of one program (where "
                 "its memory lies) is part of it; memory and load time are not judged");
    return ST_OK;
}

static enum status open_servers(struct gate_run *run, struct err *err)
{
    struct servers *x = calloc(1, sizeof *x);

    if (!x)
        return err_set(err, ST_NO_MEMORY, "no memory for a gate");
    run->own = x;
    x->s = *run->s;
    x->n_threads = 1;
    run->s = &x->s;
    x->talk.seed = random_bits(&run->random);
    for (int side = 0; side < 2; side++) {
        x->side[side].launch = (struct launch){.child = CHILD_INIT};
        x->side[side].is_here = !is_url(run->program[side]);
        x->side[side].is_container =
            x->side[side].is_here && runs_container(run->program[side]);
        if (strlen(run->program[side]) > LAUNCH_MAX_TEXT - 8)
            return err_set(err, ST_USAGE, "--%c: the command is too long", 'a' + side);
    }
    if (x->side[0].is_here != x->side[1].is_here)
        return err_set(err, ST_USAGE,
                       "%s is started here and %s is there already: only one of them "
                       "begins each launch afresh. Give --a-launch and --b-launch, or "
                       "two addresses",
                       name_of(x->side[1].is_here), name_of(x->side[0].is_here));
    enum status st = x->side[0].is_here ? ST_OK : check_urls(run, err);
    if (st == ST_OK)
        st = load_client_check(err);
    return st ? st : fit_settings(run, err);
}

/* ---- starting and ending --------------------------------------------------------- */

static void end(struct gate_run *run, int side)
{
    if (server(run, side)->is_here)
        launch_stop(&server(run, side)->launch);
}

static enum status start(struct gate_run *run, int side, struct err *err)
{
    const struct sandbox_limits limits = {.memory_bytes = run->s->setup.mem_limit};
    struct server *v = server(run, side);
    char text[LAUNCH_MAX_TEXT + 8];
    const uint64_t begin = clock_ns();

    if (!v->is_here)
        return ST_OK;
    /* The CPUs that we keep to ourselves are those of the server that came last. */
    launch_place_leave(&server(run, !side)->launch.place);
    snprintf(text, sizeof text, "%s=%s", name_of(side), run->program[side]);
    const enum status st =
        launch_start(&v->launch, text, &limits, NULL, run->s->timeout_s,
                     "the key timeout of a "
                     "configuration",
                     run->topo, err);
    if (st == ST_OK) {
        v->load_s = (double)(clock_ns() - begin) * 1e-9;
        memcpy(v->url, v->launch.url, sizeof v->launch.url);
    }
    return st;
}

static void charge(struct gate_run *run, int side, struct gate_charge *charge)
{
    struct server *v = server(run, side);

    if (!v->is_here)
        return;
    charge->peak_bytes = launch_memory("", v->launch.child.pid);
    charge->load_s = v->load_s;
}

static void close_servers(struct gate_run *run)
{
    for (int side = 0; side < 2; side++) {
        end(run, side);
        free(server(run, side)->model);
    }
}

/* ---- turns ----------------------------------------------------------------------- */

static void on_tick(void *arg, double elapsed_s)
{
    (void)elapsed_s;
    gate_run_tick(arg, NULL, 0);
}

/* Its tail of standard error, if it has ended. */
static enum status fail(const struct gate_run *run, int side, struct err *err)
{
    const struct server *v = server(run, side);
    const struct engine_talk *t = &((const struct servers *)run->own)->talk;
    char words[STDERR_TAIL_BYTES + 1] = "";

    if (v->is_here && child_has_ended(&v->launch.child))
        child_stderr_tail(&v->launch.child, words, sizeof words);
    return err_set(err, ST_INPUT, "%s: %s%s%.160s", name_of(side),
                   *t->why ? t->why : "it sent no token that could be timed",
                   *words ? ": " : "", words);
}

static uint64_t own_cpu_ns(const struct server *v)
{
    return load_idle_group_ns("", v->launch.child.pid);
}

/* Seconds of a sample, by the figures of the talk. */
static double sample_s(struct engine_talk *t, const struct worker_step *step)
{
    struct engine_figures *f = &t->figures;
    const double n_tokens = step->kind == WORKER_PREFILL ? step->n : 1;

    for (size_t i = 0; i < f->n; i++)
        f->tok_per_s[i] = n_tokens / f->tok_per_s[i];
    return f->n ? worker_quartile(f->tok_per_s, f->n) : n_tokens / f->mean;
}

static enum status turn(struct gate_run *run, int side, int step, int n,
                        struct gate_turn *turn, struct err *err)
{
    struct servers *x = run->own;
    struct server *v = server(run, side);
    const struct worker_step *of = &run->plan.step[step];
    const bool is_prefill = of->kind == WORKER_PREFILL;
    struct engine_talk *t = &x->talk;
    struct noise before;
    enum status st;

    t->n_prompt = of->n > 0 ? of->n : 1;
    t->n_output = is_prefill ? 1 : n + 1;
    t->n_requests = is_prefill ? n : 1;
    t->silence_s = run->s->timeout_s;
    t->max_s = 2 * run->s->timeout_s;
    t->budget_s = run->s->timeout_s;
    t->model = v->model;
    t->in_words = v->in_words;
    t->seed += 1000; /* no two prompts begin alike */
    noise_read(&before, "");
    const bool is_own = v->is_here && !v->is_container;
    const uint64_t cpu_before = is_own ? own_cpu_ns(v) : 0;
    st = engine_talk_at(t, v->url, on_tick, run, err);
    noise_since(&turn->noise, &before, "");
    if (st)
        return st;
    if (!t->figures.n && !(t->figures.mean > 0))
        return fail(run, side, err);
    if (is_prefill && strstr(t->note, "came from its cache"))
        return err_set(
            err, ST_INPUT,
            "%s: %s, so there is no prefill to time: switch its prompt cache "
            "off",
            name_of(side), t->note);
    turn->seconds = sample_s(t, of);
    if (side)
        turn->seconds /= 1 - run->s->slower;
    if (is_own)
        turn->noise.self_ns += own_cpu_ns(v) - cpu_before;
    else
        turn->noise.self_ns = turn->noise.busy_ns; /* it may be the server's */
    return ST_OK;
}

/* ---- first timing ---------------------------------------------------------------- */

/* Whether it takes token ids, by a first request. */
static enum status find_words(struct gate_run *run, int side, struct err *err)
{
    struct engine_talk *t = &((struct servers *)run->own)->talk;
    struct server *v = server(run, side);

    t->n_prompt = t->n_output = 2;
    t->n_requests = 1;
    t->silence_s = t->max_s = t->budget_s = run->s->timeout_s;
    t->model = v->model;
    t->in_words = false;
    const enum status st = engine_talk_at(t, v->url, on_tick, run, err);
    v->in_words = strstr(t->why, "HTTP 4") != NULL;
    return st;
}

static enum status describe(struct gate_run *run, int side, struct err *err)
{
    struct server *v = server(run, side);
    struct gate_side *out = &run->r->side[side];
    int http = 0;
    enum status st = server_model(&v->model, v->url, NULL, &http, err);

    if (st == ST_OK && !http)
        st = err_set(err, ST_IO, "%s: no server answers at %s", name_of(side),
                     format_path(v->url).text);
    if (st == ST_OK)
        st = engine_talk_version(v->url, out->version, sizeof out->version, err);
    snprintf(out->name, sizeof out->name, "%s", run->program[side]);
    return st;
}

static void name_models(struct gate_run *run)
{
    const char *a = server(run, 0)->model, *b = server(run, 1)->model;
    char text[2][200];

    text_harmless(text[0], sizeof text[0], a ? a : "unknown model");
    text_harmless(text[1], sizeof text[1], b ? b : "unknown model");
    snprintf(run->r->settings, sizeof run->r->settings, "requests over HTTP");
    if (strcmp(text[0], text[1]) != 0)
        snprintf(run->r->model, sizeof run->r->model, "%.120s, B with %.120s", text[0],
                 text[1]);
    else
        snprintf(run->r->model, sizeof run->r->model, "%s", text[0]);
}

/* Once, after its first requests. */
static enum status check_idle(struct gate_run *run, int side, struct err *err)
{
    const struct server *v = server(run, side);

    if (!v->is_here || load_idle_wait(v->launch.child.pid, 0, IDLE_S))
        return ST_OK;
    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    return err_set(
        err, ST_INPUT,
        "%s computes while nobody requests anything (%.1f CPUs), which would "
        "slow down the other side: the two cannot take turns",
        name_of(side), load_idle_cpus(v->launch.child.pid));
}

/* What a turn takes in addition to its samples, and one sample, on the slower side. */
static enum status time_steps(struct gate_run *run, int side, struct err *err)
{
    struct gate_timing *t = &run->timing;

    for (int i = 0; i < run->plan.n_steps; i++) {
        const int n = run->plan.step[i].kind == WORKER_PREFILL ? 1 : PILOT_TOKENS;

        /* the first turn is not timed */
        for (int k = 0; k < 2; k++) {
            struct gate_turn turned = {.seconds = 0};
            const uint64_t begin = clock_ns();
            const enum status st = turn(run, side, i, n, &turned, err);
            const double all_s = (double)(clock_ns() - begin) * 1e-9;

            if (st)
                return st;
            if (k == 0)
                continue;
            t->sample_s[i] = fmax(t->sample_s[i], turned.seconds);
            t->asking_s[i] = fmax(t->asking_s[i], all_s - n * turned.seconds);
        }
    }
    return ST_OK;
}

static enum status pilot(struct gate_run *run, struct err *err)
{
    struct gate_timing *t = &run->timing;
    enum status st = ST_OK;

    t->is_undivided = true;
    for (int side = 0; side < 2 && st == ST_OK; side++) {
        const uint64_t begin = clock_ns();

        st = start(run, side, err);
        if (st == ST_OK)
            st = describe(run, side, err);
        if (st == ST_OK)
            st = find_words(run, side, err);
        t->launch_s += (double)(clock_ns() - begin) * 1e-9;
    }
    for (int side = 0; side < 2 && st == ST_OK; side++) {
        st = time_steps(run, side, err);
        if (st == ST_OK)
            st = check_idle(run, side, err);
    }
    name_models(run);
    end(run, 0);
    end(run, 1);
    return st ? st
              : gate_plan_fit(&run->plan, run->s, t,
                              run->s->budget_s - gate_run_seconds(run), err);
}

const struct gate_sides gate_servers = {
    .what = "a server",
    .can_shorten = true,
    .has_long_turns = true,
    .is = is_server,
    .open = open_servers,
    .pilot = pilot,
    .start = start,
    .turn = turn,
    .charge = charge,
    .end = end,
    .close = close_servers,
};

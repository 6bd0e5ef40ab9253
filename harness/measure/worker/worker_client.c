/* SPDX-License-Identifier: MIT
 *
 * worker_client.c - starting a worker, waiting for its answers, errors
 */
#include "harness/measure/worker/worker_client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/patience.h"
#include "harness/base/parse.h"
#include "harness/machine/fence/fence.h"
#include "harness/measure/worker/messages.h"

#define TICK_MS     200
#define LOOK_S      1.0
#define GREETING_S  20.0
#define PATIENCE_NS 5000000000u /* from the end of its input to its exit */
#define SILENCE_S   120.0

/* ---- ending ---------------------------------------------------------------------- */

static void ended(struct worker_client *c, enum worker_end how)
{
    if (c->end == WORKER_RUNS)
        c->end = how;
}

/* Its exit status; one that has closed its output but does not end is killed. */
static void reap(struct worker_client *c)
{
    bool killed = false;

    if (c->child.pid <= 0 || c->reaped)
        return;
    c->wstatus = child_reap(&c->child, PATIENCE_NS, &c->usage, &killed);
    c->reaped = true;
    if (killed)
        ended(c, WORKER_SILENT);
}

void worker_client_usage(const struct worker_client *c, struct sandbox_usage *usage)
{
    struct sandbox *group = c->p.sandbox ? c->p.sandbox : c->own;

    *usage = (struct sandbox_usage){0};
    if (group)
        sandbox_read(group, usage, NULL);
}

bool worker_client_was_oom(const struct worker_client *c, struct sandbox_usage *usage)
{
    worker_client_usage(c, usage);
    return c->reaped && WIFSIGNALED(c->wstatus) && WTERMSIG(c->wstatus) == SIGKILL &&
           usage->n_oom_kills;
}

/* Its end, in words: " was killed ...". */
static void describe_end(const struct worker_client *c, char *buf, size_t cap)
{
    struct sandbox_usage used;
    const bool oom = worker_client_was_oom(c, &used);
    const struct shown_figure limit = bytes_text(used.limit_bytes);

    if (oom && c->p.sandbox && !sandbox_is_adopted(c->p.sandbox))
        snprintf(buf, cap,
                 "was killed for memory, at the limit of %s for both; give "
                 "them more with --mem",
                 limit.text);
    else if (oom && used.limit_bytes)
        snprintf(buf, cap,
                 "was killed for memory, at the limit of %s that is in force here "
                 "(`bench topo`); raise it, or take a smaller model",
                 limit.text);
    else if (oom)
        snprintf(buf, cap,
                 "was killed because the machine has too little memory; take a smaller "
                 "model");
    else if (WIFSIGNALED(c->wstatus))
        snprintf(buf, cap, "died of signal %d (%s)", WTERMSIG(c->wstatus),
                 strsignal(WTERMSIG(c->wstatus)));
    else
        snprintf(buf, cap, "ended with exit code %d", WEXITSTATUS(c->wstatus));
}

static enum status has_died(struct worker_client *c, const char *doing, struct err *err)
{
    char how[200], words[160];

    ended(c, WORKER_DIED);
    reap(c);
    describe_end(c, how, sizeof how);
    child_stderr_tail(&c->child, words, sizeof words);
    return err_set(err, ST_IO, "%s, %.120s (%s), %s while %s%s%s", c->p.who,
                   c->p.program, c->version, how, doing,
                   *words ? "; its last output: " : "", words);
}

/* ---- receiving ------------------------------------------------------------------- */

static void read_line(void *arg, const char *line, size_t len)
{
    struct worker_client *c = arg;
    json_t *message = message_read(line, len);
    const json_t *phase = json_object_get(message, "phase");
    const bool answers = json_object_get(message, "done") ||
                         json_object_get(message, "error") || !c->hello || !c->p.hear ||
                         (c->wanted && json_object_get(message, c->wanted));

    if (json_is_string(phase)) {
        if (c->p.tick)
            c->p.tick(c->p.arg, json_string_value(phase),
                      json_number_value(json_object_get(message, "fraction")));
        json_decref(message);
    } else if (message && !answers) {
        c->p.hear(c->p.arg, message);
        json_decref(message);
    } else if (message && !c->answer) {
        c->answer = message;
    } else {
        json_decref(message);
        c->n_bad++;
    }
}

/* Its threads are looked at after LOOK_S of silence only, for the sake of what is
 * measured. */
static bool is_silent(const struct worker_client *c, struct patience *silence,
                      double timeout_s)
{
    double cpu_s;

    if (silence->waited_s < LOOK_S)
        return patience_look(silence, clock_ns()) > timeout_s;

    const bool wants_cpu = child_wants_cpu(&c->child, &cpu_s);

    return patience_look_at(silence, clock_ns(), wants_cpu, cpu_s) > timeout_s;
}

/* The next answer, which becomes the caller's. ST_CHECK: no answer, because the
 * worker is dead or has sent something else; *err is not set then. */
static enum status wait_answer(struct worker_client *c, double timeout_s,
                               json_t **answer, const char *doing, struct err *err)
{
    struct patience silence = patience_begin(clock_ns());
    struct pollfd pfd = {.fd = c->child.out, .events = POLLIN};
    bool alive = true;

    while (!c->answer) {
        const int ready = child_poll(&pfd, 1, TICK_MS);
        const uint64_t n_before = c->child.n_received;

        if (interrupted()) {
            ended(c, WORKER_INTERRUPTED);
            return err_set(err, ST_INTERRUPTED, "interrupted");
        }
        if (!alive || c->n_bad) {
            ended(c, c->n_bad ? WORKER_UNEXPECTED : WORKER_DIED);
            return ST_CHECK;
        }
        if (ready > 0)
            alive = child_read_lines(&c->child, read_line, c);
        if (c->child.n_received > n_before)
            silence = patience_begin(clock_ns());
        else if (c->p.tick)
            c->p.tick(c->p.arg, NULL, 0);
        if (is_silent(c, &silence, timeout_s)) {
            ended(c, WORKER_SILENT);
            return err_set(err, ST_IO, "%s, %.200s, has sent nothing for %g s while %s",
                           c->p.who, c->p.program, timeout_s, doing);
        }
    }
    *answer = c->answer;
    c->answer = NULL;
    return ST_OK;
}

/* ---- requests -------------------------------------------------------------------- */

/* The program's own error becomes ours. */
static enum status gave_up(struct worker_client *c, const json_t *answer,
                           struct err *err)
{
    const json_int_t code = json_integer_value(json_object_get(answer, "code"));

    ended(c, WORKER_GAVE_UP);
    c->error_status =
        code > ST_OK && code <= ST_INTERRUPTED ? (enum status)code : ST_IO;
    snprintf(c->error, sizeof c->error, "%s",
             json_string_value(json_object_get(answer, "error")));
    return err_set(err, c->error_status, "%s, %.120s: %s", c->p.who, c->p.program,
                   json_string_value(json_object_get(answer, "error")));
}

static enum status send(struct worker_client *c, json_t *request, struct err *err)
{
    char *text =
        request ? json_dumps(request, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    char *line = NULL;
    enum status st = ST_OK;

    json_decref(request);
    if (!text || asprintf(&line, "%s\n", text) < 0)
        st = err_set(err, ST_USAGE, "the name of the model is not UTF-8");
    else if (child_write(&c->child, line, NULL)) {
        /* A worker that does not read may have sent the reason before it died; one that
         * lives would wait for the rest of the request. */
        close(c->child.in);
        c->child.in = -1;
    }
    free(text);
    free(line);
    return st;
}

enum status worker_client_request(struct worker_client *c, json_t *request,
                                  const char *key, const char *doing, json_t **answer,
                                  struct err *err)
{
    json_t *got = NULL;
    enum status st = send(c, request, err);

    if (st)
        return st;
    c->wanted = key;
    st = wait_answer(c, c->p.timeout_s, &got, doing, err);
    c->wanted = NULL;
    if (st == ST_CHECK && c->n_bad)
        return err_set(
            err, ST_IO,
            "%s, %.120s (%s), has sent something else than an answer while %s",
            c->p.who, c->p.program, c->version, doing);
    if (st == ST_CHECK)
        return has_died(c, doing, err);
    if (st)
        return st;
    if (json_is_string(json_object_get(got, "error")))
        st = gave_up(c, got, err);
    else if (!json_object_get(got, key)) {
        ended(c, WORKER_UNEXPECTED);
        st = err_set(err, ST_IO,
                     "%s, %.120s (%s), has sent an unexpected answer while %s",
                     c->p.who, c->p.program, c->version, doing);
    }
    if (st)
        json_decref(got);
    else
        *answer = got;
    return st;
}

/* ---- its life -------------------------------------------------------------------- */

double worker_silence_s(void)
{
    const char *text = getenv("SLMBENCH_SILENCE");
    double s;

    return text && !parse_double(text, "SLMBENCH_SILENCE", 0.01, 86400, &s, NULL)
               ? s
               : SILENCE_S;
}

enum status worker_client_start(struct worker_client *c, const struct worker_params *p,
                                struct err *err)
{
    char name[] = "bench", command[16];
    char *argv[] = {name, command, NULL};
    const struct child_params params = {.program = p->program,
                                        .argv = argv,
                                        .sandbox = p->sandbox,
                                        .talk = true,
                                        .pass_errors = p->pass_errors};

    fence_note_missing();
    *c = (struct worker_client){.p = *p, .child = CHILD_INIT};
    snprintf(command, sizeof command, "%s", p->command);
    if (!p->sandbox)
        sandbox_adopt(&c->own, "", NULL); /* without one an OOM kill is a signal */
    return child_start(&c->child, &params, err);
}

static void copy(char *dst, size_t cap, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    snprintf(dst, cap, "%s", text ? text : "");
}

enum status worker_client_greet(struct worker_client *c, struct err *err)
{
    const enum status st = wait_answer(c, GREETING_S, &c->hello, "starting", err);

    copy(c->version, sizeof c->version, c->hello, "version");
    copy(c->commit, sizeof c->commit, c->hello, "commit");
    copy(c->compiler, sizeof c->compiler, c->hello, "compiler");
    return st;
}

void worker_client_end(struct worker_client *c, bool kill_it)
{
    const uint64_t deadline = clock_ns() + PATIENCE_NS;
    struct pollfd pfd = {.fd = c->child.out, .events = POLLIN};

    if (c->child.pid <= 0)
        return;
    if (kill_it)
        child_kill(&c->child);
    if (c->child.in >= 0)
        close(c->child.in);
    c->child.in = -1;
    while (clock_ns() < deadline && (child_poll(&pfd, 1, TICK_MS) <= 0 ||
                                     child_read_lines(&c->child, read_line, c)))
        ;
    reap(c);
}

void worker_client_close(struct worker_client *c)
{
    if (!c->p.program)
        return;
    worker_client_end(c, interrupted() || c->end == WORKER_SILENT);
    child_close(&c->child);
    sandbox_destroy(c->own);
    c->own = NULL;
    json_decref(c->answer);
    json_decref(c->hello);
    c->answer = c->hello = NULL;
    c->p.program = NULL;
}

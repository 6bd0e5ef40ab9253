/* SPDX-License-Identifier: MIT
 *
 * engine_talk.c - /health, a warm-up, requests, SIGTERM
 */
#include "harness/measure/engines/engine_talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/client/client.h"
#include "harness/client/server_ready.h"

#define WARM_UP_PROMPT 16
#define WARM_UP_OUTPUT 2
#define END_NS         UINT64_C(5000000000) /* from SIGTERM on */
#define DEATH_NS       UINT64_C(1000000000) /* from a lost connection to its end */
#define PROPS_BYTES    65536                /* with a chat template in them */

struct talking {
    struct engine_child *c;
    struct engine_talk *t;
    struct child child;
    char url[600];
    uint64_t begin_ns, n_sent;
    int n_prompt, n_output; /* of the requests now */
};

static void tick(struct talking *x)
{
    x->c->wall_s = (double)(clock_ns() - x->begin_ns) * 1e-9;
    if (x->c->tick)
        x->c->tick(x->c->arg, x->c->wall_s);
}

static void on_wait(void *arg, double waited_s)
{
    (void)waited_s;
    tick(arg);
}

static void on_progress(void *arg, size_t n_ended, double seconds)
{
    (void)n_ended, (void)seconds;
    tick(arg);
}

static enum status make_body(void *arg, size_t user, struct load_record *r, char **body,
                             struct err *err)
{
    struct talking *x = arg;

    (void)user;
    r->n_requested = x->n_output;
    *body = engine_talk_body(x->t, x->n_prompt, x->n_output, x->t->seed + x->n_sent++);
    return *body ? ST_OK
                 : err_set(err, ST_NO_MEMORY, "no memory for a prompt of %d tokens",
                           x->n_prompt);
}

/* ---- requests -------------------------------------------------------------------- */

static enum status send_requests(struct talking *x, struct load_result *r, int n_prompt,
                                 int n_output, int n_requests, struct err *err)
{
    char url[640];
    const struct load_target target = {
        .url = url, .silence_s = x->t->silence_s, .max_s = x->t->max_s};
    const struct load_work work = {.n_users = 1,
                                   .n_wanted = (size_t)n_requests,
                                   .limit_s = x->t->budget_s,
                                   .body = make_body,
                                   .body_arg = x,
                                   .progress = on_progress,
                                   .progress_arg = x};

    snprintf(url, sizeof url, "%s/v1/completions", x->url);
    x->n_prompt = n_prompt;
    x->n_output = n_output;
    return load_client_run(r, &target, &work, err);
}

/* An answer whose only token has no text of its own, as half a character, came when it
 * ended. */
static bool has_come(const struct load_record *r)
{
    return r->end == LOAD_OK ||
           (r->http_status == 200 && !r->n_pieces && r->n_tokens > 0 && !r->is_late);
}

static double prefill_s(const struct load_record *r)
{
    return (double)((r->first_ns ? r->first_ns : r->done_ns) - r->sent_ns) * 1e-9;
}

static void note_counts(struct engine_talk *t, const struct load_record *r)
{
    if (r->n_cached > 0 && r->n_cached * 10 > t->n_prompt && t->n_prompt > 1)
        snprintf(t->note, sizeof t->note,
                 "%lld of %d tokens of a prompt came from its cache",
                 (long long)r->n_cached, t->n_prompt);
    else if (r->n_prompt >= 0 && !t->in_words &&
             llabs(r->n_prompt - t->n_prompt) > 1 + t->n_prompt / 20)
        snprintf(t->note, sizeof t->note,
                 "it took a prompt of %d tokens for one of %lld", t->n_prompt,
                 (long long)r->n_prompt);
    else if (t->n_output > 1 && load_record_tokens(r) < t->n_output)
        snprintf(t->note, sizeof t->note, "it answered %lld of %d tokens",
                 (long long)load_record_tokens(r), t->n_output);
}

/* False: the server failed, and why has the reason. */
static bool take_answers(struct talking *x, const struct load_result *r)
{
    struct engine_talk *t = x->t;

    if (r->is_interrupted) {
        x->c->end = ENGINE_INTERRUPTED;
        return false;
    }
    if (!r->n)
        snprintf(t->why, sizeof t->why, "no request was answered");
    for (size_t i = 0; i < r->n && !*t->why; i++) {
        if (has_come(&r->records[i]))
            continue;
        snprintf(t->why, sizeof t->why, "%s", r->records[i].why);
        if (r->records[i].is_late)
            x->c->end = ENGINE_HUNG;
    }
    return !*t->why;
}

static enum status measure(struct talking *x, struct err *err)
{
    struct engine_talk *t = x->t;
    const int warm_up = t->n_prompt < WARM_UP_PROMPT ? t->n_prompt : WARM_UP_PROMPT;
    struct err why = ERR_INIT;
    struct load_result r;
    enum status st = send_requests(x, &r, warm_up, WARM_UP_OUTPUT, 1, err);
    bool goes_on;

    if (st)
        return st;
    goes_on = take_answers(x, &r);
    load_result_free(&r);
    if (!goes_on)
        return ST_OK;
    if (send_requests(x, &r, t->n_prompt, t->n_output, t->n_requests, err))
        return err->code;
    if (take_answers(x, &r)) {
        note_counts(t, &r.records[0]);
        if (t->n_output == 1) {
            for (size_t i = 0; i < r.n && t->figures.n < ENGINE_MAX_SAMPLES; i++)
                if (prefill_s(&r.records[i]) > 0)
                    t->figures.tok_per_s[t->figures.n++] =
                        t->n_prompt / prefill_s(&r.records[i]);
        } else if (engine_read_stream(&t->figures, &r.records[0], &why))
            snprintf(t->why, sizeof t->why, "%.190s", why.msg);
    }
    load_result_free(&r);
    return ST_OK;
}

/* ---- around them ----------------------------------------------------------------- */

enum status engine_talk_version(const char *at, char *version, size_t cap,
                                struct err *err)
{
    static const char *const paths[] = {"/props", "/version", "/api/version"};
    char *text = malloc(PROPS_BYTES), url[640];
    enum status st = ST_OK;
    int http;

    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for a server's answer");
    for (size_t i = 0; i < 3 && !*version && st == ST_OK; i++) {
        snprintf(url, sizeof url, "%s%s", at, paths[i]);
        st = load_client_get(url, NULL, 2, &http, text, PROPS_BYTES, err);
        if (st == ST_OK && http == 200)
            engine_read_server_version(version, cap, text, strlen(text));
    }
    free(text);
    return st;
}

enum status engine_talk_at(struct engine_talk *t, const char *url,
                           void (*on)(void *arg, double elapsed_s), void *arg,
                           struct err *err)
{
    struct engine_child c = {.tick = on, .arg = arg, .end = ENGINE_ENDED};
    struct talking x = {.c = &c, .t = t, .child = CHILD_INIT, .begin_ns = clock_ns()};

    snprintf(x.url, sizeof x.url, "%s", url);
    t->figures.n = 0;
    t->figures.mean = 0;
    *t->why = *t->note = '\0';
    const enum status st = measure(&x, err);
    return st == ST_OK && c.end == ENGINE_INTERRUPTED
               ? err_set(err, ST_INTERRUPTED, "interrupted")
               : st;
}

static enum status talk(struct talking *x, struct err *err)
{
    enum server_state state;
    enum status st =
        server_wait(&state, &x->child, x->url, x->t->ready_s, on_wait, x, err);

    if (st)
        return st;
    if (state == SERVER_INTERRUPTED)
        x->c->end = ENGINE_INTERRUPTED;
    if (state == SERVER_LATE) {
        x->c->end = ENGINE_HUNG;
        snprintf(x->t->why, sizeof x->t->why, "it was not ready after %.3g s",
                 x->t->ready_s);
    }
    if (state != SERVER_READY)
        return ST_OK;
    x->t->load_s = (double)(clock_ns() - x->begin_ns) * 1e-9;
    if (engine_talk_version(x->url, x->t->figures.version, sizeof x->t->figures.version,
                            err))
        return err->code;
    return measure(x, err);
}

/* Ends the server, unless it has ended, and keeps how it ended; that does not matter
 * for a server that has answered everything. */
static void end(struct talking *x)
{
    struct engine_child *c = x->c;
    const bool answered = x->t->figures.n || x->t->figures.mean > 0;
    const uint64_t begin = clock_ns();
    const bool failed = *x->t->why && c->end == ENGINE_ENDED;
    char words[STDERR_TAIL_BYTES + 1];
    bool died;
    size_t n;
    int wstatus;

    while (failed && !child_has_ended(&x->child) && clock_ns() - begin < DEATH_NS)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    died = child_has_ended(&x->child);
    if (!died)
        child_request_end(&x->child);
    wstatus = child_reap(&x->child, END_NS, &c->usage, NULL);
    c->wstatus = died && !answered ? wstatus : 0;
    if (died && !answered && !*x->t->why)
        snprintf(x->t->why, sizeof x->t->why, "it ended before it had answered");
    child_stderr_tail(&x->child, words, sizeof words);
    n = strlen(words);
    text_harmless(c->last_words, sizeof c->last_words,
                  n > ENGINE_WORDS ? words + n - ENGINE_WORDS : words);
    c->wall_s = (double)(clock_ns() - x->begin_ns) * 1e-9;
}

enum status engine_talk_run(struct engine_child *c, struct engine_talk *t,
                            struct err *err)
{
    struct talking x = {.c = c, .t = t, .child = CHILD_INIT, .begin_ns = clock_ns()};
    enum status st = load_client_check(err);

    c->end = ENGINE_ENDED;
    c->params.no_output = true;
    snprintf(x.url, sizeof x.url, "http://127.0.0.1:%d", t->port);
    if (st == ST_OK)
        st = child_start(&x.child, &c->params, err);
    if (st == ST_OK) {
        st = talk(&x, err);
        end(&x);
    }
    child_close(&x.child);
    return st;
}

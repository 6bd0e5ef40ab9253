/* SPDX-License-Identifier: MIT
 *
 * turn_client.c - one program's turns, and what may go wrong with them
 */
#include "harness/point/turn_client.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/stats.h"
#include "harness/point/point_child.h"

#define TICK_MS     200
#define GREETING_S  20.0
#define PATIENCE_NS 2000000000u /* from the end of its input to being gone */

/* ---- what went wrong ----------------------------------------------------------------
 */

/* First line of `PROGRAM --version`. */
static void hear_first(void *arg, const char *line, size_t len)
{
    char *text = arg;

    if (!*text)
        snprintf(text, 64, "%.*s", (int)(len < 63 ? len : 63), line);
}

static void ask_version(const char *program, char version[64])
{
    char name[] = "bench", option[] = "--version";
    char *argv[] = {name, option, NULL};
    const struct child_params p = {.program = program, .argv = argv};
    struct child child = CHILD_INIT;
    const uint64_t deadline = clock_ns() + (uint64_t)(GREETING_S / 4 * 1e9);

    version[0] = '\0';
    if (child_start(&child, &p, NULL) == ST_OK) {
        struct pollfd pfd = {.fd = child.out, .events = POLLIN};

        while (!*version && clock_ns() < deadline &&
               (poll(&pfd, 1, TICK_MS) <= 0 || child_hear(&child, hear_first, version)))
            ;
    }
    child_close(&child);
}

static enum status cannot_take_turns(const struct turn_client *c, const char *why,
                                     struct err *err)
{
    char version[64];

    ask_version(c->program, version);
    return err_set(err, ST_USAGE,
                   "%s, %.200s (%s), cannot take part in a gate: %s; build it from a "
                   "commit whose `bench gate` is like this one's, or compare with "
                   "stored results (--baseline)",
                   c->who, c->program,
                   *version ? version : "which does not tell its version", why);
}

/* Its end, in words: " was killed ...". */
static void describe_end(const struct turn_client *c, int wstatus, char *buf,
                         size_t cap)
{
    struct sandbox_usage used = {0};
    char limit[24];

    if (c->sandbox && sandbox_read(c->sandbox, &used, NULL) == ST_OK &&
        used.n_oom_kills)
        snprintf(buf, cap,
                 "was killed for memory, at the limit of %s for both; give "
                 "them more with --mem",
                 format_bytes(limit, sizeof limit, used.limit_bytes));
    else if (WIFSIGNALED(wstatus))
        snprintf(buf, cap, "died of signal %d (%s)", WTERMSIG(wstatus),
                 strsignal(WTERMSIG(wstatus)));
    else
        snprintf(buf, cap, "ended with exit code %d", WEXITSTATUS(wstatus));
}

static enum status has_died(struct turn_client *c, const char *doing, struct err *err)
{
    const int wstatus = child_reap(&c->child, PATIENCE_NS, NULL, NULL);
    char how[160], words[160];

    describe_end(c, wstatus, how, sizeof how);
    child_last_words(&c->child, words, sizeof words);
    return err_set(err, ST_IO, "%s, %.120s (%s), %s while %s%s%s", c->who, c->program,
                   c->version, how, doing, *words ? "; its last words: " : "", words);
}

/* ---- hearing ------------------------------------------------------------------------
 */

static void hear_line(void *arg, const char *line, size_t len)
{
    struct turn_client *c = arg;
    json_t *message = json_loadb(line, len, 0, NULL);
    const json_t *phase = json_object_get(message, "phase");

    if (phase) {
        if (c->tick)
            c->tick(c->arg, "loading",
                    json_number_value(json_object_get(message, "fraction")));
        json_decref(message);
    } else if (message && !c->answer) {
        c->answer = message;
    } else {
        json_decref(message);
        c->n_bad++;
    }
}

/* The next answer, the caller's from then on. ST_CHECK: none came, and it is dead;
 * nothing is said in *err then. */
static enum status wait_answer(struct turn_client *c, double timeout_s, json_t **answer,
                               const char *doing, struct err *err)
{
    uint64_t heard = clock_ns();
    struct pollfd pfd = {.fd = c->child.out, .events = POLLIN};
    bool alive = true;

    while (!c->answer) {
        const int ready = poll(&pfd, 1, TICK_MS);

        if (interrupted())
            return err_set(err, ST_INTERRUPTED, "interrupted");
        if (!alive || c->n_bad)
            return ST_CHECK;
        if (ready > 0) {
            alive = child_hear(&c->child, hear_line, c);
            heard = clock_ns();
        } else if (c->tick) {
            c->tick(c->arg, NULL, 0);
        }
        if ((double)(clock_ns() - heard) * 1e-9 > timeout_s)
            return err_set(err, ST_IO, "%s, %.200s, has said nothing for %g s while %s",
                           c->who, c->program, timeout_s, doing);
    }
    *answer = c->answer;
    c->answer = NULL;
    return ST_OK;
}

/* The answer's value of a key; the program's own error becomes ours. */
static enum status ask(struct turn_client *c, json_t *request, const char *key,
                       const char *doing, json_t **answer, struct err *err)
{
    char *text =
        request ? json_dumps(request, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    char *line = NULL;
    json_t *got = NULL, *why;
    enum status st = text && asprintf(&line, "%s\n", text) > 0
                         ? child_say(&c->child, line, NULL)
                         : err_set(err, ST_USAGE, "the name of the model is not UTF-8");

    json_decref(request);
    free(text);
    free(line);
    if (err->code)
        return st;
    /* One that does not listen has perhaps said why before it died. */
    st = wait_answer(c, c->timeout_s, &got, doing, err);
    if (st == ST_CHECK && c->n_bad)
        return err_set(err, ST_IO,
                       "%s, %.120s (%s), has said something else than an "
                       "answer while %s",
                       c->who, c->program, c->version, doing);
    if (st == ST_CHECK)
        return has_died(c, doing, err);
    if (st)
        return st;
    why = json_object_get(got, "error");
    if (json_is_string(why)) {
        const json_int_t code = json_integer_value(json_object_get(got, "code"));

        st = err_set(err,
                     code > ST_OK && code <= ST_INTERRUPTED ? (enum status)code : ST_IO,
                     "%s, %.120s: %s", c->who, c->program, json_string_value(why));
    } else if (!json_object_get(got, key)) {
        st = err_set(err, ST_IO,
                     "%s, %.120s (%s), has given no sensible answer while %s", c->who,
                     c->program, c->version, doing);
    }
    if (st)
        json_decref(got);
    else
        *answer = got;
    return st;
}

/* ---- starting -----------------------------------------------------------------------
 */

enum status turn_check_program(const char *who, const char *program, struct err *err)
{
    struct stat st;

    if (stat(program, &st))
        return err_set_errno(err, ST_USAGE, "%s: cannot find the program %.300s", who,
                             program);
    if (!S_ISREG(st.st_mode) || access(program, X_OK))
        return err_set(err, ST_USAGE,
                       "%s: %.300s is not a program; name the `bench` of a build, as "
                       "build/release/bench",
                       who, program);
    return ST_OK;
}

static void copy(char *dst, size_t cap, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    snprintf(dst, cap, "%s", text ? text : "");
}

static enum status read_greeting(struct turn_client *c, struct err *err)
{
    json_t *hello = NULL;
    enum status st = wait_answer(c, GREETING_S, &hello, "starting", err);
    char why[200], words[120];
    int protocol;

    if (st == ST_INTERRUPTED || (st && st != ST_CHECK))
        return st;
    if (st == ST_CHECK) {
        child_last_words(&c->child, words, sizeof words);
        snprintf(why, sizeof why, "it takes no turns%s%s%s", *words ? " (\"" : "",
                 words, *words ? "\")" : "");
        return cannot_take_turns(c, why, err);
    }
    protocol = (int)json_integer_value(json_object_get(hello, "turn"));
    copy(c->version, sizeof c->version, hello, "version");
    copy(c->commit, sizeof c->commit, hello, "commit");
    copy(c->compiler, sizeof c->compiler, hello, "compiler");
    json_decref(hello);
    if (protocol == TURN_PROTOCOL)
        return ST_OK;
    snprintf(why, sizeof why, "it takes turns in another way (%d, and this program %d)",
             protocol, TURN_PROTOCOL);
    return cannot_take_turns(c, why, err);
}

enum status turn_client_start(struct turn_client *c, const struct turn_client_params *p,
                              const struct turn_open *open, struct err *err)
{
    char name[] = "bench", command[] = "turn";
    char *argv[] = {name, command, NULL};
    const struct child_params params = {
        .program = p->program, .argv = argv, .sandbox = p->sandbox, .talk = true};
    json_t *answer = NULL;
    enum status st;

    *c = (struct turn_client){.child = CHILD_INIT,
                              .who = p->who,
                              .program = p->program,
                              .timeout_s = p->timeout_s,
                              .sandbox = p->sandbox,
                              .tick = p->tick,
                              .arg = p->arg};
    st = turn_check_program(c->who, c->program, err);
    if (st == ST_OK)
        st = child_start(&c->child, &params, err);
    if (st == ST_OK)
        st = read_greeting(c, err);
    if (st == ST_OK)
        st = ask(c, json_pack("{s:o}", "open", turn_open_json(open)), "ready",
                 "opening the model", &answer, err);
    if (st == ST_OK)
        st = turn_ready_from_json(&c->ready, json_object_get(answer, "ready"), err);
    json_decref(answer);
    return st;
}

/* ---- a turn -------------------------------------------------------------------------
 */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double turn_quick(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n ? stats_quantile_sorted(v, n, 0.25) : 0;
}

static enum status read_quartiles(const struct turn_client *c, const json_t *lists,
                                  const int *n, int n_steps, double *seconds,
                                  struct err *err)
{
    double v[TURN_MAX_SAMPLES];

    for (int i = 0; i < n_steps; i++) {
        const json_t *list = json_array_get(lists, (size_t)i);
        bool ok = json_array_size(list) == (size_t)n[i];

        for (int k = 0; ok && k < n[i]; k++) {
            v[k] = json_number_value(json_array_get(list, (size_t)k));
            ok = v[k] > 0;
        }
        if (!ok)
            return err_set(err, ST_IO,
                           "%s, %.200s, has answered with other samples than it was "
                           "asked for",
                           c->who, c->program);
        seconds[i] = turn_quick(v, (size_t)n[i]);
    }
    return ST_OK;
}

enum status turn_client_take(struct turn_client *c, const int *n, int n_steps,
                             double *seconds, struct noise *noise, struct err *err)
{
    json_t *counts = json_array(), *answer = NULL;
    enum status st;

    for (int i = 0; i < n_steps; i++)
        json_array_append_new(counts, json_integer(n[i]));
    st = ask(c, json_pack("{s:o}", "take", counts), "s", "it took its turn", &answer,
             err);
    if (st)
        return st;
    st = read_quartiles(c, json_object_get(answer, "s"), n, n_steps, seconds, err);
    memset(noise, 0, sizeof *noise);
    point_noise_from_json(noise, json_object_get(answer, "noise"));
    c->peak_bytes = (uint64_t)json_integer_value(json_object_get(answer, "peak_bytes"));
    json_decref(answer);
    return st;
}

void turn_client_close(struct turn_client *c)
{
    if (!c->program)
        return;
    if (c->child.pid > 0 && c->child.in >= 0) {
        close(c->child.in);
        c->child.in = -1;
        if (!interrupted())
            child_reap(&c->child, PATIENCE_NS, NULL, NULL);
    }
    child_close(&c->child);
    json_decref(c->answer);
    c->answer = NULL;
    c->program = NULL;
}

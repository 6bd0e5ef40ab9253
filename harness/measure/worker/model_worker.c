/* SPDX-License-Identifier: MIT
 *
 * model_worker.c - the worker of one of a gate's programs
 */
#include "harness/measure/worker/model_worker.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/stats/stats.h"
#include "harness/measure/worker/worker.h"

#define TICK_MS   200
#define VERSION_S 5.0

/* ---- starting -------------------------------------------------------------------- */

/* First line of `PROGRAM --version`. */
static void read_first(void *arg, const char *line, size_t len)
{
    char *text = arg;

    if (!*text)
        snprintf(text, 64, "%.*s", (int)(len < 63 ? len : 63), line);
}

static void request_version(const char *program, char version[64])
{
    char name[] = "bench", option[] = "--version";
    char *argv[] = {name, option, NULL};
    const struct child_params p = {.program = program, .argv = argv, .foreign = true};
    struct child child = CHILD_INIT;
    const uint64_t deadline = clock_ns() + (uint64_t)(VERSION_S * 1e9);

    version[0] = '\0';
    if (child_start(&child, &p, NULL) == ST_OK) {
        struct pollfd pfd = {.fd = child.out, .events = POLLIN};

        while (!*version && clock_ns() < deadline &&
               (child_poll(&pfd, 1, TICK_MS) <= 0 ||
                child_read_lines(&child, read_first, version)))
            ;
    }
    child_close(&child);
}

static enum status cannot_take_part(const struct worker_client *c, const char *why,
                                    struct err *err)
{
    char version[64];

    request_version(c->p.program, version);
    return err_set(err, ST_USAGE,
                   "%s, %.200s (%s), cannot take part in a gate: %s. Another "
                   "program is given with what it prints, as 'run -m {model} =~ "
                   "speed: ([0-9.]+)'; another build of bench comes from a commit "
                   "whose `bench gate` is like this one's",
                   c->p.who, c->p.program,
                   *version ? version : "which reports no version", why);
}

enum status worker_check_program(const char *who, const char *program, struct err *err)
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

/* A greeting with the same protocol, of a program that knows all that is set. */
static enum status greet(struct worker_client *c, const struct worker_open *open,
                         struct err *err)
{
    const enum status st = worker_client_greet(c, err);
    char why[200], words[120];
    const char *unknown;
    int protocol;

    if (st == ST_CHECK) {
        child_stderr_tail(&c->child, words, sizeof words);
        snprintf(why, sizeof why, "it does not start as a worker%s%s%s",
                 *words ? " (\"" : "", words, *words ? "\")" : "");
        return cannot_take_part(c, why, err);
    }
    protocol = (int)json_integer_value(json_object_get(c->hello, "turn"));
    if (st)
        return st;
    unknown = model_setup_unknown_key(&open->setup, json_object_get(c->hello, "opens"));
    if (protocol == WORKER_OPEN_PROTOCOL && !unknown)
        return ST_OK;
    if (protocol == WORKER_OPEN_PROTOCOL)
        snprintf(why, sizeof why, "it does not know the setting %s", unknown);
    else
        snprintf(why, sizeof why,
                 "it speaks another protocol (%d, and this program %d)", protocol,
                 WORKER_OPEN_PROTOCOL);
    return cannot_take_part(c, why, err);
}

enum status model_worker_start(struct model_worker *c,
                               const struct model_worker_params *p,
                               const struct worker_open *open, struct err *err)
{
    const struct worker_params params = {.who = p->who,
                                         .program = p->program,
                                         .command = "turn",
                                         .timeout_s = p->timeout_s,
                                         .sandbox = p->sandbox,
                                         .tick = p->tick,
                                         .arg = p->arg};
    json_t *answer = NULL;
    enum status st = ST_OK;

    *c = (struct model_worker){.worker = {.child = CHILD_INIT}};
    if (worker_check_program(p->who, p->program, err) ||
        worker_client_start(&c->worker, &params, err) || greet(&c->worker, open, err) ||
        worker_client_request(&c->worker,
                              json_pack("{s:o}", "open", worker_open_json(open)),
                              "ready", "opening the model", &answer, err) ||
        worker_ready_from_json(&c->ready, json_object_get(answer, "ready"), err))
        st = err->code;
    json_decref(answer);
    return st;
}

/* ---- samples --------------------------------------------------------------------- */

double worker_quartile(double *v, size_t n)
{
    stats_sort(v, n);
    return n ? stats_quantile_sorted(v, n, 0.25) : 0;
}

static enum status read_quartiles(const struct model_worker *c, const json_t *lists,
                                  const int *n, int n_steps, double *seconds,
                                  struct err *err)
{
    double v[WORKER_MAX_SAMPLES];

    for (int i = 0; i < n_steps; i++) {
        const json_t *list = json_array_get(lists, (size_t)i);
        bool ok = json_array_size(list) == (size_t)n[i];

        for (int k = 0; ok && k < n[i]; k++) {
            v[k] = json_number_value(json_array_get(list, (size_t)k));
            ok = v[k] > 0;
        }
        if (!ok)
            return err_set(err, ST_IO,
                           "%s, %.200s, has answered with other samples than requested",
                           c->worker.p.who, c->worker.p.program);
        seconds[i] = worker_quartile(v, (size_t)n[i]);
    }
    return ST_OK;
}

enum status model_worker_sample(struct model_worker *c, const int *n, int n_steps,
                                double *seconds, struct noise *noise, struct err *err)
{
    json_t *counts = json_array(), *answer = NULL;
    enum status st;

    for (int i = 0; i < n_steps; i++)
        json_array_append_new(counts, json_integer(n[i]));
    if (worker_client_request(&c->worker, json_pack("{s:o}", "take", counts), "s",
                              "it took samples", &answer, err))
        return err->code;
    st = read_quartiles(c, json_object_get(answer, "s"), n, n_steps, seconds, err);
    memset(noise, 0, sizeof *noise);
    worker_noise_from_json(noise, json_object_get(answer, "noise"));
    c->peak_bytes = (uint64_t)json_integer_value(json_object_get(answer, "peak_bytes"));
    json_decref(answer);
    return st;
}

void model_worker_close(struct model_worker *c)
{
    worker_client_close(&c->worker);
}

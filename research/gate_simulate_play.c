/* SPDX-License-Identifier: MIT
 *
 * gate_simulate_play.c - cells shared out to threads, and kept in a file
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/infile.h"
#include "engine/base/random.h"
#include "harness/base/hash.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "harness/base/progress.h"
#include "harness/stats/stats.h"
#include "harness/base/newfile.h"
#include "research/gate_simulate.h"

#define MAX_BYTES ((size_t)64 << 20) /* of a file that is read */

#define CHUNK   100 /* gates that a thread takes at a time */
#define KEY_MAX 300
#define FILE_OF "gate_simulation.csv"

/* ---- the file -------------------------------------------------------------------- */

static const char header[] =
    "rule,machine,round_noise_percent,slowdown_percent,metrics,margin_percent,turns,"
    "gates,seed,bench,failed,passed,launches,fail_percent,fail_percent_hi95\n";

/* The first columns: all that a cell's counts depend on. turns are those of a launch of
 * both sides. */
static void cell_key(char key[KEY_MAX], const struct simulation *s,
                     const struct sim_cell *c)
{
    snprintf(key, KEY_MAX, "%s,%s,%.4g,%.4g,%zu,%.4g,%d,%zu,%llu,%s,",
             simulation_rule(c->rule), simulation_machine(s, c->machine),
             100 * c->sigma, 100 * c->slowdown, c->n_metrics, 100 * s->rule.margin,
             c->rule == SIM_OURS ? 4 * SIM_ROUNDS : 2 * SIM_RIVAL_TURNS, s->n_gates,
             (unsigned long long)s->seed, build_commit());
}

static void write_cell(FILE *f, const struct simulation *s, const struct sim_cell *c)
{
    char key[KEY_MAX];

    cell_key(key, s, c);
    fprintf(f, "%s%zu,%zu,%llu,%.4g,%.4g\n", key, c->n_fail, c->n_pass,
            (unsigned long long)c->n_launches, 100 * sim_cell_rate(c),
            100 * stats_binomial_upper(c->n_fail, c->n_played));
}

static bool read_line(struct sim_cell *c, const char *line, size_t n_gates)
{
    unsigned long long fail, pass, launches;
    int end = 0;

    if (sscanf(line, "%llu,%llu,%llu,%*g,%*g%n", &fail, &pass, &launches, &end) != 3 ||
        line[end] != '\n' || fail > n_gates || pass > n_gates - fail)
        return false;
    c->n_fail = (size_t)fail;
    c->n_pass = (size_t)pass;
    c->n_launches = launches;
    c->n_played = n_gates;
    return true;
}

/* Cells that an earlier run has finished. */
static enum status read_cells(struct simulation *s, const char *path, struct err *err)
{
    char *text, key[KEY_MAX];
    size_t len;
    enum status st;

    if (access(path, F_OK))
        return ST_OK;
    st = infile_read(&text, &len, path, MAX_BYTES, err);
    if (st)
        return st;
    char *whole = realloc(text, len + 1);
    if (!whole) {
        free(text);
        return err_set(err, ST_NO_MEMORY, "no memory for %s", path);
    }
    whole[len] = '\0';
    for (size_t i = 0; i < s->n_cells; i++) {
        cell_key(key, s, &s->cell[i]);
        const size_t n = strlen(key);

        for (const char *line = whole; line; line = strchr(line, '\n')) {
            line += *line == '\n';
            if (!strncmp(line, key, n) && read_line(&s->cell[i], line + n, s->n_gates))
                break;
        }
    }
    free(whole);
    return ST_OK;
}

/* Those that are done, in the plan's order. */
static enum status write_cells(const struct simulation *s, const char *path,
                               struct err *err)
{
    struct newfile n;
    const enum status st = newfile_replace(&n, path, err);

    if (st)
        return st;
    fputs(header, n.f);
    for (size_t i = 0; i < s->n_cells; i++)
        if (s->cell[i].n_played == s->n_gates)
            write_cell(n.f, s, &s->cell[i]);
    return newfile_commit(&n, path, err);
}

/* ---- playing --------------------------------------------------------------------- */

/* A cell's gates have seeds of their own, whatever else is played. */
static uint64_t cell_seed(const struct simulation *s, const struct sim_cell *c)
{
    char key[KEY_MAX];

    snprintf(key, sizeof key, "%s,%s,%.4g,%.4g,%zu", simulation_rule(c->rule),
             simulation_machine(s, c->machine), 100 * c->sigma, 100 * c->slowdown,
             c->n_metrics);
    return hash_add(hash_add(HASH_BEGIN, key, strlen(key)), &s->seed, sizeof s->seed);
}

/* Gates [from, to) of a cell into out's counts. */
static enum status play(const struct simulation *s, const struct sim_cell *c,
                        struct sim_cell *out, size_t from, size_t to, struct err *err)
{
    const struct gate_trace *t =
        c->machine < SIM_TRACE ? NULL : &s->trace[c->machine - SIM_TRACE];
    const struct sim_trace trace = {t ? t->log_time : NULL, t ? t->n : 0};
    const enum sim_noise noise = t ? SIM_TRACE : (enum sim_noise)c->machine;
    const struct sim_gate g = {s->rule, c->n_metrics, SIM_ROUNDS, GATE_MAX_LAUNCHES,
                               c->slowdown};
    const uint64_t base = cell_seed(s, c);

    for (size_t i = from; i < to; i++) {
        uint64_t state = base + i;
        const uint64_t seed = random_bits(&state);
        enum gate_verdict verdict;
        size_t n;

        if (c->rule != SIM_OURS) {
            out->n_fail += sim_rival_play((enum rival)c->rule, SIM_RIVAL_TURNS,
                                          c->slowdown, noise, c->sigma, &trace, seed);
            continue;
        }
        if (sim_gate_play(&verdict, &n, &g, noise, c->sigma, &trace, seed, err))
            return err->code;
        out->n_fail += verdict == GATE_FAIL;
        out->n_pass += verdict == GATE_PASS;
        out->n_launches += n;
    }
    return ST_OK;
}

struct pool {
    struct simulation *s;
    FILE *f; /* or NULL */
    pthread_mutex_t lock;
    size_t cell, gate; /* the next to be taken */
    double done, whole;
    int n_running;
    struct err err;
};

/* About how much longer a gate takes than others do. */
static double cost(const struct sim_cell *c)
{
    return c->rule == SIM_OURS          ? 3 * (double)c->n_metrics
           : c->rule == RIVAL_CRITERION ? 10
                                        : 1;
}

/* The next gates to play, from *from on; NULL: there are no more, or it is time to
 * stop. */
static struct sim_cell *take(struct pool *p, size_t *from, size_t *to)
{
    struct simulation *s = p->s;

    while (p->cell < s->n_cells &&
           (p->gate == s->n_gates || s->cell[p->cell].n_played == s->n_gates)) {
        p->cell++;
        p->gate = 0;
    }
    if (p->cell == s->n_cells || p->err.code || interrupted())
        return NULL;
    *from = p->gate;
    *to = s->n_gates - *from > CHUNK ? *from + CHUNK : s->n_gates;
    p->gate = *to;
    return &s->cell[p->cell];
}

static void give(struct pool *p, struct sim_cell *c, const struct sim_cell *counts,
                 size_t n)
{
    c->n_fail += counts->n_fail;
    c->n_pass += counts->n_pass;
    c->n_launches += counts->n_launches;
    c->n_played += n;
    p->done += (double)n * cost(c);
    if (c->n_played < p->s->n_gates || !p->f)
        return;
    write_cell(p->f, p->s, c);
    if (fflush(p->f))
        err_set_errno(&p->err, ST_IO, FILE_OF " cannot be written");
}

static void *player(void *arg)
{
    struct pool *p = arg;
    struct sim_cell *c;
    size_t from, to;

    pthread_mutex_lock(&p->lock);
    while ((c = take(p, &from, &to))) {
        struct sim_cell counts = {.rule = c->rule};
        struct err err = ERR_INIT;

        pthread_mutex_unlock(&p->lock);
        const enum status st = play(p->s, c, &counts, from, to, &err);
        pthread_mutex_lock(&p->lock);
        if (st)
            err_set(&p->err, st, "%s", err.msg);
        else
            give(p, c, &counts, to - from);
    }
    p->n_running--;
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Until all players have ended. */
static void watch(struct pool *p)
{
    struct progress progress;
    int n_running = 1;

    progress_begin(&progress, "gates");
    while (n_running) {
        usleep(10000);
        pthread_mutex_lock(&p->lock);
        const double done = p->done;
        n_running = p->n_running;
        const size_t cell = p->cell < p->s->n_cells ? p->cell : p->s->n_cells - 1;
        pthread_mutex_unlock(&p->lock);
        progress_update(&progress, p->whole > 0 ? done / p->whole : 1,
                        simulation_machine(p->s, p->s->cell[cell].machine));
    }
    progress_end(&progress);
}

static enum status run_players(struct pool *p, struct err *err)
{
    const int n = p->s->n_threads;
    pthread_t *thread = malloc((size_t)n * sizeof *thread);
    int n_started = 0;

    if (!thread)
        return err_set(err, ST_NO_MEMORY, "no memory for %d threads", n);
    p->n_running = n;
    while (n_started < n && !pthread_create(&thread[n_started], NULL, player, p))
        n_started++;
    pthread_mutex_lock(&p->lock);
    p->n_running -= n - n_started;
    if (n_started == 0)
        err_set(&p->err, ST_NO_MEMORY, "no thread can be started");
    pthread_mutex_unlock(&p->lock);
    watch(p);
    for (int i = 0; i < n_started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    if (p->err.code)
        return err_set(err, p->err.code, "%s", p->err.msg);
    return interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted") : ST_OK;
}

static FILE *append_to(const char *path)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "a");

    if (fd >= 0 && !f)
        close(fd);
    return f;
}

enum status simulation_play(struct simulation *s, const char *dir, struct err *err)
{
    struct pool p = {.s = s, .err = ERR_INIT};
    char path[4096];
    enum status st = ST_OK;

    snprintf(path, sizeof path, "%s/" FILE_OF, dir ? dir : "");
    if (dir)
        st = read_cells(s, path, err);
    if (dir && st == ST_OK)
        st = write_cells(s, path, err);
    if (dir && st == ST_OK && !(p.f = append_to(path)))
        st = err_set_errno(err, ST_IO, "%s cannot be written", path);
    if (st)
        return st;
    for (size_t i = 0; i < s->n_cells; i++)
        if (s->cell[i].n_played < s->n_gates)
            p.whole += (double)s->n_gates * cost(&s->cell[i]);
    pthread_mutex_init(&p.lock, NULL);
    st = run_players(&p, err);
    pthread_mutex_destroy(&p.lock);
    if (p.f && fclose(p.f) && st == ST_OK)
        st = err_set_errno(err, ST_IO, "%s cannot be written", path);
    return st || !dir ? st : write_cells(s, path, err);
}

/* SPDX-License-Identifier: MIT
 *
 * compare_read.c - machines and their rows: a directory each, or all of a database
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/format.h"
#include "harness/compare/compare.h"
#include "harness/history/history.h"
#include "harness/result/order.h"
#include "harness/result/report_rows.h"

#define CPU_SHOWN 60

static enum status add_source(struct compare_sources *s, struct compare_source **added,
                              struct err *err)
{
    struct compare_source *grown;

    if (s->n == COMPARE_MAX_MACHINES)
        return err_set(err, ST_USAGE, "more than %d machines", COMPARE_MAX_MACHINES);
    grown = realloc(s->v, (s->n + 1) * sizeof *grown);
    if (!grown)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu machines", s->n + 1);
    s->v = grown;
    *added = &s->v[s->n++];
    memset(*added, 0, sizeof **added);
    return ST_OK;
}

static void describe(struct compare_source *s, const char *cpu, int n_cpus)
{
    text_shorten(s->cpu, sizeof s->cpu, cpu[0] ? cpu : "unknown CPU", CPU_SHOWN);
    if (n_cpus > 0)
        text_append(s->cpu, sizeof s->cpu, ", %d CPU%s", n_cpus, plural(n_cpus, "s"));
}

/* ---- a directory ------------------------------------------------------------------
 */

static const char *last_part(const char *dir, char *buf, size_t cap)
{
    size_t end = strlen(dir), begin;
    char name[256];

    while (end > 1 && dir[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && dir[begin - 1] != '/'; begin--) {
    }
    snprintf(name, sizeof name, "%.*s", (int)(end - begin), dir + begin);
    return text_harmless(buf, cap, name);
}

static enum status read_dir(struct compare_sources *sources, const char *dir,
                            struct err *err)
{
    struct report_machine machine;
    struct compare_source *s;
    const enum status st = add_source(sources, &s, err);

    if (st)
        return st;
    last_part(dir, s->name, sizeof s->name);
    report_machine_read(&machine, dir);
    describe(s, machine.cpu_model, machine.n_cpus);
    s->max_threads = machine.max_threads;
    return report_rows_read(dir, &s->rows, &s->n, err);
}

/* ---- a history --------------------------------------------------------------------
 */

/* Runs of one machine: the same profile, of the same host. */
static bool same_machine(const struct history_run *a, const struct history_run *b)
{
    char why[256];

    if (a->has_machine != b->has_machine || strcmp(a->host, b->host) != 0)
        return false;
    return !a->has_machine ||
           machine_key_same(&a->machine, &b->machine, why, sizeof why);
}

/* machine_of[run]: the first run of the same machine. */
static void find_machines(const struct history *h, size_t *machine_of)
{
    for (size_t r = 0; r < h->n_runs; r++) {
        size_t first = 0;

        while (first < r && (machine_of[first] != first ||
                             !same_machine(&h->runs[first], &h->runs[r])))
            first++;
        machine_of[r] = first;
    }
}

/* Names of a machine, from the shortest to the one that says most. */
enum { BY_HOST, BY_CPU, BY_PROFILE, N_NAMES };

static const char *name_of(const struct history_run *run, int kind, char *buf,
                           size_t cap)
{
    char about[256] = "unknown machine";

    if (run->has_machine && kind == BY_CPU)
        snprintf(about, sizeof about, "%s", run->machine.text[MACHINE_CPU]);
    else if (run->has_machine)
        machine_key_name(&run->machine, about, sizeof about);
    if (!run->host[0])
        snprintf(buf, cap, "%s", about);
    else if (kind == BY_HOST)
        snprintf(buf, cap, "%s", run->host);
    else
        snprintf(buf, cap, "%.40s (%.50s)", run->host, about);
    return buf;
}

/* The shortest that no other machine of the history has, or else the longest. */
static void name_machine(struct compare_source *s, const struct history *h,
                         const size_t *machine_of, size_t run)
{
    char other[sizeof s->name];

    for (int kind = 0; kind < N_NAMES; kind++) {
        bool alone = true;

        name_of(&h->runs[run], kind, s->name, sizeof s->name);
        for (size_t r = 0; r < h->n_runs && alone; r++)
            alone =
                machine_of[r] == run ||
                strcmp(name_of(&h->runs[r], kind, other, sizeof other), s->name) != 0;
        if (alone)
            break;
    }
}

/* CPUs and threads as report_machine_read() has them of a machine.json. */
static void take_profile(struct compare_source *s, const struct history_run *run)
{
    const struct machine_key *key = &run->machine;
    const char *allowed = strstr(key->text[MACHINE_CPUS], "allowed ");
    const long n = run->has_machine && allowed
                       ? strtol(allowed + strlen("allowed "), NULL, 10)
                       : 0;
    const double quota = run->has_machine ? strtod(key->text[MACHINE_QUOTA], NULL) : 0;

    s->max_threads = n > 0 && n <= TOPO_MAX_CPUS ? (int)n : 0;
    describe(s, run->has_machine ? key->text[MACHINE_CPU] : "", s->max_threads);
    if (quota > 0 && quota < (s->max_threads ? s->max_threads : TOPO_MAX_CPUS))
        s->max_threads = quota < 1 ? 1 : (int)quota;
}

/* A row, and when its run began. */
struct dated {
    const struct row *row;
    const struct history_run *run;
};

/* Rows of a point beside each other, those of its latest run first. */
static int by_point(const void *x, const void *y)
{
    const struct dated *a = x, *b = y;

    ORDER_BY(strcmp(a->row->point, b->row->point));
    ORDER_BY(strcmp(b->run->utc, a->run->utc));
    ORDER_BY(strcmp(b->run->id, a->run->id));
    return strcmp(a->row->utc, b->row->utc);
}

/* Of each point the rows of the latest run that has it. */
static void take_latest(struct compare_source *s, struct dated *v, size_t n)
{
    const struct dated *latest = NULL;

    if (n)
        qsort(v, n, sizeof *v, by_point);
    for (size_t i = 0; i < n; i++) {
        if (!latest || strcmp(latest->row->point, v[i].row->point) != 0)
            latest = &v[i];
        if (latest->run == v[i].run)
            s->rows[s->n++] = *v[i].row;
    }
}

static enum status add_machine(struct compare_sources *sources, const struct history *h,
                               const size_t *machine_of, size_t run, struct dated *v,
                               struct err *err)
{
    struct compare_source *s;
    size_t n = 0;
    enum status st;

    for (size_t i = 0; i < h->n_rows; i++)
        if (machine_of[h->run_of[i]] == run)
            v[n++] = (struct dated){&h->rows[i], &h->runs[h->run_of[i]]};
    if (!n)
        return ST_OK;
    st = add_source(sources, &s, err);
    if (st)
        return st;
    name_machine(s, h, machine_of, run);
    take_profile(s, &h->runs[run]);
    s->rows = malloc(n * sizeof *s->rows);
    if (!s->rows)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n);
    take_latest(s, v, n);
    return ST_OK;
}

static enum status read_history(struct compare_sources *sources, const char *path,
                                struct err *err)
{
    struct history h = {.n_rows = 0};
    struct dated *v = NULL;
    size_t *machine_of = NULL;
    enum status st = history_read(&h, path, NULL, err);

    if (st == ST_OK && !h.n_rows)
        st = err_set(err, ST_INPUT, "%.300s holds no rows of sweeps", path);
    if (st == ST_OK) {
        v = malloc(h.n_rows * sizeof *v);
        machine_of = calloc(h.n_runs + 1, sizeof *machine_of);
        if (!v || !machine_of)
            st = err_set(err, ST_NO_MEMORY, "no memory for %zu rows", h.n_rows);
    }
    if (st == ST_OK)
        find_machines(&h, machine_of);
    for (size_t r = 0; r < h.n_runs && st == ST_OK; r++)
        if (machine_of[r] == r)
            st = add_machine(sources, &h, machine_of, r, v, err);
    free(machine_of);
    free(v);
    history_free(&h);
    return st;
}

/* ---- any --------------------------------------------------------------------------
 */

enum status compare_read(struct compare_sources *sources, const char *path,
                         struct err *err)
{
    struct stat info;

    return !stat(path, &info) && S_ISREG(info.st_mode)
               ? read_history(sources, path, err)
               : read_dir(sources, path, err);
}

void compare_sources_free(struct compare_sources *sources)
{
    for (size_t i = 0; i < sources->n; i++)
        free(sources->v[i].rows);
    free(sources->v);
    *sources = (struct compare_sources){NULL, 0};
}

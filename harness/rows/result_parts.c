/* SPDX-License-Identifier: MIT
 *
 * result_parts.c - the rows of a result set handed out: by run, by machine
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/rows/model_rows.h"
#include "harness/base/order.h"
#include "harness/rows/result_set.h"

static enum status add_part(struct result_set *set, const struct result_run *run,
                            size_t n_rows, struct result_part **added, struct err *err)
{
    struct result_part *grown = realloc(set->parts, (set->n_parts + 1) * sizeof *grown);

    if (!grown)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu parts of results",
                       set->n_parts + 1);
    set->parts = grown;
    *added = &grown[set->n_parts++];
    **added = (struct result_part){.run = run};
    if (set->n_runs == 1) { /* all of them, as they are */
        (*added)->rows = set->rows;
        set->rows = NULL;
        return ST_OK;
    }
    (*added)->rows = malloc(n_rows * sizeof *(*added)->rows);
    return (*added)->rows
               ? ST_OK
               : err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_rows);
}

/* ---- by run ---------------------------------------------------------------------- */

static void name_run(struct result_part *part)
{
    const struct result_run *run = part->run;

    if (run->dir)
        result_dir_name(part->name, sizeof part->name, run->dir);
    else
        snprintf(part->name, sizeof part->name, "%s%s%s", run->host,
                 *run->host ? " " : "", run->utc);
}

static enum status split_runs(struct result_set *set, struct err *err)
{
    const size_t n_rows = set->n_rows;

    for (size_t begin = 0, end; begin < n_rows; begin = end) {
        const struct result_run *run = &set->runs[set->run_of[begin]];
        struct result_part *part;

        for (end = begin + 1; end < n_rows && set->run_of[end] == set->run_of[begin];)
            end++;
        if (add_part(set, run, end - begin, &part, err))
            return err->code;
        name_run(part);
        part->n = end - begin;
        if (set->rows)
            memcpy(part->rows, set->rows + begin, part->n * sizeof *part->rows);
    }
    return ST_OK;
}

/* ---- by machine ------------------------------------------------------------------ */

static bool same_machine(const struct result_run *a, const struct result_run *b)
{
    char why[256];

    if (a->has_machine != b->has_machine || strcmp(a->host, b->host) != 0)
        return false;
    return !a->has_machine ||
           machine_key_same(&a->machine, &b->machine, why, sizeof why);
}

/* machine_of[run]: the first run of the same machine. */
static void find_machines(const struct result_set *set, size_t *machine_of)
{
    for (size_t r = 0; r < set->n_runs; r++) {
        size_t first = 0;

        while (first < r && (machine_of[first] != first ||
                             !same_machine(&set->runs[first], &set->runs[r])))
            first++;
        machine_of[r] = first;
    }
}

/* Names of a machine, from the shortest to the longest. */
enum { BY_HOST, BY_CPU, BY_PROFILE, N_NAMES };

static const char *name_of(const struct result_run *run, int kind, char *buf,
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

/* Whether the machine has no run but those of one directory. */
static bool is_one_dir(const struct result_set *set, const size_t *machine_of,
                       size_t run)
{
    const char *dir = set->runs[run].dir;

    for (size_t r = 0; r < set->n_runs && dir; r++)
        if (machine_of[r] == run &&
            (!set->runs[r].dir || strcmp(set->runs[r].dir, dir) != 0))
            dir = NULL;
    return dir != NULL;
}

/* The directory's; else the shortest that no other machine of the set has, or the
 * longest. */
static void name_machine(struct result_part *part, const struct result_set *set,
                         const size_t *machine_of, size_t run)
{
    char other[sizeof part->name];

    if (is_one_dir(set, machine_of, run)) {
        result_dir_name(part->name, sizeof part->name, set->runs[run].dir);
        return;
    }
    for (int kind = 0; kind < N_NAMES; kind++) {
        bool alone = true;

        name_of(&set->runs[run], kind, part->name, sizeof part->name);
        for (size_t r = 0; r < set->n_runs && alone; r++)
            alone = machine_of[r] == run ||
                    strcmp(name_of(&set->runs[r], kind, other, sizeof other),
                           part->name) != 0;
        if (alone)
            break;
    }
}

/* A row, and its run, the later the greater. */
struct dated {
    const struct row *row;
    const struct result_run *run;
};

static int compare_runs(const struct result_run *a, const struct result_run *b)
{
    ORDER_BY(strcmp(a->utc, b->utc));
    return strcmp(a->id, b->id);
}

/* The part of the point's identity behind the file's name. */
static const char *settings_of(const struct row *r)
{
    const size_t n = strlen(r->model);

    return strncmp(r->point, r->model, n) ? r->point : r->point + n;
}

/* 0: rows of one point. A model has the same points whatever its files are called. */
static int compare_points(const struct row *a, const struct row *b)
{
    ORDER_BY(strcmp(a->model_id, b->model_id));
    if (!*a->model_id)
        return strcmp(a->point, b->point);
    ORDER_BY(strcmp(a->quant, b->quant));
    return strcmp(settings_of(a), settings_of(b));
}

/* Rows of a point next to each other, those of its latest run first. */
static int by_point(const void *x, const void *y)
{
    const struct dated *a = x, *b = y;

    ORDER_BY(compare_points(a->row, b->row));
    ORDER_BY(compare_runs(b->run, a->run));
    ORDER_BY(strcmp(a->row->utc, b->row->utc));
    return (a->row > b->row) - (a->row < b->row);
}

/* For each point, the rows of the latest run that has it. */
static void take_latest(struct result_part *part, struct dated *v, size_t n)
{
    const struct dated *latest = NULL;

    qsort(v, n, sizeof *v, by_point);
    for (size_t i = 0; i < n; i++) {
        if (!latest || compare_points(latest->row, v[i].row))
            latest = &v[i];
        if (latest->run == v[i].run)
            part->rows[part->n++] = *v[i].row;
        if (compare_runs(v[i].run, part->run) > 0)
            part->run = v[i].run;
    }
}

static enum status add_machine(struct result_set *set, const size_t *machine_of,
                               size_t run, struct dated *v, struct err *err)
{
    struct result_part *part;
    size_t n = 0;

    for (size_t i = 0; i < set->n_rows; i++)
        if (machine_of[set->run_of[i]] == run)
            v[n++] = (struct dated){&set->rows[i], &set->runs[set->run_of[i]]};
    if (!n)
        return ST_OK;
    if (add_part(set, v[0].run, n, &part, err))
        return err->code;
    name_machine(part, set, machine_of, run);
    if (set->rows)
        take_latest(part, v, n);
    else
        part->n = n;
    return ST_OK;
}

/* The run that has begun last, of those with rows; there are rows. */
static size_t last_run(const struct result_set *set)
{
    size_t last = set->run_of[0];

    for (size_t i = 1; i < set->n_rows; i++)
        if (compare_runs(&set->runs[set->run_of[i]], &set->runs[last]) > 0)
            last = set->run_of[i];
    return last;
}

/* Which rows were taken, where there was a choice. */
static void report_last(const struct result_set *set, const char *path,
                        size_t n_machines)
{
    const struct result_part *last = &set->parts[0];
    char text[4096 + 500];

    if (set->n_runs < 2)
        return;
    snprintf(text, sizeof text,
             "%s: %zu runs of %zu machine%s; taken are the rows of %s, of each point "
             "those of its latest run, the last of %s%s",
             format_path(path).text, set->n_runs, n_machines,
             plural((long long)n_machines, "s"), last->name,
             *last->run->utc ? last->run->utc : "an unknown time",
             n_machines > 1 ? "; `bench compare` shows all machines" : "");
    message_print(text);
}

static enum status split_machines(struct result_set *set, const char *path,
                                  bool only_last, struct err *err)
{
    struct dated *v = malloc((set->n_rows + 1) * sizeof *v);
    size_t *machine_of = calloc(set->n_runs + 1, sizeof *machine_of), n = 0;
    enum status st = ST_OK;

    if (!set->n_rows)
        st = err_set(err, ST_INPUT, "%.300s holds no rows of sweeps", path);
    else if (!v || !machine_of)
        st = err_set(err, ST_NO_MEMORY, "no memory for %zu rows", set->n_rows);
    if (st == ST_OK) {
        find_machines(set, machine_of);
        for (size_t r = 0; r < set->n_runs; r++)
            n += machine_of[r] == r;
    }
    if (st == ST_OK && only_last) {
        st = add_machine(set, machine_of, machine_of[last_run(set)], v, err);
        if (st == ST_OK)
            report_last(set, path, n);
    } else if (st == ST_OK && n > RESULT_SET_MAX_MACHINES) {
        st = err_set(err, ST_USAGE, "%.300s: %zu machines; at most %d are read of it",
                     path, n, RESULT_SET_MAX_MACHINES);
    }
    for (size_t r = 0; r < set->n_runs && st == ST_OK && !only_last; r++)
        if (machine_of[r] == r)
            st = add_machine(set, machine_of, r, v, err);
    free(machine_of);
    free(v);
    return st;
}

enum status result_set_join_models(struct result_set *const *sets, size_t n,
                                   struct err *err)
{
    struct row_span *spans = calloc(n + 1, sizeof *spans);
    enum status st = spans ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for rows");

    for (size_t i = 0; i < n && spans; i++)
        spans[i] = (struct row_span){sets[i]->rows, sets[i]->n_rows};
    if (spans)
        st = model_rows_join(spans, n, err);
    free(spans);
    return st;
}

enum status result_parts_join_models(struct result_set *sets, size_t n, struct err *err)
{
    struct row_span *spans;
    size_t n_parts = 0, k = 0;
    enum status st;

    for (size_t i = 0; i < n; i++)
        n_parts += sets[i].n_parts;
    spans = calloc(n_parts + 1, sizeof *spans);
    if (!spans)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu parts", n_parts);
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; p < sets[i].n_parts; p++)
            spans[k++] = (struct row_span){sets[i].parts[p].rows, sets[i].parts[p].n};
    st = model_rows_join(spans, n_parts, err);
    free(spans);
    return st;
}

enum status result_set_open(struct result_set *set, const char *path, enum result_by by,
                            struct err *err)
{
    enum status st;

    memset(set, 0, sizeof *set);
    st = result_set_read(set, path, NULL, err);
    if (st == ST_OK)
        st = result_set_join_models((struct result_set *const[]){set}, 1, err);
    if (st == ST_OK)
        st = by == RESULT_BY_RUN ? split_runs(set, err)
                                 : split_machines(set, path, by == RESULT_LAST, err);
    free(set->rows);
    set->rows = NULL;
    return st;
}

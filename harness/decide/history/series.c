/* SPDX-License-Identifier: MIT
 *
 * series.c - rows of many runs sorted into series
 */
#include "harness/decide/history/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/base/format.h"
#include "harness/base/order.h"
#include "harness/base/parse.h"
#include "harness/stats/stats.h"
#include "harness/rows/model_rows.h"
#include "harness/rows/report_rows.h"

#define GIB (1024.0 * 1024 * 1024)

static const struct series_metric metrics[] = {
    {"tok_per_s", "tok/s", false, 1},
    {"mem_peak_bytes", "GiB", true, 1 / GIB},
    {"mem_resident_bytes", "GiB", true, 1 / GIB},
    {"lat_p50_ms", "ms", true, 1},
    {"lat_p95_ms", "ms", true, 1},
    {"lat_p99_ms", "ms", true, 1},
    {"load_s", "s", true, 1},
    {"ttft_s", "s", true, 1},
    {"mbu", "of the roof", false, 1},
    {"gops", "GOPS", false, 1},
    {"roof_gbps", "GB/s", false, 1},
    {"ttft_visible_p90_s", "s", true, 1},
    {"ttft_later_p90_s", "s", true, 1},
    {"tpot_p90_ms", "ms", true, 1},
};
#define N_METRICS (sizeof metrics / sizeof metrics[0])

/* One by its name. Error: ST_USAGE (unknown; lists those there are). */
static enum status find_metric(const struct series_metric **m, const char *column,
                               struct err *err)
{
    char all[400] = "";

    for (size_t i = 0; i < N_METRICS; i++) {
        if (!strcmp(metrics[i].column, column)) {
            *m = &metrics[i];
            return ST_OK;
        }
        text_append(all, sizeof all, "%s%s", i ? ", " : "", metrics[i].column);
    }
    return err_set(err, ST_USAGE,
                   "'%.40s' is no column that can be judged; these are: %s", column,
                   all);
}

/* ---- settings -------------------------------------------------------------------- */

/* A series is of one model and setting. Profiles that were not used leave the defaults,
 * for whatever reason. */
static bool is_setting(const struct field *f)
{
    return f->is & (FIELD_MODEL | FIELD_SETTING) && strcmp(f->name, "model_id") != 0;
}

static void differ(const char *name, const char *there, const char *here, size_t *n,
                   char *why, size_t cap)
{
    if ((*n)++ == 0 && why)
        snprintf(why, cap, "its %s is '%.60s', here '%.60s'", name, there, here);
}

/* Names of two models, with their labels where the names are one. */
static void differ_in_model(const struct row *there, const struct row *here, size_t *n,
                            char *why, size_t cap)
{
    const bool by_label = !strcmp(there->model, here->model);

    differ("model", by_label ? there->model_label : there->model,
           by_label ? here->model_label : here->model, n, why, cap);
}

static bool is_tuned(const struct row *r)
{
    return r->tuning == TUNED_USED;
}

bool series_same_setting(const struct row *there, const struct row *here,
                         size_t *n_differ, char *why, size_t cap)
{
    size_t n = 0;
    char a[ROW_CELL_MAX], b[ROW_CELL_MAX];

    if (model_rows_compare(there, here))
        differ_in_model(there, here, &n, why, cap);
    for (const struct field *f = row_fields(NULL); f->name; f++)
        if (is_setting(f) && row_compare_cell(there, here, f))
            differ(f->name, row_cell(there, f, a, sizeof a),
                   row_cell(here, f, b, sizeof b), &n, why, cap);
    if (is_tuned(there) != is_tuned(here))
        differ("tuning", is_tuned(there) ? "tuned" : "default",
               is_tuned(here) ? "tuned" : "default", &n, why, cap);
    if (n_differ)
        *n_differ = n;
    return n == 0;
}

/* ---- names ----------------------------------------------------------------------- */

static void name_series(struct series *s)
{
    const struct row *r = &s->like;

    snprintf(s->name, sizeof s->name, "%.48s%s%.20s, ", r->model,
             *r->model && *r->quant ? " " : "", r->quant);
    s->model_len = strlen(s->name);
    if (strcmp(s->metric->column, "tok_per_s") != 0)
        text_append(s->name, sizeof s->name, "%s, ", s->metric->column);
    text_append(s->name, sizeof s->name, "%s", row_kind_text(r));
    if (r->n_prompt > 0)
        text_append(s->name, sizeof s->name, " of %lld", (long long)r->n_prompt);
    if (r->n_threads > 0)
        text_append(s->name, sizeof s->name, ", %lld thread%s", (long long)r->n_threads,
                    r->n_threads == 1 ? "" : "s");
    if (r->kind == POINT_DECODE && r->ctx >= 0)
        text_append(s->name, sizeof s->name, ", depth %lld", (long long)r->ctx);
    row_append_unusual(r, FIELD_NAMED, s->name, sizeof s->name);
    if (r->mem_limit_bytes > 0)
        text_append(s->name, sizeof s->name, ", %.4g GiB",
                    (double)r->mem_limit_bytes / GIB);
    if (is_tuned(r))
        text_append(s->name, sizeof s->name, ", tuned");
    for (char *p = s->name; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
}

/* Series with equal names get a suffix with the columns that differ. */
static void distinguish(struct series_set *set)
{
    for (size_t i = 1; i < set->n; i++)
        for (size_t k = 0; k < i; k++) {
            char why[200];
            const struct series *a = &set->v[k];
            struct series *b = &set->v[i];

            if (strcmp(a->name, b->name) != 0)
                continue;
            if (!series_same_setting(&a->like, &b->like, NULL, why, sizeof why) &&
                strstr(why, "here '"))
                text_append(b->name, sizeof b->name, ", %.*s %.30s",
                            (int)strcspn(why + 4, " "), why + 4,
                            strstr(why, "here ") + 5);
            else
                text_append(b->name, sizeof b->name, ", machine %08x",
                            (unsigned)machine_key_hash(&b->machine));
        }
}

/* ---- grouping -------------------------------------------------------------------- */

struct item {
    size_t machine; /* class of machines */
    size_t run, at; /* index of the row */
    const struct row *row;
};

/* By model first, so that the series of a model stand together. */
static int compare_rows(const struct row *a, const struct row *b)
{
    ORDER_BY(row_compare(a, b, FIELD_MODEL));
    ORDER_BY(row_compare(a, b, FIELD_SETTING));
    return is_tuned(a) - is_tuned(b);
}

static int compare_items(const void *x, const void *y)
{
    const struct item *a = x, *b = y;

    ORDER_BY((a->machine > b->machine) - (a->machine < b->machine));
    ORDER_BY(compare_rows(a->row, b->row));
    ORDER_BY((a->run > b->run) - (a->run < b->run));
    return (a->at > b->at) - (a->at < b->at);
}

/* The class of each run's machine: the first run that is on the same. */
static enum status classify(size_t *class, const struct result_set *h, struct err *err)
{
    size_t *first = malloc((h->n_runs + 1) * sizeof *first), n = 0;

    if (!first)
        return err_set(err, ST_NO_MEMORY, "no memory to sort %zu runs", h->n_runs);
    for (size_t r = 0; r < h->n_runs; r++) {
        const struct result_run *run = &h->runs[r];
        size_t k = 0;

        for (; k < n; k++) {
            const struct result_run *other = &h->runs[first[k]];

            if (run->has_machine == other->has_machine &&
                (!run->has_machine ||
                 machine_key_same(&other->machine, &run->machine, NULL, 0)))
                break;
        }
        if (k == n)
            first[n++] = r;
        class[r] = k;
    }
    free(first);
    return ST_OK;
}

/* ---- values ---------------------------------------------------------------------- */

static double row_value(const struct row *r, const struct series_metric *m)
{
    const struct field *f = row_field(m->column);
    const void *cell = (const char *)r + f->offset;
    double v;

    if (f->kind == FIELD_KIND_INT)
        v = *(const int64_t *)cell == FIELD_NO_INT ? NAN
                                                   : (double)*(const int64_t *)cell;
    else
        v = *(const double *)cell;
    return v > 0 && isfinite(v) ? v * m->scale : NAN;
}

/* The value of items[n], all of one run and setting; NaN: none. */
static double run_value(const struct item *items, size_t n,
                        const struct series_metric *m, bool take_disturbed,
                        double *scratch, bool *disturbed)
{
    size_t n_good = 0;

    *disturbed = false;
    for (size_t i = 0; i < n; i++) {
        const enum row_trust trust = row_trust(items[i].row);
        const double v = row_value(items[i].row, m);

        if (isnan(v))
            continue;
        *disturbed |= trust == ROW_DISTURBED;
        if (trust == ROW_GOOD || (trust == ROW_DISTURBED && take_disturbed))
            scratch[n_good++] = v;
    }
    return n_good ? stats_median(scratch, n_good, scratch) : NAN;
}

static int compare_values(const void *x, const void *y)
{
    const struct series_value *a = x, *b = y;

    ORDER_BY(strcmp(a->utc, b->utc));
    return (a->run > b->run) - (a->run < b->run);
}

double series_seconds(const char *utc)
{
    struct tm tm = {0};

    return strptime(utc, "%Y-%m-%dT%H:%M:%SZ", &tm) ? (double)timegm(&tm) : NAN;
}

bool series_one_session(const char *first_utc, const char *utc)
{
    return !(series_seconds(utc) - series_seconds(first_utc) >= SERIES_SESSION_S);
}

static bool one_session(const struct result_set *h, const struct series_value *first,
                        const struct series_value *v)
{
    return !strcmp(h->runs[first->run].commit, h->runs[v->run].commit) &&
           series_one_session(first->utc, v->utc);
}

/* The values of s are in order; scratch is [s->n]. */
static void join_sessions(struct series *s, const struct result_set *h, double *scratch)
{
    size_t n = 0;

    for (size_t i = 0, end; i < s->n; i = end) {
        size_t k = 0;

        for (end = i; end < s->n && (end == i || one_session(h, &s->v[i], &s->v[end]));
             end++)
            scratch[k++] = s->v[end].v;
        s->v[n] = s->v[i];
        s->v[n++].v = stats_median(scratch, k, scratch);
    }
    s->n_joined = s->n - n;
    s->n = n;
}

/* One measurement counts once, however many copies of its run were named: two launches
 * do not begin at the same second and end with the same figure. The values of s are in
 * order. */
static void drop_copies(struct series *s, const struct result_set *h)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        bool is_copy = false;

        for (size_t k = n; k > 0 && !strcmp(s->v[k - 1].utc, s->v[i].utc); k--)
            is_copy |= s->v[k - 1].v == s->v[i].v &&
                       !strcmp(h->runs[s->v[k - 1].run].id, h->runs[s->v[i].run].id);
        if (!is_copy)
            s->v[n++] = s->v[i];
    }
    s->n_copies = s->n - n;
    s->n = n;
}

/* items[n] are of one machine and setting. */
static enum status fill(struct series *s, const struct result_set *h,
                        const struct item *items, size_t n,
                        const struct series_choice *choice, struct err *err)
{
    const struct result_run *run = &h->runs[items[0].run];
    double *scratch = malloc(n * sizeof *scratch);

    s->v = calloc(n, sizeof *s->v);
    if (!scratch || !s->v) {
        free(scratch);
        return err_set(err, ST_NO_MEMORY, "no memory for a series of %zu rows", n);
    }
    s->like = *items[n - 1].row;
    s->has_machine = run->has_machine;
    s->machine = run->machine;
    for (size_t i = 0, end; i < n; i = end) {
        bool disturbed;

        for (end = i + 1; end < n && items[end].run == items[i].run; end++)
            if (choice->each_row)
                break;
        const double v = run_value(&items[i], end - i, s->metric, choice->disturbed,
                                   scratch, &disturbed);
        s->n_disturbed += isnan(v) && disturbed;
        if (isnan(v))
            continue;
        s->v[s->n].v = v;
        s->v[s->n].run = items[i].run;
        memcpy(s->v[s->n].utc, items[i].row->utc, sizeof s->v->utc);
        s->n++;
    }
    qsort(s->v, s->n, sizeof *s->v, compare_values);
    if (choice->each_row)
        drop_copies(s, h);
    else
        join_sessions(s, h, scratch);
    name_series(s);
    free(scratch);
    return ST_OK;
}

/* One more series; it is taken back where the name is not wanted or nothing is in it.
 */
static enum status add(struct series_set *set, const struct result_set *h,
                       const struct item *items, size_t n,
                       const struct series_metric *m,
                       const struct series_choice *choice, struct err *err)
{
    struct series *grown = NULL;
    enum status st;

    if (set->n >= SERIES_MAX)
        return err_set(err, ST_INPUT,
                       "there are more than %d series; choose some with --only",
                       SERIES_MAX);
    grown = realloc(set->v, (set->n + 1) * sizeof *grown);
    if (!grown)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu series", set->n + 1);
    set->v = grown;
    struct series *s = &set->v[set->n];
    memset(s, 0, sizeof *s);
    s->metric = m;
    st = fill(s, h, items, n, choice, err);
    if (st || (s->n == 0 && s->n_disturbed == 0) ||
        (choice->only && !strstr(s->name, choice->only)))
        free(s->v);
    else
        set->n++;
    return st;
}

static enum status add_metric(struct series_set *set, const struct result_set *h,
                              const struct item *items, const char *column,
                              const struct series_choice *choice, struct err *err)
{
    const struct series_metric *m = NULL;
    enum status st = find_metric(&m, column, err);

    for (size_t i = 0, end; i < h->n_rows && st == ST_OK; i = end) {
        for (end = i + 1; end < h->n_rows && items[end].machine == items[i].machine &&
                          !compare_rows(items[end].row, items[i].row);
             end++)
            ;
        st = add(set, h, &items[i], end - i, m, choice, err);
    }
    return st;
}

static enum status add_metrics(struct series_set *set, const struct result_set *h,
                               const struct item *items,
                               const struct series_choice *choice, struct err *err)
{
    struct parse_list columns = {.what = "--metric", .text = choice->metrics};
    enum status st = ST_OK;

    while (parse_item(&columns, &st, err))
        st = add_metric(set, h, items, columns.item, choice, err);
    return st;
}

enum status series_make(struct series_set *set, const struct result_set *h,
                        const struct series_choice *choice, struct err *err)
{
    struct series_set found = {0};
    struct item *items = malloc((h->n_rows + 1) * sizeof *items);
    size_t *class = malloc((h->n_runs + 1) * sizeof *class);
    enum status st = items && class ? classify(class, h, err)
                                    : err_set(err, ST_NO_MEMORY,
                                              "no memory to sort %zu rows", h->n_rows);

    for (size_t i = 0; i < h->n_rows && st == ST_OK; i++)
        items[i] = (struct item){class[h->run_of[i]], h -> run_of[i], i, &h -> rows[i]};
    if (st == ST_OK) {
        qsort(items, h->n_rows, sizeof *items, compare_items);
        st = add_metrics(&found, h, items, choice, err);
    }
    free(items);
    free(class);
    if (st) {
        series_free(&found);
        return st;
    }
    distinguish(&found);
    *set = found;
    return ST_OK;
}

void series_free(struct series_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        free(set->v[i].v);
    free(set->v);
    memset(set, 0, sizeof *set);
}

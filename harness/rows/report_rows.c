/* SPDX-License-Identifier: MIT
 *
 * report_rows.c - one row per point, in the order a reader expects
 */
#include "harness/rows/report_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/base/order.h"
#include "harness/rows/settings/setting.h"

/* What differs between the settings of a sweep; VARIES_FILE: files of one model and one
 * quantisation, which differ only in their names. The bit of the first column that has
 * a label is VARIES_COLUMN. */
enum { VARIES_MODEL = 1, VARIES_LIMIT = 2, VARIES_FILE = 4, VARIES_COLUMN = 8 };

enum row_trust row_trust(const struct row *r)
{
    if (!(r->tok_per_s > 0))
        return ROW_FAILED;
    if (r->status == ROW_STATUS_PARTIAL)
        return ROW_PARTIAL;
    if (r->status != ROW_STATUS_OK)
        return ROW_FAILED;
    return strcmp(r->validity, "valid") ? ROW_DISTURBED : ROW_GOOD;
}

double row_ttft_warm_s(const struct row *r)
{
    return isfinite(r->ttft_warm_s) ? r->ttft_warm_s : r->ttft_s - r->load_s;
}

int64_t row_needed_bytes(const struct row *r)
{
    return r->mem_resident_bytes > 0 ? r->mem_resident_bytes
           : r->mem_peak_bytes > 0   ? r->mem_peak_bytes
                                     : 0;
}

int64_t row_context(const struct row *r)
{
    const bool is_beyond = r->model_ctx > 0 && r->ctx > r->model_ctx;

    return is_beyond && !(r->kv_window > 0) ? r->model_ctx : r->ctx;
}

const char *row_doubt(const struct row *r)
{
    const enum row_trust trust = row_trust(r);

    return trust == ROW_GOOD      ? ""
           : trust == ROW_PARTIAL ? "partial: few samples"
           : trust == ROW_FAILED  ? row_failure(r)
           : *r->validity         ? r->validity
                                  : "doubtful";
}

void row_point_text(char *buf, size_t cap, const struct row *r)
{
    if (r->kind == POINT_PREFILL)
        snprintf(buf, cap, "prefill %lld", (long long)r->n_prompt);
    else if (r->kind == POINT_SPECULATE)
        snprintf(buf, cap, "speculate %s", r->spec_text);
    else if (r->kind == ROW_LOAD && r->load_mode == LOAD_MODE_OPEN)
        snprintf(buf, cap, "load, %.3g/s", row_rate(r));
    else if (r->kind == ROW_LOAD)
        snprintf(buf, cap, "load, %lld user%s", (long long)r->n_users,
                 plural(r->n_users, "s"));
    else
        snprintf(buf, cap, "%s at %lld", row_kind_text(r),
                 (long long)(r->ctx > 0 ? r->ctx : 0));
}

const char *row_failure(const struct row *r)
{
    return r->status == FIELD_NO_ENUM ? "no figure" : row_status_text(r);
}

struct report_name report_model_name(const struct row *r)
{
    const bool has_label = *r->model_label;
    const char *name = has_label ? r->model_label : r->model;
    const size_t len = strlen(name), n = strlen(r->quant);
    const char *end = name + len - n;
    struct report_name shown;
    size_t keep = len;

    if (!has_label && n && len > n + 1 && !strcasecmp(end, r->quant) &&
        strchr("-._:", end[-1]))
        keep = len - n - 1;
    snprintf(shown.text, sizeof shown.text, "%.*s", (int)keep, name);
    return shown;
}

int report_compare_models(const struct row *a, const struct row *b)
{
    return strcmp(report_model_name(a).text, report_model_name(b).text);
}

static int compare_settings(const struct row *a, const struct row *b)
{

    ORDER_BY(report_compare_models(a, b));
    ORDER_BY(order_ints(a->file_bytes, b->file_bytes));
    ORDER_BY(strcmp(a->quant, b->quant));
    ORDER_BY(strcmp(a->model, b->model));
    for (const struct field *f = row_fields(NULL); f->name; f++)
        if (f->label)
            ORDER_BY(row_compare_cell(a, b, f));
    return order_ints(a->mem_limit_bytes, b->mem_limit_bytes);
}

static int compare_points(const struct row *a, const struct row *b)
{
    ORDER_BY(compare_settings(a, b));
    ORDER_BY(order_ints(a->kind, b->kind));
    ORDER_BY(order_ints(a->n_threads, b->n_threads));
    ORDER_BY(order_ints(a->ctx, b->ctx));
    ORDER_BY(order_ints(a->n_prompt, b->n_prompt));
    ORDER_BY(order_ints(a->ctx_fill, b->ctx_fill));
    return strcmp(a->point, b->point);
}

bool row_above_roof(const struct row *r)
{
    return strstr(r->validity, "above its roof") != NULL;
}

/* Disturbances slow a row down: the faster of two was disturbed less. One above
 * its roof is wrong in another way, and comes last. */
static int compare_disturbance(const struct row *a, const struct row *b)
{
    ORDER_BY(order_ints(row_above_roof(a), row_above_roof(b)));
    return (a->tok_per_s < b->tok_per_s) - (a->tok_per_s > b->tok_per_s);
}

/* Among rows of one point the most trusted comes first; among disturbed ones the least
 * disturbed; then the latest. Rows are in one array, in the order they were
 * measured. */
static int compare(const void *x, const void *y)
{
    const struct row *a = *(const struct row *const *)x;
    const struct row *b = *(const struct row *const *)y;

    ORDER_BY(compare_points(a, b));
    ORDER_BY(order_ints(row_trust(b), row_trust(a)));
    if (row_trust(a) == ROW_DISTURBED)
        ORDER_BY(compare_disturbance(a, b));
    return (a < b) - (a > b);
}

bool report_same_setting(const struct row *a, const struct row *b)
{
    return compare_settings(a, b) == 0;
}

bool report_same_line(const struct row *a, const struct row *b)
{
    return report_same_setting(a, b) && a->kind == b->kind &&
           a->n_threads == b->n_threads;
}

/* An empty cell is that of a point which failed before its value was known, or a number
 * or name that is not printed at its default, or stands for a value. */
static bool differs(const struct report_rows *p, const struct field *f)
{
    const bool empty_counts =
        f->empty || (f->kind != FIELD_KIND_ENUM && f->is_set &&
                     setting_row(f->setting)->shown == SETTING_SHOWN_IF_SET);
    const struct row *known = NULL;
    char text[ROW_CELL_MAX];

    for (size_t i = 0; i < p->n; i++) {
        if (!*row_cell(p->v[i], f, text, sizeof text) && !empty_counts)
            continue;
        if (known && row_compare_cell(known, p->v[i], f))
            return true;
        known = p->v[i];
    }
    return false;
}

static unsigned differences(const struct report_rows *p)
{
    unsigned varies = 0, bit = VARIES_COLUMN;

    for (size_t i = 1; i < p->n; i++) {
        varies |= report_compare_models(p->v[0], p->v[i]) ? VARIES_MODEL : 0u;
        varies |=
            p->v[0]->mem_limit_bytes != p->v[i]->mem_limit_bytes ? VARIES_LIMIT : 0u;
        varies |= !report_compare_models(p->v[i - 1], p->v[i]) &&
                          !strcmp(p->v[i - 1]->quant, p->v[i]->quant) &&
                          strcmp(p->v[i - 1]->model, p->v[i]->model) != 0
                      ? VARIES_FILE
                      : 0u;
    }
    for (const struct field *f = row_fields(NULL); f->name; f++) {
        if (!f->label)
            continue;
        varies |= differs(p, f) ? bit : 0u;
        bit <<= 1;
    }
    return varies;
}

/* The rows of each point: sorted[n] has them next to each other. */
static size_t group(struct launch_group *groups, const struct row **sorted, size_t n)
{
    size_t n_groups = 0;

    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && compare_points(sorted[i], sorted[end]) == 0;)
            end++;
        groups[n_groups++] = (struct launch_group){&sorted[i], end - i};
    }
    return n_groups;
}

/* sorted[n] into a row for each point. */
static enum status pick(struct report_rows *p, const struct row **sorted, size_t n,
                        struct launch_group *groups, struct err *err)
{
    p->n = group(groups, sorted, n);
    p->launches = calloc(p->n + 1, sizeof *p->launches);
    p->v = malloc((p->n + 1) * sizeof *p->v);
    if (!p->launches || !p->v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu points", p->n);
    if (launches_combine(p->launches, groups, p->n, err))
        return err->code;
    for (size_t i = 0; i < p->n; i++)
        p->v[i] = p->launches[i].row;
    p->varies = differences(p);
    return ST_OK;
}

enum status report_rows_pick(struct report_rows *p, const struct row *rows,
                             size_t n_rows, struct err *err)
{
    const struct row **sorted = malloc((n_rows + 1) * sizeof *sorted);
    struct launch_group *groups = malloc((n_rows + 1) * sizeof *groups);
    enum status st = sorted && groups ? ST_OK
                                      : err_set(err, ST_NO_MEMORY,
                                                "no memory to sort %zu rows", n_rows);
    struct report_rows picked = {.v = NULL};

    if (st == ST_OK) {
        for (size_t i = 0; i < n_rows; i++)
            sorted[i] = &rows[i];
        qsort(sorted, n_rows, sizeof *sorted, compare);
        st = pick(&picked, sorted, n_rows, groups, err);
    }
    free(sorted);
    free(groups);
    if (st)
        report_rows_free(&picked);
    else
        *p = picked;
    return st;
}

void report_rows_free(struct report_rows *p)
{
    if (p->launches)
        launches_free(p->launches, p->n);
    free(p->launches);
    free(p->v);
    memset(p, 0, sizeof *p);
}

void report_rows_ignore(struct report_rows *p, const char *column)
{
    unsigned bit = VARIES_COLUMN;

    if (!strcmp(column, "mem_limit_bytes"))
        p->varies &= ~(unsigned)VARIES_LIMIT;
    for (const struct field *f = row_fields(NULL); f->name; f++) {
        if (!f->label)
            continue;
        if (!strcmp(f->name, column))
            p->varies &= ~bit;
        bit <<= 1;
    }
}

size_t report_setting_end(const struct report_rows *p, size_t begin)
{
    size_t end = begin;

    while (end < p->n && report_same_setting(p->v[begin], p->v[end]))
        end++;
    return end;
}

int64_t report_min_depth(const struct report_rows *p, size_t begin, size_t end)
{
    int64_t least = -1;

    for (size_t i = begin; i < end; i++)
        if (p->v[i]->kind == POINT_DECODE && p->v[i]->ctx >= 0 &&
            (least < 0 || p->v[i]->ctx < least))
            least = p->v[i]->ctx;
    return least;
}

const struct row *report_fastest_at(const struct report_rows *p, size_t begin,
                                    size_t end, int64_t depth)
{
    const struct row *best = NULL;

    for (size_t i = begin; i < end; i++) {
        const struct row *r = p->v[i];

        if (r->kind != POINT_DECODE || r->ctx != depth)
            continue;
        if (!best || row_trust(best) == ROW_FAILED || r->tok_per_s > best->tok_per_s)
            best = r;
    }
    return best;
}

const char *report_setting_name(const struct report_rows *p, const struct row *r,
                                char *buf, size_t cap)
{
    char label[REPORT_NAME_MAX];
    const bool with_file = p->varies & VARIES_FILE;
    const bool with_model = r->quant[0] && (with_file || p->varies & VARIES_MODEL);

    snprintf(buf, cap, "%s%s%s",
             !with_model ? ""
             : with_file ? r->model
                         : report_model_name(r).text,
             with_model ? " " : "", report_setting_label(p, r, label, sizeof label));
    return buf;
}

const char *report_models_text(const struct report_rows *p, char *buf, size_t cap,
                               size_t n_characters)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) /* rows are ordered by it */
        n += i == 0 || report_compare_models(p->v[i], p->v[i - 1]) != 0;
    if (n == 1)
        text_shorten(buf, cap, report_model_name(p->v[0]).text, n_characters);
    else
        snprintf(buf, cap, "%zu models", n);
    return buf;
}

/* Days are compared as texts. */
const char *report_origin(const struct row *rows, size_t n, char *buf, size_t cap)
{
    const char *first = "", *last = "", *build = "";
    bool same = true;

    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];

        if (*r->utc && (!*first || strcmp(r->utc, first) < 0))
            first = r->utc;
        if (strcmp(r->utc, last) > 0)
            last = r->utc;
        same &= !*r->build || !*build || !strcmp(r->build, build);
        build = *r->build ? r->build : build;
    }
    buf[0] = '\0';
    if (!*first)
        return buf;
    text_append(buf, cap, "measured %.10s", first);
    if (strncmp(first, last, 10) != 0)
        text_append(buf, cap, " to %.10s", last);
    if (*build)
        text_append(buf, cap, " by %s%s",
                    same ? "slmbench " : "several versions of slmbench",
                    same ? build : "");
    return buf;
}

const char *report_setting_label(const struct report_rows *p, const struct row *r,
                                 char *buf, size_t cap)
{
    const bool in_gib = r->mem_limit_bytes >= 1 << 30;
    char limit[32] = "no limit", text[ROW_CELL_MAX];
    unsigned bit = VARIES_COLUMN;

    buf[0] = '\0';
    text_append(buf, cap, "%s",
                r->quant[0]   ? r->quant
                : r->model[0] ? r->model
                              : "unnamed");
    for (const struct field *f = row_fields(NULL); f->name; f++) {
        if (!f->label)
            continue;
        if (p->varies & bit && !*row_cell(r, f, text, sizeof text) && f->empty)
            snprintf(text, sizeof text, "%s", f->empty);
        if (p->varies & bit && *text)
            text_append(buf, cap, "%s%s %s", *f->label ? " " : "", f->label, text);
        bit <<= 1;
    }
    if (r->mem_limit_bytes > 0)
        snprintf(limit, sizeof limit, "%.4g %s",
                 (double)r->mem_limit_bytes / (in_gib ? 1 << 30 : 1 << 20),
                 in_gib ? "GiB" : "MiB");
    if (p->varies & VARIES_LIMIT)
        text_append(buf, cap, " %s", limit);
    return buf;
}

int report_decimals(double v)
{
    return v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3;
}

struct shown_figure report_figure(double v)
{
    struct shown_figure shown;

    snprintf(shown.text, sizeof shown.text, "%.*f", report_decimals(v), v);
    return shown;
}

/* SPDX-License-Identifier: MIT
 *
 * report.c - which rows of a sweep go into which chart
 */
#include "harness/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/report/report_chart.h"
#include "harness/report/report_pareto.h"
#include "harness/report/report_speculation.h"
#include "harness/result/report_rows.h"

#define GIB ((double)((uint64_t)1 << 30))

/* Least depth of the decode points of the setting [begin, end); -1: none. */
static int64_t least_depth(const struct report_rows *p, size_t begin, size_t end)
{
    int64_t least = -1;

    for (size_t i = begin; i < end; i++)
        if (p->v[i]->kind == POINT_DECODE && p->v[i]->ctx >= 0 &&
            (least < 0 || p->v[i]->ctx < least))
            least = p->v[i]->ctx;
    return least;
}

/* The thread count that decodes fastest at that depth; -1: none. */
static int64_t best_threads(const struct report_rows *p, size_t begin, size_t end,
                            int64_t depth)
{
    const struct row *best = report_fastest_at(p, begin, end, depth);

    return best ? best->n_threads : -1;
}

static enum status no_memory(struct err *err)
{
    return err_set(err, ST_NO_MEMORY, "no memory for the marks of a chart");
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- decode speed against threads ---------------------------------------------- */

static enum status fill_threads(struct chart *c, const struct report_rows *p,
                                struct err *err)
{
    int64_t depth_of_all = -1;

    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = report_setting_end(p, begin);
        const int64_t depth = least_depth(p, begin, end);
        const int series = depth < 0 ? -1 : chart_add_series(c, p, p->v[begin]);

        if (series < 0)
            continue;
        depth_of_all = series == 0 || depth == depth_of_all ? depth : -2;
        for (size_t i = begin; i < end; i++) {
            const struct row *r = p->v[i];

            if (r->kind != POINT_DECODE || r->ctx != depth)
                continue;
            struct mark *m = chart_mark(c);
            if (!m)
                return no_memory(err);
            m->series = series;
            m->x = (double)r->n_threads;
            mark_set_speed(m, r);
            m->other = NAN; /* roofs are another chart's */
        }
    }
    if (depth_of_all >= 0)
        snprintf(c->title, sizeof c->title,
                 "Decode speed by threads, context depth %lld",
                 (long long)depth_of_all);
    else
        snprintf(c->title, sizeof c->title,
                 "Decode speed by threads, at each setting's least context depth");
    return ST_OK;
}

/* ---- decode speed against depth ------------------------------------------------- */

static enum status fill_context(struct chart *c, const struct report_rows *p,
                                struct err *err)
{
    int64_t threads_of_all = -1, threads_of[CHART_MAX_SERIES];

    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = report_setting_end(p, begin);
        const int64_t n = best_threads(p, begin, end, least_depth(p, begin, end));
        const int series = n < 0 ? -1 : chart_add_series(c, p, p->v[begin]);

        if (series < 0)
            continue;
        threads_of[series] = n;
        threads_of_all = series == 0 || n == threads_of_all ? n : -2;
        for (size_t i = begin; i < end; i++) {
            const struct row *r = p->v[i];

            if (r->kind != POINT_DECODE || r->n_threads != n)
                continue;
            struct mark *m = chart_mark(c);
            if (!m)
                return no_memory(err);
            m->series = series;
            m->x = (double)r->ctx;
            mark_set_speed(m, r);
        }
    }
    if (threads_of_all >= 0) {
        snprintf(c->title, sizeof c->title,
                 "Decode speed by context depth, %lld thread%s",
                 (long long)threads_of_all, plural(threads_of_all));
        return ST_OK;
    }
    snprintf(c->title, sizeof c->title,
             "Decode speed by context depth, at each setting's best thread count");
    for (int i = 0; i < c->n_series; i++) {
        const size_t used = strlen(c->series[i]);

        snprintf(c->series[i] + used, sizeof c->series[i] - used, ", %lld thread%s",
                 (long long)threads_of[i], plural(threads_of[i]));
    }
    return ST_OK;
}

/* ---- prefill speed --------------------------------------------------------------- */

static int compare_counts(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The thread counts of all prefill points, ascending, as names of bars. */
static int thread_counts(struct chart *c, const struct report_rows *p,
                         int64_t counts[CHART_MAX_SERIES])
{
    int n = 0;

    for (size_t i = 0; i < p->n; i++) {
        bool seen = p->v[i]->kind != POINT_PREFILL;

        for (int k = 0; k < n && !seen; k++)
            seen = counts[k] == p->v[i]->n_threads;
        if (!seen && n < CHART_MAX_SERIES)
            counts[n++] = p->v[i]->n_threads;
    }
    qsort(counts, (size_t)n, sizeof counts[0], compare_counts);
    for (int k = 0; k < n; k++)
        snprintf(c->group[k], sizeof c->group[k], "%lld thread%s", (long long)counts[k],
                 plural(counts[k]));
    return n;
}

/* A setting is shown at its longest prompt length. */
static int64_t longest_prompt(const struct report_rows *p, size_t begin, size_t end)
{
    int64_t longest = -1;

    for (size_t i = begin; i < end; i++)
        if (p->v[i]->kind == POINT_PREFILL && p->v[i]->n_prompt > longest)
            longest = p->v[i]->n_prompt;
    return longest;
}

static enum status fill_prefill(struct chart *c, const struct report_rows *p,
                                struct err *err)
{
    int64_t counts[CHART_MAX_SERIES], prompt_of_all = -1;

    c->n_groups = thread_counts(c, p, counts);
    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = report_setting_end(p, begin);
        const int64_t prompt = longest_prompt(p, begin, end);
        const int series = prompt < 0 ? -1 : chart_add_series(c, p, p->v[begin]);

        if (series < 0)
            continue;
        prompt_of_all = series == 0 || prompt == prompt_of_all ? prompt : -2;
        for (size_t i = begin; i < end; i++) {
            const struct row *r = p->v[i];

            for (int k = 0; k < c->n_groups; k++) {
                if (r->kind != POINT_PREFILL || r->n_prompt != prompt ||
                    r->n_threads != counts[k])
                    continue;
                struct mark *m = chart_mark(c);
                if (!m)
                    return no_memory(err);
                m->series = series;
                m->group = k;
                mark_set_speed(m, r);
                m->other = NAN;
            }
        }
    }
    chart_place_bars(c);
    if (prompt_of_all >= 0)
        snprintf(c->title, sizeof c->title, "Prefill speed, prompt of %lld tokens",
                 (long long)prompt_of_all);
    else
        snprintf(c->title, sizeof c->title,
                 "Prefill speed, at each setting's longest prompt");
    return ST_OK;
}

/* ---- memory ------------------------------------------------------------------------
 */

static double larger(double a, int64_t b)
{
    return b > 0 ? fmax(a, (double)b / GIB) : a; /* fmax() passes over a NaN */
}

/* Worst of the setting's points: resident and charged memory, plan, limit and failure.
 */
static void mark_memory(struct mark *m, const struct report_rows *p, size_t begin,
                        size_t end)
{
    double resident = NAN, peak = NAN, planned = NAN, limit = NAN;
    bool paging = false, any_good = false;
    const char *failure = NULL;

    for (size_t i = begin; i < end; i++) {
        const struct row *r = p->v[i];

        resident = larger(resident, r->mem_resident_bytes);
        peak = larger(peak, r->mem_peak_bytes);
        planned = larger(planned, r->mem_planned_bytes);
        limit = larger(limit, r->mem_enforced_bytes > 0 ? r->mem_enforced_bytes
                                                        : r->mem_limit_bytes);
        paging |= r->limiter == LIMITER_PAGING;
        if (row_trust(r) == ROW_FAILED)
            failure = row_status_text(r);
        else
            any_good = true;
    }
    m->y = peak;
    m->other = planned;
    m->extra = resident;
    m->limit = limit;
    m->state = !isfinite(peak) && !isfinite(resident) ? MARK_CROSS
               : paging || failure                    ? MARK_HOLLOW
                                                      : MARK_SOLID;
    snprintf(m->note, sizeof m->note, "%s%s%s%s", paging ? "pages from disk" : "",
             paging && failure ? "; " : "", failure ? failure : "",
             failure && any_good ? " at some points" : "");
}

static enum status fill_memory(struct chart *c, const struct report_rows *p,
                               struct err *err)
{
    bool any_limit = false, any_resident = false;

    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = report_setting_end(p, begin);
        const int series = chart_add_series(c, p, p->v[begin]);

        if (series < 0)
            continue;
        struct mark *m = chart_mark(c);
        if (!m)
            return no_memory(err);
        m->series = series;
        m->x = series;
        mark_memory(m, p, begin, end);
        any_limit |= isfinite(m->limit) != 0;
        any_resident |= isfinite(m->extra) != 0;
    }
    c->extra_name = "resident_gib";
    snprintf(c->title, sizeof c->title, "Memory %s%s",
             any_resident ? "that must stay resident" : "charged",
             any_limit ? ", and its limit" : "");
    return ST_OK;
}

/* ---- all of them
 * ---------------------------------------------------------------------- */

static void append_part(char *buf, size_t cap, const char *text)
{
    if (text[0])
        text_append(buf, cap, "%s%s", buf[0] ? "  \xc2\xb7  " : "", text);
}

/* "yi-1.5-9b · AMD EPYC, 2 CPUs · memory limit 6 GiB · host", as far as it holds for
 * all rows. */
static void describe(char *buf, size_t cap, const struct report_rows *p,
                     const struct report_machine *machine)
{
    bool same_model = true, same_limit = true;
    char text[160], model[REPORT_NAME_MAX], other[REPORT_NAME_MAX];

    report_model_name(p->v[0], model, sizeof model);
    for (size_t i = 0; i < p->n; i++) {
        same_model &= !strcmp(report_model_name(p->v[i], other, sizeof other), model);
        same_limit &= p->v[i]->mem_limit_bytes == p->v[0]->mem_limit_bytes;
    }
    buf[0] = '\0';
    append_part(buf, cap, same_model ? model : "");
    snprintf(text, sizeof text, "%s", machine->cpu_model);
    if (machine->n_cpus > 0)
        text_append(text, sizeof text, "%s%d CPU%s", text[0] ? ", " : "",
                    machine->n_cpus, plural(machine->n_cpus));
    append_part(buf, cap, text);
    if (same_limit && p->v[0]->mem_limit_bytes > 0) {
        snprintf(text, sizeof text, "memory limit %.4g GiB",
                 (double)p->v[0]->mem_limit_bytes / GIB);
        append_part(buf, cap, text);
    }
    append_part(buf, cap, machine->host);
}

static const struct {
    const char *name, *x_name, *y_name, *other_name;
    bool bars, log_x;
    enum status (*fill)(struct chart *c, const struct report_rows *p, struct err *err);
} charts[] = {
    {"decode_threads", "n_threads", "tok_per_s", "roof_tok_per_s", false, false,
     fill_threads},
    {"decode_context", "ctx", "tok_per_s", "roof_tok_per_s", false, false,
     fill_context},
    {"prefill", "position", "tok_per_s", "roof_tok_per_s", true, false, fill_prefill},
    {"memory", "position", "peak_gib", "planned_gib", true, false, fill_memory},
    {"speculation", "position", "speedup", "none", true, false,
     report_fill_speculation},
    {"pareto", "kl_mean", "tok_per_s", "frontier", false, true, report_fill_pareto},
};

static enum status draw_all(const char *dir, const struct report_rows *p,
                            struct err *err)
{
    struct report_machine machine;
    struct chart *c = malloc(sizeof *c);
    char text[64];
    enum status st = ST_OK;

    if (!c)
        return no_memory(err);
    report_machine_read(&machine, dir);
    for (size_t i = 0; i < sizeof charts / sizeof charts[0] && st == ST_OK; i++) {
        memset(c, 0, sizeof *c);
        c->name = charts[i].name;
        c->x_name = charts[i].x_name;
        c->y_name = charts[i].y_name;
        c->other_name = charts[i].other_name;
        c->bars = charts[i].bars;
        c->log_x = charts[i].log_x;
        describe(c->subtitle, sizeof c->subtitle, p, &machine);
        st = charts[i].fill(c, p, err);
        if (c->n_left_out) {
            snprintf(text, sizeof text, "%d more setting%s not shown", c->n_left_out,
                     plural(c->n_left_out));
            append_part(c->subtitle, sizeof c->subtitle, text);
        }
        if (st == ST_OK)
            st = chart_draw(c, dir, err);
        chart_free(c);
    }
    free(c);
    return st;
}

enum status report_charts(const char *dir, struct err *err)
{
    struct row *rows = NULL;
    struct report_rows picked;
    size_t n_rows = 0;
    enum status st = report_rows_read(dir, &rows, &n_rows, err);

    if (st)
        return st;
    st = report_rows_pick(&picked, rows, n_rows, err);
    if (st == ST_OK) {
        st = draw_all(dir, &picked, err);
        report_rows_free(&picked);
    }
    free(rows);
    return st;
}

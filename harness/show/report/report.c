/* SPDX-License-Identifier: MIT
 *
 * report.c - which rows of a sweep go into which chart
 */
#include "harness/show/report/report.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/chart/chart_files.h"
#include "harness/show/report/report_chart.h"
#include "harness/show/report/report_tokens.h"

#define GIB ((double)((uint64_t)1 << 30))

/* ---- threads --------------------------------------------------------------------- */

static int compare_counts(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The thread counts of all points of a kind, ascending, as names of bars. */
static int thread_counts(struct chart *c, const struct report_rows *p,
                         enum point_kind kind, int64_t counts[CHART_MAX_SERIES])
{
    int n = 0;

    for (size_t i = 0; i < p->n; i++) {
        bool seen = p->v[i]->kind != (int)kind;

        for (int k = 0; k < n && !seen; k++)
            seen = counts[k] == p->v[i]->n_threads;
        if (!seen && n < CHART_MAX_SERIES)
            counts[n++] = p->v[i]->n_threads;
    }
    qsort(counts, (size_t)n, sizeof counts[0], compare_counts);
    for (int k = 0; k < n; k++)
        snprintf(c->group[k], sizeof c->group[k], "%lld thread%s", (long long)counts[k],
                 plural(counts[k], "s"));
    return n;
}

/* ---- decode speed against threads ------------------------------------------------ */

/* Whether settings are compared side by side, since there is nothing to see along an
 * axis of threads. */
static bool are_bars(struct chart *c, const struct report_rows *p)
{
    int64_t counts[CHART_MAX_SERIES];

    c->n_groups = thread_counts(c, p, POINT_DECODE, counts);
    return c->n_groups == 1 && c->n_series > 1;
}

/* Each setting's points at its least depth. Returns the depth of all, or -1. */
static int64_t fill_min_depth(struct chart *c, const struct report_rows *p)
{
    int64_t depth_of_all = -1;

    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = report_setting_end(p, begin);
        const int64_t depth = report_min_depth(p, begin, end);
        const int series = depth < 0 ? -1 : chart_add_series(c, p, p->v[begin]);

        if (series < 0)
            continue;
        depth_of_all = series == 0 || depth == depth_of_all ? depth : -2;
        for (size_t i = begin; i < end; i++) {
            const struct row *r = p->v[i];

            if (r->kind != POINT_DECODE || r->ctx != depth)
                continue;
            struct mark *m = chart_mark(c);
            m->series = series;
            m->x = (double)r->n_threads;
            mark_set_speed(m, r);
            m->other = NAN; /* roofs are another chart's */
        }
    }
    return depth_of_all;
}

static void fill_threads(struct chart *c, const struct report_rows *p)
{
    const int64_t depth = fill_min_depth(c, p);

    if (depth >= 0)
        snprintf(c->title, sizeof c->title,
                 "Decode speed by threads, context depth %lld", (long long)depth);
    else
        snprintf(c->title, sizeof c->title,
                 "Decode speed by threads, at each setting's least context depth");
    if (are_bars(c, p))
        c->n = 0;
    c->n_groups = 0;
}

/* ---- decode speed of settings with as many threads ------------------------------- */

static void fill_decode(struct chart *c, const struct report_rows *p)
{
    fill_min_depth(c, p);
    for (size_t i = 0; i < c->n; i++)
        c->v[i].x = 0; /* one group */
    if (!are_bars(c, p))
        c->n = 0;
    snprintf(c->title, sizeof c->title,
             "Decode speed with %s, at each setting's least context depth",
             c->group[0]);
}

/* ---- prefill speed --------------------------------------------------------------- */

/* A setting is shown at its longest prompt length. */
static int64_t longest_prompt(const struct report_rows *p, size_t begin, size_t end)
{
    int64_t longest = -1;

    for (size_t i = begin; i < end; i++)
        if (p->v[i]->kind == POINT_PREFILL && p->v[i]->n_prompt > longest)
            longest = p->v[i]->n_prompt;
    return longest;
}

static void fill_prefill(struct chart *c, const struct report_rows *p)
{
    int64_t counts[CHART_MAX_SERIES], prompt_of_all = -1;

    c->n_groups = thread_counts(c, p, POINT_PREFILL, counts);
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
                m->series = series;
                m->group = k;
                mark_set_speed(m, r);
                m->other = NAN;
            }
        }
    }
    if (prompt_of_all >= 0)
        snprintf(c->title, sizeof c->title, "Prefill speed, prompt of %lld tokens",
                 (long long)prompt_of_all);
    else
        snprintf(c->title, sizeof c->title,
                 "Prefill speed, at each setting's longest prompt");
}

/* ---- memory ---------------------------------------------------------------------- */

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
    bool paging = false, streams = false, any_good = false;
    const char *failure = NULL;

    for (size_t i = begin; i < end; i++) {
        const struct row *r = p->v[i];

        resident = larger(resident, r->mem_resident_bytes);
        peak = larger(peak, r->mem_peak_bytes);
        planned = larger(planned, r->mem_planned_bytes);
        limit = larger(limit, r->mem_enforced_bytes > 0 ? r->mem_enforced_bytes
                                                        : r->mem_limit_bytes);
        paging |= r->limiter == LIMITER_PAGING;
        streams |= r->n_streamed > 0;
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
    snprintf(m->note, sizeof m->note, "%s%s%s%s",
             paging    ? "pages from disk"
             : streams ? "streams from disk"
                       : "",
             (paging || streams) && failure ? "; " : "", failure ? failure : "",
             failure && any_good ? " at some points" : "");
}

static void fill_memory(struct chart *c, const struct report_rows *p)
{
    bool any_limit = false, any_resident = false;

    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = report_setting_end(p, begin);
        if (p->v[begin]->kind ==
            ROW_LOAD) /* memory of a server: harness/judge/users/ */
            continue;
        const int series = chart_add_series(c, p, p->v[begin]);

        if (series < 0)
            continue;
        struct mark *m = chart_mark(c);
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
}

/* ---- all of them ----------------------------------------------------------------- */

static void append_part(char *buf, size_t cap, const char *text)
{
    if (text[0])
        text_append(buf, cap, "%s%s", buf[0] ? "  \xc2\xb7  " : "", text);
}

/* Names of models and CPUs are cut beyond this, so that the line fits the picture. */
#define NAME_CHARACTERS 60

/* "yi-1.5-9b · AMD EPYC, 2 CPUs · memory limit 6 GiB", as far as it is known and holds
 * for all rows. */
static void describe(char *buf, size_t cap, const struct report_rows *p,
                     const struct report_machine *machine)
{
    bool same_limit = true;
    char text[REPORT_NAME_MAX];

    for (size_t i = 0; i < p->n; i++)
        same_limit &= p->v[i]->mem_limit_bytes == p->v[0]->mem_limit_bytes;
    buf[0] = '\0';
    append_part(buf, cap, report_models_text(p, text, sizeof text, NAME_CHARACTERS));
    text_shorten(text, sizeof text, machine->cpu_model, NAME_CHARACTERS);
    if (machine->n_cpus > 0)
        text_append(text, sizeof text, "%s%d CPU%s", text[0] ? ", " : "",
                    machine->n_cpus, plural(machine->n_cpus, "s"));
    append_part(buf, cap, text);
    if (!same_limit)
        return;
    const double gib = (double)p->v[0]->mem_limit_bytes / GIB;
    if (gib > 0)
        snprintf(text, sizeof text, "memory limit %.4g %s", gib < 1 ? gib * 1024 : gib,
                 gib < 1 ? "MiB" : "GiB");
    append_part(buf, cap, gib > 0 ? text : "no memory limit");
}

static const struct {
    const char *name, *x_name, *y_name, *other_name, *x_title;
    bool bars, log_x;
    report_fill_fn *fill;
} charts[] = {
    {"decode_threads", "n_threads", "tok_per_s", "roof_tok_per_s", "threads", false,
     false, fill_threads},
    {"decode_context", "ctx", "tok_per_s", "roof_tok_per_s", "context depth, tokens",
     false, false, report_fill_context},
    {"decode_limit", "limit_gib", "tok_per_s", "roof_tok_per_s", "memory limit, GiB",
     false, false, report_fill_limit},
    {"decode_sequences", "n_sequences", "tok_per_s", "roof_tok_per_s",
     "sequences decoded together", false, false, report_fill_sequences},
    {"decode_each", "n_sequences", "tok_per_s_each", "roof_tok_per_s_each",
     "sequences decoded together", false, false, report_fill_each},
    {"kv_cache", "n_sequences", "kv_mib", "none", "sequences decoded together", false,
     false, report_fill_kv},
    {"step_chunk", "n_chunk", "step_ms", "roof_ms", "tokens of a prompt in each step",
     false, false, report_fill_step},
    {"prefill_chunk", "n_chunk", "chunk_tok_per_s", "roof_chunk_tok_per_s",
     "tokens of a prompt in each step", false, false, report_fill_chunk},
    {"decode_speed", "position", "tok_per_s", "roof_tok_per_s", "tokens per second",
     true, false, fill_decode},
    {"prefill", "position", "tok_per_s", "roof_tok_per_s", "tokens per second", true,
     false, fill_prefill},
    {"memory", "position", "peak_gib", "planned_gib", NULL, true, false, fill_memory},
    {"speculation", "position", "speedup", "none", "times as fast as plain decoding",
     true, false, report_fill_speculation},
    {"pareto", "kl_mean", "tok_per_s", "frontier", NULL, false, true,
     report_fill_pareto},
};

static enum status use_chart(struct chart *c, bool in_page, report_plot_fn *use,
                             void *arg, struct err *err)
{
    struct plot *p = c->is_incomplete ? NULL : chart_plot(c, in_page);

    if (c->is_incomplete || (c->has_figure && !p))
        return err_set(err, ST_NO_MEMORY, "no memory for the marks of a chart");
    if (p && in_page && c->n_left_out)
        plot_note(p, plot_printf(p, "%d more setting%s not shown", c->n_left_out,
                                 c->n_left_out == 1 ? " is" : "s are"));
    return use(arg, c->name, p, err);
}

enum status report_each_plot(const struct report_source *from, bool in_page,
                             report_plot_fn *use, void *arg, struct err *err)
{
    struct chart *c = malloc(sizeof *c);
    char text[64], subtitle[sizeof c->subtitle];
    enum status st = ST_OK;

    if (!c)
        return err_set(err, ST_NO_MEMORY, "no memory for a chart");
    describe(subtitle, sizeof subtitle, from->points, from->machine);
    for (size_t i = 0; i < sizeof charts / sizeof charts[0] && st == ST_OK; i++) {
        *c = (struct chart){.name = charts[i].name,
                            .x_name = charts[i].x_name,
                            .y_name = charts[i].y_name,
                            .other_name = charts[i].other_name,
                            .bars = charts[i].bars,
                            .log_x = charts[i].log_x,
                            .x_title = charts[i].x_title,
                            .may_split = !charts[i].bars && !charts[i].log_x,
                            .max_threads = from->machine->max_threads};
        snprintf(c->subtitle, sizeof c->subtitle, "%s", subtitle);
        charts[i].fill(c, from->points);
        if (c->n_left_out) {
            snprintf(text, sizeof text, "%d more setting%s not shown", c->n_left_out,
                     plural(c->n_left_out, "s"));
            append_part(c->subtitle, sizeof c->subtitle, text);
        }
        st = use_chart(c, in_page, use, arg, err);
        chart_free(c);
    }
    free(c);
    return st ? st : report_each_token_plot(from, subtitle, use, arg, err);
}

/* ---- their files ----------------------------------------------------------------- */

struct drawing {
    const char *dir, *again, *origin;
    bool any; /* chart has a figure */
};

static enum status draw_one(void *arg, const char *name, struct plot *p,
                            struct err *err)
{
    struct drawing *d = arg;

    if (!p) {
        chart_files_remove(d->dir, name);
        return ST_OK;
    }
    d->any = true;
    if (*d->origin)
        plot_note(p, d->origin);
    return chart_files_draw(p, d->dir, d->again, err);
}

enum status report_charts(const char *dir, const char *again,
                          const struct result_part *part, struct err *err)
{
    struct report_rows picked = {0};
    struct samples samples = {0};
    const struct report_source from = {&picked, &part->run->about, part->rows, part->n,
                                       &samples};
    char origin[160];
    struct drawing d = {.dir = dir,
                        .again = again,
                        .origin =
                            report_origin(part->rows, part->n, origin, sizeof origin)};
    enum status st = report_rows_pick(&picked, part->rows, part->n, err);

    if (st == ST_OK)
        st = samples_read(&samples, part->run->dir, err);
    if (st == ST_OK)
        st = report_each_plot(&from, false, draw_one, &d, err);
    samples_free(&samples);
    report_rows_free(&picked);
    return st || d.any ? st
                       : err_set(err, ST_CHECK,
                                 "there is nothing to draw: no point in %.300s has a "
                                 "figure",
                                 part->run->dir ? part->run->dir : part->name);
}

enum status report_charts_check(const struct path_list *inputs, const char *dir,
                                struct err *err)
{
    enum { N = sizeof charts / sizeof charts[0] };
    const char *names[N + 3] = {[N] = TOKEN_TIMES, [N + 1] = TOKEN_RUN};

    for (size_t i = 0; i < N; i++)
        names[i] = charts[i].name;
    return chart_files_check(inputs, dir, names, err);
}

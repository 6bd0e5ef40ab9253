/* SPDX-License-Identifier: MIT
 *
 * gate_forest.c - the forest plot: every metric's effect with its interval, the margin,
 * and the launches that it was found from
 */
#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/decide/gate/gate_report.h"

#define NAME     "gate_forest"
#define NAME_CAP 56 /* bytes of a metric's name that fit */

#define MODEL_CHARACTERS 60 /* of the model's name, next to the rest of its line */

/* Least and most of the axis, in percent. */
struct range {
    double lo, hi;
};

static double percent(double ratio)
{
    return 100 * (ratio - 1);
}

static void include(struct range *x, double v)
{
    if (!isfinite(v))
        return;
    x->lo = fmin(x->lo, v);
    x->hi = fmax(x->hi, v);
}

/* The launch's ratio; NAN where all of its rounds were disturbed. */
static double launch_percent(const struct gate_series *s, size_t launch)
{
    return s->n_rounds[launch]
               ? percent(exp(gate_middle(s->v[launch], s->n_rounds[launch])))
               : NAN;
}

static bool has_effect(const struct gate_metric *m)
{
    return isfinite(m->effect.ratio);
}

/* Intervals, 0 and the least margin are shown whole; a wider margin need not be seen.
 * Launches are shown up to the same distance again, so that one outlier does not
 * compress everything else.
 */
static struct range find_range(const struct gate_result *r)
{
    double least = INFINITY;
    struct range x;

    for (size_t i = 0; i < r->n_metrics; i++)
        least = fmin(least, 100 * r->metric[i].margin);
    least = fmax(least, 0.1); /* where all are alike */
    x = (struct range){-1.5 * least, least};
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct gate_effect *e = &r->metric[i].effect;

        include(&x, percent(e->ratio));
        include(&x, percent(e->lo));
        include(&x, percent(e->hi));
    }
    const struct range core = x;
    const double reach = 0.5 * (core.hi - core.lo);
    for (size_t i = 0; i < r->n_metrics; i++)
        for (size_t l = 0; l < r->metric[i].series.n_launches; l++) {
            const double v = launch_percent(&r->metric[i].series, l);

            if (isfinite(v))
                include(&x, fmax(core.lo - reach, fmin(core.hi + reach, v)));
        }
    const double rim = 0.03 * (x.hi - x.lo);
    return (struct range){x.lo - rim, x.hi + rim};
}

/* Where in its line, from -1 to 1, launch i's dot stands: evenly spread whatever their
 * number, and not in their order (the golden ratio's multiples). */
static double scatter(size_t i)
{
    return 2 * fmod((double)(i + 1) * 0.6180339887498949, 1) - 1;
}

enum { KIND_METRIC, KIND_LAUNCH, KIND_BEYOND };

static void write_row(FILE *f, int kind, const struct gate_metric *m, double y,
                      double value, double lo, double hi)
{
    fprintf(f, "%d,%d,%.4g", kind, (int)gate_metric_verdict(m), y);
    chart_file_number(f, value);
    chart_file_number(f, lo);
    chart_file_number(f, hi);
    chart_file_text(f, m->name);
    fputc('\n', f);
}

static void write_metric(FILE *f, const struct gate_metric *m, size_t line,
                         const struct range *x)
{
    const struct gate_effect *e = &m->effect;
    const bool whole = isfinite(e->lo) && isfinite(e->hi);

    write_row(f, KIND_METRIC, m, (double)line, percent(e->ratio),
              percent(whole ? e->lo : e->ratio), percent(whole ? e->hi : e->ratio));
    for (size_t l = 0; l < m->series.n_launches; l++) {
        const double v = launch_percent(&m->series, l);
        const bool beyond = v < x->lo || v > x->hi;

        if (isfinite(v))
            write_row(f, beyond ? KIND_BEYOND : KIND_LAUNCH, m,
                      (double)line + 0.3 * scatter(l), fmax(x->lo, fmin(x->hi, v)), NAN,
                      NAN);
    }
}

static enum status write_data(const struct gate_result *r, const struct range *x,
                              const char *dir, struct err *err)
{
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, NAME, "csv", err);

    if (!f)
        return err->code;
    fputs("kind,verdict,y,percent,lo,hi,name\n", f);
    for (size_t i = 0; i < r->n_metrics; i++)
        write_metric(f, &r->metric[i], i, x);
    return chart_file_finish(&c, err);
}

static void count_kinds(const struct gate_result *r, const struct range *x,
                        int n_verdict[4], int *n_dots, int *n_beyond)
{
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct gate_metric *m = &r->metric[i];

        n_verdict[gate_metric_verdict(m)]++;
        for (size_t l = 0; l < m->series.n_launches; l++) {
            const double v = launch_percent(&m->series, l);

            *n_dots += v >= x->lo && v <= x->hi;
            *n_beyond += v < x->lo || v > x->hi;
        }
    }
}

static void write_text(FILE *f, const char *array, size_t i, const char *text)
{
    fprintf(f, "%s[%zu] = ", array, i + 1);
    gnuplot_quote(f, text);
    fputc('\n', f);
}

/* The text next to each line, and longest_name: bytes that the left margin holds. */
static void write_texts(FILE *f, const struct gate_result *r)
{
    const int n = (int)r->n_metrics;
    size_t longest = 0;

    fprintf(f,
            "array metrics[%d]\narray changes[%d]\narray intervals[%d]\narray "
            "margins[%d]\narray words[%d]\narray verdicts[%d]\n",
            n, n, n, n, n, n);
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct gate_metric *m = &r->metric[i];
        const enum gate_verdict verdict = gate_metric_verdict(m);
        char name[NAME_CAP], text[80];

        utf8_printable(name, sizeof name, m->name, strlen(m->name));
        longest = strlen(name) > longest ? strlen(name) : longest;
        write_text(f, "metrics", i, name);
        write_text(f, "changes", i,
                   gate_change_text(text, sizeof text, m->effect.ratio));
        gate_interval_text(text, sizeof text, &m->effect);
        write_text(f, "intervals", i,
                   text[0]         ? text
                   : has_effect(m) ? "no interval"
                                   : "not measured");
        write_text(f, "words", i, gate_verdict_word(verdict));
        fprintf(f, "margins[%zu] = %.6g\nverdicts[%zu] = %d\n", i + 1, -100 * m->margin,
                i + 1, (int)verdict);
    }
    fprintf(f, "longest_name = %zu\n", longest);
}

static size_t n_margins(const struct gate_result *r)
{
    size_t n = r->n_metrics > 0;

    for (size_t i = 1; i < r->n_metrics; i++)
        n += r->metric[i].margin != r->metric[i - 1].margin;
    return n;
}

static void make_title(char *buf, size_t cap, const struct gate_result *r,
                       const int n_verdict[4])
{
    const char *word = gate_verdict_word(r->verdict);
    const struct gate_metric *m = gate_worst(r);
    char margin[48];

    snprintf(margin, sizeof margin, n_margins(r) > 1 ? "the margin" : "%.3g %%",
             m ? 100 * m->margin : 0);

    if (gate_stands_alone(r))
        snprintf(buf, cap, "Gate: %s", word);
    else if (r->verdict == GATE_FAIL)
        snprintf(buf, cap, "Gate: %s, %d of %zu metric%s lost more than %s", word,
                 n_verdict[GATE_FAIL], r->n_metrics, plural(r->n_metrics, "s"), margin);
    else if (r->verdict == GATE_PASS)
        snprintf(buf, cap, "Gate: %s, no metric lost more than %s", word, margin);
    else
        snprintf(buf, cap, "Gate: %s, %d of %zu metric%s undecided", word,
                 n_verdict[GATE_UNCLEAR], r->n_metrics, plural(r->n_metrics, "s"));
}

static void write_settings(FILE *f, const struct gate_result *r, const struct range *x)
{
    const bool stored = r->mode == GATE_MODE_BASELINE;
    char title[96], measured[160], model[256], subtitle[1024], shown[1024];
    int n_verdict[4] = {0}, n_dots = 0, n_beyond = 0;

    count_kinds(r, x, n_verdict, &n_dots, &n_beyond);
    make_title(title, sizeof title, r, n_verdict);
    if (stored)
        snprintf(measured, sizeof measured, "%zu new run%s against %.80s",
                 r->n_launches, plural(r->n_launches, "s"), r->settings);
    else
        snprintf(measured, sizeof measured, "%zu round%s of %zu launch%s", r->n_rounds,
                 plural(r->n_rounds, "s"), r->n_launches, plural(r->n_launches, "es"));
    snprintf(subtitle, sizeof subtitle, "%s%s%s%s%s%s",
             text_shorten(model, sizeof model, r->model, MODEL_CHARACTERS),
             r->model[0] ? " \xc2\xb7 " : "", r->cpu, r->cpu[0] ? " \xc2\xb7 " : "",
             measured, r->injected > 0 ? " \xc2\xb7 B slowed on purpose" : "");
    utf8_printable(shown, sizeof shown, subtitle, strlen(subtitle));
    chart_file_head(f, NAME, title, shown);
    write_texts(f, r);
    fprintf(f, "n_lines = %zu\ndot_text = '%s'\nbeyond_text = '%s'\n", r->n_metrics,
            stored ? "one new run" : "one launch of both programs",
            stored ? "a run further out" : "a launch further out");
    fprintf(f, "n_pass = %d\nn_fail = %d\nn_unclear = %d\nn_dots = %d\nn_beyond = %d\n",
            n_verdict[GATE_PASS], n_verdict[GATE_FAIL], n_verdict[GATE_UNCLEAR], n_dots,
            n_beyond);
    fprintf(f,
            "x_min = %.6g\nx_max = %.6g\ny_min = %zu.5\ny_max = -0.5\nlog_y = 0\n"
            "y_ticks = ''\n\n",
            x->lo, x->hi, r->n_metrics - 1);
}

enum status gate_forest_draw(const struct gate_result *r, const char *dir,
                             struct err *err)
{
    const struct range x = find_range(r);
    char again[300];
    bool any = false;

    for (size_t i = 0; i < r->n_metrics; i++)
        any = any || has_effect(&r->metric[i]);
    if (!any) {
        chart_files_remove(dir, NAME);
        return ST_OK;
    }
    if (write_data(r, &x, dir, err))
        return err->code;
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, NAME, "gp", err);
    if (!f)
        return err->code;
    write_settings(f, r, &x);
    snprintf(again, sizeof again, "bench gate --report %.200s", dir);
    return chart_file_draw(&c, again, err);
}

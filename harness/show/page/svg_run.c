/* SPDX-License-Identifier: MIT
 *
 * svg_run.c - token times over the run, with what disturbed them underneath
 *
 * A dot is a token, relative to the median of its point: 1 is usual, whatever the
 * setting; dots of one launch stand together, and a disturbance moves them all.
 */
#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/show/page/html.h"
#include "harness/show/page/svg.h"
#include "harness/show/page/svg_tokens.h"

#define WIDTH      1100
#define DOTS_TOP   14.0
#define DOTS       190.0
#define LANE       58.0
#define LANE_GAP   30.0
#define FOOT       46.0
#define RIGHT      12.0
#define MAX_DOTS   4000 /* of more, every so many-th is drawn */
#define LEAST_HIGH 2.0  /* the axis shows at least a half and twice the median */
#define MOST_HIGH  16.0
#define MOST_NAMES 24 /* in the legend */

static void find_range(const struct token_run *run, struct svg_range *y, size_t *n)
{
    double least = 1, most = 1;

    *n = 0;
    for (size_t i = 0; i < run->n; i++) {
        const struct token_launch *l = &run->v[i];

        for (size_t k = 0; l->own && k < l->own->n; k++) {
            least = fmin(least, l->own->ms[k] / l->median_ms);
            most = fmax(most, l->own->ms[k] / l->median_ms);
        }
        *n += l->own ? l->own->n : 0;
    }
    most = fmax(most, 1 / least);
    y->max = fmin(fmax(most * 1.1, LEAST_HIGH), MOST_HIGH);
    y->min = 1 / y->max;
    y->log = true;
}

static void put_dots(FILE *f, const struct token_run *run, const struct svg_area *a,
                     int setting, size_t every)
{
    size_t at = 0;

    fprintf(f, "<path class=\"dots s%d\" d=\"", setting % SVG_COLORS);
    for (size_t i = 0; i < run->n; i++) {
        const struct token_launch *l = &run->v[i];
        double t = l->first_s;

        for (size_t k = 0; l->own && k < l->own->n; k++) {
            const double v = l->own->ms[k] / l->median_ms;

            t += l->own->ms[k] / 1000;
            if (l->setting == setting && at++ % every == 0)
                fprintf(f, "M%.1f %.1fh0", svg_x(a, t / 60),
                        svg_y(a, fmin(fmax(v, a->y.min), a->y.max)));
        }
    }
    fputs("\"/>\n", f);
}

static void put_pauses(FILE *f, const struct token_run *run, const struct svg_area *a,
                       double bottom)
{
    for (size_t i = 0; i < run->n; i++)
        if (run->v[i].after_pause) {
            const double x = svg_x(a, (run->v[i].begin_s - TOKEN_RUN_PAUSE_S / 2) / 60);

            svg_line(f, x, a->top, x, bottom, "rule dashed");
        }
}

/* ---- lanes ------------------------------------------------------------------------
 */

typedef double lane_fn(const struct row *r);

static double stolen(const struct row *r)
{
    return (r->steal_pct > 0 ? r->steal_pct : 0) +
           (r->others_pct > 0 ? r->others_pct : 0);
}

static double only_stolen(const struct row *r)
{
    return r->steal_pct > 0 ? r->steal_pct : 0;
}

static double faults(const struct row *r)
{
    return (r->major_faults_per_token > 0 ? r->major_faults_per_token : 0) +
           (r->refaults_per_token > 0 ? r->refaults_per_token : 0);
}

static void put_bars(FILE *f, const struct token_run *run, const struct svg_area *a,
                     lane_fn *of, const char *style)
{
    const double bottom = a->top + a->height;

    fprintf(f, "<path class=\"%s\" d=\"", style);
    for (size_t i = 0; i < run->n; i++) {
        const struct token_launch *l = &run->v[i];
        const double v = of(l->row);
        const double x = svg_x(a, l->begin_s / 60);
        const double width = fmax(svg_x(a, l->end_s / 60) - x, 1.5);

        if (v > a->y.min)
            fprintf(f, "M%.1f %.1fV%.1fh%.1fV%.1fz", x, bottom,
                    svg_y(a, fmin(v, a->y.max)), width, bottom);
    }
    fputs("\"/>\n", f);
}

static void put_lane(FILE *f, const struct token_run *run, struct svg_area *a,
                     lane_fn *of, lane_fn *part, const char *name)
{
    double most = 0, least = INFINITY;

    for (size_t i = 0; i < run->n; i++) {
        const double v = of(run->v[i].row);

        most = fmax(most, v);
        least = v > 0 ? fmin(least, v) : least;
    }
    a->y = (struct svg_range){0, most > 0 ? most * 1.1 : 1, false};
    if (most > 0 && most / least > 1000) /* refaults: some pages, or all */
        a->y = (struct svg_range){fmax(least / 2, most * 1e-5), most * 1.5, true};
    svg_text(f, a->left, a->top - 8, "start", "name", name);
    svg_y_axis(f, a, 2);
    put_bars(f, run, a, of, part ? "lane others" : "lane faults");
    if (part)
        put_bars(f, run, a, part, "lane steal");
    svg_line(f, a->left, a->top + a->height, a->left + a->width, a->top + a->height,
             "axis");
}

/* ---- all --------------------------------------------------------------------------
 */

static void put_legend(FILE *f, const struct report_rows *p)
{
    char name[REPORT_NAME_MAX], text[REPORT_NAME_MAX];
    int setting = 0;

    fputs("<ul class=\"legend\">\n", f);
    for (size_t begin = 0; begin < p->n; begin = report_setting_end(p, begin)) {
        report_setting_name(p, p->v[begin], name, sizeof name);
        fprintf(f, "<li><span class=\"box s%d\"></span>", setting % SVG_COLORS);
        html_put(f, text_shorten(text, sizeof text, name, 44));
        fputs("</li>\n", f);
        if (++setting == MOST_NAMES)
            break;
    }
    fputs("<li><span class=\"box bad\"></span>CPU time stolen</li>"
          "<li><span class=\"box warn\"></span>CPU time of others</li>"
          "<li><span class=\"box dim\"></span>page faults and refaults</li></ul>\n",
          f);
}

void svg_token_run(FILE *f, const struct token_run *run, const struct report_rows *p)
{
    struct svg_area a = {.top = DOTS_TOP,
                         .height = DOTS,
                         .left = 62,
                         .width = WIDTH - 62 - RIGHT,
                         .x = {0, fmax(run->span_s / 60, 1e-3), false}};
    const double bottom = DOTS_TOP + DOTS + 2 * (LANE + LANE_GAP);
    size_t n;

    put_legend(f, p);
    fputs("<div class=\"scroll\">\n", f);
    svg_begin(f, WIDTH, bottom + FOOT, "Token times over the run");
    find_range(run, &a.y, &n);
    svg_y_axis(f, &a, 5);
    svg_line(f, a.left, svg_y(&a, 1), a.left + a.width, svg_y(&a, 1), "axis");
    put_pauses(f, run, &a, bottom);
    for (int s = 0; s < run->n_settings; s++)
        put_dots(f, run, &a, s, n / MAX_DOTS + 1);
    a.top += DOTS + LANE_GAP;
    a.height = LANE;
    put_lane(f, run, &a, stolen, only_stolen, "CPU time taken by others, %");
    a.top += LANE + LANE_GAP;
    put_lane(f, run, &a, faults, NULL, "page faults and refaults per token");
    svg_x_axis(f, &a, 10);
    svg_x_title(f, &a, "minutes since the run began");
    svg_end(f);
    fputs("</div>\n", f);
}

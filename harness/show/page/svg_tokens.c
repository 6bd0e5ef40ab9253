/* SPDX-License-Identifier: MIT
 *
 * svg_tokens.c - distributions of token times, and shares of the roof
 */
#include "harness/show/page/svg_tokens.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/show/page/html.h"
#include "harness/show/page/svg.h"

#define NAME_CHARACTERS 44
#define HEIGHT          196.0
#define FOOT            46.0

/* A distribution is drawn by so many of its quantiles, at most. */
#define MAX_STEPS 160

/* Beyond this ratio of times their axis is logarithmic. */
#define LOG_RATIO 12.0

/* ---- distributions ----------------------------------------------------------------
 */

static void put_legend(FILE *f, const struct token_series_list *list)
{
    char name[REPORT_NAME_MAX], text[REPORT_NAME_MAX + 48];

    fputs("<ul class=\"legend\">\n", f);
    for (int i = 0; i < list->n; i++) {
        const struct token_series *s = &list->v[i];

        snprintf(text, sizeof text, "%s, %lld thread%s%s",
                 text_shorten(name, sizeof name, s->name, NAME_CHARACTERS),
                 (long long)s->n_threads, plural(s->n_threads, "s"),
                 s->doubtful ? " (doubtful)" : "");
        svg_key(f, i, s->doubtful ? "line doubtful" : "line", -1, text);
    }
    fputs("</ul>\n", f);
}

static void put_distribution(FILE *f, const struct svg_area *a,
                             const struct token_series *s, int series)
{
    const size_t n = s->n < MAX_STEPS ? s->n : MAX_STEPS;

    fprintf(f, "<g class=\"s%d\"><title>", series % SVG_COLORS);
    html_printf(f, "%s: median %.1f ms, 95 %% within %.1f ms, most %.1f ms", s->name,
                stats_quantile_sorted(s->ms, s->n, 0.5),
                stats_quantile_sorted(s->ms, s->n, 0.95), s->ms[s->n - 1]);
    fprintf(f, "</title><path class=\"%s\" d=\"M%.1f %.1f",
            s->doubtful ? "line doubtful" : "line", svg_x(a, s->ms[0]), svg_y(a, 0));
    for (size_t k = 0; k < n; k++) {
        /* the largest of each share, so that the last step is the slowest token */
        const size_t i = (k + 1) * s->n / n - 1;

        fprintf(f, "H%.1fV%.1f", svg_x(a, s->ms[i]),
                svg_y(a, 100 * (double)(i + 1) / (double)s->n));
    }
    fprintf(f, "H%.1f\"/></g>\n", a->left + a->width);
}

void svg_token_times(FILE *f, const struct token_series_list *list)
{
    struct svg_area a = {.top = 12, .height = HEIGHT, .y = {0, 100, false}};
    double least = INFINITY, most = 0;

    for (int i = 0; i < list->n; i++) {
        least = fmin(least, list->v[i].ms[0]);
        most = fmax(most, list->v[i].ms[list->v[i].n - 1]);
    }
    a.x.log = most / least > LOG_RATIO;
    a.x.min = a.x.log ? least / 1.2 : fmax(0, least - 0.1 * (most - least) - 1e-9);
    a.x.max = a.x.log ? most * 1.2 : most + 0.1 * (most - least) + 1e-9;
    a.left = svg_y_labels_width(&a.y, 5);
    a.width = SVG_WIDTH - a.left - 14;
    put_legend(f, list);
    svg_begin(f, SVG_WIDTH, a.top + a.height + FOOT, "Distribution of token times");
    svg_y_axis(f, &a, 5);
    svg_x_axis(f, &a, 5);
    svg_x_title(f, &a, a.x.log ? "ms per token (logarithmic)" : "ms per token");
    for (int i = 0; i < list->n; i++)
        put_distribution(f, &a, &list->v[i], i);
    svg_end(f);
}

/* ---- shares of the roof -----------------------------------------------------------
 */

#define CELL        34.0
#define NAME_HEIGHT 20.0
#define HEAD        22.0

static void put_cell(FILE *f, const struct row *r, double x, double y, double width)
{
    const bool has = r && row_trust(r) != ROW_FAILED && r->mbu > 0;
    const bool doubtful = has && row_trust(r) != ROW_GOOD;
    char text[48] = "";

    svg_rect(f, x, y, width, CELL, "cell");
    if (has)
        snprintf(text, sizeof text, "%.0f%s%s", 100 * r->mbu, width > 44 ? " %" : "",
                 doubtful ? " ?" : "");
    else if (r)
        snprintf(text, sizeof text, "%s",
                 row_trust(r) == ROW_FAILED ? row_failure(r) : "\xe2\x80\x93");
    if (has)
        fprintf(f,
                "<rect class=\"heat\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\" fill-opacity=\"%.2f\"/>",
                x, y, width, CELL, 0.08 + 0.92 * fmin(1, r->mbu));
    svg_text(f, x + width / 2, y + CELL / 2 + 4.5, "middle",
             has && r->mbu > 0.45 ? "over" : "tick", text);
}

void svg_roof_map(FILE *f, const struct roof_map *map)
{
    const double width = (double)SVG_WIDTH / map->n_threads;
    char name[REPORT_NAME_MAX];
    double y = HEAD;

    svg_begin(f, SVG_WIDTH, HEAD + map->n_settings * (NAME_HEIGHT + CELL + 8) + 4,
              "Share of the roof by setting and threads");
    for (int t = 0; t < map->n_threads; t++) {
        snprintf(name, sizeof name, width > 70 ? "%lld thread%s" : "%lld",
                 (long long)map->threads[t], plural(map->threads[t], "s"));
        svg_text(f, (t + 0.5) * width, 14, "middle", "tick", name);
    }
    for (int s = 0; s < map->n_settings; s++) {
        svg_text(f, 0, y + 14, "start", "bar-name",
                 text_shorten(name, sizeof name, map->name[s], NAME_CHARACTERS));
        y += NAME_HEIGHT;
        for (int t = 0; t < map->n_threads; t++)
            put_cell(f, map->cell[s][t], t * width + 1, y, width - 2);
        y += CELL + 8;
    }
    svg_end(f);
}

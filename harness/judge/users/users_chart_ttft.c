/* SPDX-License-Identifier: MIT
 *
 * users_chart_ttft.c - the distribution of times to the first token
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/rows/samples.h"
#include "harness/judge/users/users_charts_internal.h"

#define MAX_LINES 18  /* distributions in a picture */
#define MAX_STEPS 400 /* quantiles that a distribution is drawn by */

struct line {
    int series, n_users;
    bool is_doubtful;
    double *ttft_s; /* [n], sorted; malloc'ed */
    size_t n, n_failed;
};

struct lines {
    const struct users *u;
    struct line v[MAX_LINES];
    int n, n_left_out;
};

/* Launches whose times are in a line; a row that stands there twice has those of the
 * later one both times. */
struct taken {
    const struct launch_samples *v[USERS_MAX_ROUNDS];
    size_t n;
};

static bool take(struct taken *t, const struct launch_samples *own)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i] == own)
            return false;
    if (!own || t->n == USERS_MAX_ROUNDS)
        return false;
    t->v[t->n++] = own;
    return true;
}

static enum status add_line(struct lines *lines, const struct samples *requests,
                            int series, const struct users_level *s, struct err *err)
{
    const struct users *u = lines->u;
    struct line l = {
        .series = series, .n_users = s->n_users, .is_doubtful = s->is_doubtful};
    size_t n = 0;

    for (int fill = 0; fill < 2; fill++) {
        struct taken taken = {.n = 0};

        for (size_t i = 0; i < u->n_rows; i++) {
            const struct row *r = &u->rows[i];
            const struct launch_samples *own =
                r->n_users == s->n_users && users_is_of(&u->v[series], r) &&
                        (s->is_doubtful || row_trust(r) == ROW_GOOD)
                    ? samples_of(requests, r)
                    : NULL;

            if (!take(&taken, own))
                continue;
            for (size_t k = 0; k < own->n; k++) {
                const double v = own->ms[k * REQUEST_CELLS + REQUEST_TTFT_S];

                if (!fill)
                    n += isfinite(v) != 0;
                else if (isfinite(v))
                    l.ttft_s[l.n++] = v;
                else
                    l.n_failed++;
            }
        }
        if (!n)
            return ST_OK;
        if (lines->n == MAX_LINES) {
            lines->n_left_out++;
            return ST_OK;
        }
        if (!fill && !(l.ttft_s = malloc(n * sizeof *l.ttft_s)))
            return err_set(err, ST_NO_MEMORY, "no memory for the times of %zu requests",
                           n);
    }
    stats_sort(l.ttft_s, l.n);
    lines->v[lines->n++] = l;
    return ST_OK;
}

static void put_lines(FILE *f, const void *what)
{
    const struct lines *lines = what;

    fputs("line,seconds,percent\n", f);
    for (int i = 0; i < lines->n; i++) {
        const struct line *l = &lines->v[i];
        const size_t n = l->n < MAX_STEPS ? l->n : MAX_STEPS;
        double before = 0;

        for (size_t k = 0; k < n; k++) {
            const size_t at = (k + 1) * l->n / n - 1;
            const double share = 100 * (double)(at + 1) / (double)(l->n + l->n_failed);

            fprintf(f, "%d,%.6g,%.5g\n%d,%.6g,%.5g\n", i, l->ttft_s[at], before, i,
                    l->ttft_s[at], share);
            before = share;
        }
    }
}

static void put_line_settings(FILE *f, const void *what)
{
    const struct lines *lines = what;
    char text[MAX_LINES][REPORT_NAME_MAX + 32];
    const char *names[MAX_LINES];
    struct users_range x = {NAN, NAN, false};
    double limit = NAN;
    bool one_limit = true;

    for (int i = 0; i < lines->n; i++) {
        const struct line *l = &lines->v[i];
        const double own = users_limit_of(&lines->u->v[l->series].slo, 0);
        char name[REPORT_NAME_MAX];

        users_range_widen(&x, l->ttft_s[0]);
        users_range_widen(&x, l->ttft_s[l->n - 1]);
        one_limit &= !i || own == limit;
        limit = own;
        text_shorten(name, sizeof name, lines->u->v[l->series].name,
                     USERS_NAME_CHARACTERS);
        snprintf(text[i], sizeof text[i], "%s%s%d user%s%s",
                 lines->u->n > 1 ? name : "", lines->u->n > 1 ? ", " : "", l->n_users,
                 plural(l->n_users, "s"), l->is_doubtful ? " (disturbed)" : "");
        names[i] = text[i];
    }
    if (one_limit && limit < 4 * x.max)
        users_range_widen(&x, limit);
    else
        limit = NAN;
    x = users_range_with_room(x, false);
    chart_file_ranges(f, x.min, x.max, 0, 103);
    chart_file_texts(f, "series", names, lines->n, 2 * USERS_NAME_CHARACTERS);
    fprintf(f, "log_x = %d\nlimit = %.6g\narray server[%d]\narray step_at[%d]\n", x.log,
            isfinite(limit) ? limit : 0, lines->n, lines->n);
    for (int i = 0; i < lines->n; i++) {
        int at = 0;

        for (int k = 0; k < i; k++)
            at += lines->v[k].series == lines->v[i].series;
        fprintf(f, "server[%d] = %d\nstep_at[%d] = %d\n", i + 1, lines->v[i].series,
                i + 1, at);
    }
}

enum status users_draw_ttft(const struct users *u, const struct chart_text *to,
                            const char *from, bool *any, struct err *err)
{
    char below[500];
    const struct chart_text text = {
        .dir = to->dir,
        .name = USERS_TTFT,
        .form = USERS_TTFT,
        .title = "Time to the first token, of each number of users",
        .subtitle = below,
        .again = to->again};
    struct lines *lines = calloc(1, sizeof *lines);
    struct samples requests = {0};
    enum status st = lines ? requests_read(&requests, from, err)
                           : err_set(err, ST_NO_MEMORY, "no memory for a chart");

    snprintf(below, sizeof below, "%s", to->subtitle);
    if (lines)
        lines->u = u;
    for (size_t i = 0; st == ST_OK && i < u->n; i++)
        for (size_t k = 0; k < u->v[i].n && st == ST_OK; k++)
            st = add_line(lines, &requests, (int)i, &u->v[i].level[k], err);
    if (lines && lines->n_left_out)
        text_append(below, sizeof below, "%s%d more numbers of users are not shown",
                    USERS_DOT, lines->n_left_out);
    if (st == ST_OK && lines->n) {
        st = chart_files_make(&text, put_lines, put_line_settings, lines, err);
        *any |= st == ST_OK;
    } else if (st == ST_OK) {
        chart_files_remove(to->dir, USERS_TTFT);
    }
    for (int i = 0; lines && i < lines->n; i++)
        free(lines->v[i].ttft_s);
    samples_free(&requests);
    free(lines);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * samples.c - samples.csv and requests.csv, read whole and cut in place
 */
#include "harness/rows/samples.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/infile.h"
#include "harness/base/array.h"
#include "harness/base/order.h"

/* One line as its cells. */
struct line {
    char *point; /* zero-terminated in place */
    int64_t attempt, index;
    double v[REQUEST_CELLS]; /* the time alone, or of a request all */
};

struct table {
    const char *file;
    int n_cells; /* behind the index */
};

static const struct table samples_table = {SAMPLES_CSV, 1};
static const struct table requests_table = {REQUESTS_CSV, REQUEST_CELLS};

/* A number that ends the cell at `at` with that character; *next: after it. */
static bool read_count(const char *at, char end, int64_t *v, const char **next)
{
    char *stop;

    errno = 0;
    *v = strtoll(at, &stop, 10);
    *next = stop + 1;
    return stop > at && *stop == end && !errno && *v >= 0;
}

/* The cells behind the index. Times of tokens are above 0 and never empty; those of
 * requests may be empty, and what files of earlier versions do not have is. */
static bool read_cells(double *v, int n, const char *at)
{
    for (int i = 0; i < n; i++) {
        char *stop = (char *)at;

        v[i] = NAN;
        if (!at && i < REQUEST_VISIBLE_S)
            return false;
        if (!at)
            continue;
        if (n == 1 || (*at != ',' && *at)) {
            v[i] = strtod(at, &stop);
            if (stop == at || !(v[i] >= 0) || (n == 1 && !(v[i] > 0 && isfinite(v[i]))))
                return false;
        }
        if (*stop != ',' && *stop)
            return false;
        at = *stop ? stop + 1 : NULL;
    }
    return !at;
}

/* The zero-terminated text of a line; false where it is none. A point with a comma is
 * in quotes, and has none within. */
static bool cut_line(struct line *l, char *text, int n_cells)
{
    const bool quoted = *text == '"';
    char *end = strchr(text + quoted, quoted ? '"' : ',');
    const char *at;

    if (!end || end[quoted] != ',' ||
        !read_count(end + quoted + 1, ',', &l->attempt, &at) ||
        !read_count(at, ',', &l->index, &at) || !read_cells(l->v, n_cells, at))
        return false;
    l->point = text + quoted;
    *end = '\0';
    return true;
}

static int by_launch(const void *x, const void *y)
{
    const struct launch_samples *a = x, *b = y;

    ORDER_BY(strcmp(a->point, b->point));
    return order_ints(a->attempt, b->attempt);
}

static int by_launch_and_line(const void *x, const void *y)
{
    const struct launch_samples *a = x, *b = y;

    ORDER_BY(by_launch(a, b));
    return (a->line > b->line) - (a->line < b->line);
}

/* The lines of s->text up to end, at most n_lines. */
static enum status cut_text(struct samples *s, const char *end, size_t n_lines,
                            int n_cells, struct err *err)
{
    size_t cap = 0, n_ms = 0, at = 0;
    struct line l;

    s->ms = malloc((n_lines + 1) * (size_t)n_cells * sizeof *s->ms);
    if (!s->ms)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu samples", n_lines);
    for (char *text = s->text, *next; text < end; text = next, at++) {
        struct launch_samples *last = s->n ? &s->v[s->n - 1] : NULL;

        next = memchr(text, '\n', (size_t)(end - text));
        if (!next)
            break; /* the writer was killed within this line */
        *next++ = '\0';
        /* After a power failure there may be zeros in its place. */
        if (text + strlen(text) + 1 < next || !cut_line(&l, text, n_cells))
            continue;
        memcpy(s->ms + n_ms, l.v, (size_t)n_cells * sizeof *s->ms);
        n_ms += (size_t)n_cells;
        if (last && l.index && last->attempt == l.attempt &&
            !strcmp(last->point, l.point)) {
            last->n++;
            continue;
        }
        struct launch_samples *grown = array_grow(s->v, s->n, &cap, sizeof *grown);

        if (!grown)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu launches", s->n + 1);
        s->v = grown;
        s->v[s->n++] =
            (struct launch_samples){l.point, l.attempt, s->ms + n_ms - n_cells, 1, at};
    }
    return ST_OK;
}

/* In order, and of launches that stand there twice only the later one. */
static void sort(struct samples *s)
{
    size_t n = 0;

    if (s->n)
        qsort(s->v, s->n, sizeof *s->v, by_launch_and_line);
    for (size_t i = 0; i < s->n; i++) {
        if (i + 1 < s->n && !by_launch(&s->v[i], &s->v[i + 1]))
            continue;
        s->v[n++] = s->v[i];
    }
    s->n = n;
}

static enum status read_table(struct samples *s, const struct table *table,
                              const char *dir, struct err *err)
{
    char path[4096];
    size_t len, n_lines = 0;
    enum status st;
    bool exists;

    memset(s, 0, sizeof *s);
    if (!dir)
        return ST_OK;
    snprintf(path, sizeof path, "%s/%s", dir, table->file);
    st = infile_exists(&exists, path, err);
    if (st || !exists)
        return st;
    if (infile_read(&s->text, &len, path, SAMPLES_MAX_BYTES, err))
        return err->code;
    for (size_t i = 0; i < len; i++)
        n_lines += s->text[i] == '\n';
    st = cut_text(s, s->text + len, n_lines, table->n_cells, err);
    if (st)
        samples_free(s);
    else
        sort(s);
    return st;
}

enum status samples_read(struct samples *s, const char *dir, struct err *err)
{
    return read_table(s, &samples_table, dir, err);
}

enum status requests_read(struct samples *s, const char *dir, struct err *err)
{
    return read_table(s, &requests_table, dir, err);
}

void samples_free(struct samples *s)
{
    free(s->v);
    free(s->text);
    free(s->ms);
    memset(s, 0, sizeof *s);
}

const struct launch_samples *samples_of(const struct samples *s, const struct row *r)
{
    const struct launch_samples wanted = {.point = r->point, .attempt = r->attempt};

    return s->n ? bsearch(&wanted, s->v, s->n, sizeof *s->v, by_launch) : NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * gate_trace.c - reading turns that were recorded
 */
#include "research/gate_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/infile.h"
#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/decide/gate/gate_run.h"
#include "harness/stats/stats.h"

#define MAX_BYTES ((size_t)64 << 20) /* of a file that is read */

/* ---- reading --------------------------------------------------------------------- */

/* The file's name without its ending; a gate's rounds have the name of their folder. */
static void set_name(struct gate_trace *t, const char *path)
{
    const char *slash = strrchr(path, '/'), *begin = slash ? slash + 1 : path;
    const char *end = strrchr(begin, '.');
    char own[sizeof t->name];

    if (!strcmp(begin, GATE_ROUNDS_NAME) && slash > path) {
        end = slash;
        begin = memrchr(path, '/', (size_t)(slash - path));
        begin = begin ? begin + 1 : path;
    }
    const size_t n = end && end > begin ? (size_t)(end - begin) : strlen(begin);

    snprintf(own, sizeof own, "%.*s", (int)(n < 60 ? n : 60), begin);
    text_harmless(t->name, sizeof t->name, own);
    for (char *c = t->name; *c; c++)
        if (strchr(",\"'", *c))
            *c = '_';
}

static enum status add_turn(struct gate_trace *t, size_t *cap, double ms,
                            const char *path, struct err *err)
{
    if (t->n == GATE_TRACE_MAX)
        return err_set(err, ST_INPUT, "%.400s has more than %d turns", path,
                       GATE_TRACE_MAX);
    if (t->n == *cap) {
        const size_t more = *cap ? 2 * *cap : 4096;
        double *v = realloc(t->log_time, more * sizeof *v);

        if (!v)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu turns", more);
        t->log_time = v;
        *cap = more;
    }
    t->log_time[t->n++] = log(ms * 1e-3);
    return ST_OK;
}

static enum status read_lines(struct gate_trace *t, char *text, const char *path,
                              struct err *err)
{
    char *save, what[600];
    size_t cap = 0, line_at = 0;

    /* A last line without an end is one whose writer was killed. */
    for (char *line = text; (save = strchr(line, '\n')); line = save + 1) {
        double ms;

        line_at++;
        *save = '\0';
        for (char *end = save; end > line && strchr(" \t\r", end[-1]);)
            *--end = '\0';
        line += strspn(line, " \t");
        if (*line == '#' && !t->about[0] && t->n == 0)
            text_harmless(t->about, sizeof t->about, line + 1 + strspn(line + 1, " "));
        if (*line == '#' || !*line)
            continue;
        snprintf(what, sizeof what, "%.500s, line %zu", path, line_at);
        if (parse_double(line, what, 1e-6, 1e9, &ms, err))
            return err->code = ST_INPUT;
        if (add_turn(t, &cap, ms, path, err))
            return err->code;
    }
    return ST_OK;
}

/* ---- rounds of a gate ------------------------------------------------------------ */

struct round_line {
    char order[5], metric[128];
    double seconds[4];
};

/* Rows of what is measured once a launch have no four turns. */
static bool parse_round(struct round_line *r, const char *line)
{
    int n = 0;

    return sscanf(line, "%*u,%*u,%4[AB],%*d,\"%127[^\"]\",%*[^,],%lf,%lf,%lf,%lf,%n",
                  r->order, r->metric, &r->seconds[0], &r->seconds[1], &r->seconds[2],
                  &r->seconds[3], &n) == 6 &&
           n > 0 && strlen(r->order) == 4;
}

static double side_median(const struct gate_trace *t, const char *side, char which,
                          double *picked, double *scratch)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (side[i] == which)
            picked[n++] = t->log_time[i];
    return n ? stats_median(picked, n, scratch) : 0;
}

/* What B is slower by is no noise: both sides get A's median. */
static enum status level_sides(struct gate_trace *t, const char *side, struct err *err)
{
    double *scratch = malloc(2 * t->n * sizeof *scratch + 1);

    if (!scratch)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu turns", t->n);
    const double b = side_median(t, side, 'B', scratch, scratch + t->n) -
                     side_median(t, side, 'A', scratch, scratch + t->n);
    for (size_t i = 0; i < t->n; i++)
        t->log_time[i] -= side[i] == 'B' ? b : 0;
    free(scratch);
    return ST_OK;
}

static enum status read_rounds(struct gate_trace *t, char *text, const char *path,
                               struct err *err)
{
    char *side = malloc(strlen(text) + 1), *end; /* a turn has more than a character */
    struct round_line r;
    size_t cap = 0;
    enum status st = ST_OK;

    if (!side)
        return err_set(err, ST_NO_MEMORY, "no memory for %.400s", path);
    for (char *line = text; st == ST_OK && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (!parse_round(&r, line) || (t->n && strcmp(r.metric, t->about) != 0))
            continue;
        snprintf(t->about, sizeof t->about, "%s", r.metric);
        for (int i = 0; i < 4 && st == ST_OK; i++) {
            if (!(r.seconds[i] > 0) || !isfinite(r.seconds[i]))
                st = err_set(err, ST_INPUT, "%.400s: a turn of %g seconds", path,
                             r.seconds[i]);
            if (st == ST_OK)
                st = add_turn(t, &cap, r.seconds[i] * 1e3, path, err);
            if (st == ST_OK)
                side[t->n - 1] = r.order[i];
        }
    }
    if (st == ST_OK)
        st = level_sides(t, side, err);
    free(side);
    return st;
}

enum status gate_trace_read(struct gate_trace *t, const char *path, struct err *err)
{
    char *text = NULL;
    size_t len = 0;
    enum status st = infile_read(&text, &len, path, MAX_BYTES, err);

    *t = (struct gate_trace){.n = 0};
    if (st)
        return st;
    set_name(t, path);
    const size_t n_header = strlen(GATE_ROUNDS_HEADER);
    const bool rounds = !strncmp(text, GATE_ROUNDS_HEADER, n_header);
    if (strlen(text) < len)
        st = err_set(err, ST_INPUT, "%.400s is not a text of turns", path);
    else
        st = rounds ? read_rounds(t, text + n_header, path, err)
                    : read_lines(t, text, path, err);
    if (st == ST_OK && t->n < GATE_TRACE_MIN)
        st = err_set(err, ST_INPUT,
                     "%.500s has %zu turns, and a trace is at least %d; "
                     "`bench-research record-trace FILE -m MODEL` records one",
                     path, t->n, GATE_TRACE_MIN);
    free(text);
    if (st)
        gate_trace_free(t);
    return st;
}

void gate_trace_free(struct gate_trace *t)
{
    free(t->log_time);
    t->log_time = NULL;
    t->n = 0;
}

double gate_trace_noise(const struct gate_trace *t)
{
    double sum = 0, squares = 0;
    size_t n = 0;

    for (size_t i = 0; i + 4 <= t->n; i += 4, n++) {
        const double *v = t->log_time + i, round = (v[0] - v[1] - v[2] + v[3]) / 2;

        sum += round;
        squares += round * round;
    }
    const double mean = sum / (double)n;

    return sqrt((squares - mean * sum) / (double)(n - 1));
}

/* SPDX-License-Identifier: MIT
 *
 * gate_trace.c - recording turns, and reading them back
 */
#include "engine/base/infile.h"
#include "research/gate_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread_pool.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/parse.h"
#include "harness/base/progress.h"
#include "harness/stats/stats.h"
#include "harness/base/newfile.h"
#include "harness/machine/measuring.h"
#include "harness/decide/gate/gate_run.h"
#include "harness/machine/topology.h"
#include "harness/measure/worker/measured.h"
#include "research/research.h"

#define MAX_BYTES ((size_t)64 << 20) /* of a file that is read */

/* ---- reading --------------------------------------------------------------------- */

static void set_name(struct gate_trace *t, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

    if (!strcmp(base, GATE_ROUNDS_NAME) && slash > path) {
        const size_t n_dir = (size_t)(slash - path);
        const char *before = memrchr(path, '/', n_dir);

        base = before ? before + 1 : path;
        char own[sizeof t->name];

        snprintf(own, sizeof own, "%.*s", (int)(slash - base < 60 ? slash - base : 60),
                 base);
        text_harmless(t->name, sizeof t->name, own);
        return;
    }
    const char *dot = strrchr(base, '.');
    const size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);

    char own[sizeof t->name];

    snprintf(own, sizeof own, "%.*s", (int)(n < 60 ? n : 60), base);
    text_harmless(t->name, sizeof t->name, own);
    for (char *c = t->name; *c; c++)
        if ((unsigned char)*c < ' ' || strchr(",\"'", *c))
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

/* ---- recording ------------------------------------------------------------------- */

/* A turn: so many tokens from an empty cache. */
struct turn {
    struct measured measured;
    int n_tokens;
};

/* The tokens are any: their cost does not depend on which. */
static enum status decode(void *arg, uint64_t *ns, struct err *err)
{
    const struct turn *turn = arg;
    const int32_t token = 1;
    enum status st = ST_OK;

    (void)ns;
    for (int i = 0; st == ST_OK && i < turn->n_tokens; i++)
        st = slm_eval(turn->measured.m, &token, 1, SLM_LOGITS_LAST, err);
    return st;
}

static enum status take_turn(struct turn *turn, double *seconds, struct err *err)
{
    struct measured_step step = {
        .kind = MEASURED_CALL, .call = decode, .call_arg = turn};
    uint64_t ns = 0;

    slm_truncate(turn->measured.m, 0);
    const enum status st = measured_sample(&turn->measured, &step, &ns, err);
    *seconds = (double)ns * 1e-9;
    return st;
}

/* How many tokens take about turn_s: the fastest of a few tries says. */
static enum status choose_tokens(struct turn *turn, double turn_s, struct err *err)
{
    const int most = slm_info(turn->measured.m)->n_ctx;
    double seconds = 0;

    for (int n = 1;; n *= 2) {
        double least = INFINITY;

        turn->n_tokens = n = n < most ? n : most;
        for (int i = 0; i < 3; i++) {
            if (take_turn(turn, &seconds, err))
                return err->code;
            least = fmin(least, seconds);
        }
        if (least >= turn_s / 2 || n == most) {
            const double wanted = round(n * turn_s / least);

            turn->n_tokens = wanted < 1 ? 1 : wanted > most ? most : (int)wanted;
            return ST_OK;
        }
    }
}

static enum status write_head(FILE *f, const struct gate_trace_plan *plan,
                              int n_threads, int n_tokens, struct err *err)
{
    struct topology *topo = NULL;
    char note[512];
    enum status st = topology_open(&topo, "", err);

    if (st == ST_OK)
        fprintf(f,
                "# %s, %d CPUs; %s, %d thread%s, %d token%s a turn%s%s\n"
                "# milliseconds of each turn, in order; recorded by "
                "bench-research record-trace\n",
                topo->cpu_model, topo->n_cpus, format_path(plan->session.model).text,
                n_threads, n_threads > 1 ? "s" : "", n_tokens, n_tokens > 1 ? "s" : "",
                plan->note ? "; " : "", text_harmless(note, sizeof note, plan->note));
    free(topo);
    return st;
}

static enum status write_turns(FILE *f, struct turn *turn, size_t n_turns,
                               struct err *err)
{
    struct progress progress;
    enum status st = ST_OK;
    double seconds = 0;

    progress_begin(&progress, "turns");
    for (size_t i = 0; st == ST_OK && i < n_turns; i++) {
        st = interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                           : take_turn(turn, &seconds, err);
        if (st == ST_OK && fprintf(f, "%.5g\n", seconds * 1e3) < 0)
            st = err_set_errno(err, ST_IO, "the turns cannot be written");
        progress_update(&progress, (double)(i + 1) / (double)n_turns, NULL);
    }
    progress_end(&progress);
    return st;
}

enum status gate_trace_record(struct gate_trace_plan *plan, struct err *err)
{
    struct slm *m = NULL;
    struct turn turn = {.n_tokens = 0};
    struct path_list inputs = {0};
    struct newfile n = {.f = NULL};
    int n_threads;
    enum status st = session_inputs(&inputs, &plan->session, err);

    if (st == ST_OK)
        st = path_list_check_output(&inputs, plan->path, err);
    path_list_free(&inputs);
    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK)
        st = session_open(&m, &plan->session, &n_threads, err);

    if (st == ST_OK)
        st = measured_borrow(&turn.measured, m, 1, err);
    if (st == ST_OK)
        st = choose_tokens(&turn, plan->turn_s, err);
    if (st == ST_OK)
        st = newfile_open(&n, plan->path, err);
    if (st == ST_OK)
        st = write_head(n.f, plan, n_threads, turn.n_tokens, err);
    if (st == ST_OK)
        st = write_turns(n.f, &turn, plan->n_turns, err);
    if (n.f && st)
        newfile_abort(&n);
    else if (n.f)
        st = newfile_commit(&n, plan->path, err);
    measured_close(&turn.measured);
    slm_close(m);
    return st;
}

#define TURN_S  0.03
#define N_TURNS 2000

enum status research_record_trace(const struct research_options *o, struct err *err)
{
    struct gate_trace_plan plan = {.path = o->path,
                                   .note = o->note,
                                   .session = {.model = o->model},
                                   .n_turns = o->n ? o->n : N_TURNS,
                                   .turn_s = TURN_S};
    long long n_threads = 0;
    enum status st = ST_OK;

    if (plan.n_turns < GATE_TRACE_MIN || plan.n_turns > GATE_TRACE_MAX)
        return err_set(err, ST_USAGE, "--turns %zu is outside %d..%d", plan.n_turns,
                       GATE_TRACE_MIN, GATE_TRACE_MAX);
    if (o->threads)
        st =
            parse_integer(o->threads, "--threads", 1, THREAD_POOL_MAX, &n_threads, err);
    plan.session.setup.n_threads = (int)n_threads;
    return st ? st : gate_trace_record(&plan, err);
}

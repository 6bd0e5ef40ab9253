/* SPDX-License-Identifier: MIT
 *
 * load_level.c - requests at one load, and the row they become
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/stats/stats.h"
#include "harness/serve/load/load_internal.h"
#include "harness/judge/users/users.h"

#define NOTED_S 5 /* until the first request of a level */
#define MORE    3 /* times as many requests where a level was undecided */
/* Times as many arrivals as count: they end with the last of those. */
#define LONGER 10

static void on_progress(void *arg, size_t n_ended, double seconds)
{
    struct load_run *x = arg;
    const double by_n = (double)n_ended / (double)x->n_wanted;
    const double by_time = x->limit_s > 0 ? seconds / x->limit_s : 0;

    progress_update(&x->progress, fmax(by_n, fmin(by_time, 0.99)), x->doing);
}

/* "llama: 4 users"; the name is that of a launched server. */
static void begin_progress(struct load_run *x, const char *what)
{
    snprintf(x->doing, sizeof x->doing, "%s%s%s", x->s->name ? x->s->name : "",
             x->s->name ? ": " : "", what);
    progress_part(&x->progress);
    progress_step(&x->progress);
}

/* How often a number of users may be tried in a round: where they are given, once. */
static int max_tries(const struct load_run *x)
{
    return x->s->users.n || x->s->capacity > 0 ? 1 : 2;
}

static int round_of(const struct load_run *x)
{
    return x->s->round ? x->s->round : 1;
}

/* The first attempt of this round: those of different rounds have different numbers. */
static int first_attempt(const struct load_run *x)
{
    return (round_of(x) - 1) * max_tries(x) + 1;
}

/* The lengths of prompts and answers; those of a file are its own if its lines have
 * them. */
static void describe_lengths(const struct load_run *x, struct row *row)
{
    const struct load_settings *s = x->s;
    const char *slash = s->file ? strrchr(s->file, '/') : NULL;
    const char *name = slash ? slash + 1 : s->file;
    const size_t n = x->prompts.texts ? load_texts_count(x->prompts.texts) : 0;
    const size_t n_long = n ? load_texts_count_lengths(x->prompts.texts) : 0;
    char text[300], own[64];

    load_dist_text(&s->prompt, row->prompt_lengths, sizeof row->prompt_lengths);
    load_dist_text(&s->output, own, sizeof own);
    if (name)
        text_harmless(row->prompt_lengths, sizeof row->prompt_lengths, name);
    if (!n_long)
        snprintf(text, sizeof text, "%s", own);
    else if (n_long == n)
        snprintf(text, sizeof text, "%s", row->prompt_lengths);
    else
        snprintf(text, sizeof text, "%s or %.14s", own, row->prompt_lengths);
    text_harmless(row->output_lengths, sizeof row->output_lengths, text);
}

/* What else the requests are, as "/" and digits; "" for single chats. */
static void kind_of(const struct row *row, char *buf, size_t cap)
{
    uint64_t h = HASH_BEGIN;

    h = hash_add(h, row->sessions, strlen(row->sessions) + 1);
    h = hash_add(h, row->request_fields, strlen(row->request_fields) + 1);
    h = hash_add(h, row->api, strlen(row->api));
    buf[0] = '\0';
    if (*row->sessions || *row->request_fields || *row->api)
        snprintf(buf, cap, "/%08x", (unsigned)(h ^ h >> 32));
}

/* share of the capacity's rate; 0: none was requested. */
static void describe(const struct load_run *x, int n_users, double rate, double share,
                     struct row *row)
{
    const struct load_settings *s = x->s;
    char kind[16]; /* nine characters */

    row_init(row);
    format_now(row->utc, sizeof row->utc);
    row->kind = ROW_LOAD;
    row->attempt = first_attempt(x);
    row->round = round_of(x);
    row_name_build(row);
    text_harmless(row->model, sizeof row->model, x->model);
    text_harmless(row->server_url, sizeof row->server_url, x->base);
    describe_lengths(x, row);
    row->prefix_tokens = s->n_prefix;
    if (x->prompts.api == LOAD_EMBEDDINGS)
        snprintf(row->api, sizeof row->api, "embeddings");
    text_harmless(row->request_fields, sizeof row->request_fields,
                  s->fields ? s->fields : "");
    snprintf(row->sessions, sizeof row->sessions, "%s", s->sessions.text);
    snprintf(row->engine, sizeof row->engine, "%s", s->name ? s->name : "");
    snprintf(row->slo, sizeof row->slo, "%s", s->slo.name);
    row->load_mode = n_users ? LOAD_MODE_CLOSED : LOAD_MODE_OPEN;
    if (n_users)
        row->n_users = n_users;
    else
        row->rate_asked = rate;
    if (!n_users && *row->sessions)
        snprintf(row->arrivals, sizeof row->arrivals, "sessions");
    else if (!n_users && load_texts_rate(x->prompts.texts) > 0)
        snprintf(row->arrivals, sizeof row->arrivals, "trace");
    if (share > 0)
        row->capacity_pct = 100 * share;
    kind_of(row, kind, sizeof kind);
    if (n_users)
        snprintf(row->point, sizeof row->point,
                 "load/%s%s%.20s/p%.12s/o%.12s%.10s/u%hu", row->engine,
                 *row->engine ? "/" : "", row->model, row->prompt_lengths,
                 row->output_lengths, kind, (unsigned short)n_users);
    else
        snprintf(row->point, sizeof row->point,
                 "load/%s%s%.20s/p%.12s/o%.12s%.10s/r%.4g", row->engine,
                 *row->engine ? "/" : "", row->model, row->prompt_lengths,
                 row->output_lengths, kind, rate);
    for (char *at = row->point; (at = strchr(at, '"')); at++)
        *at = '\''; /* tables that know no quotes within quotes hold it */
}

static enum status make_samples(struct load_samples *out, const struct load_result *r,
                                size_t n_warm_up, struct err *err)
{
    out->e2e.ms = calloc(r->n + 1, sizeof *out->e2e.ms);
    out->requests = calloc((r->n + 1) * REQUEST_CELLS, sizeof *out->requests);
    if (!out->e2e.ms || !out->requests)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu times", r->n);
    for (size_t i = n_warm_up; i < r->n; i++) {
        double *cells = &out->requests[out->n_requests++ * REQUEST_CELLS];

        load_request_cells(&r->records[i], cells);
        if (cells[REQUEST_E2E_S] > 0) /* a failed one has none */
            out->e2e.ms[out->e2e.n++] = 1000 * cells[REQUEST_E2E_S];
    }
    return ST_OK;
}

static void add_up(struct load_level *level, const struct load_figures *f)
{
    level->n += f->n;
    level->n_ttft_met += f->n_ttft_met;
    level->n_tpot_met += f->n_tpot_met;
    level->verdict = slo_judge_both(level->n_ttft_met, level->n_tpot_met, level->n);
}

static enum status keep_cells(struct load_run *x, const struct load_samples *s,
                              struct err *err)
{
    const size_t all = x->n_cells + s->n_requests;
    double *more = realloc(x->cells, (all + 1) * REQUEST_CELLS * sizeof *more);

    if (!more)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu times", all);
    x->cells = more;
    memcpy(more + x->n_cells * REQUEST_CELLS, s->requests,
           s->n_requests * REQUEST_CELLS * sizeof *more);
    x->n_cells = all;
    return ST_OK;
}

/* The 90th percentile of a time over all tries. A failed request takes for ever; an
 * answer of one token has no time per token. */
static double p90_of(const struct load_run *x, int cell)
{
    double *v = malloc((x->n_cells + 1) * sizeof *v), out = NAN;
    size_t n = 0;

    for (size_t i = 0; v && i < x->n_cells; i++) {
        const double *cells = &x->cells[i * REQUEST_CELLS];

        if (!isfinite(cells[REQUEST_TTFT_S]))
            v[n++] = INFINITY;
        else if (!isnan(cells[cell]))
            v[n++] = cells[cell];
    }
    if (v) {
        stats_sort(v, n);
        out = load_quantile(v, n, 0.9).value;
    }
    free(v);
    return out;
}

/* Memory's bandwidth at one end of a level, which takes about a second. */
static void read_roof(struct load_run *x, void (*read)(struct load_roof *))
{
    char text[120];

    if (!x->s->roof)
        return;
    snprintf(text, sizeof text, "%s: the memory's bandwidth, about a second", x->doing);
    progress_update(&x->progress, read == load_roof_before ? 0 : 0.99, text);
    read(x->s->roof);
}

/* What the server has counted so far. Error: ST_NO_MEMORY. */
static enum status read_counts(struct load_run *x, struct server_counts *c,
                               struct err *err)
{
    char url[sizeof x->base + 16], *text = NULL;
    int http = 0;
    enum status st = ST_OK;

    server_counts_read(c, "");
    if (x->no_metrics)
        return ST_OK;
    text = malloc(SERVER_COUNTS_MAX_BYTES);
    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for the server's counters");
    snprintf(url, sizeof url, "%s/metrics", x->base);
    st = load_client_get(url, x->target.key, 5, &http, text, SERVER_COUNTS_MAX_BYTES,
                         err);
    x->no_metrics = http != 200;
    if (st == ST_OK && http == 200)
        server_counts_read(c, text);
    free(text);
    return st;
}

static enum status measure(struct load_run *x, struct load_level *level,
                           const struct load_work *work, struct err *err)
{
    struct load_samples samples = {0};
    struct noise before, noise;
    struct server_counts counted, counts;
    struct load_figures f;
    struct load_result r;
    enum status st;

    read_roof(x, load_roof_before);
    st = read_counts(x, &counted, err);
    noise_read(&before, "");
    if (st == ST_OK)
        st = load_client_run(&r, &x->target, work, err);
    if (st)
        return st;
    noise_since(&noise, &before, "");
    st = read_counts(x, &counts, err);
    read_roof(x, load_roof_after);
    x->prompts.n_before += r.n_started;
    if (st == ST_OK)
        st = load_figures_make(&f, &r, work->n_users, &x->s->slo,
                               load_prompts_cold(&x->prompts), err);
    if (st == ST_OK) {
        load_row_fill(&level->row, x->s, &f, &r, &noise);
        server_counts_fill(&level->row, &counted, &counts);
        if (x->s->roof)
            load_roof_note(x->s->roof, &level->row);
        add_up(level, &f);
        /* requests that an interrupt cut off decide nothing about the limits */
        level->row.slo_verdict =
            (int)(r.is_interrupted ? SLO_UNDECIDED : level->verdict);
        st = make_samples(&samples, &r, f.n_warm_up, err);
    }
    if (st == ST_OK)
        st = keep_cells(x, &samples, err);
    level->ttft_p90_s = p90_of(x, REQUEST_VISIBLE_S);
    level->tpot_p90_ms = p90_of(x, REQUEST_TPOT_MS);
    if (st == ST_OK && x->fn)
        st = x->fn(x->arg, &level->row, &samples, err);
    point_samples_free(&samples.e2e);
    free(samples.requests);
    if (st == ST_OK && r.is_interrupted)
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    if (st == ST_OK && r.gave_up)
        st = err_set(err, ST_IO, "%s: %s", x->base,
                     *level->row.detail ? level->row.detail : "no request succeeds");
    load_result_free(&r);
    return st;
}

/* "u4" or "r0.5": the end of a point's name. */
static const char *load_of(const struct row *row)
{
    const char *slash = strrchr(row->point, '/');

    return slash ? slash + 1 : row->point;
}

/* Whether a known row is of the level that *row describes. While the server's model is
 * unknown, any model matches; shares of the capacity's rate are compared with the
 * precision of a row's figures. */
static bool is_of_level(const struct load_run *x, const struct row *known,
                        const struct row *row)
{
    if (known->status != ROW_STATUS_OK || known->kind != ROW_LOAD ||
        known->load_mode != row->load_mode || strcmp(known->engine, row->engine) != 0 ||
        strcmp(known->slo, row->slo) != 0 ||
        strcmp(known->sessions, row->sessions) != 0 ||
        strcmp(known->api, row->api) != 0 ||
        strcmp(known->prompt_lengths, row->prompt_lengths) != 0 ||
        strcmp(known->output_lengths, row->output_lengths) != 0 ||
        (x->model && strcmp(known->model, row->model) != 0))
        return false;
    if (!(row->capacity_pct > 0) || !(known->capacity_pct > 0))
        return !(row->capacity_pct > 0) && !(known->capacity_pct > 0) &&
               !strcmp(load_of(known), load_of(row));
    return fabs(known->capacity_pct - row->capacity_pct) < 0.1 &&
           fabs(known->rate_asked - row->rate_asked) < 0.02 * row->rate_asked;
}

/* The last row of that try of the level, of a run that ended early; NULL: none. */
static const struct row *find_done(const struct load_run *x, const struct row *row,
                                   int64_t attempt)
{
    for (size_t i = x->n_done; i > 0; i--)
        if (x->done[i - 1].attempt == attempt && is_of_level(x, &x->done[i - 1], row))
            return &x->done[i - 1];
    return NULL;
}

/* What is known of the level that its row describes, all tries together; returns which
 * was the last, 0: none. */
static int take_known(const struct load_run *x, struct load_level *level)
{
    const struct row *last = NULL;
    int n_tries = 0;

    for (int i = 0; i < max_tries(x); i++) {
        const struct row *known = find_done(x, &level->row, first_attempt(x) + i);

        if (!known)
            continue;
        last = known;
        n_tries = i + 1;
        level->n += known->n_requests > 0 ? (size_t)known->n_requests : 0;
        level->n_ttft_met += known->n_ttft_met > 0 ? (size_t)known->n_ttft_met : 0;
        level->n_tpot_met += known->n_tpot_met > 0 ? (size_t)known->n_tpot_met : 0;
    }
    if (last) {
        level->row = *last;
        level->verdict = (enum row_slo_verdict)last->slo_verdict;
        level->ttft_p90_s = users_ttft_p90_s(last);
        level->tpot_p90_ms = last->tpot_p90_ms;
    }
    return n_tries;
}

static struct load_level *new_level(struct load_run *x, struct err *err)
{
    struct load_level *level = load_answer_add(x->a);

    x->n_cells = 0;
    if (!level)
        err_set(err, ST_NO_MEMORY, "no memory for a load level");
    return level;
}

/* A level without a measurement is dropped. */
static void drop_empty(struct load_run *x, const struct load_level *level)
{
    x->a->n_levels -= !level->n;
}

/* Users with sessions begin, in a closed loop or, of `rate` a second, in an open one.
 */
static enum status add_sessions(struct load_run *x, struct load_work *work, double rate,
                                double *first_s, struct sessions **out, struct err *err)
{
    const struct session_settings *s = &x->s->sessions;
    enum status st;

    if (!*s->text)
        return ST_OK;
    st = work->n_users
             ? sessions_begin(out, s, &x->prompts, work->n_users, first_s, err)
             : sessions_arrive(out, s, &x->prompts, rate, first_s, &work->n_first, err);
    work->first_s = first_s;
    work->body = sessions_body;
    work->answered = sessions_answered;
    work->body_arg = *out;
    return st;
}

/* One try: what is in *work, and what all tries have. Their number is from 1. */
static enum status run_try(struct load_run *x, struct load_level *level,
                           struct load_work *work, double rate, double share, int try,
                           const char *what, struct err *err)
{
    double first_s[LOAD_MAX_USERS], wait_s = INFINITY;
    struct sessions *sessions = NULL;
    enum status st = load_connect(x, err);

    work->body = load_prompts_body;
    work->body_arg = &x->prompts;
    work->progress = on_progress;
    work->progress_arg = x;
    if (st == ST_OK)
        st = add_sessions(x, work, rate, first_s, &sessions, err);
    if (st == ST_OK) {
        describe(x, work->n_users, rate, share, &level->row);
        level->row.attempt += try - 1;
        x->n_wanted = work->n_wanted;
        x->limit_s = work->limit_s;
        begin_progress(x, what);
        for (int i = 0; sessions && i < work->n_users; i++)
            wait_s = fmin(wait_s, first_s[i]);
        if (wait_s > NOTED_S && isfinite(wait_s))
            text_append(x->doing, sizeof x->doing, ", the first request after %.0f s",
                        wait_s);
        st = measure(x, level, work, err);
    }
    sessions_end(sessions);
    return st;
}

static enum status try_users(struct load_run *x, struct load_level *level, int try,
                             struct err *err)
{
    const int n_users = level->n_users;
    const size_t n = (size_t)x->s->n_requests * (try > 1 ? MORE : 1);
    struct load_work work = {.n_users = n_users,
                             .n_wanted = n + 2 * (size_t)n_users, /* and warm-up */
                             .limit_s = x->s->level_s};
    char what[40];

    snprintf(what, sizeof what, "%d user%s%s", n_users, plural(n_users, "s"),
             try > 1 ? ", again" : "");
    return run_try(x, level, &work, 0, 0, try, what, err);
}

enum status load_level_users(struct load_run *x, int n_users, struct load_level **out,
                             struct err *err)
{
    struct load_level *level = new_level(x, err);
    enum status st = ST_OK;
    int try;

    if (!level)
        return err->code;
    *out = level;
    level->n_users = n_users;
    describe(x, n_users, 0, 0, &level->row);
    for (try = 1 + take_known(x, level);
         try <= max_tries(x) && (try == 1 || level->verdict == SLO_UNDECIDED) && !st;
         try++)
        st = try_users(x, level, try, err);
    if (st)
        drop_empty(x, level);
    return st;
}

static enum status open_loop(struct load_run *x, struct load_level *level, double rate,
                             double share, struct err *err)
{
    const double turns =
        *x->s->sessions.text ? load_dist_mean(&x->s->sessions.turns) : 1;
    const size_t n =
        (size_t)fmax(30, fmin(x->s->n_requests, rate * turns * x->s->level_s));
    const size_t n_at = n * LONGER;
    double *at_s = malloc(n_at * sizeof *at_s);
    struct load_work work = {.at_s = at_s, .n_at = n_at, .n_wanted = n};
    char what[40];
    enum status st;

    if (!at_s)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu times", n_at);
    x->prompts.n_skip = x->prompts.n_before;
    if (!strcmp(level->row.arrivals, "trace"))
        load_texts_times(x->prompts.texts, at_s, n_at, rate);
    else
        load_poisson(at_s, n_at, rate, x->s->seed + (uint64_t)(share * 100));
    snprintf(what, sizeof what, "%.3g %s a second", rate, load_arrivals(&level->row));
    st = run_try(x, level, &work, rate, share, 1, what, err);
    free(at_s);
    return st;
}

enum status load_level_open(struct load_run *x, double rate, double share,
                            struct err *err)
{
    struct load_level *level = new_level(x, err);
    enum status st = ST_OK;

    if (!level)
        return err->code;
    describe(x, 0, rate, share, &level->row);
    if (!take_known(x, level))
        st = open_loop(x, level, rate, share, err);
    if (st)
        drop_empty(x, level);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * users.c - rows of bench load as series and levels
 */
#include "harness/judge/users/users.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/stats/stats.h"

#define LITTLE_SLACK 0.05 /* besides what the ends of the window can do */

bool users_doubts_little(const struct row *row)
{
    const double ends = row->window_s > 0 && isfinite(row->e2e_p50_s)
                            ? row->e2e_p50_s / row->window_s
                            : 0;

    return row->load_mode == LOAD_MODE_CLOSED && row->n_failed <= 0 &&
           fabs(row->little - 1) > LITTLE_SLACK + ends;
}

/* Rows of versions before visible tokens were measured. */
static bool knows_visible(const struct row *row)
{
    return row->n_invisible >= 0;
}

double users_ttft_p90_s(const struct row *row)
{
    return knows_visible(row) ? row->ttft_visible_p90_s : row->ttft_p90_s;
}

/* ---- series ---------------------------------------------------------------------- */

/* Where the requests went: the name of --launch, or the address. */
static const char *server_of(const struct row *row)
{
    const char *slashes = strstr(row->server_url, "://");

    return *row->engine ? row->engine : slashes ? slashes + 3 : row->server_url;
}

void users_name_machine(struct row *row, const char *machine)
{
    char name[sizeof row->server_url];

    snprintf(name, sizeof name, "%.40s on %.48s", server_of(row), machine);
    row->engine[0] = '\0';
    memcpy(row->server_url, name, sizeof name);
}

bool users_same_requests(const struct row *a, const struct row *b)
{
    return !strcmp(a->prompt_lengths, b->prompt_lengths) &&
           !strcmp(a->output_lengths, b->output_lengths) &&
           !strcmp(a->sessions, b->sessions) && !strcmp(a->api, b->api) &&
           !strcmp(a->request_fields, b->request_fields) && !strcmp(a->slo, b->slo) &&
           a->prefix_tokens == b->prefix_tokens;
}

bool users_is_of(const struct users_series *s, const struct row *row)
{
    const struct row *own = s->first;

    return row->kind == ROW_LOAD && row->load_mode == own->load_mode &&
           !strcmp(server_of(row), server_of(own)) && !strcmp(row->model, own->model) &&
           users_same_requests(row, own);
}

static struct users_series *series_of(struct users *u, const struct row *row)
{
    struct err ignored = ERR_INIT;

    for (size_t i = 0; i < u->n; i++)
        if (users_is_of(&u->v[i], row))
            return &u->v[i];
    if (u->n == USERS_MAX_SERIES) {
        u->n_left_out++;
        return NULL;
    }
    struct users_series *s = &u->v[u->n++];

    s->first = row;
    if (slo_parse(&s->slo, row->slo, &ignored))
        s->slo = (struct slo){.name = ""};
    return s;
}

/* Appends a setting if any other series of the server has another value of it. */
static void append_if_varied(struct users *u, size_t i, size_t offset, const char *text)
{
    const char *own = (const char *)u->v[i].first + offset;
    struct users_series *s = &u->v[i];
    bool is_varied = false;

    for (size_t k = 0; k < u->n; k++)
        is_varied |= !strcmp(server_of(u->v[k].first), server_of(s->first)) &&
                     strcmp((const char *)u->v[k].first + offset, own) != 0;
    if (is_varied)
        text_append(s->name, sizeof s->name, ", %s", text);
}

/* Names series of one server by the settings in which any of them differ. */
static void name_series(struct users *u)
{
    for (size_t i = 0; i < u->n; i++) {
        const struct row *own = u->v[i].first;
        bool lengths = false, prefix = false;
        char *name = u->v[i].name;
        const size_t cap = sizeof u->v[i].name;

        for (size_t k = 0; k < u->n; k++) {
            const struct row *r = u->v[k].first;

            if (strcmp(server_of(r), server_of(own)))
                continue;
            prefix |= r->prefix_tokens != own->prefix_tokens;
            lengths |= strcmp(r->prompt_lengths, own->prompt_lengths) ||
                       strcmp(r->output_lengths, own->output_lengths);
        }
        snprintf(name, cap, "%s", server_of(own));
        append_if_varied(u, i, offsetof(struct row, model), own->model);
        if (lengths)
            text_append(name, cap, ", %s + %s tokens", own->prompt_lengths,
                        own->output_lengths);
        if (prefix)
            text_append(name, cap, ", prefix %lld", (long long)own->prefix_tokens);
        append_if_varied(u, i, offsetof(struct row, api),
                         *own->api ? own->api : "chats");
        append_if_varied(u, i, offsetof(struct row, sessions),
                         *own->sessions ? own->sessions : "single requests");
        append_if_varied(u, i, offsetof(struct row, request_fields),
                         *own->request_fields ? own->request_fields : "{}");
        append_if_varied(u, i, offsetof(struct row, slo), own->slo);
    }
}

static int by_name(const void *x, const void *y)
{
    const struct users_series *a = x, *b = y;

    return strcmp(a->name, b->name);
}

/* ---- levels ---------------------------------------------------------------------- */

static struct users_level *make_level(struct users_series *s, int n_users, double rate)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->level[i].n_users == n_users && s->level[i].rate == rate)
            return &s->level[i];
    if (s->n == USERS_MAX_LEVELS)
        return NULL;
    s->level[s->n] = (struct users_level){.n_users = n_users, .rate = rate};
    return &s->level[s->n++];
}

struct users_level *users_level_make(struct users_series *s, int n_users)
{
    return make_level(s, n_users, 0);
}

static int by_load(const void *x, const void *y)
{
    const struct users_level *a = x, *b = y;

    return a->n_users != b->n_users ? a->n_users - b->n_users
                                    : (a->rate > b->rate) - (a->rate < b->rate);
}

static struct users_figure combine(const struct row *const *rows, size_t n,
                                   const struct row_figure *f)
{
    double v[USERS_MAX_ROUNDS], scratch[USERS_MAX_ROUNDS];
    struct users_figure out = {NAN, NAN, NAN};
    size_t n_known = 0;
    bool is_open = false; /* an interval without an upper end */

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(row_at(rows[i], f->mid)))
            continue;
        v[n_known++] = row_at(rows[i], f->mid);
        out.lo = fmin(out.lo, row_at(rows[i], f->lo)); /* passes over a NaN */
        out.hi = fmax(out.hi, row_at(rows[i], f->hi));
        is_open |= !isfinite(row_at(rows[i], f->hi));
    }
    if (is_open)
        out.hi = NAN;
    if (n_known)
        out.v = stats_median(v, n_known, scratch);
    return out;
}

/* A figure without an interval. */
#define ALONE(name)                                             \
    {                                                           \
        offsetof(struct row, name), offsetof(struct row, name), \
            offsetof(struct row, name)                          \
    }

/* rows[n] are those of the level that count, in their order. */
static void fill_level(struct users_level *s, const struct row **rows, size_t n)
{
    static const struct row_figure tok = ROW_FIGURE(tok_per_s);
    static const struct row_figure ttft[2] = {ROW_FIGURE(ttft_p90_s),
                                              ROW_FIGURE(ttft_visible_p90_s)};
    static const struct row_figure tpot = ROW_FIGURE(tpot_p90_ms);
    static const struct row_figure roof = ROW_FIGURE(roof_gbps);
    static const struct row_figure more[USERS_N_MORE] = {
        [USERS_VISIBLE_P50] = ALONE(ttft_visible_p50_s),
        [USERS_FIRST_P50] = ALONE(ttft_p50_s),
        [USERS_FIRST_P90] = ROW_FIGURE(ttft_p90_s),
        [USERS_TURN1_P50] = ALONE(ttft_turn1_p50_s),
        [USERS_TURN1_P90] = ROW_FIGURE(ttft_turn1_p90_s),
        [USERS_LATER_P50] = ALONE(ttft_later_p50_s),
        [USERS_LATER_P90] = ROW_FIGURE(ttft_later_p90_s),
        [USERS_THOUGHTS] = ALONE(reasoning_tokens),
        [USERS_HIT] = ALONE(prefix_hit_pct),
        [USERS_KNOWN] = ALONE(prefix_known_pct),
        [USERS_ACHIEVED] = ALONE(req_per_s),
        [USERS_GOODPUT] = ROW_FIGURE(goodput_per_s),
        [USERS_BACKLOG] = ALONE(backlog_pct),
        [USERS_MET] = ALONE(slo_met_pct)};
    bool is_counted = true;
    size_t n_good = 0;

    for (size_t i = 0; i < n; i++) {
        n_good += row_trust(rows[i]) == ROW_GOOD;
        is_counted &= rows[i]->n_ttft_met >= 0 && rows[i]->n_tpot_met >= 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (is_counted) {
            s->n_requests += (size_t)rows[i]->n_requests;
            s->n_ttft_met += (size_t)rows[i]->n_ttft_met;
            s->n_tpot_met += (size_t)rows[i]->n_tpot_met;
        }
        s->doubts_little |= users_doubts_little(rows[i]);
    }
    s->verdict = is_counted
                     ? slo_judge_both(s->n_ttft_met, s->n_tpot_met, s->n_requests)
                     : (enum row_slo_verdict)rows[n - 1]->slo_verdict;
    s->is_doubtful = !n_good;
    for (size_t i = 0; i < n; i++)
        if (!n_good || row_trust(rows[i]) == ROW_GOOD)
            rows[s->n_rows++] = rows[i];
    s->row = rows[s->n_rows - 1];
    s->tok_per_s = combine(rows, s->n_rows, &tok);
    s->ttft_p90_s = combine(rows, s->n_rows, &ttft[knows_visible(s->row)]);
    s->tpot_p90_ms = combine(rows, s->n_rows, &tpot);
    s->roof_gbps = combine(rows, s->n_rows, &roof);
    for (int i = 0; i < USERS_N_MORE; i++)
        s->more[i] = combine(rows, s->n_rows, &more[i]);
}

/* Every request failed: none of these users is served. */
static bool all_failed(const struct row *r)
{
    return r->status == ROW_STATUS_ERROR && r->n_requests > 0 &&
           r->n_failed == r->n_requests;
}

/* Adds the row to rows[n], in the place of one of the same attempt: if a launch occurs
 * twice, as it was measured again, the later one counts. Returns how many
 * these are then, USERS_MAX_ROUNDS at most. */
static size_t add_row(const struct row **rows, size_t n, const struct row *row)
{
    size_t at = 0;

    while (at < n && rows[at]->attempt != row->attempt)
        at++;
    if (at == USERS_MAX_ROUNDS)
        return n;
    rows[at] = row;
    return at < n ? n : n + 1;
}

/* False: none of its rows counts. */
static bool find_level(struct users_level *s, const struct users *u,
                       const struct users_series *series)
{
    const struct row *rows[USERS_MAX_ROUNDS];
    size_t n = 0;

    for (size_t i = 0; i < u->n_rows; i++)
        if (users_is_of(series, &u->rows[i]) &&
            (s->n_users ? u->rows[i].n_users == s->n_users
                        : row_rate(&u->rows[i]) == s->rate) &&
            (row_trust(&u->rows[i]) != ROW_FAILED || all_failed(&u->rows[i])))
            n = add_row(rows, n, &u->rows[i]);
    if (n)
        fill_level(s, rows, n);
    return n > 0;
}

void users_find_ends(struct users_series *s)
{
    s->carries = s->misses = 0;
    s->undecided = false;
    for (size_t i = 0; i < s->n; i++)
        if (s->level[i].verdict == SLO_MISSES &&
            (!s->misses || s->level[i].n_users < s->misses))
            s->misses = s->level[i].n_users;
    for (size_t i = 0; i < s->n; i++)
        if (s->level[i].verdict == SLO_MEETS && s->level[i].n_users > s->carries &&
            (!s->misses || s->level[i].n_users < s->misses))
            s->carries = s->level[i].n_users;
    for (size_t i = 0; i < s->n; i++)
        s->undecided |= s->level[i].verdict == SLO_UNDECIDED &&
                        s->level[i].n_users > s->carries &&
                        (!s->misses || s->level[i].n_users < s->misses);
}

static void fill_series(struct users_series *s, const struct users *u)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (find_level(&s->level[i], u, s))
            s->level[n++] = s->level[i];
    s->n = n;
    qsort(s->level, s->n, sizeof s->level[0], by_load);
    users_find_ends(s);
}

/* ---- all of it ------------------------------------------------------------------- */

static enum status find(struct users *u, const struct row *rows, size_t n_rows,
                        bool is_open, struct err *err)
{
    const int mode = is_open ? LOAD_MODE_OPEN : LOAD_MODE_CLOSED;
    size_t n = 0;

    *u = (struct users){.rows = rows, .n_rows = n_rows};
    u->v = calloc(USERS_MAX_SERIES, sizeof *u->v);
    if (!u->v)
        return err_set(err, ST_NO_MEMORY, "no memory for the users of %zu rows",
                       n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        const struct row *r = &rows[i];

        if (r->kind != ROW_LOAD || r->load_mode != mode ||
            (is_open ? !(row_rate(r) > 0) : r->n_users < 1 || r->n_users > INT32_MAX))
            continue;
        struct users_series *s = series_of(u, r);

        if (s)
            make_level(s, is_open ? 0 : (int)r->n_users, is_open ? row_rate(r) : 0);
    }
    for (size_t i = 0; i < u->n; i++) {
        fill_series(&u->v[i], u);
        if (u->v[i].n)
            u->v[n++] = u->v[i];
    }
    u->n = n;
    name_series(u);
    qsort(u->v, u->n, sizeof *u->v, by_name);
    return ST_OK;
}

enum status users_find(struct users *u, const struct row *rows, size_t n_rows,
                       struct err *err)
{
    return find(u, rows, n_rows, false, err);
}

enum status users_find_open(struct users *u, const struct row *rows, size_t n_rows,
                            struct err *err)
{
    return find(u, rows, n_rows, true, err);
}

void users_free(struct users *u)
{
    free(u->v);
    *u = (struct users){NULL, 0, 0, NULL, 0};
}

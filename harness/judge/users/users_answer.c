/* SPDX-License-Identifier: MIT
 *
 * users_answer.c - what servers carry, in sentences
 */
#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/judge/users/users.h"

#define LINE_WIDTH 79
#define MORE       "give it more requests, or time for them (--requests, --level-time)"

static const struct users_level *level_of(const struct users_series *s, int n_users)
{
    for (size_t i = 0; i < s->n; i++)
        if (n_users && s->level[i].n_users == n_users)
            return &s->level[i];
    return NULL;
}

bool users_append_times(const struct users_level *level, const char *before,
                        const char *between, char *buf, size_t cap)
{
    const double ttft = level->ttft_p90_s.v, tpot = level->tpot_p90_ms.v;

    if (isfinite(ttft))
        text_append(buf, cap, ttft < 1 ? "%sp90 TTFT %.2f s" : "%sp90 TTFT %.1f s",
                    before, ttft);
    if (isfinite(tpot))
        text_append(buf, cap, "%s%.0f ms a token", isfinite(ttft) ? between : before,
                    tpot);
    return isfinite(ttft) || isfinite(tpot);
}

/* What the fewest users that are too many do: most requests fail, or the first token
 * comes too late, or the others. */
static const char *what_happens(const struct users_level *over)
{
    const struct row *r = over->row;

    if (r->n_failed > 0 && slo_judge((size_t)(r->n_requests - r->n_failed),
                                     (size_t)r->n_requests, SLO_SHARE) == SLO_MISSES)
        return "makes requests fail";
    return over->n_ttft_met < over->n_tpot_met ? "waits" : "slows all down";
}

static const char *ordinal_ending(int n)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};

    return n % 10 > 3 || n / 10 % 10 == 1 ? "th" : endings[n % 10];
}

/* Not even one. */
static void append_none_served(const struct users_series *s,
                               const struct users_level *over, char *buf, size_t cap)
{
    text_append(buf, cap, "Serves no %s", slo_users(&s->slo, 1));
    if (over->row->n_failed > 0)
        text_append(buf, cap, " (with one, %lld of %lld requests fail)",
                    (long long)over->row->n_failed, (long long)over->row->n_requests);
    else if (users_append_times(over, " (with one, ", ", ", buf, cap))
        text_append(buf, cap, ")");
    text_append(buf, cap, ".");
}

void users_append_capacity(const struct users_series *s, char *buf, size_t cap)
{
    const struct users_level *at = level_of(s, s->carries);
    const struct users_level *over = level_of(s, s->misses);

    if (over && s->misses == 1) {
        append_none_served(s, over, buf, cap);
        return;
    }
    if (!at && s->undecided) {
        text_append(buf, cap,
                    "It is undecided whether it can serve any user within %g s to the "
                    "first token and %g ms per token: " MORE,
                    s->slo.ttft_s, s->slo.tpot_ms);
        if (over)
            text_append(buf, cap, "; %d are too many", s->misses);
        text_append(buf, cap, ".");
        return;
    }
    if (at) {
        text_append(buf, cap, "Serves %d %s", s->carries,
                    slo_users(&s->slo, s->carries));
        if (users_append_times(at, " (", ", ", buf, cap))
            text_append(buf, cap, ")");
    } else
        text_append(buf, cap,
                    "No number of users is sure to be served within %g s to the first "
                    "token and %g ms per token",
                    s->slo.ttft_s, s->slo.tpot_ms);
    if (s->undecided && over)
        text_append(buf, cap,
                    "; whether it serves more than that, up to %d, is undecided: " MORE,
                    s->misses - 1);
    else if (s->undecided)
        text_append(buf, cap, "; whether it serves more is undecided: " MORE);
    if (over && s->misses == s->carries + 1)
        text_append(buf, cap, "; the %d%s %s", s->misses, ordinal_ending(s->misses),
                    what_happens(over));
    else if (over)
        text_append(buf, cap, "; %d are too many", s->misses);
    else if (!s->undecided && at)
        text_append(buf, cap, ", the largest number tried");
    text_append(buf, cap, ".");
}

/* ---- several --------------------------------------------------------------------- */

static double max_tok_per_s(const struct users_series *s)
{
    double most = 0;

    for (size_t i = 0; i < s->n; i++)
        most = fmax(most, s->level[i].tok_per_s.v);
    return most;
}

bool users_is_better(const struct users_series *a, const struct users_series *b)
{
    return a->carries > b->carries ||
           (a->carries == b->carries && max_tok_per_s(a) > max_tok_per_s(b));
}

static size_t find_best(const struct users *u)
{
    size_t best = 0;

    for (size_t i = 1; i < u->n; i++)
        if (users_is_better(&u->v[i], &u->v[best]))
            best = i;
    return best;
}

static bool is_alike(const struct users_series *a, const struct users_series *b)
{
    return users_same_requests(a->first, b->first);
}

static void append_capacity(const struct users_series *s, bool is_first, char *buf,
                            size_t cap)
{
    text_append(buf, cap, "%s%s%s", is_first ? "" : ", ", s->name,
                is_first ? " serves" : "");
    if (s->carries)
        text_append(buf, cap, " %d", s->carries);
    else
        text_append(buf, cap, is_first ? " no" : " none");
    if (is_first)
        text_append(buf, cap, " %s", slo_users(&s->slo, s->carries == 1 ? 1 : 2));
    if (s->undecided && !s->carries)
        text_append(buf, cap, " for sure");
    else if (s->undecided)
        text_append(buf, cap, " (more are undecided)");
    else if (!s->misses && s->carries)
        text_append(buf, cap, " (the largest number tried)");
}

static void append_pair(const struct users_pair *p, const char *a, const char *b,
                        char *buf, size_t cap)
{
    text_append(buf, cap, "; at %d user%s %s has %.2f x the tok/s of %s", p->n_users,
                plural(p->n_users, "s"), a, p->ratio, b);
    if (isfinite(p->lo))
        text_append(buf, cap, " [%.2f, %.2f], %zu rounds", p->lo, p->hi, p->n);
    else
        text_append(buf, cap, " (one round, so without an interval)");
    if (p->is_doubtful)
        text_append(buf, cap, ", disturbed");
}

void users_answer(const struct users *u, char *buf, size_t cap)
{
    const size_t best = find_best(u);
    const struct users_series *a = &u->v[best];

    buf[0] = '\0';
    if (!u->n)
        return;
    if (u->n == 1) {
        users_append_capacity(a, buf, cap);
        return;
    }
    append_capacity(a, true, buf, cap);
    for (size_t i = 0; i < u->n; i++)
        if (i != best)
            append_capacity(&u->v[i], false, buf, cap);
    for (size_t i = 0; i < u->n; i++) {
        struct users_pair p = {.n = 0};

        if (i != best && is_alike(a, &u->v[i]) && users_compare_at(a, &u->v[i]))
            users_compare(&p, u, a, &u->v[i], users_compare_at(a, &u->v[i]));
        if (p.n)
            append_pair(&p, a->name, u->v[i].name, buf, cap);
    }
    text_append(buf, cap, ".");
}

static void print_pairs_of(FILE *f, const struct users *u, const struct users_series *a,
                           const struct users_series *b)
{
    bool is_first = true;

    for (size_t i = 0; i < a->n; i++) {
        struct users_pair p;

        users_compare(&p, u, a, b, a->level[i].n_users);
        if (!p.n)
            continue;
        if (is_first)
            fprintf(f, "\ntok/s of %s over %s\n%8s %7s %7s   %-15s\n", a->name, b->name,
                    "users", "rounds", "ratio", "95 % interval");
        is_first = false;
        fprintf(f, "%8d %7zu %7.2f", p.n_users, p.n, p.ratio);
        if (isfinite(p.lo))
            fprintf(f, "   %.2f to %.2f", p.lo, p.hi);
        fprintf(f, "%s\n", p.is_doubtful ? "   disturbed" : "");
    }
}

void users_print_pairs(FILE *f, const struct users *u)
{
    const size_t best = find_best(u);

    for (size_t i = 0; i < u->n; i++)
        if (i != best && is_alike(&u->v[best], &u->v[i]))
            print_pairs_of(f, u, &u->v[best], &u->v[i]);
}

/* ---- a recommendation ------------------------------------------------------------ */

static enum status set_slo(const struct users_wish *q, const char *dir,
                           struct row *rows, size_t *n_rows, struct err *err)
{
    struct samples requests = {0};
    struct slo slo;
    enum status st = slo_parse(&slo, q->slo, err);

    if (st == ST_OK)
        st = requests_read(&requests, dir, err);
    if (st == ST_OK)
        users_set_slo(rows, n_rows, &requests, &slo);
    samples_free(&requests);
    return st;
}

static json_t *choice_json(const struct users_series *s, int n_users, const char *text)
{
    const struct users_level *at = users_level_for(s, n_users);
    const int64_t n_threads = s->first->n_threads;

    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:i, s:i, s:o, s:o, s:o, s:s}",
                     "answer", text, "users", n_users, "slo", s->first->slo, "server",
                     s->name, "model", s->first->model, "n_threads",
                     n_threads > 0 ? json_integer((json_int_t)n_threads) : json_null(),
                     "carries", s->carries, "measured_users", at->n_users, "tok_per_s",
                     json_number(at->tok_per_s.v), "ttft_p90_s",
                     json_number(at->ttft_p90_s.v), "tpot_p90_ms",
                     json_number(at->tpot_p90_ms.v), "command", at->row->command);
}

/* Prints the server for --users, or that no server qualifies. */
static enum status print_choice(FILE *f, json_t **json, const struct users_wish *q,
                                const struct users *u, struct err *err)
{
    const struct users_series *s = users_choose(u, q->n_users);
    char text[1200];

    users_append_choice(u, q->n_users, text, sizeof text);
    if (!s)
        return err_set(err, ST_CHECK, "%s", text);
    if (json) {
        *json = choice_json(s, q->n_users, text);
        return ST_OK;
    }
    text_wrap(f, text, 0, 0, LINE_WIDTH, false);
    if (*users_level_for(s, q->n_users)->row->command)
        fprintf(f, "\nMeasured with:\n%s\n",
                users_level_for(s, q->n_users)->row->command);
    return ST_OK;
}

enum status users_recommend(FILE *f, json_t **json, const struct users_wish *q,
                            const char *dir, struct row *rows, size_t n_rows,
                            struct err *err)
{
    struct users u = {0};
    char text[1200];
    enum status st = q->slo ? set_slo(q, dir, rows, &n_rows, err) : ST_OK;

    if (q->model)
        n_rows = rows_keep(rows, n_rows, "model", q->model);
    if (st == ST_OK)
        st = users_find(&u, rows, n_rows, err);
    if (st == ST_OK && !u.n) {
        st =
            err_set(err, ST_CHECK, "no server was measured%s%s: `bench load` does that",
                    q->model ? " with this model" : "",
                    q->slo ? " with these limits, or with times of each request" : "");
    } else if (st == ST_OK && q->n_users) {
        st = print_choice(f, json, q, &u, err);
    } else if (st == ST_OK) {
        users_answer(&u, text, sizeof text);
        if (json)
            *json = json_pack("{s:s}", "answer", text);
        else
            text_wrap(f, text, 0, 0, LINE_WIDTH, false);
    }
    users_free(&u);
    return st;
}

/* ---- words ----------------------------------------------------------------------- */

#define TEXT_CHARACTERS 60 /* of a model */

/* What a server calls its model, without the folder and ".gguf": some name the file,
 * others what is in it. Returns the length; the text begins at *name. */
static size_t model_of(const struct row *r, const char **name)
{
    static const char end[] = ".gguf";
    size_t len;

    *name = basename(r->model);
    len = strlen(*name);
    if (len > strlen(end) && !strcmp(*name + len - strlen(end), end))
        len -= strlen(end);
    return len;
}

static bool same_model(const struct row *a, const struct row *b)
{
    const char *name_a, *name_b;
    const size_t len_a = model_of(a, &name_a), len_b = model_of(b, &name_b);

    return len_a == len_b && !memcmp(name_a, name_b, len_a);
}

void users_describe(const struct users *u, char *buf, size_t cap)
{
    const struct row *first = u->v[0].first;
    bool one_model = *first->model, same_lengths = true, same_sessions = true;
    char model[sizeof first->model], text[200];
    const char *name;
    const size_t len = model_of(first, &name);

    for (size_t i = 1; i < u->n; i++) {
        const struct row *r = u->v[i].first;

        same_sessions &= !strcmp(r->sessions, first->sessions);
        one_model &= same_model(r, first);
        same_lengths &= !strcmp(r->prompt_lengths, first->prompt_lengths) &&
                        !strcmp(r->output_lengths, first->output_lengths);
    }
    buf[0] = '\0';
    snprintf(model, sizeof model, "%.*s", (int)len, name);
    if (one_model)
        text_append(buf, cap, "%s",
                    text_shorten(text, sizeof text, model, TEXT_CHARACTERS));
    if (same_lengths)
        text_append(buf, cap, "%sprompts %s, answers %s tokens",
                    one_model ? USERS_DOT : "", first->prompt_lengths,
                    first->output_lengths);
    if (same_sessions && *first->sessions)
        text_append(buf, cap, USERS_DOT "conversations %s", first->sessions);
}

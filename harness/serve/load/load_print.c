/* SPDX-License-Identifier: MIT
 *
 * load_print.c - the answer of `bench load` for a person
 */
#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/serve/load/load.h"
#include "harness/judge/users/users.h"

#define LINE_WIDTH 79
#define MAX_ROUNDS 256 /* that a figure is the median of */

/* The median over the levels with n_users, of several rounds; NAN if no level has it.
 */
static double median_p90(const struct load_answer *a, int n_users, bool is_ttft)
{
    double v[MAX_ROUNDS], scratch[MAX_ROUNDS];
    size_t n = 0;

    for (size_t i = 0; i < a->n_levels && n < MAX_ROUNDS; i++) {
        const struct load_level *level = &a->level[i];
        const double p90 = is_ttft ? level->ttft_p90_s : level->tpot_p90_ms;

        if (level->n_users == n_users && isfinite(p90))
            v[n++] = p90;
    }
    return n ? stats_median(v, n, scratch) : NAN;
}

/* The levels as users_append_capacity() takes them. */
static void make_series(struct users_series *out, const struct load_answer *a,
                        const struct load_settings *s)
{
    load_answer_series(a, out);
    out->slo = s->slo;
    for (size_t i = 0; i < out->n; i++) {
        struct users_level *u = &out->level[i];

        u->ttft_p90_s =
            (struct users_figure){median_p90(a, u->n_users, true), NAN, NAN};
        u->tpot_p90_ms =
            (struct users_figure){median_p90(a, u->n_users, false), NAN, NAN};
    }
}

void load_answer_text(const struct load_answer *a, const struct load_settings *s,
                      char *buf, size_t cap)
{
    struct users_series series;

    buf[0] = '\0';
    make_series(&series, a, s);
    if (a->by_ladder)
        users_append_capacity(&series, buf, cap);
    if (a->best >= 0) {
        const struct load_level *best = &a->level[a->best];

        text_append(buf, cap,
                    best->row.tok_per_s < 1000
                        ? "%sThe maximum is %.3g tok/s, with %d user%s."
                        : "%sThe maximum is %.0f tok/s, with %d user%s.",
                    *buf ? " " : "", best->row.tok_per_s, best->n_users,
                    plural(best->n_users, "s"));
    }
    if (s->open_loop && !(a->rate > 0))
        text_append(buf, cap,
                    "%sNo number of users is sure to be served, so there is no open "
                    "loop; --rate sets its rate.",
                    *buf ? " " : "");
}

struct cell {
    char text[24];
};

static struct cell cell(double v, int decimals)
{
    struct cell c = {"-"};

    if (isfinite(v))
        snprintf(c.text, sizeof c.text, "%.*f", decimals, v);
    return c;
}

static void print_level(FILE *f, const struct load_level *s)
{
    const struct row *r = &s->row;
    const bool is_old = r->n_invisible < 0; /* of a version without visible tokens */
    char load[32];

    if (s->n_users)
        snprintf(load, sizeof load, "%d", s->n_users);
    else
        snprintf(load, sizeof load, "%.3g/s", row_rate(r));
    fprintf(f, "%6s %4lld %7s %8s %7s %8s %7s %7s %6s  %s\n", load,
            (long long)r->n_requests, cell(r->tok_per_s, 1).text,
            cell(is_old ? r->ttft_p50_s : r->ttft_visible_p50_s, 3).text,
            cell(users_ttft_p90_s(r), 3).text, cell(r->tpot_p50_ms, 1).text,
            cell(r->tpot_p90_ms, 1).text, cell(r->itl_p99_ms, 1).text,
            cell(r->slo_met_pct, 0).text, row_slo_verdict_text(r));
}

static void append_ttft(char *text, size_t cap, const char *of, double s)
{
    if (isfinite(s))
        text_append(text, cap, "%s %.3g s", of, s);
    else
        text_append(text, cap, "%s unknown (too few)", of);
}

/* What the traffic was, where the table has no column for it. */
static void append_traffic(char *text, size_t cap, const struct row *r)
{
    if (r->reasoning_tokens >= 0.05) {
        text_append(text, cap, "%.0f of %.0f tokens of an answer are thoughts",
                    r->reasoning_tokens, r->output_tokens);
        if (isfinite(r->ttft_p50_s))
            text_append(text, cap, ", the first token comes after %.3g s (p50)",
                        r->ttft_p50_s);
    }
    if (*r->sessions) {
        append_ttft(text, cap, *text ? "; TTFT of first turns" : "TTFT of first turns",
                    r->ttft_turn1_p50_s);
        append_ttft(text, cap, ", of later ones", r->ttft_later_p50_s);
        text_append(text, cap, " (p50)");
    }
    if (r->load_mode == LOAD_MODE_OPEN && isfinite(r->goodput_per_s))
        text_append(text, cap,
                    "%sgoodput %.3g requests a second [%.3g, %.3g], of %.3g that came",
                    *text ? "; " : "", r->goodput_per_s, r->goodput_per_s_lo,
                    r->goodput_per_s_hi, r->req_per_s);
    if (isfinite(r->prefix_known_pct) && isfinite(r->prefix_hit_pct))
        text_append(
            text, cap,
            "%s%.0f %% of the prompts' tokens were cached, and %.0f %% had been "
            "there before",
            *text ? "; " : "", r->prefix_hit_pct, r->prefix_known_pct);
}

static void print_remarks(FILE *f, const struct load_answer *a)
{
    for (size_t i = 0; i < a->n_levels; i++) {
        const struct row *r = &a->level[i].row;
        char load[32], text[800] = "";

        char traffic[300] = "";

        append_traffic(traffic, sizeof traffic, r);
        if (!strcmp(r->validity, "valid") && !*r->detail && !*traffic)
            continue;
        if (a->level[i].n_users)
            snprintf(load, sizeof load, "%d user%s", a->level[i].n_users,
                     plural(a->level[i].n_users, "s"));
        else
            snprintf(load, sizeof load, "%.3g %s a second", row_rate(r),
                     load_arrivals(r));
        text_append(text, sizeof text, "%s: ", load);
        const char *const parts[] = {
            traffic, strcmp(r->validity, "valid") ? r->validity : "", r->detail};
        const char *between = "";

        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
            if (*parts[k]) {
                text_append(text, sizeof text, "%s%s", between, parts[k]);
                between = "; ";
            }
        text_wrap(f, text, 0, 2, LINE_WIDTH, false);
    }
}

/* "Memory gave 24.1 to 25.3 GB/s before and after the load levels." */
static void print_roofs(FILE *f, const struct load_answer *a)
{
    double least = NAN, most = NAN;
    char text[120];

    for (size_t i = 0; i < a->n_levels; i++) {
        least = fmin(least, a->level[i].row.roof_gbps); /* passes over a NaN */
        most = fmax(most, a->level[i].row.roof_gbps);
    }
    if (!(most > 0))
        return;
    snprintf(text, sizeof text,
             "Memory gave %.1f to %.1f GB/s before and after the load levels.", least,
             most);
    text_wrap(f, text, 0, 0, LINE_WIDTH, false);
}

void load_print(FILE *f, const struct load_answer *a, const struct load_settings *s)
{
    double late = 0, cpu = 0;
    char text[600];

    load_answer_text(a, s, text, sizeof text);
    if (*text)
        text_wrap(f, text, 0, 0, LINE_WIDTH, false);
    fprintf(f, "\n%6s %4s %7s %8s %7s %8s %7s %7s %6s  %s\n", "users", "n", "tok/s",
            "TTFT p50", "p90, s", "TPOT p50", "p90, ms", "ITL p99", "met, %", "SLO");
    for (size_t i = 0; i < a->n_levels; i++) {
        print_level(f, &a->level[i]);
        late = fmax(late, a->level[i].row.client_late_p99_ms);
        cpu = fmax(cpu, a->level[i].row.client_cpu_pct);
    }
    putc('\n', f);
    print_remarks(f, a);
    snprintf(text, sizeof text,
             "TTFT is the time to the first visible token, in s; TPOT and ITL are in "
             "ms. SLO %s: 90 %% of the requests within %g s to that token, and 90 %% "
             "within %g ms per token. The client took %.1f %% of a CPU at most and was "
             "%.1f ms late (p99).",
             s->slo.name, s->slo.ttft_s, s->slo.tpot_ms, cpu, late);
    text_wrap(f, text, 0, 0, LINE_WIDTH, false);
    print_roofs(f, a);
}

/* SPDX-License-Identifier: MIT
 *
 * load_print.c - the answer of `bench load` for a person
 */
#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/load/load.h"

#define LINE_WIDTH 79

static const struct load_step *step_of(const struct load_answer *a, int n_users)
{
    for (size_t i = 0; i < a->n_steps; i++)
        if (n_users && a->step[i].n_users == n_users)
            return &a->step[i];
    return NULL;
}

static const char *seconds(char *buf, size_t cap, double s)
{
    if (isfinite(s))
        snprintf(buf, cap, s < 1 ? "%.2f s" : "%.1f s", s);
    else
        snprintf(buf, cap, "not known");
    return buf;
}

/* "interactive use", "2s/200ms": whose limits they are. */
static const char *users_who(const struct load_slo *slo)
{
    return !strcmp(slo->name, "reading")       ? "users who read along"
           : !strcmp(slo->name, "interactive") ? "interactive users"
           : !strcmp(slo->name, "batch")       ? "users who wait for whole answers"
                                               : "users";
}

static const char *one_who(const struct load_slo *slo)
{
    return !strcmp(slo->name, "reading")       ? "user who reads along"
           : !strcmp(slo->name, "interactive") ? "interactive user"
           : !strcmp(slo->name, "batch")       ? "user who waits for whole answers"
                                               : "user";
}

static void say_capacity(const struct load_answer *a, const struct load_settings *s,
                         char *buf, size_t cap)
{
    const struct load_step *at = step_of(a, a->carries);
    const struct load_step *over = step_of(a, a->misses);
    char ttft[32];

    if (at)
        text_append(buf, cap, "Carries %d %s (p90 TTFT %s, %.0f ms a token)",
                    a->carries, a->carries == 1 ? one_who(&s->slo) : users_who(&s->slo),
                    seconds(ttft, sizeof ttft, at->row.ttft_p90_s),
                    at->row.tpot_p90_ms);
    else
        text_append(buf, cap,
                    "No number of users is sure to be carried within %g s to "
                    "the first token and %g ms a token",
                    s->slo.ttft_s, s->slo.tpot_ms);
    if (a->undecided && over)
        text_append(buf, cap,
                    "; whether more than that do, up to %d, is undecided: give it more "
                    "requests",
                    a->misses - 1);
    else if (a->undecided)
        text_append(buf, cap, "; whether more do is undecided: give it more requests");
    if (over && a->misses == a->carries + 1)
        text_append(buf, cap, "; the %d%s %s", a->misses,
                    a->misses == 2   ? "nd"
                    : a->misses == 3 ? "rd"
                                     : "th",
                    over->n_ttft_met < over->n_tpot_met ? "waits" : "slows all down");
    else if (over)
        text_append(buf, cap, "; %d are too many", a->misses);
    else if (!a->undecided && at)
        text_append(buf, cap, ", the most that were tried");
    text_append(buf, cap, ".");
}

void load_answer_text(const struct load_answer *a, const struct load_settings *s,
                      char *buf, size_t cap)
{
    buf[0] = '\0';
    if (a->by_ladder)
        say_capacity(a, s, buf, cap);
    if (a->best >= 0 && isfinite(a->step[a->best].row.tok_per_s))
        text_append(buf, cap, "%sThe most is %.3g tok/s, with %d user%s.",
                    *buf ? " " : "", a->step[a->best].row.tok_per_s,
                    a->step[a->best].n_users, plural(a->step[a->best].n_users, "s"));
}

static const char *cell(char *buf, size_t cap, double v, int decimals)
{
    if (isfinite(v))
        snprintf(buf, cap, "%.*f", decimals, v);
    else
        snprintf(buf, cap, "-");
    return buf;
}

static void print_step(FILE *f, const struct load_step *s)
{
    const struct row *r = &s->row;
    char load[32], cells[7][24];

    if (s->n_users)
        snprintf(load, sizeof load, "%d", s->n_users);
    else
        snprintf(load, sizeof load, "%.3g/s", r->rate_asked);
    fprintf(f, "%8s %5lld %8s %8s %8s %8s %8s %8s %7s  %s\n", load,
            (long long)r->n_requests, cell(cells[0], sizeof cells[0], r->tok_per_s, 1),
            cell(cells[1], sizeof cells[1], r->ttft_p50_s, 3),
            cell(cells[2], sizeof cells[2], r->ttft_p90_s, 3),
            cell(cells[3], sizeof cells[3], r->tpot_p50_ms, 1),
            cell(cells[4], sizeof cells[4], r->tpot_p90_ms, 1),
            cell(cells[5], sizeof cells[5], r->itl_p99_ms, 1),
            cell(cells[6], sizeof cells[6], r->slo_met_pct, 0),
            row_slo_verdict_text(r));
}

static void print_remarks(FILE *f, const struct load_answer *a)
{
    for (size_t i = 0; i < a->n_steps; i++) {
        const struct row *r = &a->step[i].row;
        char load[32], text[400] = "";

        if (!strcmp(r->validity, "valid") && !*r->detail)
            continue;
        if (a->step[i].n_users)
            snprintf(load, sizeof load, "%d user%s", a->step[i].n_users,
                     plural(a->step[i].n_users, "s"));
        else
            snprintf(load, sizeof load, "%.3g requests a second", r->rate_asked);
        text_append(text, sizeof text, "%s: %s%s%s", load,
                    strcmp(r->validity, "valid") ? r->validity : "",
                    strcmp(r->validity, "valid") && *r->detail ? "; " : "", r->detail);
        text_wrap(f, text, 0, 2, LINE_WIDTH, false);
    }
}

void load_print(FILE *f, const struct load_answer *a, const struct load_settings *s)
{
    double late = 0, cpu = 0;
    char text[600];

    load_answer_text(a, s, text, sizeof text);
    if (*text)
        text_wrap(f, text, 0, 0, LINE_WIDTH, false);
    fprintf(f, "\n%8s %5s %8s %8s %8s %8s %8s %8s %7s  %s\n", "users", "n", "tok/s",
            "TTFT p50", "p90, s", "TPOT p50", "p90, ms", "ITL p99", "met, %", "SLO");
    for (size_t i = 0; i < a->n_steps; i++) {
        print_step(f, &a->step[i]);
        late = fmax(late, a->step[i].row.client_late_p99_ms);
        cpu = fmax(cpu, a->step[i].row.client_cpu_pct);
    }
    putc('\n', f);
    print_remarks(f, a);
    snprintf(text, sizeof text,
             "SLO %s: 90 %% of the requests within %g s to the first token, and 90 %% "
             "within %g ms a token. The client took %.1f %% of a CPU at most and was "
             "%.1f ms late (p99).",
             s->slo.name, s->slo.ttft_s, s->slo.tpot_ms, cpu, late);
    text_wrap(f, text, 0, 0, LINE_WIDTH, false);
}

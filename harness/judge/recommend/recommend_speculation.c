/* SPDX-License-Identifier: MIT
 *
 * recommend_speculation.c - a recommendation of speculative decoding, in words
 */
#include "harness/judge/recommend/recommend_choice.h"

#include <math.h>

#include "engine/speculate/speculate_rule.h"
#include "harness/base/format.h"

/* Shares of guesses that are right, for text that repeats little and for drafts that
 * fit. */
#define FEW_RIGHT  0.5
#define MANY_RIGHT 0.8

/* What the row shows of its text: a factor is one where its interval leaves out 1. */
static void add_text(const struct row *r, char *buf, size_t cap)
{
    const bool has_interval = r->spec_speedup_lo > 0;

    if (!(r->spec_accept > 0) && r->spec_guessed != FIELD_NO_INT)
        text_append(buf, cap, "%s on the text %s",
                    r->spec_guessed > 0 ? "has no draft token accepted"
                                        : "finds no drafts",
                    r->spec_text);
    else if (!has_interval || (r->spec_speedup_lo <= 1 && r->spec_speedup_hi >= 1))
        text_append(buf, cap, "shows no difference in speed on the text %s",
                    r->spec_text);
    else
        text_append(buf, cap, "makes this setting %.2f times as fast on the text %s",
                    r->spec_speedup, r->spec_text);
    if (has_interval)
        text_append(buf, cap, " (95 %% interval %.2f to %.2f)", r->spec_speedup_lo,
                    r->spec_speedup_hi);
    else
        text_append(buf, cap, " (x %.2f, no interval)", r->spec_speedup);
}

/* Passes by the steps of several sequences; between two widths on a line, and none that
 * are wider than what was measured. How many were. */
static int find_passes(struct speculate_costs *c, const struct report_rows *p,
                       const struct row *setting)
{
    int n = 0;

    *c = (struct speculate_costs){.pass = {0, 1}};
    for (size_t i = 0; i < p->n; i++) {
        const struct row *r = p->v[i];

        if (r->n_sequences < 2 || r->n_sequences > SPECULATE_MAX + 1 ||
            row_trust(r) != ROW_GOOD || !(r->tok_per_s > 0) ||
            !recommend_same_but_sequences(r, setting))
            continue;
        c->pass[r->n_sequences] =
            (double)r->n_sequences * setting->tok_per_s / r->tok_per_s;
        n++;
    }
    for (int w = 2, below = 1; w <= SPECULATE_MAX + 1; w++) {
        int above = w;

        while (above <= SPECULATE_MAX + 1 && !(c->pass[above] > 0))
            above++;
        if (above > SPECULATE_MAX + 1)
            c->pass[w] = INFINITY;
        else
            c->pass[w] = c->pass[below] + (c->pass[above] - c->pass[below]) *
                                              (w - below) / (above - below);
        below = w;
    }
    return n;
}

static void add_expected(const struct report_rows *p, const struct row *setting,
                         char *buf, size_t cap)
{
    struct speculate_costs c;
    double few, many;

    if (!find_passes(&c, p, setting))
        return;
    few = speculate_gain(&c, FEW_RIGHT);
    many = speculate_gain(&c, MANY_RIGHT);
    if (!(many > 1)) {
        text_append(buf, cap,
                    " Speculative decoding would not make it faster even where %.0f %% "
                    "of guesses are right, by its steps of several sequences.",
                    100 * MANY_RIGHT);
        return;
    }
    c.guess = SPECULATE_DRAFT_SHARE;
    text_append(
        buf, cap,
        " Speculative decoding would make it %.2f times as fast where %.0f %% of "
        "guesses are right, and %.2f times where %.0f %% are, by its steps of "
        "several sequences; by a draft model whose tokens take %.0f %% of the "
        "time %.2f and %.2f times.",
        few, 100 * FEW_RIGHT, many, 100 * MANY_RIGHT, 100 * SPECULATE_DRAFT_SHARE,
        speculate_gain(&c, FEW_RIGHT), speculate_gain(&c, MANY_RIGHT));
}

void recommend_add_speculation(const struct report_rows *p, const struct row *setting,
                               char *buf, size_t cap)
{
    const char *lead = " Speculative decoding (prompt lookup) ";

    for (size_t i = 0; i < p->n; i++) {
        const struct row *r = p->v[i];

        if (r->kind != POINT_SPECULATE || !r->spec_text[0] ||
            row_trust(r) != ROW_GOOD || !(r->spec_speedup > 0) ||
            !report_same_setting(r, setting) || r->n_threads != setting->n_threads)
            continue;
        text_append(buf, cap, "%s", lead);
        add_text(r, buf, cap);
        lead = ", and ";
    }
    if (*lead == ',')
        text_append(buf, cap, ".");
    else
        add_expected(p, setting, buf, cap);
}

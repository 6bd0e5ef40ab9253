/* SPDX-License-Identifier: MIT
 *
 * compare_notes.c - what would change a ranking, and what is not alike in it
 */
#include "harness/judge/compare/compare.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "harness/base/format.h"

/* A first place that is less probable is not sure. */
#define SURE 0.95

/* Floors are found by halving: those that differ by less are the same. */
#define JUST_ABOVE 1.001

__attribute__((format(printf, 2, 3))) static void add_change(struct comparison *c,
                                                             const char *fmt, ...)
{
    va_list ap;

    if (c->n_changes == COMPARE_MAX_NOTES)
        return;
    va_start(ap, fmt);
    vsnprintf(c->changes[c->n_changes++], sizeof c->changes[0], fmt, ap);
    va_end(ap);
}

/* ---- what would change it -------------------------------------------------------- */

/* How many are ranked. */
static size_t n_ranked(const struct comparison *c)
{
    size_t n = 0;

    while (n < c->n && c->v[n].score > 0)
        n++;
    return n;
}

/* A price at which machine i costs as much for a token as the first one. */
static double equal_price(const struct comparison *c, size_t i)
{
    const struct compare_machine *first = &c->v[0], *m = &c->v[i];

    return first->price.per_hour * m->tok_per_s.mid / first->tok_per_s.mid;
}

static void note_prices(struct comparison *c)
{
    const struct compare_machine *first = &c->v[0];
    const size_t n = n_ranked(c);

    if (c->by != COMPARE_COST)
        return;
    if (n > 1)
        add_change(c, "%s stays first up to a price of %.4g %s an hour (now %.4g).",
                   first->name, first->price.per_hour * first->score / c->v[1].score,
                   first->price.currency, first->price.per_hour);
    for (size_t i = 1; i < c->n; i++) {
        const struct compare_machine *m = &c->v[i];

        if (m->none.code)
            continue;
        if (m->price.per_hour > 0)
            add_change(c, "%s is first at a price below %.4g %s an hour (now %.4g).",
                       m->name, equal_price(c, i), first->price.currency,
                       m->price.per_hour);
        else
            add_change(c, "%s has no price; it is first at one below %.4g %s an hour.",
                       m->name, equal_price(c, i), first->price.currency);
    }
}

/* The best of the ranked machines that reach a higher floor than that; NULL: none. */
static const struct compare_machine *next_above(const struct comparison *c,
                                                double floor)
{
    for (size_t i = 0; i < n_ranked(c); i++)
        if (c->v[i].max_floor > floor * JUST_ABOVE)
            return &c->v[i];
    return NULL;
}

/* The highest floor that any other of the ranked machines reaches. */
static double others_floor(const struct comparison *c, const struct compare_machine *m)
{
    double most = 0;

    for (size_t i = 0; i < n_ranked(c); i++)
        if (&c->v[i] != m)
            most = fmax(most, c->v[i].max_floor);
    return most;
}

/* Three digits, and all of those before the point. */
static const char *floor_text(double tok_per_s, char buf[32])
{
    snprintf(buf, 32, tok_per_s < 100 ? "%.3g" : "%.0f", tok_per_s);
    return buf;
}

/* Floors at which the first place goes to another machine. */
static void note_floors(struct comparison *c)
{
    const struct compare_machine *at = n_ranked(c) ? &c->v[0] : NULL, *next;
    char floor[32];

    if (n_ranked(c) < 2)
        return;
    while ((next = next_above(c, at->max_floor)) != NULL) {
        add_change(c,
                   "With --min-tps above %s %s no longer qualifies, and %s is first.",
                   floor_text(at->max_floor, floor), at->name, next->name);
        at = next;
    }
    if (others_floor(c, at) < at->max_floor / JUST_ABOVE)
        add_change(c, "With --min-tps above %s only %s qualifies.",
                   floor_text(others_floor(c, at), floor), at->name);
    add_change(c, "No machine is known to reach more than %s tok/s (--min-tps).",
               floor_text(at->max_floor, floor));
}

static void note_doubt(struct comparison *c)
{
    const size_t n = n_ranked(c);

    if (n > 1 && c->v[0].p_first < SURE)
        add_change(
            c,
            "More launches: so far %s is first with a probability of %.0f %%, %s "
            "with one of %.0f %%.",
            c->v[0].name, 100 * c->v[0].p_first, c->v[1].name, 100 * c->v[1].p_first);
}

/* ---- what is not alike ----------------------------------------------------------- */

/* Columns of the chosen rows, in a reader's words, and the word for an empty cell. */
static const struct {
    const char *field, *words, *none;
} compared[] = {
    {"build", "builds", "not known"},
    {"engine", "programs", "slmbench"},
    {"quant", "quantisations", "not known"},
    {"kv_type", "types of KV cache", "not known"},
    {"kv_window", "windows of the KV cache", "not known"},
    {"prefill_sums", "sums in prefill", "exact"},
    {"residency", "ways to hold weights", "not known"},
    {"placement", "placements", "not known"},
    {"pages", "pages", "not known"},
    {"tuning", "profiles", "not known"},
    {"n_batch", "prefill batches", "not known"},
    {"ctx", "context depths", "not known"},
    {"mem_limit_bytes", "memory limits", "not known"},
    {"cpus_quota", "CPU quotas", "none"},
    {"n_wanted", "samples asked for", "not known"},
    {"budget_s", "time limits", "not known"},
};

/* A cell as it is compared: with the name of a program goes its version. */
static const char *compared_cell(const struct row *r, const struct field *f, char *buf,
                                 size_t cap)
{
    row_cell(r, f, buf, cap);
    if (f == row_field("engine") && *r->engine_version)
        text_append(buf, cap, " %s", r->engine_version);
    return buf;
}

/* Groups of machines by one cell, "X (a, b), Y (c)". False: all have the same. */
static bool append_groups(char *buf, size_t cap, const struct comparison *c,
                          const struct field *f, const char *none)
{
    char cell[ROW_CELL_MAX], other[ROW_CELL_MAX];
    int n_groups = 0;

    for (size_t i = 0; i < c->n; i++) {
        bool seen = false;

        if (c->v[i].none.code)
            continue;
        compared_cell(&c->v[i].rec.best, f, cell, sizeof cell);
        for (size_t k = 0; k < i && !seen; k++)
            seen =
                !c->v[k].none.code &&
                !strcmp(compared_cell(&c->v[k].rec.best, f, other, sizeof other), cell);
        if (seen)
            continue;
        text_append(buf, cap, "%s%s (", n_groups++ ? ", " : "", cell[0] ? cell : none);
        for (size_t k = i, n = 0; k < c->n; k++)
            if (!c->v[k].none.code &&
                !strcmp(compared_cell(&c->v[k].rec.best, f, other, sizeof other), cell))
                text_append(buf, cap, "%s%s", n++ ? ", " : "", c->v[k].name);
        text_append(buf, cap, ")");
    }
    return n_groups > 1;
}

static void note_differences(struct comparison *c)
{
    for (size_t i = 0; i < sizeof compared / sizeof compared[0]; i++) {
        char *text = c->differs[c->n_differs];
        const size_t cap = sizeof c->differs[0];

        if (c->n_differs == COMPARE_MAX_NOTES)
            return;
        snprintf(text, cap, "%s: ", compared[i].words);
        if (append_groups(text, cap, c, row_field(compared[i].field), compared[i].none))
            c->n_differs++;
    }
}

void compare_note(struct comparison *c)
{
    c->n_changes = c->n_differs = 0;
    note_doubt(c);
    note_prices(c);
    note_floors(c);
    note_differences(c);
}

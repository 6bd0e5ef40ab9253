/* SPDX-License-Identifier: MIT
 *
 * compare_print.c - a comparison as a table, as Markdown and as JSON
 */
#include "harness/judge/compare/compare.h"

#include <math.h>

#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/rows/report_rows.h"

#define LINE_WIDTH 79

/* ---- words ----------------------------------------------------------------------- */

struct cell {
    char text[48];
};

/* "8.15 (7.85-8.30)"; "-": not known. */
static struct cell figure_cell(struct compare_figure v, bool range)
{
    struct cell c = {"-"};

    if (isfinite(v.mid))
        snprintf(c.text, sizeof c.text, "%s", report_figure(v.mid).text);
    if (isfinite(v.mid) && range)
        text_append(c.text, sizeof c.text, " (%s-%s)", report_figure(v.lo).text,
                    report_figure(v.hi).text);
    return c;
}

/* The speed in a table; "at least 8.15" of disturbed rows. */
static struct cell speed_cell(const struct compare_machine *m)
{
    struct cell c;

    if (!m->speed_is_bound)
        return figure_cell(m->tok_per_s, true);
    snprintf(c.text, sizeof c.text, "at least %s",
             report_figure(m->tok_per_s.mid).text);
    return c;
}

/* "Q4_0, 2 threads"; with another program's name, and a quota of the sandbox */
static const char *chosen_text(const struct compare_machine *m, char *buf, size_t cap)
{
    const struct row *r = &m->rec.best;

    snprintf(buf, cap, "%s, %lld thread%s", r->quant[0] ? r->quant : r->model,
             (long long)r->n_threads, plural(r->n_threads, "s"));
    if (*r->engine)
        text_append(buf, cap, " of %s", r->engine);
    if (r->cpus_quota > 0)
        text_append(buf, cap, ", CPU quota %g", r->cpus_quota);
    return buf;
}

static struct cell chance_cell(const struct compare_machine *m)
{
    struct cell c = {"-"};

    if (!(m->score > 0) || isnan(m->p_first))
        return c;
    if (m->p_first > 0.999)
        return (struct cell){">99.9 %"};
    if (m->p_first < 0.001)
        return (struct cell){"<0.1 %"};
    snprintf(c.text, sizeof c.text, "%.*f %%", m->p_first > 0.995 || m->p_first < 0.005,
             100 * m->p_first);
    return c;
}

static const char *by_text(enum compare_by by)
{
    static const char *const texts[] = {[COMPARE_COST] =
                                            "the price of a million tokens of answers",
                                        [COMPARE_SPEED] = "decode speed",
                                        [COMPARE_TTFT] = "the time to the first token"};

    return texts[by];
}

/* Why the ranks have no probability, where they have none. */
static void append_doubt(char *buf, size_t cap, const struct comparison *c)
{
    int n = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].is_bound)
            text_append(buf, cap, "%s%.60s", n++ ? ", " : " All rows that count of ",
                        c->v[i].name);
    if (n)
        text_append(buf, cap,
                    " were disturbed: %s may be faster than measured, so ranks have no "
                    "probability. Measure again on a quiet machine.",
                    n > 1 ? "these machines" : "this machine");
}

/* What the table is about, and how far its ranks can be trusted. */
static const char *about(const struct comparison *c, char *buf, size_t cap)
{
    bool priced = false;

    snprintf(buf, cap, "%s at a context depth of %lld", c->model, (long long)c->ctx);
    if (c->n_prompt > 0)
        text_append(buf, cap, ", prompts of %lld tokens", (long long)c->n_prompt);
    text_append(buf, cap, "; ranked by %s.", by_text(c->by));
    for (size_t i = 0; i < c->n; i++)
        priced |= isfinite(c->v[i].cost_out.mid) && !c->v[i].none.code;
    if (priced)
        text_append(buf, cap,
                    " Prices are from %s, of machines that work %.3g %% of the time on "
                    "one sequence.",
                    c->prices_from, 100 * c->utilisation);
    else if (!*c->prices_from)
        text_append(buf, cap, " No prices were given (--price NAME=0.06).");
    append_doubt(buf, cap, c);
    return buf;
}

static const char *currency_of(const struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].price.per_hour > 0)
            return c->v[i].price.currency;
    return "";
}

/* ---- table ----------------------------------------------------------------------- */

#define NAME_WIDTH 24

static void print_head(FILE *f, const struct comparison *c)
{
    const char *currency = currency_of(c);

    fprintf(f, "\n   %-*s %-17s %7s %8s %8s %7s\n", NAME_WIDTH, "", "tok/s", "first",
            currency, currency, "chance");
    fprintf(f, "   %-*s %-17s %7s %8s %8s %7s\n", NAME_WIDTH, "machine",
            "(95 % interval)", "token s", "1M in", "1M out", "of 1st");
}

static void print_line(FILE *f, const struct compare_machine *m, size_t place)
{
    char name[96];

    text_shorten(name, sizeof name, m->name, NAME_WIDTH);
    if (m->none.code) {
        fprintf(f, "   %-*s -\n", NAME_WIDTH, name);
        return;
    }
    if (m->score > 0)
        fprintf(f, "%2zu ", place);
    else
        fputs("   ", f);
    fprintf(f, "%-*s %-17s %7s %8s %8s %7s\n", NAME_WIDTH, name, speed_cell(m).text,
            figure_cell(m->ttft_s, false).text, figure_cell(m->cost_in, false).text,
            figure_cell(m->cost_out, false).text, chance_cell(m).text);
}

static void print_machine(FILE *f, const struct compare_machine *m)
{
    char text[1200] = "", setting[160];

    text_append(text, sizeof text, "%s: %s", m->name, m->cpu);
    if (m->none.code) {
        text_append(text, sizeof text, ": %s", m->none.msg);
    } else {
        text_append(text, sizeof text, "; %s", chosen_text(m, setting, sizeof setting));
        if (m->rec.best_from_ctx >= 0)
            text_append(text, sizeof text, ", estimated from depth %lld",
                        (long long)m->rec.best_from_ctx);
        if (m->price.per_hour > 0)
            text_append(text, sizeof text, "; %.4g %s an hour%s%s%s%s",
                        m->price.per_hour, m->price.currency,
                        m->price.what[0] ? " as " : "", m->price.what,
                        m->price.date[0] ? ", " : "", m->price.date);
        else
            text_append(text, sizeof text, "; no price");
    }
    text_append(text, sizeof text, ".");
    text_wrap(f, text, 0, 2, LINE_WIDTH, false);
}

static void print_servers(FILE *f, const struct comparison *c)
{
    if (!c->n_serves)
        return;
    text_wrap(f, c->users, 0, 0, LINE_WIDTH, false);
    fputs("\nServers, by rows of bench load:\n", f);
    for (int i = 0; i < c->n_serves; i++)
        text_wrap(f, c->serves[i], 0, 2, LINE_WIDTH, false);
    if (c->n)
        putc('\n', f);
}

void compare_print(FILE *f, const struct comparison *c)
{
    char text[1000];

    print_servers(f, c);
    if (!c->n)
        return;
    text_wrap(f, about(c, text, sizeof text), 0, 0, LINE_WIDTH, false);
    print_head(f, c);
    for (size_t i = 0; i < c->n; i++)
        print_line(f, &c->v[i], i + 1);
    fputs("\nMachines:\n", f);
    for (size_t i = 0; i < c->n; i++)
        print_machine(f, &c->v[i]);
    if (c->n_changes)
        fputs("\nWhat would change it:\n", f);
    for (int i = 0; i < c->n_changes; i++)
        text_wrap(f, c->changes[i], 0, 2, LINE_WIDTH, false);
    if (c->n_differs)
        fputs("\nDifferences other than the machines:\n", f);
    for (int i = 0; i < c->n_differs; i++)
        text_wrap(f, c->differs[i], 0, 2, LINE_WIDTH, false);
}

/* ---- Markdown -------------------------------------------------------------------- */

static void print_item(FILE *f, const char *text)
{
    fputs("- ", f);
    markdown_put(f, text);
    putc('\n', f);
}

void compare_print_markdown(FILE *f, const struct comparison *c)
{
    const char *currency = currency_of(c);
    char text[1000];

    if (c->n_serves) {
        markdown_put(f, c->users);
        fputs("\n\n", f);
    }
    for (int i = 0; i < c->n_serves; i++)
        print_item(f, c->serves[i]);
    if (!c->n)
        return;
    if (c->n_serves)
        putc('\n', f);
    markdown_put(f, about(c, text, sizeof text));
    fprintf(
        f,
        "\n\n| | machine | CPU | setting | tok/s (95 %% interval) | first token, s | "
        "1M in%s%s | 1M out%s%s | chance of 1st |\n"
        "|---|---|---|---|---|---|---|---|---|\n",
        *currency ? ", " : "", currency, *currency ? ", " : "", currency);
    for (size_t i = 0; i < c->n; i++) {
        const struct compare_machine *m = &c->v[i];

        if (m->score > 0)
            fprintf(f, "| %zu | ", i + 1);
        else
            fputs("| | ", f);
        markdown_put(f, m->name);
        fputs(" | ", f);
        markdown_put(f, m->cpu);
        fputs(" | ", f);
        if (m->none.code) {
            markdown_put(f, m->none.msg);
            fputs(" | - | - | - | - | - |\n", f);
            continue;
        }
        markdown_put(f, chosen_text(m, text, sizeof text));
        fprintf(f, " | %s | %s | %s | %s | %s |\n", speed_cell(m).text,
                figure_cell(m->ttft_s, true).text, figure_cell(m->cost_in, true).text,
                figure_cell(m->cost_out, true).text, chance_cell(m).text);
    }
    if (c->n_changes)
        fputs("\nWhat would change it:\n\n", f);
    for (int i = 0; i < c->n_changes; i++)
        print_item(f, c->changes[i]);
    if (c->n_differs)
        fputs("\nDifferences other than the machines:\n\n", f);
    for (int i = 0; i < c->n_differs; i++)
        print_item(f, c->differs[i]);
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *machine_json(const struct compare_machine *m, size_t place)
{
    if (m->none.code)
        return json_pack("{s:s, s:s, s:s}", "machine", m->name, "cpu", m->cpu, "none",
                         m->none.msg);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:f, s:o, s:s, s:s, s:o}",
        "machine", m->name, "cpu", m->cpu, "place",
        m->score > 0 ? json_integer((json_int_t)place) : json_null(), "p_first",
        m->score > 0 ? json_number(m->p_first) : json_null(), "is_lower_bound",
        m->speed_is_bound, "tok_per_s",
        json_range(m->tok_per_s.mid, m->tok_per_s.lo, m->tok_per_s.hi), "ttft_s",
        json_range(m->ttft_s.mid, m->ttft_s.lo, m->ttft_s.hi), "cost_in_per_million",
        json_range(m->cost_in.mid, m->cost_in.lo, m->cost_in.hi),
        "cost_out_per_million",
        json_range(m->cost_out.mid, m->cost_out.lo, m->cost_out.hi),
        "max_floor_tok_per_s", m->max_floor, "price_per_hour",
        m->price.per_hour > 0 ? json_real(m->price.per_hour) : json_null(), "currency",
        m->price.currency, "price_of", m->price.what, "recommendation",
        recommend_json(&m->rec));
}

json_t *compare_json(const struct comparison *c)
{
    json_t *machines = json_array(), *changes = json_array(), *differs = json_array();
    json_t *serves = json_array();

    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(machines, machine_json(&c->v[i], i + 1));
    for (int i = 0; i < c->n_changes; i++)
        json_array_append_new(changes, json_string(c->changes[i]));
    for (int i = 0; i < c->n_differs; i++)
        json_array_append_new(differs, json_string(c->differs[i]));
    for (int i = 0; i < c->n_serves; i++)
        json_array_append_new(serves, json_string(c->serves[i]));
    return json_pack("{s:s, s:I, s:I, s:s, s:f, s:s, s:o, s:o, s:o, s:s, s:o}", "model",
                     c->model, "ctx", (json_int_t)c->ctx, "n_prompt",
                     (json_int_t)c->n_prompt, "by", choices_compare_by.name((int)c->by),
                     "utilisation", c->utilisation, "prices", c->prices_from,
                     "machines", machines, "changes", changes, "differs", differs,
                     "users", c->users, "serves", serves);
}

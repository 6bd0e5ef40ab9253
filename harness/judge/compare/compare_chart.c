/* SPDX-License-Identifier: MIT
 *
 * compare_chart.c - cost against speed, a mark for each machine
 */
#include "harness/judge/compare/compare.h"

#include <math.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"

static bool is_drawn(const struct compare_machine *m)
{
    return !m->none.code && isfinite(m->cost_out.mid);
}

/* "Q4_0", "Q4_0 of llama.cpp" */
static const char *chosen_of(const struct row *r, char *buf, size_t cap)
{
    snprintf(buf, cap, "%.24s%s%.24s", r->quant, *r->engine ? " of " : "", r->engine);
    return buf;
}

/* "AMD EPYC, 2 CPUs"; several with such a CPU have their own names behind it. */
static const char *machine_of(const struct comparison *c, size_t i, char *buf,
                              size_t cap)
{
    const struct compare_machine *m = &c->v[i];
    bool is_again = false;

    text_shorten(buf, cap, m->cpu, 34);
    for (size_t k = 0; k < c->n; k++)
        is_again |= k != i && is_drawn(&c->v[k]) && !strcmp(c->v[k].cpu, m->cpu);
    if (is_again)
        text_append(buf, cap, " (%.30s)", m->name);
    return buf;
}

static void put_machine(struct plot *p, const struct comparison *c, size_t i)
{
    const struct compare_machine *m = &c->v[i];
    const int color = (int)p->n_keys;
    char setting[64], machine[120];

    PLOT_NUMBERS(p, (double)(i + 1), m->tok_per_s.mid, m->tok_per_s.lo, m->tok_per_s.hi,
                 m->cost_out.mid, m->cost_out.lo, m->cost_out.hi, m->p_first);
    plot_string(p, plot_keep(p, m->name, 40));
    plot_string(p, chosen_of(&m->rec.best, setting, sizeof setting));
    plot_number(p, color);
    plot_key(p,
             plot_printf(p, "%s: %s",
                         plot_keep(p, machine_of(c, i, machine, sizeof machine), 70),
                         setting),
             plot_marked(color, PLOT_SHAPE, 1.7));
}

static void put_layers(struct plot *p, int n)
{
    struct plot_layer l = {.form = PLOT_INTERVAL,
                           .x = {"lo", 0},
                           .x2 = {"hi", 0},
                           .y = {"cost", 0},
                           .y2 = {"cost", 0},
                           .by = "machine",
                           .n_by = n,
                           .style = plot_stroke(PLOT_OWN, 1.4, PLOT_WHOLE)};

    plot_layer(p, l);
    l.x.column = l.x2.column = "tok_per_s";
    l.y.column = "cost_lo";
    l.y2.column = "cost_hi";
    plot_layer(p, l);
    l.form = PLOT_MARKS;
    l.y.column = "cost";
    l.style = plot_marked(PLOT_OWN, PLOT_SHAPE, 1.7);
    plot_layer(p, l);
}

static struct plot *make_plot(const struct comparison *c)
{
    double speed = 0, cost = 0;
    const char *currency = "";
    char text[512];
    struct plot *p;

    snprintf(text, sizeof text,
             "%s  \xc2\xb7  context depth %lld  \xc2\xb7  95 %% intervals  \xc2\xb7  "
             "machines that work %.3g %% of the time on one sequence",
             c->model, (long long)c->ctx, 100 * c->utilisation);
    p = plot_new(COMPARE_CHART, "What an answer costs, and how fast it comes", text);
    if (!p)
        return NULL;
    plot_columns(p, "place,tok_per_s,lo,hi,cost,cost_lo,cost_hi,p_first,name,setting,"
                    "machine");
    for (size_t i = 0; i < c->n; i++)
        if (is_drawn(&c->v[i])) {
            speed = fmax(speed, c->v[i].tok_per_s.hi);
            cost = fmax(cost, c->v[i].cost_out.hi);
            currency = c->v[i].price.currency;
            put_machine(p, c, i);
        }
    struct plot_panel *a = plot_panel(p, 487, 0, 1.15 * speed, 0, 1.15 * cost);

    a->x.title = "tokens per second, decoding (more is better)";
    a->y.title =
        plot_printf(p, "%s for a million tokens of answers (less is better)", currency);
    put_layers(p, (int)p->n_keys);
    if (*c->origin)
        plot_note(p, c->origin);
    return p;
}

enum status compare_chart(const struct comparison *c, const char *dir,
                          const char *again, bool *drawn, struct err *err)
{
    *drawn = false;
    for (size_t i = 0; i < c->n; i++)
        *drawn |= is_drawn(&c->v[i]);
    if (*drawn)
        return chart_files_draw(make_plot(c), dir, again, err);
    chart_files_remove(dir, COMPARE_CHART);
    return ST_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * gate_simulate_report.c - tables and charts of a simulation
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/stats/stats.h"
#include "research/gate_simulate.h"

#define POWER  "gate_power"
#define RIVALS "gate_rivals"

#define N_SIGMAS (sizeof simulation_sigmas / sizeof simulation_sigmas[0])

/* ---- tables ---------------------------------------------------------------------- */

/* "0.03", "12.5", "99.98", "100": close to either end there are more digits. */
static const char *percent(char buf[16], double share)
{
    const double v = 100 * share;

    snprintf(buf, 16,
             v == 0 || share == 1   ? "%.0f"
             : v < 10 || v >= 99.95 ? "%.2f"
                                    : "%.1f",
             v);
    return buf;
}

/* Rows of one number of metrics: equal builds, and a B that loses just the margin. */
static void print_false_positives(FILE *f, const struct simulation *s, size_t n_metrics)
{
    char a[5][16];

    for (size_t m = 0; m < simulation_machines(s); m++) {
        const struct sim_cell *c =
            simulation_find(s, SIM_OURS, m, SIM_SIGMA, 0, n_metrics);
        const struct sim_cell *at =
            simulation_find(s, SIM_OURS, m, SIM_SIGMA, s->rule.margin, n_metrics);

        if (!c || !at)
            continue;
        const double n = (double)c->n_played;
        fprintf(f, "| %-18s | %5s | %zu | %3zu | %5s | %5s | %5s | %5.1f | %5s |\n",
                simulation_machine(s, m), percent(a[0], c->sigma), n_metrics, c->n_fail,
                percent(a[1], stats_binomial_upper(c->n_fail, c->n_played)),
                percent(a[2], (double)c->n_pass / n),
                percent(a[3], 1 - (double)(c->n_pass + c->n_fail) / n),
                (double)c->n_launches / n,
                percent(a[4], stats_binomial_upper(at->n_fail, at->n_played)));
    }
}

static void print_power_row(FILE *f, const struct simulation *s, size_t machine,
                            double sigma, size_t n_metrics)
{
    double slowdown[SIM_MAX_SLOWDOWNS];
    const size_t n = simulation_slowdowns(s, slowdown);
    const struct sim_cell *slower =
        simulation_find(s, SIM_OURS, machine, sigma, SIM_DETECT, n_metrics);
    char a[16];

    if (!slower)
        return;
    fprintf(f, "| %-18s | %5s | %zu |", simulation_machine(s, machine),
            percent(a, slower->sigma), n_metrics);
    for (size_t i = 1; i < n; i++) {
        const struct sim_cell *c =
            simulation_find(s, SIM_OURS, machine, sigma, slowdown[i], n_metrics);

        fprintf(f, " %5s |", c ? percent(a, sim_cell_rate(c)) : "");
    }
    fprintf(f, " %5.1f |\n", (double)slower->n_launches / (double)slower->n_played);
}

static void print_power(FILE *f, const struct simulation *s)
{
    double slowdown[SIM_MAX_SLOWDOWNS];
    const size_t n = simulation_slowdowns(s, slowdown);

    fprintf(f,
            "\nGates that fail, in percent, when B is slower by (margin %g %%):\n\n"
            "| noise | of a round, %% | metrics |",
            100 * s->rule.margin);
    for (size_t i = 1; i < n; i++)
        fprintf(f, " %g %% |", 100 * slowdown[i]);
    fprintf(f, " launches at %g %% |\n|---|--:|--:|", 100 * SIM_DETECT);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "--:|");
    fputc('\n', f);
    for (size_t m = 0; m < simulation_machines(s); m++) {
        for (size_t i = m < SIM_TRACE ? 0 : N_SIGMAS - 1; i < N_SIGMAS; i++)
            print_power_row(f, s, m, simulation_sigmas[i], 1);
        print_power_row(f, s, m, SIM_SIGMA, SIM_MANY);
    }
}

/* Of both sides. */
static double mean_turns(const struct sim_cell *c)
{
    return 4 * SIM_ROUNDS * (double)c->n_launches / (double)c->n_played;
}

static void print_rivals(FILE *f, const struct simulation *s)
{
    fprintf(f,
            "\nAlarms of equal builds / of a B that is %g %% slower, in percent; the "
            "others see %d turns of A, then %d of B:\n\n| noise | of a round, %% |",
            100 * SIM_DETECT, SIM_RIVAL_TURNS, SIM_RIVAL_TURNS);
    for (int rule = 0; rule < SIM_N_RULES; rule++)
        fprintf(f, " %s |", simulation_rule(rule));
    fprintf(f, " its turns, mean |\n|---|--:|--:|");
    for (int rule = 0; rule < SIM_N_RULES; rule++)
        fprintf(f, "--:|");
    fputc('\n', f);
    for (size_t m = 0; m < simulation_machines(s); m++) {
        char a[2][16];

        fprintf(f, "| %-18s | %5s |", simulation_machine(s, m),
                percent(a[0], simulation_sigma(s, m, SIM_SIGMA)));
        for (int rule = 0; rule < SIM_N_RULES; rule++) {
            const struct sim_cell *equal = simulation_find(s, rule, m, SIM_SIGMA, 0, 1);
            const struct sim_cell *slower =
                simulation_find(s, rule, m, SIM_SIGMA, SIM_DETECT, 1);

            fprintf(f, " %5s / %5s |", equal ? percent(a[0], sim_cell_rate(equal)) : "",
                    slower ? percent(a[1], sim_cell_rate(slower)) : "");
            if (rule == SIM_OURS && equal && slower)
                fprintf(f, " %4.0f / %4.0f |", mean_turns(equal), mean_turns(slower));
        }
        fputc('\n', f);
    }
}

/* What all cells together say, in a sentence or two. */
static void print_summary(FILE *f, const struct simulation *s)
{
    double worst = 0, least = 1;
    size_t n = 0;

    for (size_t i = 0; i < s->n_cells; i++) {
        const struct sim_cell *c = &s->cell[i];

        if (c->rule != SIM_OURS || c->n_played < s->n_gates)
            continue;
        n++;
        if (c->slowdown == 0)
            worst = fmax(worst, stats_binomial_upper(c->n_fail, c->n_played));
        if (fabs(c->slowdown - SIM_DETECT) < 1e-12 && c->sigma < SIM_SIGMA + 1e-12)
            least = fmin(least, sim_cell_rate(c));
    }
    if (n == 0)
        return;
    fprintf(
        f,
        "\nOf equal builds at most %.3g %% fail on any machine (upper 95 %% bound). "
        "A slowdown of %g %% is seen by %.4g %% of the gates at least, where a "
        "round's noise is %g %% or less.\n",
        100 * worst, 100 * SIM_DETECT, 100 * least, 100 * SIM_SIGMA);
}

void simulation_print(FILE *f, const struct simulation *s)
{
    fprintf(f,
            "%zu gates of each kind, seed %llu, margin %g %%, %d rounds a launch, at "
            "most %d launches.\n\nEqual builds:\n\n"
            "| noise | of a round, %% | metrics | false failures | upper 95 %% bound, "
            "%% | pass, %% | inconclusive, %% | launches | failures at the margin, "
            "bound, %% |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            s->n_gates, (unsigned long long)s->seed, 100 * s->rule.margin, SIM_ROUNDS,
            GATE_MAX_LAUNCHES);
    print_false_positives(f, s, 1);
    print_false_positives(f, s, SIM_MANY);
    print_power(f, s);
    print_rivals(f, s);
    for (size_t i = 0; i < s->n_traces; i++)
        fprintf(f, "%s- %s: %zu turns; %s\n", i ? "" : "\nRecorded:\n\n",
                s->trace[i].name, s->trace[i].n, s->trace[i].about);
    print_summary(f, s);
}

/* ---- power ----------------------------------------------------------------------- */

/* One line of points: mean, least and most of machines [from, to). */
static void put_curve(struct plot *p, const struct simulation *s, size_t series,
                      size_t from, size_t to, double sigma)
{
    double slowdown[SIM_MAX_SLOWDOWNS];
    const size_t n = simulation_slowdowns(s, slowdown);

    for (size_t i = 0; i < n; i++) {
        double sum = 0, lo = 1, hi = 0;

        for (size_t m = from; m < to; m++) {
            const struct sim_cell *c =
                simulation_find(s, SIM_OURS, m, sigma, slowdown[i], 1);
            const double rate = c ? sim_cell_rate(c) : NAN;

            sum += rate;
            lo = fmin(lo, rate);
            hi = fmax(hi, rate);
        }
        PLOT_NUMBERS(p, (double)series, 100 * slowdown[i],
                     100 * sum / (double)(to - from), 100 * lo, 100 * hi);
    }
}

/* Curves that coincide stay visible: each later one is thinner, with smaller marks,
 * upon the one before. */
static void put_curve_layers(struct plot *p, const struct simulation *s)
{
    const int n_bands = (int)N_SIGMAS, n = n_bands + (int)s->n_traces;
    struct plot_layer l = {.form = PLOT_BAND,
                           .x = {"slowdown_percent", 0},
                           .y = {"least", 0},
                           .y2 = {"most", 0},
                           .by = "series",
                           .n_by = n_bands,
                           .style = plot_filled(PLOT_OWN, 0.22)};

    plot_layer(p, l);
    l.by = NULL;
    l.y.column = "fail_percent";
    for (int i = 0; i < n; i++) {
        const bool is_band = i < n_bands;
        const int upon = is_band ? n_bands - 1 - i : n - 1 - i;
        struct plot_style style = {.color = i,
                                   .width = is_band ? 1.8 + 2.2 * upon : 2,
                                   .dash = is_band ? PLOT_WHOLE : PLOT_SHORT};

        l.only[0] = (struct plot_only){"series", i, i};
        l.form = PLOT_LINE;
        l.style = style;
        plot_layer(p, l);
        l.form = PLOT_MARKS;
        style.mark = PLOT_SHAPE;
        style.size = 1.2 + (is_band ? 0.75 : 0.45) * upon;
        l.style = style;
        plot_layer(p, l);
        if (is_band)
            plot_key(
                p, plot_printf(p, "noise of a round %g %%", 100 * simulation_sigmas[i]),
                style);
        else
            plot_key(p,
                     plot_printf(p, "%s (%.1f %%)", s->trace[i - n_bands].name,
                                 100 * gate_trace_noise(&s->trace[i - n_bands])),
                     style);
    }
}

static struct plot *power_plot(const struct simulation *s)
{
    double slowdown[SIM_MAX_SLOWDOWNS];
    const size_t n = simulation_slowdowns(s, slowdown);
    const double margin = 100 * s->rule.margin;
    char text[200];
    struct plot *p;

    snprintf(text, sizeof text,
             "%zu gates a point, margin %g %%, 1 metric; bands: all %d invented noises",
             s->n_gates, margin, (int)SIM_TRACE);
    p = plot_new(POWER, "How often a gate fails a build that is slower", text);
    if (!p)
        return NULL;
    plot_columns(p, "series,slowdown_percent,fail_percent,least,most");
    for (size_t i = 0; i < N_SIGMAS; i++)
        put_curve(p, s, i, 0, SIM_TRACE, simulation_sigmas[i]);
    for (size_t i = 0; i < s->n_traces; i++)
        put_curve(p, s, N_SIGMAS + i, SIM_TRACE + i, SIM_TRACE + i + 1, SIM_SIGMA);
    struct plot_panel *a =
        plot_panel(p, 487, -0.15, 100 * slowdown[n - 1] + 0.15, -3, 103);

    a->x.title = "true slowdown of B, %";
    a->x.no_grid = true;
    a->y.title = "gates that fail, %";
    plot_across(p, 0, true, margin, false, plot_stroke(PLOT_GREY, 1.4, PLOT_SHORT));
    plot_words(p, 0, (struct plot_at){margin, false}, (struct plot_at){0.96, true}, -6,
               PLOT_GREY, "margin");
    put_curve_layers(p, s);
    return p;
}

/* ---- rivals ---------------------------------------------------------------------- */

/* The last one is ours. */
static struct plot_style rival_style(int rule)
{
    return (struct plot_style){.color = rule == SIM_N_RULES - 1 ? PLOT_INK : rule,
                               .mark =
                                   rule == SIM_N_RULES - 1 ? PLOT_DIAMOND : PLOT_SHAPE,
                               .size = 1.5};
}

static void put_rivals(struct plot *p, const struct simulation *s)
{
    plot_columns(p, "series,row,false_percent,seen_percent,rule,machine,place");
    for (int rule = 0; rule < SIM_N_RULES; rule++)
        for (size_t m = 0; m < simulation_machines(s); m++) {
            const struct sim_cell *equal = simulation_find(s, rule, m, SIM_SIGMA, 0, 1);
            const struct sim_cell *slower =
                simulation_find(s, rule, m, SIM_SIGMA, SIM_DETECT, 1);

            PLOT_NUMBERS(p, rule, (double)m, equal ? 100 * sim_cell_rate(equal) : NAN,
                         slower ? 100 * sim_cell_rate(slower) : NAN);
            plot_string(p, simulation_rule(rule));
            plot_string(p, simulation_machine(s, m));
            /* rules of one row stand one above the other */
            plot_number(p, (double)m +
                               (rule - (SIM_N_RULES - 1) / 2.0) * 0.8 / SIM_N_RULES);
        }
}

/* Equal builds above, a slower one below. */
static void put_rival_panel(struct plot *p, const struct simulation *s, bool is_slower)
{
    const size_t n = simulation_machines(s);
    const int panel = p->n_panels;
    struct plot_panel *a = plot_panel(p, 34, -2, 102, (double)n - 0.5, -0.5);

    a->y.has_names = true;
    a->y.title = is_slower
                     ? plot_printf(p, "B slower by %g %%: alarms, %%", 100 * SIM_DETECT)
                     : "equal builds: false alarms, %";
    for (size_t m = 0; m < n; m++)
        plot_tick(p, &a->y, (double)m, simulation_machine(s, m));
    for (size_t m = 1; m < n; m++)
        plot_across(p, panel, false, (double)m - 0.5, true,
                    plot_stroke(PLOT_FAINT, 1, PLOT_WHOLE));
    for (int rule = 0; rule < SIM_N_RULES; rule++)
        plot_layer(p, (struct plot_layer){
                          .panel = panel,
                          .form = PLOT_MARKS,
                          .x = {is_slower ? "seen_percent" : "false_percent", 0},
                          .y = {"place", 0},
                          .only = {{"series", rule, rule}},
                          .style = rival_style(rule)});
}

static struct plot *rivals_plot(const struct simulation *s)
{
    char text[200];
    struct plot *p;

    snprintf(text, sizeof text,
             "%zu comparisons a point; invented noises have %g %% of a round; the "
             "others' rules see %d turns of A, then %d of B",
             s->n_gates, 100 * SIM_SIGMA, SIM_RIVAL_TURNS, SIM_RIVAL_TURNS);
    p = plot_new(RIVALS,
                 "How often each rule alarms: at equal builds, and at a slower one",
                 text);
    if (!p)
        return NULL;
    put_rivals(p, s);
    put_rival_panel(p, s, false);
    put_rival_panel(p, s, true);
    for (int rule = 0; rule < SIM_N_RULES; rule++)
        plot_key(p, simulation_rule(rule), rival_style(rule));
    return p;
}

enum status simulation_charts(const struct simulation *s, const char *dir,
                              struct err *err)
{
    char again[300];

    snprintf(again, sizeof again, "bench-research gates --output %.250s", dir);
    const enum status st = chart_files_draw(power_plot(s), dir, again, err);

    return st ? st : chart_files_draw(rivals_plot(s), dir, again, err);
}

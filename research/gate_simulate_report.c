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

/* ---- tables ------------------------------------------------------------------- */

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
    double slowdown[SIM_MOST_SLOWDOWNS];
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
    double slowdown[SIM_MOST_SLOWDOWNS];
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

/* ---- power -------------------------------------------------------------------- */

/* One line of points: mean, least and most of machines [from, to). */
static void write_curve(FILE *f, const struct simulation *s, int series, size_t from,
                        size_t to, double sigma)
{
    double slowdown[SIM_MOST_SLOWDOWNS];
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
        fprintf(f, "%d", series);
        chart_file_number(f, 100 * slowdown[i]);
        chart_file_number(f, 100 * sum / (double)(to - from));
        chart_file_number(f, 100 * lo);
        chart_file_number(f, 100 * hi);
        fputc('\n', f);
    }
}

static enum status write_power(const struct simulation *s, const char *dir,
                               struct err *err)
{
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, POWER, "csv", err);

    if (!f)
        return err->code;
    fprintf(f, "series,slowdown_percent,fail_percent,least,most\n");
    for (size_t i = 0; i < N_SIGMAS; i++)
        write_curve(f, s, (int)i, 0, SIM_TRACE, simulation_sigmas[i]);
    for (size_t i = 0; i < s->n_traces; i++)
        write_curve(f, s, (int)(N_SIGMAS + i), SIM_TRACE + i, SIM_TRACE + i + 1,
                    SIM_SIGMA);
    return chart_file_finish(&c, err);
}

static enum status draw_power(const struct simulation *s, const char *dir,
                              const char *again, struct err *err)
{
    double slowdown[SIM_MOST_SLOWDOWNS];
    const size_t n = simulation_slowdowns(s, slowdown);
    char text[200];
    struct chart_file c;
    FILE *f;

    if (write_power(s, dir, err) || !(f = chart_file_create(&c, dir, POWER, "gp", err)))
        return err->code;
    snprintf(text, sizeof text,
             "%zu gates a point, margin %g %%, 1 metric; bands: all %d invented noises",
             s->n_gates, 100 * s->rule.margin, (int)SIM_TRACE);
    chart_file_head(f, POWER, "How often a gate fails a build that is slower", text);
    fprintf(f, "n_bands = %zu\nn_series = %zu\nmargin = %.6g\narray series[%zu]\n",
            N_SIGMAS, N_SIGMAS + s->n_traces, 100 * s->rule.margin,
            N_SIGMAS + s->n_traces);
    for (size_t i = 0; i < N_SIGMAS + s->n_traces; i++) {
        if (i < N_SIGMAS)
            snprintf(text, sizeof text, "noise of a round %g %%",
                     100 * simulation_sigmas[i]);
        else
            snprintf(text, sizeof text, "%s (%.1f %%)", s->trace[i - N_SIGMAS].name,
                     100 * gate_trace_noise(&s->trace[i - N_SIGMAS]));
        fprintf(f, "series[%zu] = ", i + 1);
        gnuplot_quote(f, text);
        fputc('\n', f);
    }
    fprintf(f, "x_min = 0\nx_max = %.6g\ny_min = 0\ny_max = 100\nlog_y = 0\n\n",
            100 * slowdown[n - 1]);
    return chart_file_draw(&c, again, err);
}

/* ---- rivals ------------------------------------------------------------------- */

static enum status write_rivals(const struct simulation *s, const char *dir,
                                struct err *err)
{
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, RIVALS, "csv", err);

    if (!f)
        return err->code;
    fprintf(f, "series,row,false_percent,seen_percent,rule,machine\n");
    for (int rule = 0; rule < SIM_N_RULES; rule++)
        for (size_t m = 0; m < simulation_machines(s); m++) {
            const struct sim_cell *equal = simulation_find(s, rule, m, SIM_SIGMA, 0, 1);
            const struct sim_cell *slower =
                simulation_find(s, rule, m, SIM_SIGMA, SIM_DETECT, 1);

            fprintf(f, "%d,%zu", rule, m);
            chart_file_number(f, equal ? 100 * sim_cell_rate(equal) : NAN);
            chart_file_number(f, slower ? 100 * sim_cell_rate(slower) : NAN);
            chart_file_text(f, simulation_rule(rule));
            chart_file_text(f, simulation_machine(s, m));
            fputc('\n', f);
        }
    return chart_file_finish(&c, err);
}

static enum status draw_rivals(const struct simulation *s, const char *dir,
                               const char *again, struct err *err)
{
    const size_t n = simulation_machines(s);
    char text[200];
    struct chart_file c;
    FILE *f;

    if (write_rivals(s, dir, err) ||
        !(f = chart_file_create(&c, dir, RIVALS, "gp", err)))
        return err->code;
    snprintf(text, sizeof text,
             "%zu comparisons a point; invented noises have %g %% of a round; the "
             "others' rules see %d turns of A, then %d of B",
             s->n_gates, 100 * SIM_SIGMA, SIM_RIVAL_TURNS, SIM_RIVAL_TURNS);
    chart_file_head(f, RIVALS,
                    "How often each rule alarms: at equal builds, and at a slower one",
                    text);
    fprintf(f, "n_series = %d\narray series[%d]\n", SIM_N_RULES, SIM_N_RULES);
    for (int rule = 0; rule < SIM_N_RULES; rule++) {
        fprintf(f, "series[%d] = ", rule + 1);
        gnuplot_quote(f, simulation_rule(rule));
        fputc('\n', f);
    }
    fprintf(f, "n_rows = %zu\narray rows[%zu]\n", n, n);
    for (size_t m = 0; m < n; m++) {
        fprintf(f, "rows[%zu] = ", m + 1);
        gnuplot_quote(f, simulation_machine(s, m));
        fputc('\n', f);
    }
    fprintf(f,
            "sharp = %.6g\nx_min = -2\nx_max = 102\ny_min = %zu.6\ny_max = -0.6\n"
            "log_y = 0\n\n",
            100 * SIM_DETECT, n - 1);
    return chart_file_draw(&c, again, err);
}

enum status simulation_charts(const struct simulation *s, const char *dir,
                              struct err *err)
{
    char again[300];

    snprintf(again, sizeof again, "bench-research gates --output %.250s", dir);
    const enum status st = draw_power(s, dir, again, err);

    return st ? st : draw_rivals(s, dir, again, err);
}

/* SPDX-License-Identifier: MIT
 *
 * gate_simulate.c - `bench-research gates`: which cells there are, and what is asked
 */
#include "research/gate_simulate.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/thread_pool.h"
#include "harness/base/program.h"
#include "harness/base/dirs.h"
#include "harness/base/parse.h"
#include "harness/base/newfile.h"
#include "harness/base/textfile.h"
#include "harness/decide/gate/gate_options.h"
#include "research/research.h"

#define N_GATES 10000
#define SEED    1

const double simulation_sigmas[3] = {0.005, 0.01, SIM_SIGMA};

/* ---- cells ----------------------------------------------------------------------- */

size_t simulation_machines(const struct simulation *s)
{
    return SIM_TRACE + s->n_traces;
}

const char *simulation_machine(const struct simulation *s, size_t machine)
{
    return machine < SIM_TRACE ? sim_noise_name((enum sim_noise)machine)
                               : s->trace[machine - SIM_TRACE].name;
}

double simulation_sigma(const struct simulation *s, size_t machine, double sigma)
{
    return machine < SIM_TRACE ? sigma
                               : gate_trace_noise(&s->trace[machine - SIM_TRACE]);
}

const char *simulation_rule(int rule)
{
    return rule == SIM_OURS ? "bench gate" : rival_name((enum rival)rule);
}

size_t simulation_slowdowns(const struct simulation *s, double v[SIM_MAX_SLOWDOWNS])
{
    static const double all[] = {0, 0.01, 0.02, 0.025, 0.03, 0.04, 0.05, 0.07, 0.1};
    const size_t n_all = sizeof all / sizeof all[0];
    const double margin = s->rule.margin;
    size_t n = 0;

    for (size_t i = 0; i < n_all; i++) {
        if (i && margin > all[i - 1] && margin < all[i])
            v[n++] = margin;
        v[n++] = all[i];
    }
    if (margin > all[n_all - 1])
        v[n++] = margin;
    return n;
}

/* Others' rules are asked for false alarms and for one slowdown. */
static void add_cells(struct simulation *s, int rule, size_t machine, double sigma,
                      size_t n_metrics)
{
    double slowdown[SIM_MAX_SLOWDOWNS];
    const size_t n = simulation_slowdowns(s, slowdown);

    for (size_t i = 0; i < n; i++)
        if (rule == SIM_OURS || slowdown[i] == 0 || slowdown[i] == SIM_DETECT)
            s->cell[s->n_cells++] =
                (struct sim_cell){.rule = rule,
                                  .machine = machine,
                                  .sigma = simulation_sigma(s, machine, sigma),
                                  .slowdown = slowdown[i],
                                  .n_metrics = n_metrics};
}

enum status simulation_plan(struct simulation *s, struct err *err)
{
    const size_t n_machines = simulation_machines(s);
    const size_t n_sigmas = sizeof simulation_sigmas / sizeof simulation_sigmas[0];

    s->n_cells = 0;
    s->cell = malloc(n_machines * (n_sigmas + 1 + RIVAL_N) * SIM_MAX_SLOWDOWNS *
                     sizeof *s->cell);
    if (!s->cell)
        return err_set(err, ST_NO_MEMORY, "no memory for a simulation");
    for (size_t m = 0; m < n_machines; m++) {
        for (size_t i = m < SIM_TRACE ? 0 : n_sigmas - 1; i < n_sigmas; i++)
            add_cells(s, SIM_OURS, m, simulation_sigmas[i], 1);
        add_cells(s, SIM_OURS, m, SIM_SIGMA, SIM_MANY);
        for (int rule = 0; rule < RIVAL_N; rule++)
            add_cells(s, rule, m, SIM_SIGMA, 1);
    }
    return ST_OK;
}

void simulation_free(struct simulation *s)
{
    for (size_t i = 0; i < s->n_traces; i++)
        gate_trace_free(&s->trace[i]);
    free(s->trace);
    free(s->cell);
}

const struct sim_cell *simulation_find(const struct simulation *s, int rule,
                                       size_t machine, double sigma, double slowdown,
                                       size_t n_metrics)
{
    const double its_sigma = simulation_sigma(s, machine, sigma);

    for (size_t i = 0; i < s->n_cells; i++) {
        const struct sim_cell *c = &s->cell[i];

        if (c->rule == rule && c->machine == machine && c->n_metrics == n_metrics &&
            fabs(c->sigma - its_sigma) < 1e-12 &&
            fabs(c->slowdown - slowdown) < 1e-12 && c->n_played == s->n_gates)
            return c;
    }
    return NULL;
}

double sim_cell_rate(const struct sim_cell *c)
{
    return (double)c->n_fail / (double)c->n_played;
}

/* ---- traces ---------------------------------------------------------------------- */

static enum status read_trace(struct simulation *s, const char *path, struct err *err)
{
    struct gate_trace *v = realloc(s->trace, (s->n_traces + 1) * sizeof *v);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %.400s", path);
    s->trace = v;
    if (gate_trace_read(&v[s->n_traces], path, err))
        return err->code;
    for (size_t i = 0; i < s->n_traces; i++)
        if (!strcmp(v[i].name, v[s->n_traces].name)) {
            gate_trace_free(&v[s->n_traces]);
            return err_set(err, ST_USAGE,
                           "two traces are called %s; rename one of the files",
                           v[i].name);
        }
    s->n_traces++;
    return ST_OK;
}

static int is_text(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot && dot > entry->d_name && !strcmp(dot, ".txt");
}

/* Those that come with the program; none is no error. */
static enum status read_shipped(struct simulation *s, struct err *err)
{
    char dir[4096], path[sizeof dir + sizeof((struct dirent *)0)->d_name];
    struct dirent **entry;
    enum status st = ST_OK;

    if (!data_file_find(dir, sizeof dir, "traces", ""))
        return ST_OK;
    const int n = scandir(dir, &entry, is_text, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s%s", dir, entry[i]->d_name);
        if (st == ST_OK)
            st = read_trace(s, path, err);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    return st;
}

enum status simulation_read_traces(struct simulation *s, const struct str_list *traces,
                                   struct err *err)
{
    enum status st = ST_OK;

    if (traces->n == 0)
        return read_shipped(s, err);
    for (size_t i = 0; i < traces->n && st == ST_OK; i++)
        st = read_trace(s, traces->v[i], err);
    return st;
}

/* ---- the command ----------------------------------------------------------------- */

static enum status parse_options(struct simulation *s, const struct research_options *o,
                                 struct err *err)
{
    long long n_threads = sysconf(_SC_NPROCESSORS_ONLN);
    enum status st = ST_OK;

    if (o->n > 10000000)
        return err_set(err, ST_USAGE, "--gates %llu is more than ten million",
                       (unsigned long long)o->n);
    if (o->threads)
        st = parse_count(o->threads, "--threads", "", 1, THREAD_POOL_MAX, &n_threads,
                         err);
    if (o->margin && st == ST_OK)
        st = parse_percent(o->margin, "--margin", 1e-4, 0.5, &s->rule.margin, err);
    s->n_threads = n_threads < 1 ? 1 : (int)n_threads;
    s->n_gates = o->n ? o->n : N_GATES;
    s->seed = o->seed ? o->seed : SEED;
    return st;
}

/* An equal or barely slower B that fails too often is what must not be. */
static enum status judge(const struct simulation *s, struct err *err)
{
    for (size_t i = 0; i < s->n_cells; i++) {
        const struct sim_cell *c = &s->cell[i];

        if (c->rule == SIM_OURS && c->slowdown == 0 &&
            sim_cell_rate(c) > s->rule.alpha_fail)
            return err_set(err, ST_CHECK,
                           "%.2f %% of the gates of equal builds failed (%s, %zu "
                           "metrics); %.2g %% is the most that may",
                           100 * sim_cell_rate(c), simulation_machine(s, c->machine),
                           c->n_metrics, 100 * s->rule.alpha_fail);
    }
    return ST_OK;
}

static enum status keep_tables(const struct simulation *s, const char *dir,
                               struct err *err)
{
    char path[4096];
    struct newfile n;
    enum status st;

    snprintf(path, sizeof path, "%s/gate_simulation.md", dir);
    st = newfile_replace(&n, path, err);
    if (st)
        return st;
    simulation_print(n.f, s);
    return newfile_commit(&n, path, err);
}

enum status research_gates(const struct research_options *o, struct err *err)
{
    struct simulation s = {.rule = gate_rule_default()};
    enum status st = parse_options(&s, o, err);

    if (st == ST_OK)
        st = simulation_read_traces(&s, &o->traces, err);
    if (st == ST_OK)
        st = simulation_plan(&s, err);
    if (st == ST_OK && o->out)
        st = dirs_make(o->out, err);
    if (st == ST_OK)
        st = simulation_play(&s, o->out, err);
    if (st == ST_OK || st == ST_INTERRUPTED)
        simulation_print(stdout, &s);
    if (st == ST_OK && o->out)
        st = keep_tables(&s, o->out, err);
    if (st == ST_OK && o->out && !o->no_charts)
        st = simulation_charts(&s, o->out, err);
    if (st == ST_OK)
        st = judge(&s, err);
    simulation_free(&s);
    return st;
}

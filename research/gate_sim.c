/* SPDX-License-Identifier: MIT
 *
 * gate_sim.c - invented machines and the gates on them
 */
#include "research/gate_sim.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "research/variates.h"

static const char *const names[SIM_N_NOISES] = {
    [SIM_GAUSSIAN] = "gaussian",     [SIM_HEAVY] = "heavy-tailed",
    [SIM_AR1] = "autocorrelated",    [SIM_FREQUENCY] = "two frequencies",
    [SIM_LAUNCH] = "launch offsets", [SIM_BURSTS] = "steal bursts",
    [SIM_DRIFT] = "drift",           [SIM_TRACE] = "recorded",
};

const char *sim_noise_name(enum sim_noise noise)
{
    return names[noise];
}

/* ---- noise ----------------------------------------------------------------------- */

/* Three degrees of freedom, scaled to a standard deviation of 1. */
static double student(uint64_t *random)
{
    double squares = 0;

    for (int i = 0; i < 3; i++) {
        const double z = random_normal(random);

        squares += z * z;
    }
    return random_normal(random) / sqrt(squares);
}

void sim_machine_start(struct sim_machine *m, enum sim_noise noise, double sigma,
                       const struct sim_trace *trace, uint64_t seed)
{
    *m = (struct sim_machine){
        .noise = noise, .sigma = sigma, .trace = trace, .random = seed};
    m->memory = random_normal(&m->random);
    m->fast = random_bits(&m->random) & 1;
    if (noise == SIM_TRACE) {
        assert(trace && trace->n >= 8);
        m->trace_at = random_bits(&m->random) % trace->n;
    }
    m->n_turns = random_bits(&m->random) % 1000; /* where the wave stands */
    sim_machine_launch(m);
}

void sim_machine_launch(struct sim_machine *m)
{
    for (int side = 0; side < 2; side++)
        m->offset[side] =
            m->noise == SIM_LAUNCH ? m->sigma / 2 * random_normal(&m->random) : 0;
}

static double burst(struct sim_machine *m)
{
    if (m->burst == 0 && random_uniform(&m->random) < 0.04) {
        m->burst = 1;
        while (random_uniform(&m->random) < 0.7)
            m->burst++;
        m->burst_log = log(1.1 + random_uniform(&m->random));
    }
    if (m->burst == 0)
        return 0;
    m->burst--;
    return m->burst_log;
}

double sim_machine_turn(struct sim_machine *m, int side)
{
    const double sigma = m->sigma;
    const double at = (double)m->n_turns++;

    switch (m->noise) {
    case SIM_HEAVY:
        return sigma * student(&m->random);
    case SIM_AR1:
        m->memory = 0.9 * m->memory + sqrt(1 - 0.81) * random_normal(&m->random);
        return 2 * sigma * m->memory + sigma / 2 * random_normal(&m->random);
    case SIM_FREQUENCY:
        m->fast ^= random_uniform(&m->random) < 0.1;
        return (m->fast ? 0 : 0.06) + sigma / 2 * random_normal(&m->random);
    case SIM_LAUNCH:
        return m->offset[side] + sigma * sqrt(0.5) * random_normal(&m->random);
    case SIM_BURSTS:
        return burst(m) + sigma / 2 * random_normal(&m->random);
    case SIM_DRIFT:
        return 0.001 * at + 0.05 * sin(at / 6) + sigma / 2 * random_normal(&m->random);
    case SIM_TRACE:
        m->trace_at = (m->trace_at + 1) % m->trace->n;
        return m->trace->log_time[m->trace_at];
    case SIM_GAUSSIAN:
    case SIM_N_NOISES:
        break;
    }
    return sigma * random_normal(&m->random);
}

/* ---- gates ----------------------------------------------------------------------- */

/* B's speed over A's in one round. */
static double play_round(struct sim_machine *m, double slower, uint64_t *random)
{
    const int first = (int)(random_bits(random) & 1);
    const int side[4] = {first, !first, !first, first};
    double sum = 0;

    for (int i = 0; i < 4; i++) {
        const double t = sim_machine_turn(m, side[i]);

        sum += side[i] ? -t - slower : t;
    }
    return sum / 2;
}

static void play_launch(struct gate_series *s, struct sim_machine *m,
                        const struct sim_gate *g, double slower, uint64_t *random)
{
    sim_machine_launch(m);
    for (size_t r = 0; r < g->rounds_per_launch; r++)
        s->v[s->n_launches][r] = play_round(m, slower, random);
    s->n_rounds[s->n_launches++] = g->rounds_per_launch;
}

static enum status analyse(enum gate_verdict *verdict, const struct sim_gate *g,
                           const struct gate_series *s, struct err *err)
{
    const struct gate_series *of[GATE_MAX_METRICS];

    for (size_t i = 0; i < g->n_metrics; i++)
        of[i] = &s[i];
    return gate_judge(verdict, &g->rule, NULL, of, g->n_metrics, NULL, err);
}

enum status sim_gate_play(enum gate_verdict *verdict, size_t *n_launches,
                          const struct sim_gate *g, enum sim_noise noise, double sigma,
                          const struct sim_trace *trace, uint64_t seed, struct err *err)
{
    struct gate_series s[GATE_MAX_METRICS];
    struct sim_machine m[GATE_MAX_METRICS];
    size_t n = 0;

    assert(g->n_metrics >= 1 && g->n_metrics <= GATE_MAX_METRICS);
    assert(g->rounds_per_launch >= 1 && g->rounds_per_launch <= GATE_MAX_ROUNDS);
    for (size_t i = 0; i < g->n_metrics; i++) {
        s[i].n_launches = 0;
        sim_machine_start(&m[i], noise, sigma, trace, random_bits(&seed));
    }
    *verdict = GATE_OPEN;
    for (size_t k = 0; *verdict == GATE_OPEN && gate_interim_at(k, g->rule.n_interim);
         k++) {
        if (gate_interim_at(k, g->rule.n_interim) > g->max_launches)
            break;
        for (; n < gate_interim_at(k, g->rule.n_interim); n++)
            for (size_t i = 0; i < g->n_metrics; i++)
                play_launch(&s[i], &m[i], g, i ? 0 : -log1p(-g->slowdown), &seed);
        const enum status st = analyse(verdict, g, s, err);
        if (st)
            return st;
    }
    if (*verdict == GATE_OPEN)
        *verdict = GATE_UNCLEAR;
    if (n_launches)
        *n_launches = n;
    return ST_OK;
}

bool sim_rival_play(enum rival rival, size_t n, double slowdown, enum sim_noise noise,
                    double sigma, const struct sim_trace *trace, uint64_t seed)
{
    double time[2][128];
    struct sim_machine m;

    assert(n <= 128);
    sim_machine_start(&m, noise, sigma, trace, seed);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < n; i++)
            time[side][i] = exp(sim_machine_turn(&m, side)) / (side ? 1 - slowdown : 1);
    return rival_alarm(rival, time[0], time[1], n, seed);
}

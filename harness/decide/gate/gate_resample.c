/* SPDX-License-Identifier: MIT
 *
 * gate_resample.c - recorded launches, drawn again
 */
#include "harness/decide/gate/gate_rule.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/random.h"
#include "harness/base/interrupt.h"

#define LARGEST   0.9
#define PRECISION 0.001

/* Launch i of the record, with a sign, becomes the next of a gate. */
static void draw(struct gate_series *out, const struct gate_record *record, size_t i,
                 double sign, size_t metric, double shift)
{
    for (size_t m = 0; m < record->n_metrics; m++) {
        const struct gate_series *s = &record->series[m];
        const size_t at = out[m].n_launches++;

        out[m].n_rounds[at] = s->n_rounds[i];
        for (size_t r = 0; r < s->n_rounds[i]; r++)
            out[m].v[at][r] = sign * s->v[i][r] + (m == metric ? shift : 0);
    }
}

/* As gate_ab.c does it: where the budget ends between two interim analyses, the next
 * comes early.
 */
static enum status play(enum gate_verdict *verdict, size_t *n,
                        const struct gate_record *record, struct gate_series *s,
                        size_t most, size_t metric, double shift, uint64_t random,
                        struct err *err)
{
    const struct gate_series *of[GATE_MAX_METRICS];
    struct gate_rule rule = record->rule;

    for (size_t m = 0; m < record->n_metrics; m++) {
        s[m].n_launches = 0;
        of[m] = &s[m];
    }
    *n = 0;
    *verdict = GATE_OPEN;
    rule.n_interim = gate_n_interim(most);
    for (size_t k = 0; *verdict == GATE_OPEN && k < rule.n_interim; k++) {
        const size_t at = gate_interim_at(k, rule.n_interim),
                     until = at < most ? at : most;

        for (; *n < until; ++*n) {
            const uint64_t bits = random_bits(&random);

            draw(s, record, (bits >> 1) % record->series[0].n_launches,
                 bits & 1 ? 1 : -1, metric, shift);
        }
        const enum status st = gate_judge(verdict, &rule, record->margin, of,
                                          record->n_metrics, NULL, err);
        if (st)
            return st;
    }
    return ST_OK;
}

enum status gate_resample(struct gate_chances *c, const struct gate_record *record,
                          size_t n_gates, size_t max_launches, size_t metric,
                          double slowdown, uint64_t seed, struct err *err)
{
    struct gate_series *s = malloc(GATE_MAX_METRICS * sizeof *s);
    struct gate_chances out = {.n_gates = n_gates};
    enum status st = ST_OK;

    assert(record->n_metrics >= 1 && record->series[0].n_launches >= 1);
    assert(max_launches >= 1 && max_launches <= GATE_MAX_LAUNCHES);
    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory for gates");
    for (size_t i = 0; i < n_gates && st == ST_OK; i++) {
        enum gate_verdict verdict;
        size_t n;

        st = play(&verdict, &n, record, s, max_launches, metric, log1p(-slowdown),
                  random_bits(&seed), err);
        out.n_failed += verdict == GATE_FAIL;
        out.n_passed += verdict == GATE_PASS;
        out.launches += (double)n / (double)n_gates;
    }
    free(s);
    if (st == ST_OK)
        *c = out;
    return st;
}

enum status gate_resample_min_slowdown(double *slowdown,
                                       const struct gate_record *record, size_t n_gates,
                                       size_t max_launches, size_t metric,
                                       double probability, uint64_t seed,
                                       struct err *err)
{
    double lo = 0, hi = LARGEST;
    bool largest = true;

    /* the largest first: where that is not detected, nothing is */
    for (double s = LARGEST; hi - lo > PRECISION; s = (lo + hi) / 2) {
        struct gate_chances c;
        const enum status st =
            gate_resample(&c, record, n_gates, max_launches, metric, s, seed, err);

        if (st)
            return st;
        if (interrupted())
            return err_set(err, ST_INTERRUPTED, "interrupted");
        const bool seen = (double)c.n_failed >= probability * (double)n_gates;
        if (largest && !seen) {
            *slowdown = NAN;
            return ST_OK;
        }
        largest = false;
        *(seen ? &hi : &lo) = s;
    }
    *slowdown = hi;
    return ST_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * point_tell.c - the lines that a measuring child writes (point_child.h)
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "harness/point/point_child_impl.h"
#include "harness/point/point_profile.h"

#define NOISE_NS 2000000000u /* noise so far is told every 2 s */

void point_tell(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

void point_tell_row(struct point_child *c)
{
    point_tell(json_pack("{s:o}", "row", row_json(&c->row)));
    point_tell(json_pack("{s:o}", "facts", point_facts_json(&c->facts)));
}

void point_tell_phase(struct point_child *c, const char *phase, double fraction)
{
    c->phase_told_ns = clock_ns();
    point_tell(json_pack("{s:s, s:f}", "phase", phase, "fraction", fraction));
}

int point_tell_load(void *arg, uint64_t done, uint64_t total)
{
    struct point_child *c = arg;

    if (clock_ns() - c->phase_told_ns > 100000000u)
        point_tell_phase(c, "load", total ? (double)done / (double)total : 1);
    return 0;
}

void point_tell_samples(struct point_child *c)
{
    if (c->n_told == c->n_ms)
        return;
    printf("{\"s\":[");
    for (size_t i = c->n_told; i < c->n_ms; i++)
        printf("%s%.6f", i > c->n_told ? "," : "", c->ms[i]);
    printf("]}\n");
    fflush(stdout);
    c->n_told = c->n_ms;
}

void point_tell_noise(struct point_child *c)
{
    struct noise now, d;

    noise_read(&now, "");
    noise_diff(&d, &c->noise_begin, &now);
    point_tell(json_pack("{s:o}", "noise", point_noise_json(&d)));
}

void point_tell_life(struct point_child *c)
{
    const uint64_t now = clock_ns();

    if (now - c->noise_told_ns <= NOISE_NS)
        return;
    point_tell_noise(c);
    c->noise_told_ns = now;
}

enum status point_tell_profile(const struct point_child *c, struct err *err)
{
    struct slm_profile *from = malloc(sizeof *from);
    struct point_profile *p = malloc(sizeof *p);
    double sum = 0;

    if (!from || !p) {
        free(from);
        free(p);
        return err_set(err, ST_NO_MEMORY, "no memory for a profile");
    }
    for (size_t i = 0; i < c->n_ms; i++)
        sum += c->ms[i];
    slm_profile_read(c->model, from);
    point_profile_make(p, from, c->n_ms, c->n_ms ? sum / (double)c->n_ms : 0,
                       c->int8_gops, c->f32_gops);
    point_tell(json_pack("{s:o}", "profile", point_profile_json(p)));
    free(from);
    free(p);
    return ST_OK;
}

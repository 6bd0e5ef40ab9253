/* SPDX-License-Identifier: MIT
 *
 * worker_report.c - the messages of a measuring process
 */
#include <stddef.h>
#include <stdio.h>

#include "engine/base/clock.h"
#include "harness/measure/worker/worker.h"

#define SAMPLES_NS  50000000u   /* samples reach the other side within this */
#define NOISE_NS    2000000000u /* noise so far is reported as often */
#define PROGRESS_NS 100000000u

/* Once a message is lost none follows: the other side would take what it hears for all
 * there is. */
void worker_send(json_t *object)
{
    if (object && !ferror(stdout)) {
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
    }
    json_decref(object);
}

void worker_report_phase(struct worker_reports *r, const char *phase, double fraction)
{
    r->phase_ns = clock_ns();
    worker_send(json_pack("{s:s, s:f}", "phase", phase, "fraction", fraction));
}

void worker_report_progress(struct worker_reports *r, const char *phase,
                            double fraction)
{
    if (clock_ns() - r->phase_ns > PROGRESS_NS)
        worker_report_phase(r, phase, fraction);
}

/* ---- samples -------------------------------------------------------------------- */

void worker_begin_samples(struct worker_reports *r)
{
    noise_read(&r->noise_begin, "");
    r->n_ms = 0;
    r->samples_ns = r->noise_ns = clock_ns();
}

static void report_samples(struct worker_reports *r)
{
    if (!r->n_ms)
        return;
    printf("{\"ms\":[");
    for (size_t i = 0; i < r->n_ms; i++)
        printf("%s%.6f", i ? "," : "", r->ms[i]);
    printf("]}\n");
    fflush(stdout);
    r->n_ms = 0;
}

void worker_report_sample(struct worker_reports *r, double ms)
{
    const uint64_t now = clock_ns();

    r->ms[r->n_ms++] = ms;
    if (r->n_ms < sizeof r->ms / sizeof r->ms[0] && now - r->samples_ns <= SAMPLES_NS)
        return;
    report_samples(r);
    r->samples_ns = now;
}

static void report_noise(struct worker_reports *r)
{
    struct noise d;

    noise_since(&d, &r->noise_begin, "");
    worker_send(json_pack("{s:o}", "noise", worker_noise_json(&d)));
}

void worker_heartbeat(struct worker_reports *r)
{
    const uint64_t now = clock_ns();

    if (now - r->noise_ns <= NOISE_NS)
        return;
    report_noise(r);
    r->noise_ns = now;
}

void worker_end_samples(struct worker_reports *r)
{
    report_noise(r);
    report_samples(r);
}

/* ---- noise ---------------------------------------------------------------------- */

/* clang-format off */
static const struct { const char *key; size_t offset; } noise_keys[] = {
    {"wall_ns", offsetof(struct noise, wall_ns)},
    {"steal_ns", offsetof(struct noise, steal_ns)},
    {"our_steal_ns", offsetof(struct noise, our_steal_ns)},
    {"our_busy_ns", offsetof(struct noise, our_busy_ns)},
    {"busy_ns", offsetof(struct noise, busy_ns)},
    {"self_ns", offsetof(struct noise, self_ns)},
    {"wait_ns", offsetof(struct noise, wait_ns)},
    {"n_involuntary", offsetof(struct noise, n_involuntary)},
    {"n_major_faults", offsetof(struct noise, n_major_faults)},
    {"n_minor_faults", offsetof(struct noise, n_minor_faults)},
    {"throttled_ns", offsetof(struct noise, throttled_ns)},
    {"n_throttled", offsetof(struct noise, n_throttled)},
    {"n_refaults", offsetof(struct noise, n_refaults)},
    {"pressure_ns", offsetof(struct noise, pressure_ns)},
};
static const struct { const char *key; size_t offset; } noise_counts[] = {
    {"n_cpus", offsetof(struct noise, n_cpus)},
    {"n_our_cpus", offsetof(struct noise, n_our_cpus)},
    {"n_threads", offsetof(struct noise, n_threads)},
};
/* clang-format on */

json_t *worker_noise_json(const struct noise *noise)
{
    json_t *object = json_object();

    for (size_t i = 0; i < sizeof noise_keys / sizeof noise_keys[0]; i++) {
        const void *field = (const char *)noise + noise_keys[i].offset;

        json_object_set_new(object, noise_keys[i].key,
                            json_integer((json_int_t) * (const uint64_t *)field));
    }
    for (size_t i = 0; i < sizeof noise_counts / sizeof noise_counts[0]; i++) {
        const void *field = (const char *)noise + noise_counts[i].offset;

        json_object_set_new(object, noise_counts[i].key,
                            json_integer(*(const int *)field));
    }
    return object;
}

void worker_noise_from_json(struct noise *noise, const json_t *object)
{
    for (size_t i = 0; i < sizeof noise_keys / sizeof noise_keys[0]; i++) {
        const json_t *value = json_object_get(object, noise_keys[i].key);
        void *field = (char *)noise + noise_keys[i].offset;

        if (json_is_integer(value))
            *(uint64_t *)field = (uint64_t)json_integer_value(value);
    }
    for (size_t i = 0; i < sizeof noise_counts / sizeof noise_counts[0]; i++) {
        const json_t *value = json_object_get(object, noise_counts[i].key);
        void *field = (char *)noise + noise_counts[i].offset;

        if (json_is_integer(value))
            *(int *)field = (int)json_integer_value(value);
    }
}

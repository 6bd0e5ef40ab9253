/* SPDX-License-Identifier: MIT
 *
 * worker_report.c - the messages of a measuring process, and what they have of its
 * model and its memory
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/sysfile.h"
#include "harness/measure/worker/messages.h"
#include "harness/measure/worker/worker.h"

#define SAMPLES_NS  50000000u   /* samples reach the other side within this */
#define NOISE_NS    2000000000u /* noise so far is reported as often */
#define PROGRESS_NS 100000000u

/* After a lost message none is sent: the parent would take what it receives for all
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

/* ---- samples --------------------------------------------------------------------- */

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

/* ---- an open model, and memory --------------------------------------------------- */

const char *prefetch_of_model(const struct slm *m, char *buf, size_t cap)
{
    struct slm_tuning tuning;

    slm_get_tuning(m, &tuning);
    *buf = '\0';
    for (int i = 0; i < KERN_N_FMT; i++) {
        const enum kern_format fmt = (enum kern_format)i;
        const struct kern_prefetch p = tuning.prefetch[fmt];

        if (!slm_prefetches(m, fmt))
            continue;
        text_append(buf, cap, "%s%s ", *buf ? "; " : "", kern_format_info(fmt)->name);
        if (p.distance)
            text_append(buf, cap, "%s %u", kern_prefetch_hint_name(p.hint),
                        (unsigned)p.distance);
        else
            text_append(buf, cap, "off");
        text_append(buf, cap, " x%u", (unsigned)kern_panels_interleaved(p));
    }
    return buf;
}

bool resident_read(const char *root, uint64_t *bytes)
{
    static const char *const keys[] = {"RssAnon", "VmSwap", "VmPTE"};
    char *text = sysfile_read_all(root, "/proc/self/status");
    uint64_t kib = 0, v;
    const bool is_known = text && text_key_u64(text, keys[0], &v);

    for (int i = 0; i < 3; i++)
        if (text && text_key_u64(text, keys[i], &v))
            kib += v;
    free(text);
    if (is_known)
        *bytes = kib * 1024;
    return is_known;
}

/* SPDX-License-Identifier: MIT
 *
 * memory_relief.c - between the signs of too little memory and the weights
 */
#include "harness/model/memory_relief.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "harness/base/sysfile.h"
#include "harness/machine/noise.h"

static void relieve(void *arg)
{
    struct memory_relief *r = arg;
    const uint64_t lacking = memory_watch_lacking(&r->watch, clock_ns());
    struct err err = ERR_INIT;
    uint64_t freed;

    if (!lacking || r->at_end)
        return;
    /* A half is better than nothing where all cannot be given. */
    for (uint64_t bytes = lacking; bytes >= MEMORY_WATCH_STEP / 16; bytes /= 2) {
        err_clear(&err);
        if (slm_reclaim(r->m, bytes, &freed, &err) == ST_OK) {
            r->bytes += freed;
            r->n++;
            if (r->tell)
                r->tell(r->arg, r);
            return;
        }
        if (err.code != ST_NO_MEMORY)
            break;
    }
    r->at_end = true;
}

void memory_relief_begin(struct memory_relief *r, struct slm *m)
{
    const enum weights_residency residency = slm_info(m)->residency;

    *r = (struct memory_relief){.m = m, .tell = r->tell, .arg = r->arg};
    if (residency != WEIGHTS_PACKED && residency != WEIGHTS_STREAM)
        return;
    memory_watch_begin(&r->watch, "", clock_ns());
    slm_set_eval_hook(m, relieve, r);
}

void memory_relief_end(struct memory_relief *r)
{
    if (r->m)
        slm_set_eval_hook(r->m, NULL, NULL);
    r->m = NULL;
}

/* ---- signs of too little memory, and how much it is ------------------------------ */

#define EACH_NS UINT64_C(250000000)
#define STEP_NS UINT64_C(2000000000)

/* Share of the time in which some task waited for memory. A stream's own waiting for
 * its file is no such wait. */
#define STALLED 0.2

/* Where tasks of the whole machine wait: what is little of its memory, and how many
 * major faults of our own show that we wait, too. */
#define SHORT_SHARE  (1.0 / 16)
#define FAULTS_PER_S 40

/* Bytes of pages read again per second. */
#define REFAULTS_PER_S (UINT64_C(64) << 20)
#define PAGE           4096

static uint64_t major_faults(const char *root)
{
    char text[1024];
    const char *stat = sysfile_stat(root, "self", text, sizeof text);
    unsigned long long n;

    return stat && sscanf(stat, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %llu", &n) == 1
               ? n
               : 0;
}

static void look(struct memory_watch *w, uint64_t now_ns, struct noise *n)
{
    *n = (struct noise){.n_refaults = 0};
    noise_read_memory(n, w->root);
    w->last_ns = now_ns;
    w->pressure_ns = n->pressure_ns;
    w->n_refaults = n->n_refaults;
    n->n_major_faults = major_faults(w->root);
    w->n_faults = n->n_major_faults;
}

void memory_watch_begin(struct memory_watch *w, const char *root, uint64_t now_ns)
{
    struct noise n;

    *w = (struct memory_watch){.root = root};
    cgroup_find(&w->group, root, CGROUP_MEMORY);
    look(w, now_ns, &n);
}

static uint64_t missing(uint64_t left)
{
    return left < MEMORY_WATCH_LOW ? MEMORY_WATCH_ENOUGH - left : 0;
}

static uint64_t lacking_in_groups(const struct memory_watch *w)
{
    struct cgroup_memory m;

    if (!w->group.version)
        return 0;
    cgroup_memory_read(&m, &w->group, w->root, w->group.dir);
    return m.limit ? m.over + missing(m.left) : 0;
}

/* *is_short: little of the machine's memory is available. */
static uint64_t lacking_on_machine(const struct memory_watch *w, bool *is_short)
{
    char *text = sysfile_read_all(w->root, "/proc/meminfo");
    uint64_t kb, total_kb, lacking = 0;

    *is_short = false;
    if (text && text_key_u64(text, "MemAvailable", &kb)) {
        lacking = missing(kb * 1024);
        *is_short = text_key_u64(text, "MemTotal", &total_kb) &&
                    (double)kb < SHORT_SHARE * (double)total_kb;
    }
    free(text);
    return lacking;
}

/* In the last ns nanoseconds. */
static bool is_stalled(const struct memory_watch *last, const struct noise *n,
                       double ns, bool is_short)
{
    const double refaults = (double)(n->n_refaults - last->n_refaults) * PAGE;
    const double faults = (double)(n->n_major_faults - last->n_faults);

    if (n->pressure_ns && n->pressure_of_machine && !is_short &&
        faults < FAULTS_PER_S * ns * 1e-9)
        return false;
    if (n->pressure_ns)
        return (double)(n->pressure_ns - last->pressure_ns) > STALLED * ns;
    return refaults > (double)REFAULTS_PER_S * ns * 1e-9;
}

uint64_t memory_watch_lacking(struct memory_watch *w, uint64_t now_ns)
{
    const struct memory_watch last = *w;
    const double ns = (double)(now_ns - w->last_ns);
    uint64_t lacking, machine;
    struct noise n;
    bool is_short;

    if (now_ns - w->last_ns < EACH_NS)
        return 0;
    lacking = lacking_in_groups(w);
    machine = lacking_on_machine(w, &is_short);
    lacking = machine > lacking ? machine : lacking;
    look(w, now_ns, &n);
    if (lacking || now_ns - w->step_ns < STEP_NS ||
        !is_stalled(&last, &n, ns, is_short))
        return lacking;
    w->step_ns = now_ns;
    return MEMORY_WATCH_STEP;
}

/* SPDX-License-Identifier: MIT
 *
 * tune_hog.h - two invented machines to tune on, on which another program takes a CPU
 * from time to time
 *
 * How fast each setting is on the quiet machine is a table. The other program runs in
 * bursts; while it does, a thread pool that uses all CPUs waits for the thread whose
 * CPU is shared, so that fewer threads look faster than they are. Some bursts are seen
 * by the counters that a machine has for it, others are not.
 */
#ifndef SLM_TESTS_TUNE_HOG_H
#define SLM_TESTS_TUNE_HOG_H

#include "tests/support/tune_machine.h"

struct hogged {
    int n_cpus;          /* 2: fewer threads never pay; 4: 3 are best for decoding */
    double noise;        /* relative spread of a sample */
    double share;        /* of the time that the other program runs: 0.2 */
    double mean_burst_s; /* exponentially distributed */
    double share_unseen; /* of the bursts */
    double only_to;      /* above 0: there is one burst, unseen, until then */
    uint64_t seed;
    /* inside */
    double clock, change, watched;
    double seen_until; /* end of the last burst that the counters see */
    bool busy, unseen;
    int n_samples, stop_after;
};

static inline double hogged_uniform(struct hogged *h)
{
    return ((double)(test_random(&h->seed) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double hogged_exponential(struct hogged *h, double mean)
{
    return -mean * log(hogged_uniform(h));
}

static inline void hogged_advance(struct hogged *h, double seconds)
{
    h->clock += seconds;
    if (h->only_to > 0) {
        h->busy = h->clock < h->only_to;
        return;
    }
    while (h->share > 0 && h->change <= h->clock) {
        const double mean =
            h->busy ? h->mean_burst_s * (1 - h->share) / h->share : h->mean_burst_s;
        const double length = hogged_exponential(h, mean);

        h->busy = !h->busy;
        if (h->busy) {
            h->unseen = hogged_uniform(h) < h->share_unseen;
            if (!h->unseen)
                h->seen_until = h->change + length;
        }
        h->change += length;
    }
}

/* What the other program does to a pool of so many threads. */
static inline double hogged_slowdown(const struct hogged *h, int n_threads)
{
    return n_threads >= h->n_cpus ? 1.98 : 1.1;
}

/* ---- the tables ------------------------------------------------------------------ */

static inline double hogged_pool(const struct hogged *h, int n_threads, bool decode)
{
    static const double two[2][3] = {{0, 1 / 1.9, 1}, {0, 0.75, 1}};
    static const double four[2][5] = {{0, 0.55, 1, 1.22, 1.35},
                                      {0, 0.65, 1, 1.22, 1.1}};

    return h->n_cpus == 2 ? two[decode][n_threads] : four[decode][n_threads];
}

static inline double hogged_prefetch(struct kern_prefetch p, double most)
{
    return p.distance == 8192   ? most
           : p.distance == 4096 ? 1 + 0.6 * (most - 1)
           : p.distance == 2048 ? 1 + 0.3 * (most - 1)
                                : 1;
}

/* Seconds on the quiet machine. */
static inline void hogged_decode_true(const struct hogged *h,
                                      const struct tune_setup *s,
                                      struct tune_sample *out)
{
    const double all = (s->tuning.chunks_decode == 4 ? 1 / 1.04 : 1) /
                       hogged_pool(h, s->n_threads, true);

    memset(out, 0, sizeof *out);
    out->fmt_s[KERN_FMT_q4_K] =
        0.007 * all / hogged_prefetch(s->tuning.prefetch[KERN_FMT_q4_K], 1.2);
    out->fmt_s[KERN_FMT_q6_K] =
        0.002 * all / hogged_prefetch(s->tuning.prefetch[KERN_FMT_q6_K], 1.47);
    out->seconds = 0.001 * all + out->fmt_s[KERN_FMT_q4_K] + out->fmt_s[KERN_FMT_q6_K];
}

static inline double hogged_prefill_true(const struct hogged *h,
                                         const struct tune_setup *s, int n_tokens)
{
    return 0.001 * n_tokens / hogged_pool(h, s->n_threads_prefill, false) /
           (s->tuning.n_batch == 256 && n_tokens > 64 ? 1.1 : 1);
}

/* The fastest setup there is. */
static inline struct tune_setup hogged_best(const struct hogged *h,
                                            const struct tune_setup *base)
{
    struct tune_setup s = *base;

    s.n_threads = h->n_cpus == 2 ? 2 : 3;
    s.n_threads_prefill = h->n_cpus;
    s.tuning.chunks_decode = 4;
    s.tuning.n_batch = 256;
    s.tuning.prefetch[KERN_FMT_q4_K].distance = 8192;
    s.tuning.prefetch[KERN_FMT_q6_K].distance = 8192;
    return s;
}

/* The speed of a setup as a share of the fastest one's, the worse of both phases. */
static inline double hogged_share(const struct hogged *h, const struct tune_setup *s,
                                  const struct tune_setup *base)
{
    const struct tune_setup best = hogged_best(h, base);
    struct tune_sample own, top;

    hogged_decode_true(h, s, &own);
    hogged_decode_true(h, &best, &top);
    return fmin(top.seconds / own.seconds,
                hogged_prefill_true(h, &best, 256) / hogged_prefill_true(h, s, 256));
}

/* ---- as a machine ---------------------------------------------------------------- */

static inline enum status hogged_open(void *arg, const struct tune_setup *s,
                                      struct err *err)
{
    (void)s;
    (void)err;
    hogged_advance(arg, 0.2);
    return ST_OK;
}

static inline double hogged_noise(struct hogged *h)
{
    const double s = 1 + h->noise * (double)test_random_float(&h->seed);

    return test_random(&h->seed) % 20 ? s : s * 1.5;
}

static inline enum status hogged_decode(void *arg, const struct tune_setup *s,
                                        struct tune_sample *out, struct err *err)
{
    struct hogged *h = arg;
    const double all =
        hogged_noise(h) * (h->busy ? hogged_slowdown(h, s->n_threads) : 1);

    (void)err;
    hogged_decode_true(h, s, out);
    out->seconds *= all;
    for (int i = 0; i < KERN_N_FMT; i++)
        out->fmt_s[i] *= all;
    hogged_advance(h, out->seconds);
    h->n_samples++;
    return ST_OK;
}

static inline enum status hogged_prefill(void *arg, const struct tune_setup *s,
                                         int n_tokens, struct tune_sample *out,
                                         struct err *err)
{
    struct hogged *h = arg;

    (void)err;
    memset(out, 0, sizeof *out);
    out->seconds = hogged_prefill_true(h, s, n_tokens) * hogged_noise(h) *
                   (h->busy ? hogged_slowdown(h, s->n_threads_prefill) : 1);
    hogged_advance(h, out->seconds);
    h->n_samples++;
    return ST_OK;
}

static inline double hogged_now(void *arg)
{
    return ((struct hogged *)arg)->clock;
}

static inline bool hogged_stop(void *arg)
{
    const struct hogged *h = arg;

    return h->stop_after && h->n_samples >= h->stop_after;
}

static inline void hogged_watch(void *arg)
{
    struct hogged *h = arg;

    h->watched = h->clock;
}

static inline bool hogged_disturbed(void *arg, char *why, size_t cap)
{
    const struct hogged *h = arg;

    if (h->seen_until <= h->watched)
        return false;
    snprintf(why, cap, "others 20 %%");
    return true;
}

static inline struct tune_machine hogged_machine(struct hogged *h)
{
    return (struct tune_machine){.arg = h,
                                 .open = hogged_open,
                                 .decode = hogged_decode,
                                 .prefill = hogged_prefill,
                                 .now = hogged_now,
                                 .stop = hogged_stop,
                                 .watch = hogged_watch,
                                 .disturbed = hogged_disturbed};
}

/* So many CPUs, a core each, of which two are used by default; one level, so that the
 * course of a tuning does not depend on the machine that plays it. */
static inline void hogged_fixture(struct fixture *f, int n_cpus)
{
    for (int i = 0; i < KERN_N_ISA; i++) {
        f->p.space.isa_mask = 1u << i;
        if (kern_best(KERN_OP_gemv_x16, KERN_FMT_q4_K, 1u << i) &&
            kern_best(KERN_OP_gemv_x16, KERN_FMT_q6_K, 1u << i))
            break; /* prefetch is for kernels of panels */
    }
    f->topo.n_cpus = f->topo.n_cores = f->topo.n_allowed = f->topo.n_allowed_cores =
        n_cpus;
    f->p.budget_s = 180;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * tune_machine.h - an invented machine to tune on, whose best settings are known
 */
#ifndef SLM_TESTS_TUNE_MACHINE_H
#define SLM_TESTS_TUNE_MACHINE_H

#include "tests/support/test.h"

#include <math.h>

#include "harness/measure/tune/tune.h"

/* ---- an invented machine -------------------------------------------------------- */

/* Its clock is what its samples take. The best: 3 of 4 threads to decode and 4 to
 * prefill, 4 chunks, prefetch distance 8192 for q4_K, no matter what for q6_K, the
 * level avx2 to decode q6_K, batches of 256, mapped weights. */
struct invented {
    double clock, noise, effect; /* effect 0: nothing matters */
    double open_s;
    uint64_t seed;
    int n_samples, stop_after;
    long long opened; /* as weights' value */
};

static inline double better(const struct invented *v, bool is, double gain)
{
    return is ? exp(-v->effect * gain) : 1;
}

static inline double spread(struct invented *v)
{
    const double s = 1 + v->noise * (double)test_random_float(&v->seed);

    return test_random(&v->seed) % 20 ? s : s * 1.5;
}

static inline enum status invented_open(void *arg, const struct tune_setup *s,
                                        struct err *err)
{
    struct invented *v = arg;

    (void)err;
    v->clock += v->open_s;
    v->opened = tune_get(s, TUNE_WEIGHTS, KERN_N_FMT);
    return ST_OK;
}

static inline enum status invented_decode(void *arg, const struct tune_setup *s,
                                          struct tune_sample *out, struct err *err)
{
    struct invented *v = arg;
    const bool avx2 =
        tune_mask_level(s->tuning.isa_mask[KERN_FMT_q6_K]) == KERN_ISA_avx2;
    const double all = better(v, s->n_threads == 3, 0.2) *
                       better(v, s->tuning.chunks_decode == 4, 0.05) *
                       better(v, s->residency == WEIGHTS_MMAP, 0.1) * spread(v);

    (void)err;
    assert_int_equal(v->opened, tune_get(s, TUNE_WEIGHTS, KERN_N_FMT));
    memset(out, 0, sizeof *out);
    out->fmt_s[KERN_FMT_q4_K] =
        0.007 * all *
        better(v, s->tuning.prefetch[KERN_FMT_q4_K].distance == 8192, 0.1);
    out->fmt_s[KERN_FMT_q6_K] = 0.002 * all * better(v, avx2, 0.1);
    out->seconds = 0.001 * all + out->fmt_s[KERN_FMT_q4_K] + out->fmt_s[KERN_FMT_q6_K];
    v->clock += out->seconds;
    v->n_samples++;
    return ST_OK;
}

static inline enum status invented_prefill(void *arg, const struct tune_setup *s,
                                           int n_tokens, struct tune_sample *out,
                                           struct err *err)
{
    struct invented *v = arg;

    (void)err;
    memset(out, 0, sizeof *out);
    out->seconds = 0.001 * n_tokens * spread(v) *
                   better(v, s->n_threads_prefill == 4, 0.3) *
                   better(v, s->tuning.n_batch == 256 && n_tokens > 64, 0.1) *
                   better(v, s->residency == WEIGHTS_MMAP, 0.1);
    v->clock += out->seconds;
    v->n_samples++;
    return ST_OK;
}

static inline double invented_now(void *arg)
{
    return ((struct invented *)arg)->clock;
}

static inline bool invented_stop(void *arg)
{
    const struct invented *v = arg;

    return v->stop_after && v->n_samples >= v->stop_after;
}

/* 4 CPUs, one core each. */
static inline void make_topology(struct topology *t)
{
    memset(t, 0, sizeof *t);
    t->n_cpus = t->n_cores = t->n_allowed = t->n_allowed_cores = 4;
    t->n_packages = t->n_nodes = 1;
    t->threads_default = 2;
    snprintf(t->thp, sizeof t->thp, "madvise");
    snprintf(t->cpu_model, sizeof t->cpu_model, "an \"invented\" CPU: 4 GHz # fast");
    for (int i = 0; i < 4; i++)
        t->cpu[i] = (struct topo_cpu){.os_id = i, .core = i, .allowed = true};
}

static inline void make_params(struct tune_params *p, const struct topology *t)
{
    memset(p, 0, sizeof *p);
    p->space.topo = t;
    p->space.isa_mask = isa_usable();
    p->space.formats[KERN_FMT_q4_K] = p->space.formats[KERN_FMT_q6_K] = true;
    p->space.can_pack = true;
    p->space.n_batch = 512;
    p->base = (struct tune_setup){.residency = WEIGHTS_PACKED,
                                  .n_threads = 2,
                                  .n_threads_prefill = 2,
                                  .tuning = slm_tuning_default()};
    p->base.tuning.n_batch = 64;
    p->base.tuning.prefetch[KERN_FMT_q4_K].distance = 0; /* whatever the default is */
    p->base.tuning.prefetch[KERN_FMT_q6_K].distance = 0;
    p->budget_s = 120;
}

static inline enum status tune(struct tune_result *r, const struct tune_params *p,
                               struct invented *v, struct err *err)
{
    const struct tune_machine m = {.arg = v,
                                   .open = invented_open,
                                   .decode = invented_decode,
                                   .prefill = invented_prefill,
                                   .now = invented_now,
                                   .stop = invented_stop};

    return tune_run(r, p, &m, err);
}

struct fixture {
    struct topology topo;
    struct tune_params p;
    struct tune_result r;
};

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    make_topology(&f->topo);
    make_params(&f->p, &f->topo);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    free(*state);
    return 0;
}

#endif

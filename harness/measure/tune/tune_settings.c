/* SPDX-License-Identifier: MIT
 *
 * tune_settings.c - the table of settings, their values, and how each is changed
 */
#include "harness/measure/tune/tune_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/tune/prefetch.h"

static const struct tune_setting_info infos[TUNE_N_SETTINGS] = {
    [TUNE_WEIGHTS] = {"weights", TUNE_BOTH, false, true, true, 3},
    [TUNE_THREADS] = {"threads", TUNE_DECODE, false, false, true, 1.5},
    [TUNE_PLACEMENT] = {"placement", TUNE_DECODE, false, false, true, 1},
    [TUNE_LEVEL] = {"level", TUNE_DECODE, true, false, false, 1.5},
    [TUNE_PREFETCH] = {"prefetch", TUNE_DECODE, true, false, false, 2},
    [TUNE_PANELS] = {"panels", TUNE_DECODE, true, false, false, 1},
    [TUNE_CHUNKS] = {"chunks", TUNE_DECODE, false, false, false, 2},
    [TUNE_THREADS_PREFILL] = {"threads, prefill", TUNE_PREFILL, false, false, true,
                              1.5},
    [TUNE_LEVEL_PREFILL] = {"level, prefill", TUNE_PREFILL, true, false, false, 1.5},
    [TUNE_CHUNKS_PREFILL] = {"chunks, prefill", TUNE_PREFILL, false, false, false, 1.5},
    [TUNE_BATCH] = {"batch", TUNE_PREFILL, false, false, false, 2},
};

const struct tune_setting_info *tune_setting_info(enum tune_setting setting)
{
    return &infos[setting];
}

/* ---- one value ---------------------------------------------------------------- */

static long long weights_value(enum weights_residency r, enum mem_pages pages)
{
    return 2 * (long long)r + (r != WEIGHTS_MMAP && pages == MEM_PAGES_2M);
}

/* Without the panels; 0 is off. */
static long long prefetch_value(struct kern_prefetch prefetch)
{
    return prefetch.distance
               ? (long long)prefetch.distance * KERN_N_PREFETCH + prefetch.hint
               : 0;
}

static struct kern_prefetch value_prefetch(long long value, uint32_t n_panels)
{
    return (struct kern_prefetch){(uint32_t)(value / KERN_N_PREFETCH),
                                  (enum kern_prefetch_hint)(value % KERN_N_PREFETCH),
                                  n_panels};
}

uint32_t tune_level_mask(long long level)
{
    return level < 0 ? 0 : (2u << level) - 1;
}

long long tune_mask_level(uint32_t mask)
{
    long long level = -1;

    for (; mask; mask >>= 1)
        level++;
    return level;
}

/* The int that a setting is; NULL: it is not one. */
static int *int_of(struct tune_setup *s, enum tune_setting setting)
{
    switch (setting) {
    case TUNE_THREADS:
        return &s->n_threads;
    case TUNE_CHUNKS:
        return &s->tuning.chunks_decode;
    case TUNE_THREADS_PREFILL:
        return &s->n_threads_prefill;
    case TUNE_CHUNKS_PREFILL:
        return &s->tuning.chunks_prefill;
    case TUNE_BATCH:
        return &s->tuning.n_batch;
    default:
        return NULL;
    }
}

static uint32_t *masks_of(struct tune_setup *s, enum tune_setting setting)
{
    return setting == TUNE_LEVEL ? s->tuning.isa_mask : s->tuning.isa_mask_prefill;
}

long long tune_get(const struct tune_setup *setup, enum tune_setting setting,
                   enum kern_format fmt)
{
    struct tune_setup s = *setup;

    if (setting == TUNE_WEIGHTS)
        return weights_value(s.residency, s.tuning.pages);
    if (setting == TUNE_PLACEMENT)
        return s.placement;
    if (setting == TUNE_PREFETCH)
        return prefetch_value(s.tuning.prefetch[fmt]);
    if (setting == TUNE_PANELS)
        return kern_panels_interleaved(s.tuning.prefetch[fmt]);
    return int_of(&s, setting) ? *int_of(&s, setting)
                               : tune_mask_level(masks_of(&s, setting)[fmt]);
}

void tune_set(struct tune_setup *s, enum tune_setting setting, enum kern_format fmt,
              long long value)
{
    if (setting == TUNE_WEIGHTS) {
        s->residency = (enum weights_residency)(value / 2);
        s->tuning.pages = value % 2 ? MEM_PAGES_2M : MEM_PAGES_4K;
    } else if (setting == TUNE_PLACEMENT) {
        s->placement = (enum placement)value;
    } else if (setting == TUNE_PREFETCH) {
        s->tuning.prefetch[fmt] =
            value_prefetch(value, s->tuning.prefetch[fmt].n_panels);
    } else if (setting == TUNE_PANELS) {
        s->tuning.prefetch[fmt].n_panels = (uint32_t)value;
    } else if (int_of(s, setting)) {
        *int_of(s, setting) = (int)value;
    } else {
        masks_of(s, setting)[fmt] = tune_level_mask(value);
    }
}

const char *tune_value_text(enum tune_setting setting, long long value, char *buf,
                            size_t cap)
{
    if (setting == TUNE_WEIGHTS) {
        const enum weights_residency r = (enum weights_residency)(value / 2);

        snprintf(buf, cap, "%s%s", weights_residency_name(r),
                 r == WEIGHTS_MMAP ? ""
                 : value % 2       ? ", 2m pages"
                                   : ", 4k pages");
    } else if (setting == TUNE_PLACEMENT) {
        snprintf(buf, cap, "%s", placement_name((enum placement)value));
    } else if (setting == TUNE_PREFETCH) {
        prefetch_text(value_prefetch(value, 0), buf, cap);
    } else if (setting == TUNE_LEVEL || setting == TUNE_LEVEL_PREFILL) {
        snprintf(buf, cap, "%s", value < 0 ? "best" : isa_name((enum kern_isa)value));
    } else {
        snprintf(buf, cap, "%lld", value);
    }
    return buf;
}

/* ---- values ------------------------------------------------------------------- */

struct values {
    long long *v;
    size_t n;
};

static void add(struct values *out, long long value)
{
    for (size_t i = 0; i < out->n; i++)
        if (out->v[i] == value)
            return;
    if (out->n < TUNE_MAX_VALUES)
        out->v[out->n++] = value;
}

static void add_all(struct values *out, const int *v, size_t n, int most)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] <= most)
            add(out, v[i]);
}

/* Few CPUs: every count. Many: parts of the cores and of the CPUs, and what a quota
 * lets run. */
static void add_threads(const struct topology *t, struct values *out)
{
    const int cores = t->n_allowed_cores, cpus = t->n_allowed;
    const int marks[] = {t->n_fast_cores, cores,     cpus,
                         cpus - 1,        cores / 2, (cores + cpus) / 2,
                         3 * cores / 4,   cores / 4};

    if (cpus <= 6) {
        for (int n = cpus; n >= 1; n--)
            add(out, n);
        return;
    }
    if (t->quota_cpus > 0 && t->quota_cpus < cpus)
        add(out, t->quota_cpus >= 1 ? (int)t->quota_cpus : 1);
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (marks[i] >= 1)
            add(out, marks[i]);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Whether two placements put the threads of either phase on other CPUs. */
static bool places_differ(const struct topology *t, const struct tune_setup *s,
                          enum placement a, enum placement b)
{
    const int counts[2] = {s->n_threads, s->n_threads_prefill};
    int x[2][TOPO_MAX_CPUS];
    struct err ignored = ERR_INIT;

    for (int i = 0; i < 2; i++) {
        const size_t n =
            (size_t)(counts[i] < TOPO_MAX_CPUS ? counts[i] : TOPO_MAX_CPUS);

        if (placement_cpus(t, a, (int)n, x[0], &ignored) ||
            placement_cpus(t, b, (int)n, x[1], &ignored))
            return false;
        qsort(x[0], n, sizeof x[0][0], by_number);
        qsort(x[1], n, sizeof x[1][0], by_number);
        if (memcmp(x[0], x[1], n * sizeof x[0][0]))
            return true;
    }
    return false;
}

static void add_placements(const struct topology *t, const struct tune_setup *s,
                           struct values *out)
{
    static const enum placement pinned[] = {PLACEMENT_SPREAD, PLACEMENT_COMPACT,
                                            PLACEMENT_SMT};

    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++) {
        bool differs = true;

        for (size_t j = 0; j < out->n && differs; j++)
            differs = places_differ(t, s, (enum placement)out->v[j], pinned[i]);
        if (differs)
            add(out, pinned[i]);
    }
}

/* Levels below the best that have a row of their own. Scalar code is the reference and
 * nobody's choice. */
static void add_levels(const struct tune_space *space, const struct tune_setup *s,
                       enum kern_format fmt, bool several, struct values *out)
{
    const bool panels = s->residency != WEIGHTS_MMAP &&
                        kern_best(KERN_OP_gemv_x16, (int)fmt, space->isa_mask);
    const enum kern_op op = panels ? (several ? KERN_OP_gemm_x16 : KERN_OP_gemv_x16)
                                   : (several ? KERN_OP_gemm : KERN_OP_gemv);
    const struct kern_row *best = kern_best(op, (int)fmt, space->isa_mask);
    size_t n;
    const struct kern_row *rows = kern_rows(&n);

    for (size_t i = n; best && i-- > 0;)
        if (rows[i].op == op && rows[i].what == (int)fmt &&
            (space->isa_mask >> rows[i].isa & 1) && rows[i].isa != best->isa &&
            rows[i].isa != KERN_ISA_scalar)
            add(out, rows[i].isa);
}

static void add_weights(const struct tune_space *space, struct values *out)
{
    if (space->can_pack) {
        add(out, weights_value(WEIGHTS_PACKED, MEM_PAGES_2M));
        if (strcmp(space->topo->thp, "never") != 0)
            add(out, weights_value(WEIGHTS_PACKED, MEM_PAGES_4K));
    }
    if (space->can_map)
        add(out, weights_value(WEIGHTS_MMAP, MEM_PAGES_4K));
}

/* Whether weights of the format may be in panels, whose kernels alone take settings of
 * reading. */
static bool has_panels(const struct tune_space *space, const struct tune_setup *s,
                       enum kern_format fmt)
{
    return s->residency != WEIGHTS_MMAP &&
           kern_best(KERN_OP_gemv_x16, (int)fmt, space->isa_mask);
}

size_t tune_values(const struct tune_space *space, const struct tune_setup *s,
                   enum tune_setting setting, enum kern_format fmt, long long *value)
{
    static const int panels[] = {4, 2, 1};
    static const int chunks[] = {1, 2, 3, 4, 6, 8, 16};
    static const struct kern_prefetch prefetch[] = {
        {0, KERN_PREFETCH_T0, 0},     {2048, KERN_PREFETCH_T0, 0},
        {4096, KERN_PREFETCH_T0, 0},  {8192, KERN_PREFETCH_T0, 0},
        {2048, KERN_PREFETCH_T1, 0},  {8192, KERN_PREFETCH_T1, 0},
        {4096, KERN_PREFETCH_NTA, 0}, {8192, KERN_PREFETCH_NTA, 0}};
    static const int batch[] = {64, 128, 256, 512};
    struct values out = {value, 0};

    add(&out, tune_get(s, setting, fmt));
    switch (setting) {
    case TUNE_WEIGHTS:
        if (s->residency != WEIGHTS_MEMORY)
            add_weights(space, &out);
        break;
    case TUNE_THREADS:
    case TUNE_THREADS_PREFILL:
        add_threads(space->topo, &out);
        break;
    case TUNE_PLACEMENT:
        add_placements(space->topo, s, &out);
        break;
    case TUNE_LEVEL:
    case TUNE_LEVEL_PREFILL:
        add_levels(space, s, fmt, setting == TUNE_LEVEL_PREFILL, &out);
        break;
    case TUNE_PREFETCH:
        if (has_panels(space, s, fmt))
            for (size_t i = 0; i < sizeof prefetch / sizeof prefetch[0]; i++)
                add(&out, prefetch_value(prefetch[i]));
        break;
    case TUNE_PANELS:
        if (has_panels(space, s, fmt))
            add_all(&out, panels, sizeof panels / sizeof panels[0],
                    KERN_MAX_INTERLEAVED);
        break;
    case TUNE_CHUNKS:
    case TUNE_CHUNKS_PREFILL:
        add_all(&out, chunks, sizeof chunks / sizeof chunks[0], TUNING_MAX_CHUNKS);
        break;
    case TUNE_BATCH:
        add_all(&out, batch, sizeof batch / sizeof batch[0], space->n_batch);
        break;
    case TUNE_N_SETTINGS:
        break;
    }
    return out.n;
}

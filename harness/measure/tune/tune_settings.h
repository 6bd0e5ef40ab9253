/* SPDX-License-Identifier: MIT
 *
 * tune_settings.h - the settings that `bench tune` tunes, and which values it tries
 *
 * The first candidate of a setting is the default. Some settings are tuned for each
 * weight format separately. The KV cache's type is not among them: it changes the
 * model's output.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_TUNE_SETTINGS_H
#define SLM_HARNESS_MEASURE_TUNE_TUNE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/forward/tuning.h"
#include "engine/weights/weights.h"
#include "harness/machine/topology.h"
#include "harness/measure/worker/tuned_check.h"

/* Everything that a model is run with. */
struct tune_setup {
    enum weights_residency residency; /* any but auto */
    int n_threads, n_threads_prefill; /* both >= 1 */
    enum placement placement;         /* of all threads: either count uses the first */
    struct slm_tuning tuning;
};

/* In the order in which they are tuned. */
enum tune_setting {
    TUNE_WEIGHTS,
    TUNE_THREADS,
    TUNE_PLACEMENT,
    TUNE_LEVEL,
    TUNE_PREFETCH,
    TUNE_PANELS,
    TUNE_CHUNKS,
    TUNE_THREADS_PREFILL,
    TUNE_LEVEL_PREFILL,
    TUNE_CHUNKS_PREFILL,
    TUNE_BATCH,
    TUNE_N_SETTINGS
};

struct tune_setting_info {
    const char *name; /* "chunks, prefill" */
    enum tune_phase phase;
    bool per_format;
    bool reopens; /* the model has to be opened again */
    bool coarse;  /* others depend on it, and a busy CPU changes which value wins */
    double share; /* of the budget */
};

const struct tune_setting_info *tune_setting_info(enum tune_setting setting);

/* What may be chosen from. */
struct tune_space {
    const struct topology *topo;
    uint32_t isa_mask;
    bool formats[KERN_N_FMT]; /* those of matrices */
    bool can_pack, can_map;
    int n_batch; /* most tokens of a pass */
};

/* Values of a setting (of a format, where it has one each), the default's first: into
 * value[TUNE_MAX_VALUES]; returns how many. setup: the default, with what has been
 * chosen so far. */
#define TUNE_MAX_VALUES 12
size_t tune_values(const struct tune_space *space, const struct tune_setup *setup,
                   enum tune_setting setting, enum kern_format fmt, long long *value);

/* The value that setup has, and changing it. */
long long tune_get(const struct tune_setup *setup, enum tune_setting setting,
                   enum kern_format fmt);
void tune_set(struct tune_setup *setup, enum tune_setting setting, enum kern_format fmt,
              long long value);

/* "packed, 2m", "avx512vnni", "4", "T0 4096", "best" for the best level. */
const char *tune_value_text(enum tune_setting setting, long long value, char *buf,
                            size_t cap);

/* A mask of all levels up to this one; -1: 0, which is all there are. */
uint32_t tune_level_mask(long long level);
long long tune_mask_level(uint32_t mask);

#endif

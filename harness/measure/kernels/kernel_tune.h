/* SPDX-License-Identifier: MIT
 *
 * kernel_tune.h - for each weight format, the way of reading panels that is fastest
 * here
 *
 * Model of the world: decoding multiplies panels that come from memory. Which ISA
 * level, prefetch distance, hint and number of panels side by side does that fastest
 * depends on the machine and on the format, hardly on the model. All ways are compared
 * in rounds of random order on cold weights; after some rounds only the faster ones go
 * on, and the last few are compared with the default by the rule of loading
 * (prefetch_rule.h).
 *
 * Threading: one thread; the measured threads are its own.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_TUNE_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_TUNE_H

#include "harness/machine/topology.h"
#include "kernels/kernels.h"

struct kernel_choice {
    enum kern_format fmt;
    enum kern_isa isa;
    struct kern_prefetch prefetch;
    double gbps, default_gbps; /* of weights, medians of the same rounds */
    bool is_default;
};

struct kernel_choices {
    struct kernel_choice v[KERN_N_FMT];
    int n;
    int n_threads;
    double read_gbps; /* roof of the same threads */
};

/* The formats of a mask (1 << format) that this machine has panels for, with n_threads
 * threads placed one per core, in about budget_s seconds; half a second each at least.
 * Shows progress. Errors: ST_INTERRUPTED (nothing is chosen), ST_UNSUPPORTED (no format
 * has panels at the levels in use), ST_NO_MEMORY. */
enum status kernel_tune(struct kernel_choices *choices, const struct topology *topo,
                        uint64_t formats, int n_threads, double budget_s,
                        struct err *err);

#endif

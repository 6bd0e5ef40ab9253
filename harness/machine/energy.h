/* SPDX-License-Identifier: MIT
 *
 * energy.h - energy that the processors used, as they count it themselves (RAPL)
 *
 * Model of the world: Linux shows a counter of microjoules for each package, and where
 * there is one for its memory, in /sys/class/powercap; it begins again at 0 after
 * max_energy_range_uj. What is counted is the whole package: other programs and idle
 * cores are part of it. Many virtual machines have no such counters, or some that never
 * move, and newer kernels let only root read them: then there is no figure, and none is
 * made up.
 *
 * Threading: data.
 * Source: Linux, Documentation/power/powercap/powercap.rst.
 */
#ifndef SLM_HARNESS_MACHINE_ENERGY_H
#define SLM_HARNESS_MACHINE_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

#define ENERGY_MAX_DOMAINS 32

struct energy_domain {
    char file[128];    /* its counter */
    bool is_package;   /* else memory of one */
    uint64_t range_uj; /* it begins again after this */
    uint64_t mark_uj, used_uj;
};

struct energy {
    struct energy_domain domain[ENERGY_MAX_DOMAINS];
    int n;          /* 0: nothing can be read */
    bool is_broken; /* a counter could not be read once */
};

/* Find the counters. root: "" or the top of a recorded tree. */
void energy_open(struct energy *e, const char *root);

/* What is used from here on, until energy_add(), counts. Between the two a counter may
 * begin again once, which takes minutes at least. */
void energy_mark(struct energy *e, const char *root);
void energy_add(struct energy *e, const char *root);

/* All that counted, in joules: packages, and memory where it has a counter of its own.
 * NaN: there is no counter, one could not be read, or that of a package has not moved.
 */
double energy_joules(const struct energy *e);

#endif

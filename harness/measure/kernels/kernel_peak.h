/* SPDX-License-Identifier: MIT
 *
 * kernel_peak.h - how much of a CPU's arithmetic peak products of a format reach
 *
 * Model of the world: a prompt is read by products with many columns. How close they
 * come to the peak of arithmetic depends on what else a core has to do: units that
 * unpack weights are the ones that multiply in some CPUs, and others in others. That is
 * measured on the CPU itself, in a tenth of a second a format.
 *
 * Threading: one thread; the CPUs should be idle.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_PEAK_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_PEAK_H

#include <stdbool.h>

#include "engine/base/status.h"
#include "harness/machine/topology.h"
#include "kernels/kernels.h"

/* share[format] of the int8 peak of vectors (probe.h) that its best product with
 * KERNEL_MANY_COLUMNS columns reaches with one thread, from weights in the second-level
 * cache; NAN: not wanted, or not usable here. Tiles may be far above 1. Errors:
 * ST_NO_MEMORY, thread_pool_start()'s. */
enum status kernel_product_shares(double share[KERN_N_FMT],
                                  const bool wanted[KERN_N_FMT],
                                  const struct topology *topo, struct err *err);

#endif

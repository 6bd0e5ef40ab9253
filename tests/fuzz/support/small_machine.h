/* SPDX-License-Identifier: MIT
 *
 * small_machine.h - the machine that settings are read for: the same wherever a target
 * runs
 *
 * Threading: none.
 */
#ifndef SLM_TESTS_FUZZ_SMALL_MACHINE_H
#define SLM_TESTS_FUZZ_SMALL_MACHINE_H

#include "harness/machine/topology.h"

#define SMALL_MACHINE_CPUS 4

/* Four CPUs without siblings, 8 GiB. */
static inline const struct topology *small_machine(void)
{
    static struct topology t;

    t.n_cpus = t.n_cores = t.n_allowed = t.n_allowed_cores = SMALL_MACHINE_CPUS;
    t.n_packages = t.n_nodes = 1;
    for (int i = 0; i < SMALL_MACHINE_CPUS; i++)
        t.cpu[i] = (struct topo_cpu){.os_id = i, .core = i, .allowed = true};
    t.mem_total = t.mem_available = UINT64_C(8) << 30;
    t.threads_default = SMALL_MACHINE_CPUS;
    return &t;
}

#endif

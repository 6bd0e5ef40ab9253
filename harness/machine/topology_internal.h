/* SPDX-License-Identifier: MIT
 *
 * topology_internal.h - the parts topology_read() is put together from
 */
#ifndef SLM_HARNESS_MACHINE_TOPOLOGY_INTERNAL_H
#define SLM_HARNESS_MACHINE_TOPOLOGY_INTERNAL_H

#include "harness/machine/topology.h"

/* Model, vendor, hypervisor, ISA levels: libcpuid for this machine, /proc/cpuinfo
 * for a recorded tree. Errors: ST_INPUT (a tree without proc/cpuinfo), ST_IO. */
enum status topology_read_cpuinfo(struct topology *t, const char *root,
                                  struct err *err);

/* /proc/meminfo, huge pages. Errors: ST_INPUT (no MemTotal), ST_IO. */
enum status topology_read_memory(struct topology *t, const char *root, struct err *err);

/* Kernel release and steal time; unreadable values stay empty. */
void topology_read_kernel(struct topology *t, const char *root);

/* CPUs, cores, caches and one node as far as they are known without hwloc and /sys:
 * from the text of /proc/cpuinfo and from sysconf(). mine: [n_mine] CPUs of this
 * process; where one of them is not in cpuinfo (containers with a cpuinfo of their
 * own), they are the machine's CPUs. */
void topology_read_plain(struct topology *t, const char *cpuinfo, const int *mine,
                         int n_mine);

/* Siblings, numbers of cores, and the threads that follow, from cpu[].core. */
void topology_count_cores(struct topology *t);

/* cpu[].kind and cpu[].speed, and n_kinds; one kind if /sys distinguishes none. */
void topology_read_kinds(struct topology *t, const char *root);

/* n_fast_cores, from the kinds of the allowed CPUs. */
void topology_count_fast(struct topology *t);

/* Whether cpu[i] is allowed and the first such of its core. */
bool topology_leads_core(const struct topology *t, int i);

#endif

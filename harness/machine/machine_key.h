/* SPDX-License-Identifier: MIT
 *
 * machine_key.h - properties that make two machines comparable in speed
 *
 * Model of the world: a few texts, taken from the topology that machine.json holds.
 * Names of hosts are not among them, as a runner of a CI service has another one every
 * time; nor is the operating system, since a history should show its updates.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_MACHINE_MACHINE_KEY_H
#define SLM_HARNESS_MACHINE_MACHINE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

enum machine_field {
    MACHINE_CPU,        /* model */
    MACHINE_HYPERVISOR, /* "none" on bare metal */
    MACHINE_ISA,        /* "+avx2 -avxvnni ...": levels usable, and not */
    MACHINE_CPUS,       /* packages, nodes, cores, CPUs, those allowed, SMT */
    MACHINE_CACHES,     /* "L1d 32K, L1i 32K, L2 1M, L3 32M" */
    MACHINE_QUOTA,      /* of CPU time */
    MACHINE_MEMORY,     /* "23.54 GiB": total, or the limit */
    MACHINE_PAGES,      /* transparent huge pages */
    MACHINE_N_FIELDS
};

struct machine_key {
    char text[MACHINE_N_FIELDS][160];
};

/* From an object as topology_json() makes it, which may come from a foreign file:
 * missing values are "unknown". False if the object is of another kind. */
bool machine_key_read(struct machine_key *key, const json_t *topology);

/* Object of all texts, and back; false if one is missing. */
json_t *machine_key_json(const struct machine_key *key);
bool machine_key_from_json(struct machine_key *key, const json_t *object);

/* The same from the object's text, which anybody may have written; NULL: none. */
bool machine_key_parse(struct machine_key *key, const char *text);

/* Whether they are the same machine: sizes of memory may differ by 3 %, as kernels keep
 * different shares for themselves, and an ISA level counts where both know it. If not,
 * why (may be NULL) names the first difference: "its memory is '16 GiB', here '32
 * GiB'".
 */
bool machine_key_same(const struct machine_key *there, const struct machine_key *here,
                      char *why, size_t cap);

/* "AMD EPYC, 2 CPUs, 23.5 GiB, kvm", without what is not known. Returns buf. */
const char *machine_key_name(const struct machine_key *key, char *buf, size_t cap);

uint64_t machine_key_hash(const struct machine_key *key);

#endif

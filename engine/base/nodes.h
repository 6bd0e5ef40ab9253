/* SPDX-License-Identifier: MIT
 *
 * nodes.h - which NUMA nodes threads run on and memory lies on
 *
 * Model of the world: the kernel takes a page from the node of the thread that touches
 * it first; a page of a file, from that of the thread that reads it. What threads of
 * several nodes are going to read is therefore spread over their nodes. Nodes are
 * numbers of the kernel's, those of /sys/devices/system/node; 64 and later ones are
 * left out.
 *
 * A kernel without NUMA has no such calls: no node is known, and nothing is spread.
 *
 * Threading: nodes_spread_begin() is about the calling thread, the others are pure.
 */
#ifndef SLM_ENGINE_BASE_NODES_H
#define SLM_ENGINE_BASE_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/thread_pool.h"

#define NODES_MAX 64

/* Nodes that the threads of the pool run on now: bit n is node n. pool NULL: that of
 * the caller. 0: not known. */
uint64_t nodes_of_threads(struct thread_pool *pool);

/* Pages that the calling thread takes from now on, those of files that it reads
 * included, come from these nodes in turn. Until nodes_spread_end(), which is called
 * where this has returned true: not where there are fewer than two nodes, nor where the
 * process was started with a policy of memory (numactl), which stays. */
bool nodes_spread_begin(uint64_t nodes);
void nodes_spread_end(void);

/* Also pages of [addr, addr + bytes), whole ones that nobody has touched yet,
 * whichever thread does. */
void nodes_spread_memory(void *addr, size_t bytes, uint64_t nodes);

/* How many pages of [addr, addr + bytes) lie on each node, in a sample of 4096 where
 * there are more; returns the sum, in which pages that are not in memory are missing.
 */
size_t nodes_of_memory(const void *addr, size_t bytes, size_t n_on[NODES_MAX]);

#endif

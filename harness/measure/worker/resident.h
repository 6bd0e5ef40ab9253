/* SPDX-License-Identifier: MIT
 *
 * resident.h - memory of this process that must stay resident
 *
 * Pages of files can be dropped and read again; anonymous pages cannot, nor can the
 * page tables. What was swapped out is counted, too: it is needed, and only not here
 * now.
 *
 * Threading: stateless.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_RESIDENT_H
#define SLM_HARNESS_MEASURE_WORKER_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

/* Anonymous memory (huge pages included) and page tables now, by /proc/self/status
 * below root ("": this machine). Shared memory is left out: a file in memory is mapped
 * as that. Some kernels are off by a few dozen pages for each CPU. False: the kernel
 * does not report it (before Linux 4.5). */
bool resident_read(const char *root, uint64_t *bytes);

#endif

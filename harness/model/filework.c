/* SPDX-License-Identifier: MIT
 *
 * filework.c - threads and progress of commands that make a file of a model
 */
#include "harness/model/filework.h"

#include <stdio.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/machine/topology.h"

enum status filework_pool(struct thread_pool **pool, int n_threads, struct err *err)
{
    struct topology topo;

    if (!n_threads) {
        const enum status st = topology_read(&topo, "", err);

        if (st)
            return st;
        n_threads = topo.threads_default;
    }
    return thread_pool_start(pool, n_threads, NULL, err);
}

bool filework_progress(void *bar, uint64_t done, uint64_t total)
{
    char detail[64];

    snprintf(detail, sizeof detail, "%s of %s", bytes_text(done).text,
             bytes_text(total).text);
    progress_update(bar, (double)done / (double)total, detail);
    return interrupted();
}

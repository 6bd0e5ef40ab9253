/* SPDX-License-Identifier: MIT
 *
 * memory_relief.c - between the signs of too little memory and the weights
 */
#include "harness/model/memory_relief.h"

#include "engine/base/clock.h"

static void relieve(void *arg)
{
    struct memory_relief *r = arg;
    const uint64_t lacking = memory_watch_lacking(&r->watch, clock_ns());
    struct err err = ERR_INIT;
    uint64_t freed;

    if (!lacking || r->at_end)
        return;
    /* A half is better than nothing where all cannot be given. */
    for (uint64_t bytes = lacking; bytes >= MEMORY_WATCH_STEP / 16; bytes /= 2) {
        err_clear(&err);
        if (slm_reclaim(r->m, bytes, &freed, &err) == ST_OK) {
            r->bytes += freed;
            r->n++;
            if (r->tell)
                r->tell(r->arg, r);
            return;
        }
        if (err.code != ST_NO_MEMORY)
            break;
    }
    r->at_end = true;
}

void memory_relief_begin(struct memory_relief *r, struct slm *m)
{
    const enum weights_residency residency = slm_info(m)->residency;

    *r = (struct memory_relief){.m = m, .tell = r->tell, .arg = r->arg};
    if (residency != WEIGHTS_PACKED && residency != WEIGHTS_STREAM)
        return;
    memory_watch_begin(&r->watch, "", clock_ns());
    slm_set_eval_hook(m, relieve, r);
}

void memory_relief_end(struct memory_relief *r)
{
    if (r->m)
        slm_set_eval_hook(r->m, NULL, NULL);
    r->m = NULL;
}

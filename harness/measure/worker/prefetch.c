/* SPDX-License-Identifier: MIT
 *
 * prefetch.c - settings of software prefetch as text
 */
#include "harness/measure/worker/worker.h"

#include <stdio.h>

static const char *prefetch_text(struct kern_prefetch prefetch, char *buf, size_t cap)
{
    if (prefetch.distance)
        snprintf(buf, cap, "%s %u", kern_prefetch_hint_name(prefetch.hint),
                 (unsigned)prefetch.distance);
    else
        snprintf(buf, cap, "off");
    return buf;
}

const char *prefetch_of_model(const struct slm *m, char *buf, size_t cap)
{
    struct slm_tuning tuning;
    size_t n = 0;

    slm_get_tuning(m, &tuning);
    *buf = '\0';
    for (int i = 0; i < KERN_N_FMT; i++) {
        const enum kern_format fmt = (enum kern_format)i;
        char one[24];

        if (slm_prefetches(m, fmt) && n < cap)
            n += (size_t)snprintf(
                buf + n, cap - n, "%s%s %s x%u", n ? "; " : "",
                kern_format_info(fmt)->name,
                prefetch_text(tuning.prefetch[fmt], one, sizeof one),
                (unsigned)kern_panels_interleaved(tuning.prefetch[fmt]));
    }
    return buf;
}

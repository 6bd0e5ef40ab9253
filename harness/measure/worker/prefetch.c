/* SPDX-License-Identifier: MIT
 *
 * prefetch.c - settings of software prefetch as text
 */
#include "harness/measure/worker/worker.h"

#include "harness/base/format.h"

const char *prefetch_of_model(const struct slm *m, char *buf, size_t cap)
{
    struct slm_tuning tuning;

    slm_get_tuning(m, &tuning);
    *buf = '\0';
    for (int i = 0; i < KERN_N_FMT; i++) {
        const enum kern_format fmt = (enum kern_format)i;
        const struct kern_prefetch p = tuning.prefetch[fmt];

        if (!slm_prefetches(m, fmt))
            continue;
        text_append(buf, cap, "%s%s ", *buf ? "; " : "", kern_format_info(fmt)->name);
        if (p.distance)
            text_append(buf, cap, "%s %u", kern_prefetch_hint_name(p.hint),
                        (unsigned)p.distance);
        else
            text_append(buf, cap, "off");
        text_append(buf, cap, " x%u", (unsigned)kern_panels_interleaved(p));
    }
    return buf;
}

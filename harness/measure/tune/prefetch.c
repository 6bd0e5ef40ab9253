/* SPDX-License-Identifier: MIT
 *
 * prefetch.c - settings of software prefetch to and from text
 */
#include "harness/measure/tune/prefetch.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "harness/base/parse.h"

const char *prefetch_text(struct kern_prefetch prefetch, char *buf, size_t cap)
{
    if (prefetch.distance)
        snprintf(buf, cap, "%s %u", kern_prefetch_hint_name(prefetch.hint),
                 (unsigned)prefetch.distance);
    else
        snprintf(buf, cap, "off");
    return buf;
}

bool prefetch_parse(const char *text, struct kern_prefetch *prefetch)
{
    const char *space = strchr(text, ' ');
    struct err ignored = ERR_INIT;
    long long distance;

    if (!strcasecmp(text, "off")) {
        *prefetch = (struct kern_prefetch){0, KERN_PREFETCH_T0, 0};
        return true;
    }
    for (int i = 0; space && i < KERN_N_PREFETCH; i++) {
        const enum kern_prefetch_hint hint = (enum kern_prefetch_hint)i;
        const char *name = kern_prefetch_hint_name(hint);

        if ((size_t)(space - text) != strlen(name) ||
            strncasecmp(text, name, strlen(name)) != 0)
            continue;
        if (parse_integer(space + 1, "distance", 1, TUNING_MAX_DISTANCE, &distance,
                          &ignored))
            return false;
        *prefetch = (struct kern_prefetch){(uint32_t)distance, hint, 0};
        return true;
    }
    return false;
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

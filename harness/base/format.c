/* SPDX-License-Identifier: MIT
 *
 * format.c - figures as people read them
 */
#include "harness/base/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_append(char *buf, size_t cap, const char *fmt, ...)
{
    const size_t used = strlen(buf);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf + used, cap - used, fmt, ap);
    va_end(ap);
}

void format_size(char *buf, size_t cap, uint64_t bytes)
{
    static const char suffix[] = "BKMGT";
    int u = 0;

    while (u < 4 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(buf, cap, "%llu%.*s", (unsigned long long)bytes, u > 0, &suffix[u]);
}

void format_cpus(char *buf, size_t cap, const int *cpus, int n)
{
    buf[0] = '\0';
    for (int i = 0; i < n;) {
        int last = i;

        while (last + 1 < n && cpus[last + 1] == cpus[last] + 1)
            last++;
        text_append(buf, cap, "%s%d", i ? "," : "", cpus[i]);
        if (last > i)
            text_append(buf, cap, "-%d", cpus[last]);
        i = last + 1;
    }
    if (strlen(buf) == cap - 1 && cap > 4)
        strcpy(buf + cap - 4, "...");
}

/* SPDX-License-Identifier: MIT
 *
 * progress.c - the progress line
 */
#include "harness/base/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"

#define REDRAW_NS 100000000u /* ten times a second */
#define BAR_CELLS 20

void progress_begin(struct progress *p, const char *label)
{
    p->label = label;
    p->begin_ns = clock_ns();
    p->drawn_ns = 0;
    p->on = isatty(STDERR_FILENO);
    p->shown = false;
}

void progress_update(struct progress *p, double fraction, const char *detail)
{
    const uint64_t now = clock_ns();
    char bar[BAR_CELLS + 1], left[48] = "";

    if (!p->on || (p->drawn_ns && now - p->drawn_ns < REDRAW_NS))
        return;
    p->drawn_ns = now;
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = i < (int)(fraction * BAR_CELLS + 0.5) ? '#' : '.';
    bar[BAR_CELLS] = '\0';

    const double elapsed = (double)(now - p->begin_ns) * 1e-9;
    if (fraction > 0.02 && elapsed > 1) {
        char duration[32];

        format_duration(duration, sizeof duration, elapsed / fraction * (1 - fraction));
        snprintf(left, sizeof left, ", %s left", duration);
    }
    fprintf(stderr, "\r\033[K%s [%s] %3.0f %%%s%s%s", p->label, bar, fraction * 100,
            left, detail ? "  " : "", detail ? detail : "");
    fflush(stderr);
    p->shown = true;
}

void progress_end(struct progress *p)
{
    if (p->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->shown = false;
}

/* SPDX-License-Identifier: MIT
 *
 * progress.c - the progress line
 */
#include "harness/base/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"

#define REDRAW_NS     100000000u /* ten times a second */
#define BAR_CELLS     20
#define USUAL_COLUMNS 80
#define SECOND_NS     UINT64_C(1000000000)
#define FIRST_NS      (10 * SECOND_NS) /* shorter work needs no line */
#define GAP_MAX_NS    (300 * SECOND_NS)
#define NEVER_NS      UINT64_MAX

int terminal_columns(FILE *f)
{
    struct winsize size;

    if (!isatty(fileno(f)))
        return 0;
    return ioctl(fileno(f), TIOCGWINSZ, &size) || !size.ws_col ? USUAL_COLUMNS
                                                               : size.ws_col;
}

/* Until the first line where stderr is no terminal. */
static uint64_t first_gap(void)
{
    const char *text = getenv("SLMBENCH_PROGRESS");
    const double seconds = text ? strtod(text, NULL) : 0;

    if (text && !strcmp(text, "none"))
        return NEVER_NS;
    return seconds > 0 && seconds <= 86400 ? (uint64_t)(seconds * 1e9) : FIRST_NS;
}

void message_print(const char *text)
{
    const int columns = terminal_columns(stderr);

    if (columns <= 0) {
        fprintf(stderr, "bench: %s\n", text); /* one write: others write there, too */
        return;
    }
    fputs("bench: ", stderr);
    text_wrap(stderr, text, 7, 7, columns < 40 ? 40 : columns, true);
}

void progress_begin(struct progress *p, const char *label)
{
    p->label = label;
    p->now_ns = clock_ns;
    p->begin_ns = p->part_ns = clock_ns();
    p->drawn_ns = 0;
    p->is_bound = false;
    p->on = isatty(STDERR_FILENO);
    p->shown = false;
    p->next_ns = p->gap_ns = first_gap();
}

/* ", 28:10 min left", or nothing if too little is done for an estimate. */
static void time_left(char *buf, size_t cap, const struct progress *p, uint64_t now_ns,
                      double fraction)
{
    const double elapsed_s = (double)(now_ns - p->part_ns) * 1e-9;

    buf[0] = '\0';
    if (fraction > 0.02 && elapsed_s > 1)
        snprintf(buf, cap, ", %s%s left", p->is_bound ? "at most " : "",
                 duration_text(elapsed_s / fraction * (1 - fraction)).text);
}

static void draw(struct progress *p, double fraction, const char *left,
                 const char *detail)
{
    char bar[BAR_CELLS + 1], shown[128], line[320], cut[320];
    const int columns = terminal_columns(stderr);
    const size_t room = columns < 8                  ? USUAL_COLUMNS
                        : columns < (int)sizeof(cut) ? (size_t)columns
                                                     : sizeof cut;

    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = i < (int)(fraction * BAR_CELLS + 0.5) ? '#' : '.';
    bar[BAR_CELLS] = '\0';
    snprintf(line, sizeof line, "%s [%s] %3.0f %%%s%s%s", p->label, bar, fraction * 100,
             left, detail ? "  " : "", text_harmless(shown, sizeof shown, detail));
    fprintf(stderr, "\r\033[K%s", text_harmless(cut, room, line));
    fflush(stderr);
    p->shown = true;
}

void progress_update(struct progress *p, double fraction, const char *detail)
{
    const uint64_t now = p->now_ns();
    char left[48], shown[128];

    if (p->on ? p->drawn_ns && now - p->drawn_ns < REDRAW_NS
              : now - p->begin_ns < p->next_ns)
        return;
    p->drawn_ns = now;
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    time_left(left, sizeof left, p, now, fraction);
    if (p->on) {
        draw(p, fraction, left, detail);
        return;
    }
    fprintf(stderr, "bench: %s: %d %% done%s%s%s\n", p->label, (int)(fraction * 100),
            left, detail ? "; " : "", text_harmless(shown, sizeof shown, detail));
    p->gap_ns = 2 * p->gap_ns < GAP_MAX_NS ? 2 * p->gap_ns : GAP_MAX_NS;
    p->next_ns = now - p->begin_ns + p->gap_ns;
}

void progress_part(struct progress *p)
{
    p->part_ns = p->now_ns();
}

void progress_step(struct progress *p)
{
    if (p->next_ns != NEVER_NS)
        p->next_ns = 0;
}

void progress_end(struct progress *p)
{
    if (p->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->shown = false;
}

/* SPDX-License-Identifier: MIT
 *
 * users_charts.c - tok/s against latency, the ladder, and times to the first token
 */
#include <math.h>

#include "harness/base/format.h"
#include "harness/judge/users/users_charts_internal.h"
#include "harness/rows/report_rows.h"

#define TEXT_CHARACTERS 60   /* of a CPU in the line below the title */
#define LOG_RATIO       12.0 /* beyond it an axis is logarithmic */

/* ---- axes ------------------------------------------------------------------------ */

void users_range_widen(struct users_range *r, double v)
{
    r->min = fmin(r->min, v); /* both pass over a NaN */
    r->max = fmax(r->max, v);
}

struct users_range users_range_with_room(struct users_range r, bool from_zero)
{
    r.log = !from_zero && r.min > 0 && r.max / r.min > LOG_RATIO;
    if (r.log) {
        r.max *= pow(r.max / r.min, 0.13); /* of a limit, and its words above it */
        r.min /= 1.3;
        return r;
    }
    r.min = from_zero || r.min < 0.6 * r.max ? 0 : r.min - 0.1 * (r.max - r.min);
    r.max += 0.1 * (r.max - r.min);
    if (!(r.max > r.min))
        r.max = r.min + 1;
    return r;
}

double users_limit_of(const struct slo *slo, int part)
{
    const double v = part ? slo->tpot_ms : slo->ttft_s;

    return v > 0 ? v : NAN;
}

/* ---- words ----------------------------------------------------------------------- */

/* "yi-1.5-9b · 512 + 128 tokens · AMD EPYC, 2 CPUs", as far as it holds for all. */
static void describe(char *buf, size_t cap, const struct users *u,
                     const struct report_machine *machine)
{
    char text[200];

    users_describe(u, buf, cap);
    if (*buf && (*machine->cpu_model || machine->n_cpus > 0 || u->n_left_out))
        text_append(buf, cap, "%s", USERS_DOT);
    text_append(buf, cap, "%s",
                text_shorten(text, sizeof text, machine->cpu_model, TEXT_CHARACTERS));
    if (machine->n_cpus > 0)
        text_append(buf, cap, ", %d CPU%s", machine->n_cpus,
                    plural(machine->n_cpus, "s"));
    if (u->n_left_out)
        text_append(buf, cap, "%smore servers are not shown", USERS_DOT);
}

/* ---- all of them ----------------------------------------------------------------- */

enum status users_charts(const char *dir, const char *again,
                         const struct result_part *part, bool *any, struct err *err)
{
    struct users u, open = {0};
    char subtitle[400], origin[160];
    const struct chart_place to = {
        .dir = dir,
        .subtitle = subtitle,
        .origin = report_origin(part->rows, part->n, origin, sizeof origin),
        .again = again};
    enum status st = users_find(&u, part->rows, part->n, err);

    if (st == ST_OK)
        st = users_find_open(&open, part->rows, part->n, err);
    for (int i = 0; i < USERS_N_CHARTS && st == ST_OK && (u.n || open.n); i++) {
        const struct users *own = i == USERS_OPEN ? &open : &u;

        if (own->n)
            describe(subtitle, sizeof subtitle, own, &part->run->about);
        st = users_draw_levels(own, (enum users_chart)i, &to, any, err);
    }
    if (st == ST_OK && u.n) {
        describe(subtitle, sizeof subtitle, &u, &part->run->about);
        st = users_draw_ttft(&u, &to, part->run->dir, any, err);
    }
    users_free(&u);
    users_free(&open);
    return st;
}

enum status users_charts_check(const struct path_list *inputs, const char *dir,
                               struct err *err)
{
    const char *names[USERS_N_CHARTS + 2] = {USERS_TTFT};

    for (int i = 0; i < USERS_N_CHARTS; i++)
        names[i + 1] = users_chart_name((enum users_chart)i);
    return chart_files_check(inputs, dir, names, err);
}

/* SPDX-License-Identifier: MIT
 *
 * sweep_print.c - the plan, the first line, and that of a launch that is done
 */
#include "harness/measure/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/rows/report_rows.h"

#define LINE_WIDTH 79
#define INDENT     4 /* of what does not fit after a point's name */

/* "24.5 tok/s [23.5, 25.8]", in digits that the interval supports. */
static void append_speed(char *buf, size_t cap, const struct row *row)
{
    const double lo = row->tok_per_s_lo, hi = row->tok_per_s_hi;
    const double half = lo > 0 ? (hi - lo) / 2 : row->tok_per_s / 10;
    char figure[24];

    if (!(row->tok_per_s > 0))
        return;
    text_append(buf, cap, " %s tok/s",
                format_measured(figure, sizeof figure, row->tok_per_s, half, 3));
    if (!(lo > 0))
        return;
    text_append(buf, cap, " [%s, ",
                format_measured(figure, sizeof figure, lo, half, 3));
    text_append(buf, cap, "%s]", format_measured(figure, sizeof figure, hi, half, 3));
}

/* What came out. */
static void append_result(char *buf, size_t cap, const struct row *row)
{
    text_append(buf, cap, "%s", row_status_text(row));
    append_speed(buf, cap, row);
    if (row->mbu > 0)
        text_append(buf, cap, ", %.0f %% of roof", 100 * row->mbu);
    if (row->limiter != FIELD_NO_ENUM)
        text_append(buf, cap, ", limited by %s", row_limiter_text(row));
    if (row_needed_bytes(row) > 0)
        text_append(buf, cap, ", memory %s",
                    bytes_text((uint64_t)row_needed_bytes(row)).text);
    if (*row->validity && strncmp(row->validity, "valid", 5))
        text_append(buf, cap, ", %s", row->validity);
    if (*row->detail)
        text_append(buf, cap, "; %s", row->detail);
}

void sweep_print_row(FILE *f, const struct row *row, size_t n, size_t n_round,
                     int columns)
{
    char head[160] = "", result[768] = "";

    text_append(head, sizeof head, "[%zu/%zu] %-52s ", n, n_round, row->point);
    append_result(result, sizeof result, row);
    if (!columns || (int)(strlen(head) + strlen(result)) < columns) {
        fprintf(f, "%s%s\n", head, result);
    } else {
        fprintf(f, "[%zu/%zu] %s\n%*s", n, n_round, row->point, INDENT, "");
        text_wrap(f, result, INDENT, INDENT, columns - 1, false);
    }
    fflush(f);
}

/* ---- the first line -------------------------------------------------------------- */

static void append_limits(char *buf, size_t cap, const struct sweep_settings *s)
{
    for (int i = 0; i < s->n_mem_limits; i++)
        text_append(buf, cap, "%s%s",
                    i == 0                     ? ""
                    : i + 1 == s->n_mem_limits ? " and "
                                               : ", ",
                    s->mem_limits[i] ? bytes_text(s->mem_limits[i]).text
                                     : "without a limit");
}

void sweep_print_memory(FILE *f, const struct sweep_settings *s,
                        const struct topology *topo)
{
    char text[512] = "";

    if (sweep_max_memory(s)) {
        append_limits(text, sizeof text, s);
        fprintf(f, "memory limit of each point: %s\n", text);
    } else if (topology_is_limited(topo)) {
        fprintf(f,
                "memory: the limit that is in force here, %s (%s); --mem sets less\n",
                bytes_text(topo->mem_limit).text, topo->mem_limit_source);
    } else {
        fprintf(f, "memory: all of this machine, %s; --mem sets a limit\n",
                bytes_text(topo->mem_total).text);
    }
    fflush(f);
}

/* Files that are made for the sweep. */
static uint64_t made_bytes(const struct sweep_plan *plan)
{
    uint64_t sum = 0;

    for (size_t m = 0; m < plan->n_models; m++) {
        const struct modelref *ref = &plan->points[plan->first[m]].setup.model;
        struct err ignored = ERR_INIT;
        uint64_t bytes = 0;

        if (plan->first[m] < plan->first[m + 1] && ref->synthetic &&
            modelref_bytes(ref, &bytes, &ignored) == ST_OK)
            sum += bytes;
    }
    return sum;
}

void sweep_print_effort(FILE *f, const struct sweep_settings *s,
                        const struct sweep_plan *plan)
{
    const int most = s->max_launches > s->n_launches ? s->max_launches : s->n_launches;
    const uint64_t made = made_bytes(plan);
    char text[300] = "";

    text_append(text, sizeof text, "%zu point%s, %d", plan->n_points,
                plural(plan->n_points, "s"), s->n_launches);
    if (most > s->n_launches)
        text_append(text, sizeof text, " to %d", most);
    text_append(text, sizeof text, " launch%s each: at most %s of measuring",
                plural(most, "es"),
                duration_text((double)plan->n_points * most * s->base.budget_s).text);
    if (made)
        text_append(text, sizeof text, "; model files of %s are made%s",
                    bytes_text(made).text,
                    s->keep_models ? "" : ", and removed at the end");
    text_wrap(f, text, 0, 0, LINE_WIDTH, false);
    fflush(f);
}

/* ---- the plan -------------------------------------------------------------------- */

/* Print each doubt about a thread count on these CPUs once. */
static void print_doubts(const struct sweep_plan *plan, const struct topology *topo)
{
    int last = 0;

    for (int next = 1; next; last = next) {
        const struct model_setup *found = NULL;
        char text[256];

        next = 0;
        for (size_t i = 0; i < plan->n_points; i++) {
            const struct model_setup *m = &plan->points[i].setup;

            if (m->n_threads > last && (!next || m->n_threads < next)) {
                next = m->n_threads;
                found = m;
            }
        }
        if (found && topology_doubts_threads(topo, next,
                                             found->explicit_cpus ? found->cpus : NULL,
                                             text, sizeof text)) {
            printf("note: ");
            text_wrap(stdout, text, 6, 6, LINE_WIDTH, true);
        }
    }
}

enum status sweep_print_plan(const struct sweep_settings *s,
                             const struct sweep_plan *plan, const struct topology *topo,
                             struct err *err)
{
    size_t *order = malloc(plan->n_points * sizeof *order);
    char id[96];

    if (!order)
        return err_set(err, ST_NO_MEMORY, "no memory to order %zu points",
                       plan->n_points);
    for (int round = 1; round <= s->n_launches; round++) {
        sweep_round_order(plan, s->base.setup.seed, round, order);
        if (s->n_launches > 1)
            printf("round %d:\n", round);
        for (size_t i = 0; i < plan->n_points; i++) {
            point_id(&plan->points[order[i]], id, sizeof id);
            printf("%s\n", id);
        }
    }
    free(order);
    sweep_print_effort(stdout, s, plan);
    if (s->max_launches > s->n_launches)
        printf("up to %d launches while the interval is wider than %g %%\n",
               s->max_launches, s->ci_pct);
    printf("up to %g s of measuring in each launch, seed %llu\n", s->base.budget_s,
           (unsigned long long)s->base.setup.seed);
    print_doubts(plan, topo);
    return ST_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * kernel_report.c - lines from results: statistics, roofs, groups, order; the CSV
 */
#include "harness/measure/kernels/kernel_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/newfile.h"
#include "harness/base/order.h"

/* ---- roofs ----------------------------------------------------------------------- */

static const struct kernel_line *roof_line(const struct kernel_report *r,
                                           const struct kernel_case *roof)
{
    const bool any_level = !strcmp(roof->what, "read"); /* the best one was taken */

    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *l = &r->v[i];

        if (kernel_case_is_roof(&l->c) && !strcmp(l->c.what, roof->what) &&
            l->c.n_threads == roof->n_threads && l->state == LINE_OK &&
            (any_level || !strcmp(l->c.isa, roof->isa)))
            return l;
    }
    return NULL;
}

/* The row of one column, cold, that a row of few columns is compared with. */
static const struct kernel_line *one_column_line(const struct kernel_report *r,
                                                 const struct kernel_line *l)
{
    if (l->c.cache != KERNEL_COLD || l->c.n_x == 1 || l->c.n_x >= KERNEL_MANY_COLUMNS ||
        strncmp(l->c.op, "gemm", 4) != 0)
        return NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct kernel_line *o = &r->v[i];

        if (!strncmp(o->c.op, "gemv", 4) && !strcmp(o->c.op + 4, l->c.op + 4) &&
            !strcmp(o->c.what, l->c.what) && !strcmp(o->c.isa, l->c.isa) &&
            o->c.cache == KERNEL_COLD && o->c.n_threads == l->c.n_threads &&
            !o->c.prefetch.n_panels && o->c.rows == l->c.rows &&
            o->c.cols == l->c.cols && o->state == LINE_OK)
            return o;
    }
    return NULL;
}

static void add_fractions(const struct kernel_report *r, struct kernel_line *l)
{
    const struct kernel_line *other;
    struct kernel_case roof;

    l->of_read_roof = l->of_peak = l->vs_one_column = NAN;
    if (l->state != LINE_OK)
        return;
    if (kernel_case_read_roof(&roof, &l->c) && (other = roof_line(r, &roof)) &&
        other->gbps.median > 0)
        l->of_read_roof = l->gbps.median / other->gbps.median;
    if (kernel_case_peak(&roof, &l->c) && (other = roof_line(r, &roof)) &&
        other->gops.median > 0)
        l->of_peak = l->gops.median / other->gops.median;
    other = one_column_line(r, l);
    if (other)
        l->vs_one_column = l->ns.median / other->ns.median;
}

double kernel_line_of_roof(const struct kernel_line *l)
{
    return l->c.cache == KERNEL_COLD && l->c.n_x < KERNEL_MANY_COLUMNS ? l->of_read_roof
                                                                       : l->of_peak;
}

/* ---- lines ----------------------------------------------------------------------- */

/* Statistics of a counter that all repetitions have, or none. */
static void summarise(struct stats *s, const double *v, size_t n, double *scratch)
{
    if (n && isfinite(v[0]))
        stats_summary(s, v, n, scratch);
}

static bool fill_line(struct kernel_line *l, const struct kernel_result *r)
{
    double *scratch = malloc(r->n * sizeof *scratch + 1);

    if (!scratch)
        return false;
    summarise(&l->ns, r->ns, r->n, scratch);
    summarise(&l->gbps, r->gbps, r->n, scratch);
    summarise(&l->gops, r->gops, r->n, scratch);
    l->wps = r->n ? stats_median(r->wps, r->n, scratch) : NAN;
    l->huge_share = r->huge_share;
    free(scratch);
    if (r->error[0]) {
        l->state = strstr(r->error, "not timed") ? LINE_WRONG : LINE_FAILED;
        snprintf(l->reason, sizeof l->reason, "%s", r->error);
    } else if (r->n == 0) {
        l->state = LINE_STOPPED;
        snprintf(l->reason, sizeof l->reason, "not finished");
    }
    return true;
}

/* ---- groups and order ------------------------------------------------------------ */

/* Position in the registry; unknown names come last. */
static int op_place(const char *op)
{
    int i = 0;

    while (i < KERN_N_OP && strcmp(kern_op_name((enum kern_op)i), op) != 0)
        i++;
    return strcmp(op, "roof") ? i : KERN_N_OP + 1;
}

static int isa_place(const char *isa)
{
    int i = 0;

    while (i < KERN_N_ISA && strcmp(isa_name((enum kern_isa)i), isa) != 0)
        i++;
    return i;
}

static int what_place(const char *what)
{
    return (int)kern_format_by_name(what);
}

static int compare_prefetch(const struct kern_prefetch *x,
                            const struct kern_prefetch *y)
{
    ORDER_BY((int)x->n_panels - (int)y->n_panels);
    ORDER_BY((x->distance > 0) - (y->distance > 0));
    ORDER_BY((int)x->hint - (int)y->hint);
    return order_ints(x->distance, y->distance);
}

static int compare_groups(const struct kernel_case *x, const struct kernel_case *y)
{
    ORDER_BY(op_place(x->op) - op_place(y->op));
    ORDER_BY(strcmp(x->op, y->op));
    ORDER_BY(order_ints(x->n_x, y->n_x));
    ORDER_BY((int)x->cache - (int)y->cache);
    ORDER_BY(x->n_threads - y->n_threads);
    return compare_prefetch(&x->prefetch, &y->prefetch);
}

static int compare_lines(const void *a, const void *b)
{
    const struct kernel_case *x = &((const struct kernel_line *)a)->c;
    const struct kernel_case *y = &((const struct kernel_line *)b)->c;

    ORDER_BY(compare_groups(x, y));
    ORDER_BY(what_place(x->what) - what_place(y->what));
    ORDER_BY(strcmp(x->what, y->what));
    ORDER_BY(isa_place(x->isa) - isa_place(y->isa));
    return strcmp(x->isa, y->isa);
}

/* Vector operations have no format: they are one group, whose rows are operations. */
static bool same_group(const struct kernel_case *x, const struct kernel_case *y)
{
    return (!x->what[0] && !y->what[0]) || compare_groups(x, y) == 0;
}

static void number_groups(struct kernel_report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct kernel_line *l = &r->v[i];

        if (kernel_case_is_roof(&l->c))
            l->group = -1;
        else if (i && same_group(&r->v[i - 1].c, &l->c))
            l->group = r->v[i - 1].group;
        else
            l->group = r->n_groups++;
    }
}

const char *kernel_group_name(char *buf, size_t cap, const struct kernel_case *c)
{
    snprintf(buf, cap, "%s", c->what[0] ? c->op : "vector operations");
    if (!c->what[0])
        return buf;
    if (c->n_x != 1)
        text_append(buf, cap, " %d", c->n_x);
    if (c->cache == KERNEL_HOT)
        text_append(buf, cap, " hot");
    else if (c->cache == KERNEL_COLD && c->n_x < KERNEL_MANY_COLUMNS)
        text_append(buf, cap, " cold");
    if (c->n_threads != 1)
        text_append(buf, cap, ", %d threads", c->n_threads);
    if (c->prefetch.n_panels)
        text_append(buf, cap, ", %s x%u", kernel_prefetch_name(c->prefetch).text,
                    (unsigned)c->prefetch.n_panels);
    return buf;
}

enum status kernel_report_make(struct kernel_report *report,
                               const struct kernel_results *results,
                               const struct kernel_plan *plan, struct err *err)
{
    const size_t n_skip = plan ? plan->n_skip : 0;
    struct kernel_report r = {.v = calloc(results->n + n_skip + 1, sizeof *r.v)};
    bool ok = r.v != NULL;

    for (size_t i = 0; i < results->n && ok; i++)
        if (kernel_case_parse(&r.v[r.n].c, results->v[i].name))
            ok = fill_line(&r.v[r.n++], &results->v[i]);
    if (!ok) {
        free(r.v);
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", results->n);
    }
    for (size_t i = 0; i < n_skip; i++) {
        struct kernel_line *l = &r.v[r.n++];

        l->c = plan->skip[i].c;
        l->state = LINE_SKIPPED;
        l->wps = l->huge_share = NAN;
        snprintf(l->reason, sizeof l->reason, "%s", plan->skip[i].reason);
    }
    qsort(r.v, r.n, sizeof *r.v, compare_lines);
    for (size_t i = 0; i < r.n; i++)
        add_fractions(&r, &r.v[i]);
    number_groups(&r);
    if (results->cpu_model[0] && strcmp(results->cpu_model, "unknown") != 0)
        snprintf(r.title, sizeof r.title, "%s, ", results->cpu_model);
    text_append(r.title, sizeof r.title, "%d CPU%s", results->n_cpus,
                results->n_cpus == 1 ? "" : "s");
    if (*results->date)
        text_append(r.title, sizeof r.title, "  \xc2\xb7  measured %.10s%s%s",
                    results->date, *results->version ? " by slmbench " : "",
                    results->version);
    *report = r;
    return ST_OK;
}

void kernel_report_free(struct kernel_report *report)
{
    free(report->v);
    *report = (struct kernel_report){.n = 0};
}

bool kernel_report_has_failure(const struct kernel_report *report)
{
    for (size_t i = 0; i < report->n; i++)
        if (report->v[i].state == LINE_WRONG || report->v[i].state == LINE_FAILED)
            return true;
    return false;
}

/* ---- CSV ------------------------------------------------------------------------- */

static void write_number(FILE *f, double v)
{
    fputc(',', f);
    if (isfinite(v))
        fprintf(f, "%.6g", v);
}

static void write_stats(FILE *f, const struct stats *s)
{
    write_number(f, s->n ? s->median : NAN);
    write_number(f, s->n ? s->lo : NAN);
    write_number(f, s->n ? s->hi : NAN);
}

/* The command that measures the line again. */
static void write_command(FILE *f, const struct kernel_line *l)
{
    if (kernel_case_is_roof(&l->c)) {
        fprintf(f, ",bench probe --threads %d", l->c.n_threads);
        return;
    }
    fprintf(f, ",bench kernels --ops %s --isa %s", l->c.op, l->c.isa);
    if (what_place(l->c.what) < KERN_N_FMT)
        fprintf(f, " --formats %s", l->c.what);
    if (l->c.n_x > 1)
        fprintf(f, " --columns %d", l->c.n_x);
    if (l->c.cache != KERNEL_ANY_CACHE)
        fprintf(f, " --weights %s", l->c.cache == KERNEL_HOT ? "hot" : "cold");
    if (l->c.cache == KERNEL_COLD)
        fprintf(f, " --threads %d", l->c.n_threads);
    if (l->c.prefetch.n_panels)
        fprintf(f, " --prefetch %s --panels %u",
                kernel_prefetch_name(l->c.prefetch).text,
                (unsigned)l->c.prefetch.n_panels);
}

static void write_line(FILE *f, const struct kernel_line *l)
{
    static const char *const states[] = {"ok", "wrong", "failed", "stopped", "skipped"};

    fprintf(f, "%s,%s,%s,%s", kernel_case_name(&l->c).text, l->c.op, l->c.what,
            l->c.isa);
    fprintf(f, ",%d,%d,%d,%d,%s,%d", l->c.rows, l->c.cols, l->c.n, l->c.n_x,
            l->c.cache == KERNEL_HOT    ? "hot"
            : l->c.cache == KERNEL_COLD ? "cold"
                                        : "",
            l->c.n_threads);
    if (l->c.prefetch.n_panels)
        fprintf(f, ",%s,%u", kernel_prefetch_name(l->c.prefetch).text,
                (unsigned)l->c.prefetch.n_panels);
    else
        fprintf(f, ",,");
    fprintf(f, ",%s,", states[l->state]);
    for (const char *s = l->reason; *s; s++) /* reasons are sentences of our own */
        fputc(*s == ',' || *s == '"' || (unsigned char)*s < ' ' ? ';' : *s, f);
    fprintf(f, ",%zu", l->ns.n);
    write_stats(f, &l->ns);
    write_stats(f, &l->gbps);
    write_stats(f, &l->gops);
    write_number(f, l->wps);
    write_number(f, l->of_read_roof);
    write_number(f, l->of_peak);
    write_number(f, l->vs_one_column);
    write_command(f, l);
    fputc('\n', f);
}

enum status kernel_report_csv(const struct kernel_report *report, const char *path,
                              struct err *err)
{
    struct newfile n;

    if (newfile_replace(&n, path, err))
        return err->code;
    fputs("name,op,format,isa,rows,cols,n,n_x,weights,n_threads,prefetch,panels,status,"
          "reason,n_repetitions,ns,ns_lo,ns_hi,gbps,gbps_lo,gbps_hi,gops,gops_lo,gops_h"
          "i,weights_per_s,of_read_roof,of_peak,vs_one_column,command\n",
          n.f);
    for (size_t i = 0; i < report->n; i++)
        write_line(n.f, &report->v[i]);
    return newfile_commit(&n, path, err);
}

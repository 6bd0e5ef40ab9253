/* SPDX-License-Identifier: MIT
 *
 * cache_chart.c - the curve of cache.h as CSV and as a chart
 */
#include "harness/machine/cache.h"

#include <math.h>
#include <stdio.h>

#include "harness/base/chart_files.h"
#include "harness/base/format.h"

#define MIB      ((double)(1 << 20))
#define MAX_TICK 65536

struct picture {
    const struct cache_curve *c;
    const struct topology *t;
};

static void put_data(FILE *f, const void *what)
{
    const struct cache_curve *c = ((const struct picture *)what)->c;

    fputs("line,threads,bytes,mib,again_gbps,evicted_gbps\n", f);
    for (int k = 0; k < c->n_lines; k++)
        for (int i = 0; i < c->line[k].n; i++) {
            const struct cache_point *p = &c->line[k].v[i];

            fprintf(f, "%d,%d,%llu,%.6g,%.6g,%.6g\n", k, c->line[k].n_threads,
                    (unsigned long long)p->bytes, (double)p->bytes / MIB, p->again_gbps,
                    p->evicted_gbps);
        }
}

static double most_gbps(const struct cache_curve *c)
{
    double most = 0;

    for (int k = 0; k < c->n_lines; k++)
        for (int i = 0; i < c->line[k].n; i++) {
            const struct cache_point *p = &c->line[k].v[i];

            most = fmax(most, fmax(p->again_gbps, p->evicted_gbps));
        }
    return most;
}

/* Powers of four, which a logarithmic axis has room for. */
static void put_ticks(FILE *f, double most)
{
    fputs("x_ticks = '", f);
    for (int mib = 1; mib <= most && mib <= MAX_TICK; mib *= 4)
        fprintf(f, "%s\"%d\" %d", mib > 1 ? ", " : "", mib, mib);
    fputs("'\n", f);
}

/* What is measured for each line, 0: not measured; and the size that is reported. */
static void put_sizes(FILE *f, const struct picture *p)
{
    const int n = p->c->n_lines;

    fprintf(f, "reported = %.6g\n", (double)p->t->llc_bytes / MIB);
    fprintf(f, "array size[%d]\narray lo[%d]\narray hi[%d]\n", n, n, n);
    for (int k = 0; k < n; k++) {
        const struct topo_llc *llc = k ? &p->t->llc_all : &p->t->llc_one;

        fprintf(f, "size[%d] = %.6g\nlo[%d] = %.6g\nhi[%d] = %.6g\n", k + 1,
                (double)llc->bytes / MIB, k + 1, (double)llc->lo / MIB, k + 1,
                (double)llc->hi / MIB);
    }
}

static void put_settings(FILE *f, const void *what)
{
    const struct picture *p = what;
    const struct cache_curve *c = p->c;
    const struct cache_line *l = &c->line[0];
    const double last = l->n ? (double)l->v[l->n - 1].bytes / MIB : 1;
    const double most = fmax(1.25 * fmax(last, (double)p->t->llc_bytes / MIB), 2);
    char name[2][40];
    const char *names[2] = {name[0], name[1]};

    for (int k = 0; k < c->n_lines; k++)
        snprintf(name[k], sizeof name[k], "%d thread%s", c->line[k].n_threads,
                 plural(c->line[k].n_threads, "s"));
    chart_file_ranges(f, 0.8, most, 0, 1.2 * most_gbps(c));
    chart_file_texts(f, "series", names, c->n_lines, sizeof name[0]);
    put_ticks(f, most);
    put_sizes(f, p);
}

enum status cache_curve_chart(const struct cache_curve *c, const struct topology *t,
                              const char *dir, struct err *err)
{
    const struct picture p = {c, t};
    char subtitle[200], again[300];
    const struct chart_text chart = {.dir = dir,
                                     .name = "cache",
                                     .form = "cache",
                                     .title = "Read bandwidth by working set",
                                     .subtitle = subtitle,
                                     .again = again};

    snprintf(subtitle, sizeof subtitle, "%s%s%s", t->cpu_model,
             *t->hypervisor ? "  \xc2\xb7  virtual machine" : "",
             c->disturbed || t->llc_disturbed
                 ? "  \xc2\xb7  other programs used the CPUs"
                 : "");
    snprintf(again, sizeof again, "bench topo --measure -o %.250s", dir);
    return chart_files_make(&chart, put_data, put_settings, &p, err);
}

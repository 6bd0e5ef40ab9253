/* SPDX-License-Identifier: MIT
 *
 * topology_cache.c - how large the last-level cache is, measured or reported: as an
 * answer, as a text, and in the chart of cache.h's curve
 */
#include "harness/machine/topology.h"

#include <math.h>
#include <stdio.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/machine/cache.h"

/* A set twice as large as what is served half is served by a few per cent. */
#define PARTLY 2.0

static uint64_t between(uint64_t one, uint64_t all, double share)
{
    return (uint64_t)((double)one + share * ((double)all - (double)one));
}

struct topo_llc topology_cache(const struct topology *t, int n_threads)
{
    const struct topo_llc *one = &t->llc_one, *all = &t->llc_all;
    double share = 1;

    if (!all->bytes)
        return (struct topo_llc){t->llc_bytes, t->llc_bytes, t->llc_bytes};
    if (n_threads < t->llc_threads)
        share = (double)(n_threads - 1) / (t->llc_threads - 1);
    return (struct topo_llc){between(one->bytes, all->bytes, share),
                             between(one->lo, all->lo, share),
                             between(one->hi, all->hi, share)};
}

enum topo_cached topology_cached(const struct topo_llc *cache, double bytes)
{
    return bytes <= (double)cache->bytes         ? TOPO_CACHED
           : bytes <= PARTLY * (double)cache->hi ? TOPO_CACHED_PARTLY
                                                 : TOPO_CACHED_NOT;
}

/* "80 MiB"; a tenth where it is small. */
static void append_mib(char *buf, size_t cap, uint64_t bytes, const char *unit)
{
    const double mib = (double)bytes / (1 << 20);

    text_append(buf, cap, "%.*f%s", mib < 10 ? 1 : 0, mib, unit);
}

static void append_measured(char *buf, size_t cap, const struct topo_llc *llc)
{
    append_mib(buf, cap, llc->bytes, " MiB");
}

static void append_range(char *buf, size_t cap, const struct topo_llc *llc)
{
    append_mib(buf, cap, llc->lo, " to ");
    append_mib(buf, cap, llc->hi, "");
}

/* A set of which the caches serve a half can be larger than the last of them. */
static void append_share(char *buf, size_t cap, const struct topology *t)
{
    const char *about = t->llc_disturbed ? "at least" : "about";
    const bool whole = t->llc_bytes && t->llc_all.bytes > t->llc_bytes;

    text_append(buf, cap, whole ? "and sets of up to %s " : "%s ", about);
    append_measured(buf, cap, &t->llc_all);
    text_append(buf, cap, "%s (",
                whole          ? " are read from it"
                : t->llc_bytes ? " of it serve this machine"
                               : " serve this machine");
}

const char *topology_cache_text(const struct topology *t, char *buf, size_t cap)
{
    char size[32];

    snprintf(buf, cap, "%s reported, ",
             t->llc_bytes ? format_bytes(size, sizeof size, t->llc_bytes) : "no size");
    if (!t->llc_all.bytes) {
        text_append(buf, cap, "not measured");
        return buf;
    }
    append_share(buf, cap, t);
    append_range(buf, cap, &t->llc_all);
    if (t->llc_threads > 1) {
        text_append(buf, cap, "; one thread: ");
        append_measured(buf, cap, &t->llc_one);
        text_append(buf, cap, ", ");
        append_range(buf, cap, &t->llc_one);
    }
    text_append(buf, cap, "%s)",
                t->llc_disturbed ? "; other programs used the CPUs" : "");
    return buf;
}

/* ---- the chart --------------------------------------------------------------------
 */

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

static double max_gbps(const struct cache_curve *c)
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
    chart_file_ranges(f, 0.8, most, 0, 1.2 * max_gbps(c));
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

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
#include "harness/base/program.h"
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

/* A set that the caches serve half can be larger than the last of them. */
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
    snprintf(buf, cap, "%s reported, ",
             t->llc_bytes ? bytes_text(t->llc_bytes).text : "no size");
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

/* ---- the chart ------------------------------------------------------------------- */

#define MIB      ((double)(1 << 20))
#define MAX_TICK 65536

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

static void put_points(struct plot *p, const struct cache_curve *c)
{
    plot_columns(p, "line,threads,bytes,mib,again_gbps,evicted_gbps");
    for (int k = 0; k < c->n_lines; k++)
        for (int i = 0; i < c->line[k].n; i++) {
            const struct cache_point *at = &c->line[k].v[i];

            PLOT_NUMBERS(p, k, c->line[k].n_threads, (double)at->bytes,
                         (double)at->bytes / MIB, at->again_gbps, at->evicted_gbps);
        }
}

static void put_lines(struct plot *p, const struct cache_curve *c)
{
    struct plot_layer l = {.form = PLOT_LINE,
                           .x = {"mib", 0},
                           .y = {"evicted_gbps", 0},
                           .by = "line",
                           .n_by = c->n_lines,
                           .style = plot_stroke(PLOT_OWN, 1.6, PLOT_DOTTED)};

    plot_layer(p, l);
    l.y.column = "again_gbps";
    l.style = plot_stroke(PLOT_OWN, 2, PLOT_WHOLE);
    plot_layer(p, l);
    l.form = PLOT_MARKS;
    l.style = plot_marked(PLOT_OWN, PLOT_SHAPE, 0.9);
    plot_layer(p, l);
    for (int is_again = 0; is_again < 2; is_again++)
        for (int k = 0; k < c->n_lines; k++)
            plot_key(p,
                     plot_printf(p, "%d thread%s, %s", c->line[k].n_threads,
                                 plural(c->line[k].n_threads, "s"),
                                 is_again ? "read again" : "evicted before"),
                     is_again
                         ? (struct plot_style){k, 2, PLOT_WHOLE, PLOT_SHAPE, 0.9, 0}
                         : plot_stroke(k, 1.6, PLOT_DOTTED));
}

/* A size as a line from bottom to top, with its name: each has a level of its own,
 * right of the size or, where there is no room, left of it. */
static void put_size(struct plot *p, double mib, double level, int color, double room,
                     const char *name)
{
    const struct plot_axis *x = &p->panel[0].x;
    const bool is_left = log(mib / x->min) > room * log(x->max / x->min);

    plot_across(p, 0, true, mib, false, plot_stroke(color, 1.6, PLOT_DASHED));
    plot_words(p, 0, (struct plot_at){mib, false}, (struct plot_at){level, true},
               is_left ? -6 : 6, color, name);
}

/* The size that is reported, and what is measured for each line, with its range. */
static void put_sizes(struct plot *p, const struct cache_curve *c,
                      const struct topology *t)
{
    const double reported = (double)t->llc_bytes / MIB;

    if (reported > 0)
        put_size(p, reported, 0.965, PLOT_GREY, 0.82,
                 plot_printf(p, "reported %.4g MiB", reported));
    for (int k = 0; k < c->n_lines; k++) {
        const struct topo_llc *llc = k ? &t->llc_all : &t->llc_one;
        const double lo = (double)llc->lo / MIB, hi = (double)llc->hi / MIB;

        if (!llc->bytes)
            continue;
        plot_guide(p, (struct plot_guide){.form = PLOT_BOX,
                                          .x = {lo, false},
                                          .x2 = {hi, false},
                                          .y = {0, true},
                                          .y2 = {1, true},
                                          .is_behind = true,
                                          .style = plot_filled(k, 0.1)});
        put_size(p, (double)llc->bytes / MIB, 0.965 - 0.055 * (c->n_lines - k), k, 0.6,
                 plot_printf(p, "%d thread%s: measured %.3g MiB (%.3g to %.3g)",
                             c->line[k].n_threads, plural(c->line[k].n_threads, "s"),
                             (double)llc->bytes / MIB, lo, hi));
    }
}

static struct plot *make_plot(const struct cache_curve *c, const struct topology *t,
                              const char *subtitle)
{
    const struct cache_line *l = &c->line[0];
    const double last = l->n ? (double)l->v[l->n - 1].bytes / MIB : 1;
    const double most = fmax(1.25 * fmax(last, (double)t->llc_bytes / MIB), 2);
    struct plot *p = plot_new("cache", "Read bandwidth by working set", subtitle);

    if (!p)
        return NULL;
    put_points(p, c);
    struct plot_panel *a = plot_panel(p, 487, 0.8, most, 0, 1.2 * max_gbps(c));

    a->x.is_log = true;
    a->x.title = "working set, MiB (logarithmic)";
    a->x.no_grid = true;
    a->y.title = "GB/s";
    for (int mib = 1; mib <= most && mib <= MAX_TICK; mib *= 4)
        plot_tick(p, &a->x, mib, NULL);
    put_sizes(p, c, t);
    put_lines(p, c);
    return p;
}

enum status cache_curve_chart(const struct cache_curve *c, const struct topology *t,
                              const char *dir, struct err *err)
{
    char subtitle[200], again[300], now[24];
    struct plot *p;

    snprintf(subtitle, sizeof subtitle, "%s%s%s", t->cpu_model,
             *t->hypervisor ? "  \xc2\xb7  virtual machine" : "",
             c->disturbed || t->llc_disturbed
                 ? "  \xc2\xb7  other programs used the CPUs"
                 : "");
    snprintf(again, sizeof again, "bench topo --measure -o %.250s", dir);
    p = make_plot(c, t, subtitle);
    if (p)
        plot_note(p, plot_printf(p, "measured %.10s by slmbench %s",
                                 format_now(now, sizeof now), build_version()));
    return chart_files_draw(p, dir, again, err);
}

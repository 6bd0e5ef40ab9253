/* SPDX-License-Identifier: MIT
 *
 * point_profile_print.c - a token's time by operation, as a table
 */
#include "harness/measure/point/point_measure.h"

static void print_line(FILE *f, const struct point_profile *p, const char *op,
                       const char *weights, double work_ms, double wait_ms)
{
    fprintf(f, "  %-15s %-8s %9.3f %8.3f %6.1f", op, weights, work_ms, wait_ms,
            100 * (work_ms + wait_ms) / p->sample_ms);
}

static void print_figures(FILE *f, double ms, double bytes, double macs, double roof_ms,
                          const char *bound)
{
    if (!(ms > 0) || !*bound) {
        fputc('\n', f);
        return;
    }
    fprintf(f, " %9.2f %8.2f %9.1f %6.1f  %s\n", bytes * 1e-6, bytes / ms * 1e-6,
            2 * macs / ms * 1e-6, 100 * roof_ms / ms, bound);
}

void point_profile_print(FILE *f, const struct point_profile *p, const struct row *row)
{
    double work = 0, wait = 0, bytes = 0, macs = 0, roof_ms = 0;

    if (!p->n_rows || !(p->sample_ms > 0))
        return;
    fprintf(
        f,
        "\nWhere the time of a %s goes: the mean of %zu, per thread (%lld of them)\n"
        "Roofs of this run: %.1f GB/s, %.0f GOPS int8, %.0f GFLOPS f32\n\n"
        "  %-15s %-8s %9s %8s %6s %9s %8s %9s %6s  %s\n",
        row->kind != POINT_PREFILL ? "token" : "prompt", p->n_samples,
        (long long)row->n_threads, row->roof_gbps, p->int8_gops, p->f32_gops,
        "operation", "weights", "work ms", "wait ms", "%", "MB", "GB/s", "GOPS",
        "% roof", "bound by");
    for (size_t i = 0; i < p->n_rows; i++) {
        const struct point_profile_row *r = &p->rows[i];
        const char *bound;
        const double roof = point_profile_roof_ms(p, r, row->roof_gbps, &bound);

        print_line(f, p, r->op, r->weights, r->work_ms, r->wait_ms);
        print_figures(f, r->work_ms + r->wait_ms, r->bytes, r->macs, roof, bound);
        work += r->work_ms;
        wait += r->wait_ms;
        bytes += r->bytes;
        macs += r->macs;
        roof_ms += roof;
    }
    print_line(f, p, "outside", "", p->sample_ms - work - wait, 0);
    fputc('\n', f);
    print_line(f, p, "all", "", p->sample_ms - wait, wait);
    print_figures(f, p->sample_ms, bytes, macs, roof_ms, "its roofs");
}

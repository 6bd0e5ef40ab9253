/* SPDX-License-Identifier: MIT
 *
 * shares.c - shares of roofs: from rows, and for a machine that was not measured
 */
#include "harness/decide/predict/shares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"

/* Standard deviations of a normal distribution from its middle to the ends of what
 * holds nine tenths. */
#define Z_90 1.645

/* How logarithms of the shares of different machines scatter where little is known of
 * it, as a standard deviation, with the weight of that many machines. In
 * results/examples the medians of two CPUs differ by 4 to 12 % of the bandwidth and by
 * 29 to 40 % of the peak, that is with 0.03 to 0.08 and 0.20 to 0.28. */
static const double usual_sd[] = {[SHARE_DECODE] = 0.08, [SHARE_PREFILL] = 0.28};
#define USUAL_DF 2

/* For shares of products alone, which prefill comes within 2 to 16 % of. */
#define OF_PRODUCTS_SD 0.10

/* Scatter for another virtual machine with the same CPU, and for a format that no sweep
 * has measured. */
#define SAME_CPU_SD     0.03
#define OTHER_FORMAT_SD 0.12

/* Logarithms. */
struct log_share {
    double mid, below, above; /* distances to the quantiles */
};

const char *share_machine_name(const struct machine_key *key, char *buf, size_t cap)
{
    buf[0] = '\0';
    text_append(buf, cap, "%s; %s", key->text[MACHINE_CPU], key->text[MACHINE_CACHES]);
    return buf;
}

enum status share_machine_of_run(char *buf, size_t cap, const struct result_run *run,
                                 const char *path, struct err *err)
{
    if (!run->has_machine)
        return err_set(err, ST_INPUT,
                       "%s has no machine.json, so its machine is not known", path);
    share_machine_name(&run->machine, buf, cap);
    return ST_OK;
}

/* Tiles multiply many times as fast as vectors, whose peak shares are of. */
static bool is_by_tiles(const struct row *r)
{
    return r->isa == KERN_ISA_amx_int8 || r->isa == KERN_ISA_amx_bf16;
}

double share_of_row(const struct row *r, enum share_kind *kind)
{
    const bool decodes = r->kind == POINT_DECODE;

    if (kind)
        *kind = decodes ? SHARE_DECODE : SHARE_PREFILL;
    if (r->status != ROW_STATUS_OK || !(r->tok_per_s > 0) || !row_is_plain(r) ||
        r->limiter == LIMITER_PAGING || r->limiter == LIMITER_DISK ||
        r->limiter == LIMITER_QUOTA || r->limiter == LIMITER_CACHE)
        return NAN;
    if (decodes && r->n_streamed > 0) /* reading from disk slows it down */
        return NAN;
    if (decodes && r->bytes_per_token > 0 && r->roof_gbps > 0)
        return r->tok_per_s * (double)r->bytes_per_token / (r->roof_gbps * 1e9);
    return r->kind == POINT_PREFILL && row_vectors_gops(r) > 0 && !is_by_tiles(r)
               ? r->gops / row_vectors_gops(r)
               : NAN;
}

/* ---- one machine ----------------------------------------------------------------- */

static bool is_of(const struct share *s, const char *machine, enum share_kind kind,
                  enum kern_format format)
{
    return s->kind == kind && !strcmp(s->machine, machine) &&
           (format == KERN_N_FMT || s->format == format);
}

/* How unlike two numbers of threads are; 0 stands for as many as there are. */
static double distance(int wanted, int n)
{
    return wanted ? fabs(log((double)wanted / n)) : 1.0 / n;
}

/* The record with the nearest number of threads, or NULL. */
static const struct share *nearest(const struct shares *s, const char *machine,
                                   enum share_kind kind, enum kern_format format,
                                   int n_threads)
{
    const struct share *found = NULL;

    for (size_t i = 0; i < s->n; i++)
        if (is_of(&s->v[i], machine, kind, format) &&
            (!found || distance(n_threads, s->v[i].n_threads) <
                           distance(n_threads, found->n_threads)))
            found = &s->v[i];
    return found;
}

/* The CPU's name in a machine's, or only its maker: "Intel" of "Intel(R) Xeon(R)
 * Processor; L1d 48K, ..". */
static size_t kin_length(const char *machine, bool maker)
{
    return strcspn(machine, maker ? " (;" : ";");
}

static bool is_kin(const char *a, const char *b, bool maker)
{
    const size_t n = kin_length(a, maker);

    return n > 0 && n == kin_length(b, maker) && !strncmp(a, b, n);
}

/* Share of the peak of arithmetic that products of that format reach on a machine: its
 * own, or the mean of CPUs with its name, or of CPUs of its maker; NAN: not known. */
static double product_of(const struct shares *s, const char *machine,
                         enum kern_format format)
{
    double own = NAN, sum[2] = {0, 0};
    int n[2] = {0, 0};

    for (size_t i = 0; i < s->n; i++) {
        const struct share *v = &s->v[i];

        if (v->kind != SHARE_PRODUCT || v->format != format)
            continue;
        if (!strcmp(v->machine, machine))
            own = v->median;
        for (int maker = 0; maker < 2; maker++)
            if (is_kin(machine, v->machine, maker)) {
                sum[maker] += v->median;
                n[maker]++;
            }
    }
    return own > 0 ? own : n[0] ? sum[0] / n[0] : n[1] ? sum[1] / n[1] : NAN;
}

/* The machine's figure of that format, or of all its formats: the mean of their
 * medians, and all that their quantiles span. of_products: as shares of its products.
 * False: no figure. */
static bool of_machine(const struct shares *s, const char *machine,
                       const struct share_want *want, enum kern_format format,
                       bool of_products, struct log_share *out)
{
    double lo = INFINITY, hi = -INFINITY, sum = 0;
    int n = 0;

    for (int f = 0; f < KERN_N_FMT; f++) {
        const struct share *found =
            format == KERN_N_FMT || format == (enum kern_format)f
                ? nearest(s, machine, want->kind, (enum kern_format)f, want->n_threads)
                : NULL;

        const double whole =
            of_products ? product_of(s, machine, (enum kern_format)f) : 1;

        if (!found || !(whole > 0))
            continue;
        lo = fmin(lo, log(found->lo / whole));
        hi = fmax(hi, log(found->hi / whole));
        sum += log(found->median / whole);
        n++;
    }
    if (!n)
        return false;
    out->mid = sum / n;
    out->below = fmax(0, out->mid - lo);
    out->above = fmax(0, hi - out->mid);
    return true;
}

/* ---- all machines ---------------------------------------------------------------- */

/* Whether record i is the first of its machine. */
static bool begins_machine(const struct shares *s, size_t i)
{
    return i == 0 || strcmp(s->v[i].machine, s->v[i - 1].machine) != 0;
}

static bool is_wanted(const struct share_want *want, const char *machine)
{
    return !want->leave_out || strcmp(machine, want->machine) != 0;
}

/* Speed of a kernel of this format relative to the median of those that sweeps have
 * measured, on a machine where both were timed, at most 1: what is faster than others
 * alone waits for memory like all in a whole model. 1: not known. */
static double kernel_ratio(const struct shares *s, const struct share_want *want)
{
    double least = 1;

    for (size_t i = 0; i < s->n; i++) {
        const char *machine = s->v[i].machine;
        const struct share *own;
        double sum = 0;
        int n = 0;

        if (!begins_machine(s, i) || !is_wanted(want, machine))
            continue;
        own = want->format == KERN_N_FMT
                  ? NULL
                  : nearest(s, machine, SHARE_KERNEL, want->format, want->n_threads);
        for (int f = 0; own && f < KERN_N_FMT; f++) {
            const enum kern_format format = (enum kern_format)f;
            const struct share *other =
                nearest(s, machine, SHARE_KERNEL, format, want->n_threads);

            if (other && nearest(s, machine, want->kind, format, want->n_threads)) {
                sum += other->median;
                n++;
            }
        }
        if (n)
            least = fmin(least, own->median / (sum / n));
    }
    return least;
}

/* Variance of medians of m machines whose squared distances from their mean have that
 * sum, moderated by the usual one. */
static double variance_between(double usual, double squares, int m)
{
    return (USUAL_DF * usual * usual + squares) / (USUAL_DF + m - 1);
}

/* Mean over machines, and the band around it. */
static void combine(const struct log_share *v, int m, enum share_basis basis,
                    double ratio, double usual, struct share_band *band)
{
    struct log_share mean = {0};
    double squares = 0, between;

    for (int i = 0; i < m; i++) {
        mean.mid += v[i].mid / m;
        mean.below += v[i].below / m;
        mean.above += v[i].above / m;
    }
    for (int i = 0; i < m; i++)
        squares += (v[i].mid - mean.mid) * (v[i].mid - mean.mid);
    between = basis == SHARE_SAME_CPU
                  ? SAME_CPU_SD * SAME_CPU_SD
                  : variance_between(usual, squares, m) * (1 + 1.0 / m);
    if (basis == SHARE_OTHER_FORMATS)
        between += OTHER_FORMAT_SD * OTHER_FORMAT_SD;
    mean.mid += log(ratio);
    *band = (struct share_band){
        .mid = exp(mean.mid),
        .lo = exp(mean.mid - hypot(mean.below, Z_90 * sqrt(between))),
        .hi = exp(mean.mid + hypot(mean.above, Z_90 * sqrt(between))),
        .basis = basis,
        .n_machines = m,
    };
}

#define MAX_MACHINES 64

/* Figures of all machines with this format; KERN_N_FMT: any format. */
static int collect(const struct shares *s, const struct share_want *want,
                   enum kern_format format, bool of_products, struct log_share *v)
{
    int m = 0;

    for (size_t i = 0; i < s->n && m < MAX_MACHINES; i++)
        if (begins_machine(s, i) && is_wanted(want, s->v[i].machine) &&
            of_machine(s, s->v[i].machine, want, format, of_products, &v[m]))
            m++;
    return m;
}

/* From other machines, with this format or else with others. whole: what the figures
 * are shares of, as a share of the roof; 0: the roof itself. */
static bool expect(const struct shares *s, const struct share_want *want, double whole,
                   struct share_band *band)
{
    const double usual = whole > 0 ? OF_PRODUCTS_SD : usual_sd[want->kind];
    const double ratio = whole > 0 ? whole : 1;
    struct log_share v[MAX_MACHINES];
    int m =
        want->format != KERN_N_FMT ? collect(s, want, want->format, whole > 0, v) : 0;

    if (m) {
        combine(v, m, SHARE_SAME_FORMAT, ratio, usual, band);
        return true;
    }
    m = collect(s, want, KERN_N_FMT, whole > 0, v);
    if (m)
        combine(v, m, SHARE_OTHER_FORMATS,
                ratio * (want->kind == SHARE_DECODE ? kernel_ratio(s, want) : 1), usual,
                band);
    return m > 0;
}

bool shares_expect(const struct shares *s, const struct share_want *want,
                   struct share_band *band)
{
    struct log_share own;
    double whole = 0;

    if (want->format != KERN_N_FMT && !want->leave_out && want->machine[0] &&
        of_machine(s, want->machine, want, want->format, false, &own)) {
        combine(&own, 1, SHARE_SAME_CPU, 1, 0, band);
        return true;
    }
    if (want->kind == SHARE_PREFILL && want->format != KERN_N_FMT)
        whole = want->product_share > 0 ? want->product_share
                                        : product_of(s, want->machine, want->format);
    return (whole > 0 && expect(s, want, whole, band)) || expect(s, want, 0, band);
}

void shares_free(struct shares *s)
{
    free(s->v);
    *s = (struct shares){NULL, 0};
}

/* SPDX-License-Identifier: MIT
 *
 * predict_check.c - errors of predictions of measured rows
 */
#include "harness/decide/predict/predict_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/rows/report_rows.h"

static const char *const kind_names[] = {[CHECK_DECODE] = "decode",
                                         [CHECK_DISTURBED] = "decode, disturbed",
                                         [CHECK_PREFILL] = "prefill"};

/* ---- predicting a row ------------------------------------------------------------ */

static struct token_work work_of(const struct row *r)
{
    const bool streams = (r->limiter == LIMITER_DISK || r->n_streamed > 0) &&
                         r->disk_bytes_per_token > 0 && r->roof_disk_gbps > 0;

    return (struct token_work){.memory_bytes = (double)r->bytes_per_token,
                               .streamed_bytes =
                                   streams ? (double)r->disk_bytes_per_token : 0};
}

/* False: it cannot be predicted. */
static bool predict_row(struct check_row *out, const struct row *r, const char *machine,
                        const struct result_run *run, const struct shares *shares)
{
    const bool decodes = r->kind == POINT_DECODE;
    struct share_want want = {.kind = decodes ? SHARE_DECODE : SHARE_PREFILL,
                              .format = quantmix_base_named(r->quant),
                              .n_threads = (int)r->n_threads,
                              .machine = machine,
                              .leave_out = true};
    struct share_band band;

    if (want.format != KERN_N_FMT)
        want.product_share = run->product_share[want.format];

    if (!shares_expect(shares, &want, &band))
        return false;
    out->basis = band.basis;
    if (decodes) {
        const struct token_work work = work_of(r);
        const struct token_roofs roofs = {r->roof_gbps, r->roof_disk_gbps,
                                          TOKEN_TIME_DISK_LO, TOKEN_TIME_DISK_HI};

        out->predicted = predict_decode(&work, &roofs, 1, 1, &band);
    } else {
        const double at_peak = r->tok_per_s * row_vectors_gops(r) / r->gops;

        out->predicted =
            (struct range){band.lo * at_peak, band.mid * at_peak, band.hi * at_peak};
    }
    return isfinite(out->predicted.mid);
}

static bool is_complete(const struct row *r)
{
    if (!row_is_plain(r))
        return false;
    return r->kind == POINT_DECODE
               ? r->bytes_per_token > 0 && r->roof_gbps > 0
               : r->kind == POINT_PREFILL && r->gops > 0 && r->roof_gops > 0;
}

static void check_row(struct check *check, const struct row *r, const char *dir,
                      const char *machine, const struct result_run *run,
                      const struct shares *shares)
{
    struct check_row *out = &check->v[check->n];

    if (row_trust(r) < ROW_PARTIAL || !is_complete(r)) {
        check->n_failed++;
        return;
    }
    if (r->limiter == LIMITER_PAGING || r->limiter == LIMITER_QUOTA) {
        check->n_paging++;
        return;
    }
    *out = (struct check_row){
        .dir = dir, .attempt = r->attempt, .tok_per_s = r->tok_per_s};
    out->kind = r->kind == POINT_PREFILL   ? CHECK_PREFILL
                : row_trust(r) == ROW_GOOD ? CHECK_DECODE
                                           : CHECK_DISTURBED;
    snprintf(out->point, sizeof out->point, "%.159s", r->point);
    if (predict_row(out, r, machine, run, shares))
        check->n++;
    else
        check->n_failed++;
}

static enum status check_part(struct check *check, const struct result_part *part,
                              const char *path, const struct shares *shares,
                              struct err *err)
{
    char machine[SHARES_MACHINE_MAX];
    struct check_row *grown;

    if (share_machine_of_run(machine, sizeof machine, part->run, path, err))
        return err->code;
    grown = realloc(check->v, (check->n + part->n) * sizeof *grown);
    if (!grown)
        return err_set(err, ST_NO_MEMORY, "no memory to check %zu rows", part->n);
    check->v = grown;
    for (size_t i = 0; i < part->n; i++)
        check_row(check, &part->rows[i], path, machine, part->run, shares);
    return ST_OK;
}

static enum status check_path(struct check *check, const char *path,
                              const struct shares *shares, struct err *err)
{
    struct result_set set;
    enum status st = result_set_open(&set, path, RESULT_BY_RUN, err);

    for (size_t i = 0; i < set.n_parts && st == ST_OK; i++)
        st = check_part(check, &set.parts[i], path, shares, err);
    result_set_free(&set);
    return st;
}

enum status check_rows(struct check *check, const char *const *dirs, size_t n_dirs,
                       const struct shares *shares, struct err *err)
{
    enum status st = ST_OK;

    *check = (struct check){.v = NULL};
    for (size_t i = 0; i < n_dirs && st == ST_OK; i++)
        st = check_path(check, dirs[i], shares, err);
    if (st == ST_OK && !check->n)
        st = err_set(err, ST_INPUT,
                     "nothing can be predicted: no row of another machine has a share "
                     "of its roof");
    return st;
}

void check_free(struct check *check)
{
    free(check->v);
    check->v = NULL;
}

/* ---- summaries ------------------------------------------------------------------- */

static double error_of(const struct check_row *r)
{
    return r->predicted.mid / r->tok_per_s - 1;
}

static bool is_inside(const struct check_row *r)
{
    return r->tok_per_s >= r->predicted.lo && r->tok_per_s <= r->predicted.hi;
}

bool check_group(const struct check *check, const char *dir, unsigned kinds,
                 struct check_group *group)
{
    double *errors = malloc((check->n + 1) * sizeof *errors);
    size_t n = 0, n_inside = 0;

    *group = (struct check_group){.n = 0};
    for (size_t i = 0; errors && i < check->n; i++) {
        const struct check_row *r = &check->v[i];

        if ((dir && strcmp(r->dir, dir) != 0) || !(kinds & 1u << r->kind))
            continue;
        errors[n++] = fabs(error_of(r));
        n_inside += is_inside(r);
    }
    if (n) {
        stats_sort(errors, n);
        *group = (struct check_group){.n = n,
                                      .median = stats_quantile_sorted(errors, n, 0.5),
                                      .p90 = stats_quantile_sorted(errors, n, 0.9),
                                      .inside = (double)n_inside / (double)n};
    }
    free(errors);
    return n > 0;
}

#define DECODE (1u << CHECK_DECODE | 1u << CHECK_DISTURBED)

bool check_holds(const struct check *check)
{
    struct check_group g;

    return check_group(check, NULL, DECODE, &g) && g.median <= CHECK_MAX_ERROR &&
           g.inside >= CHECK_MIN_INSIDE;
}

/* ---- printing -------------------------------------------------------------------- */

#define NAME_WIDTH 32

static void print_group(FILE *f, const char *name, const char *kind,
                        const struct check *check, const char *dir, unsigned kinds)
{
    struct check_group g;

    if (check_group(check, dir, kinds, &g))
        fprintf(f, "%-*s %-18s %5zu %7.1f %% %7.1f %% %6.0f %%\n", NAME_WIDTH, name,
                kind, g.n, 100 * g.median, 100 * g.p90, 100 * g.inside);
}

void check_print(FILE *f, const struct check *check, const char *const *dirs,
                 size_t n_dirs)
{
    char name[256], shown[256];

    fprintf(f, "Each row predicted from its own roof and other machines' shares.\n\n");
    fprintf(f, "%-*s %-18s %5s %9s %9s %8s\n", NAME_WIDTH, "", "", "", "median",
            "nine of", "inside");
    fprintf(f, "%-*s %-18s %5s %9s %9s %8s\n", NAME_WIDTH, "sweep", "kind", "rows",
            "error", "ten below", "the band");
    for (size_t i = 0; i < n_dirs; i++) {
        result_dir_name(name, sizeof name, dirs[i]);
        text_shorten(shown, sizeof shown, name, NAME_WIDTH);
        for (int k = 0; k < CHECK_N_KINDS; k++)
            print_group(f, shown, kind_names[k], check, dirs[i], 1u << k);
    }
    print_group(f, "all", "decode", check, NULL, DECODE);
    print_group(f, "", "prefill", check, NULL, 1u << CHECK_PREFILL);
    if (check->n_paging)
        fprintf(f, "%zu row%s of mapped files that page %s not predicted.\n",
                check->n_paging, plural((long long)check->n_paging, "s"),
                check->n_paging == 1 ? "is" : "are");
    if (check->n_failed)
        fprintf(f, "%zu row%s without a figure or a roof, or with nothing like it.\n",
                check->n_failed, plural((long long)check->n_failed, "s"));
    fprintf(f,
            "Decoding: %s (a median error of %.0f %% at most, %.0f %% of rows inside "
            "at least).\n",
            check_holds(check) ? "as promised" : "NOT as promised",
            100 * CHECK_MAX_ERROR, 100 * CHECK_MIN_INSIDE);
}

static const char *basis_name(enum share_basis basis)
{
    static const char *const names[] = {[SHARE_SAME_CPU] = "same CPU",
                                        [SHARE_SAME_FORMAT] = "same format",
                                        [SHARE_OTHER_FORMATS] = "other formats"};

    return names[basis];
}

void check_print_csv(FILE *f, const struct check *check)
{
    char name[256];

    fputs("sweep,kind,point,attempt,tok_per_s,predicted,predicted_lo,predicted_hi,"
          "error,inside,basis\n",
          f);
    for (size_t i = 0; i < check->n; i++) {
        const struct check_row *r = &check->v[i];

        result_dir_name(name, sizeof name, r->dir);
        predict_print_text(f, name);
        fprintf(f, ",\"%s\",", kind_names[r->kind]);
        predict_print_text(f, r->point);
        fprintf(f, ",%lld,%.6g,%.6g,%.6g,%.6g,%.4f,%d,%s\n", (long long)r->attempt,
                r->tok_per_s, r->predicted.mid, r->predicted.lo, r->predicted.hi,
                error_of(r), is_inside(r), basis_name(r->basis));
    }
}

static void append_json(json_t *list, const char *name, const char *kind,
                        const struct check *check, const char *dir, unsigned kinds)
{
    struct check_group g;

    if (check_group(check, dir, kinds, &g))
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:f, s:f, s:f}", "sweep",
                                              name, "kind", kind, "rows",
                                              (json_int_t)g.n, "median_error", g.median,
                                              "p90_error", g.p90, "inside", g.inside));
}

json_t *check_json(const struct check *check, const char *const *dirs, size_t n_dirs)
{
    json_t *list = json_array();
    char name[256];

    for (size_t i = 0; i < n_dirs; i++) {
        result_dir_name(name, sizeof name, dirs[i]);
        for (int k = 0; k < CHECK_N_KINDS; k++)
            append_json(list, name, kind_names[k], check, dirs[i], 1u << k);
    }
    append_json(list, "all", "decode", check, NULL, DECODE);
    append_json(list, "all", "prefill", check, NULL, 1u << CHECK_PREFILL);
    return json_pack("{s:o, s:I, s:I, s:b}", "groups", list, "n_paging",
                     (json_int_t)check->n_paging, "n_not_predicted",
                     (json_int_t)check->n_failed, "holds", check_holds(check));
}

/* SPDX-License-Identifier: MIT
 *
 * predict.c - plans of all quantisations, KV types and depths, and their speeds
 */
#include "harness/decide/predict/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/interrupt.h"
#include "harness/rows/model_rows.h"
#include "harness/base/order.h"
#include "harness/rows/report_rows.h"

/* Standard deviation of the logarithm of a share that reading less than
 * PREDICT_MIN_BYTES adds, times that of a band's end: barriers between layers then
 * take a part of the time that was not measured. */
#define SMALL_BAND 0.20

static const struct range no_range = {NAN, NAN, NAN};

const char *predict_label_name(enum predict_label label)
{
    static const char *const names[] = {[PREDICT_NONE] = "none",
                                        [PREDICT_MEASURED] = "measured",
                                        [PREDICT_CALIBRATED] = "calibrated",
                                        [PREDICT_ESTIMATED] = "estimated"};

    return names[label];
}

/* ---- plans ----------------------------------------------------------------------- */

static struct prediction *add(struct predictions *p, struct err *err)
{
    struct prediction *grown = realloc(p->v, (p->n + 1) * sizeof *grown);

    if (!grown) {
        err_set(err, ST_NO_MEMORY, "no memory for %zu predictions", p->n + 1);
        return NULL;
    }
    p->v = grown;
    memset(&p->v[p->n], 0, sizeof *p->v);
    return &p->v[p->n++];
}

static void take_plan(struct prediction *one, const struct plan *plan)
{
    snprintf(one->model, sizeof one->model, "%s", plan->point.setup.model.name);
    snprintf(one->quant, sizeof one->quant, "%s", plan->need.quant);
    one->kv_type = plan->point.setup.kv_type;
    one->ctx = plan->point.ctx;
    one->verdict = plan->verdict;
    one->need = plan->need;
    if (plan->point.setup.model.identity)
        one->need.identity = plan->point.setup.model.identity;
    one->work = plan_work(plan);
    one->room = plan->room;
    one->too_deep = plan->need.model_ctx > 0 && one->ctx > plan->need.model_ctx;
}

static enum status plan_one(struct predictions *out, struct planner *planner,
                            const struct point *point, const struct candidate *c,
                            struct err *err)
{
    struct plan *plan = malloc(sizeof *plan);
    struct prediction *one;
    enum status st = plan ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a plan");

    if (st == ST_OK)
        st = planner_make(planner, plan, point, &c->topo, err);
    one = st == ST_OK ? add(out, err) : NULL;
    if (one)
        take_plan(one, plan);
    free(plan);
    return st ? st : one ? ST_OK : err->code;
}

/* One model in one quantisation: a planner of its own, which may read that file alone.
 */
static enum status plan_model(struct predictions *out, const struct predict_params *p,
                              const char *text, const char *quant,
                              const struct candidate *c, struct err *err)
{
    struct point *point = malloc(sizeof *point);
    struct planner planner;
    enum status st;

    if (!point)
        return err_set(err, ST_NO_MEMORY, "no memory for a plan");
    point_init(point);
    point->setup.mem_limit = p->mem_limit;
    point->setup.residency = WEIGHTS_AUTO;
    point->setup.n_threads = c->n_threads > 0 ? c->n_threads : 1;
    st = modelref_parse(&point->setup.model, text, p->cache_dir, err);
    if (st == ST_OK && quant)
        st = modelref_set_quant(&point->setup.model, quant, err);
    if (st == ST_OK) {
        st = planner_open(&planner, err);
        for (int k = 0; k < p->n_kv * p->n_ctx && st == ST_OK; k++) {
            point->setup.kv_type = p->kv[k / p->n_ctx];
            point->ctx = p->ctx[k % p->n_ctx];
            st = interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                               : plan_one(out, &planner, point, c, err);
        }
        planner_close(&planner);
    }
    free(point);
    return st;
}

/* A shape in one quantisation. */
static enum status plan_shape(struct predictions *out, const struct predict_params *p,
                              const char *quant, const struct candidate *c,
                              struct err *err)
{
    char text[256];

    snprintf(text, sizeof text, "%s:%s", p->model, quant);
    return plan_model(out, p, text, NULL, c, err);
}

static bool is_shape(const char *model)
{
    struct synth_shape shape;
    struct err ignored = ERR_INIT;

    return access(model, F_OK) && !strchr(model, ':') &&
           shape_load(&shape, model, &ignored) == ST_OK;
}

/* What people publish and deploy. */
static bool is_usual(enum quantmix mix)
{
    return mix == QUANTMIX_Q3_K_M || mix == QUANTMIX_Q4_0 || mix == QUANTMIX_Q4_K_M ||
           mix == QUANTMIX_Q5_K_M || mix == QUANTMIX_Q6_K || mix == QUANTMIX_Q8_0;
}

static int compare(const void *x, const void *y)
{
    const struct prediction *a = x, *b = y;

    ORDER_BY(order_ints((int64_t)a->need.weight_bytes, (int64_t)b->need.weight_bytes));
    ORDER_BY(strcmp(a->quant, b->quant));
    ORDER_BY(order_ints(a->kv_type, b->kv_type));
    return order_ints(a->ctx, b->ctx);
}

enum status predict_plan(struct predictions *out, const struct predict_params *p,
                         const struct candidate *c, struct err *err)
{
    const bool shape = is_shape(p->model);
    enum status st = ST_OK;

    *out = (struct predictions){.n_prompt = p->n_prompt};
    if (shape && !p->n_quants)
        for (enum quantmix mix = 0; mix < QUANTMIX_N && st == ST_OK; mix++)
            if (p->all || is_usual(mix))
                st = plan_shape(out, p, quantmix_name(mix), c, err);
    for (size_t i = 0; i < p->n_quants && st == ST_OK; i++)
        st = shape ? plan_shape(out, p, p->quants[i], c, err)
                   : plan_model(out, p, p->model, p->quants[i], c, err);
    if (!shape && !p->n_quants)
        st = plan_model(out, p, p->model, NULL, c, err);
    if (st == ST_OK && out->n)
        qsort(out->v, out->n, sizeof *out->v, compare);
    return st;
}

void predictions_free(struct predictions *p)
{
    free(p->v);
    p->v = NULL;
    p->n = 0;
}

void predict_formats(bool wanted[KERN_N_FMT], const struct predictions *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const enum kern_format format = quantmix_base_named(p->v[i].quant);

        if (format != KERN_N_FMT)
            wanted[format] = true;
    }
}

bool predict_streams(const struct predictions *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].verdict == PLAN_STREAMS && !p->v[i].too_deep)
            return true;
    return false;
}

/* ---- speeds ---------------------------------------------------------------------- */

/* Tok/s with that share of the roof of memory. */
static double speed_at(const struct token_work *work, const struct token_roofs *roofs,
                       double share)
{
    return 1 / token_time_at(work, roofs, share).token_s;
}

struct range predict_decode(const struct token_work *work,
                            const struct token_roofs *roofs, double roof_lo,
                            double roof_hi, const struct share_band *share)
{
    const double below = hypot(log(share->mid / share->lo), log(roof_lo));
    const double above = hypot(log(share->hi / share->mid), log(roof_hi));

    const struct token_roofs slow = token_roofs_end(roofs, false);
    const struct token_roofs fast = token_roofs_end(roofs, true);

    return (struct range){.lo = speed_at(work, &slow, share->mid * exp(-below)),
                          .mid = speed_at(work, roofs, share->mid),
                          .hi = speed_at(work, &fast, share->mid * exp(above))};
}

static struct range at_most(struct range v, struct range most)
{
    /* fmin() takes the other of a NaN */
    return (struct range){fmin(v.lo, most.lo), fmin(v.mid, most.mid),
                          fmin(v.hi, most.hi)};
}

static struct range scaled(const struct share_band *share, double factor)
{
    return (struct range){share->lo * factor, share->mid * factor, share->hi * factor};
}

static enum predict_label label_of(const struct candidate *c,
                                   const struct share_band *share, bool small)
{
    return !c->by_data_sheet && share->basis != SHARE_OTHER_FORMATS && !small
               ? PREDICT_CALIBRATED
               : PREDICT_ESTIMATED;
}

static bool has_time(const struct prediction *one)
{
    return !one->too_deep && !one->in_cache && one->verdict != PLAN_NO_FIT &&
           one->verdict != PLAN_PAGES;
}

/* Streamed layers are read once for each batch of the prompt, while others compute. */
static struct range time_of_prompt(const struct prediction *one, int n_prompt,
                                   double disk_gbps)
{
    const int batches = (n_prompt + SLM_DEFAULT_BATCH - 1) / SLM_DEFAULT_BATCH;
    const double disk_s =
        one->verdict == PLAN_STREAMS
            ? batches * (double)one->need.streamed_bytes / (disk_gbps * 1e9)
            : 0;
    const struct range *p = &one->prefill;

    return (struct range){fmax(n_prompt / p->hi, disk_s),
                          fmax(n_prompt / p->mid, disk_s),
                          fmax(n_prompt / p->lo, disk_s)};
}

static void predict_one(struct prediction *one, const struct candidate *c,
                        const struct shares *shares, int n_prompt)
{
    const double ops = 2.0 * (double)one->need.token_macs;
    const double body = 2.0 * (double)(one->need.token_macs - one->need.output_macs);
    const bool small = one->work.memory_bytes < PREDICT_MIN_BYTES;
    struct share_want want = {.kind = SHARE_PREFILL,
                              .format = quantmix_base_named(one->quant),
                              .n_threads = c->n_threads,
                              .machine = c->machine};
    struct share_band band;
    struct range ceiling = no_range;

    one->decode = one->prefill = one->ttft_s = no_range;
    if (!has_time(one))
        return;
    if (want.format != KERN_N_FMT && c->product_share[want.format] > 0)
        want.product_share = c->product_share[want.format];
    if (c->peak_gops > 0 && shares_expect(shares, &want, &band)) {
        one->prefill = scaled(&band, c->peak_gops * 1e9 / body);
        ceiling = scaled(&band, c->peak_gops * 1e9 / ops);
        one->prefill_label = label_of(c, &band, small);
        one->ttft_s = time_of_prompt(one, n_prompt, c->roofs.disk_gbps);
    }
    want.kind = SHARE_DECODE;
    if (!shares_expect(shares, &want, &band))
        return;
    one->decode_label = label_of(c, &band, small);
    if (small)
        band.lo = band.mid * exp(-hypot(log(band.mid / band.lo), SMALL_BAND));
    one->decode = at_most(
        predict_decode(&one->work, &c->roofs, c->roof_lo, c->roof_hi, &band), ceiling);
    if (!isfinite(token_time_at(&one->work, &c->roofs, band.mid).token_s)) {
        one->decode = no_range; /* a disk is needed, and not known */
        one->decode_label = PREDICT_NONE;
    }
}

/* ---- what was measured ----------------------------------------------------------- */

static struct range range_of_row(const struct row *r)
{
    return (struct range){r->tok_per_s_lo > 0 ? r->tok_per_s_lo : r->tok_per_s,
                          r->tok_per_s,
                          r->tok_per_s_hi > 0 ? r->tok_per_s_hi : r->tok_per_s};
}

static bool is_same_model(const struct prediction *one, const struct row *r)
{
    char id[sizeof r->model_id];

    model_id_text(id, sizeof id, one->need.identity);
    return (*id && *r->model_id ? !strcmp(id, r->model_id)
                                : !strcmp(report_model_name(r).text, one->model)) &&
           !strcmp(r->quant, one->quant) && r->kv_type == (int)one->kv_type &&
           r->residency == one->need.residency;
}

static void take_row(struct prediction *one, const struct candidate *c,
                     const struct row *r, int n_prompt)
{
    if (row_trust(r) != ROW_GOOD || !row_is_plain(r) || r->n_threads != c->n_threads ||
        !is_same_model(one, r) || !has_time(one))
        return;
    if (r->kind == POINT_DECODE && r->ctx == one->ctx) {
        one->decode = range_of_row(r);
        one->decode_label = PREDICT_MEASURED;
    }
    if (r->kind == POINT_PREFILL && r->n_prompt == n_prompt) {
        const struct range v = range_of_row(r);

        one->prefill = v;
        one->prefill_label = PREDICT_MEASURED;
        one->ttft_s =
            (struct range){n_prompt / v.hi, n_prompt / v.mid, n_prompt / v.lo};
    }
}

void predict_speeds(struct predictions *p, const struct candidate *c,
                    const struct shares *shares)
{
    const struct topo_llc cache = topology_cache(&c->topo, c->n_threads);
    struct report_rows rows = {.n = 0};
    struct err ignored = ERR_INIT;

    if (c->n_rows && report_rows_pick(&rows, c->rows, c->n_rows, &ignored))
        rows.n = 0;
    for (size_t i = 0; i < p->n; i++) {
        p->v[i].in_cache =
            topology_cached(&cache, (double)p->v[i].need.token_bytes) == TOPO_CACHED;
        predict_one(&p->v[i], c, shares, p->n_prompt);
        for (size_t k = 0; k < rows.n; k++)
            take_row(&p->v[i], c, rows.v[k], p->n_prompt);
    }
    if (c->n_rows)
        report_rows_free(&rows);
}

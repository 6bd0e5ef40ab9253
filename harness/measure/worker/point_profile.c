/* SPDX-License-Identifier: MIT
 *
 * point_profile.c - rows and their roofs, for both sides of the pipe
 */
#include "harness/measure/worker/point_profile.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"

static bool is_int8(const struct slm_profile_row *row)
{
    return row->fmt != KERN_N_FMT && row->fmt != KERN_FMT_f32 &&
           row->fmt != KERN_FMT_f16 && row->fmt != KERN_FMT_bf16;
}

void point_profile_make(struct point_profile *p, const struct slm_profile *from,
                        size_t n_samples, double sample_ms, double int8_gops,
                        double f32_gops)
{
    const double n = n_samples ? (double)n_samples : 1;

    memset(p, 0, sizeof *p);
    p->n_samples = n_samples;
    p->sample_ms = sample_ms;
    p->int8_gops = int8_gops;
    p->f32_gops = f32_gops;
    for (size_t i = 0; i < from->n_rows; i++) {
        const struct slm_profile_row *r = &from->rows[i];
        struct point_profile_row *out = &p->rows[p->n_rows++];

        snprintf(out->op, sizeof out->op, "%s", slm_op_name(r->op));
        if (r->fmt != KERN_N_FMT)
            snprintf(out->weights, sizeof out->weights, "%s",
                     kern_format_info(r->fmt)->name);
        out->work_ms = r->work_ns * 1e-6 / n;
        out->wait_ms = r->wait_ns * 1e-6 / n;
        out->bytes = (double)r->bytes / n;
        out->macs = (double)r->macs / n;
        out->is_int8 = is_int8(r);
    }
}

json_t *point_profile_json(const struct point_profile *p)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < p->n_rows; i++) {
        const struct point_profile_row *r = &p->rows[i];

        json_array_append_new(rows, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:b}",
                                              "op", r->op, "weights", r->weights,
                                              "work_ms", r->work_ms, "wait_ms",
                                              r->wait_ms, "bytes", r->bytes, "macs",
                                              r->macs, "int8", (int)r->is_int8));
    }
    return json_pack("{s:I, s:f, s:f, s:f, s:o}", "n_samples", (json_int_t)p->n_samples,
                     "sample_ms", p->sample_ms, "int8_gops", p->int8_gops, "f32_gops",
                     p->f32_gops, "rows", rows);
}

void point_profile_from_json(struct point_profile *p, const json_t *object)
{
    const json_t *rows = json_object_get(object, "rows");

    memset(p, 0, sizeof *p);
    p->n_samples = (size_t)json_integer_value(json_object_get(object, "n_samples"));
    p->sample_ms = json_number_value(json_object_get(object, "sample_ms"));
    p->int8_gops = json_number_value(json_object_get(object, "int8_gops"));
    p->f32_gops = json_number_value(json_object_get(object, "f32_gops"));
    for (size_t i = 0; i < json_array_size(rows) && p->n_rows < SLM_PROFILE_ROWS; i++) {
        json_t *from = json_array_get(rows, i);
        struct point_profile_row *r = &p->rows[p->n_rows];
        const char *op, *weights;
        int int8;

        if (json_unpack(from, "{s:s, s:s, s:F, s:F, s:F, s:F, s:b}", "op", &op,
                        "weights", &weights, "work_ms", &r->work_ms, "wait_ms",
                        &r->wait_ms, "bytes", &r->bytes, "macs", &r->macs, "int8",
                        &int8))
            continue;
        text_harmless(r->op, sizeof r->op, op);
        text_harmless(r->weights, sizeof r->weights, weights);
        r->is_int8 = int8;
        p->n_rows++;
    }
}

static double arith_ms(const struct point_profile *p,
                       const struct point_profile_row *row)
{
    const double peak = row->is_int8 ? p->int8_gops : p->f32_gops;

    return peak > 0 ? 2 * row->macs / (peak * 1e6) : 0;
}

void point_profile_facts(const struct point_profile *p, struct point_facts *facts)
{
    facts->profile_ms = p->sample_ms;
    facts->wait_ms = facts->product_ms = facts->arith_ms = 0;
    for (size_t i = 0; i < p->n_rows; i++) {
        const struct point_profile_row *row = &p->rows[i];

        facts->wait_ms += row->wait_ms;
        facts->product_ms += row->macs > 0 ? row->work_ms : 0;
        facts->arith_ms += arith_ms(p, row);
    }
}

double point_profile_roof_ms(const struct point_profile *p,
                             const struct point_profile_row *row, double roof_gbps,
                             const char **bound)
{
    const double memory = roof_gbps > 0 ? row->bytes / (roof_gbps * 1e6) : 0;
    const double compute = arith_ms(p, row);

    *bound = memory <= 0 && compute <= 0 ? ""
             : memory >= compute         ? "memory"
                                         : "compute";
    return memory >= compute ? memory : compute;
}

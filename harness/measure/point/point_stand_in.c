/* SPDX-License-Identifier: MIT
 *
 * point_stand_in.c - the ceilings of a point that another program measures
 *
 * The worker has no model in memory then, so a buffer stands in for the weights, as
 * for those that do not fit (point_roof.c), with the same threads on the same CPUs, in
 * pages of 2 MiB: a ceiling is the machine's, and pages of 4 KiB are the program's own
 * choice. Before and after the other program runs, and never beside it.
 */
#include <stdlib.h>

#include "harness/model/modelref.h"
#include "harness/measure/point/point_run.h"
#include "harness/measure/point/point_worker.h"
#include "harness/measure/point/point_worker_impl.h"
#include "harness/machine/probe.h"
#include "kernels/isa.h"

/* ---- the worker's side ------------------------------------------------------------
 */

/* Of the model's file, from its metadata. */
static enum status read_facts(struct point_worker *c, struct err *err)
{
    struct slm_params params = model_setup_params(&c->own.setup, c->room);
    struct gguf *g = NULL;
    struct slm_info info;
    enum status st = modelref_open(&c->own.setup.model, &g, err);

    if (st)
        return st;
    params.residency = WEIGHTS_MMAP; /* always fits */
    params.n_ctx = point_n_ctx(&c->own);
    params.n_back = point_n_back(&c->own);
    params.n_logits = point_n_logits(&c->own);
    params.mtp = c->own.mtp;
    st = slm_plan(&info, g, &params, err);
    if (st == ST_OK) {
        point_evaluate_facts(c, &info);
        c->image_bytes = gguf_image_bytes(g);
        c->row.model_ctx = info.n_ctx_train;
        c->row.kv_bytes_per_token = (int64_t)info.kv_more_bytes;
        if (c->own.kind == POINT_DECODE)
            c->row.bytes_per_token = (int64_t)slm_bytes_per_token(&info, c->own.ctx);
    }
    gguf_close(g);
    return st;
}

/* At most half of what there is room for, so that those of this request find some. */
static int take_passes(double *passes, size_t cap, const json_t *list)
{
    size_t n = json_array_size(list);

    n = n < cap / 2 ? n : cap / 2;
    for (size_t i = 0; i < n; i++)
        passes[i] = json_number_value(json_array_get(list, i));
    return (int)n;
}

static json_t *passes_json(const double *passes, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_real(passes[i]));
    return list;
}

static enum status probe(struct point_worker *c, const json_t *request, struct err *err)
{
    enum status st = topology_read(&c->topo, "", err);

    if (st == ST_OK)
        st = read_facts(c, err);
    if (st)
        return st;
    c->own.setup.residency = WEIGHTS_PACKED;
    c->stand_in_bytes =
        point_probe_bytes(point_step_threads(c->p), c->room, c->image_bytes);
    c->facts.stand_in_bytes = (double)c->stand_in_bytes;
    c->n_roof_gbps =
        take_passes(c->roof_gbps, sizeof c->roof_gbps / sizeof c->roof_gbps[0],
                    json_object_get(request, "gbps"));
    c->n_roof_gops =
        take_passes(c->roof_gops, sizeof c->roof_gops / sizeof c->roof_gops[0],
                    json_object_get(request, "gops"));
    probe_ways_take(json_object_get(request, "ways"));
    st = point_probe_roof(c, false, err);
    if (st)
        return st;
    worker_send(json_pack("{s:o}", "row", row_json(&c->row)));
    worker_send(json_pack("{s:o}", "facts", point_facts_json(&c->facts)));
    worker_send(json_pack("{s:b, s:o, s:o, s:o}", "done", 1, "gbps",
                          passes_json(c->roof_gbps, c->n_roof_gbps), "gops",
                          passes_json(c->roof_gops, c->n_roof_gops), "ways",
                          probe_ways_json()));
    return ST_OK;
}

enum status point_roof_answer(const json_t *request, struct err *err)
{
    struct point_worker *c = calloc(1, sizeof *c);
    enum status st;

    if (!c)
        return err_set(err, ST_NO_MEMORY, "no memory to measure in");
    st = point_from_json(&c->own, json_object_get(request, "point"), err);
    if (st == ST_OK)
        st = point_fence(&c->own, err);
    if (st == ST_OK) {
        c->p = &c->own;
        c->room = (uint64_t)json_integer_value(json_object_get(request, "room"));
        c->cpus = c->own.setup.explicit_cpus ? c->own.setup.cpus : NULL;
        isa_disable(c->own.setup.isa_disabled);
        row_init(&c->row);
        st = probe(c, request, err);
    }
    free(c);
    return st;
}

/* ---- the asking side --------------------------------------------------------------
 */

bool point_run_roof(struct point_run *r, enum status *status, struct err *err)
{
    json_t *settings = point_json(&r->settings), *answer = NULL;
    json_t *request =
        settings
            ? json_pack("{s:{s:o, s:I, s:o, s:O?, s:O?}}", "roof", "point", settings,
                        "room", (json_int_t)point_room(r), "ways", probe_ways_json(),
                        "gbps", json_object_get(r->roof_passes, "gbps"), "gops",
                        json_object_get(r->roof_passes, "gops"))
            : NULL;

    if (!point_run_ask(r, request, "done", &answer, status, err))
        return false;
    probe_ways_take(json_object_get(answer, "ways"));
    json_decref(r->roof_passes);
    r->roof_passes = answer;
    return true;
}

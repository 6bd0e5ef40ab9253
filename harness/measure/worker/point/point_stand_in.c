/* SPDX-License-Identifier: MIT
 *
 * point_stand_in.c - the ceilings of a point that another program measures
 *
 * The worker has no model in memory then, so a buffer stands in for the weights, as
 * for those that do not fit (point_roof.c), with the same threads on the same CPUs, in
 * pages of 2 MiB: a ceiling is the machine's, and pages of 4 KiB are the program's own
 * choice. It is probed before and after the other program runs, never while it does.
 */
#include "harness/measure/worker/point/point_worker.h"

/* The model's file, from its metadata. */
static enum status read_facts(struct point_worker *c, struct err *err)
{
    const struct slm_params params = point_params(c->p, c->room); /* mapped: it fits */
    struct gguf *g = NULL;
    struct slm_info info;
    enum status st = modelref_open(&c->p->setup.model, &g, err);

    if (st)
        return st;
    st = slm_plan(&info, g, &params, err);
    if (st == ST_OK) {
        c->image_bytes = gguf_image_bytes(g);
        point_evaluate_facts(c, &info);
        point_note_plan(c, &info);
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

static enum status probe(struct point_worker *c, const json_t *before, struct err *err)
{
    if (topology_read(&c->topo, "", err) || read_facts(c, err))
        return err->code;
    c->own.setup.residency = WEIGHTS_PACKED;
    c->stand_in_bytes =
        point_probe_bytes(point_step_threads(c->p), c->room, c->image_bytes);
    c->facts.stand_in_bytes = (double)c->stand_in_bytes;
    c->n_roof_gbps =
        take_passes(c->roof_gbps, sizeof c->roof_gbps / sizeof c->roof_gbps[0],
                    json_object_get(before, "gbps"));
    c->n_roof_gops =
        take_passes(c->roof_gops, sizeof c->roof_gops / sizeof c->roof_gops[0],
                    json_object_get(before, "gops"));
    return point_probe_roof(c, false, err);
}

enum status point_roof_answer(const json_t *request, struct err *err)
{
    struct point_worker *c = NULL;
    struct point_request q;
    enum status st = point_worker_open(&c, &q, request, err);

    if (st == ST_OK)
        st = probe(c, q.roof, err);
    if (st == ST_OK) {
        point_report(c);
        worker_send(json_pack("{s:b, s:o, s:o, s:o}", "done", 1, "gbps",
                              passes_json(c->roof_gbps, c->n_roof_gbps), "gops",
                              passes_json(c->roof_gops, c->n_roof_gops), "ways",
                              probe_ways_json()));
    }
    point_worker_close(c);
    return st;
}

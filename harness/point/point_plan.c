/* SPDX-License-Identifier: MIT
 *
 * point_plan.c - what a point needs, before it runs
 */
#include "harness/point/point_run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"
#include "harness/base/format.h"
#include "harness/base/options.h"
#include "harness/machine/memory_reserve.h"
#include "harness/model/test_prompt.h"
#include "harness/point/point_worker.h"
#include "harness/settings/setting.h"

/* ---- plan ------------------------------------------------------------------- */

static uint64_t point_room(const struct point_run *r)
{
    return r->settings.setup.mem_limit ? r->settings.setup.mem_limit
                                       : r->topo->mem_available;
}

/* The length of the text of a speculate point, and the context it needs. */
static enum status plan_text(struct point_run *r, const struct gguf *g, int n_vocab,
                             struct err *err)
{
    struct point *p = &r->settings;
    struct test_prompt s;
    enum status status;

    if (p->kind != POINT_SPECULATE)
        return ST_OK;
    status = test_prompt_read(&s, p->text, g, n_vocab, err);
    if (status)
        return status;
    if (s.n_prompt > SETTING_MAX(prefill) || s.n_answer > SETTING_MAX(answer)) {
        status = err_set(
            err, ST_USAGE,
            "the text %s has %zu tokens before its answer and %zu in it; %d "
            "and %d are the most, so take a shorter one",
            p->text, s.n_prompt, s.n_answer, SETTING_MAX(prefill), SETTING_MAX(answer));
        test_prompt_free(&s);
        return status;
    }
    p->n_prompt = (int)s.n_prompt;
    p->n_answer = s.n_answer ? (int)s.n_answer : TEST_PROMPT_OWN_TOKENS;
    if (!s.n_answer && !s.tok)
        status = err_set(err, ST_USAGE,
                         "%s has random weights, or no vocabulary, and so no answer of "
                         "its own to the text %s; give one behind a line <answer>",
                         p->setup.model.text, p->text);
    else if (!s.n_answer && p->ctx > p->n_prompt)
        status = err_set(err, ST_USAGE,
                         "--ctx %d: the text %s has no answer, so the model's own is "
                         "measured, right behind the prompt of %d tokens",
                         p->ctx, p->text, p->n_prompt);
    if (!s.n_answer)
        r->row->ctx_fill = CTX_FILL_PREFILL;
    test_prompt_free(&s);
    r->row->ctx = point_depth(p);
    return status;
}

/* A model in memory has no file; its shape has the same facts. */
static enum status plan_image(struct point_run *r, struct err *err)
{
    const struct synth_shape *s = &r->settings.setup.model.shape;
    struct synth_plan *plan = NULL;
    enum status status = plan_text(r, NULL, (int)s->n_vocab, err);

    if (status == ST_OK)
        status = synth_plan_make(&plan, s, r->settings.setup.model.mix,
                                 r->settings.setup.seed, err);
    if (status)
        return status;
    r->weight_bytes = synth_plan_bytes(plan);
    r->anon_bytes = r->weight_bytes + UINT64_C(2) * 2 * s->n_layers * s->n_kv_heads *
                                          s->head_dim *
                                          (uint64_t)point_n_ctx(&r->settings);
    r->row->n_params = (int64_t)synth_plan_params(plan);
    synth_plan_free(plan);
    return ST_OK;
}

static enum status plan_file(struct point_run *r, struct err *err)
{
    const struct point *p = &r->settings;
    const uint64_t room = point_room(r);
    struct gguf *g = NULL;
    struct slm_params params = model_setup_params(&p->setup, 0);
    struct slm_info info;
    enum status status = modelref_open(&p->setup.model, &g, err);

    if (status)
        return status;
    params.n_ctx = 1;
    params.n_logits = point_n_logits(p);
    if (p->kind == POINT_SPECULATE) {
        status = slm_plan(&info, g, &params, err);
        if (status == ST_OK)
            status = plan_text(r, g, info.n_vocab, err);
    }
    params.n_ctx = point_n_ctx(p);
    if (status == ST_OK)
        status = slm_plan(&info, g, &params, err);
    if (status == ST_OK) {
        if (p->setup.residency == WEIGHTS_AUTO)
            r->settings.setup.residency =
                slm_choose_residency(&info, memory_for_model(room));
        r->weight_bytes = gguf_image_bytes(g);
        r->anon_bytes = info.kv_bytes + info.scratch_bytes;
        if (p->setup.residency == WEIGHTS_PACKED)
            r->anon_bytes += info.weight_bytes;
        r->row->n_params = (int64_t)info.n_params;
        snprintf(r->row->quant, sizeof r->row->quant, "%s", info.quant);
    }
    gguf_close(g);
    return status;
}

/* Whether the point fits, and what it needs, into the row. */
enum status point_plan(struct point_run *r, struct err *err)
{
    const struct point *p = &r->settings;
    uint64_t planned;
    enum status status;

    if (p->setup.residency == WEIGHTS_MEMORY && !p->setup.model.synthetic)
        return err_set(err, ST_USAGE,
                       "weights in memory are those of a synthetic model; %s is a file "
                       "(say --weights packed or mmap, or name SHAPE:QUANT)",
                       p->setup.model.text);
    status =
        p->setup.residency == WEIGHTS_MEMORY ? plan_image(r, err) : plan_file(r, err);
    if (status)
        return status;
    planned =
        r->anon_bytes + (p->setup.residency == WEIGHTS_MMAP ? r->weight_bytes : 0);
    r->row->file_bytes = (int64_t)r->weight_bytes;
    r->row->mem_planned_bytes = (int64_t)planned;
    r->fits = planned + RESERVE_OWN_BYTES <= point_room(r);
    r->row->residency = (int)p->setup.residency;
    return ST_OK;
}

/* A point is not tried where memory that cannot be paged out does not fit: the OOM
 * killer would end it. Returns whether it may be tried. */
bool point_may_try(struct point_run *r)
{
    const struct point *p = &r->settings;
    const uint64_t room = point_room(r);
    char need[24], have[24];

    if (p->force || r->anon_bytes + RESERVE_OWN_BYTES <= room)
        return true;
    format_bytes(need, sizeof need, r->anon_bytes + RESERVE_OWN_BYTES);
    format_bytes(have, sizeof have, room);
    r->row->status = ROW_STATUS_NO_FIT;
    snprintf(r->row->detail, sizeof r->row->detail,
             "does not fit: needs %s for %s, %s %s", need,
             p->setup.residency == WEIGHTS_MMAP ? "KV cache, scratch and process"
                                                : "weights, KV cache and process",
             p->setup.mem_limit ? "the limit is" : "available are", have);
    return false;
}

/* ---- the row before it runs ------------------------------------------------- */

void point_describe(struct point_run *r, const struct point *p)
{
    struct row *row = r->row;
    const time_t now = time(NULL);
    struct tm utc;

    row_init(row);
    gmtime_r(&now, &utc);
    strftime(row->utc, sizeof row->utc, "%Y-%m-%dT%H:%M:%SZ", &utc);
    point_id(p, row->point, sizeof row->point);
    point_command(p, row->command, sizeof row->command);
    row->attempt = 1;
    row->kind = (int)p->kind;
    snprintf(row->model, sizeof row->model, "%s", p->setup.model.name);
    if (p->setup.model.synthetic)
        snprintf(row->quant, sizeof row->quant, "%s",
                 quantmix_name(p->setup.model.mix));
    row->n_threads = p->setup.n_threads;
    if (p->setup.n_threads_prefill)
        row->n_threads_prefill = p->setup.n_threads_prefill;
    row->placement =
        p->setup.explicit_cpus ? ROW_PLACEMENT_LIST : (int)p->setup.placement;
    if (r->settings.setup.explicit_cpus)
        format_cpus(row->cpus, sizeof row->cpus, r->settings.setup.cpus,
                    model_setup_threads(&p->setup));
    if (p->kind == POINT_PREFILL) {
        row->n_prompt = p->n_prompt;
    } else {
        row->ctx = p->ctx;
        row->ctx_fill = p->ctx_prefill;
    }
    if (p->kind == POINT_SPECULATE)
        point_text_name(p, row->spec_text, sizeof row->spec_text);
    row->n_wanted = p->n_tokens;
    row->n_batch = p->setup.n_batch;
    row->budget_s = p->budget_s;
    if (p->setup.mem_limit)
        row->mem_limit_bytes = (int64_t)p->setup.mem_limit;
    row->tuning = (int)p->tuning.state;
}

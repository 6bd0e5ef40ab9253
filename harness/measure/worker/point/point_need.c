/* SPDX-License-Identifier: MIT
 *
 * point_need.c - what a point needs, before it runs
 */
#include <stdio.h>

#include "engine/weights/residency.h"
#include "harness/machine/memory_reserve.h"
#include "harness/measure/worker/point/point_worker.h"
#include "harness/model/modelref.h"
#include "harness/model/model_names.h"

/* ---- finding it ------------------------------------------------------------------ */

/* The length of the text of a speculate point, and the context it needs. */
static enum status need_text(struct point *p, struct point_need *need,
                             const struct gguf *g, int n_vocab, struct err *err)
{
    struct test_prompt s;
    enum status status = ST_OK;

    if (p->kind != POINT_SPECULATE)
        return ST_OK;
    if (test_prompt_read(&s, p->text, g, n_vocab, err))
        return err->code;
    if (s.n_prompt > SETTING_MAX(prefill) || s.n_answer > SETTING_MAX(answer)) {
        status = err_set(err, ST_USAGE,
                         "the text %s has %zu tokens before its answer and %zu in it; "
                         "at most %d and %d are possible, so take a shorter one",
                         p->text, s.n_prompt, s.n_answer, SETTING_MAX(prefill),
                         SETTING_MAX(answer));
        test_prompt_free(&s);
        return status;
    }
    p->n_prompt = need->n_prompt = (int)s.n_prompt;
    p->n_answer = need->n_answer =
        s.n_answer ? (int)s.n_answer : TEST_PROMPT_OWN_TOKENS;
    need->own_answer = !s.n_answer;
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
    test_prompt_free(&s);
    return status;
}

/* The engine streams from mapped files. A shape is planned as if it were one. */
static enum status plan_as_file(struct slm_info *info, const struct gguf *g,
                                const struct slm_params *params, struct err *err)
{
    enum status status = slm_plan(info, g, params, err);

    if (!status)
        status = slm_check_predicts(info, err);
    if (status || info->stream_min_bytes || gguf_is_assembled(g))
        return status;
    return slm_plan_as_file(info, g, err);
}

/* What the engine makes of the model: with auto resolved, and *fits false where stream
 * was requested and memory does not even hold the slots. */
static enum status plan_engine(struct slm_info *info, bool *fits, const struct gguf *g,
                               struct slm_params *params, struct err *err)
{
    const enum weights_residency wanted = params->residency;
    enum status status;

    params->residency = WEIGHTS_MMAP; /* always fits */
    status = plan_as_file(info, g, params, err);
    *fits = true;
    if (status || wanted == WEIGHTS_MMAP)
        return status;
    params->residency =
        wanted == WEIGHTS_AUTO
            ? slm_choose_residency(info, params->memory_bytes, params->spare_bytes)
            : wanted;
    if (params->residency == WEIGHTS_STREAM && info->stream_min_bytes) {
        const uint64_t rest = info->kv_bytes + info->scratch_bytes;

        *fits = rest <= params->memory_bytes &&
                info->stream_min_bytes <= params->memory_bytes - rest;
        if (!*fits)
            return ST_OK;
    }
    return slm_plan(info, g, params, err);
}

/* How the engine's own plan divides a streamed model for this memory. */
static enum status divide(struct point_need *need, const struct gguf *g,
                          const struct slm_info *info, struct err *err)
{
    struct residency_plan plan;

    if (residency_plan_make(&plan, g, info->n_layers, info->weights_memory_bytes, err))
        return err->code;
    need->n_streamed = plan.n_streamed;
    need->n_slots = plan.n_slots;
    need->slot_bytes = plan.slot_bytes;
    need->streamed_bytes = info->streamed_bytes;
    need->cache_bytes = info->cache_bytes;
    need->disk_bytes = plan.disk_bytes;
    return ST_OK;
}

/* The most positions with which all weights stay in memory; 0: none. */
static enum status find_packed_ctx(struct point_need *need, const struct gguf *g,
                                   struct slm_params params, uint64_t room,
                                   struct err *err)
{
    struct slm_info info;
    int least = 0, most = SETTING_MAX(ctx);
    enum status status = ST_OK;

    params.residency = WEIGHTS_MMAP;
    params.memory_bytes = memory_for_model(room);
    params.n_ctx = 1;
    status = plan_as_file(&info, g, &params, err);
    if (status == ST_OK && info.n_ctx_train > 0 && info.n_ctx_train < most)
        most = info.n_ctx_train;
    while (status == ST_OK && least < most) {
        params.n_ctx = least + (most - least + 1) / 2;
        status = plan_as_file(&info, g, &params, err);
        if (status == ST_NO_MEMORY ||
            (status == ST_OK &&
             !slm_fits_memory(&info, params.memory_bytes, params.spare_bytes))) {
            most = params.n_ctx - 1;
            status = ST_OK;
            err_clear(err);
        } else {
            least = params.n_ctx;
        }
    }
    need->packed_ctx = least;
    return status;
}

/* The sizes of an opened model; image: it is in memory as it is. */
static enum status need_model(struct point *p, struct point_need *need,
                              const struct gguf *g, bool image, uint64_t room,
                              struct err *err)
{
    struct slm_params params = point_params(p, room);
    struct slm_info info;
    bool fits = true;
    enum status status = ST_OK;

    point_set_sequences(p, &params);
    if (image)
        params.residency = WEIGHTS_MMAP;
    if (plan_engine(&info, &fits, g, &params, err))
        return err->code;
    need->weight_bytes = gguf_image_bytes(g);
    need->rows_bytes = info.rows_bytes;
    need->map_bytes = image ? 0 : info.map_bytes;
    need->kv_bytes = info.kv_bytes;
    need->scratch_bytes = info.scratch_bytes;
    need->weights_memory_bytes = image  ? need->weight_bytes
                                 : fits ? info.weights_memory_bytes
                                        : info.stream_min_bytes;
    need->anon_bytes = info.kv_bytes + info.scratch_bytes + need->weights_memory_bytes;
    need->token_bytes = (uint64_t)(point_step_bytes(p, &info) / p->n_sequences);
    need->output_bytes = info.output_bytes;
    need->nextn_bytes = info.nextn_bytes;
    need->token_macs = info.weight_token_macs;
    need->output_macs = info.output_macs;
    need->n_params = info.n_params;
    need->n_layers = info.n_layers;
    need->n_recurrent = info.n_recurrent;
    need->n_experts = info.n_experts;
    need->n_experts_used = info.n_experts_used;
    need->expert_bytes = info.expert_bytes;
    need->n_vocab = info.n_vocab;
    need->n_ctx = info.n_ctx;
    need->model_ctx = info.n_ctx_train;
    snprintf(need->quant, sizeof need->quant, "%s", info.quant);
    if (image)
        return ST_OK;
    need->residency = (int)params.residency;
    if (fits && params.residency == WEIGHTS_STREAM)
        status = divide(need, g, &info, err);
    return status ? status : find_packed_ctx(need, g, params, room, err);
}

/* A model that has no file: its shape has the same facts. image: it is to be in memory,
 * else its file is to be made. */
static enum status need_shape(struct point *p, struct point_need *need, bool image,
                              uint64_t room, struct err *err)
{
    const struct modelref *ref = &p->setup.model;
    struct synth_plan *plan = NULL;
    struct model_head head = {.g = NULL};
    enum status status = need_text(p, need, NULL, (int)ref->shape.n_vocab, err);

    if (status == ST_OK)
        status = synth_plan_make(&plan, &ref->shape, ref->mix,
                                 image ? p->setup.seed : MODELREF_SEED, err);
    if (status)
        return status;
    status = model_head_of_plan(&head, plan, ref->text, err);
    if (status == ST_OK)
        status = need_model(p, need, head.g, image, room, err);
    if (status == ST_OK)
        snprintf(need->quant, sizeof need->quant, "%s", quantmix_name(ref->mix));
    need->identity = ref->identity;
    model_head_close(&head);
    synth_plan_free(plan);
    return status;
}

/* A text is cut into the model's tokens, which make a point of that text. */
static enum status need_file(struct point *p, struct point_need *need, uint64_t room,
                             struct err *err)
{
    struct gguf *g = NULL;
    struct slm_params params = slm_params_default();
    struct slm_info info;
    enum status status = ST_OK;

    if (p->setup.model.synthetic)
        return need_shape(p, need, false, room, err);
    if (modelref_open(&p->setup.model, &g, err))
        return err->code;
    if (p->kind == POINT_SPECULATE) {
        params.n_ctx = 1;
        status = slm_plan(&info, g, &params, err);
        if (status == ST_OK)
            status = need_text(p, need, g, info.n_vocab, err);
    }
    if (status == ST_OK)
        status = need_model(p, need, g, false, room, err);
    need->identity = model_identity(g);
    gguf_close(g);
    return status;
}

enum status point_need_answer(const json_t *request, struct err *err)
{
    struct point_need need = {.quant = ""};
    struct point_request q;
    enum status status = point_read_request(&q, request, err);

    if (status)
        return status;
    need.residency = q.point.setup.residency;
    need.n_prompt = q.point.n_prompt;
    need.n_answer = q.point.n_answer;
    status = q.point.setup.residency == WEIGHTS_MEMORY
                 ? need_shape(&q.point, &need, true, q.room, err)
                 : need_file(&q.point, &need, q.room, err);
    if (status == ST_OK)
        worker_send(json_pack("{s:o}", "need", point_need_json(&need)));
    return status;
}

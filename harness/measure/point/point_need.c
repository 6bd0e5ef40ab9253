/* SPDX-License-Identifier: MIT
 *
 * point_need.c - what a point needs, before it runs
 */
#include "harness/measure/point/point_need.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/weights/residency.h"
#include "harness/machine/memory_reserve.h"
#include "harness/model/model_head.h"
#include "harness/model/model_names.h"
#include "harness/model/test_prompt.h"
#include "harness/measure/point/point_worker.h"
#include "harness/rows/settings/setting.h"
#include "harness/measure/worker/worker.h"

/* ---- finding it ------------------------------------------------------------------ */

/* The length of the text of a speculate point, and the context it needs. */
static enum status need_text(struct point *p, struct point_need *need,
                             const struct gguf *g, int n_vocab, struct err *err)
{
    struct test_prompt s;
    enum status status;

    if (p->kind != POINT_SPECULATE)
        return ST_OK;
    status = test_prompt_read(&s, p->text, g, n_vocab, err);
    if (status)
        return status;
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
    if (status || info->stream_least_bytes || gguf_is_assembled(g))
        return status;
    return slm_plan_as_file(info, g, err);
}

/* What the engine makes of the model: with auto resolved, and *fits false where stream
 * was asked for and memory holds not even the slots. */
static enum status plan_engine(struct slm_info *info, bool *fits, const struct gguf *g,
                               struct slm_params *params, struct err *err)
{
    const enum weights_residency asked = params->residency;
    enum status status;

    params->residency = WEIGHTS_MMAP; /* always fits */
    status = plan_as_file(info, g, params, err);
    *fits = true;
    if (status || asked == WEIGHTS_MMAP)
        return status;
    params->residency =
        asked == WEIGHTS_AUTO
            ? slm_choose_residency(info, params->memory_bytes, params->spare_bytes)
            : asked;
    if (params->residency == WEIGHTS_STREAM && info->stream_least_bytes) {
        const uint64_t rest = info->kv_bytes + info->scratch_bytes;

        *fits = rest <= params->memory_bytes &&
                info->stream_least_bytes <= params->memory_bytes - rest;
        if (!*fits)
            return ST_OK;
    }
    return slm_plan(info, g, params, err);
}

/* How a streamed model is divided, by the engine's own plan for so much memory. */
static enum status divide(struct point_need *need, const struct gguf *g,
                          const struct slm_info *info, struct err *err)
{
    struct residency_plan plan;
    const enum status status =
        residency_plan_make(&plan, g, info->n_layers, info->weights_memory_bytes, err);

    if (status)
        return status;
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

/* The sizes of an opened model, of which image says that it is in memory as it is. */
static enum status need_model(struct point *p, struct point_need *need,
                              const struct gguf *g, bool image, uint64_t room,
                              struct err *err)
{
    struct slm_params params = model_setup_params(&p->setup, point_memory(p, room));
    struct slm_info info;
    bool fits = true;
    enum status status;

    params.n_ctx = point_n_ctx(p);
    params.n_back = point_n_back(p);
    params.n_logits = point_n_logits(p);
    params.mtp = p->mtp;
    point_set_sequences(p, &params);
    if (image)
        params.residency = WEIGHTS_MMAP;
    status = plan_engine(&info, &fits, g, &params, err);
    if (status)
        return status;
    need->weight_bytes = gguf_image_bytes(g);
    need->rows_bytes = info.rows_bytes;
    need->map_bytes = image ? 0 : info.map_bytes;
    need->kv_bytes = info.kv_bytes;
    need->scratch_bytes = info.scratch_bytes;
    need->weights_memory_bytes = image  ? need->weight_bytes
                                 : fits ? info.weights_memory_bytes
                                        : info.stream_least_bytes;
    need->anon_bytes = info.kv_bytes + info.scratch_bytes + need->weights_memory_bytes;
    need->token_bytes = (uint64_t)(point_step_bytes(p, &info) / p->n_sequences);
    need->output_bytes = info.output_bytes;
    need->nextn_bytes = info.nextn_bytes;
    need->token_macs = info.weight_token_macs;
    need->output_macs = info.output_macs;
    need->n_params = info.n_params;
    need->n_layers = info.n_layers;
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
    struct modelref ref = p->setup.model;
    struct synth_plan *plan = NULL;
    struct model_head head = {.g = NULL};
    enum status status = modelref_parse(&ref, p->setup.model.text, NULL, err);

    if (status == ST_OK)
        status = need_text(p, need, NULL, (int)ref.shape.n_vocab, err);
    if (status == ST_OK)
        status = synth_plan_make(&plan, &ref.shape, ref.mix,
                                 image ? p->setup.seed : MODELREF_SEED, err);
    if (status)
        return status;
    status = model_head_of_plan(&head, plan, ref.text, err);
    if (status == ST_OK)
        status = need_model(p, need, head.g, image, room, err);
    if (status == ST_OK)
        snprintf(need->quant, sizeof need->quant, "%s", quantmix_name(ref.mix));
    model_head_close(&head);
    synth_plan_free(plan);
    return status;
}

/* A synthetic model of which there is no file yet. */
static bool is_unmade(const struct modelref *model)
{
    struct modelref ref;
    struct err ignored = ERR_INIT;

    return access(model->path, F_OK) &&
           modelref_parse(&ref, model->text, NULL, &ignored) == ST_OK && ref.synthetic;
}

/* A text is cut into the model's tokens, of which a point of that text is made. */
static enum status need_file(struct point *p, struct point_need *need, uint64_t room,
                             struct err *err)
{
    struct gguf *g = NULL;
    struct slm_params params = slm_params_default();
    struct slm_info info;
    enum status status;

    if (is_unmade(&p->setup.model))
        return need_shape(p, need, false, room, err);
    status = modelref_open(&p->setup.model, &g, err);
    if (status)
        return status;
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

uint64_t point_need_reserve(int residency)
{
    return RESERVE_OWN_BYTES + (residency == WEIGHTS_STREAM ? RESERVE_SPARE_BYTES : 0);
}

/* ---- as JSON --------------------------------------------------------------------- */

static const struct {
    const char *key;
    size_t offset;
} sizes[] = {
    {"n_params", offsetof(struct point_need, n_params)},
    {"weight_bytes", offsetof(struct point_need, weight_bytes)},
    {"rows_bytes", offsetof(struct point_need, rows_bytes)},
    {"map_bytes", offsetof(struct point_need, map_bytes)},
    {"anon_bytes", offsetof(struct point_need, anon_bytes)},
    {"kv_bytes", offsetof(struct point_need, kv_bytes)},
    {"scratch_bytes", offsetof(struct point_need, scratch_bytes)},
    {"weights_memory_bytes", offsetof(struct point_need, weights_memory_bytes)},
    {"token_bytes", offsetof(struct point_need, token_bytes)},
    {"output_bytes", offsetof(struct point_need, output_bytes)},
    {"nextn_bytes", offsetof(struct point_need, nextn_bytes)},
    {"token_macs", offsetof(struct point_need, token_macs)},
    {"output_macs", offsetof(struct point_need, output_macs)},
    {"streamed_bytes", offsetof(struct point_need, streamed_bytes)},
    {"slot_bytes", offsetof(struct point_need, slot_bytes)},
    {"cache_bytes", offsetof(struct point_need, cache_bytes)},
    {"disk_bytes", offsetof(struct point_need, disk_bytes)},
    {"identity", offsetof(struct point_need, identity)},
};

static const struct setting_member members[] = {
    SETTING_CHARS("quant", struct point_need, quant),
    SETTING_WHOLE("residency", WEIGHTS_AUTO, WEIGHTS_MEMORY, struct point_need,
                  residency),
    SETTING_WHOLE("n_layers", 0, INT_MAX, struct point_need, n_layers),
    SETTING_WHOLE("n_streamed", 0, INT_MAX, struct point_need, n_streamed),
    SETTING_WHOLE("n_slots", 0, INT_MAX, struct point_need, n_slots),
    SETTING_WHOLE("n_vocab", 0, INT_MAX, struct point_need, n_vocab),
    SETTING_WHOLE("n_ctx", 0, INT_MAX, struct point_need, n_ctx),
    SETTING_WHOLE("packed_ctx", 0, INT_MAX, struct point_need, packed_ctx),
    SETTING_WHOLE("model_ctx", 0, INT_MAX, struct point_need, model_ctx),
    SETTING_WHOLE("n_prompt", 0, SETTING_MAX(prefill), struct point_need, n_prompt),
    SETTING_WHOLE("n_answer", 0, SETTING_MAX(answer), struct point_need, n_answer),
    SETTING_WHOLE("own_answer", 0, 1, struct point_need, own_answer),
};

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

json_t *point_need_request(const struct point *p, uint64_t room_bytes)
{
    json_t *settings = point_json(p);

    return settings ? json_pack("{s:{s:o, s:I}}", "need", "point", settings, "room",
                                (json_int_t)room_bytes)
                    : NULL;
}

enum status point_need_from_json(struct point_need *need, const json_t *object,
                                 struct err *err)
{
    const json_t *values = json_object_get(object, "need");
    struct err why = ERR_INIT;
    enum status st = setting_read_members(need, members, LENGTH(members), values, &why);

    for (size_t i = 0; !st && i < LENGTH(sizes); i++) {
        const json_t *v = json_object_get(values, sizes[i].key);
        void *field = (char *)need + sizes[i].offset;

        if (!json_is_integer(v) || json_integer_value(v) < 0)
            st = err_set(&why, ST_IO, "%s is no size", sizes[i].key);
        else
            *(uint64_t *)field = (uint64_t)json_integer_value(v);
    }
    if (st)
        return err_set(err, ST_IO,
                       "the measuring process's answer is not as expected: %s",
                       why.msg);
    return ST_OK;
}

static json_t *need_json(const struct point_need *n)
{
    json_t *object = json_object();

    for (size_t i = 0; i < LENGTH(sizes); i++) {
        const void *field = (const char *)n + sizes[i].offset;

        json_object_set_new(object, sizes[i].key,
                            json_integer((json_int_t) * (const uint64_t *)field));
    }
    json_object_set_new(object, "quant", json_string(n->quant));
    for (size_t i = 0; i < LENGTH(members); i++)
        if (members[i].max) {
            const void *field = (const char *)n + members[i].offset;

            json_object_set_new(object, members[i].key,
                                json_integer(*(const int *)field));
        }
    return object;
}

enum status point_need_answer(const json_t *request, struct err *err)
{
    const json_t *room = json_object_get(request, "room");
    struct point_need need = {.quant = ""};
    struct point p;
    enum status status = point_from_json(&p, json_object_get(request, "point"), err);

    if (status == ST_OK)
        status = point_fence(&p, err);
    if (status)
        return status;
    need.residency = p.setup.residency;
    need.n_prompt = p.n_prompt;
    need.n_answer = p.n_answer;
    status = p.setup.residency == WEIGHTS_MEMORY
                 ? need_shape(&p, &need, true, (uint64_t)json_integer_value(room), err)
                 : need_file(&p, &need, (uint64_t)json_integer_value(room), err);
    if (status == ST_OK)
        worker_send(json_pack("{s:o}", "need", need_json(&need)));
    return status;
}

/* ---- what a profile must fit ---------------------------------------------------- */

enum status point_key_answer(const json_t *settings, struct err *err)
{
    struct tuned_key key = {.text = {""}};
    struct point p;
    json_t *list;
    enum status status = point_from_json(&p, settings, err);

    if (status == ST_OK)
        status = point_fence(&p, err);
    if (status == ST_OK && p.setup.residency == WEIGHTS_MEMORY)
        status = modelref_parse(&p.setup.model, p.setup.model.text, NULL, err);
    if (status == ST_OK)
        status = tuned_key_model(&key, &p.setup.model,
                                 p.setup.residency == WEIGHTS_MEMORY, err);
    if (status)
        return status;
    list = json_array();
    for (int i = TUNED_MODEL; i < TUNED_N_FIELDS; i++)
        json_array_append_new(list, json_string(key.text[i]));
    worker_send(json_pack("{s:o}", "key", list));
    return ST_OK;
}

enum status point_key_from_json(struct tuned_key *key, const json_t *object,
                                struct err *err)
{
    const json_t *list = json_object_get(object, "key");

    for (int i = TUNED_MODEL; i < TUNED_N_FIELDS; i++) {
        const char *text =
            json_string_value(json_array_get(list, (size_t)(i - TUNED_MODEL)));

        if (!text)
            return err_set(err, ST_IO,
                           "the measuring process's answer is not as expected: no key");
        snprintf(key->text[i], sizeof key->text[i], "%s", text);
    }
    return ST_OK;
}

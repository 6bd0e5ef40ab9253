/* SPDX-License-Identifier: MIT
 *
 * point_need.c - what a point needs, before it runs
 */
#include "harness/point/point_need.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/kv/kvcache.h"
#include "harness/machine/memory_reserve.h"
#include "harness/model/test_prompt.h"
#include "harness/point/point_worker.h"
#include "harness/settings/setting.h"
#include "harness/worker/worker.h"

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
        status = err_set(
            err, ST_USAGE,
            "the text %s has %zu tokens before its answer and %zu in it; %d "
            "and %d are the most, so take a shorter one",
            p->text, s.n_prompt, s.n_answer, SETTING_MAX(prefill), SETTING_MAX(answer));
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

/* Positions that the KV cache of a layer has room for, whole panels. */
static uint64_t kv_positions(const struct point *p)
{
    const uint64_t kept =
        (uint64_t)p->setup.kv_window + SLM_DEFAULT_SINKS + (uint64_t)point_n_back(p);

    return p->setup.kv_window ? kept + 3 * KVCACHE_PANEL : (uint64_t)point_n_ctx(p);
}

/* A model in memory has no file; its shape has the same facts. */
static enum status need_image(struct point *p, struct point_need *need, struct err *err)
{
    struct modelref ref = p->setup.model;
    const struct synth_shape *s = &ref.shape;
    struct synth_plan *plan = NULL;
    enum status status = modelref_parse(&ref, p->setup.model.text, NULL, err);

    if (status == ST_OK)
        status = need_text(p, need, NULL, (int)s->n_vocab, err);
    if (status == ST_OK)
        status = synth_plan_make(&plan, s, ref.mix, p->setup.seed, err);
    if (status)
        return status;
    need->weight_bytes = synth_plan_bytes(plan);
    need->anon_bytes = need->weight_bytes + UINT64_C(2) * 2 * s->n_layers *
                                                s->n_kv_heads * s->head_dim *
                                                kv_positions(p);
    need->n_params = synth_plan_params(plan);
    snprintf(need->quant, sizeof need->quant, "%s", quantmix_name(ref.mix));
    synth_plan_free(plan);
    return ST_OK;
}

static enum status need_file(struct point *p, struct point_need *need, uint64_t room,
                             struct err *err)
{
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
            status = need_text(p, need, g, info.n_vocab, err);
    }
    params.n_ctx = point_n_ctx(p);
    params.n_back = point_n_back(p);
    if (status == ST_OK)
        status = slm_plan(&info, g, &params, err);
    if (status == ST_OK) {
        if (p->setup.residency == WEIGHTS_AUTO)
            need->residency = slm_choose_residency(&info, memory_for_model(room));
        need->weight_bytes = gguf_image_bytes(g);
        need->anon_bytes = info.kv_bytes + info.scratch_bytes;
        if (need->residency == WEIGHTS_PACKED)
            need->anon_bytes += info.weight_bytes;
        need->n_params = info.n_params;
        snprintf(need->quant, sizeof need->quant, "%s", info.quant);
    }
    gguf_close(g);
    return status;
}

/* ---- as JSON --------------------------------------------------------------------- */

static const struct {
    const char *key;
    size_t offset;
} sizes[] = {
    {"n_params", offsetof(struct point_need, n_params)},
    {"weight_bytes", offsetof(struct point_need, weight_bytes)},
    {"anon_bytes", offsetof(struct point_need, anon_bytes)},
};

static const struct setting_member members[] = {
    SETTING_CHARS("quant", struct point_need, quant),
    SETTING_WHOLE("residency", WEIGHTS_AUTO, WEIGHTS_MEMORY, struct point_need,
                  residency),
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
    json_object_update_new(object, json_pack("{s:s, s:i, s:i, s:i, s:i}", "quant",
                                             n->quant, "residency", n->residency,
                                             "n_prompt", n->n_prompt, "n_answer",
                                             n->n_answer, "own_answer", n->own_answer));
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
                 ? need_image(&p, &need, err)
                 : need_file(&p, &need, (uint64_t)json_integer_value(room), err);
    if (status == ST_OK)
        worker_send(json_pack("{s:o}", "need", need_json(&need)));
    return status;
}

/* ---- what a profile must fit ------------------------------------------------------
 */

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

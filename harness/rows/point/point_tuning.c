/* SPDX-License-Identifier: MIT
 *
 * point_tuning.c - a profile's choices of a point as JSON
 */
#include "harness/rows/point/point_tuning.h"

#include "harness/rows/settings/setting.h"

static json_t *numbers_json(const uint32_t *v)
{
    json_t *list = json_array();

    for (int i = 0; i < KERN_N_FMT; i++)
        json_array_append_new(list, json_integer(v[i]));
    return list;
}

/* One number for each weight format, at most max. */
static enum status numbers_from_json(uint32_t *v, const json_t *object, const char *key,
                                     int max, struct err *err)
{
    const json_t *list = json_object_get(object, key);

    if (json_array_size(list) != KERN_N_FMT)
        return err_set(err, ST_USAGE, "%s: %zu numbers for %d weight formats", key,
                       json_array_size(list), KERN_N_FMT);
    for (int i = 0; i < KERN_N_FMT; i++) {
        int n;

        if (setting_json_int_in(json_array_get(list, (size_t)i), key, 0, max, &n, err))
            return ST_USAGE;
        v[i] = (uint32_t)n;
    }
    return ST_OK;
}

/* Distance, hint and panels of each format, one after the other. */
static json_t *prefetch_json(const struct kern_prefetch *v)
{
    json_t *list = json_array();

    for (int i = 0; i < KERN_N_FMT; i++) {
        json_array_append_new(list, json_integer(v[i].distance));
        json_array_append_new(list, json_integer(v[i].hint));
        json_array_append_new(list, json_integer(kern_panels_interleaved(v[i])));
    }
    return list;
}

static enum status prefetch_from_json(struct kern_prefetch *v, const json_t *object,
                                      struct err *err)
{
    const json_t *list = json_object_get(object, "prefetch");

    if (json_array_size(list) != 3 * KERN_N_FMT)
        return err_set(err, ST_USAGE, "prefetch: %zu numbers for %d weight formats",
                       json_array_size(list), KERN_N_FMT);
    for (size_t i = 0; i < KERN_N_FMT; i++) {
        int distance, hint, n_panels;

        if (setting_json_int(SETTING_prefetch, json_array_get(list, 3 * i), "prefetch",
                             &distance, err) ||
            setting_json_int_in(json_array_get(list, 3 * i + 1), "prefetch", 0,
                                KERN_N_PREFETCH - 1, &hint, err) ||
            setting_json_int_in(json_array_get(list, 3 * i + 2), "panels", 1,
                                KERN_MAX_INTERLEAVED, &n_panels, err))
            return ST_USAGE;
        v[i] = (struct kern_prefetch){(uint32_t)distance, (enum kern_prefetch_hint)hint,
                                      (uint32_t)n_panels};
    }
    return ST_OK;
}

json_t *point_tuning_json(const struct point_tuning *t)
{
    const struct slm_tuning *c = &t->choices;

    if (t->state != TUNED_USED)
        return json_null();
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "n_threads",
                     t->n_threads, "n_threads_prefill", t->n_threads_prefill, "n_batch",
                     t->n_batch, "placement", (int)t->placement, "chunks",
                     c->chunks_decode, "chunks_prefill", c->chunks_prefill, "pages",
                     (int)c->pages, "isa", numbers_json(c->isa_mask), "isa_prefill",
                     numbers_json(c->isa_mask_prefill), "prefetch",
                     prefetch_json(c->prefetch));
}

#define FIELD(key, name, field) SETTING_FIELD(key, name, struct point_tuning, field)

static const struct setting_member members[] = {
    FIELD("n_threads", threads, n_threads),
    FIELD("n_threads_prefill", threads_prefill, n_threads_prefill),
    FIELD("n_batch", batch, n_batch),
    FIELD("placement", placement, placement),
    FIELD("chunks", chunks, choices.chunks_decode),
    FIELD("chunks_prefill", chunks, choices.chunks_prefill),
    SETTING_WHOLE("pages", MEM_PAGES_4K, MEM_PAGES_2M, struct point_tuning,
                  choices.pages),
};

enum status point_tuning_from_json(struct point_tuning *t, const json_t *object,
                                   struct err *err)
{
    struct point_tuning new = {.state = TUNED_USED};
    struct slm_tuning *c = &new.choices;
    struct err why = ERR_INIT;

    *t = (struct point_tuning){.state = TUNED_NOT};
    if (!object || json_is_null(object))
        return ST_OK;
    if (setting_read_members(&new, members, sizeof members / sizeof members[0], object,
                             &why) ||
        numbers_from_json(c->isa_mask, object, "isa", SETTING_MAX(isa_disabled),
                          &why) ||
        numbers_from_json(c->isa_mask_prefill, object, "isa_prefill",
                          SETTING_MAX(isa_disabled), &why) ||
        prefetch_from_json(c->prefetch, object, &why))
        return err_set(err, ST_USAGE, "the point's profile is not as expected: %s",
                       why.msg);
    *t = new;
    return ST_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * messages.c - structs as JSON for the other side of the pipe, and back
 */
#include "harness/measure/worker/messages.h"

#include <string.h>

#include "engine/base/json_read.h"
#include "engine/base/utf8.h"
#include "harness/machine/memory_reserve.h"
#include "harness/machine/probe.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* ---- lines ----------------------------------------------------------------------- */

static void make_harmless(json_t *value)
{
    const char *text = json_string_value(value);
    char harmless[2048];
    const char *key;
    json_t *member;
    size_t i;

    if (text) {
        utf8_harmless(harmless, sizeof harmless, text, json_string_length(value));
        if (strcmp(harmless, text) != 0)
            json_string_set(value, harmless);
    }
    json_object_foreach(value, key, member)
    {
        make_harmless(member);
    }
    json_array_foreach(value, i, member)
    {
        make_harmless(member);
    }
}

json_t *message_read(const char *line, size_t len)
{
    json_t *message = json_try(line, len, (struct json_limit){len, len}, 0);

    make_harmless(message);
    return message;
}

/* ---- requests -------------------------------------------------------------------- */

json_t *message_request(const char *name, const struct point *p, uint64_t room_bytes,
                        const struct topology *topo, json_t *roof)
{
    json_t *settings = point_json(p);

    return settings ? json_pack("{s:{s:o, s:I, s:o, s:o*, s:O*}}", name, "point",
                                settings, "room", (json_int_t)room_bytes, "ways",
                                probe_ways_json(), "cache",
                                topo ? topology_cache_json(topo) : NULL, "roof", roof)
                    : NULL;
}

enum status message_read_request(struct point_request *q, const json_t *request,
                                 struct err *err)
{
    const enum status st =
        point_from_json(&q->point, json_object_get(request, "point"), err);

    q->room = (uint64_t)json_integer_value(json_object_get(request, "room"));
    q->cache = json_object_get(request, "cache");
    q->roof = json_object_get(request, "roof");
    probe_ways_take(json_object_get(request, "ways"));
    return st;
}

/* ---- what a point needs ---------------------------------------------------------- */

#define BYTES(name) SETTING_BYTES(#name, struct point_need, name)
#define WHOLE(name, least, most) \
    SETTING_WHOLE(#name, least, most, struct point_need, name)

static const struct setting_member need_members[] = {
    SETTING_CHARS("quant", struct point_need, quant),
    WHOLE(residency, WEIGHTS_AUTO, WEIGHTS_MEMORY),
    WHOLE(n_layers, 0, INT_MAX),
    WHOLE(n_recurrent, 0, INT_MAX),
    WHOLE(n_experts, 0, INT_MAX),
    WHOLE(n_experts_used, 0, INT_MAX),
    WHOLE(n_streamed, 0, INT_MAX),
    WHOLE(n_slots, 0, INT_MAX),
    WHOLE(n_vocab, 0, INT_MAX),
    WHOLE(n_ctx, 0, INT_MAX),
    WHOLE(packed_ctx, 0, INT_MAX),
    WHOLE(model_ctx, 0, INT_MAX),
    WHOLE(n_prompt, 0, SETTING_MAX(prefill)),
    WHOLE(n_answer, 0, SETTING_MAX(answer)),
    WHOLE(own_answer, 0, 1),
    BYTES(n_params),
    BYTES(weight_bytes),
    BYTES(rows_bytes),
    BYTES(map_bytes),
    BYTES(anon_bytes),
    BYTES(kv_bytes),
    BYTES(scratch_bytes),
    BYTES(weights_memory_bytes),
    BYTES(token_bytes),
    BYTES(output_bytes),
    BYTES(nextn_bytes),
    BYTES(expert_bytes),
    BYTES(token_macs),
    BYTES(output_macs),
    BYTES(streamed_bytes),
    BYTES(slot_bytes),
    BYTES(cache_bytes),
    BYTES(disk_bytes),
    BYTES(identity),
};

json_t *point_need_json(const struct point_need *need)
{
    return setting_members_json(need, need_members, LENGTH(need_members));
}

enum status point_need_from_json(struct point_need *need, const json_t *object,
                                 struct err *err)
{
    struct err why = ERR_INIT;

    if (setting_read_members(need, need_members, LENGTH(need_members),
                             json_object_get(object, "need"), &why))
        return err_set(err, ST_IO,
                       "the measuring process's answer is not as expected: %s",
                       why.msg);
    return ST_OK;
}

uint64_t point_need_reserve(int residency)
{
    return RESERVE_OWN_BYTES + (residency == WEIGHTS_STREAM ? RESERVE_SPARE_BYTES : 0);
}

/* ---- what it has measured -------------------------------------------------------- */

#define FACT(name) SETTING_NUMBER(#name, struct point_facts, name)

static const struct setting_member fact_members[] = {
    FACT(tokens_per_sample), FACT(ops_per_sample), FACT(bytes_per_sample),
    FACT(roof_spread),       FACT(stand_in_bytes), FACT(stream_request_bytes),
    FACT(stream_depth),      FACT(profile_ms),     FACT(wait_ms),
    FACT(product_ms),        FACT(arith_ms),
};

json_t *point_facts_json(const struct point_facts *facts)
{
    return setting_members_json(facts, fact_members, LENGTH(fact_members));
}

void point_facts_from_json(struct point_facts *facts, const json_t *object)
{
    setting_take_members(facts, fact_members, LENGTH(fact_members), object);
}

/* Those of an object that have a value, and nothing else. */
static json_t *pick_columns(const json_t *from)
{
    json_t *object = json_object();

    for (const struct field *f = row_fields(NULL); f->name; f++) {
        json_t *value = json_object_get(from, f->name);

        if (f->is & FIELD_WORKER && value && !json_is_null(value))
            json_object_set(object, f->name, value);
    }
    return object;
}

json_t *message_columns(const struct row *row)
{
    json_t *all = row_json(row), *picked = pick_columns(all);

    json_decref(all);
    return json_pack("{s:o}", "row", picked);
}

void message_take_columns(struct row *row, const json_t *from)
{
    json_t *picked = pick_columns(from);

    row_from_json(row, picked);
    json_decref(picked);
}

/* ---- noise ----------------------------------------------------------------------- */

#define COUNTER(name) SETTING_BYTES(#name, struct noise, name)
#define COUNT(name)   SETTING_WHOLE(#name, INT_MIN, INT_MAX, struct noise, name)

static const struct setting_member noise_members[] = {
    COUNTER(wall_ns),        COUNTER(steal_ns),      COUNTER(our_steal_ns),
    COUNTER(our_busy_ns),    COUNTER(busy_ns),       COUNTER(self_ns),
    COUNTER(wait_ns),        COUNTER(n_involuntary), COUNTER(n_major_faults),
    COUNTER(n_minor_faults), COUNTER(throttled_ns),  COUNTER(n_throttled),
    COUNTER(n_refaults),     COUNTER(pressure_ns),   COUNTER(suspended_ns),
    COUNT(clock_set_s),      COUNT(n_cpus),          COUNT(n_our_cpus),
    COUNT(n_threads),
};

json_t *worker_noise_json(const struct noise *noise)
{
    return setting_members_json(noise, noise_members, LENGTH(noise_members));
}

void worker_noise_from_json(struct noise *noise, const json_t *object)
{
    setting_take_members(noise, noise_members, LENGTH(noise_members), object);
}

/* SPDX-License-Identifier: MIT
 *
 * schema_array.c - arrays of a schema
 */
#include "engine/grammar/build.h"

struct elements {
    const json_t *first; /* prefixItems or NULL */
    size_t n_first;
    const json_t *rest; /* items; NULL: any value */
    uint32_t min, max;
};

static void read_elements(struct build *b, const json_t *schema, struct elements *e)
{
    const json_t *items = json_object_get(schema, "items");

    *e = (struct elements){.first = json_object_get(schema, "prefixItems"),
                           .max = NO_LIMIT};
    build_get_count(b, schema, "minItems", &e->min);
    build_get_count(b, schema, "maxItems", &e->max);
    if (json_is_array(items))
        build_refuse(b, "'items' is a list of schemas; write 'prefixItems' for that");
    if (e->first && !json_is_array(e->first))
        build_refuse(b, "'prefixItems' is not a list of schemas");
    e->n_first = json_array_size(e->first);
    e->rest = json_is_true(items) ? NULL : items;
    if (e->max < e->n_first)
        e->n_first = e->max;
    if (json_is_false(items) && e->max > e->n_first)
        e->max = (uint32_t)e->n_first;
}

static uint32_t element(struct build *b, const struct elements *e, uint8_t nest,
                        uint32_t to)
{
    const size_t path = build_enter(b, "items");
    /* By a rule: it stands in two places. */
    const uint32_t node =
        e->rest ? build_schema_call(b, e->rest, nest, to) : build_any(b, nest, to);

    build_leave(b, path);
    return node;
}

/* min to max further elements and the end; where `some` came before, a comma first. */
static uint32_t rest(struct build *b, const struct elements *e, bool some, uint8_t nest,
                     uint32_t close)
{
    struct automaton *a = b->a;
    const uint32_t n = (uint32_t)e->n_first;
    const uint32_t min = e->min > n ? e->min - n : 0;
    const uint32_t max = e->max == NO_LIMIT ? NO_LIMIT : e->max - n;
    const uint32_t end = build_space(a, close);
    uint32_t more, first;

    if (max == 0)
        return min > 0 ? NODE_DEAD : some ? end : close;
    more = build_text(a, ",", 1, build_space(a, element(b, e, nest, NODE_POP)));
    if (some)
        return build_repeat(a, more, min, max, end);
    first = element(b, e, nest,
                    build_repeat(a, more, min > 0 ? min - 1 : 0,
                                 max == NO_LIMIT ? NO_LIMIT : max - 1, end));
    return min > 0 ? first : build_either(a, first, close);
}

uint32_t build_array_type(struct build *b, const json_t *schema, uint8_t nest,
                          uint32_t to)
{
    struct automaton *a = b->a;
    const uint8_t inside = (uint8_t)(nest + 1);
    const uint32_t close = build_text(a, "]", 1, to);
    struct elements e;
    uint32_t after;

    read_elements(b, schema, &e);
    if (a->st || e.min > e.max)
        return NODE_DEAD;
    after = rest(b, &e, e.n_first > 0, inside, close);
    for (size_t i = e.n_first; i-- > 0 && !a->st;) {
        const size_t path = build_enter(b, "prefixItems"), at = build_enter_index(b, i);
        const uint32_t here =
            build_schema(b, json_array_get(e.first, i), inside, after);

        after = i > 0 ? build_text(a, ",", 1, build_space(a, here)) : here;
        if (i >= e.min)
            after = build_either(a, after, i > 0 ? build_space(a, close) : close);
        build_leave(b, at);
        build_leave(b, path);
    }
    return build_text(a, "[", 1, build_space(a, after));
}

/* SPDX-License-Identifier: MIT
 *
 * schema_object.c - objects of a schema: declared members in their order, then others
 */
#include "engine/grammar/build.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAME 512 /* bytes of a declared name where others may follow */

struct member {
    const char *name;
    const json_t *schema;
    bool required;
};

/* Members in the order of the schema, then required ones that are not declared, in the
 * order of `required`, whose schema is that of other members. */
struct members {
    struct member *v;
    size_t n;
    const json_t *others; /* schema; NULL: any value */
    bool has_others;
};

static void read_required(struct build *b, const json_t *schema, struct members *m)
{
    const json_t *required = json_object_get(schema, "required");
    json_t *places;

    if (!required)
        return;
    if (!json_is_array(required)) {
        build_refuse(b, "'required' is not a list of names");
        return;
    }
    /* Names to numbers by an object of jansson's, so that many cost no squares. */
    places = json_object();
    for (size_t i = 0; i < m->n; i++)
        json_object_set_new(places, m->v[i].name, json_integer((json_int_t)i));
    for (size_t i = 0; i < json_array_size(required) && !b->a->st; i++) {
        const char *name = json_text(json_array_get(required, i));
        const json_t *place = name ? json_object_get(places, name) : NULL;

        if (!name) {
            build_refuse(b, "'required' is not a list of names");
        } else if (place) {
            m->v[json_integer_value(place)].required = true;
        } else {
            m->v[m->n] = (struct member){name, m->others, true};
            if (!m->has_others)
                m->v[m->n].schema = json_false();
            json_object_set_new(places, name, json_integer((json_int_t)m->n++));
        }
    }
    json_decref(places);
}

static void read_members(struct build *b, const json_t *schema, struct members *m)
{
    json_t *properties = json_object_get(schema, "properties"), *value;
    const json_t *others = json_object_get(schema, "additionalProperties");
    const char *name;

    if (properties && !json_is_object(properties))
        build_refuse(b, "'properties' is no object");
    if (others && !json_is_boolean(others) && !json_is_object(others))
        build_refuse(b, "'additionalProperties' is no schema");
    m->has_others = !json_is_false(others);
    m->others = json_is_object(others) ? others : NULL;
    m->v = calloc(json_object_size(properties) +
                      json_array_size(json_object_get(schema, "required")) + 1,
                  sizeof *m->v);
    if (!m->v) {
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate an object's members");
        return;
    }
    json_object_foreach(properties, name, value) m->v[m->n++] =
        (struct member){.name = name, .schema = value};
    read_required(b, schema, m);
}

/* ---- names ----------------------------------------------------------------------- */

/* The name as a JSON string with quotes and what follows. */
static uint32_t name_text(struct build *b, const char *name, uint32_t to)
{
    json_t *string = json_string(name);
    char *text = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    uint32_t node = NODE_DEAD;

    if (!text)
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate a name");
    else
        node = build_text(b->a, text, strlen(text), to);
    json_decref(string);
    free(text);
    return node;
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The character of valid UTF-8 at s. */
static uint32_t char_at(const char *s, size_t *len)
{
    const unsigned char *u = (const unsigned char *)s;

    *len = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    uint32_t c = *len == 1 ? u[0] : u[0] & (0x7fu >> *len);

    for (size_t i = 1; i < *len; i++)
        c = c << 6 | (u[i] & 0x3f);
    return c;
}

struct other_names {
    struct automaton *a;
    const char **names;    /* sorted, of valid UTF-8 */
    uint32_t free;         /* the rest of a name that is none of them */
    uint32_t free_special; /* a character that is not plain, and then the rest */
    uint32_t end;          /* the closing quote */
};

/* The next character of some names, and what follows it. */
struct branch {
    uint32_t c, to;
};

/* Characters that are not ASCII or need an escape. */
static const struct char_range special[] = {
    {0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0x80, CHAR_MAX_CODE}};
#define N_SPECIAL (sizeof special / sizeof *special)

static bool is_special(uint32_t c)
{
    return c < 0x20 || c >= 0x80 || c == '"' || c == '\\';
}

/* One plain character: one of a branch, or any other. */
static uint32_t plain_char(struct other_names *o, const struct branch *v, size_t n)
{
    struct edge edges[128];
    uint32_t n_edges = 0;
    size_t at = 0;

    for (uint32_t c = 0x20; c < 0x80; c++) {
        uint32_t to = o->free;

        if (is_special(c))
            continue;
        while (at < n && v[at].c < c)
            at++;
        if (at < n && v[at].c == c)
            to = v[at].to;
        if (n_edges && edges[n_edges - 1].to == to && edges[n_edges - 1].hi + 1u == c)
            edges[n_edges - 1].hi = (uint8_t)c;
        else
            edges[n_edges++] = (struct edge){(uint8_t)c, (uint8_t)c, to};
    }
    return build_bytes(o->a, edges, n_edges);
}

/* One special character, the same. */
static uint32_t special_char(struct other_names *o, const struct branch *v, size_t n)
{
    struct char_range *gaps = calloc(n + N_SPECIAL, sizeof *gaps);
    uint32_t node = NODE_DEAD;
    size_t n_gaps = 0;

    if (!gaps) {
        automaton_fail(o->a, ST_NO_MEMORY, "cannot allocate names");
        return NODE_DEAD;
    }
    for (size_t i = 0; i < N_SPECIAL; i++) {
        uint32_t lo = special[i].lo;

        for (size_t k = 0; k < n; k++) {
            const struct char_range c = {v[k].c, v[k].c};

            if (c.lo < lo || c.lo > special[i].hi)
                continue;
            if (c.lo > lo)
                gaps[n_gaps++] = (struct char_range){lo, c.lo - 1};
            lo = c.lo + 1;
            node = build_either(o->a, node, build_chars(o->a, &c, 1, v[k].to));
        }
        if (lo <= special[i].hi)
            gaps[n_gaps++] = (struct char_range){lo, special[i].hi};
    }
    node = build_either(o->a, node, build_chars(o->a, gaps, n_gaps, o->free));
    free(gaps);
    return node;
}

/* What may follow the first `from` bytes of names[lo] .. [hi], which these share, so
 * that the whole is none of the names. */
static uint32_t other_name(struct other_names *o, size_t lo, size_t hi, size_t from)
{
    const bool ends = o->names[lo][from] == '\0';
    struct branch *v = calloc(hi - lo + 1, sizeof *v);
    bool has_special = false;
    size_t n = 0;
    uint32_t node;

    if (!v) {
        automaton_fail(o->a, ST_NO_MEMORY, "cannot allocate names");
        return NODE_DEAD;
    }
    for (size_t i = lo + ends; i < hi && !o->a->st; n++) {
        size_t len, end = i;

        v[n].c = char_at(o->names[i] + from, &len);
        while (end < hi && !strncmp(o->names[end] + from, o->names[i] + from, len))
            end++;
        v[n].to = other_name(o, i, end, from + len);
        has_special |= is_special(v[n].c);
        i = end;
    }
    node = build_either(o->a, plain_char(o, v, n),
                        has_special ? special_char(o, v, n) : o->free_special);
    free(v);
    return ends ? node : build_either(o->a, node, o->end);
}

/* A name that is not declared, from its opening quote on. Without declared names it is
 * any string, else one without unnecessary escapes: they could spell a declared name.
 */
static uint32_t undeclared(struct build *b, const struct members *m, uint32_t to)
{
    static const struct char_range all = {0, CHAR_MAX_CODE};
    struct automaton *a = b->a;
    struct other_names o = {.a = a, .end = build_text(a, "\"", 1, to)};
    uint32_t node = NODE_DEAD;

    if (m->n == 0)
        return build_string(b, 0, NO_LIMIT, to);
    o.names = calloc(m->n, sizeof *o.names);
    if (!o.names) {
        automaton_fail(a, ST_NO_MEMORY, "cannot allocate %zu names", m->n);
        return NODE_DEAD;
    }
    for (size_t i = 0; i < m->n; i++) {
        o.names[i] = m->v[i].name;
        if (strlen(o.names[i]) > MAX_NAME)
            build_refuse(b,
                         "a name is longer than %d bytes; set additionalProperties to "
                         "false",
                         MAX_NAME);
    }
    if (!a->st) {
        qsort(o.names, m->n, sizeof *o.names, compare_names);
        o.free = build_open(a, 2);
        build_close(a, o.free, 0, build_chars(a, &all, 1, o.free));
        build_close(a, o.free, 1, o.end);
        o.free_special = build_chars(a, special, N_SPECIAL, o.free);
        node = build_text(a, "\"", 1, other_name(&o, 0, m->n, 0));
    }
    free(o.names);
    return node;
}

/* ---- the object ------------------------------------------------------------------ */

static uint32_t member_value(struct build *b, const struct member *m, uint8_t nest,
                             uint32_t to)
{
    const size_t path = build_enter(b, "properties"), name = build_enter(b, m->name);
    const uint32_t node =
        m->schema ? build_schema(b, m->schema, nest, to) : build_any(b, nest, to);

    build_leave(b, name);
    build_leave(b, path);
    return node;
}

/* Members that are not declared, with what follows the last of them; *after is what may
 * follow a member. */
static uint32_t other_members(struct build *b, const struct members *m, uint8_t nest,
                              uint32_t close, uint32_t *after)
{
    struct automaton *a = b->a;
    const size_t path = build_enter(b, "additionalProperties");
    uint32_t value, member;

    *after = build_open(a, 2);
    value = m->others ? build_schema(b, m->others, nest, *after)
                      : build_any(b, nest, *after);
    member = undeclared(b, m, build_colon(a, value));
    build_close(a, *after, 0, build_text(a, ",", 1, build_space(a, member)));
    build_close(a, *after, 1, build_space(a, close));
    build_leave(b, path);
    return member;
}

uint32_t build_object_type(struct build *b, const json_t *schema, uint8_t nest,
                           uint32_t to)
{
    struct automaton *a = b->a;
    struct members m = {0};
    const uint8_t inside = (uint8_t)(nest + 1);
    const uint32_t close = build_text(a, "}", 1, to);
    uint32_t member = NODE_DEAD, after = build_space(a, close);
    bool may_close = true;

    read_members(b, schema, &m);
    if (m.has_others && !a->st)
        member = other_members(b, &m, inside, close, &after);
    for (size_t i = m.n; i-- > 0 && !a->st;) {
        const uint32_t here = name_text(
            b, m.v[i].name, build_colon(a, member_value(b, &m.v[i], inside, after)));

        member = m.v[i].required ? here : build_either(a, here, member);
        may_close = may_close && !m.v[i].required;
        after = build_either(a, build_text(a, ",", 1, build_space(a, member)),
                             may_close ? build_space(a, close) : NODE_DEAD);
    }
    free(m.v);
    return build_text(
        a, "{", 1,
        build_space(a, build_either(a, member, may_close ? close : NODE_DEAD)));
}

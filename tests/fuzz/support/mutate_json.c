/* SPDX-License-Identifier: MIT
 *
 * mutate_json.c - other values and members of a JSON document
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/random.h"

struct mutation {
    struct choice_source c;
    mutate_words words;
};

/* A value, and what it is in. */
struct slot {
    json_t *in;
    const char *key; /* in an object */
    size_t index;    /* in an array */
    json_t *value;
};

/* ---- finding --------------------------------------------------------------------- */

/* One value of the document, each with the same chance: the k-th replaces the one
 * chosen before with chance 1 / k. */
static void walk(struct mutation *m, json_t *in, struct slot *chosen, size_t *k)
{
    const char *key;
    json_t *value;
    size_t i;

    json_object_foreach(in, key, value)
    {
        if (!choose(&m->c, ++*k))
            *chosen = (struct slot){in, key, 0, value};
        walk(m, value, chosen, k);
    }
    json_array_foreach(in, i, value)
    {
        if (!choose(&m->c, ++*k))
            *chosen = (struct slot){in, NULL, i, value};
        walk(m, value, chosen, k);
    }
}

static bool find_slot(struct mutation *m, json_t *root, struct slot *chosen)
{
    size_t k = 0;

    walk(m, root, chosen, &k);
    return k > 0;
}

static void put(const struct slot *s, json_t *value)
{
    if (s->key)
        json_object_set_new_nocheck(s->in, s->key, value);
    else
        json_array_set_new(s->in, s->index, value);
}

/* ---- values ---------------------------------------------------------------------- */

static const char *const odd_texts[] = {"",
                                        "a",
                                        " ",
                                        "\x1b[2J",
                                        "\n",
                                        "\xc2\x9b",
                                        "\xe2\x80\xae",
                                        "<|x|>",
                                        "../../x",
                                        "/",
                                        "/dev/zero",
                                        ".",
                                        "%s%n",
                                        "1e999",
                                        "nan",
                                        "-1",
                                        "none",
                                        "0",
                                        "\xf0\x9f\x98\x80",
                                        NULL};

static json_t *odd_number(struct mutation *m)
{
    static const json_int_t edge[] = {
        0,         1,        -1,        2,         255,        256,
        65536,     1 << 24,  INT32_MAX, INT32_MIN, UINT32_MAX, (json_int_t)1 << 40,
        INT64_MAX, INT64_MIN};
    static const double real[] = {0.5, -0.0, 1e-300, 1e300, 1e19, -1e19};

    return choose(&m->c, 3)
               ? json_integer(edge[choose(&m->c, sizeof edge / sizeof *edge)])
               : json_real(real[choose(&m->c, sizeof real / sizeof *real)]);
}

static const char *text_for(struct mutation *m)
{
    const char *word = choose(&m->c, 3) ? choose_word(&m->c, m->words) : NULL;

    return word ? word : choose_word(&m->c, odd_texts);
}

static json_t *long_text(struct mutation *m)
{
    const char *word = text_for(m);
    const size_t length = strlen(word), n = choose_count(&m->c);
    char *text = calloc(n, length + 1);
    json_t *value;

    for (size_t i = 0; text && i < n; i++)
        memcpy(text + i * length, word, length);
    value = json_string_nocheck(text ? text : "");
    free(text);
    return value;
}

static json_t *odd_value(struct mutation *m)
{
    json_t *value;

    switch (choose(&m->c, 9)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(choose(&m->c, 2));
    case 2:
        return json_array();
    case 3:
        return json_object();
    case 4:
        return long_text(m);
    case 5: /* deep */
        value = json_array();
        for (size_t n = choose_count(&m->c) / 4; n; n--) {
            json_t *outer = json_array();

            json_array_append_new(outer, value);
            value = outer;
        }
        return value;
    case 6:
        return json_string_nocheck(text_for(m));
    default:
        return odd_number(m);
    }
}

/* A text with another word within it, where a character begins. */
static json_t *other_text(struct mutation *m, const char *text)
{
    const char *word = text_for(m);
    size_t at = choose(&m->c, strlen(text) + 1);
    char joined[8192];

    while (at && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    const size_t cut = choose(&m->c, 2) && (unsigned char)text[at] < 0x80 && text[at];
    if (strlen(text) + strlen(word) >= sizeof joined)
        return json_string_nocheck(word);
    snprintf(joined, sizeof joined, "%.*s%s%s", (int)at, text, word, text + at + cut);
    json_t *value = json_string(joined); /* NULL where it is no UTF-8 */

    return value ? value : json_string_nocheck(word);
}

static json_t *near_value(struct mutation *m, const json_t *value)
{
    if (json_is_string(value))
        return other_text(m, json_string_value(value));
    if (json_is_integer(value)) {
        const json_int_t v = json_integer_value(value);
        const json_int_t by = (json_int_t)choose(&m->c, 3) - 1;

        return choose(&m->c, 2) && v < INT64_MAX && v > INT64_MIN
                   ? json_integer(v + by)
                   : json_integer((json_int_t)((uint64_t)v << choose(&m->c, 8)));
    }
    if (json_is_real(value)) {
        const double v = json_real_value(value) * pow(10, (double)choose(&m->c, 9) - 4);

        return choose(&m->c, 4) && isfinite(v) ? json_real(v)
                                               : json_real(-json_real_value(value));
    }
    return odd_value(m);
}

/* ---- members --------------------------------------------------------------------- */

/* A copy of a value, its texts ending in a number: names that are all different. */
static json_t *numbered(const json_t *value, size_t i)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)value), *member;
    const char *key;

    json_object_foreach(copy, key, member)
    {
        if (json_is_string(member))
            json_object_set_new(copy, key,
                                json_sprintf("%s%zu", json_string_value(member), i));
    }
    return copy;
}

/* The value again, n times in an array, or under n other names in an object. */
static void repeat(const struct slot *s, size_t n, bool differ)
{
    for (size_t i = 0; i < n; i++) {
        if (s->key) {
            char name[300];

            snprintf(name, sizeof name, "%.200s%zu", s->key, i);
            if (!json_object_get(s->in, name))
                json_object_set(s->in, name, s->value);
        } else {
            json_array_append_new(s->in, differ ? numbered(s->value, i)
                                                : json_incref(s->value));
        }
    }
}

static void rename_or_remove(struct mutation *m, const struct slot *s)
{
    json_t *value = json_incref(s->value);

    if (!s->key) {
        json_array_remove(s->in, s->index);
    } else {
        json_object_del(s->in, s->key);
        if (choose(&m->c, 2))
            json_object_set_new(s->in, text_for(m), json_incref(value));
    }
    json_decref(value);
}

static void change(struct mutation *m, json_t *root)
{
    struct slot s = {.in = NULL}, other = {.in = NULL};

    if (!find_slot(m, root, &s))
        return;
    switch (choose(&m->c, 8)) {
    case 0:
        put(&s, odd_value(m));
        break;
    case 1:
        find_slot(m, root, &other);
        put(&s, json_deep_copy(other.value));
        break;
    case 2:
        rename_or_remove(m, &s);
        break;
    case 3:
        repeat(&s, choose_count(&m->c), choose(&m->c, 2));
        break;
    case 4: /* a member more */
        if (json_is_object(s.value))
            json_object_set_new(s.value, text_for(m), odd_value(m));
        else
            put(&s, near_value(m, s.value));
        break;
    default:
        put(&s, near_value(m, s.value));
    }
}

struct written {
    uint8_t *data;
    size_t n, cap;
};

static int write_some(const char *text, size_t n, void *arg)
{
    struct written *w = arg;

    if (n > w->cap - w->n)
        return -1;
    memcpy(w->data + w->n, text, n);
    w->n += n;
    return 0;
}

size_t mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                   mutate_words words)
{
    struct mutation m = {choices_from(seed), words};
    json_t *root = json_loadb((const char *)data, size, 0, NULL);

    if (!root || !choose(&m.c, 8)) {
        json_decref(root);
        return LLVMFuzzerMutate(data, size, max_size);
    }
    for (size_t n = 1 + choose(&m.c, 3); n; n--)
        change(&m, root);
    struct written w = {malloc(max_size), 0, max_size};
    const bool fits = w.data && !json_dump_callback(root, write_some, &w, JSON_COMPACT);

    if (fits)
        memcpy(data, w.data, w.n);
    free(w.data);
    json_decref(root);
    return fits ? w.n : size;
}

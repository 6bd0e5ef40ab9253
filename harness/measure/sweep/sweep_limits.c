/* SPDX-License-Identifier: MIT
 *
 * sweep_limits.c - the memory limits of a sweep; every point is measured with each
 */
#include "harness/measure/sweep/sweep.h"

static enum status add(struct sweep_settings *s, uint64_t limit, const char *what,
                       struct err *err)
{
    for (int i = 0; i < s->n_mem_limits; i++)
        if (s->mem_limits[i] == limit)
            return ST_OK;
    if (s->n_mem_limits == SWEEP_MAX_LIMITS)
        return err_set(err, ST_USAGE, "%s: at most %d memory limits are possible", what,
                       SWEEP_MAX_LIMITS);
    s->mem_limits[s->n_mem_limits++] = limit;
    return ST_OK;
}

enum status sweep_set_limits(struct sweep_settings *s, const char *text,
                             const char *what, struct err *err)
{
    struct parse_list words = {.what = what, .text = text};
    enum status st = ST_OK;
    uint64_t limit;

    s->n_mem_limits = 0;
    while (parse_item(&words, &st, err)) {
        st = setting_parse(SETTING_mem, words.item, what, &limit, sizeof limit, err);
        if (st == ST_OK)
            st = add(s, limit, what, err);
    }
    return st;
}

uint64_t sweep_max_memory(const struct sweep_settings *s)
{
    uint64_t most = 0;

    for (int i = 0; i < s->n_mem_limits; i++)
        if (s->mem_limits[i] > most)
            most = s->mem_limits[i];
    return most;
}

/* A single limit is a number, as all were in earlier versions. */
json_t *sweep_limits_json(const struct sweep_settings *s)
{
    json_t *array;

    if (s->n_mem_limits == 1)
        return setting_json(SETTING_mem, &s->mem_limits[0]);
    array = json_array();
    for (int i = 0; i < s->n_mem_limits; i++)
        json_array_append_new(array, setting_json(SETTING_mem, &s->mem_limits[i]));
    return array;
}

enum status sweep_limits_from_json(struct sweep_settings *s, const json_t *value,
                                   const char *what, struct err *err)
{
    const bool is_list = json_is_array(value);
    const size_t n = is_list ? json_array_size(value) : 1;
    enum status status = ST_OK;

    s->n_mem_limits = 0;
    if (n < 1 || n > SWEEP_MAX_LIMITS)
        return err_set(err, ST_USAGE, "%s: a list of %zu; 1 to %d are possible", what,
                       n, SWEEP_MAX_LIMITS);
    for (size_t i = 0; i < n && status == ST_OK; i++) {
        uint64_t limit;

        status =
            setting_from_json(SETTING_mem, is_list ? json_array_get(value, i) : value,
                              what, &limit, sizeof limit, err);
        if (status == ST_OK)
            status = add(s, limit, what, err);
    }
    return status;
}

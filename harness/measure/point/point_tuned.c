/* SPDX-License-Identifier: MIT
 *
 * point_tuned.c - a point with a profile: finding one that fits
 */
#include "harness/measure/point/point_tuned.h"

#include <stdio.h>

#include "harness/rows/settings/setting.h"

/* What the user has set stays; a prefill point has one count, that of prefill. */
static void take_setup(struct point *p, const struct tune_setup *s)
{
    const bool threads = !(p->setup.given & SETTING_BIT(threads));
    const bool prefill = threads && !(p->setup.given & SETTING_BIT(threads_prefill));

    if (p->kind == POINT_PREFILL) {
        if (prefill)
            p->setup.n_threads = s->n_threads_prefill;
    } else {
        if (threads)
            p->setup.n_threads = s->n_threads;
        if (prefill)
            p->setup.n_threads_prefill = s->n_threads_prefill;
        if (p->setup.n_threads_prefill == p->setup.n_threads)
            p->setup.n_threads_prefill = 0;
    }
    if (!(p->setup.given & SETTING_BIT(placement)))
        p->setup.placement = s->placement;
    if (!(p->setup.given & SETTING_BIT(batch)))
        p->setup.n_batch = s->tuning.n_batch;
}

enum status point_take_tuned(struct point *p, const struct tuned_key *here, char *note,
                             size_t cap, struct err *err)
{
    struct point_tuning *t = &p->tuning;
    struct tuned tuned;
    enum status st;

    *note = '\0';
    st = tuned_find(&tuned, &t->state, p->setup.tuned, here, p->setup.residency, note,
                    cap, err);
    if (st || t->state != TUNED_USED)
        return st;
    t->n_threads = p->setup.n_threads;
    t->n_threads_prefill = p->setup.n_threads_prefill;
    t->n_batch = p->setup.n_batch;
    t->placement = p->setup.placement;
    t->residency = tuned.setup.residency;
    t->choices = tuned.setup.tuning;
    take_setup(p, &tuned.setup);
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

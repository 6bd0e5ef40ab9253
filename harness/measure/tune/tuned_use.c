/* SPDX-License-Identifier: MIT
 *
 * tuned_use.c - whether a profile fits here and now
 */
#include "harness/measure/tune/tuned_use.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- before opening -------------------------------------------------------------- */

/* Weights in memory are laid out as packed ones are, and so are those of a streamed
 * model that stay. */
static bool same_layout(enum weights_residency a, enum weights_residency b)
{
    return (a == WEIGHTS_MMAP) == (b == WEIGHTS_MMAP);
}

static enum status check_profile(struct tuned *t, enum tuned_state *state,
                                 const char *path, const struct tuned_key *here,
                                 enum weights_residency residency, char *note,
                                 size_t cap, struct err *err)
{
    char why[240];
    const enum status st = tuned_load(t, path, err);

    if (st)
        return st;
    *state = TUNED_USED;
    if (!tuned_key_fits(&t->key, here, why, sizeof why)) {
        *state = TUNED_STALE;
        snprintf(note, cap, "the profile is not used, %s; tune again", why);
    } else if (residency != WEIGHTS_AUTO &&
               !same_layout(residency, t->setup.residency)) {
        *state = TUNED_STALE;
        snprintf(note, cap,
                 "the profile is not used: it is for weights that are %s, and %s is "
                 "requested",
                 weights_residency_name(t->setup.residency),
                 weights_residency_name(residency));
    }
    return ST_OK;
}

enum status tuned_find(struct tuned *t, enum tuned_state *state, const char *requested,
                       const struct tuned_key *here, enum weights_residency residency,
                       char *note, size_t cap, struct err *err)
{
    char path[4096];
    enum status st = ST_OK;

    *note = '\0';
    if (!strcmp(requested, "auto")) {
        const bool may_be = modelref_knows_cache(NULL);

        if (may_be)
            st = tuned_path(path, sizeof path, here, err);
        if (!may_be || (st == ST_OK && access(path, F_OK))) {
            *state = TUNED_MISSING;
            snprintf(note, cap,
                     "there is no profile of this model for this machine and these "
                     "limits; `bench tune` makes one");
            return ST_OK;
        }
        requested = path;
    }
    return st ? st
              : check_profile(t, state, requested, here, residency, note, cap, err);
}

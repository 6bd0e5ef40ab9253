/* SPDX-License-Identifier: MIT
 *
 * doctor_internal.h - the groups of checks that doctor_examine() makes
 */
#ifndef SLM_HARNESS_DECIDE_DOCTOR_DOCTOR_INTERNAL_H
#define SLM_HARNESS_DECIDE_DOCTOR_DOCTOR_INTERNAL_H

#include "harness/decide/doctor/doctor.h"

/* Adds a check, where there is room for one, and returns it; the last one otherwise. */
struct doctor_check *doctor_add(struct doctor *d, const char *name,
                                enum doctor_state state, const char *found, ...)
    __attribute__((format(printf, 4, 5)));

void doctor_set_mend(struct doctor_check *c, const char *command);

/* doctor_machine.c: what files of /proc and /sys show. */
void doctor_check_isa(struct doctor *d, const struct topology *t);
void doctor_check_governor(struct doctor *d, const struct topology *t,
                           const char *root);
void doctor_check_energy(struct doctor *d, const char *root);
void doctor_check_container(struct doctor *d, const char *root);
void doctor_check_limits(struct doctor *d, const struct topology *t, const char *root);

/* doctor_fence.c: the fence, entered by children that look at themselves. dir: that of
 * doctor_examine(). */
void doctor_look_at_fence(struct doctor_fence *f, const char *dir);
void doctor_check_fence(struct doctor *d, const char *dir);

/* doctor_here.c: what only the living machine shows. */
void doctor_check_disk(struct doctor *d, const char *dir);
void doctor_check_programs(struct doctor *d);
void doctor_check_quiet(struct doctor *d);

#endif

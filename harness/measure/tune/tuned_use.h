/* SPDX-License-Identifier: MIT
 *
 * tuned_use.h - from `--tuned auto|FILE` to a model that runs with it, or with a reason
 * why not
 *
 * A profile is checked twice. Before the model is opened its key is compared with here
 * and now. Once the model is loaded tuned_check() (harness/measure/worker) holds it
 * against the default: a profile that is clearly slower, for whatever reason, is not
 * used.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_TUNED_USE_H
#define SLM_HARNESS_MEASURE_TUNE_TUNED_USE_H

#include "harness/rows/settings/setting.h"
#include "harness/measure/tune/tuned.h"
#include "harness/measure/worker/tuned_check.h"

/* asked: "auto" or a file. residency: the command's, WEIGHTS_AUTO where it leaves the
 * choice. With any state but TUNED_USED note has one sentence. Errors: as
 * tuned_load(). */
enum status tuned_find(struct tuned *t, enum tuned_state *state, const char *requested,
                       const struct tuned_key *here, enum weights_residency residency,
                       char *note, size_t cap, struct err *err);

#endif

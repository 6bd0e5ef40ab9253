/* SPDX-License-Identifier: MIT
 *
 * report_settings.h - charts along a setting: decode speed against the memory limit,
 * speed and KV cache against the number of sequences, steps against the chunk of a
 * prompt that they read
 *
 * Each is drawn at the number of threads and the depth at which that setting has the
 * most values, and has no marks where it has fewer than two.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_SETTINGS_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_SETTINGS_H

#include "harness/show/report/report_chart.h"

/* Decode speed by memory limit: a line for each quantisation and each way to hold
 * weights that was requested; with auto, points of one line may differ in what was
 * chosen. Error: ST_NO_MEMORY. */
enum status report_fill_limit(struct chart *c, const struct report_rows *p,
                              struct err *err);

/* Decode speed by number of sequences, with the roof of an undisturbed machine
 * (roof_best()): the speed of all together and of each, and the size of the KV cache. A
 * line for each setting, and for each number of tokens that sequences begin with.
 * Error: ST_NO_MEMORY. */
enum status report_fill_sequences(struct chart *c, const struct report_rows *p,
                                  struct err *err);
enum status report_fill_each(struct chart *c, const struct report_rows *p,
                             struct err *err);
enum status report_fill_kv(struct chart *c, const struct report_rows *p,
                           struct err *err);

/* Steps that read a prompt in chunks, by tokens of a chunk: the time that each
 * sequence waits for its token, with that of a step without a chunk and the least that
 * the roofs allow; and the tokens per second of the prompt. Error: ST_NO_MEMORY. */
enum status report_fill_step(struct chart *c, const struct report_rows *p,
                             struct err *err);
enum status report_fill_chunk(struct chart *c, const struct report_rows *p,
                              struct err *err);

#endif

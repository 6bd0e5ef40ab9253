/* SPDX-License-Identifier: MIT
 *
 * engine_check.h - whether another program can be measured, before it is
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_ENGINE_CHECK_H
#define SLM_HARNESS_MEASURE_ENGINES_ENGINE_CHECK_H

#include <stdbool.h>

#include "engine/base/status.h"

/* text: as engine_parse() takes it. Its program is there and can be run. One without
 * {model} is started, where start_it, for its --help, which shows whether it is
 * llama-bench or llama-server. Errors: engine_parse()'s, engine_find()'s, ST_INPUT (it
 * is neither, or does not end), ST_INTERRUPTED. */
enum status engine_check(const char *text, bool start_it, struct err *err);

#endif

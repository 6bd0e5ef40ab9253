/* SPDX-License-Identifier: MIT
 *
 * tasks.h - questions with known answers, from a file
 *
 * A line is a JSON object:
 *     {"prompt": "The capital of France is", "answers": ["Paris"], "max_tokens": 8}
 *     {"prompt": "Describe a cat as JSON.", "schema": {"type": "object", ..}}
 * An answer is right if it begins with one of the accepted ones as whole words, in any
 * case and after blanks; or if it is a text that the JSON schema allows. max_tokens is
 * the length of an answer (default: TASKS_MAX_TOKENS). Blank lines are skipped.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_DECIDE_CHOOSE_TASKS_H
#define SLM_HARNESS_DECIDE_CHOOSE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define TASKS_MAX        100000
#define TASKS_MAX_TOKENS 64

struct task {
    char *prompt;
    char **answers; /* [n_answers]; 0: the schema decides */
    size_t n_answers;
    char *schema; /* JSON; NULL: none */
    int max_tokens;
};

struct tasks {
    struct task *v; /* malloc'ed [n] */
    size_t n;
    uint64_t key; /* of the file's text */
};

/* *tasks is for tasks_free() in any case. Errors: ST_IO, ST_INPUT (which line, and what
 * it lacks; no task at all), ST_NO_MEMORY. */
enum status tasks_read(struct tasks *tasks, const char *path, struct err *err);
void tasks_free(struct tasks *tasks);

/* Whether the text begins with an accepted answer. */
bool task_accepts(const struct task *task, const char *text);

#endif

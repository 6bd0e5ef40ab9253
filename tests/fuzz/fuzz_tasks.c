/* SPDX-License-Identifier: MIT
 *
 * fuzz_tasks.c - tasks of `bench choose`, from JSON lines
 *
 * What is accepted is whole, and an accepted answer is right.
 */
#include <ctype.h>
#include <stddef.h>

#include "harness/decide/choose/tasks.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

/* Schemas become automata, whose size grammar.h limits. */
static const struct fuzz_bound bound = {
    .cpu_s = 2, .cpu_s_per_byte = 1e-4, .bytes = 256u << 20, .bytes_per_byte = 4096};

static void check_task(const struct task *t)
{
    if (!t->prompt || !*t->prompt || !t->n_answers == !t->schema || t->max_tokens < 1)
        fuzz_fail("a task is not whole");
    for (size_t i = 0; i < t->n_answers; i++)
        if (!isspace((unsigned char)t->answers[i][0]) &&
            !task_accepts(t, t->answers[i]))
            fuzz_fail("the answer '%s' is not accepted", t->answers[i]);
}

static void read_tasks(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct tasks tasks;

    if (fuzz_accepted(tasks_read(&tasks, fuzz_file("tasks.jsonl", data, size), &err),
                      &err))
        for (size_t i = 0; i < tasks.n; i++)
            check_task(&tasks.v[i]);
    tasks_free(&tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_tasks, data, size, &bound);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"prompt", "answers", "schema", "max_tokens",
                                        "type",   "string",  "Paris",  NULL};

    return mutate_json(data, size, max_size, seed, words);
}

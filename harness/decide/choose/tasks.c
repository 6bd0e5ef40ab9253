/* SPDX-License-Identifier: MIT
 *
 * tasks.c - tasks from JSON lines, and what is an answer
 */
#include "harness/decide/choose/tasks.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/json_read.h"
#include "engine/grammar/grammar.h"
#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/base/textfile.h"

#define MAX_BYTES      ((size_t)64 << 20)
#define MAX_LINE       ((size_t)4 << 20)
#define MAX_ANSWER_LEN 1000000

static enum status take_answers(struct task *t, const json_t *list, struct err *err)
{
    const size_t n = json_array_size(list);

    t->answers = calloc(n + 1, sizeof *t->answers);
    if (!t->answers)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu answers", n);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_text(json_array_get(list, i));

        if (!text || !*text)
            return err_set(err, ST_INPUT, "'answers' is a list of texts");
        if (!(t->answers[i] = strdup(text)))
            return err_set(err, ST_NO_MEMORY, "no memory for an answer");
        t->n_answers++;
    }
    return ST_OK;
}

/* Compiled once, so that one that is not supported is known before anything runs. */
static enum status take_schema(struct task *t, const json_t *schema, struct err *err)
{
    struct grammar *g = NULL;
    enum status st;

    t->schema = json_dumps(schema, JSON_ENCODE_ANY | JSON_COMPACT);
    st = t->schema ? grammar_from_schema(&g, t->schema, strlen(t->schema), err)
                   : err_set(err, ST_NO_MEMORY, "no memory for a schema");
    grammar_unref(g);
    return st;
}

static enum status take_task(struct task *t, const json_t *o, struct err *err)
{
    const char *prompt = json_text(json_object_get(o, "prompt"));
    const json_t *answers = json_object_get(o, "answers");
    const json_t *schema = json_object_get(o, "schema");
    const json_t *most = json_object_get(o, "max_tokens");
    int64_t n = TASKS_MAX_TOKENS;

    if (!json_is_object(o) || !prompt || !*prompt)
        return err_set(err, ST_INPUT, "a task is a JSON object with the text 'prompt'");
    if (!json_array_size(answers) == !schema)
        return err_set(err, ST_INPUT,
                       "a task has a list 'answers' or a 'schema', one of them");
    if (most && (!json_whole(most, &n) || n < 1 || n > MAX_ANSWER_LEN))
        return err_set(err, ST_INPUT, "'max_tokens' is a number from 1 to %d",
                       MAX_ANSWER_LEN);
    t->max_tokens = (int)n;
    t->prompt = strdup(prompt);
    if (!t->prompt)
        return err_set(err, ST_NO_MEMORY, "no memory for a task");
    return schema ? take_schema(t, schema, err) : take_answers(t, answers, err);
}

static enum status take_line(struct tasks *tasks, size_t *cap, const char *line,
                             size_t len, struct err *err)
{
    json_t *o = json_try(line, len, (struct json_limit){MAX_LINE, MAX_LINE}, 0);
    struct task *grown = array_grow(tasks->v, tasks->n, cap, sizeof *grown);
    enum status st;

    if (!grown || tasks->n == TASKS_MAX) {
        json_decref(o);
        return grown ? err_set(err, ST_INPUT, "more than %d tasks", TASKS_MAX)
                     : err_set(err, ST_NO_MEMORY, "no memory for %zu tasks", tasks->n);
    }
    tasks->v = grown;
    tasks->v[tasks->n] = (struct task){.max_tokens = 0};
    st = take_task(&tasks->v[tasks->n++], o, err);
    json_decref(o);
    return st;
}

enum status tasks_read(struct tasks *tasks, const char *path, struct err *err)
{
    struct err why = ERR_INIT;
    size_t len = 0, cap = 0, n_line = 1;
    char *text = NULL;
    enum status st;

    *tasks = (struct tasks){.v = NULL};
    st = textfile_read(path, MAX_BYTES, &text, &len, err);
    if (st)
        return st;
    tasks->key = hash_add(HASH_BEGIN, text, len);
    for (size_t at = 0; at < len && !st; n_line++) {
        const char *end = memchr(text + at, '\n', len - at);
        const size_t n = end ? (size_t)(end - text) - at : len - at;

        if (strspn(text + at, " \t\r") < n)
            st = take_line(tasks, &cap, text + at, n, &why);
        if (st)
            err_set(err, st, "%s, line %zu: %s", format_path(path).text, n_line,
                    why.msg);
        at += n + 1;
    }
    free(text);
    if (!st && !tasks->n)
        st = err_set(err, ST_INPUT, "%s has no tasks; docs/choose.md shows some",
                     format_path(path).text);
    return st;
}

void tasks_free(struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->n; i++) {
        struct task *t = &tasks->v[i];

        for (size_t k = 0; k < t->n_answers; k++)
            free(t->answers[k]);
        free(t->answers);
        free(t->prompt);
        free(t->schema);
    }
    free(tasks->v);
    *tasks = (struct tasks){.v = NULL};
}

/* A letter or digit, or a part of a character beyond ASCII. */
static bool goes_with_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

bool task_accepts(const struct task *task, const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t i = 0; i < task->n_answers; i++) {
        const size_t n = strlen(task->answers[i]);

        if (!strncasecmp(text, task->answers[i], n) &&
            !(goes_with_word(task->answers[i][n - 1]) && goes_with_word(text[n])))
            return true;
    }
    return false;
}

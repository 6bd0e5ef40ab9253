/* SPDX-License-Identifier: MIT
 *
 * choose_state.c - choose.json: settings and finished steps
 */
#include "harness/decide/choose/choose_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/filelock.h"
#include "engine/base/invoker.h"
#include "engine/base/jsonfile.h"
#include "harness/base/dirs.h"
#include "harness/base/textfile.h"

static const struct json_limit limit = {.bytes = 16 << 20, .values = 400000};

static enum status save(const struct choose_state *s, struct err *err)
{
    char path[sizeof s->dir + 20];

    snprintf(path, sizeof path, "%s/" CHOOSE_JSON, s->dir);
    return textfile_write_json(path, json_incref(s->root), JSON_INDENT(1), err);
}

static enum status lock(struct choose_state *s, struct err *err)
{
    char path[sizeof s->dir + 20];

    snprintf(path, sizeof path, "%s/.choose.lock", s->dir);
    s->lock = invoker_open(path, O_RDWR);
    if (s->lock < 0)
        return invoker_fail(path, errno, err);
    return filelock_take(s->lock, "choice", s->dir, err);
}

/* The first setting that differs from the file's. */
static enum status compare(const struct choose_state *s, const json_t *stored,
                           json_t *settings, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(settings, key, value)
    {
        const json_t *before = json_object_get(stored, key);
        char is[120], was[120];

        if (json_equal(value, before))
            continue;
        return err_set(err, ST_USAGE,
                       "%s has the steps of another choice: %s is %s there, and %s "
                       "now; name another directory with -o, or remove that one",
                       s->dir, key,
                       before ? json_shown(was, sizeof was, before) : "none",
                       json_shown(is, sizeof is, value));
    }
    return ST_OK;
}

enum status choose_state_open(struct choose_state *s, const char *dir, json_t *settings,
                              struct err *err)
{
    struct jsonfile file = {.root = NULL};
    bool exists = false;
    enum status st;

    *s = (struct choose_state){.lock = -1};
    snprintf(s->dir, sizeof s->dir, "%s", dir);
    st = strlen(dir) < sizeof s->dir
             ? dirs_make(dir, err)
             : err_set(err, ST_USAGE, "-o: %.80s... is too long a name", dir);
    if (!st)
        st = lock(s, err);
    if (!st)
        st = jsonfile_find(&exists, dir, CHOOSE_JSON, err);
    if (!st && exists) {
        st = jsonfile_load(&file, dir, CHOOSE_JSON, limit, err);
        if (!st)
            st = compare(s, json_object_get(file.root, "settings"), settings, err);
        if (!st)
            s->root = json_incref(file.root);
        jsonfile_free(&file);
    } else if (!st) {
        s->root = json_object();
    }
    if (!st && !json_is_object(json_object_get(s->root, "steps")))
        json_object_set_new(s->root, "steps", json_object());
    if (!st && json_object_set(s->root, "settings", settings))
        st = err_set(err, ST_NO_MEMORY, "no memory for the steps of a choice");
    json_decref(settings);
    return st ? st : save(s, err);
}

void choose_state_close(struct choose_state *s)
{
    json_decref(s->root);
    if (s->lock >= 0)
        close(s->lock);
    *s = (struct choose_state){.lock = -1};
}

const json_t *choose_state_get(const struct choose_state *s, const char *step)
{
    return json_object_get(json_object_get(s->root, "steps"), step);
}

enum status choose_state_put(struct choose_state *s, const char *step, json_t *result,
                             struct err *err)
{
    if (json_object_set_new(json_object_get(s->root, "steps"), step, result))
        return err_set(err, ST_NO_MEMORY, "no memory for the steps of a choice");
    return save(s, err);
}

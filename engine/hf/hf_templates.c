/* SPDX-License-Identifier: MIT
 *
 * hf_templates.c - a folder's chat templates as GGUF's keys
 *
 * They are in files of their own (chat_template.jinja, and by name
 * additional_chat_templates/NAME.jinja), or else in tokenizer_config.json: one text, or
 * a list of {"name", "template"}; or else in chat_template.json. Where files are, as in
 * transformers, only they count, but for a default that is not among them.
 */
#include "engine/hf/hf_impl.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEMPLATE ((size_t)1 << 20)
#define MAX_NAMED    15 /* that a reader takes, and the default */
#define MAX_NAME     64

struct named {
    char name[MAX_NAME];
    char *text; /* malloc'ed */
};

struct templates {
    char *standard; /* malloc'ed; NULL: none */
    struct named named[MAX_NAMED];
    size_t n;
};

/* A name as converters spell it in a key. */
static void spell(char *name)
{
    for (; *name; name++)
        if (!((*name >= '0' && *name <= '9') || (*name >= 'A' && *name <= 'Z') ||
              (*name >= 'a' && *name <= 'z')))
            *name = '_';
}

/* Takes text over, also on failure. Of two with one name the later counts. */
static enum status add(struct templates *t, const char *name, size_t n_name, char *text,
                       const char *from, struct err *err)
{
    char key[MAX_NAME];
    char **place = &t->standard;

    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for a chat template");
    snprintf(key, sizeof key, "%.*s", (int)(n_name < MAX_NAME ? n_name : MAX_NAME),
             name);
    spell(key);
    if (strcmp(key, "default") != 0) {
        size_t i = 0;

        while (i < t->n && strcmp(t->named[i].name, key) != 0)
            i++;
        if (i == MAX_NAMED) {
            free(text);
            return err_set(err, ST_INPUT, "%s has more than %d chat templates by name",
                           from, MAX_NAMED);
        }
        t->n += i == t->n;
        memcpy(t->named[i].name, key, sizeof key);
        place = &t->named[i].text;
    }
    free(*place);
    *place = text;
    return ST_OK;
}

/* The member chat_template. */
static enum status add_member(struct templates *t, const struct jsonfile *f,
                              struct err *err)
{
    const json_t *of = json_member(f->root, "chat_template");
    const char *one = json_text(of);
    enum status st = one ? add(t, "default", 7, strdup(one), f->path, err) : ST_OK;
    const json_t *v;
    size_t i;

    json_array_foreach(of, i, v)
    {
        const char *name = json_text(json_member(v, "name"));
        const char *text = json_text(json_member(v, "template"));

        if (name && *name && text && !st)
            st = add(t, name, strlen(name), strdup(text), f->path, err);
    }
    return st;
}

static enum status add_file(struct templates *t, const char *dir, const char *file,
                            const char *name, size_t n_name, struct err *err)
{
    char *text = NULL;
    const enum status st = jsonfile_read_text(&text, dir, file, MAX_TEMPLATE, err);

    return st ? st : add(t, name, n_name, text, dir, err);
}

static int is_template(const struct dirent *e)
{
    const size_t n = strlen(e->d_name), end = strlen(".jinja");

    return n > end && e->d_name[0] != '.' && !strcmp(e->d_name + n - end, ".jinja");
}

/* Those of additional_chat_templates, in the order of their names. */
static enum status add_folder(struct templates *t, const char *dir, struct err *err)
{
    static const char folder[] = "additional_chat_templates";
    struct dirent **files = NULL;
    char path[PATH_MAX], file[sizeof folder + 256];
    enum status st = ST_OK;
    int n;

    if (snprintf(path, sizeof path, "%s/%s", dir, folder) >= (int)sizeof path)
        return ST_OK; /* which no folder has */
    n = scandir(path, &files, is_template, alphasort);
    if (n < 0 && errno != ENOENT && errno != ENOTDIR)
        st = err_set_errno(err, errno == ENOMEM ? ST_NO_MEMORY : ST_IO,
                           "cannot list %s", path);
    for (int i = 0; i < n; i++) {
        const char *name = files[i]->d_name;

        snprintf(file, sizeof file, "%s/%s", folder, name);
        if (!st)
            st = add_file(t, dir, file, name, strlen(name) - strlen(".jinja"), err);
        free(files[i]);
    }
    free(files);
    return st;
}

static enum status add_files(struct templates *t, const char *dir, struct err *err)
{
    static const char file[] = "chat_template.jinja";
    bool exists = false;
    enum status st = jsonfile_find(&exists, dir, file, err);

    if (!st && exists)
        st = add_file(t, dir, file, "default", 7, err);
    return st ? st : add_folder(t, dir, err);
}

static void free_all(struct templates *t)
{
    free(t->standard);
    for (size_t i = 0; i < t->n; i++)
        free(t->named[i].text);
}

static enum status read_all(struct templates *t, const struct jsonfile *tokenizer,
                            const struct jsonfile *processor, const char *dir,
                            struct err *err)
{
    struct templates files = {.n = 0};
    enum status st = add_member(t, tokenizer, err);

    if (!st && !t->standard)
        st = add_member(t, processor, err);
    if (!st && dir)
        st = add_files(&files, dir, err);
    if (!st && (files.standard || files.n)) {
        const struct templates members = *t;

        *t = files;
        files = members;
        if (!t->standard) {
            t->standard = files.standard;
            files.standard = NULL;
        }
    }
    free_all(&files);
    return st;
}

enum status hf_templates_put(struct gguf_kvs *k, const struct jsonfile *tokenizer,
                             const struct jsonfile *processor, const char *dir,
                             bool *any, struct err *err)
{
    static const char key[] = "tokenizer.chat_template";
    struct templates t = {.n = 0};
    const enum status st = read_all(&t, tokenizer, processor, dir, err);
    char full[sizeof key + MAX_NAME];

    if (!st && t.standard)
        gguf_kv_str(k, key, t.standard);
    if (!st && t.n) {
        gguf_kv_array(k, "tokenizer.chat_templates", GGUF_STRING, t.n);
        for (size_t i = 0; i < t.n; i++)
            gguf_put_str(&k->bytes, t.named[i].name);
    }
    for (size_t i = 0; i < t.n && !st; i++) {
        snprintf(full, sizeof full, "%s.%s", key, t.named[i].name);
        gguf_kv_str(k, full, t.named[i].text);
    }
    *any = t.standard || t.n;
    free_all(&t);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * chat_variants.c - where templates come from, and which one a conversation gets
 *
 * A model has one chat template, or several by name. Which one is used is the custom of
 * those who publish them: "tool_use" for a conversation with tools, else "default".
 * GGUF has the default as tokenizer.chat_template and others as
 * tokenizer.chat_template.NAME. Where only "tool_use" is there, it is used for all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/infile.h"
#include "engine/base/utf8.h"
#include "engine/text/chat_impl.h"

#define MAX_FILE     ((size_t)1 << 20)
#define MAX_VARIANTS 16
#define MAX_NAME     64

static const char key[] = "tokenizer.chat_template";

static enum status no_memory(struct err *err)
{
    return err_set(err, ST_NO_MEMORY, "no memory for a chat template");
}

static const struct chat_variant *find(const struct chat_template *c, const char *name)
{
    for (size_t i = 0; i < c->n_variants; i++)
        if (!strcmp(c->variants[i].name, name))
            return &c->variants[i];
    return NULL;
}

static enum status add(struct chat_template *c, const char *name, size_t n_name,
                       const char *text, size_t len, struct err *err)
{
    struct chat_variant *v = &c->variants[c->n_variants];

    if (c->n_variants == MAX_VARIANTS)
        return err_set(err, ST_INPUT, "the model has more than %d chat templates",
                       MAX_VARIANTS);
    *v = (struct chat_variant){
        .name = strndup(name, n_name), .source = strndup(text, len), .why = ERR_INIT};
    c->n_variants++;
    if (!v->name || !v->source)
        return no_memory(err);
    if (jinja_compile(&v->program, v->source, strlen(v->source), &v->why) ==
        ST_NO_MEMORY)
        return no_memory(err);
    return ST_OK;
}

/* The bytes of the name behind "tokenizer.chat_template."; 0: another key, or no name.
 */
static size_t name_in(const struct gguf_str *k, const char **name)
{
    const size_t n = sizeof key; /* with the dot */

    if (k->len <= n || k->len - n >= MAX_NAME || memcmp(k->data, key, n - 1) != 0 ||
        k->data[n - 1] != '.')
        return 0;
    *name = k->data + n;
    for (size_t i = 0; i < k->len - n; i++)
        if (!((*name)[i] == '_' || (*name)[i] == '-' ||
              ((*name)[i] >= '0' && (*name)[i] <= '9') ||
              ((*name)[i] >= 'A' && (*name)[i] <= 'Z') ||
              ((*name)[i] >= 'a' && (*name)[i] <= 'z')))
            return 0;
    return k->len - n;
}

/* Those of a model's file. */
static enum status add_own(struct chat_template *c, const struct gguf *g,
                           struct err *err)
{
    struct gguf_str s;
    bool has_default = gguf_get_str(g, key, &s);
    enum status st = ST_OK;

    if (!has_default && !gguf_get_str(g, "tokenizer.chat_template.tool_use", &s))
        return err_set(err, ST_INPUT,
                       "%s has no chat template; name the one it was trained with by "
                       "--chat-template: %s, or a file",
                       gguf_path(g), chat_template_names());
    st = add(c, "default", 7, s.data, s.len, err);
    for (size_t i = 0; i < gguf_n_kvs(g) && !st; i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);
        const char *name = "";
        const size_t n = name_in(&kv->key, &name);
        char full[sizeof key + MAX_NAME];

        if (!n || (n == 7 && !memcmp(name, "default", n)))
            continue;
        snprintf(full, sizeof full, "%s.%.*s", key, (int)n, name);
        if (gguf_get_str(g, full, &s))
            st = add(c, name, n, s.data, s.len, err);
    }
    return st;
}

static enum status add_file(struct chat_template *c, const char *path, struct err *err)
{
    struct err why = ERR_INIT;
    char *text = NULL;
    size_t len = 0;
    enum status st;

    if (infile_read(&text, &len, path, MAX_FILE, &why)) {
        if (why.code == ST_NO_MEMORY)
            return err_set(err, why.code, "%s", why.msg);
        return err_set(
            err, ST_USAGE,
            "--chat-template %s is neither a name (%s) nor a file that can be "
            "read: %s",
            path, chat_template_names(), why.msg);
    }
    st = add(c, "default", 7, text, len, err);
    free(text);
    return st;
}

/* A template by name: one of this module or of the model; or a file. */
static enum status add_named(struct chat_template *c, const struct gguf *g,
                             const char *name, struct err *err)
{
    char full[sizeof key + MAX_NAME];
    struct gguf_str s;

    for (size_t i = 0; i < chat_n_named; i++)
        if (!strcmp(chat_named[i].name, name))
            return add(c, "default", 7, chat_named[i].text, strlen(chat_named[i].text),
                       err);
    snprintf(full, sizeof full, "%s.%.*s", key, MAX_NAME - 1, name);
    if (g && strlen(name) < MAX_NAME && gguf_get_str(g, full, &s))
        return add(c, "default", 7, s.data, s.len, err);
    return add_file(c, name, err);
}

/* What is made of all: their names in one text, and their sources. */
static enum status join(struct chat_template *c, struct err *err)
{
    size_t n_names = 1, n_markers = 1;

    for (size_t i = 0; i < c->n_variants; i++) {
        n_names += strlen(c->variants[i].name) + 2;
        n_markers += strlen(c->variants[i].source) + 1;
    }
    c->names = calloc(n_names, 1);
    c->markers = calloc(n_markers, 1);
    if (!c->names || !c->markers)
        return no_memory(err);
    for (size_t i = 0, names = 0, markers = 0; i < c->n_variants; i++) {
        const struct chat_variant *v = &c->variants[i];

        if (c->n_variants > 1)
            names += (size_t)sprintf(c->names + names, "%s%s", i ? ", " : "", v->name);
        markers += (size_t)sprintf(c->markers + markers, "%s\n", v->source);
    }
    return ST_OK;
}

enum status chat_load_variants(struct chat_template *c, const struct gguf *g,
                               const char *name, struct err *err)
{
    enum status st;

    c->variants = calloc(MAX_VARIANTS, sizeof *c->variants);
    if (!c->variants)
        return no_memory(err);
    st = name ? add_named(c, g, name, err) : add_own(c, g, err);
    if (!st && !c->variants[0].program) /* nothing works without the default */
        st = err_set(err, c->variants[0].why.code, "%s", c->variants[0].why.msg);
    return st ? st : join(c, err);
}

void chat_free_variants(struct chat_template *c)
{
    for (size_t i = 0; i < c->n_variants; i++) {
        free(c->variants[i].name);
        free(c->variants[i].source);
        jinja_free(c->variants[i].program);
    }
    free(c->variants);
    free(c->names);
    free(c->markers);
}

enum status chat_pick(const struct chat_variant **out, const struct chat_template *c,
                      const json_t *conversation, struct err *err)
{
    const char *name =
        json_string_value(json_object_get(conversation, "chat_template"));
    const struct chat_variant *v = name ? find(c, name) : NULL;
    char shown[MAX_NAME];

    if (name && !v)
        return err_set(err, ST_USAGE, "there is no chat template '%s', but %s",
                       utf8_printable(shown, sizeof shown, name, strlen(name)),
                       *c->names ? c->names : "default");
    if (!v && json_array_size(json_object_get(conversation, "tools")))
        v = find(c, "tool_use");
    if (!v)
        v = &c->variants[0];
    if (!v->program)
        return err_set(err, v->why.code, "chat template '%s': %s", v->name, v->why.msg);
    *out = v;
    return ST_OK;
}

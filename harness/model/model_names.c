/* SPDX-License-Identifier: MIT
 *
 * model_names.c - identity by content, names by path
 */
#include "harness/model/model_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/hf/hf.h"
#include "harness/base/format.h"
#include "harness/base/hash.h"

/* ---- identity -------------------------------------------------------------------- */

static uint64_t add_name(uint64_t h, struct gguf_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.data[i];
        const char folded = (char)tolower(c);

        if (isalnum(c) || c >= 0x80)
            h = hash_add(h, &folded, 1);
    }
    return h;
}

static uint64_t add_value(uint64_t h, const struct gguf *g, const struct gguf_kv *kv)
{
    h = hash_add(h, kv->key.data, kv->key.len);
    for (uint64_t i = 0; i < kv->n; i++) {
        struct gguf_str text;
        double number;

        if (gguf_elem_f64(kv, i, &number))
            h = hash_add(h, &number, sizeof number);
        else if (gguf_elem_str(g, kv, i, &text))
            h = hash_add(h, text.data, text.len);
    }
    return h;
}

/* A number of JSON, and not 0. */
static uint64_t known(uint64_t h)
{
    return h & INT64_MAX ? h & INT64_MAX : 1;
}

/* Tensors and values are added up, as their order in a file means nothing. */
uint64_t model_identity(const struct gguf *g)
{
    struct gguf_str arch = {"", 0}, name = {"", 0};
    uint64_t sum = HASH_BEGIN;

    gguf_get_str(g, "general.architecture", &arch);
    gguf_get_str(g, "general.name", &name);
    sum += hash_add(HASH_BEGIN, arch.data, arch.len);
    sum += add_name(HASH_BEGIN, name);
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const uint64_t h = hash_add(HASH_BEGIN, t->name, strlen(t->name));

        sum += hash_add(h, t->ne, sizeof t->ne);
    }
    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);

        if (arch.len && kv->key.len > arch.len && kv->key.data[arch.len] == '.' &&
            !memcmp(kv->key.data, arch.data, arch.len))
            sum += add_value(HASH_BEGIN, g, kv);
    }
    return known(sum);
}

uint64_t shape_identity(const struct synth_shape *s)
{
    const uint32_t sizes[] = {
        s->n_layers, s->n_embd,  s->n_ff,        s->n_heads,   s->n_kv_heads,
        s->head_dim, s->n_vocab, s->n_ctx_train, s->n_experts, s->n_experts_used};
    uint64_t h = hash_add(HASH_BEGIN, "shape", 5);

    h = hash_add(h, s->name, strlen(s->name) + 1);
    h = hash_add(h, s->arch, strlen(s->arch));
    return known(hash_add(h, sizes, sizeof sizes));
}

/* ---- names ----------------------------------------------------------------------- */

const char *model_label(char *out, size_t cap, const char *name)
{
    const size_t len = strlen(name);
    size_t keep = len;

    for (int i = 0; i < QUANTMIX_N; i++) {
        const size_t n = strlen(quantmix_name((enum quantmix)i));

        if (len > n + 1 && strchr("-._:", name[len - n - 1]) &&
            !strcasecmp(name + len - n, quantmix_name((enum quantmix)i)))
            keep = len - n - 1;
    }
    snprintf(out, cap, "%.*s", (int)keep, name);
    return out;
}

/* "dir/sub/name": the model's own name behind its last k folders; false: there are
 * fewer folders, or the result is too long. */
static bool with_folders(char *out, const struct modelref *ref, const char *own, int k)
{
    size_t end = strlen(ref->path), begin;
    char text[MODELREF_NAME_MAX];

    while (end > 1 && ref->path[end - 1] == '/')
        end--;
    while (end > 0 && ref->path[end - 1] != '/')
        end--;
    for (begin = end; k > 0; k--) {
        if (begin == 0)
            return false;
        while (begin > 0 && ref->path[begin - 1] == '/')
            begin--;
        while (begin > 0 && ref->path[begin - 1] != '/')
            begin--;
    }
    if (end - begin + strlen(own) >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s%s", (int)(end - begin), ref->path + begin, own);
    text_harmless(out, MODELREF_NAME_MAX, text);
    return true;
}

/* Where folders do not distinguish them. */
static void with_hash(char *out, const struct modelref *ref, const char *own)
{
    const uint64_t h = hash_add(HASH_BEGIN, ref->path, strlen(ref->path));
    const uint32_t folded = (uint32_t)(h ^ h >> 32);

    snprintf(out, MODELREF_NAME_MAX, "%.*s~%08x", MODELREF_NAME_MAX - 10, own, folded);
}

/* Whether j is another file with the same name. own: names as they were. */
static bool is_namesake(struct modelref *const *refs, char (*own)[MODELREF_NAME_MAX],
                        size_t i, size_t j)
{
    return !refs[i]->synthetic && !refs[j]->synthetic && !strcmp(own[i], own[j]) &&
           strcmp(refs[i]->path, refs[j]->path) != 0;
}

/* Whether another file with the name of refs[i] has the same with k folders, too. */
static bool is_taken(struct modelref *const *refs, char (*own)[MODELREF_NAME_MAX],
                     size_t n, size_t i, int k, const char *name)
{
    char other[MODELREF_NAME_MAX];

    for (size_t j = 0; j < n; j++)
        if (is_namesake(refs, own, i, j) && with_folders(other, refs[j], own[j], k) &&
            !strcmp(other, name))
            return true;
    return false;
}

void model_names_part(struct modelref *const *refs, size_t n)
{
    char own[MODELREFS_MAX][MODELREF_NAME_MAX];

    for (size_t i = 0; i < n; i++)
        memcpy(own[i], refs[i]->name, sizeof own[i]);
    for (size_t i = 0; i < n; i++) {
        char name[MODELREF_NAME_MAX];
        bool shared = false;
        int k = 1;

        for (size_t j = 0; j < n; j++)
            shared |= is_namesake(refs, own, i, j);
        if (!shared)
            continue;
        while (with_folders(name, refs[i], own[i], k) &&
               is_taken(refs, own, n, i, k, name))
            k++;
        if (!with_folders(name, refs[i], own[i], k))
            with_hash(name, refs[i], own[i]);
        memcpy(refs[i]->name, name, sizeof name);
    }
}

/* ---- labels ---------------------------------------------------------------------- */

/* The first with the identity of refs[i]. */
static size_t first_of(struct modelref *const *refs, size_t i)
{
    size_t k = 0;

    while (refs[k]->identity != refs[i]->identity)
        k++;
    return k;
}

static void take_shortest(struct modelref *const *refs, size_t n, size_t first)
{
    const struct modelref *best = refs[first];

    for (size_t i = first; i < n; i++)
        if (refs[i]->identity == refs[first]->identity &&
            strlen(refs[i]->label) < strlen(best->label))
            best = refs[i];
    for (size_t i = first; i < n; i++)
        if (refs[i]->identity == refs[first]->identity && refs[i] != best)
            memcpy(refs[i]->label, best->label, sizeof best->label);
}

/* A label that models of several identities have is replaced by a name, which is one
 * file's alone. */
static bool is_shared(struct modelref *const *refs, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (refs[k]->identity != refs[i]->identity &&
            !strcmp(refs[k]->label, refs[i]->label))
            return true;
    return false;
}

void model_labels_choose(struct modelref *const *refs, size_t n)
{
    bool shared[MODELREFS_MAX];

    for (size_t i = 0; i < n; i++)
        if (refs[i]->identity && first_of(refs, i) == i)
            take_shortest(refs, n, i);
    for (size_t i = 0; i < n; i++)
        shared[i] = refs[i]->identity && is_shared(refs, n, i);
    for (size_t i = 0; i < n; i++)
        if (shared[i])
            memcpy(refs[i]->label, refs[first_of(refs, i)]->name,
                   sizeof refs[i]->label);
}

/* ---- paths ----------------------------------------------------------------------- */

char *model_absolute(const char *text)
{
    struct modelref ref;
    struct err ignored = ERR_INIT;
    char *dir = NULL, *path = NULL;

    if (modelref_parse(&ref, text, NULL, &ignored) || ref.synthetic)
        return NULL;
    const char *const rest = text + strlen(ref.path); /* ":QUANT" */
    char *slash = strrchr(ref.path, '/');

    if (hf_is_folder(ref.path)) {
        dir = realpath(ref.path, NULL);
        if (dir && asprintf(&path, "%s%s", dir, rest) < 0)
            path = NULL;
    } else {
        if (slash)
            *slash = '\0';
        dir = realpath(!slash ? "." : *ref.path ? ref.path : "/", NULL);
        if (dir && asprintf(&path, "%s/%s%s", strcmp(dir, "/") ? dir : "",
                            slash ? slash + 1 : ref.path, rest) < 0)
            path = NULL;
    }
    free(dir);
    if (path && strlen(path) < sizeof ref.text)
        return path;
    free(path);
    return NULL;
}

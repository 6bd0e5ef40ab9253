/* SPDX-License-Identifier: MIT
 *
 * arch_nearest.c - the known architecture that a file is nearest to
 */
#include "engine/arch/arch_nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/arch/loader_impl.h"
#include "engine/base/strtab.h"
#include "engine/base/utf8.h"

#define NAME_BYTES sizeof(((struct name_list *)0)->name[0])

/* Different names of a file's tensors, without numbers and without those that every
 * architecture may have. */
struct stems {
    char (*name)[NAME_BYTES]; /* [n] */
    bool *known;              /* [n] the architecture at hand reads it */
    size_t n;
    struct strtab index;
};

/* "blk.12.ffn_gate.3.weight" as "blk.#.ffn_gate.#.weight". */
static void stem_of(char *out, size_t cap, const char *name)
{
    char shown[NAME_BYTES];
    size_t n = 0;

    utf8_printable(shown, sizeof shown, name, strlen(name));
    for (const char *at = shown; *at && n + 1 < cap;) {
        const size_t digits = strspn(at, "0123456789");
        const bool whole = digits && (at == shown || at[-1] == '.') &&
                           (at[digits] == '.' || !at[digits]);

        out[n++] = whole ? '#' : *at;
        at += whole ? digits : 1;
    }
    out[n] = '\0';
}

/* Factors of rotations, and matrices' own scales. */
static bool is_everybodys(const struct gguf *g, const struct gguf_tensor *t)
{
    const size_t n = strlen(t->name);
    const size_t cut = n > 12 && !strcmp(t->name + n - 12, ".input_scale") ? 12
                       : n > 6 && !strcmp(t->name + n - 6, ".scale")       ? 6
                                                                           : 0;
    char weight[128];

    if (!strncmp(t->name, "rope_f", 6))
        return true;
    if (!cut || n >= sizeof weight)
        return false;
    snprintf(weight, sizeof weight, "%.*s.weight", (int)(n - cut), t->name);
    return gguf_tensor_find(g, weight) != NULL;
}

static enum status stems_take(struct stems *s, const struct gguf *g, struct err *err)
{
    const size_t n = gguf_n_tensors(g);
    enum status st = strtab_init(&s->index, n + 1, err);

    if (st)
        return st;
    s->name = calloc(n + 1, sizeof *s->name);
    s->known = calloc(n + 1, sizeof *s->known);
    if (!s->name || !s->known)
        return err_set(err, ST_NO_MEMORY, "no memory for the names of %zu tensors", n);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        char *name = s->name[s->n];

        if (is_everybodys(g, t))
            continue;
        stem_of(name, NAME_BYTES, t->name);
        s->n += strtab_put(&s->index, name, (uint32_t)strlen(name), (uint32_t)s->n) ==
                STRTAB_NONE;
    }
    return ST_OK;
}

static void stems_free(struct stems *s)
{
    free(s->name);
    free(s->known);
    strtab_free(&s->index);
}

/* Mark the stem; false: the file has no such tensor. */
static bool mark(struct stems *s, bool layer, const char *name, const char *tail)
{
    char full[NAME_BYTES];

    snprintf(full, sizeof full, "%s%s%s", layer ? "blk.#." : "", name, tail);
    const uint32_t at = strtab_find(&s->index, full, strlen(full));

    if (at != STRTAB_NONE)
        s->known[at] = true;
    return at != STRTAB_NONE;
}

static bool is_needed(const struct tensor_rule *r)
{
    return !r->optional && !r->unless && r->when == WHEN_ALWAYS;
}

static enum status add(struct name_list *l, const char *name, struct err *err)
{
    void *more = realloc(l->name, (l->n + 1) * sizeof *l->name);

    if (!more)
        return err_set(err, ST_NO_MEMORY, "no memory for a list of names");
    l->name = more;
    snprintf(l->name[l->n++], NAME_BYTES, "%s", name);
    return ST_OK;
}

/* What counts for a distance: a tensor that one of both does not know, or needs; and
 * one that only layers of some kind need. */
enum { FAR = 4, NEAR = 1 };

/* Mark what the table's rules read, add up what they miss, and list what they need. */
static enum status apply(struct stems *s, const struct tensor_rule *table, bool layer,
                         size_t *distance, struct name_list *missing, struct err *err)
{
    enum status st = ST_OK;

    for (const struct tensor_rule *r = table; r->name && !st; r++) {
        const bool one = mark(s, layer, r->name, "");
        const bool each = r->each && mark(s, layer, r->each, ".#.weight");
        char full[NAME_BYTES];

        if (one || each || r->optional)
            continue;
        *distance += is_needed(r) ? FAR : NEAR;
        if (!is_needed(r))
            continue;
        snprintf(full, sizeof full, "%s%s", layer ? "blk.#." : "", r->name);
        if (missing)
            st = add(missing, full, err);
    }
    return st;
}

/* The distance from an architecture; s->known is its. */
static enum status compare(struct stems *s, const struct arch *a, size_t *distance,
                           size_t *n_shared, struct name_list *missing, struct err *err)
{
    *distance = 0;
    memset(s->known, 0, s->n * sizeof *s->known);
    enum status st = apply(s, a->ends, false, distance, missing, err);

    if (!st)
        st = apply(s, a->layer, true, distance, missing, err);
    *n_shared = 0;
    for (size_t i = 0; i < s->n; i++)
        *n_shared += s->known[i];
    *distance += FAR * (s->n - *n_shared);
    return st;
}

/* ---- metadata -------------------------------------------------------------------- */

/* Keys "<architecture>.<key>" of the file that an architecture does not read: by
 * reading the file's hyperparameters as its own, as far as that goes. */
static enum status unread_keys(const struct gguf *g, const struct arch *a,
                               const char *prefix, size_t *n, struct arch_nearest *out,
                               struct err *err)
{
    struct err why = ERR_INIT;
    struct model *m = calloc(1, sizeof *m);
    unsigned char *asked = calloc(gguf_n_kvs(g) + 1, 1);
    struct loader l = {.g = g, .m = m, .err = &why, .prefix = prefix, .asked = asked};
    enum status st = ST_OK;

    l.used = calloc(gguf_n_tensors(g) + 1, 1);
    if (!m || !asked || !l.used) {
        st = err_set(err, ST_NO_MEMORY, "no memory to compare architectures");
    } else {
        m->arch = a;
        loader_try_keys(&l, m);
    }
    *n = 0;
    for (size_t i = 0; !st && i < gguf_n_kvs(g); i++) {
        const struct gguf_str key = gguf_kv_at(g, i)->key;
        const size_t skip = strlen(prefix) + 1;
        char shown[NAME_BYTES];

        if (asked[i] || key.len <= skip || memcmp(key.data, prefix, skip - 1) != 0 ||
            key.data[skip - 1] != '.')
            continue;
        ++*n;
        if (out && !why.code)
            st = add(
                &out->unread,
                utf8_printable(shown, sizeof shown, key.data + skip, key.len - skip),
                err);
    }
    const char *text = why.msg + strlen(gguf_path(g)) + 2; /* "FILE: " */

    if (out && !st && why.code && strlen(why.msg) > strlen(gguf_path(g)) + 2)
        snprintf(out->why_not, sizeof out->why_not, "%s", text);
    free(l.used);
    free(asked);
    model_free(m);
    return st;
}

static enum status choose(struct arch_nearest *out, struct stems *s,
                          const struct gguf *g, const char *prefix, struct err *err)
{
    size_t best = SIZE_MAX, best_unread = SIZE_MAX;
    const struct arch *a;
    enum status st = ST_OK;

    for (size_t i = 0; !st && (a = arch_at(i)); i++) {
        size_t distance, n_shared, unread = 0;

        st = compare(s, a, &distance, &n_shared, NULL, err);
        if (st || !n_shared || distance > best)
            continue;
        st = unread_keys(g, a, prefix, &unread, NULL, err);
        if (st || (distance == best && unread >= best_unread))
            continue;
        best = distance;
        best_unread = unread;
        out->arch = a;
    }
    return st;
}

enum status arch_find_nearest(struct arch_nearest *out, const struct gguf *g,
                              struct err *err)
{
    struct gguf_str name = {0};
    struct stems s = {0};
    char prefix[64] = "";
    size_t distance, n;
    enum status st = stems_take(&s, g, err);

    *out = (struct arch_nearest){0};
    if (gguf_get_str(g, "general.architecture", &name) && name.len < sizeof prefix)
        snprintf(prefix, sizeof prefix, "%.*s", (int)name.len, name.data);
    if (!st)
        st = choose(out, &s, g, prefix, err);
    if (!st && out->arch)
        st = compare(&s, out->arch, &distance, &out->n_shared, &out->missing, err);
    for (size_t i = 0; !st && out->arch && i < s.n; i++)
        if (!s.known[i])
            st = add(&out->unknown, s.name[i], err);
    if (!st && out->arch)
        st = unread_keys(g, out->arch, prefix, &n, out, err);
    stems_free(&s);
    if (st)
        arch_nearest_free(out);
    return st;
}

void arch_nearest_free(struct arch_nearest *n)
{
    free(n->unknown.name);
    free(n->missing.name);
    free(n->unread.name);
    *n = (struct arch_nearest){0};
}

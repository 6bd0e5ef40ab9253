/* SPDX-License-Identifier: MIT
 *
 * pack_plan.c - what a packed file holds, where, and its head
 */
#include "engine/pack/pack_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/arch/arch.h"
#include "engine/gguf/gguf_put.h"

#define HEAD_FIXED 24 /* magic, version, two counts: in front of the metadata */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + GGUF_PANEL_ALIGN - 1) / GGUF_PANEL_ALIGN * GGUF_PANEL_ALIGN;
}

/* ---- the plan -------------------------------------------------------------------- */

/* By layer, then in the order of the source. */
static int by_layer(const void *a, const void *b)
{
    const struct pack_tensor *s = a, *t = b;

    if (s->layer != t->layer)
        return s->layer < t->layer ? -1 : 1;
    return s->from < t->from ? -1 : s->from > t->from;
}

static enum status take_tensor(struct pack_tensor *t, const struct gguf *g,
                               const struct gguf_tensor *from, bool wants_panels,
                               const struct kern_set *kern, struct err *err)
{
    *t = (struct pack_tensor){.from = from};
    if (!from->bytes)
        return err_set(err, ST_UNSUPPORTED,
                       "%s cannot be packed: the type of tensor %s is unknown",
                       gguf_path(g), from->name);
    if (sscanf(from->name, "blk.%d.", &t->layer) != 1 || t->layer < 0)
        t->layer = -1;
    t->in_panels =
        wants_panels && gguf_has_panels(from->fmt) && gguf_panel_rows(from->ne);
    if (!t->in_panels || kern->pack[from->fmt])
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED,
                   "%s cannot be packed: there are no kernels for panels of %s at the "
                   "ISA levels in use",
                   gguf_path(g), kern_format_info(from->fmt)->name);
}

enum status pack_plan_make(struct pack_plan *plan, const struct gguf *g,
                           const struct kern_set *kern, struct err *err)
{
    const size_t n = gguf_n_tensors(g);
    struct pack_plan p = {.n = n, .tensors = calloc(n + 1, sizeof *p.tensors)};
    bool *wants_panels = calloc(n + 1, sizeof *wants_panels);
    unsigned char *head = NULL;
    enum status st =
        p.tensors && wants_panels
            ? model_panels(wants_panels, g, err)
            : err_set(err, ST_NO_MEMORY, "no memory to pack %zu tensors", n);

    for (size_t i = 0; !st && i < n; i++)
        st = take_tensor(&p.tensors[i], g, gguf_tensor_at(g, i), wants_panels[i], kern,
                         err);
    free(wants_panels);
    if (!st) {
        qsort(p.tensors, n, sizeof *p.tensors, by_layer);
        for (size_t i = 0; i < n; i++) {
            p.tensors[i].offset = p.data_bytes;
            p.data_bytes += aligned(p.tensors[i].from->bytes);
        }
        st = pack_head(&head, &p.head_bytes, &p, g, err);
    }
    free(head);
    if (st)
        pack_plan_free(&p);
    else
        *plan = p;
    return st;
}

void pack_plan_free(struct pack_plan *plan)
{
    free(plan->tensors);
    plan->tensors = NULL;
}

/* ---- the head -------------------------------------------------------------------- */

uint64_t pack_head_checksum(unsigned char *head, size_t n, size_t at)
{
    memset(head + at, 0, sizeof(uint64_t));
    return XXH3_64bits(head, n);
}

static void put_le(unsigned char *to, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(v >> 8 * i);
}

/* All pairs of g but those of its file's layout, then those of the new one; *sum_at is
 * where the value of the head's checksum will be in the head. The checksums of the
 * tensors are the last bytes. */
static void put_metadata(struct gguf_kvs *kvs, const struct gguf *g,
                         const struct pack_plan *plan, size_t *sum_at)
{
    static const char alignment[] = "general.alignment";

    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);

        if (!gguf_is_layout_key(kv) && (kv->key.len != strlen(alignment) ||
                                        memcmp(kv->key.data, alignment, kv->key.len)))
            gguf_kv_copy(kvs, g, kv);
    }
    gguf_kv_u32(kvs, alignment, GGUF_PANEL_ALIGN);
    gguf_kv_u32(kvs, GGUF_KEY_LAYOUT, GGUF_LAYOUT_VERSION);
    gguf_kv_u64(kvs, GGUF_KEY_HEAD, 0);
    *sum_at = HEAD_FIXED + kvs->bytes.n - sizeof(uint64_t);
    gguf_kv_array(kvs, GGUF_KEY_CHECKSUMS, GGUF_U64, plan->n);
    for (size_t i = 0; i < plan->n; i++) {
        unsigned char le[8];

        put_le(le, plan->tensors[i].checksum);
        gguf_put(&kvs->bytes, le, sizeof le);
    }
}

enum status pack_head(unsigned char **out, size_t *bytes, const struct pack_plan *plan,
                      const struct gguf *g, struct err *err)
{
    struct gguf_bytes head = {.n = 0};
    struct gguf_kvs kvs = {.n = 0};
    size_t sum_at = 0;

    put_metadata(&kvs, g, plan, &sum_at);
    gguf_put_head(&head, plan->n, &kvs);
    free(kvs.bytes.data);
    for (size_t i = 0; i < plan->n; i++) {
        const struct pack_tensor *t = &plan->tensors[i];

        gguf_put_tensor(&head, t->from->name, t->from->n_dims, t->from->ne,
                        t->from->ggml_id + (t->in_panels ? GGUF_PANEL_TYPE : 0),
                        t->offset);
    }
    while (!head.failed && head.n % GGUF_PANEL_ALIGN)
        gguf_put(&head, "", 1);
    if (head.failed) {
        free(head.data);
        return err_set(err, ST_NO_MEMORY, "no memory for the metadata of %s",
                       gguf_path(g));
    }
    put_le(head.data + sum_at, pack_head_checksum(head.data, head.n, sum_at));
    *out = head.data;
    *bytes = head.n;
    return ST_OK;
}

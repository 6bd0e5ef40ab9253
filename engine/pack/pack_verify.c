/* SPDX-License-Identifier: MIT
 *
 * pack_verify.c - a packed file against its checksums
 *
 * The file is read from front to back by read(), not through its mapping: a page that
 * the disk cannot read is an error then.
 */
#include "engine/pack/pack_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/base/utf8.h"

#define CHUNK_BYTES ((size_t)1 << 20)

struct verify {
    const struct gguf *g;
    unsigned char *buffer; /* [CHUNK_BYTES] */
    XXH3_state_t *sum;
    gguf_save_progress_fn *progress;
    void *arg;
};

static enum status damaged(const struct verify *v, const char *what, struct err *err)
{
    return err_set(err, ST_CHECK,
                   "%s is damaged: %s does not match its checksum; run `bench pack` "
                   "again on the model that it was made from",
                   gguf_path(v->g), what);
}

/* Keys are compared in the mapped file. A file that has become shorter since it was
 * opened has none to find, so it is read first. */
static enum status check_head(const struct verify *v, struct err *err)
{
    const size_t n = (size_t)gguf_data_offset(v->g);
    unsigned char *head = malloc(n);
    uint64_t want = 0;
    enum status st;

    if (!head)
        return err_set(err, ST_NO_MEMORY, "no memory to verify %s", gguf_path(v->g));
    st = gguf_read_bytes(v->g, head, n, 0, err);
    const struct gguf_kv *kv = st ? NULL : gguf_kv_find(v->g, GGUF_KEY_HEAD);
    const char *image = gguf_image(v->g);

    if (kv)
        gguf_elem_u64(kv, 0, &want); /* its type is known: gguf_read_layout() */
    if (!st && (!kv || pack_head_checksum(
                           head, n, (size_t)((const char *)kv->data - image)) != want))
        st = damaged(v, "its metadata", err);
    free(head);
    return st;
}

static enum status check_tensor(const struct verify *v, size_t i, struct err *err)
{
    const struct gguf_tensor *t = gguf_tensor_at(v->g, i);
    uint64_t want = 0;
    char what[160], name[128];

    XXH3_64bits_reset(v->sum);
    for (uint64_t done = 0; done < t->bytes;) {
        const size_t n =
            t->bytes - done < CHUNK_BYTES ? (size_t)(t->bytes - done) : CHUNK_BYTES;
        const enum status st =
            gguf_read_bytes(v->g, v->buffer, n, t->offset + done, err);

        if (st)
            return st;
        XXH3_64bits_update(v->sum, v->buffer, n);
        done += n;
        if (v->progress &&
            v->progress(v->arg, t->offset + done, gguf_image_bytes(v->g)))
            return err_set(err, ST_INTERRUPTED, "verifying %s was interrupted",
                           gguf_path(v->g));
    }
    const struct gguf_kv *kv = gguf_kv_find(v->g, GGUF_KEY_CHECKSUMS);

    if (kv)
        gguf_elem_u64(kv, i, &want);
    if (XXH3_64bits_digest(v->sum) == want)
        return ST_OK;
    snprintf(what, sizeof what, "the tensor %s",
             utf8_printable(name, sizeof name, t->name, strlen(t->name)));
    return damaged(v, what, err);
}

static void describe(struct pack_result *r, const struct gguf *g)
{
    *r = (struct pack_result){.bytes = gguf_image_bytes(g),
                              .n_tensors = gguf_n_tensors(g)};
    for (size_t i = 0; i < r->n_tensors; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        r->n_in_panels += t->panel_rows > 0;
        r->panel_bytes += t->panel_rows ? t->bytes : 0;
    }
}

enum status pack_verify(struct pack_result *result, const struct gguf *g,
                        gguf_save_progress_fn *progress, void *arg, struct err *err)
{
    struct verify v = {.g = g, .progress = progress, .arg = arg};
    enum status st;

    if (!gguf_is_packed(g) || !gguf_is_mapped(g))
        return err_set(err, ST_USAGE,
                       "%s is no packed file, so it has no checksums; `bench pack "
                       "MODEL -o FILE` makes one",
                       gguf_path(g));
    v.buffer = malloc(CHUNK_BYTES);
    v.sum = XXH3_createState();
    if (!v.buffer || !v.sum)
        st = err_set(err, ST_NO_MEMORY, "no memory to verify %s", gguf_path(g));
    else
        st = check_head(&v, err);
    for (size_t i = 0; !st && i < gguf_n_tensors(g); i++)
        st = check_tensor(&v, i, err);
    if (!st)
        describe(result, g);
    free(v.buffer);
    XXH3_freeState(v.sum);
    return st;
}

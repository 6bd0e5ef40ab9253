/* SPDX-License-Identifier: MIT
 *
 * gguf_q2_0.c - which of its two layouts a tensor of type 42 has
 *
 * Type 42 is q2_0: 64 weights in 18 bytes. Files older than that layout have 128
 * weights in 34 bytes under the same number, and nothing in them says so but where
 * tensors lie: a writer puts the next one behind the last byte, rounded up to the
 * alignment.
 */
#include "engine/gguf/gguf_cursor.h"

#include <stdlib.h>

#include "engine/gguf/gguf_panels.h"

enum layout { LAYOUT_OPEN, LAYOUT_64, LAYOUT_128 };

/* Bytes of a tensor whose rows are whole blocks of 128; 0: they are not. */
static uint64_t bytes_of_128(const struct gguf_tensor *t)
{
    return t->ne[0] % 128 ? 0 : t->n_elems / 128 * 34;
}

/* What the bytes up to the next tensor say; both where both layouts end with it. */
static enum layout layout_in(const struct gguf_tensor *t, uint64_t room,
                             uint32_t alignment)
{
    const uint64_t old = bytes_of_128(t);
    const bool is_64 = t->bytes <= room && room - t->bytes < alignment;
    const bool is_128 = old && old <= room && room - old < alignment;

    return is_64 == is_128 ? LAYOUT_OPEN : is_64 ? LAYOUT_64 : LAYOUT_128;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Bytes from the tensor to the next offset of n, sorted, or to the end of the data. */
static uint64_t room_of(const struct gguf_tensor *t, const uint64_t *offsets, size_t n,
                        uint64_t data_bytes)
{
    size_t low = 0, high = n; /* the first offset above the tensor's is among these */

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (offsets[mid] > t->offset)
            high = mid;
        else
            low = mid + 1;
    }
    const uint64_t end = low < n ? offsets[low] : data_bytes;

    return end > t->offset ? end - t->offset : 0;
}

static void take_128(struct gguf_tensor *t)
{
    t->ggml_id = GGUF_Q2_0_128;
    t->fmt = kern_format_by_ggml_id(GGUF_Q2_0_128);
    t->bytes = bytes_of_128(t);
}

/* Those that are open, being small, follow the others; alone they are new. */
static void settle(struct gguf *g, const uint64_t *offsets)
{
    const uint64_t data_bytes =
        g->bytes > g->data_offset ? g->bytes - g->data_offset : 0;
    size_t n_64 = 0, n_128 = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < g->n_tensors; i++) {
            struct gguf_tensor *t = &g->tensors[i];
            enum layout is;

            if (t->ggml_id != GGUF_Q2_0)
                continue;
            is = layout_in(t, room_of(t, offsets, g->n_tensors, data_bytes),
                           g->alignment);
            if (pass == 0) {
                n_64 += is == LAYOUT_64;
                n_128 += is == LAYOUT_128;
            } else if (is == LAYOUT_128 ||
                       (is == LAYOUT_OPEN && n_128 > n_64 && bytes_of_128(t))) {
                take_128(t);
            }
        }
}

enum status gguf_settle_q2_0(struct gguf_cursor *c)
{
    struct gguf *g = c->g;
    size_t first = 0;
    uint64_t *offsets;

    while (first < g->n_tensors && g->tensors[first].ggml_id != GGUF_Q2_0)
        first++;
    if (first == g->n_tensors || gguf_is_packed(g)) /* these say which */
        return ST_OK;
    offsets = malloc(g->n_tensors * sizeof *offsets);
    if (!offsets)
        return err_set(c->err, ST_NO_MEMORY, "cannot allocate a list of %zu tensors",
                       g->n_tensors);
    for (size_t i = 0; i < g->n_tensors; i++)
        offsets[i] = g->tensors[i].offset;
    qsort(offsets, g->n_tensors, sizeof *offsets, by_value);
    settle(g, offsets);
    free(offsets);
    return ST_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * weights_packed.c - weights with their matrices in panels
 *
 * Memory has every tensor once, in the file's order, each aligned to a cache line;
 * where layers are streamed, the other tensors alone. An image's tensors stay in
 * place. weights_packed_fill.c fills it.
 */
#include "engine/weights/weights_packed.h"

#include <stdlib.h>

#include "engine/gguf/gguf_panels.h"

/* ---- opening --------------------------------------------------------------------- */

/* Lay out anonymous memory. Tensors do not overlap in the file, so the sum is bounded
 * by its size and a cache line for each. */
static enum status place_in_memory(struct packed *p, enum mem_pages pages,
                                   struct err *err)
{
    size_t at = 0;
    enum status st;

    for (size_t i = 0; i < gguf_n_tensors(p->g); i++) {
        p->places[i].at = at;
        if (!p->places[i].elsewhere)
            at += (size_t)residency_kept_bytes(p->g, gguf_tensor_at(p->g, i));
    }
    st = mem_alloc(&p->mem, at, pages, "weights", err);
    p->base = p->mem.base;
    return st;
}

static void place_in_image(struct packed *p)
{
    for (size_t i = 0; i < gguf_n_tensors(p->g); i++)
        p->places[i].at = (size_t)gguf_tensor_at(p->g, i)->offset;
    p->base = (unsigned char *)(uintptr_t)gguf_image(p->g);
}

enum status packed_open(struct packed **out, const struct gguf *g,
                        const struct weights_params *params, struct err *err)
{
    const size_t n = gguf_n_tensors(g);
    struct packed *p = calloc(1, sizeof *p);
    enum status st = ST_OK;

    if (p)
        p->places = calloc(n + 1, sizeof *p->places);
    if (!p || !p->places) {
        packed_close(p);
        return err_set(err, ST_NO_MEMORY, "cannot allocate the table of weights");
    }
    p->g = g;
    p->all = params->plan == NULL;
    p->drop_cached = params->drop_cached || params->plan;
    kern_select(&p->kern, params->isa_mask);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        p->places[i].elsewhere =
            params->plan && residency_of(params->plan, g, t) != RESIDENCY_KEPT;
        p->total += p->places[i].elsewhere ? 0 : (size_t)t->bytes;
    }
    if (gguf_is_mapped(g) || gguf_is_assembled(g))
        st = place_in_memory(p, params->pages, err);
    else
        place_in_image(p);
    if (st)
        packed_close(p);
    else
        *out = p;
    return st;
}

void packed_close(struct packed *p)
{
    if (!p)
        return;
    mem_free(&p->mem);
    free(p->places);
    free(p);
}

/* Tensors that lie next to each other go together, so that pages they share go, too. */
void packed_reclaim(struct packed *p, const struct residency_plan *plan)
{
    size_t begin = 0, end = 0;

    p->all = false;
    p->reclaimed = true;
    for (size_t i = 0; i < gguf_n_tensors(p->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(p->g, i);
        const size_t bytes = (size_t)residency_kept_bytes(p->g, t);

        if (p->places[i].elsewhere || residency_of(plan, p->g, t) == RESIDENCY_KEPT)
            continue;
        p->places[i].elsewhere = true;
        p->total -= (size_t)t->bytes;
        if (p->places[i].at != end) {
            weights_release(p->base + begin, end - begin);
            begin = p->places[i].at;
        }
        end = p->places[i].at + bytes;
    }
    weights_release(p->base + begin, end - begin);
}

/* ---- the tensors ----------------------------------------------------------------- */

/* The longest run of places between those that were given back. */
static const void *longest_run(const struct packed *p, size_t *bytes)
{
    size_t begin = 0, end = 0, longest = 0;

    *bytes = 0;
    for (size_t i = 0; i < gguf_n_tensors(p->g); i++) {
        if (p->places[i].elsewhere)
            continue;
        if (p->places[i].at != end)
            begin = p->places[i].at;
        end = p->places[i].at +
              (size_t)residency_kept_bytes(p->g, gguf_tensor_at(p->g, i));
        if (end - begin > *bytes) {
            *bytes = end - begin;
            longest = begin;
        }
    }
    return p->base + longest;
}

const void *packed_memory(const struct packed *p, size_t *bytes)
{
    if (p->reclaimed)
        return longest_run(p, bytes);
    *bytes = p->mem.base ? p->mem.bytes : gguf_image_bytes(p->g);
    return p->base;
}

const void *packed_data(const struct packed *p, const struct gguf_tensor *t)
{
    return p->base + packed_place(p, t)->at;
}

bool packed_ready(const struct packed *p)
{
    return p->ready;
}

uint64_t packed_bytes(const struct packed *p)
{
    return p->mem.bytes;
}

size_t packed_panel_rows(struct packed *p, const struct gguf_tensor *t)
{
    struct place *place = packed_place(p, t);

    if (!p->kern.pack[t->fmt])
        return 0;
    const size_t panel = KERN_PANEL_ROWS * kern_format_bytes(t->fmt, (size_t)t->ne[0]);

    place->panel_rows = (size_t)gguf_panel_rows(t->ne);
    if (packed_rows_to_pack(p, t) && p->buffer_bytes < packed_piece_bytes(panel))
        p->buffer_bytes = packed_piece_bytes(panel);
    return place->panel_rows;
}

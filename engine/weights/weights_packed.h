/* SPDX-License-Identifier: MIT
 *
 * weights_packed.h - places of weights in panels, for weights_packed*.c only
 *
 * weights_packed.c       lays memory out, and gives parts of it back
 * weights_packed_fill.c  fills it, from files, images and packed files
 */
#ifndef SLM_ENGINE_WEIGHTS_WEIGHTS_PACKED_H
#define SLM_ENGINE_WEIGHTS_WEIGHTS_PACKED_H

#include "engine/base/mem.h"
#include "engine/weights/weights_impl.h"

#define PACKED_PIECE ((size_t)512 << 10)

struct place {
    size_t at;         /* of the tensor in the memory */
    size_t panel_rows; /* of each slice; 0: as in the file */
    bool elsewhere;    /* streamed or on disk: it has no place here */
};

struct packed {
    const struct gguf *g;
    struct mem mem;      /* empty for an image */
    unsigned char *base; /* that offsets of places count from */
    bool drop_cached;
    bool all;             /* every tensor has a place here */
    bool reclaimed;       /* some places have been given back */
    struct place *places; /* [n_tensors] */
    size_t total;         /* bytes of all tensors with a place */
    size_t buffer_bytes;  /* largest piece of a matrix in panels */
    bool ready;
    bool half_done; /* an image whose rewriting was interrupted */
    struct kern_set kern;
};

static inline struct place *packed_place(const struct packed *p,
                                         const struct gguf_tensor *t)
{
    return &p->places[t - gguf_tensor_at(p->g, 0)];
}

/* Rows of each slice that are packed while they are loaded. */
static inline size_t packed_rows_to_pack(const struct packed *p,
                                         const struct gguf_tensor *t)
{
    return t->panel_rows ? 0 : packed_place(p, t)->panel_rows;
}

/* Bytes of a piece of a matrix in panels: whole panels, at least one. */
static inline size_t packed_piece_bytes(size_t panel)
{
    return panel < PACKED_PIECE ? PACKED_PIECE / panel * panel : panel;
}

#endif

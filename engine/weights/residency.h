/* SPDX-License-Identifier: MIT
 *
 * residency.h - which tensors stay in memory and which are read again for every pass
 *
 * A model that is larger than its memory is divided by layers:
 *   kept      packed into memory for good
 *   streamed  the tensors of n_streamed layers, spread evenly over the model; each pass
 *             reads them again from the file into a slot of memory, so that addresses
 *             never change
 *   cached    the matrices of experts: those that are used most are kept, each in a
 *             slot of its own, and the others are read when a router chooses them
 *             (expert_cache.h). A model with experts has no streamed layers unless even
 *             that does not fit
 *   on disk   left in the mapped file: the embedding table, of which a pass needs a
 *             row per token, unless it is the output matrix, too; that of per-layer
 *             embeddings; and what no pass needs
 *
 * One slot serves all streamed layers. It consists of places for three parts of a
 * layer, which a pass uses one after another: while it uses one part, the places of the
 * others are free for the next streamed layer. So nearly a layer is read ahead, and
 * reading continues from the last streamed layer to the first of the next pass.
 *
 *     a slot    | attention | gate, up      | down    |
 *     is read     layer 6     layer 6         layer 2     while the pass uses layer 2's
 *                                                         down matrix
 *
 * Extents are what is read of a part: its tensors with adjacent ones merged, extended
 * to multiples of RESIDENCY_ALIGN on both sides, as unbuffered reading needs. An extent
 * lies in its place as in the file, so that a tensor's address is congruent to its
 * offset.
 *
 * Pure computation on a file's head: nothing is read. What is planned is what
 * weights_open() allocates.
 *
 * Threading: any thread.
 */
#ifndef SLM_ENGINE_WEIGHTS_RESIDENCY_H
#define SLM_ENGINE_WEIGHTS_RESIDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"

/* Offsets, addresses and sizes of unbuffered reads: no disk has larger blocks. */
#define RESIDENCY_ALIGN ((uint64_t)4096)

/* Parts of a layer in the order in which they are read: what attention needs; all of
 * the feed-forward part but its down matrices; these. */
enum residency_part {
    RESIDENCY_ATTENTION,
    RESIDENCY_GATE_UP,
    RESIDENCY_DOWN,
    RESIDENCY_PARTS
};

/* A model of more layers is not planned; none is loaded either (loader.h). */
#define RESIDENCY_MAX_LAYERS 4096

struct residency_plan {
    int n_layers;   /* of the model */
    int n_streamed; /* 0: everything is kept */
    uint64_t
        streamed[RESIDENCY_MAX_LAYERS / 64]; /* which they are: a bit for a layer */
    int n_slots;                             /* 1; 0: everything is kept */
    uint64_t slot_bytes;                     /* all its places */
    uint64_t part_bytes[RESIDENCY_PARTS];    /* of the place of each part */
    uint64_t kept_bytes;                     /* of memory for kept tensors */
    uint64_t streamed_bytes;                 /* read from the file for each pass */
    uint64_t disk_bytes;                     /* of tensors that stay in the file */
    int n_experts;                           /* of a layer, that are cached; 0: none */
    uint64_t cache_bytes;                    /* of memory for their slots */
    uint64_t cached_bytes;                   /* of all of them in the file */
    uint64_t memory_bytes; /* kept_bytes, n_slots * slot_bytes, and cache_bytes */
};

enum residency { RESIDENCY_KEPT, RESIDENCY_STREAMED, RESIDENCY_CACHED, RESIDENCY_DISK };

/* Plan a file's tensors for a model that computes n_layers layers with as few streamed
 * layers, or as many cached experts, as memory of room_bytes allows. Errors:
 * ST_NO_MEMORY (they do not fit with all layers streamed; the message says what is
 * needed), ST_USAGE (g is no plain file: its
 * weights are made while they are read). */
enum status residency_plan_make(struct residency_plan *plan, const struct gguf *g,
                                int n_layers, uint64_t room_bytes, struct err *err);

/* Make n of the plan's layers the streamed ones, spread evenly; its sizes are not
 * computed. 0 <= n <= n_layers. */
void residency_stream_evenly(struct residency_plan *plan, int n);

/* Plan for less memory what is in memory by *plan: more layers are streamed, of those
 * that are farthest from streamed ones, or fewer experts cached; nothing is kept that
 * was not. *plan may also be one by which everything but embeddings is kept. Errors:
 * ST_NO_MEMORY (not even with all layers streamed), and those above; *plan is as
 * before.
 */
enum status residency_plan_reclaim(struct residency_plan *plan, const struct gguf *g,
                                   uint64_t room_bytes, struct err *err);

struct residency_bounds {
    uint64_t min_bytes;  /* the least memory of any plan */
    uint64_t kept_bytes; /* memory of the plan that streams nothing */
    uint64_t disk_bytes; /* of tensors that it leaves in the file */
};

/* Errors: ST_USAGE (as above), ST_NO_MEMORY. */
enum status residency_bounds_find(struct residency_bounds *bounds, const struct gguf *g,
                                  int n_layers, struct err *err);

/* The layer of a tensor, from its name "blk.<layer>.*"; -1: none. And the part of the
 * layer. */
int residency_layer(const char *tensor_name);
enum residency_part residency_part(const char *tensor_name);

/* Which number a layer has among the streamed ones; -1: it is not streamed. And the
 * layer with that number, 0 <= i < n_streamed. */
int residency_streamed_index(const struct residency_plan *plan, int layer);
int residency_streamed_layer(const struct residency_plan *plan, int i);

enum residency residency_of(const struct residency_plan *plan, const struct gguf *g,
                            const struct gguf_tensor *t);

/* Whether a tensor is a table of per-layer embeddings: as large as all matrices, and a
 * token needs one row. */
bool residency_is_rows(const struct gguf_tensor *t);

/* Whether a tensor of one of the layers has matrices of experts, one a slice. */
bool residency_is_experts(const struct gguf_tensor *t, int n_layers);

/* Bytes of a slice, and of the memory for one that is read in whole blocks. */
uint64_t residency_slice_bytes(const struct gguf_tensor *t);
uint64_t residency_slice_room(const struct gguf_tensor *t);

/* Bytes of memory that a kept tensor of g takes: a multiple of a cache line. */
uint64_t residency_kept_bytes(const struct gguf *g, const struct gguf_tensor *t);

struct residency_extent {
    uint64_t begin, end; /* in the file; multiples of RESIDENCY_ALIGN, of which the last
                            may be beyond the file's end */
    uint64_t at;         /* in the part's place */
};

/* The extents of all parts of all layers, each part's in ascending order. Part p of
 * layer i has number i * RESIDENCY_PARTS + p. */
struct residency_map {
    int n_layers;
    struct residency_extent *extents;
    size_t *first; /* [n_parts + 1]: part k has extents first[k] .. first[k + 1] - 1 */
    uint64_t *bytes; /* [n_parts] of a part's extents */
};

/* Release with residency_map_free(). Error: ST_NO_MEMORY. */
enum status residency_map_make(struct residency_map *map, const struct gguf *g,
                               int n_layers, struct err *err);
void residency_map_free(struct residency_map *map);

/* Offset of a part's place in the slot, and of a streamed tensor. */
uint64_t residency_place(const struct residency_plan *plan, enum residency_part part);
uint64_t residency_slot_offset(const struct residency_plan *plan,
                               const struct residency_map *map,
                               const struct gguf_tensor *t);

#endif

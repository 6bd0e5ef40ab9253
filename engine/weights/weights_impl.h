/* SPDX-License-Identifier: MIT
 *
 * weights_impl.h - the interface of a residency policy, for weights*.c only
 */
#ifndef SLM_ENGINE_WEIGHTS_WEIGHTS_IMPL_H
#define SLM_ENGINE_WEIGHTS_WEIGHTS_IMPL_H

#include "engine/weights/weights.h"

struct packed;  /* weights_packed.c */
struct stream;  /* weights_stream.c */
struct experts; /* weights_experts.c */

struct weights {
    const struct gguf *g;
    const struct weights_policy *policy;
    size_t begin, end;          /* of the tensor data, offsets in the image */
    struct packed *packed;      /* NULL: weights are in the layout of the gguf */
    struct stream *stream;      /* NULL: no layer is streamed */
    struct experts *experts;    /* NULL: none are cached */
    struct residency_plan plan; /* WEIGHTS_STREAM */
    enum mem_pages pages;       /* of memory for slots */
    struct stream_ring *ring;   /* as opened */
    uint32_t isa_mask;          /* as opened */
    struct slm_stream before;   /* what had been read when memory was last reclaimed */
    struct err broken;          /* reclaiming has failed half-way */
};

struct weights_policy {
    enum status (*preload)(struct weights *w, struct thread_pool *pool,
                           int (*progress)(void *arg, size_t done, size_t total),
                           void *arg, struct err *err);
};

extern const struct weights_policy weights_policy_mmap;

/* weights_mmap.c: the longest stretch of the file without tables of which tokens need a
 * row. */
const void *mmap_longest_run(const struct weights *w, size_t *bytes);

extern const struct weights_policy weights_policy_packed;
extern const struct weights_policy weights_policy_stream;

/* ---- weights_packed.c: weights in panels, in own memory or in the image ---------- */

enum status packed_open(struct packed **p, const struct gguf *g,
                        const struct weights_params *params, struct err *err);
void packed_close(struct packed *p); /* NULL is fine */
const void *packed_memory(const struct packed *p, size_t *bytes);
const void *packed_data(const struct packed *p, const struct gguf_tensor *t);
size_t packed_panel_rows(struct packed *p, const struct gguf_tensor *t);
bool packed_ready(const struct packed *p);
uint64_t packed_bytes(const struct packed *p); /* of the memory of all tensors */

/* From now on tensors that plan does not keep have no place; their pages go back. */
void packed_reclaim(struct packed *p, const struct residency_plan *plan);

/* Give the whole pages of memory back to the system. */
void weights_release(void *at, size_t bytes);

/* ---- weights_stream.c: layers in a slot ------------------------------------------ */

/* plan, which must outlive it, has streamed layers. Errors: ST_IO, ST_NO_MEMORY. */
enum status stream_open(struct stream **s, const struct gguf *g,
                        const struct residency_plan *plan, enum mem_pages pages,
                        struct stream_ring *ring, struct err *err);
void stream_start(struct stream *s);
void stream_advise_lookups(const struct weights *w); /* of tensors left in the file */
void stream_close(struct stream *s);                 /* NULL is fine */

/* Data of a tensor in a streamed layer. */
const void *stream_data(const struct stream *s, const struct gguf_tensor *t);
void stream_wait(struct stream *s, int layer, enum residency_part part, int thread);
void stream_done(struct stream *s, int layer, enum residency_part part);
enum status stream_check(const struct stream *s, struct err *err);
void stream_stats(const struct stream *s, struct slm_stream *out);

/* ---- weights_experts.c: experts in slots as they are used ------------------------ */

/* plan, which must outlive it, has cached experts. Errors: ST_IO, ST_NO_MEMORY,
 * ST_UNSUPPORTED (tensors that differ from layer to layer). */
enum status experts_open(struct experts **x, const struct gguf *g,
                         const struct residency_plan *plan, enum mem_pages pages,
                         struct stream_ring *ring, struct err *err);
void experts_start(struct experts *x);
void experts_close(struct experts *x); /* NULL is fine */

/* Have no more slots than a cache of cache_bytes; no pass is under way. */
void experts_reclaim(struct experts *x, uint64_t cache_bytes);

/* As weights_slices() .. weights_wait_expert(); the layer is done. */
const void *const *experts_slices(const struct experts *x, const struct gguf_tensor *t);
void experts_begin(struct experts *x, int n_tokens);
void experts_take(struct experts *x, int layer, const int *experts, const int *n_uses,
                  int n, int *order);
void experts_wait(struct experts *x, int layer, int expert, int thread);
void experts_done(struct experts *x, int layer);
enum status experts_check(const struct experts *x, struct err *err);
void experts_stats(const struct experts *x, struct slm_stream *out);

/* Fill the slots. done, total: bytes, of the whole loading. Errors: ST_IO,
 * ST_INTERRUPTED. */
enum status experts_preload(struct experts *x, size_t done, size_t total,
                            int (*progress)(void *arg, size_t done, size_t total),
                            void *arg, struct err *err);

#endif

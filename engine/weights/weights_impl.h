/* SPDX-License-Identifier: MIT
 *
 * weights_impl.h - the interface of a residency policy, for weights*.c only
 */
#ifndef SLM_ENGINE_WEIGHTS_WEIGHTS_IMPL_H
#define SLM_ENGINE_WEIGHTS_WEIGHTS_IMPL_H

#include "engine/weights/weights.h"

struct packed; /* weights_packed.c */
struct stream; /* weights_stream.c */

struct weights {
    const struct gguf *g;
    const struct weights_policy *policy;
    size_t begin, end;          /* of the tensor data, offsets in the image */
    struct packed *packed;      /* NULL: weights are in the layout of the gguf */
    struct stream *stream;      /* NULL: no layer is streamed */
    struct residency_plan plan; /* WEIGHTS_STREAM */
};

struct weights_policy {
    enum status (*preload)(struct weights *w, struct thread_pool *pool,
                           int (*progress)(void *arg, size_t done, size_t total),
                           void *arg, struct err *err);
};

extern const struct weights_policy weights_policy_mmap;
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

/* ---- weights_stream.c: layers in a slot --------------------------------------------
 */

/* plan, which must outlive it, has streamed layers. Errors: ST_IO, ST_NO_MEMORY. */
enum status stream_open(struct stream **s, const struct gguf *g,
                        const struct residency_plan *plan, enum mem_pages pages,
                        struct err *err);
void stream_close(struct stream *s); /* NULL is fine */

/* Of a tensor in a streamed layer. */
const void *stream_data(const struct stream *s, const struct gguf_tensor *t);
void stream_wait(struct stream *s, int layer, enum residency_part part, int thread);
void stream_done(struct stream *s, int layer, enum residency_part part);
enum status stream_check(const struct stream *s, struct err *err);
void stream_stats(const struct stream *s, struct slm_stream *out);

#endif

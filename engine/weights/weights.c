/* SPDX-License-Identifier: MIT
 *
 * weights.c - one interface over the residency policies, and that of memory
 */
#include "engine/weights/weights_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/gguf/gguf_panels.h"

static const char *const names[] = {
    [WEIGHTS_AUTO] = "auto",     [WEIGHTS_MMAP] = "mmap",
    [WEIGHTS_PACKED] = "packed", [WEIGHTS_STREAM] = "stream",
    [WEIGHTS_MEMORY] = "memory",
};

/* Weights in memory: the caller wrote the image, so its pages are there. */
static enum status preload_memory(struct weights *w, struct thread_pool *pool,
                                  int (*progress)(void *arg, size_t done, size_t total),
                                  void *arg, struct err *err)
{
    (void)pool;
    if (progress && progress(arg, weights_bytes(w), weights_bytes(w)))
        return err_set(err, ST_INTERRUPTED, "interrupted");
    return ST_OK;
}

static const struct weights_policy policy_memory = {.preload = preload_memory};

static const struct weights_policy *choose_policy(const struct weights_params *params)
{
    assert(params->residency != WEIGHTS_AUTO);
    if (params->residency == WEIGHTS_MMAP)
        return &weights_policy_mmap;
    if (params->residency == WEIGHTS_STREAM)
        return &weights_policy_stream;
    return params->residency == WEIGHTS_PACKED || params->rewrite
               ? &weights_policy_packed
               : &policy_memory;
}

/* Where weights are read as the file has them, products need kernels for its panels. */
static enum status check_panels(const struct gguf *g, uint32_t isa_mask,
                                struct err *err)
{
    struct kern_set kern;

    if (!gguf_is_packed(g))
        return ST_OK;
    kern_select(&kern, isa_mask);
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (t->panel_rows && !kern.gemv_x16[t->fmt])
            return err_set(err, ST_UNSUPPORTED,
                           "%s is a packed file, and there are no kernels for its "
                           "panels of %s at the ISA levels in use; use residency "
                           "'packed', or the model that it was made from",
                           gguf_path(g), kern_format_info(t->fmt)->name);
    }
    return ST_OK;
}

enum status weights_open(struct weights **out, const struct gguf *g,
                         const struct weights_params *params, struct err *err)
{
    const struct weights_policy *policy = choose_policy(params);
    const bool wants_file = params->residency != WEIGHTS_MEMORY;
    enum status st = ST_OK;

    if (gguf_is_assembled(g) && params->residency != WEIGHTS_PACKED)
        return err_set(
            err, ST_USAGE,
            "the weights of %s are made while they are read, so they cannot be %s; "
            "use residency 'packed', or make a file of them first, with `bench pack`",
            gguf_path(g), params->residency == WEIGHTS_STREAM ? "streamed" : "mapped");
    if (!gguf_is_assembled(g) && wants_file != gguf_is_mapped(g))
        return err_set(err, ST_USAGE, "%s is %s; residency '%s' needs the opposite",
                       gguf_path(g), gguf_is_mapped(g) ? "a mapped file" : "in memory",
                       names[params->residency]);
    if (params->residency != WEIGHTS_PACKED)
        st = check_panels(g, params->isa_mask, err);
    if (st)
        return st;

    struct weights *w = calloc(1, sizeof *w);

    if (!w)
        return err_set(err, ST_NO_MEMORY, "cannot allocate the table of weights");
    w->g = g;
    w->policy = policy;
    w->pages = params->pages;
    w->ring = params->ring;
    w->isa_mask = params->isa_mask;
    w->begin = w->end = (size_t)gguf_data_offset(g);
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (t->offset + t->bytes > w->end)
            w->end = (size_t)(t->offset + t->bytes);
    }
    if (params->residency == WEIGHTS_STREAM)
        w->plan = *params->plan;
    if (policy != &policy_memory && policy != &weights_policy_mmap)
        st = packed_open(&w->packed, g, params, err);
    if (!st && w->plan.n_streamed)
        st = stream_open(&w->stream, g, &w->plan, w->pages, w->ring, err);
    if (!st && w->plan.n_experts)
        st = experts_open(&w->experts, g, &w->plan, w->pages, w->ring, err);
    if (st)
        weights_close(w);
    else
        *out = w;
    return st;
}

void weights_close(struct weights *w)
{
    if (!w)
        return;
    stream_close(w->stream);
    experts_close(w->experts);
    packed_close(w->packed);
    free(w);
}

size_t weights_bytes(const struct weights *w)
{
    return w->end - w->begin;
}

const void *weights_memory(const struct weights *w, size_t *bytes)
{
    if (w->packed)
        return packed_memory(w->packed, bytes);
    if (w->policy == &weights_policy_mmap)
        return mmap_longest_run(w, bytes);
    *bytes = gguf_image_bytes(w->g);
    return gguf_image(w->g);
}

static enum residency residency_in(const struct weights *w, const struct gguf_tensor *t)
{
    if (w->policy == &weights_policy_stream)
        return residency_of(&w->plan, w->g, t);
    return w->packed ? RESIDENCY_KEPT : RESIDENCY_DISK;
}

const void *weights_data(const struct weights *w, const struct gguf_tensor *t)
{
    switch (residency_in(w, t)) {
    case RESIDENCY_KEPT:
        return packed_data(w->packed, t);
    case RESIDENCY_STREAMED:
        return stream_data(w->stream, t);
    case RESIDENCY_CACHED:
        return NULL;
    case RESIDENCY_DISK:
        break;
    }
    return gguf_tensor_data(w->g, t);
}

bool weights_is_mapped(const struct weights *w, const struct gguf_tensor *t)
{
    return gguf_is_mapped(w->g) && residency_in(w, t) == RESIDENCY_DISK;
}

void weights_read_ahead(const void *at, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)at / page * page;

    (void)madvise((void *)begin, (uintptr_t)at + bytes - begin, MADV_WILLNEED);
}

size_t weights_panel_rows(struct weights *w, const struct gguf_tensor *t)
{
    return residency_in(w, t) == RESIDENCY_KEPT ? packed_panel_rows(w->packed, t)
                                                : (size_t)t->panel_rows;
}

void weights_wait(struct weights *w, int layer, enum residency_part part, int thread)
{
    if (w->stream)
        stream_wait(w->stream, layer, part, thread);
}

void weights_done(struct weights *w, int layer, enum residency_part part)
{
    if (w->stream)
        stream_done(w->stream, layer, part);
    if (w->experts && part == RESIDENCY_DOWN)
        experts_done(w->experts, layer);
}

const void *const *weights_slices(const struct weights *w, const struct gguf_tensor *t)
{
    return residency_in(w, t) == RESIDENCY_CACHED ? experts_slices(w->experts, t)
                                                  : NULL;
}

void weights_begin(struct weights *w, int n_tokens)
{
    if (w->experts)
        experts_begin(w->experts, n_tokens);
}

void weights_take_experts(struct weights *w, int layer, const int *experts,
                          const int *n_uses, int n, int *order)
{
    experts_take(w->experts, layer, experts, n_uses, n, order);
}

void weights_wait_expert(struct weights *w, int layer, int expert, int thread)
{
    experts_wait(w->experts, layer, expert, thread);
}

enum status weights_check(const struct weights *w, struct err *err)
{
    if (w->broken.code)
        return err_set(err, w->broken.code, "%s", w->broken.msg);
    if (w->experts)
        return experts_check(w->experts, err);
    return w->stream ? stream_check(w->stream, err) : ST_OK;
}

bool weights_stream_read(const struct weights *w, struct slm_stream *out)
{
    if (w->experts)
        experts_stats(w->experts, out);
    else if (w->stream)
        stream_stats(w->stream, out);
    else
        return false;
    out->bytes_read += w->before.bytes_read;
    out->n_reads += w->before.n_reads;
    out->wait_ns += w->before.wait_ns;
    return true;
}

/* ---- giving memory back ---------------------------------------------------------- */

void weights_release(void *at, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)at + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)at + bytes) / page * page;

    if (begin >= end)
        return;
    /* Or the kernel makes a huge page of what is left around it, and fills the gap. */
    (void)madvise((void *)begin, end - begin, MADV_NOHUGEPAGE);
    (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Streaming begins again, after what is not kept any more has gone. */
static enum status stream_more(struct weights *w, const struct residency_plan *plan,
                               struct err *err)
{
    enum status st = ST_OK;

    (void)weights_stream_read(w, &w->before);
    stream_close(w->stream);
    w->stream = NULL;
    w->policy = &weights_policy_stream;
    w->plan = *plan;
    packed_reclaim(w->packed, &w->plan);
    stream_advise_lookups(w);
    if (w->plan.n_streamed)
        st = stream_open(&w->stream, w->g, &w->plan, w->pages, w->ring, err);
    if (!st && w->stream)
        stream_start(w->stream);
    if (!st && w->plan.n_experts)
        st = experts_open(&w->experts, w->g, &w->plan, w->pages, w->ring, err);
    if (!st && w->experts)
        experts_start(w->experts);
    if (st)
        weights_break(w, err);
    return st;
}

enum status weights_reclaim(struct weights *w, int n_layers, uint64_t bytes,
                            uint64_t *freed, struct err *err)
{
    struct residency_plan plan = w->plan;
    const bool was_packed = w->policy == &weights_policy_packed;
    uint64_t before;
    enum status st = weights_check(w, err);

    if (st)
        return st;
    if (!gguf_is_mapped(w->g) || !w->packed || !packed_ready(w->packed))
        return err_set(err, ST_USAGE,
                       "the weights of %s are not in memory of their own that could be "
                       "given back and read again",
                       gguf_path(w->g));
    if (was_packed)
        plan = (struct residency_plan){.n_layers = n_layers};
    before = was_packed ? packed_bytes(w->packed) : plan.memory_bytes;
    st = residency_plan_reclaim(&plan, w->g, before > bytes ? before - bytes : 0, err);
    if (!st)
        st = check_panels(w->g, w->isa_mask, err);
    if (st)
        return st;
    *freed = before - plan.memory_bytes;
    if (!w->experts)
        return stream_more(w, &plan, err);
    experts_reclaim(w->experts, plan.cache_bytes);
    w->plan = plan;
    return ST_OK;
}

const struct residency_plan *weights_plan(const struct weights *w)
{
    return &w->plan;
}

void weights_break(struct weights *w, const struct err *why)
{
    w->broken = *why;
}

bool weights_ready(const struct weights *w)
{
    return !w->packed || packed_ready(w->packed);
}

enum status weights_preload(struct weights *w, struct thread_pool *pool,
                            int (*progress)(void *arg, size_t done, size_t total),
                            void *arg, struct err *err)
{
    return w->policy->preload(w, pool, progress, arg, err);
}

const char *weights_residency_name(enum weights_residency residency)
{
    return names[residency];
}

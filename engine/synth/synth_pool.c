/* SPDX-License-Identifier: MIT
 *
 * synth_pool.c - random weights, quantised once, and the image that consists of them;
 * routers with favourites are drawn weight by weight
 *
 * Everything here is integer arithmetic, exactly rounded float operations and
 * the scalar reference quantisers, so equal seeds give equal bytes everywhere.
 */
#include "engine/hf/rope_llama3.h"
#include "engine/synth/synth_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/mem.h"
#include "engine/base/random.h"

struct synth_stream {
    const struct synth_plan *plan;
    struct mem mem;                  /* all pools, one after another */
    uint8_t *pools[SYNTH_MAX_POOLS]; /* into mem */
    uint64_t pos;                    /* of the next byte in the image */
    size_t tensor;                   /* index of the tensor at or after the next byte */
    uint64_t random;                 /* state of the generator */
    const uint8_t *unit;             /* what is left of the unit being copied */
    size_t unit_left;
    uint64_t n_units; /* of the tensor, begun */
    struct synth_router router;
    float drawn[SYNTH_UNIT_ELEMS]; /* a unit of a router */
};

/* A generator state for every (seed, what). */
static uint64_t random_stream(uint64_t seed, uint64_t what)
{
    uint64_t state = seed;
    const uint64_t mixed = random_bits(&state) ^ what;

    state = mixed;
    return random_bits(&state);
}

/* Normal to a good approximation: the sum of twelve numbers uniform in [0, 1)
 * has variance 1. In 16-bit integers, so the sum is exact in a float. */
static float next_gauss(uint64_t *state)
{
    int sum = 0;

    for (int i = 0; i < 3; i++) {
        const uint64_t r = random_bits(state);

        sum += (int)(r & 0xffff) + (int)(r >> 16 & 0xffff) + (int)(r >> 32 & 0xffff) +
               (int)(r >> 48);
    }
    return (float)(sum - 6 * 65535) * 0x1p-16f;
}

/* Frequency factors of the pairs that turn, or those of Llama 3.1, rounded to 1/4096,
 * so that they do not depend on the last bit of the C library's pow(). */
static void rope_freqs(float *out, const struct synth_shape *shape)
{
    const double context = 8192, pi = 3.14159265358979323846;
    const uint32_t n_turning = shape->n_rope_turning;

    for (uint32_t i = 0; n_turning && i < shape->head_dim / 2; i++)
        out[i] = i < n_turning ? 1.0F : 1e30F;
    if (n_turning)
        return;
    for (uint32_t i = 0; i < shape->head_dim / 2; i++) {
        const double wave = 2 * pi * pow(shape->rope_base, 2.0 * i / shape->head_dim);
        const double factor = rope_llama3_factor(context / wave, 1, 4, 8);

        out[i] = (float)(floor(factor * 4096 + 0.5) / 4096);
    }
}

static void fill_pool(const struct synth_plan *plan, int index, uint8_t *dst)
{
    const struct synth_pool_spec *spec = &plan->pools[index];
    const struct kern_row *quantize =
        kern_best(KERN_OP_quantize, (int)spec->fmt, 1u << KERN_ISA_scalar);
    uint64_t random = random_stream(plan->seed, (uint64_t)index << 32);
    float src[SYNTH_UNIT_ELEMS];

    if (spec->content == SYNTH_ROPE_FREQS) {
        rope_freqs((float *)(void *)dst, &plan->shape);
        return;
    }
    for (uint32_t u = 0; u < spec->n_units; u++, dst += spec->unit_bytes) {
        for (int i = 0; i < SYNTH_UNIT_ELEMS; i++) {
            const float scaled = spec->sigma * next_gauss(&random);

            src[i] = spec->mean + scaled;
        }
        quantize->fn.quantize(src, NULL, dst, SYNTH_UNIT_ELEMS);
    }
}

enum status synth_stream_open(struct synth_stream **s, const struct synth_plan *plan,
                              struct err *err)
{
    struct synth_stream *n = calloc(1, sizeof *n);
    size_t bytes = 0;

    if (!n)
        return err_set(err, ST_NO_MEMORY, "no memory for making a synthetic model");
    for (int i = 0; i < plan->n_pools; i++)
        bytes += (size_t)plan->pools[i].n_units * plan->pools[i].unit_bytes + 64;
    if (mem_alloc(&n->mem, bytes, MEM_PAGES_4K, "random weights", err)) {
        free(n);
        return ST_NO_MEMORY;
    }
    n->plan = plan;
    uint8_t *p = n->mem.base;
    for (int i = 0; i < plan->n_pools; i++) {
        const size_t size = (size_t)plan->pools[i].n_units * plan->pools[i].unit_bytes;

        n->pools[i] = p;
        fill_pool(plan, i, p);
        p += (size + 63) / 64 * 64;
    }
    *s = n;
    return ST_OK;
}

void synth_stream_close(struct synth_stream *s)
{
    if (s) {
        mem_free(&s->mem);
        free(s);
    }
}

static void begin_tensor(struct synth_stream *s, const struct synth_tensor *t)
{
    s->random = random_stream(s->plan->seed, s->tensor + 1);
    s->unit_left = 0;
    s->n_units = 0;
    if (t->layout == SYNTH_ROUTER)
        synth_router_open(&s->router, &s->plan->shape, t->layer,
                          random_stream(s->plan->seed, ~s->tensor));
}

/* The next unit of a router, whose rows are whole units of floats. */
static void draw_unit(struct synth_stream *s, const struct synth_tensor *t)
{
    const uint64_t row = s->n_units / (t->ne[0] / SYNTH_UNIT_ELEMS);
    const enum synth_part part = synth_part_of(t, s->n_units);
    const float sigma = part == SYNTH_PART_CONTEXT ? s->router.context : s->router.rest;

    for (int i = 0; i < SYNTH_UNIT_ELEMS; i++)
        s->drawn[i] = part == SYNTH_PART_BIAS ? s->router.bias[row]
                                              : sigma * next_gauss(&s->random);
    s->unit = (const uint8_t *)s->drawn;
    s->unit_left = sizeof s->drawn;
}

static void pick_unit(struct synth_stream *s, const struct synth_tensor *t)
{
    const int pool = t->pool[synth_part_of(t, s->n_units)];
    const struct synth_pool_spec *spec = &s->plan->pools[pool];
    const uint64_t pick = random_bits(&s->random) & (spec->n_units - 1);

    s->unit = s->pools[pool] + pick * spec->unit_bytes;
    s->unit_left = spec->unit_bytes;
}

/* The next n bytes of tensor t's data, after those of the last call. */
static void copy_units(struct synth_stream *s, const struct synth_tensor *t,
                       uint8_t *dst, size_t n)
{
    while (n > 0) {
        if (s->unit_left == 0) {
            if (t->layout == SYNTH_ROUTER)
                draw_unit(s, t);
            else
                pick_unit(s, t);
            s->n_units++;
        }
        const size_t m = s->unit_left < n ? s->unit_left : n;
        memcpy(dst, s->unit, m);
        s->unit += m;
        s->unit_left -= m;
        dst += m;
        n -= m;
    }
}

static size_t min_size(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

void synth_stream_read(struct synth_stream *s, void *dst, size_t n)
{
    const struct synth_plan *plan = s->plan;
    uint8_t *out = dst;

    while (n > 0) {
        const struct synth_tensor *t = &plan->tensors[s->tensor];
        const uint64_t begin = s->tensor < plan->n_tensors ? plan->header.n + t->offset
                                                           : synth_plan_bytes(plan);
        size_t m;

        if (s->pos < plan->header.n) {
            m = min_size(plan->header.n - s->pos, n);
            memcpy(out, plan->header.data + s->pos, m);
        } else if (s->pos < begin) {
            m = min_size(begin - s->pos, n);
            memset(out, 0, m);
        } else if (s->tensor == plan->n_tensors) {
            return; /* n exceeds the rest of the image */
        } else {
            if (s->pos == begin)
                begin_tensor(s, t);
            m = min_size(begin + t->bytes - s->pos, n);
            copy_units(s, t, out, m);
            if (s->pos + m == begin + t->bytes)
                s->tensor++;
        }
        out += m;
        s->pos += m;
        n -= m;
    }
}

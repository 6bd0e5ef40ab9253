/* SPDX-License-Identifier: MIT
 *
 * profile.h - what can be observed of a pass: its time by operation, the inputs of its
 * matrix products
 *
 * With a profile each thread of the pool reads the clock at every change of operation,
 * so that its work and waiting times add up to the pass, to the nanosecond. Weights of
 * one operation may differ in format from layer to layer; each format has its own row.
 *
 * Threading: as slm_eval(); the activation hook is called by the threads of the pool.
 */
#ifndef SLM_ENGINE_FORWARD_PROFILE_H
#define SLM_ENGINE_FORWARD_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum slm_op {
    SLM_OP_EMBED,     /* embedding rows, rotations */
    SLM_OP_READ,      /* waiting for a streamed layer to be read */
    SLM_OP_PREPARE,   /* norms, activations brought into the kernels' layouts */
    SLM_OP_QKV,       /* queries, keys, values */
    SLM_OP_ATTENTION, /* keys and values into the cache, scores, mixing */
    SLM_OP_ATTN_OUT,  /* attention's output matrix, residual */
    SLM_OP_ROUTER,    /* choice of experts */
    SLM_OP_GATE_UP,   /* gate and up matrices, activation function */
    SLM_OP_DOWN,      /* down matrix, residual */
    SLM_OP_OUTPUT,    /* logits */
    SLM_N_OPS
};

struct slm_profile_row {
    enum slm_op op;
    enum kern_format fmt; /* of the weights; KERN_N_FMT: no weights */
    /* Per thread that ran the last pass, on average, over all passes. The rows' sum of
     * both is the time of the passes. */
    double work_ns;
    double wait_ns; /* at the barrier that ends the operation */
    /* Of all threads together. */
    uint64_t bytes; /* of weights and KV cache, each counted once per reading */
    uint64_t macs;  /* multiply-adds of products and attention */
};

/* The most rows. */
#define SLM_PROFILE_ROWS ((size_t)SLM_N_OPS * (KERN_N_FMT + 1))

struct slm_profile {
    size_t n_passes;
    size_t n_rows;
    struct slm_profile_row rows[SLM_PROFILE_ROWS]; /* in the order of a pass */
};

const char *slm_op_name(enum slm_op op); /* "gate, up" */

/* Called before x[n] is multiplied with a slice (0 .. n_slices - 1; one per expert) of
 * the matrix called name, by several threads at the same time. Matrices that a file
 * fuses have one call for each part, with equal inputs. */
typedef void slm_activation_hook_fn(void *arg, const char *name, size_t n_slices,
                                    size_t slice, const float *x, size_t n);

#endif

/* SPDX-License-Identifier: MIT
 *
 * measured.h - a model that is opened to be timed, and the one loop that times it
 *
 * Model of the world: every figure about a model's speed - of a point, of a gate - is
 * made of samples that measured_samples() takes. A *step* defines one sample; what
 * is done with the sample, how many there are and what happens between two of them is
 * the caller's business.
 *
 * Inside the two readings of the clock is what the step names and nothing else: tokens
 * are drawn before (those of later batches of a prompt between two passes), going back
 * and filling the context is done outside.
 *
 * Threading: one thread, the one that opened it; the model's threads work inside calls.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_MEASURED_H
#define SLM_HARNESS_MEASURE_WORKER_MEASURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/mem.h"
#include "engine/base/status.h"
#include "engine/engine.h"
#include "harness/rows/settings/model_setup.h"

/* Bytes or tokens, done of total; non-zero: stop (ST_INTERRUPTED). */
typedef int measured_progress_fn(void *arg, uint64_t done, uint64_t total);

struct measured {
    struct slm *m;    /* NULL: not open */
    bool borrowed;    /* m is somebody else's */
    struct mem image; /* of a model in memory */
    int32_t *tokens;  /* [as opened], of a pass */
    int batch;        /* tokens of a pass, as tuned */
    uint64_t seed;    /* of the tokens that are drawn */
    uint64_t random;  /* state of the generator that draws tokens */
    double slower;    /* samples are stretched so that this share of speed is lost */
    const void *last; /* step that was taken last */
    int n_chunk; /* tokens of a prompt in addition to the decoded ones; 0: none. The
                    model's last sequence reads it */
    int n_chunk_prompt; /* of such a prompt, a multiple; then the next one begins */
    bool takes_plain;   /* a step without a chunk is taken before each sample */
    uint64_t plain_ns;  /* of the last one */
    measured_progress_fn *progress; /* of loading and of filling; may be NULL */
    void (*alive)(void *arg); /* between the passes of a long sample; may be NULL */
    void *arg;                /* of both */
};

/* ---- opening (measured_open.c) --------------------------------------------------- */

/* Closed, drawing tokens from seed. */
void measured_init(struct measured *m, uint64_t seed);

/* Opens the setup's model as params have it (model_setup_params()); weights are not
 * read yet, but for WEIGHTS_MEMORY made, with the setup's seed. One that was open is
 * closed first. Errors: those of slm_open(), synth_plan_make() and mem_alloc().
 */
enum status measured_open(struct measured *m, const struct model_setup *setup,
                          const struct slm_params *params, struct err *err);

/* Time a model that somebody else has opened; its positions are left as they were.
 * Error: ST_NO_MEMORY. */
enum status measured_borrow(struct measured *m, struct slm *model, uint64_t seed,
                            struct err *err);

/* Reads at most max_bytes of the weights. A mapped model that memory does not hold
 * is read in part: each further page would evict another one. Errors:
 * those of weights_preload().
 */
enum status measured_preload(struct measured *m, uint64_t max_bytes, struct err *err);

/* Positions of all sequences up to depth: computed from drawn tokens, or synthetic (of
 * seed); the first `shared` of all are those of the first sequence. Errors: those
 * of slm_eval() and slm_fill_synthetic(). */
enum status measured_fill(struct measured *m, int depth, int shared, bool computed,
                          uint64_t seed, struct err *err);

/* Closes the model, unless it was borrowed, and frees an image in memory. */
void measured_close(struct measured *m);

/* Whether weights, KV cache and scratch memory fit into room_bytes. */
bool measured_fits(const struct measured *m, uint64_t room_bytes);

/* The highest of the levels `usable` that multiplies weights: "avx512vnni". AMX-INT8
 * counts where it does so for a whole batch (slm_takes_tiles()), AMX-BF16 never. */
const char *measured_isa(uint32_t usable, bool takes_tiles);

/* ---- timing (measured_samples.c) ------------------------------------------------- */

enum measured_kind {
    MEASURED_DECODE,  /* one token of each sequence, and a chunk of a prompt */
    MEASURED_PREFILL, /* a prompt */
    MEASURED_CALL     /* what a function does */
};

/* No uncounted token is decoded before samples of this length or more: waking the
 * threads takes little time compared with them. */
#define MEASURED_LONG_NS 50000000u

#define MEASURED_REMEMBERED 15 /* samples that give the usual time */

/* What a MEASURED_CALL does. *ns is 0 before; a function that sets it has samples of
 * its own, whose sum it is. */
typedef enum status measured_call_fn(void *arg, uint64_t *ns, struct err *err);

struct measured_step {
    enum measured_kind kind;
    int depth;    /* positions before a sample */
    int n_tokens; /* MEASURED_PREFILL: tokens of the prompt */
    bool again;   /* the same tokens after every start, or else new ones */
    /* After every start an uncounted token is decoded, while samples are short: it
     * wakes the threads, and does the work that going back has deferred. Without it
     * every sample leaves the positions as they were. */
    bool wakes;
    int span; /* with wakes: positions that a decode continues for before it starts
                 again from its depth */
    measured_call_fn *call; /* MEASURED_CALL */
    void *call_arg;

    /* inside */
    uint64_t last_ns;                  /* of the last sample, stretched */
    double usual[MEASURED_REMEMBERED]; /* ns of the last ones, not stretched */
    size_t n_usual;
};

/* One sample: false ends the loop. */
typedef bool measured_sample_fn(void *arg, uint64_t ns);

/* The loop: n samples of a step at most, each handed to fn before the next begins.
 * Errors: those of slm_eval() and of the step's function. */
enum status measured_samples(struct measured *m, struct measured_step *step, size_t n,
                             measured_sample_fn *fn, void *arg, struct err *err);

/* A single one. */
enum status measured_sample(struct measured *m, struct measured_step *step,
                            uint64_t *ns, struct err *err);

/* Decodes one uncounted token and goes back: it touches pages first, and wakes threads
 * and clocks. *ns (may be NULL): its time. */
enum status measured_wake(struct measured *m, uint64_t *ns, struct err *err);

#endif

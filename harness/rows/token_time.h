/* SPDX-License-Identifier: MIT
 *
 * token_time.h - the time of one decoded token, from what it reads and from the roofs
 *
 * Model of the world: threads multiply with weights and KV cache from memory, at a
 * share of the read bandwidth (the roof of memory). What a layer does between its
 * products reads nothing that counts and takes its own time: norms, activations brought
 * into the kernels' layouts, attention to few positions, threads that meet, and the
 * first panels of each product, which no prefetch came before. A small model has nearly
 * as many layers as a large one, so this is a larger share of its tokens. At the same
 * time a thread reads the weights that are not kept in memory from disk, at the roof of
 * the disk, one layer after another. Both continue at once, also from one token to the
 * next, but nearly a layer is read ahead and no more: reading a streamed layer overlaps
 * with computing those since the last streamed one, but not all of it: what is read
 * goes through memory, and requests take time of the CPUs that compute. So a token
 * takes, for each streamed layer, the longer of the two, and a part of the shorter;
 * where distances between streamed layers differ, that is more than the longer of all
 * reading and all computing. Experts that are read once a router has chosen them
 * overlap with nothing.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_TOKEN_TIME_H
#define SLM_HARNESS_ROWS_TOKEN_TIME_H

#include <stdbool.h>

/* Share of the roof of memory that products with packed weights usually reach: the
 * middle of what was measured, 0.87 to 0.95 by machine (results/examples, whose models
 * are large: the layers' own time is one or two per cent of their tokens). */
#define TOKEN_TIME_USUAL_SHARE 0.92

/* A layer's own time, in seconds: with one thread, and what several threads add, which
 * meet after each product. From profiles of models of 0.4 to 1.1 billion parameters,
 * whose tokens take 10 to 50 ms. */
#define TOKEN_TIME_LAYER_S 20e-6
#define TOKEN_TIME_MEET_S  25e-6

/* The part of the shorter of reading from disk and computing that the longer one does
 * not hide: the middle of the streamed launches of two machines (results/examples:
 * zen5-limits and xeon-480mib-2vcpu), whose medians are predicted within 7 and 9 %. */
#define TOKEN_TIME_NOT_HIDDEN 0.3

/* A measured speed is expected within this share of the predicted one, where nothing is
 * read from disk. */
#define TOKEN_TIME_BAND 0.15

/* What a disk gives while tokens are computed, over a probe in the same launch, and
 * over one at another time: nine of ten launches lie between. A virtual machine's disk
 * varies by the minute: those of four machines gave 0.4 to 1.4 times what was probed
 * before their sweep. */
#define TOKEN_TIME_DISK_LO  0.75
#define TOKEN_TIME_DISK_HI  1.30
#define TOKEN_TIME_LATER_LO 0.40
#define TOKEN_TIME_LATER_HI 1.35

/* What one token takes. */
struct token_work {
    double memory_bytes;   /* weights and KV cache, streamed weights too: all that is
                              multiplied with */
    double streamed_bytes; /* read from disk; 0: nothing */
    double output_bytes;   /* of memory_bytes: what comes after the last layer */
    bool on_demand;        /* streamed bytes are read once it is known which: experts */
    double layer_s;        /* a layer's own time between its products */
    int n_layers, n_streamed; /* layers, spread evenly; 0 streamed: as if reading and
                                 computing overlapped as a whole */
};

/* GB/s; disk_gbps counts only where weights are streamed. disk_lo, disk_hi: factors
 * that it is expected between; 0: TOKEN_TIME_LATER_LO and _HI. */
struct token_roofs {
    double read_gbps, disk_gbps;
    double disk_lo, disk_hi;
};

/* The same, of a disk at the lower or upper end of what is expected. */
struct token_roofs token_roofs_end(const struct token_roofs *r, bool upper);

struct token_time {
    double compute_s; /* from memory, with own_s */
    double own_s;     /* of it, the layers' own */
    double disk_s;    /* from disk */
    double alone_s; /* of token_s, beyond the longer of these two: what does not overlap
                     */
    double token_s; /* of all; NaN: a roof is not known */
};

/* TOKEN_TIME_LAYER_S, and what n_threads threads add to it. */
double token_time_layer_s(int n_threads);

/* With this share of the roof of memory, above 0. */
struct token_time token_time_at(const struct token_work *w, const struct token_roofs *r,
                                double share);

/* The least time: all of the roof of memory, nothing between products, and reading and
 * computing as if they overlapped as a whole. */
struct token_time token_time_min(const struct token_work *w,
                                 const struct token_roofs *r);

/* What to expect: TOKEN_TIME_USUAL_SHARE. */
struct token_time token_time_predict(const struct token_work *w,
                                     const struct token_roofs *r);

#endif

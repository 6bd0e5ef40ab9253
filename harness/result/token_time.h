/* SPDX-License-Identifier: MIT
 *
 * token_time.h - the time of one decoded token, from what it reads and from the roofs
 *
 * Model of the world: threads multiply with weights and KV cache from memory, at a
 * share of the read bandwidth (the roof of memory); meanwhile a thread reads the
 * weights that are not kept in memory from disk, at the roof of the disk, one layer
 * after another. Both go on at once, also from one token to the next, but nearly a
 * layer is read ahead and no more: reading a streamed layer overlaps with computing
 * those since the last streamed one. So a token takes, for each streamed layer, the
 * longer of the two; where distances between streamed layers differ, that is more than
 * the longer of all reading and all computing.
 * Experts that are read once a router has chosen them overlap with nothing.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_RESULT_TOKEN_TIME_H
#define SLM_HARNESS_RESULT_TOKEN_TIME_H

#include <stdbool.h>

/* Share of the roof of memory that decoding reaches with packed weights: the middle of
 * those in results/examples, which are 0.8 to 0.95. */
#define TOKEN_TIME_USUAL_SHARE 0.86

/* A measured speed is expected within this share of the predicted one. */
#define TOKEN_TIME_BAND 0.15

/* What one token takes. */
struct token_work {
    double memory_bytes;   /* weights and KV cache, streamed weights too: all that is
                              multiplied with */
    double streamed_bytes; /* read from disk; 0: nothing */
    double output_bytes;   /* of memory_bytes: what comes after the last layer */
    bool on_demand;        /* streamed bytes are read once it is known which: experts */
    int n_layers, n_streamed; /* layers, spread evenly; 0 streamed: as if reading and
                                 computing overlapped as a whole */
};

/* GB/s; disk_gbps counts only where weights are streamed. */
struct token_roofs {
    double read_gbps, disk_gbps;
};

struct token_time {
    double compute_s; /* from memory */
    double disk_s;    /* from disk */
    double alone_s; /* of token_s, beyond the longer of these two: what does not overlap
                     */
    double token_s; /* of all; NaN: a roof is not known */
};

/* With this share of the roof of memory, above 0. */
struct token_time token_time_at(const struct token_work *w, const struct token_roofs *r,
                                double share);

/* The least time: all of the roof of memory, and reading and computing as if they
 * overlapped as a whole. */
struct token_time token_time_least(const struct token_work *w,
                                   const struct token_roofs *r);

/* What to expect: TOKEN_TIME_USUAL_SHARE. */
struct token_time token_time_predict(const struct token_work *w,
                                     const struct token_roofs *r);

#endif

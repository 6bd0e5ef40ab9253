/* SPDX-License-Identifier: MIT
 *
 * server_counts.h - what a server counts itself, from its /metrics
 *
 * Model of the world: counters of Prometheus' text, under the names that slmbench,
 * llama.cpp, vLLM and SGLang give them; what differs in labels is added up. The
 * difference of two readings is what came between them. Nothing of the text is trusted.
 *
 * Threading: pure functions.
 * Source: Prometheus, "Exposition formats"; the servers' /metrics.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_SERVER_COUNTS_H
#define SLM_HARNESS_SERVE_LOAD_SERVER_COUNTS_H

#include "harness/rows/row.h"

enum {
    COUNT_PROMPT,     /* tokens of prompts */
    COUNT_CACHED,     /* of them, taken from a cache */
    COUNT_OUTPUT,     /* tokens generated */
    COUNT_TTFT_S,     /* sum of times to the first token */
    COUNT_N_TTFT,     /* number of them */
    COUNT_N_PREEMPTED /* times that a request was dropped and computed again */
};
#define N_COUNTS (COUNT_N_PREEMPTED + 1)

struct server_counts {
    double v[N_COUNTS]; /* NAN: the server does not count it */
};

#define SERVER_COUNTS_MAX_BYTES (4u << 20)

/* From the text of /metrics. */
void server_counts_read(struct server_counts *c, const char *text);

/* The columns of a row between two readings; nothing where one of them is not known, or
 * the later one is less, as that of a server that was started again. */
void server_counts_fill(struct row *row, const struct server_counts *before,
                        const struct server_counts *after);

#endif

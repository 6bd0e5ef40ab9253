/* SPDX-License-Identifier: MIT
 *
 * metrics.h - what a server has done, as Prometheus reads it
 *
 * Threading: one thread, the server's.
 * Source: Prometheus' documentation, text-based exposition format 0.0.4.
 */
#ifndef SLM_HARNESS_SERVE_HTTP_METRICS_H
#define SLM_HARNESS_SERVE_HTTP_METRICS_H

#include <stdint.h>

#include "harness/serve/scheduler/scheduler.h"
#include "harness/serve/api/textbuf.h"

#define METRICS_BUCKETS 16

struct histogram {
    uint64_t count[METRICS_BUCKETS + 1]; /* the last: above all bounds */
    double sum;
};

enum metrics_route {
    ROUTE_COMPLETIONS,
    ROUTE_CHAT,
    ROUTE_MESSAGES,
    ROUTE_RESPONSES,
    ROUTE_EMBEDDINGS,
    ROUTE_TOKENIZE, /* the first one without an answer of the model */
    ROUTE_DETOKENIZE,
    ROUTE_COUNT,
    ROUTE_TEMPLATE, /* the last one with a body */
    ROUTE_MODELS,
    ROUTE_HEALTH,
    ROUTE_METRICS,
    ROUTE_OTHER,
    N_ROUTES
};

struct metrics {
    uint64_t replies[N_ROUTES][600]; /* by HTTP status */
    uint64_t n_gone;                 /* clients that left before their answer's end */
    uint64_t n_cut;                  /* clients cut off: too slow */
    struct histogram first;          /* seconds from the request to its first text */
    struct histogram gap;            /* from one piece of text to the next */
    struct histogram whole;          /* to the answer's end */
    int n_connections, n_requests;   /* open now */
    uint64_t body_bytes;             /* of bodies that are being received */
    uint64_t schema_bytes;           /* memory of the schemas of requests */
    uint64_t whole_bytes;            /* of answers that do not stream and run */
    uint64_t stream_bytes;           /* of streams that their clients have not taken */
};

const char *metrics_route_name(enum metrics_route route);

void metrics_reply(struct metrics *m, enum metrics_route route, int status);
void histogram_add(struct histogram *h, double seconds);

/* Counters of m, of the scheduler (NULL: not started yet), and of this process. */
void metrics_put(struct textbuf *out, const struct metrics *m,
                 const struct scheduler_stats *s);

#endif

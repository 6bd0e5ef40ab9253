/* SPDX-License-Identifier: MIT
 *
 * messages.h - every message between a worker and its parent
 *
 * Model of the world: a worker (`bench worker`) is a process behind a fence, since it
 * reads models of others. Nothing of it reaches its parent but lines on its standard
 * output, one JSON object each, and this is the list of them. It sends a greeting,
 * sleeps, and answers one request after another until its standard input ends:
 *
 *   <- {"turn": 1, "opens": [..], "worker": 1, "version": "..", "commit": "..", ..}
 *
 *   requests, and what answers them             for             answered by
 *   -> {"need": REQUEST}    {"need": {..}}      struct point_need       point_need.c
 *   -> {"point": REQUEST}   {"done": ..}        a measured point        point_worker.c
 *   -> {"roof": REQUEST}    {"done": .., "gbps": [..], "gops": [..]}
 *                                               ceilings of another program's point
 *                                                                   point_stand_in.c
 *   -> {"open": {..}}       {"ready": {..}}     struct worker_open, struct worker_ready
 *   -> {"take": [16, 1]}    {"s": [[..], [..]], "noise": {..}, "peak_bytes": 12345}
 *                                               samples of each step    worker_serve.c
 *
 *   sent before the answer, at once: when a worker is killed, nothing that it had
 *   reported is lost
 *   <- {"phase": "load", "fraction": 0.25}      how far it is
 *   <- {"ms": [12.345, ..]}                     samples, as they are taken
 *   <- {"noise": {..}}                          struct noise over the samples so far
 *   <- {"row": {..}}                            columns of FIELD_WORKER
 *   <- {"facts": {..}}                          struct point_facts
 *   <- {"profile": {..}}                        struct point_profile of the samples
 *   <- {"error": "...", "code": 5}              instead of the answer, an enum status;
 *                                               and it ends
 *
 * REQUEST is struct point_request. The parent believes figures alone: a row's status,
 * verdicts and their reasons are its own, whatever is sent. "open" and "take" are what
 * `bench gate` sends to programs of other versions, which it starts as `bench turn`.
 *
 * Threading: functions are pure.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_MESSAGES_H
#define SLM_HARNESS_MEASURE_WORKER_MESSAGES_H

#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/machine/noise.h"
#include "harness/machine/topology.h"
#include "harness/rows/point/point.h"
#include "harness/rows/row.h"

/* "worker" of the greeting: grows with any change that the other side has to know of.
 */
#define WORKER_PROTOCOL 1
/* "turn" of the greeting: the same for "open" and "take". */
#define WORKER_OPEN_PROTOCOL 1

/* A line of the other side, whose texts are made harmless, since they are printed and
 * stored. NULL: it is no JSON. */
json_t *message_read(const char *line, size_t len);

/* ---- requests about a point ------------------------------------------------------ */

struct point_request {
    struct point point;
    uint64_t room; /* memory that it may have, as the parent has planned */
    const json_t
        *cache;         /* topology_cache_json(): its size, so that both sides have one;
                           borrowed from the request. NULL: as the worker reads it */
    const json_t *roof; /* the last answer to "roof", whose passes count too; borrowed.
                           NULL: none */
};

/* {NAME: REQUEST}, also with how other workers of the session read memory
 * (probe_ways_json()). topo and roof may be NULL. NULL: the model's name is not UTF-8.
 */
json_t *message_request(const char *name, const struct point *p, uint64_t room_bytes,
                        const struct topology *topo, json_t *roof);

/* Also takes the ways of reading memory. Error: ST_USAGE. */
enum status message_read_request(struct point_request *q, const json_t *request,
                                 struct err *err);

/* ---- what a point needs ---------------------------------------------------------- */

struct point_need {
    char quant[24];
    uint64_t n_params;
    uint64_t weight_bytes; /* of the file or the image */
    uint64_t rows_bytes;   /* of these in tables that a mapped file's passes read a row
                              of for each token */
    uint64_t map_bytes;    /* of memory, if the file is mapped: what passes read again
                              and again, and page tables; 0: it cannot be mapped */
    uint64_t anon_bytes;   /* that cannot be paged out: the next three. Streamed weights
                              that memory does not hold: the minimum */
    uint64_t kv_bytes, scratch_bytes;
    uint64_t weights_memory_bytes; /* allocated for weights */
    uint64_t token_bytes;          /* read to decode one token at the point's depth */
    uint64_t output_bytes;         /* of these the output matrix */
    uint64_t nextn_bytes; /* read for a token that the model's own layer guesses; 0: it
                             has none */
    uint64_t token_macs;  /* multiply-adds with matrices for one token */
    uint64_t output_macs; /* those of the output matrix */
    uint64_t identity;    /* of the content (model_names.h) */
    int residency;        /* enum weights_residency; AUTO is resolved */
    int n_layers;
    int n_recurrent; /* of these: have a state, which cannot be taken back */
    int n_experts, n_experts_used; /* of a layer; 0: a dense model */
    uint64_t expert_bytes;         /* one expert's matrices in all layers */
    int n_streamed, n_slots;       /* as residency.h has them; 0: nothing is streamed */
    uint64_t streamed_bytes, slot_bytes; /* the first also of cached experts: what a
                                            token is expected to miss */
    uint64_t cache_bytes;   /* part of weights_memory_bytes: cached experts */
    uint64_t disk_bytes;    /* of tensors that stay in the file */
    int n_vocab;            /* tokens that there are */
    int n_ctx;              /* positions of the KV cache */
    int packed_ctx;         /* the most with which all weights stay in memory; 0: none,
                               or not known */
    int model_ctx;          /* that the model was made for */
    int n_prompt, n_answer; /* of the text of a speculate point */
    int own_answer;         /* the text gives none */
};

json_t *point_need_json(const struct point_need *need);

/* From {"need": ..}. Error: ST_IO (not as expected). */
enum status point_need_from_json(struct point_need *need, const json_t *object,
                                 struct err *err);

/* Memory in addition to anon_bytes without which a point is not tried. Streaming takes
 * what memory leaves, so all of the reserve must be left. */
uint64_t point_need_reserve(int residency);

/* ---- what a point has measured --------------------------------------------------- */

/* Facts that are no columns of the row. */
struct point_facts {
    double tokens_per_sample; /* 1, the prompt length, or those of a text */
    double ops_per_sample;    /* two per multiply-add of a matrix */
    double bytes_per_sample;  /* weights and KV cache read */
    double roof_spread;       /* of the probe's passes, as a share of their median */
    double llc_bytes;         /* last-level cache, as topology_cache() has it; 0: */
    double llc_hi_bytes;      /* unknown; and the end of its range: the parent's own */
    double stand_in_bytes;    /* of the buffer that was read instead of weights that do
                                 not fit; 0: none */

    double disk_spread; /* of the disk probe's passes: the parent's own, too */

    /* With streamed weights: the largest request, and the maximum at once; 0:
     * nothing is streamed. */
    double stream_request_bytes, stream_depth;

    /* From a few samples after the measured ones, or from all with a profile: */
    double profile_ms; /* mean sample; 0: none was profiled */
    double wait_ms;    /* of it at barriers, mean of the threads */
    double product_ms; /* of it in operations that multiply, mean of the threads */
    double arith_ms;   /* in which its multiply-adds could be done at the peaks */
};

/* Missing keys leave a field as it is. */
json_t *point_facts_json(const struct point_facts *facts);
void point_facts_from_json(struct point_facts *facts, const json_t *object);

/* {"row": ..} with the columns of FIELD_WORKER, and these into *row: all others are the
 * parent's. */
json_t *message_columns(const struct row *row);
void message_take_columns(struct row *row, const json_t *from);

/* Missing keys leave a field as it is: it may come from another version. */
json_t *worker_noise_json(const struct noise *noise);
void worker_noise_from_json(struct noise *noise, const json_t *object);

#endif

/* SPDX-License-Identifier: MIT
 *
 * point_need.h - what a point needs: asked of its worker, since only a fenced process
 * inside the memory limit opens a model
 *
 * {"need": {"point": SETTINGS, "room": BYTES}} is answered by {"need": {..}} with
 * struct point_need, {"key": SETTINGS} by {"key": [..]}, what a profile must have been
 * made for. Both come before {"point": SETTINGS}, to the same worker.
 *
 * Threading: as point_worker.h.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_NEED_H
#define SLM_HARNESS_MEASURE_POINT_POINT_NEED_H

#include "harness/rows/point/point.h"
#include "harness/measure/tune/tuned.h"

struct point_need {
    char quant[24];
    uint64_t n_params;
    uint64_t weight_bytes; /* of the file or the image */
    uint64_t rows_bytes;   /* of these in tables that a mapped file's passes read a row
                              of for each token */
    uint64_t map_bytes;    /* of memory, if the file is mapped: what passes read again
                              and again, and page tables; 0: it cannot be mapped */
    uint64_t anon_bytes;   /* that cannot be paged out: the next three. Of stream that
                              memory does not hold, the least */
    uint64_t kv_bytes, scratch_bytes;
    uint64_t weights_memory_bytes; /* allocated for weights */
    uint64_t token_bytes;          /* read to decode one token at the point's depth */
    uint64_t output_bytes;         /* of these the output matrix */
    uint64_t nextn_bytes; /* read for a token that the model's own layer guesses; 0: it
                             has none */
    uint64_t token_macs;  /* multiply-adds with matrices for one token */
    uint64_t output_macs; /* of these the output matrix */
    uint64_t identity;    /* model_identity(); 0: of a shape */
    int residency;        /* enum weights_residency: chosen, where AUTO was asked for */
    int n_layers;
    int n_streamed, n_slots; /* as residency.h has them; 0: nothing is streamed */
    uint64_t streamed_bytes, slot_bytes; /* the first also of cached experts: what a
                                            token is expected to miss */
    uint64_t cache_bytes;   /* of weights_memory_bytes: of cached experts; 0: none */
    uint64_t disk_bytes;    /* of tensors that stay in the file */
    int n_vocab;            /* tokens that there are */
    int n_ctx;              /* positions of the KV cache */
    int packed_ctx;         /* the most with which all weights stay in memory; 0: none,
                               or not known */
    int model_ctx;          /* that the model was made for */
    int n_prompt, n_answer; /* of the text of a speculate point */
    int own_answer;         /* the text gives none */
};

/* Memory beside anon_bytes without which a point is not tried. What is streamed is as
 * much as memory leaves, so that all of the reserve must be left. */
uint64_t point_need_reserve(int residency);

/* The worker's side: answers. Errors: of opening the model, and of texts that do not
 * fit it. */
enum status point_need_answer(const json_t *request, struct err *err);

enum status point_key_answer(const json_t *settings, struct err *err);

/* The asking side. Error: ST_IO (not as expected). */
json_t *point_need_request(const struct point *p, uint64_t room_bytes);
enum status point_need_from_json(struct point_need *need, const json_t *object,
                                 struct err *err);
enum status point_key_from_json(struct tuned_key *key, const json_t *object,
                                struct err *err);

#endif

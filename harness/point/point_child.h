/* SPDX-License-Identifier: MIT
 *
 * point_child.h - what a measuring child tells its parent
 *
 * One JSON object per line on the child's standard output, each with one of:
 *     {"phase": "load", "fraction": 0.25}    where it is
 *     {"row": {...}}                         columns it knows by now
 *     {"facts": {...}}                       struct point_facts
 *     {"s": [12.345, ...]}                   samples in ms, in order
 *     {"noise": {...}}                       struct noise over the samples so far
 *     {"profile": {...}}                     struct point_profile of the samples
 *     {"error": "...", "code": 5}            what stopped it, an enum status
 *     {"done": true}                         everything was told
 *
 * Threading: the child's main thread writes, the parent reads.
 */
#ifndef SLM_HARNESS_POINT_POINT_CHILD_H
#define SLM_HARNESS_POINT_POINT_CHILD_H

#include <stdint.h>
#include <jansson.h>

#include "harness/machine/topology.h"
#include "harness/point/point.h"

/* Both sides of "facts". Missing keys leave a field as it is. */
json_t *point_facts_json(const struct point_facts *facts);
void point_facts_from_json(struct point_facts *facts, const json_t *object);

/* Size of the probe's buffer: beyond the last-level cache, but neither more than
 * an eighth of the limit nor than the weights, so that the probe does not become
 * the peak of the point. */
uint64_t point_probe_bytes(uint64_t llc_bytes, uint64_t mem_limit,
                           uint64_t weight_bytes);

/* Tokens whose logits a pass may ask for. */
int point_n_logits(const struct point *p);

/* Positions of the KV cache that the point opens its model with. */
int point_n_ctx(const struct point *p);

#endif

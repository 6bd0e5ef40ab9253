/* SPDX-License-Identifier: MIT
 *
 * engine_impl.h - what engine.c takes from engine_info.c
 */
#ifndef SLM_ENGINE_ENGINE_IMPL_H
#define SLM_ENGINE_ENGINE_IMPL_H

#include "engine/engine.h"
#include "engine/forward/forward.h"

/* Describe a model with these parameters, which are checked; the residency stays as it
 * is. Errors: those of slm_plan() but for loading. */
enum status info_fill(struct slm_info *info, const struct gguf *g,
                      const struct model *m, const struct slm_params *params,
                      struct err *err);

/* Resolve residency auto in *info, and describe the memory of the weights with it;
 * plan: of residency stream. Errors: those of slm_plan() but for loading. */
enum status info_weights(struct slm_info *info, struct residency_plan *plan,
                         const struct gguf *g, const struct slm_params *params,
                         struct err *err);

/* slm_plan(), with the plan of residency stream. */
enum status info_plan(struct slm_info *info, struct residency_plan *plan,
                      const struct gguf *g, const struct slm_params *params,
                      struct err *err);

/* What *info says of a plan of residency stream. */
void info_stream(struct slm_info *info, const struct residency_plan *plan);

/* The memory that params allow. */
uint64_t info_memory_bytes(const struct slm_params *params);
uint64_t info_machine_bytes(void);

/* The cache of a model with these parameters, in which rings hold n_spare positions
 * more than a token sees. */
struct kvcache_shape info_kv_shape(const struct model *m, const struct slm_params *p,
                                   int n_spare);

#endif

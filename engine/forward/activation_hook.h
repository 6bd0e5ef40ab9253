/* SPDX-License-Identifier: MIT
 *
 * activation_hook.h - listening to what matrices are multiplied with
 */
#ifndef SLM_ENGINE_FORWARD_ACTIVATION_HOOK_H
#define SLM_ENGINE_FORWARD_ACTIVATION_HOOK_H

#include <stddef.h>

/* x[n] is about to be multiplied with a slice (0 .. n_slices - 1; a matrix of experts
 * has one for each) of the matrix called name. Several threads call at the same time.
 * Matrices that a file fuses come once for each part, with equal inputs. */
typedef void slm_activation_hook_fn(void *arg, const char *name, size_t n_slices,
                                    size_t slice, const float *x, size_t n);

#endif

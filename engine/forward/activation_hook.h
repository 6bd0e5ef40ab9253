/* SPDX-License-Identifier: MIT
 *
 * activation_hook.h - a callback for the inputs of matrix products
 */
#ifndef SLM_ENGINE_FORWARD_ACTIVATION_HOOK_H
#define SLM_ENGINE_FORWARD_ACTIVATION_HOOK_H

#include <stddef.h>

/* Called before x[n] is multiplied with a slice (0 .. n_slices - 1; one per expert) of
 * the matrix called name, by several threads at the same time. Matrices that a file
 * fuses have one call for each part, with equal inputs. */
typedef void slm_activation_hook_fn(void *arg, const char *name, size_t n_slices,
                                    size_t slice, const float *x, size_t n);

#endif

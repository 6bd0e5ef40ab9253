/* SPDX-License-Identifier: MIT
 *
 * gelu.h - constants of gelu(x) = x / (1 + exp(x * (GELU_1 + GELU_3 * x^2)))
 *
 * -2u of kernels.h as a polynomial: GELU_1 = -2 sqrt(2/pi), GELU_3 = 0.044715 GELU_1.
 */
#ifndef SLM_KERNELS_VECOPS_GELU_H
#define SLM_KERNELS_VECOPS_GELU_H

#define GELU_1 (-1.5957691216057308f)
#define GELU_3 (-0.071354816272605f)

#endif

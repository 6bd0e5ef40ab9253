/* SPDX-License-Identifier: MIT
 *
 * pooling.h - how the states of a text's tokens become one vector
 *
 * Threading: constants only.
 */
#ifndef SLM_ENGINE_ARCH_POOLING_H
#define SLM_ENGINE_ARCH_POOLING_H

/* The numbers are those of the key pooling_type in GGUF files. */
enum slm_pooling {
    SLM_POOLING_NONE,  /* they do not: each token has its vector */
    SLM_POOLING_MEAN,  /* of all tokens */
    SLM_POOLING_FIRST, /* that of the first token ("cls") */
    SLM_POOLING_LAST,  /* that of the last one */
    SLM_POOLING_RANK,  /* a classifier scores a pair of texts: not supported */
};

#endif

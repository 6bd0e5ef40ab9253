/* SPDX-License-Identifier: MIT
 *
 * grammar_group.h - a vocabulary for all tests of a file
 */
#ifndef SLM_TESTS_GRAMMAR_GROUP_H
#define SLM_TESTS_GRAMMAR_GROUP_H

#include "tests/support/grammar_check.h"

static struct grammar_vocab *group_vocab;

static inline int open_vocab(void **state)
{
    (void)state;
    group_vocab = grammar_vocabulary(false);
    return 0;
}

static inline int close_vocab(void **state)
{
    (void)state;
    grammar_vocab_close(group_vocab);
    return 0;
}

#endif

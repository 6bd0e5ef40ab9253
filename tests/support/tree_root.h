/* SPDX-License-Identifier: MIT
 *
 * tree_root.h - a tree of its own for each test of a program
 */
#ifndef SLM_TESTS_TREE_ROOT_H
#define SLM_TESTS_TREE_ROOT_H

#include "tests/support/tree.h"

static char root[64];

/* For cmocka: before and after each test. */
static inline int make_root(void **state)
{
    (void)state;
    tree_new(root);
    return 0;
}

static inline int remove_root(void **state)
{
    (void)state;
    tree_remove(root);
    return 0;
}

#endif

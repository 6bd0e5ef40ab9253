/* SPDX-License-Identifier: MIT
 *
 * tree.h - recorded /proc and /sys trees for tests, in a temporary directory
 */
#ifndef SLM_TESTS_TREE_H
#define SLM_TESTS_TREE_H

#include <ftw.h>
#include <sys/stat.h>

#include "tests/support/test.h"

/* An empty directory; remove with tree_remove(). */
static inline void tree_new(char root[64])
{
    snprintf(root, 64, "/tmp/slm-test-tree-XXXXXX");
    assert_non_null(mkdtemp(root));
}

static inline int tree_remove_entry(const char *path, const struct stat *st, int type,
                                    struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void tree_remove(const char *root)
{
    nftw(root, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tree_mkdir(const char *root, const char *path)
{
    char full[2048];

    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(full, 0755);
        *p = '/';
    }
    mkdir(full, 0755);
}

/* path is absolute within the tree; directories are made. */
static inline void tree_put(const char *root, const char *path, const char *text)
{
    char full[2048];

    snprintf(full, sizeof full, "%s%s", root, path);
    *strrchr(full, '/') = '\0';
    tree_mkdir(root, full + strlen(root));
    full[strlen(full)] = '/';
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* What is in a file of the tree, "" if it is not there. */
static inline const char *tree_get(const char *root, const char *path, char *buf,
                                   size_t cap)
{
    char full[2048];

    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *f = fopen(full, "r");
    const size_t n = f ? fread(buf, 1, cap - 1, f) : 0;
    buf[n] = '\0';
    if (f)
        fclose(f);
    return buf;
}

static inline int tree_exists(const char *root, const char *path)
{
    char full[2048];

    snprintf(full, sizeof full, "%s%s", root, path);
    return access(full, F_OK) == 0;
}

/* One of the machines of tests/data/topo/make.sh. */
static inline void tree_machine(char root[64], const char *name)
{
    char command[512];

    tree_new(root);
    snprintf(command, sizeof command, "bash '%s' %s '%s'", TEST_DATA "topo/make.sh",
             name, root);
    assert_int_equal(system(command), 0);
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * packed_file.h - a model and the packed file made of it, in a folder of their own
 */
#ifndef SLM_TESTS_PACKED_FILE_H
#define SLM_TESTS_PACKED_FILE_H

#include "tests/support/pack_file.h"
#include "tests/support/packed_logits.h"

#include <dirent.h>
#include <fcntl.h>

#include "engine/gguf/gguf_panels.h"

struct files {
    char dir[32], from[64], to[64];
};

static inline void files_make(struct files *f)
{
    snprintf(f->dir, sizeof f->dir, "/tmp/test_pack.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->from, sizeof f->from, "%s/from.gguf", f->dir);
    snprintf(f->to, sizeof f->to, "%s/to.gguf", f->dir);
}

/* The number of files that were left. */
static inline int files_remove(const struct files *f)
{
    DIR *dir = opendir(f->dir);
    int n = 0;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.' && !unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    rmdir(f->dir);
    return n;
}

#endif

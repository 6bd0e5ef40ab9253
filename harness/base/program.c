/* SPDX-License-Identifier: MIT
 *
 * program.c - this build and its executable
 */
#include "harness/base/program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "version.h"

const char *build_version(void)
{
    return SLM_VERSION " (" SLM_COMMIT ")";
}

const char *build_commit(void)
{
    return SLM_COMMIT;
}

const char *build_compiler(void)
{
    return SLM_COMPILER " " SLM_BUILD_TYPE;
}

const char *self_path(void)
{
    static char path[PATH_MAX];

    if (!path[0]) {
        const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

        if (n <= 0)
            return "/proc/self/exe";
        path[n] = '\0';
    }
    return path;
}

const char *self_dir(void)
{
    static char dir[PATH_MAX];

    if (!dir[0]) {
        const char *self = self_path(), *slash = strrchr(self, '/');

        snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - self) : 0, self);
    }
    return dir;
}

/* SPDX-License-Identifier: MIT
 *
 * cmd.c - what all subcommands share
 */
#include "harness/cmd.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "version.h"

int cmd_fail(const struct err *err)
{
    if (err->code == ST_INTERRUPTED)
        fprintf(stderr, "bench: interrupted\n");
    else
        fprintf(stderr, "bench: %s\n", err->msg);
    return status_exit_code(err->code);
}

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

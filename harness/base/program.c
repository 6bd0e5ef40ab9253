/* SPDX-License-Identifier: MIT
 *
 * program.c - this build, its executable and its files
 */
#include "harness/base/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

bool program_find(char *buf, size_t cap, const char *name)
{
    const char *dirs = getenv("PATH");

    for (size_t n; dirs && *dirs; dirs += n + (dirs[n] == ':')) {
        struct stat st;

        n = strcspn(dirs, ":");
        if (*dirs == '/' &&
            snprintf(buf, cap, "%.*s/%s", (int)n, dirs, name) < (int)cap &&
            !access(buf, X_OK) && !stat(buf, &st) && S_ISREG(st.st_mode))
            return true;
    }
    *buf = '\0';
    return false;
}

/* ---- files ---------------------------------------------------------------------- */

static const struct {
    const char *name, *folder; /* in the source tree */
    const char *variable;      /* of the environment; NULL: none */
} kinds[] = {
    {"models", "configs/models", "SLMBENCH_SHAPES"},
    {"sweeps", "configs/sweeps", NULL},
    {"gates", "configs/gates", NULL},
    {"texts", "configs/texts", NULL},
    {"traces", "configs/traces", NULL},
    {"machines", "configs", NULL},
    {"plots", "plots", "SLMBENCH_PLOTS"},
};

/* The build tree may have been configured through a link, and may be gone. */
static bool runs_from_build_tree(void)
{
    const char *self = self_path();
    char build[PATH_MAX];

    if (!realpath(SLM_BUILD_DIR, build))
        return false;
    const size_t len = strlen(build);
    return !strncmp(self, build, len) && self[len] == '/';
}

const char *data_dir_find(char *buf, size_t cap, const char *kind)
{
    size_t k = 0;

    while (strcmp(kinds[k].name, kind))
        k++;
    const char *given = kinds[k].variable ? getenv(kinds[k].variable) : NULL;
    if (given && *given)
        snprintf(buf, cap, "%s", given);
    else if (runs_from_build_tree())
        snprintf(buf, cap, "%s/%s", SLM_SOURCE_DIR, kinds[k].folder);
    else
        snprintf(buf, cap, "%s/../share/slmbench/%s", self_dir(), kind);
    return buf;
}

const char *data_file_find(char *buf, size_t cap, const char *kind, const char *name)
{
    char dir[PATH_MAX];

    snprintf(buf, cap, "%s/%s", data_dir_find(dir, sizeof dir, kind), name);
    return access(buf, R_OK) ? NULL : buf;
}

const char *data_config_find(char *buf, size_t cap, const char *kind, const char *name)
{
    const char *dot = strrchr(name, '.');
    char file[256];

    if (!access(name, R_OK) || strchr(name, '/'))
        return name;
    snprintf(file, sizeof file, "%s%s", name,
             dot && !strcmp(dot, ".yaml") ? "" : ".yaml");
    return data_file_find(buf, cap, kind, file) ? buf : name;
}

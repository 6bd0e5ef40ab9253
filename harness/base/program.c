/* SPDX-License-Identifier: MIT
 *
 * program.c - this build, its executable and its files
 */
#include "harness/base/program.h"

#include <dirent.h>
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

/* ---- files ----------------------------------------------------------------------- */

static const struct {
    const char *name, *folder; /* in the source tree */
    const char *variable;      /* of the environment; NULL: none */
} kinds[] = {
    {"models", "configs/models", "SLMBENCH_SHAPES"},
    {"sweeps", "configs/sweeps", NULL},
    {"gates", "configs/gates", NULL},
    {"texts", "configs/texts", NULL},
    {"traces", "research/traces", NULL},
    {"machines", "configs", NULL},
    {"plots", "plots", "SLMBENCH_PLOTS"},
    {"shell", "configs/shell", NULL},
};

#define MAX_DIRS 4

/* The directories of a kind, in the order in which they are searched. */
struct dirs {
    char path[MAX_DIRS][PATH_MAX];
    size_t n;
    bool only; /* the environment has named it: nothing else is searched */
};

/* Configurations control what is run, and the charts' style is a program of gnuplot's:
 * those of directories that others may write into are not this user's choice. */
static bool is_trusted(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode) && !(st.st_mode & S_IWOTH) &&
           (st.st_uid == 0 || st.st_uid == geteuid());
}

static void add_dir(struct dirs *d, const char *base, const char *rest,
                    const char *kind)
{
    char *path = d->path[d->n];

    if (*base == '/' &&
        snprintf(path, PATH_MAX, "%s%s/%s", base, rest, kind) < PATH_MAX &&
        is_trusted(path))
        d->n++;
}

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

static void find_dirs(struct dirs *d, const char *kind)
{
    size_t k = 0;

    while (strcmp(kinds[k].name, kind))
        k++;
    const char *given = kinds[k].variable ? getenv(kinds[k].variable) : NULL;
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    d->n = 0;
    d->only = given && *given;
    if (d->only) {
        snprintf(d->path[d->n++], PATH_MAX, "%s", given);
        return;
    }
    if (config && *config)
        add_dir(d, config, "/slmbench", kind);
    else if (home)
        add_dir(d, home, "/.config/slmbench", kind);
    if (runs_from_build_tree()) {
        snprintf(d->path[d->n++], PATH_MAX, "%s/%s", SLM_SOURCE_DIR, kinds[k].folder);
        return;
    }
    add_dir(d, self_dir(), "/slmbench", kind);
    add_dir(d, self_dir(), "/../share/slmbench", kind);
}

/* The file inside the program, kind/name; NULL: none. */
static const struct data_inside *find_inside(const char *name)
{
    for (const struct data_inside *f = data_inside_files; f->name; f++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

const char *data_inside_text(const char *path, size_t *len)
{
    const size_t mark = strlen(DATA_INSIDE);
    const struct data_inside *f =
        strncmp(path, DATA_INSIDE, mark) ? NULL : find_inside(path + mark);

    if (!f)
        return NULL;
    *len = f->len;
    return (const char *)f->text;
}

bool data_file_is_there(const char *path)
{
    size_t len;

    return data_inside_text(path, &len) || !access(path, R_OK);
}

const char *data_file_find(char *buf, size_t cap, const char *kind, const char *name)
{
    struct dirs d;
    size_t len;

    find_dirs(&d, kind);
    for (size_t i = 0; i < d.n; i++)
        if (snprintf(buf, cap, "%s/%s", d.path[i], name) < (int)cap &&
            !access(buf, R_OK))
            return buf;
    if (d.only)
        return NULL;
    snprintf(buf, cap, DATA_INSIDE "%s/%s", kind, name);
    return data_inside_text(buf, &len) ? buf : NULL;
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

static enum status add_links(struct path_list *list, const char *path, struct err *err)
{
    DIR *d = opendir(path);
    enum status st = ST_OK;
    char name[PATH_MAX];

    for (const struct dirent *e; d && !st && (e = readdir(d));)
        if (e->d_type == DT_LNK &&
            snprintf(name, sizeof name, "%s/%s", path, e->d_name) < (int)sizeof name)
            st = path_list_add(list, name, err);
    if (d)
        closedir(d);
    return st;
}

enum status data_dirs_add(struct path_list *list, const char *kind, struct err *err)
{
    struct dirs d;
    enum status st = ST_OK;

    find_dirs(&d, kind);
    for (size_t i = 0; !st && i < d.n; i++) {
        st = path_list_add(list, d.path[i], err);
        if (!st)
            st = add_links(list, d.path[i], err);
    }
    return st;
}

/* ---- names of files -------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "nano.yaml" to the list as "nano", where that is its ending and it is not hidden. */
static enum status add_name(struct path_list *names, const char *file,
                            const char *ending, struct err *err)
{
    const size_t len = strlen(file), end = strlen(ending);
    char name[NAME_MAX + 1];

    if (*file == '.' || len <= end || len > NAME_MAX ||
        strcmp(file + len - end, ending))
        return ST_OK;
    snprintf(name, sizeof name, "%.*s", (int)(len - end), file);
    return path_list_add(names, name, err);
}

static enum status add_names_of(struct path_list *names, const char *dir,
                                const char *ending, struct err *err)
{
    DIR *d = opendir(dir);
    enum status st = ST_OK;

    for (struct dirent *e; d && !st && (e = readdir(d));)
        st = add_name(names, e->d_name, ending, err);
    if (d)
        closedir(d);
    return st;
}

static void sort_without_repeats(struct path_list *names)
{
    size_t n = 0;

    if (names->n)
        qsort(names->path, names->n, sizeof *names->path, compare_names);
    for (size_t i = 0; i < names->n; i++)
        if (n && !strcmp(names->path[n - 1], names->path[i]))
            free(names->path[i]);
        else
            names->path[n++] = names->path[i];
    names->n = n;
}

enum status data_names(struct path_list *names, const char *kind, const char *ending,
                       struct err *err)
{
    const size_t len = strlen(kind);
    struct path_list found = {0};
    struct dirs d;
    enum status st = ST_OK;

    find_dirs(&d, kind);
    for (size_t i = 0; !st && i < d.n; i++)
        st = add_names_of(&found, d.path[i], ending, err);
    for (const struct data_inside *f = data_inside_files; !d.only && !st && f->name;
         f++)
        if (!strncmp(f->name, kind, len) && f->name[len] == '/')
            st = add_name(&found, f->name + len + 1, ending, err);
    if (st) {
        path_list_free(&found);
        return st;
    }
    sort_without_repeats(&found);
    *names = found;
    return ST_OK;
}

const char *data_kind(size_t i)
{
    return i < sizeof kinds / sizeof *kinds ? kinds[i].name : NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * program.h - version and path of this executable, and the files that come with it:
 * shapes, sweeps, gates, texts, charts
 *
 * Every file is looked for in these places, and the first that has it wins:
 *
 *     $XDG_CONFIG_HOME/slmbench/<kind>, which is ~/.config/slmbench/<kind> by default
 *     <folder of the program>/slmbench/<kind>, next to the program
 *     <folder of the program>/../share/slmbench/<kind>, where `cmake --install` puts it
 *     inside the program, which holds all of them but the traces as they were when it
 *         was built: such a file has no path; what stands for it begins with
 * DATA_INSIDE
 *
 * A program that runs from its build tree uses the source tree in place of the second
 * and third. $SLMBENCH_SHAPES and $SLMBENCH_PLOTS replace all places of shapes and
 * charts. A directory that somebody else owns or everybody may write into is passed
 * over, unless one of these variables names it.
 *
 * Threading: the first call of self_path() and self_dir() is one thread's.
 */
#ifndef SLM_HARNESS_BASE_PROGRAM_H
#define SLM_HARNESS_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "harness/base/pathlist.h"

/* Version and commit of this build, "0.1.0 (abc1234)". */
const char *build_version(void);
const char *build_commit(void);
const char *build_compiler(void);

/* Path of this executable, for running itself as a child. */
const char *self_path(void);
/* Its directory. */
const char *self_dir(void);

/* The path of a program by $PATH's absolute folders: what lies where the program is
 * started, or where it goes, is nobody's choice. "": not found. */
bool program_find(char *buf, size_t cap, const char *name);

/* ---- files ----------------------------------------------------------------------
 *
 * kind: "models", "sweeps", "gates", "texts", "traces", "machines" (CPUs, prices and
 * shares), "plots", or "shell" (completion) */

#define DATA_INSIDE "inside:" /* and then kind/name */

/* The path of a file that can be read, which may be inside the program; NULL: not
 * found. Returns buf. */
const char *data_file_find(char *buf, size_t cap, const char *kind, const char *name);

/* The configuration that a name means: a path, or the name of a .yaml file of that kind
 * with or without its ending. Returns buf, or name if there is no such file. */
const char *data_config_find(char *buf, size_t cap, const char *kind, const char *name);

/* Whether a path, of a file or inside the program, can be read. */
bool data_file_is_there(const char *path);

/* What path stands for inside the program, its bytes, static; NULL: path is of a file.
 * textfile_read() and yaml_load_file() use it. */
const char *data_inside_text(const char *path, size_t *len);

/* Names of all files of a kind whose names have that ending, without it, sorted and
 * once each; freed with path_list_free(). Error: ST_NO_MEMORY; *names is then
 * untouched. */
enum status data_names(struct path_list *names, const char *kind, const char *ending,
                       struct err *err);

/* The directories that are searched for files of a kind, and the links in them, to the
 * list: what a fence must let through. Error: ST_NO_MEMORY. */
enum status data_dirs_add(struct path_list *list, const char *kind, struct err *err);

/* The i-th kind; NULL: there are fewer. */
const char *data_kind(size_t i);

/* The files inside the program, which cmake/inside.cmake writes; the last has no name.
 */
struct data_inside {
    const char *name; /* kind/file */
    const unsigned char *text;
    size_t len;
};

extern const struct data_inside data_inside_files[];

#endif

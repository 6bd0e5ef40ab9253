/* SPDX-License-Identifier: MIT
 *
 * program.h - version and path of this executable, and the files that come with it:
 * shapes, sweeps, gates, texts, charts
 *
 * A program that runs from its build tree uses the files of the source tree; any other
 * uses ../share/slmbench beside the executable, where `cmake --install` puts them.
 * $SLMBENCH_SHAPES and $SLMBENCH_PLOTS replace the directories of shapes and charts.
 *
 * Threading: the first call of self_path() and self_dir() is one thread's.
 */
#ifndef SLM_HARNESS_BASE_PROGRAM_H
#define SLM_HARNESS_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Version and commit of this build, "0.1.0 (abc1234)". */
const char *build_version(void);
const char *build_commit(void);
const char *build_compiler(void);

/* Path of this executable, for running itself as a child. */
const char *self_path(void);
/* Its directory. */
const char *self_dir(void);

/* The path of a program by $PATH, of which only absolute folders count: what lies where
 * the program is started, or where it goes, is nobody's choice. Where there is none,
 * buf is empty. */
bool program_find(char *buf, size_t cap, const char *name);

/* The directory of a kind of files ("models", "sweeps", "gates", "texts", "traces",
 * "machines": CPUs, prices and shares, or "plots"); it may be missing. Returns buf. */
const char *data_dir_find(char *buf, size_t cap, const char *kind);

/* The path of a file in it, also where it cannot be read: then the result is NULL, else
 * buf. */
const char *data_file_find(char *buf, size_t cap, const char *kind, const char *name);

/* The configuration that a name means: a path, or the name of a .yaml file of that kind
 * with or without its ending. Returns buf, or name if there is no such file. */
const char *data_config_find(char *buf, size_t cap, const char *kind, const char *name);

#endif

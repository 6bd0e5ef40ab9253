/* SPDX-License-Identifier: MIT
 *
 * program.h - version and path of this executable
 *
 * Threading: the first call of self_path() and self_dir() is one thread's.
 */
#ifndef SLM_HARNESS_BASE_PROGRAM_H
#define SLM_HARNESS_BASE_PROGRAM_H

/* Version and commit of this build, "0.1.0 (abc1234)". */
const char *build_version(void);
const char *build_commit(void);
const char *build_compiler(void);

/* Path of this executable, for running itself as a child. */
const char *self_path(void);
/* Its directory. */
const char *self_dir(void);

#endif

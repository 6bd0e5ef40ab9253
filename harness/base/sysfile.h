/* SPDX-License-Identifier: MIT
 *
 * sysfile.h - small text files of /proc, /sys and cgroups, live or recorded
 *
 * root is "" for this machine or the top of a recorded tree; path is absolute
 * ("/proc/stat"). Such files are short, are read whole, and any of them may be
 * missing: the result shows it, and callers decide.
 *
 * Threading: stateless.
 */
#ifndef SLM_HARNESS_BASE_SYSFILE_H
#define SLM_HARNESS_BASE_SYSFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFILE_PATH_MAX 1024

/* root + path into buf[cap]; false, with errno, when it does not fit. */
bool sysfile_path(char *buf, size_t cap, const char *root, const char *path);

/* The whole file, zero-terminated, at most cap - 1 bytes, trailing blanks and
 * newlines removed. Returns the length, or -1 (errno has the reason; buf is then "").
 */
long sysfile_read(const char *root, const char *path, char *buf, size_t cap);

/* As sysfile_read(), for files of unknown length (cpuinfo, mountinfo): a
 * malloc'ed string, at most 16 MiB of the file, or NULL. */
char *sysfile_read_all(const char *root, const char *path);

/* What /proc/PROCESS/stat, of "self", "12" or "12/task/13", has behind the name (which
 * may hold blanks and parentheses): its fields from the third on, in buf[cap]. NULL: it
 * cannot be read. */
const char *sysfile_stat(const char *root, const char *process, char *buf, size_t cap);

/* A decimal number at the start of the file; false: no number. "max" and
 * numbers too large for 64 bits read as UINT64_MAX. */
bool sysfile_u64(const char *root, const char *path, uint64_t *value);

/* The number after "key " or "key:" at the start of a line of text; false if no
 * line has that key. As sysfile_u64() for large numbers. */
bool text_key_u64(const char *text, const char *key, uint64_t *value);

/* Is word one of the blank- or comma-separated words of list? */
bool text_has_word(const char *list, const char *word);

/* Parse a kernel CPU list ("0-3,8,10-11") and call add for each number in it;
 * false when the text is not such a list. An empty list is one. */
bool text_cpu_list(const char *text, void (*add)(void *arg, int cpu), void *arg);

#endif

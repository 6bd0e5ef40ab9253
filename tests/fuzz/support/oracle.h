/* SPDX-License-Identifier: MIT
 *
 * oracle.h - what every fuzz target holds its reader to, and files to read from
 *
 * For an input of n bytes a reader may take a constant and c x n of CPU time and of
 * memory, must not leave a file open, and says one printable sentence exactly when it
 * fails. What is broken ends the program with a sentence; libFuzzer keeps the input.
 * A target is
 *
 *     static void read_it(const uint8_t *data, size_t size) { ... }
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *     {
 *         return fuzz_run(read_it, data, size, FUZZ_BOUND);
 *     }
 *
 * Threading: one input at a time.
 */
#ifndef SLM_TESTS_FUZZ_ORACLE_H
#define SLM_TESTS_FUZZ_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_bound {
    double cpu_s, cpu_s_per_byte;
    size_t bytes, bytes_per_byte; /* of memory, allocated at one time */
};

/* Sanitizers and coverage slow a reader down tenfold: what is linear takes a
 * microsecond for a byte at most. A JSON value of two bytes takes up to 150
 * (jsonfile.h). */
#define FUZZ_BOUND                                      \
    (&(const struct fuzz_bound){.cpu_s = 0.5,           \
                                .cpu_s_per_byte = 4e-6, \
                                .bytes = 16u << 20,     \
                                .bytes_per_byte = 256})

typedef void fuzz_reader(const uint8_t *data, size_t size);

/* Read once, within the bound. Too slow is what is too slow three times. Returns 0. */
int fuzz_run(fuzz_reader *read, const uint8_t *data, size_t size,
             const struct fuzz_bound *bound);

/* Inside a reader: the harness itself has made more_bytes more of the input than the
 * fuzzer gave, to which the bounds apply from now on. */
void fuzz_input_grows(size_t more_bytes);

/* Whether a reader that returned st accepted its input; if not, the message is checked
 * and err cleared for the next. */
bool fuzz_accepted(enum status st, struct err *err);

/* Path of a file of that content in a directory of this process. name has no slash. */
const char *fuzz_file(const char *name, const void *data, size_t size);
const char *fuzz_path(const char *name);
const char *fuzz_dir(void);

/* The input breaks a promise. */
_Noreturn void fuzz_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif

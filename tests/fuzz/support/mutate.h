/* SPDX-License-Identifier: MIT
 *
 * mutate.h - mutations that keep a document's form and change what it says
 *
 * libFuzzer's own mutations of bytes mostly break a JSON document, and seldom make it
 * long. These change values, members and lengths of a document that can be read, or
 * cells and lines of a text, and repeat parts many times, so that a reader whose time
 * or memory grows faster than its input shows it. One in eight is libFuzzer's own.
 *
 * Threading: none.
 */
#ifndef SLM_TESTS_FUZZ_MUTATE_H
#define SLM_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);

/* libFuzzer's own mutation. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Keys and values that mean something to the reader; NULL ends them. */
typedef const char *const *mutate_words;

/* data[size] becomes another document of at most max_size bytes, whose length is
 * returned. */
size_t mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                   mutate_words words);
size_t mutate_text(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                   mutate_words words);

#endif

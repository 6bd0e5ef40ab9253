/* SPDX-License-Identifier: MIT
 *
 * prompts.h - prompts: lengths from distributions, texts that no cache knows
 *
 * Model of the world: a prompt is a shared prefix, if one is requested, then
 * LOAD_UNIQUE_WORDS words that spell a number of 64 bits that no other request has,
 * then words at random. Words are short and common, about a token each; the server
 * reports the exact number of tokens in `usage`, and load_prompts_calibrate() takes
 * that into account. Lengths and random words depend on seed and index alone, the
 * prefix and the number on the run's salt, too: a server may have kept the prompts of
 * an earlier run. All servers of one run get equal prompts.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_PROMPTS_H
#define SLM_HARNESS_SERVE_LOAD_PROMPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define LOAD_MAX_TOKENS   131072
#define LOAD_UNIQUE_WORDS 11 /* of six bits each */

enum load_dist_kind { LOAD_FIXED, LOAD_UNIFORM, LOAD_LOGNORMAL };

struct load_dist {
    enum load_dist_kind kind;
    double a, b; /* the number; least and most; median and sigma of the logarithm */
};

/* "512", "100-900" or "lognormal:400:0.8". Errors: ST_USAGE. */
enum status load_dist_parse(struct load_dist *d, const char *text, const char *what,
                            struct err *err);
/* The same text again. Returns buf. */
const char *load_dist_text(const struct load_dist *d, char *buf, size_t cap);
/* A draw, 1..LOAD_MAX_TOKENS. */
int load_dist_draw(const struct load_dist *d, uint64_t *state);

struct load_texts; /* of a file */

struct load_prompts {
    struct load_dist prompt, output; /* tokens */
    int n_prefix;                    /* tokens that all requests begin with */
    bool is_chat;                    /* /v1/chat/completions; else /v1/completions */
    bool ignore_eos; /* request whole outputs, by an extension of llama.cpp and vLLM */
    const char *model;
    uint64_t seed, salt;
    uint64_t n_before; /* requests of earlier levels: indices continue from there */
    double tokens_per_word, n_overhead; /* 1 and 0 until calibrated */
    int64_t
        n_known; /* tokens that the server had cached of prompts it could not know */
    struct load_texts *texts; /* NULL: words */
};

/* Prompts of a JSONL file: objects with "prompt", "messages" or "conversations"
 * (ShareGPT's). The first text of a person is the prompt, or its first part with a
 * text. The answer's length comes from "max_tokens", or else from the model's answer in
 * the file. Blank lines and conversations without a person's text are skipped. Errors:
 * ST_IO, ST_INPUT (line named; none at all), ST_NO_MEMORY. */
enum status load_texts_read(struct load_texts **t, const char *path, struct err *err);
size_t load_texts_count(const struct load_texts *t);
/* The number of texts that have the length of their answer. */
size_t load_texts_count_lengths(const struct load_texts *t);
void load_texts_free(struct load_texts *t);

/* load_body_fn of a struct load_prompts. */
enum status load_prompts_body(void *prompts, size_t index, char **body,
                              int *n_requested, struct err *err);

/* From the mean tokens, by the server's `usage`, of prompts of words_a and of words_b
 * words, words_a < words_b. Returns false, and changes nothing, where a word would have
 * less than .2 or more than 10 tokens. */
bool load_prompts_calibrate(struct load_prompts *p, int words_a, double tokens_a,
                            int words_b, double tokens_b);

/* Tokens of a cold prompt that a server may call cached: its template, and the few
 * words that another prompt has by chance in the same place. */
double load_prompts_cold(const struct load_prompts *p);

#endif

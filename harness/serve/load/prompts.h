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

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/client/record.h"

#define LOAD_MAX_TOKENS   131072
#define LOAD_UNIQUE_WORDS 11 /* of six bits each */

enum load_api { LOAD_CHAT, LOAD_COMPLETIONS, LOAD_EMBEDDINGS };

enum load_dist_kind { LOAD_FIXED, LOAD_UNIFORM, LOAD_LOGNORMAL };

struct load_dist {
    enum load_dist_kind kind;
    double a, b; /* the number; least and most; median and sigma of the logarithm */
};

/* Tokens: "512", "100-900" or "lognormal:400:0.8". Errors: ST_USAGE. */
enum status load_dist_parse(struct load_dist *d, const char *text, const char *what,
                            struct err *err);
/* The same text again. Returns buf. */
const char *load_dist_text(const struct load_dist *d, char *buf, size_t cap);
/* The mean of its draws, about. */
double load_dist_mean(const struct load_dist *d);
/* A draw, 1..LOAD_MAX_TOKENS. */
int load_dist_draw(const struct load_dist *d, uint64_t *state);

/* Seconds in the same notation, from 0 to a day, and a draw. */
enum status load_dist_parse_s(struct load_dist *d, const char *text, const char *what,
                              struct err *err);
double load_dist_draw_s(const struct load_dist *d, uint64_t *state);

struct load_texts; /* of a file */

struct load_prompts {
    struct load_dist prompt, output; /* tokens */
    int n_prefix;                    /* tokens that all requests begin with */
    enum load_api api;
    bool ignore_eos; /* request whole outputs, by an extension of llama.cpp and vLLM */
    const char *model;
    json_t *fields; /* that requests have, too; NULL: none */
    uint64_t seed, salt;
    uint64_t n_before; /* requests of earlier levels: indices continue from there */
    uint64_t n_skip; /* request n_before + i has line i + n_before - n_skip of a file */
    double tokens_per_word, n_overhead; /* 1 and 0 until calibrated */
    int64_t
        n_known; /* tokens that the server had cached of prompts it could not know */
    struct load_texts *texts; /* NULL: words */
};

/* Prompts of a file. JSONL: objects with "prompt", "messages" or "conversations"
 * (ShareGPT's). The first text of a person is the prompt, or its first part with a
 * text. The answer's length comes from "max_tokens", or else from the model's answer in
 * the file. Blank lines and conversations without a person's text are skipped. A trace
 * has lengths instead of texts, and times: Mooncake's (JSONL) and Azure's (CSV) public
 * forms, or our "prompt_tokens" and "at" (texts.h). Errors: ST_IO, ST_INPUT (line
 * named; none at all), ST_NO_MEMORY. */
enum status load_texts_read(struct load_texts **t, const char *path, struct err *err);
size_t load_texts_count(const struct load_texts *t);
/* The number of texts that have the length of their answer. */
size_t load_texts_count_lengths(const struct load_texts *t);
void load_texts_free(struct load_texts *t);

/* Requests a second, mean of a file whose lines have times; 0: they have none. */
double load_texts_rate(const struct load_texts *t);
/* The times of its first n requests from the first on, at that rate instead; again from
 * the first line where they are fewer. */
void load_texts_times(const struct load_texts *t, double *at_s, size_t n, double rate);

/* load_body_fn of a struct load_prompts. */
enum status load_prompts_body(void *prompts, size_t user, struct load_record *r,
                              char **body, struct err *err);

/* The prompt of request `index`, or of the conversation that begins with it, malloc'ed;
 * sets r->n_requested and r->n_known. NULL: no memory. */
char *load_prompts_first(const struct load_prompts *p, size_t index,
                         struct load_record *r);

/* About n_tokens of words, which other texts may have, too; malloc'ed. NULL: no memory.
 */
char *load_prompts_words(const struct load_prompts *p, int n_tokens, uint64_t *state);

/* The body with that prompt or those messages, whose reference it takes; NULL: no
 * memory, or a prompt of NULL. */
json_t *load_prompts_request(const struct load_prompts *p, json_t *prompt,
                             int n_requested);

/* From the mean tokens, by the server's `usage`, of prompts of words_a and of words_b
 * words, words_a < words_b. Returns false, and changes nothing, where a word would have
 * less than .2 or more than 10 tokens. */
bool load_prompts_calibrate(struct load_prompts *p, int words_a, double tokens_a,
                            int words_b, double tokens_b);

/* Tokens of a cold prompt that a server may call cached: its template, and the few
 * words that another prompt has by chance in the same place. */
double load_prompts_cold(const struct load_prompts *p);

#endif

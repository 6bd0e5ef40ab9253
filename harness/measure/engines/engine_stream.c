/* SPDX-License-Identifier: MIT
 *
 * engine_stream.c - requests to a server, and what its answers contain
 */
#include "harness/measure/engines/engine_talk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/base/random.h"
#include "harness/base/format.h"

#define TOGETHER  0.1 /* of a token's mean time: pieces so close came together */
#define MIN_VOCAB 64

/* Vocabularies begin with controls and bytes, and many end with more controls. */
static int token_from(uint64_t *state, int n_vocab)
{
    const int n = n_vocab > MIN_VOCAB ? n_vocab : MIN_VOCAB;
    const int first = n > 1024 ? 300 : n / 4;
    const int end = n > 1024 ? n / 2 : n;

    return first + (int)(random_bits(state) % (uint64_t)(end - first));
}

/* Common words, each a token of most vocabularies. */
static void put_words(FILE *f, int n, uint64_t *state)
{
    static const char *const words[] = {"the", "of",   "and",  "to",   "in",   "is",
                                        "it",  "that", "for",  "was",  "on",   "are",
                                        "as",  "with", "they", "time", "from", "have",
                                        "or",  "one",  "had",  "by",   "word", "but"};

    fputc('"', f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s%s", i ? " " : "",
                words[random_bits(state) % (sizeof words / sizeof *words)]);
    fputc('"', f);
}

static void put_model(FILE *f, const char *name)
{
    json_t *text = json_string(name);
    char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;

    if (quoted)
        fprintf(f, "\"model\":%s,", quoted);
    free(quoted);
    json_decref(text);
}

char *engine_talk_body(const struct engine_talk *t, int n_prompt, int n_output,
                       uint64_t seed)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        return NULL;
    fputc('{', f);
    if (t->model)
        put_model(f, t->model);
    fputs("\"prompt\":", f);
    if (t->in_words) {
        put_words(f, n_prompt, &seed);
    } else {
        for (int i = 0; i < n_prompt; i++)
            fprintf(f, "%c%d", i ? ',' : '[', token_from(&seed, t->n_vocab));
        fputc(']', f);
    }
    /* the last three are extensions: vLLM's and llama.cpp's, and twice llama.cpp's */
    fprintf(f,
            ",\"max_tokens\":%d,\"temperature\":0,\"stream\":true,"
            "\"stream_options\":{\"include_usage\":true},\"ignore_eos\":true,"
            "\"cache_prompt\":false,\"timings_per_token\":true}",
            n_output);
    return fclose(f) ? (free(text), NULL) : text;
}

/* ---- times of tokens ------------------------------------------------------------- */

static int64_t tokens_after_first(const struct load_record *r)
{
    int64_t n = 0;

    for (int i = 0; i + 1 < r->n_pieces; i++)
        n += r->gap_tokens[i];
    return n;
}

static void add(struct engine_figures *f, double ms, int64_t n_tokens)
{
    for (int64_t i = 0; i < n_tokens && f->n < ENGINE_MAX_SAMPLES; i++)
        f->tok_per_s[f->n++] = (double)n_tokens * 1e3 / ms;
}

/* Each run of pieces that came together, with the time before it. What came together
 * with the first piece has no time of its own. */
static void add_runs(struct engine_figures *f, const struct load_record *r,
                     double mean_ms)
{
    const int n = r->n_pieces - 1;
    int i = 0;

    while (i < n && (double)r->gap_ms[i] < TOGETHER * mean_ms)
        i++;
    while (i < n) {
        double ms = (double)r->gap_ms[i];
        int64_t n_tokens = r->gap_tokens[i];

        for (i++; i < n && (double)r->gap_ms[i] < TOGETHER * mean_ms; i++) {
            ms += (double)r->gap_ms[i];
            n_tokens += r->gap_tokens[i];
        }
        add(f, ms, n_tokens);
    }
}

enum status engine_read_stream(struct engine_figures *f, const struct load_record *r,
                               struct err *err)
{
    const double all_ms = (double)(r->last_ns - r->first_ns) * 1e-6;
    const int64_t known = tokens_after_first(r) + r->n_first_tokens;
    const int64_t total = load_record_tokens(r);
    const int64_t n = (total > known ? total : known) - r->n_first_tokens;

    f->n = 0;
    f->mean = 0;
    f->deviation = NAN;
    if (r->n_pieces < 2 || n < 1 || !(all_ms > 0) || !(all_ms * 1e6 >= (double)n))
        return err_set(err, ST_INPUT,
                       "its answer came in %d piece%s at one time: no time of a token",
                       r->n_pieces, r->n_pieces == 1 ? "" : "s");
    if (total <= known)
        add_runs(f, r, all_ms / (double)n);
    if (!f->n)
        f->mean = (double)n * 1e3 / all_ms;
    return ST_OK;
}

/* ---- what it is ------------------------------------------------------------------ */

void engine_read_server_version(char *version, size_t cap, const char *text, size_t len)
{
    json_t *o = json_try(text, len, (struct json_limit){len, len}, JSON_LOSSY);
    const char *version_text = json_text(json_object_get(o, "build_info"));

    if (!version_text)
        version_text = json_text(json_object_get(o, "version"));
    /* what llama.cpp reports if it was built outside its repository */
    if (version_text && *version_text && strcmp(version_text, "b0-unknown"))
        text_harmless(version, cap, version_text);
    json_decref(o);
}

void engine_read_version_words(char *version, size_t cap, const char *words)
{
    const char *at = strstr(words, "version: ");
    char commit[24], shown[24];
    int number;

    if (!at || sscanf(at, "version: %9d (%23[^)])", &number, commit) != 2 ||
        !strcmp(commit, "unknown"))
        return;
    snprintf(version, cap, "%s (build %d)", text_harmless(shown, sizeof shown, commit),
             number);
}

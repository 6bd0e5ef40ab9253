/* SPDX-License-Identifier: MIT
 *
 * engine_output.c - JSON and regular expressions on the output of other programs
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "harness/measure/engines/engine_output.h"

#include <jansson.h>
#include <math.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"

#define MATCH_STEPS    100000u /* of one match */
#define MATCH_HEAP_KIB 16384u
#define MAX_TOK_PER_S  1e9
#define MIN_TOK_PER_S  1e-9 /* whose time is a number, too */

static bool is_speed(double v)
{
    return v >= MIN_TOK_PER_S && v <= MAX_TOK_PER_S;
}

/* ---- JSON ------------------------------------------------------------------------ */

/* The next value in text[len] from *at on that is an object or a list; NULL: none. A
 * bracket that begins no value is passed over, a number of times only: each costs what
 * is behind it. */
static json_t *next_value(const char *text, size_t len, size_t *at)
{
    for (int tries = 0; tries < 100 && *at < len; tries++) {
        json_error_t error;
        json_t *value;

        while (*at < len && text[*at] != '{' && text[*at] != '[')
            ++*at;
        if (*at == len)
            break;
        value = json_loadb(text + *at, len - *at,
                           JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
        *at += value ? (size_t)error.position : 1;
        if (value)
            return value;
    }
    return NULL;
}

/* The last test of the output, which becomes the caller's: llama-bench prints tests as
 * a list or as lines. */
static json_t *last_test(const char *text, size_t len)
{
    json_t *found = NULL, *value;
    size_t at = 0;

    while ((value = next_value(text, len, &at)) != NULL) {
        json_t *test = value;

        if (json_is_array(value))
            test = json_array_get(value, json_array_size(value) - 1);
        if (json_is_object(test) && json_object_get(test, "avg_ts")) {
            json_decref(found);
            found = json_incref(test);
        }
        json_decref(value);
    }
    return found;
}

/* A whole number there; 0: none. */
static int64_t whole(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static enum status check_requested(const json_t *test,
                                   const struct engine_requested *requested,
                                   struct err *err)
{
    const int64_t n_threads = whole(test, "n_threads");

    if (whole(test, "n_gen") != requested->n_gen ||
        (!requested->n_gen && whole(test, "n_prompt") != requested->n_prompt) ||
        (n_threads && n_threads != requested->n_threads))
        return err_set(
            err, ST_INPUT,
            "it measured something else: n_prompt %lld, n_gen %lld, n_threads %lld "
            "instead of %d, %d, %d",
            (long long)whole(test, "n_prompt"), (long long)whole(test, "n_gen"),
            (long long)n_threads, requested->n_prompt, requested->n_gen,
            requested->n_threads);
    return ST_OK;
}

static void read_version(struct engine_figures *f, const json_t *test)
{
    const char *commit = json_string_value(json_object_get(test, "build_commit"));
    const int64_t number = whole(test, "build_number");
    char shown[48];

    if (!commit || !strcmp(commit, "unknown"))
        return;
    snprintf(f->version, sizeof f->version, "%s",
             text_harmless(shown, sizeof shown, commit));
    if (number > 0)
        text_append(f->version, sizeof f->version, " (build %lld)", (long long)number);
}

static enum status read_samples(struct engine_figures *f, const json_t *list,
                                double n_tokens, struct err *err)
{
    const size_t n = json_array_size(list);

    for (size_t i = 0; i < n && i < ENGINE_MAX_SAMPLES; i++) {
        const double v = n_tokens * 1e9 / json_number_value(json_array_get(list, i));

        if (!is_speed(v))
            return err_set(err, ST_INPUT, "sample %zu of its samples_ns is no time",
                           i + 1);
        f->tok_per_s[f->n++] = v;
    }
    return ST_OK;
}

static enum status read_test(struct engine_figures *f, const json_t *test,
                             const struct engine_requested *requested, struct err *err)
{
    const int n_tokens = requested->n_gen ? requested->n_gen : requested->n_prompt;

    if (check_requested(test, requested, err))
        return err->code;
    read_version(f, test);
    f->mean = json_number_value(json_object_get(test, "avg_ts"));
    f->deviation = json_number_value(json_object_get(test, "stddev_ts"));
    if (f->deviation < 0)
        f->deviation = NAN;
    if (read_samples(f, json_object_get(test, "samples_ns"), n_tokens, err))
        return err->code;
    return f->n || is_speed(f->mean)
               ? ST_OK
               : err_set(err, ST_INPUT, "neither samples_ns nor avg_ts is a figure");
}

enum status engine_read_llama_bench(struct engine_figures *f, const char *text,
                                    size_t len,
                                    const struct engine_requested *requested,
                                    struct err *err)
{
    json_t *test = last_test(text, len);
    enum status st;

    memset(f, 0, sizeof *f);
    if (!test)
        return err_set(err, ST_INPUT,
                       "its output has no test as `llama-bench -o json` prints it");
    st = read_test(f, test, requested, err);
    json_decref(test);
    return st;
}

static enum status take_number(struct engine_figures *f, const json_t *value,
                               const char *path, struct err *err)
{
    const double v = json_number_value(value);

    if (!json_is_number(value) || !is_speed(v))
        return err_set(err, ST_INPUT,
                       "%s of its JSON is no number of tokens per second",
                       format_path(path).text);
    if (f->n < ENGINE_MAX_SAMPLES)
        f->tok_per_s[f->n++] = v;
    return ST_OK;
}

/* The value that a path leads to, borrowed; NULL: none. */
static const json_t *follow(const json_t *value, const char *path)
{
    char copy[256], *save = NULL;

    snprintf(copy, sizeof copy, "%s", path);
    for (char *part = strtok_r(copy, ".", &save); part && value;
         part = strtok_r(NULL, ".", &save))
        value = json_is_array(value) ? json_array_get(value, strtoul(part, NULL, 10))
                                     : json_object_get(value, part);
    return value;
}

enum status engine_read_json(struct engine_figures *f, const char *text, size_t len,
                             const char *path, struct err *err)
{
    const json_t *found = NULL;
    json_t *value = NULL;
    enum status st = ST_OK;
    size_t at = 0;

    memset(f, 0, sizeof *f);
    f->deviation = NAN;
    while (!found && (value = next_value(text, len, &at)) != NULL) {
        found = follow(value, path);
        if (!found)
            json_decref(value);
    }
    if (!found)
        return err_set(err, ST_INPUT, "its output has no JSON with %s",
                       format_path(path).text);
    if (json_is_array(found)) {
        for (size_t i = 0; i < json_array_size(found) && st == ST_OK; i++)
            st = take_number(f, json_array_get(found, i), path, err);
        if (st == ST_OK && !f->n)
            st = err_set(err, ST_INPUT, "%s of its JSON is an empty list",
                         format_path(path).text);
    } else {
        st = take_number(f, found, path, err);
    }
    json_decref(value);
    return st;
}

/* ---- regular expressions --------------------------------------------------------- */

static enum status compile(pcre2_code **code, const char *regex, const char *what,
                           struct err *err)
{
    int number;
    size_t at;

    *code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE,
                          &number, &at, NULL);
    if (!*code) {
        char message[120] = "";

        pcre2_get_error_message(number, (PCRE2_UCHAR *)message, sizeof message);
        return err_set(err, ST_USAGE,
                       "%s: the regular expression %s: %s at character %zu", what,
                       format_path(regex).text, message, at + 1);
    }
    return ST_OK;
}

enum status engine_check_regex(const char *regex, const char *what, struct err *err)
{
    pcre2_code *code = NULL;
    const enum status st = compile(&code, regex, what, err);

    pcre2_code_free(code);
    return st;
}

/* The number at text[n], which need not end there. */
static double number_at(const char *text, size_t n)
{
    char copy[64], *end;
    double v;

    snprintf(copy, sizeof copy, "%.*s", (int)(n < sizeof copy ? n : sizeof copy - 1),
             text);
    v = strtod(copy, &end);
    return end > copy ? v : NAN;
}

static enum status take_matches(struct engine_figures *f, const char *text, size_t len,
                                pcre2_code *code, pcre2_match_data *match,
                                pcre2_match_context *limits, struct err *err)
{
    for (size_t at = 0; at <= len && f->n < ENGINE_MAX_SAMPLES;) {
        const int n = pcre2_match(code, (PCRE2_SPTR)text, len, at, 0, match, limits);
        const size_t *v = pcre2_get_ovector_pointer(match);
        double speed;
        size_t group;

        if (n == PCRE2_ERROR_NOMATCH)
            break;
        if (n < 0)
            return err_set(err, ST_INPUT,
                           "the regular expression takes too long on its output");
        group = n > 1 && v[2] != PCRE2_UNSET ? 2 : 0;
        speed = v[group + 1] >= v[group]
                    ? number_at(text + v[group], v[group + 1] - v[group])
                    : NAN;
        if (!is_speed(speed))
            return err_set(err, ST_INPUT,
                           "the text that the regular expression finds in its output "
                           "is not a number of tokens per second");
        f->tok_per_s[f->n++] = speed;
        at = v[1] > v[0] ? v[1] : v[1] + 1;
    }
    return f->n ? ST_OK
                : err_set(err, ST_INPUT,
                          "the regular expression finds nothing in its output");
}

enum status engine_read_regex(struct engine_figures *f, const char *text, size_t len,
                              const char *regex, struct err *err)
{
    pcre2_code *code = NULL;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    enum status st;

    memset(f, 0, sizeof *f);
    f->deviation = NAN;
    if (compile(&code, regex, "its figure", err))
        return err->code;
    match = pcre2_match_data_create_from_pattern(code, NULL);
    limits = pcre2_match_context_create(NULL);
    if (match && limits) {
        pcre2_set_match_limit(limits, MATCH_STEPS);
        pcre2_set_heap_limit(limits, MATCH_HEAP_KIB);
        st = take_matches(f, text, len, code, match, limits, err);
    } else {
        st = err_set(err, ST_NO_MEMORY, "no memory for a regular expression");
    }
    pcre2_match_context_free(limits);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return st;
}

/* SPDX-License-Identifier: MIT
 *
 * trace.c - lines of recorded traffic: when, how long, what they share
 */
#include "harness/serve/load/texts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/json_read.h"
#include "harness/base/order.h"

#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens"

/* ---- a line ---------------------------------------------------------------------- */

/* A prompt may have been recorded without a token; a request has one. */
static enum status set_tokens(int *out, int64_t n, const char *what, struct err *err)
{
    if (n < 0 || n > LOAD_MAX_TOKENS)
        return err_set(err, ST_INPUT, "%s is not 0..%d", what, LOAD_MAX_TOKENS);
    *out = n ? (int)n : 1;
    return ST_OK;
}

static enum status take_tokens(int *out, const json_t *o, const char *key,
                               struct err *err)
{
    int64_t n = -1;

    if (!json_object_get(o, key))
        return ST_OK;
    json_whole(json_object_get(o, key), &n);
    return set_tokens(out, n, key, err);
}

static enum status take_blocks(struct load_text *text, const json_t *ids,
                               struct err *err)
{
    const size_t n = json_array_size(ids);

    text->block = n ? malloc(n * sizeof *text->block) : NULL;
    if (n && !text->block)
        return err_set(err, ST_NO_MEMORY, "no memory for hash_ids");
    for (size_t i = 0; i < n; i++)
        if (!json_bits(json_array_get(ids, i), &text->block[i]))
            return err_set(err, ST_INPUT, "hash_ids has an element that is no integer");
    text->n_blocks = n;
    return ST_OK;
}

enum status trace_read_object(struct load_text *text, const json_t *o, struct err *err)
{
    const bool is_mooncake = json_object_get(o, "input_length") != NULL;
    const json_t *at = json_object_get(o, is_mooncake ? "timestamp" : "at");
    enum status st = take_tokens(&text->n_prompt, o, "input_length", err);
    double v;

    if (json_finite(at, &v) && fabs(v) < 1e15)
        text->at_s = is_mooncake ? v * 1e-3 : v;
    if (st == ST_OK)
        st = take_tokens(&text->n_output, o, "output_length", err);
    if (st == ST_OK)
        st = take_tokens(&text->n_prompt, o, "prompt_tokens", err);
    return st ? st : take_blocks(text, json_object_get(o, "hash_ids"), err);
}

bool trace_is_header(const char *line, size_t len)
{
    return len >= sizeof AZURE - 1 && !memcmp(line, AZURE, sizeof AZURE - 1);
}

static bool is_within(int n, int least, int most)
{
    return n >= least && n <= most;
}

enum status trace_read_azure(struct load_text *text, const char *line, size_t len,
                             struct err *err)
{
    struct tm day = {.tm_year = 0};
    long long n_prompt, n_output;
    char buf[120], zone[24] = "";
    double seconds;
    int end = 0;

    snprintf(buf, sizeof buf, "%.*s", len < sizeof buf ? (int)len : 0, line);
    if (sscanf(buf, "%d-%d-%d%*1[ T]%d:%d:%lf%23[^,],%lld,%lld%n", &day.tm_year,
               &day.tm_mon, &day.tm_mday, &day.tm_hour, &day.tm_min, &seconds, zone,
               &n_prompt, &n_output, &end) != 9 &&
        sscanf(buf, "%d-%d-%d%*1[ T]%d:%d:%lf,%lld,%lld%n", &day.tm_year, &day.tm_mon,
               &day.tm_mday, &day.tm_hour, &day.tm_min, &seconds, &n_prompt, &n_output,
               &end) != 8)
        end = 0;
    if (!end || strspn(buf + end, "\r ") != strlen(buf + end) ||
        !is_within(day.tm_year, 1970, 9999) || !is_within(day.tm_mon, 1, 12) ||
        !is_within(day.tm_mday, 1, 31) || !is_within(day.tm_hour, 0, 23) ||
        !is_within(day.tm_min, 0, 59) || !(seconds >= 0 && seconds < 61))
        return err_set(err, ST_INPUT,
                       "no time and two numbers of tokens as in `" AZURE "`");
    const int mday = day.tm_mday;
    day.tm_year -= 1900;
    day.tm_mon--;
    text->at_s = (double)timegm(&day) + seconds; /* zones of one file are equal */
    if (day.tm_mday != mday)
        return err_set(err, ST_INPUT, "its month has no day %d", mday);
    return set_tokens(&text->n_prompt, n_prompt, "ContextTokens", err) ||
                   set_tokens(&text->n_output, n_output, "GeneratedTokens", err)
               ? err->code
               : ST_OK;
}

/* ---- all lines ------------------------------------------------------------------- */

static int by_time(const void *x, const void *y)
{
    const struct load_text *a = x, *b = y;

    ORDER_BY((a->at_s > b->at_s) - (a->at_s < b->at_s));
    return (a->number > b->number) - (a->number < b->number);
}

struct seen {
    uint64_t block;
    size_t line; /* the first that has it */
};

static int by_block(const void *x, const void *y)
{
    const struct seen *a = x, *b = y;

    ORDER_BY((a->block > b->block) - (a->block < b->block));
    return (a->line > b->line) - (a->line < b->line);
}

/* A block's first line is the first of its entries. */
static size_t first_line(const struct seen *seen, size_t n, uint64_t block)
{
    size_t lo = 0;

    while (lo < n) {
        const size_t at = lo + (n - lo) / 2;

        if (seen[at].block < block)
            lo = at + 1;
        else
            n = at;
    }
    return seen[lo].line;
}

static enum status find_known(struct load_text *v, size_t n, struct err *err)
{
    size_t n_seen = 0, at = 0;
    struct seen *seen;

    for (size_t i = 0; i < n; i++)
        n_seen += v[i].n_blocks;
    seen = malloc((n_seen + 1) * sizeof *seen);
    if (!seen)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu blocks", n_seen);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < v[i].n_blocks; k++)
            seen[at++] = (struct seen){v[i].block[k], i};
    qsort(seen, n_seen, sizeof *seen, by_block);
    for (size_t i = 0; i < n; i++)
        while (v[i].n_known < v[i].n_blocks &&
               first_line(seen, n_seen, v[i].block[v[i].n_known]) < i)
            v[i].n_known++;
    free(seen);
    return ST_OK;
}

enum status trace_sort(struct load_text *v, size_t n, struct err *err)
{
    size_t n_timed = 0;

    for (size_t i = 0; i < n; i++)
        n_timed += isfinite(v[i].at_s) != 0;
    if (n_timed && n_timed < n)
        return err_set(err, ST_INPUT, "%zu of %zu lines have no time", n - n_timed, n);
    if (n_timed)
        qsort(v, n, sizeof *v, by_time);
    if (n_timed && !(v[n - 1].at_s > v[0].at_s))
        return err_set(err, ST_INPUT, "all lines have the same time");
    return find_known(v, n, err);
}

/* SPDX-License-Identifier: MIT
 *
 * server_counts.c - lines of /metrics as counts
 */
#include "harness/serve/load/server_counts.h"

#include <math.h>
#include <string.h>

#define MAX_COUNT 1e15 /* a larger number is no count */

#define EACH(which, name)                        \
    {which, "slm_" name}, {which, "vllm:" name}, \
    {                                            \
        which, "sglang:" name                    \
    }

static const struct {
    int which;
    const char *name;
} names[] = {
    EACH(COUNT_PROMPT, "prompt_tokens_total"),
    {COUNT_PROMPT, "llamacpp:prompt_tokens_total"},
    {COUNT_CACHED, "slm_cached_tokens_total"},
    {COUNT_CACHED, "sglang:cached_tokens_total"},
    {COUNT_CACHED, "vllm:prefix_cache_hits_total"},
    {COUNT_CACHED, "vllm:gpu_prefix_cache_hits_total"},
    {COUNT_OUTPUT, "slm_generated_tokens_total"},
    {COUNT_OUTPUT, "vllm:generation_tokens_total"},
    {COUNT_OUTPUT, "sglang:generation_tokens_total"},
    {COUNT_OUTPUT, "llamacpp:tokens_predicted_total"},
    EACH(COUNT_TTFT_S, "time_to_first_token_seconds_sum"),
    EACH(COUNT_N_TTFT, "time_to_first_token_seconds_count"),
    {COUNT_N_PREEMPTED, "slm_preemptions_total"},
    {COUNT_N_PREEMPTED, "vllm:num_preemptions_total"},
};

/* Behind the labels that begin at `at`, if any do; their texts may have any character.
 */
static const char *after_labels(const char *at)
{
    bool quoted = false;

    if (*at != '{')
        return at;
    for (at++; *at && *at != '\n' && (quoted || *at != '}'); at++) {
        if (*at == '\\' && quoted && at[1])
            at++;
        else
            quoted ^= *at == '"';
    }
    return *at == '}' ? at + 1 : at;
}

static void read_line(struct server_counts *c, const char *line)
{
    const size_t n = strcspn(line, "{ \n");

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *at = after_labels(line + n);
        double *sum = &c->v[names[i].which], v;
        char *end;

        if (strlen(names[i].name) != n || strncmp(names[i].name, line, n) ||
            (*at != ' ' && *at != '\t'))
            continue;
        v = strtod(at, &end);
        if (end > at && v >= 0 && v < MAX_COUNT)
            *sum = isnan(*sum) ? v : *sum + v;
    }
}

void server_counts_read(struct server_counts *c, const char *text)
{
    for (int i = 0; i < N_COUNTS; i++)
        c->v[i] = NAN;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (*text != '#')
            read_line(c, text);
}

static double since(const struct server_counts *before,
                    const struct server_counts *after, int which)
{
    const double d = after->v[which] - before->v[which];

    return d >= 0 && d < MAX_COUNT ? d : (double)NAN;
}

static int64_t whole(double v)
{
    return isnan(v) ? FIELD_NO_INT : (int64_t)v;
}

void server_counts_fill(struct row *row, const struct server_counts *before,
                        const struct server_counts *after)
{
    const double n = since(before, after, COUNT_N_TTFT);

    row->server_prompt_tokens = whole(since(before, after, COUNT_PROMPT));
    row->server_cached_tokens = whole(since(before, after, COUNT_CACHED));
    row->server_output_tokens = whole(since(before, after, COUNT_OUTPUT));
    row->server_preemptions = whole(since(before, after, COUNT_N_PREEMPTED));
    row->server_ttft_s = n > 0 ? since(before, after, COUNT_TTFT_S) / n : (double)NAN;
}

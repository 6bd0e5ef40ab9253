/* SPDX-License-Identifier: MIT
 *
 * scheduler_mark.c - where models that need checkpoints keep some: where later prompts
 * are likely to part from this text, and now and then
 */
#include "harness/serve/scheduler/scheduler_impl.h"

enum {
    /* Templates end a prompt with what the answer begins with, and may write it
     * otherwise once the answer is part of the conversation. */
    PROMPT_TAIL = 16,
    INTERVAL = 512,
};

int scheduler_prompt_mark(const struct completion *c)
{
    return c->n_prompt > PROMPT_TAIL ? c->n_prompt - PROMPT_TAIL : 0;
}

/* The last position in the interval's grid; 0: another one soon follows it. */
static int interval_mark(const struct completion *c, int end)
{
    const int at = end / INTERVAL * INTERVAL, prompt = scheduler_prompt_mark(c);

    return prompt >= at && prompt < at + INTERVAL / 2 ? 0 : at;
}

static void mark_part(struct scheduler *s, const struct completion *c, int n)
{
    const int end = c->n_done + n < c->n ? c->n_done + n : c->n; /* without a draft */
    const struct {
        int at;
        enum slm_mark why;
    } marks[SLM_MAX_MARKS] = {
        {c->n_branch, SLM_MARK_BRANCH},
        {scheduler_prompt_mark(c), SLM_MARK_END},
        {interval_mark(c, end), SLM_MARK_INTERVAL},
    };

    for (int i = 0; i < SLM_MAX_MARKS; i++)
        if (marks[i].at > c->n_done && marks[i].at <= end)
            slm_prefix_mark(s->params.m, c->seq, marks[i].at, marks[i].why);
}

/* The next place where another prompt parts from that of c, whose beginning it could
 * have from it. */
static void find_branch(const struct scheduler *s, struct completion *c)
{
    for (int seq = 0; seq < s->n_sequences; seq++) {
        const struct completion *other = s->running[seq];
        int n;

        if (!other || other == c || other->n_done >= other->n_prefill)
            continue;
        n = scheduler_common(c, other,
                             other->n <= c->n_prefill ? other->n - 1 : c->n_prefill);
        if (n > c->n_done && n >= other->n_done + SCHEDULER_MIN_SHARED &&
            (c->n_branch <= c->n_done || n < c->n_branch))
            c->n_branch = n;
    }
}

void scheduler_mark(struct scheduler *s)
{
    if (!s->params.keep_prefixes || slm_info(s->params.m)->n_checkpoints == 0)
        return;
    for (int i = 0; i < s->n_parts; i++)
        if (s->part_of[i]->n_done < s->part_of[i]->n_prefill)
            find_branch(s, s->part_of[i]);
    for (int i = 0; i < s->n_parts; i++)
        mark_part(s, s->part_of[i], s->parts[i].n);
}

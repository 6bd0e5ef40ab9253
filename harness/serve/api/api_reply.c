/* SPDX-License-Identifier: MIT
 *
 * api_reply.c - JSON of answers, written as it comes
 */
#include "harness/serve/api/api_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/serve/api/reply_form.h"

/* Longest token whose text is given; the others are cut. */
#define MAX_TOKEN 1024

/* ---- a choice -------------------------------------------------------------------- */

const char *reply_reason(const struct reply_choice *c)
{
    return c->end != COMPLETION_STOP ? "length" : c->calls.n ? "tool_calls" : "stop";
}

void reply_choice_keep(struct reply_choice *c, const struct completion_piece *piece)
{
    textbuf_put(&c->text, piece->text, piece->len);
    textbuf_put(&c->thought, piece->thought, piece->n_thought);
    textbuf_put(&c->calls.list, piece->call, piece->n_call);
    for (size_t i = 0; i < piece->n_call; i++)
        c->calls.n += piece->call[i] == CALL_NAME;
}

size_t reply_choice_bytes(const struct reply_choice *c)
{
    size_t n = c->text.len + c->thought.len + c->calls.list.len;

    for (int i = 0; i < REPLY_N_LISTS; i++)
        n += c->logprobs.list[i].len;
    return n;
}

void reply_choice_free(struct reply_choice *c)
{
    textbuf_free(&c->text);
    textbuf_free(&c->thought);
    textbuf_free(&c->calls.list);
    for (int i = 0; i < REPLY_N_LISTS; i++)
        textbuf_free(&c->logprobs.list[i]);
    free(c->stop);
    c->stop = NULL;
}

void reply_head_free(struct reply_head *head)
{
    textbuf_free(&head->blocks.text);
    textbuf_free(&head->blocks.done);
    free(head->echo);
}

/* ---- log-probabilities ----------------------------------------------------------- */

struct token_text {
    char bytes[MAX_TOKEN];
    size_t len;
};

size_t reply_token(const struct tokenizer *tok, int32_t id, char *buf, size_t cap)
{
    const char *spelled;
    size_t n = tokenizer_piece(tok, id, buf, cap);

    if ((n && n <= cap) || tokenizer_is_unused(tok, id))
        return n <= cap ? n : 0;
    spelled = tokenizer_text(tok, id, &n);
    n = n < cap ? n : cap;
    memcpy(buf, spelled, n);
    return n;
}

static void read_token(struct token_text *t, const struct tokenizer *tok, int32_t id)
{
    t->len = reply_token(tok, id, t->bytes, sizeof t->bytes);
}

static void comma(struct textbuf *b)
{
    if (textbuf_left(b))
        textbuf_puts(b, ",");
}

/* In completions a token that is part of a character is "bytes:\xe2\x82", so that two
 * of them are two keys. */
static void put_name(struct textbuf *out, const struct token_text *t)
{
    char name[8 + 4 * MAX_TOKEN];
    size_t n = 0;

    if (utf8_is_valid(t->bytes, t->len)) {
        textbuf_put_json(out, t->bytes, t->len);
        return;
    }
    n += (size_t)snprintf(name, sizeof name, "bytes:");
    for (size_t i = 0; i < t->len; i++)
        n += (size_t)snprintf(name + n, sizeof name - n, "\\x%02x",
                              (unsigned char)t->bytes[i]);
    textbuf_put_json(out, name, n);
}

/* "token": "a", "logprob": -1, "bytes": [97] */
static void put_token(struct textbuf *out, const struct tokenizer *tok, int32_t id,
                      float logprob)
{
    struct token_text t;

    read_token(&t, tok, id);
    textbuf_puts(out, "{\"token\":");
    textbuf_put_json(out, t.bytes, t.len);
    textbuf_puts(out, ",\"logprob\":");
    textbuf_put_number(out, (double)logprob);
    textbuf_puts(out, ",\"bytes\":[");
    for (size_t i = 0; i < t.len; i++)
        textbuf_printf(out, "%s%d", i ? "," : "", (unsigned char)t.bytes[i]);
    textbuf_puts(out, "]");
}

static void add_to_chat(struct textbuf *list, const struct completion_piece *piece,
                        const struct tokenizer *tok)
{
    comma(list);
    put_token(list, tok, piece->token, piece->logprob);
    textbuf_puts(list, ",\"top_logprobs\":[");
    for (int i = 0; i < piece->n_top; i++) {
        if (i)
            textbuf_puts(list, ",");
        put_token(list, tok, piece->top[i].token, piece->top[i].logprob);
        textbuf_puts(list, "}");
    }
    textbuf_puts(list, "]}");
}

static void add_to_completion(struct textbuf list[REPLY_N_LISTS],
                              const struct completion_piece *piece,
                              const struct tokenizer *tok)
{
    struct textbuf *tops = &list[REPLY_TOPS];
    struct token_text t;

    for (int i = 0; i < REPLY_N_LISTS; i++)
        comma(&list[i]);
    read_token(&t, tok, piece->token);
    put_name(&list[REPLY_TOKENS], &t);
    textbuf_put_number(&list[REPLY_LOGPROBS], (double)piece->logprob);
    textbuf_puts(tops, "{");
    for (int i = 0; i < piece->n_top; i++) {
        if (i)
            textbuf_puts(tops, ",");
        read_token(&t, tok, piece->top[i].token);
        if (t.len)
            put_name(tops, &t);
        else /* padding: two of them are two keys */
            textbuf_printf(tops, "\"token:%d\"", (int)piece->top[i].token);
        textbuf_puts(tops, ":");
        textbuf_put_number(tops, (double)piece->top[i].logprob);
    }
    textbuf_puts(tops, "}");
    textbuf_printf(&list[REPLY_OFFSETS], "%zu", piece->begins);
}

void reply_logprobs_add(struct reply_logprobs *l, enum api_kind kind,
                        const struct completion_piece *piece,
                        const struct tokenizer *tok)
{
    if (kind == API_CHAT)
        add_to_chat(l->list, piece, tok);
    else
        add_to_completion(l->list, piece, tok);
}

static void put_logprobs(struct textbuf *out, enum api_kind kind,
                         const struct reply_logprobs *l)
{
    static const char *const names[REPLY_N_LISTS] = {"tokens", "token_logprobs",
                                                     "top_logprobs", "text_offset"};

    textbuf_puts(out, ",\"logprobs\":");
    if (!l->wanted) {
        textbuf_puts(out, "null");
    } else if (kind == API_CHAT) {
        textbuf_puts(out, "{\"content\":[");
        textbuf_add(out, l->list);
        textbuf_puts(out, "],\"refusal\":null}");
    } else {
        for (int i = 0; i < REPLY_N_LISTS; i++) {
            textbuf_printf(out, "%s\"%s\":[", i ? "]," : "{", names[i]);
            textbuf_add(out, &l->list[i]);
        }
        textbuf_puts(out, "]}");
    }
}

/* ---- parts of an object ---------------------------------------------------------- */

static void put_head(struct textbuf *out, const struct reply_head *head)
{
    const char *object = head->kind == API_COMPLETION ? "text_completion"
                         : head->stream               ? "chat.completion.chunk"
                                                      : "chat.completion";

    textbuf_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":",
                   head->id, object, head->created);
    textbuf_put_json(out, head->model, strlen(head->model));
    textbuf_puts(out, ",\"choices\":[");
}

static void put_reason(struct textbuf *out, const struct reply_choice *c)
{
    if (c->end == COMPLETION_RUNS)
        textbuf_puts(out, ",\"finish_reason\":null}");
    else
        textbuf_printf(out, ",\"finish_reason\":\"%s\"}", reply_reason(c));
}

/* "prompt_n":N,"prompt_ms":T,"prompt_per_second":S */
static void put_pace(struct textbuf *out, const char *name, long long n, double seconds)
{
    textbuf_printf(out, "\"%s_n\":%lld,\"%s_ms\":%.3f,\"%s_per_second\":%.3f", name, n,
                   name, 1e3 * seconds, name, seconds > 0 ? (double)n / seconds : 0.0);
}

void reply_timings(struct textbuf *out, const struct reply_usage *u)
{
    const bool has_times = u->prefill_s > 0;

    if (!has_times && !u->n_drafted)
        return;
    textbuf_puts(out, ",\"timings\":{");
    if (has_times) {
        textbuf_printf(out, "\"cache_n\":%lld,", u->n_cached);
        put_pace(out, "prompt", u->n_prompt - u->n_cached, u->prefill_s);
        textbuf_puts(out, ",");
        put_pace(out, "predicted", u->n_generated, u->decode_s);
    }
    if (u->n_drafted)
        textbuf_printf(out, "%s\"draft_n\":%lld,\"draft_n_accepted\":%lld",
                       has_times ? "," : "", u->n_drafted, u->n_accepted);
    textbuf_puts(out, "}");
}

static void put_usage(struct textbuf *out, const struct reply_usage *u)
{
    textbuf_printf(out,
                   "\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,"
                   "\"total_tokens\":%lld,\"prompt_tokens_details\":{\"cached_tokens\":"
                   "%lld}",
                   u->n_prompt, u->n_generated, u->n_prompt + u->n_generated,
                   u->n_cached);
    if (u->n_thought)
        textbuf_printf(out,
                       ",\"completion_tokens_details\":{\"reasoning_tokens\":%lld}",
                       u->n_thought);
    textbuf_puts(out, "}");
    reply_timings(out, u);
}

/* ---- a whole answer -------------------------------------------------------------- */

void reply_begin(struct textbuf *out, const struct reply_head *head)
{
    if (!head->form)
        put_head(out, head);
}

void reply_choice(struct textbuf *out, const struct reply_head *head, int index,
                  const struct reply_choice *c, const struct reply_usage *usage)
{
    if (head->form) {
        reply_form_whole(out, head, c, usage);
        return;
    }
    textbuf_printf(out, "%s{\"index\":%d,", index ? "," : "", index);
    textbuf_puts(out, head->kind == API_CHAT
                          ? "\"message\":{\"role\":\"assistant\",\"content\":"
                          : "\"text\":");
    if (c->calls.n && !c->text.len)
        textbuf_puts(out, "null");
    else
        textbuf_add_json(out, &c->text);
    if (c->calls.n)
        reply_calls_put(out, &c->calls);
    if (c->thought.len) {
        textbuf_puts(out, ",\"reasoning_content\":");
        textbuf_add_json(out, &c->thought);
    }
    textbuf_puts(out, head->kind == API_CHAT ? ",\"refusal\":null}" : "");
    put_logprobs(out, head->kind, &c->logprobs);
    put_reason(out, c);
}

void reply_end(struct textbuf *out, const struct reply_head *head,
               const struct reply_usage *usage)
{
    if (head->form)
        return;
    textbuf_puts(out, "],");
    put_usage(out, usage);
    textbuf_puts(out, "}\n");
}

/* ---- a stream -------------------------------------------------------------------- */

static void put_delta(struct textbuf *out, bool first,
                      const struct completion_piece *piece, struct reply_calls *calls)
{
    const bool has_text = piece->len || (first && !piece->n_thought && !piece->n_call);
    const char *comma = piece->n_thought || has_text ? "," : "";

    textbuf_printf(out, "\"delta\":{%s", first ? "\"role\":\"assistant\"," : "");
    if (piece->n_thought) {
        textbuf_puts(out, "\"reasoning_content\":");
        textbuf_put_json(out, piece->thought, piece->n_thought);
    }
    if (has_text) {
        textbuf_puts(out, piece->n_thought ? ",\"content\":" : "\"content\":");
        textbuf_put_json(out, piece->text, piece->len);
    }
    if (piece->n_call) {
        textbuf_printf(out, "%s%s\"tool_calls\":[", comma,
                       first && !*comma ? "\"content\":null," : "");
        reply_calls_deltas(out, calls, piece->call, piece->n_call);
        textbuf_puts(out, "]");
    }
    textbuf_puts(out, "}");
}

void reply_event(struct textbuf *out, struct reply_head *head, int index,
                 struct reply_choice *c, const struct completion_piece *piece)
{
    if (head->form) {
        reply_form_piece(out, head, c, piece);
        return;
    }
    textbuf_puts(out, "data: ");
    put_head(out, head);
    textbuf_printf(out, "{\"index\":%d,", index);
    if (head->kind == API_CHAT) {
        put_delta(out, !c->has_spoken, piece, &c->calls);
    } else {
        textbuf_puts(out, "\"text\":");
        textbuf_put_json(out, piece->text, piece->len);
    }
    c->has_spoken = true;
    put_logprobs(out, head->kind, &c->logprobs);
    for (int i = 0; i < REPLY_N_LISTS; i++)
        textbuf_clear(&c->logprobs.list[i]);
    put_reason(out, c);
    textbuf_puts(out, head->usage_follows ? "],\"usage\":null}\n\n" : "]}\n\n");
}

void reply_end_stream(struct textbuf *out, struct reply_head *head,
                      const struct reply_choice *c, const struct reply_usage *usage)
{
    if (head->form) {
        reply_form_end(out, head, c, usage);
        return;
    }
    if (head->usage_follows) {
        textbuf_puts(out, "data: ");
        put_head(out, head);
        textbuf_puts(out, "],");
        put_usage(out, usage);
        textbuf_puts(out, "}\n\n");
    }
    textbuf_puts(out, "data: [DONE]\n\n");
}

void reply_fail_stream(struct textbuf *out, struct reply_head *head,
                       const struct refusal *failure)
{
    if (head->form) {
        reply_form_fail(out, head, failure);
        return;
    }
    textbuf_puts(out, "data: ");
    refusal_put(out, failure);
    textbuf_puts(out, "\n\n");
}

/* SPDX-License-Identifier: MIT
 *
 * api_reply.c - JSON of answers, written as it comes
 */
#include "harness/serve/api/api_reply.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"

/* Longest token whose text is given; the others are cut. */
#define MAX_TOKEN 1024

const char *reply_reason(const struct reply_calls *calls, enum completion_end end)
{
    return end != COMPLETION_STOP ? "length" : calls->n ? "tool_calls" : "stop";
}

/* ---- log-probabilities ----------------------------------------------------------- */

struct token_text {
    char bytes[MAX_TOKEN];
    size_t len;
};

static void read_token(struct token_text *t, const struct tokenizer *tok, int32_t id)
{
    t->len = tokenizer_piece(tok, id, t->bytes, sizeof t->bytes);
    if (t->len > sizeof t->bytes)
        t->len = 0;
    if (!t->len && !tokenizer_is_unused(tok, id)) { /* a control token is spelled */
        size_t n = 0;
        const char *text = tokenizer_text(tok, id, &n);

        t->len = n < sizeof t->bytes ? n : sizeof t->bytes;
        memcpy(t->bytes, text, t->len);
    }
}

static bool is_utf8(const struct token_text *t)
{
    for (size_t i = 0; i < t->len;) {
        const int n = utf8_char_len(t->bytes + i, t->len - i);

        if (n <= 0)
            return false;
        i += (size_t)n;
    }
    return true;
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

    if (is_utf8(t)) {
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

static void add_to_chat(struct reply_logprobs *l, const struct completion_piece *piece,
                        const struct tokenizer *tok)
{
    comma(&l->list);
    put_token(&l->list, tok, piece->token, piece->logprob);
    textbuf_puts(&l->list, ",\"top_logprobs\":[");
    for (int i = 0; i < piece->n_top; i++) {
        if (i)
            textbuf_puts(&l->list, ",");
        put_token(&l->list, tok, piece->top[i].token, piece->top[i].logprob);
        textbuf_puts(&l->list, "}");
    }
    textbuf_puts(&l->list, "]}");
}

static void add_to_completion(struct reply_logprobs *l,
                              const struct completion_piece *piece,
                              const struct tokenizer *tok)
{
    struct token_text t;

    comma(&l->tokens);
    comma(&l->each);
    comma(&l->tops);
    comma(&l->offsets);
    read_token(&t, tok, piece->token);
    put_name(&l->tokens, &t);
    textbuf_put_number(&l->each, (double)piece->logprob);
    textbuf_puts(&l->tops, "{");
    for (int i = 0; i < piece->n_top; i++) {
        if (i)
            textbuf_puts(&l->tops, ",");
        read_token(&t, tok, piece->top[i].token);
        if (t.len)
            put_name(&l->tops, &t);
        else /* padding: two of them are two keys */
            textbuf_printf(&l->tops, "\"token:%d\"", (int)piece->top[i].token);
        textbuf_puts(&l->tops, ":");
        textbuf_put_number(&l->tops, (double)piece->top[i].logprob);
    }
    textbuf_puts(&l->tops, "}");
    textbuf_printf(&l->offsets, "%zu", piece->begins);
}

void reply_logprobs_add(struct reply_logprobs *l, enum api_kind kind,
                        const struct completion_piece *piece,
                        const struct tokenizer *tok)
{
    l->n++;
    if (kind == API_CHAT)
        add_to_chat(l, piece, tok);
    else
        add_to_completion(l, piece, tok);
}

void reply_logprobs_free(struct reply_logprobs *l)
{
    textbuf_free(&l->list);
    textbuf_free(&l->tokens);
    textbuf_free(&l->each);
    textbuf_free(&l->tops);
    textbuf_free(&l->offsets);
}

size_t reply_logprobs_bytes(const struct reply_logprobs *l)
{
    return l->list.len + l->tokens.len + l->each.len + l->tops.len + l->offsets.len;
}

static void append(struct textbuf *out, const struct textbuf *b)
{
    out->failed |= b->failed;
    if (textbuf_left(b))
        textbuf_put(out, b->text + b->taken, textbuf_left(b));
}

static void put_array(struct textbuf *out, const char *before, const struct textbuf *b)
{
    textbuf_puts(out, before);
    append(out, b);
    textbuf_puts(out, "]");
}

static void put_logprobs(struct textbuf *out, enum api_kind kind,
                         const struct reply_logprobs *l)
{
    textbuf_puts(out, ",\"logprobs\":");
    if (!l->wanted) {
        textbuf_puts(out, "null");
    } else if (kind == API_CHAT) {
        put_array(out, "{\"content\":[", &l->list);
        textbuf_puts(out, ",\"refusal\":null}");
    } else {
        put_array(out, "{\"tokens\":[", &l->tokens);
        put_array(out, ",\"token_logprobs\":[", &l->each);
        put_array(out, ",\"top_logprobs\":[", &l->tops);
        put_array(out, ",\"text_offset\":[", &l->offsets);
        textbuf_puts(out, "}");
    }
}

static void empty(struct reply_logprobs *l)
{
    textbuf_clear(&l->list);
    textbuf_clear(&l->tokens);
    textbuf_clear(&l->each);
    textbuf_clear(&l->tops);
    textbuf_clear(&l->offsets);
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

static void put_reason(struct textbuf *out, const struct reply_calls *calls,
                       enum completion_end end)
{
    if (end == COMPLETION_RUNS)
        textbuf_puts(out, ",\"finish_reason\":null}");
    else
        textbuf_printf(out, ",\"finish_reason\":\"%s\"}", reply_reason(calls, end));
}

/* "prompt_n":N,"prompt_ms":T,"prompt_per_second":S */
static void put_pace(struct textbuf *out, const char *name, long long n, double seconds)
{
    textbuf_printf(out, "\"%s_n\":%lld,\"%s_ms\":%.3f,\"%s_per_second\":%.3f", name, n,
                   name, 1e3 * seconds, name, seconds > 0 ? (double)n / seconds : 0.0);
}

/* As llama.cpp's server has them. */
static void put_timings(struct textbuf *out, const struct reply_usage *u)
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
    put_timings(out, u);
}

/* ---- a whole answer -------------------------------------------------------------- */

void reply_begin(struct textbuf *out, const struct reply_head *head)
{
    put_head(out, head);
}

void reply_choice(struct textbuf *out, const struct reply_head *head, int index,
                  const struct textbuf *text, const struct textbuf *thought,
                  const struct reply_calls *calls, const struct reply_logprobs *l,
                  enum completion_end end)
{
    out->failed |= text->failed | thought->failed | calls->list.failed;
    textbuf_printf(out, "%s{\"index\":%d,", index ? "," : "", index);
    textbuf_puts(out, head->kind == API_CHAT
                          ? "\"message\":{\"role\":\"assistant\",\"content\":"
                          : "\"text\":");
    if (calls->n && !text->len)
        textbuf_puts(out, "null");
    else
        textbuf_put_json(out, text->text ? text->text : "", text->len);
    if (calls->n)
        reply_calls_put(out, calls);
    if (thought->len) {
        textbuf_puts(out, ",\"reasoning_content\":");
        textbuf_put_json(out, thought->text, thought->len);
    }
    textbuf_puts(out, head->kind == API_CHAT ? ",\"refusal\":null}" : "");
    put_logprobs(out, head->kind, l);
    put_reason(out, calls, end);
}

void reply_end(struct textbuf *out, const struct reply_usage *usage)
{
    textbuf_puts(out, "],");
    put_usage(out, usage);
    textbuf_puts(out, "}\n");
}

/* ---- a stream -------------------------------------------------------------------- */

static void put_delta(struct textbuf *out, bool first, const struct reply_part *part,
                      struct reply_calls *calls)
{
    const bool has_text = part->len || (first && !part->n_thought && !part->n_call);
    const char *comma = part->n_thought || has_text ? "," : "";

    textbuf_printf(out, "\"delta\":{%s", first ? "\"role\":\"assistant\"," : "");
    if (part->n_thought) {
        textbuf_puts(out, "\"reasoning_content\":");
        textbuf_put_json(out, part->thought, part->n_thought);
    }
    if (has_text) {
        textbuf_puts(out, part->n_thought ? ",\"content\":" : "\"content\":");
        textbuf_put_json(out, part->text, part->len);
    }
    if (part->n_call) {
        textbuf_printf(out, "%s%s\"tool_calls\":[", comma,
                       first && !*comma ? "\"content\":null," : "");
        reply_calls_deltas(out, calls, part->call, part->n_call);
        textbuf_puts(out, "]");
    }
    textbuf_puts(out, "}");
}

void reply_event(struct textbuf *out, const struct reply_head *head, int index,
                 bool first, const struct reply_part *part, struct reply_calls *calls,
                 struct reply_logprobs *l, enum completion_end end)
{
    textbuf_puts(out, "data: ");
    put_head(out, head);
    textbuf_printf(out, "{\"index\":%d,", index);
    if (head->kind == API_CHAT) {
        put_delta(out, first, part, calls);
    } else {
        textbuf_puts(out, "\"text\":");
        textbuf_put_json(out, part->text, part->len);
    }
    put_logprobs(out, head->kind, l);
    empty(l);
    put_reason(out, calls, end);
    textbuf_puts(out, head->usage_follows ? "],\"usage\":null}\n\n" : "]}\n\n");
}

void reply_usage_event(struct textbuf *out, const struct reply_head *head,
                       const struct reply_usage *usage)
{
    textbuf_puts(out, "data: ");
    put_head(out, head);
    textbuf_puts(out, "],");
    put_usage(out, usage);
    textbuf_puts(out, "}\n\n");
}

void reply_error_event(struct textbuf *out, const struct refusal *r)
{
    textbuf_puts(out, "data: ");
    refusal_put(out, r);
    textbuf_puts(out, "\n\n");
}

void reply_done_event(struct textbuf *out)
{
    textbuf_puts(out, "data: [DONE]\n\n");
}

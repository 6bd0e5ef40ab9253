/* SPDX-License-Identifier: MIT
 *
 * fuzz_load.c - what a server replies, in one piece and in several; files of prompts
 * and traces; counters
 *
 * A reply says the same however its bytes are divided.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/client/record.h"
#include "harness/serve/load/server_counts.h"
#include "harness/serve/load/texts.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

/* The first line is the header's, the rest the body, `step` bytes at a time. Returns
 * the answer as a message. */
static json_t *reply(struct load_record *r, const uint8_t *data, size_t size,
                     size_t step, bool is_vector)
{
    const char *text = (const char *)data;
    const char *end = size ? memchr(text, '\n', size) : NULL;
    const size_t head = end ? (size_t)(end + 1 - text) : 0;
    struct load_reply *p = calloc(1, sizeof *p);
    struct answer answer = {.n_calls = 0};
    json_t *message;
    static const char status[] = "HTTP/1.1 200 OK",
                      type[] = "Content-Type: text/event-stream";

    if (!p)
        fuzz_fail("no memory for a reply");
    *r = (struct load_record){
        .n_requested = 100, .n_prompt = -1, .n_tokens = -1, .n_cached = -1};
    load_reply_begin(p, r);
    p->is_vector = is_vector;
    p->answer = &answer;
    load_reply_header(p, status, sizeof status - 1);
    load_reply_header(p, type, sizeof type - 1);
    load_reply_header(p, text, head);
    for (size_t at = head; at < size; at += step)
        if (!load_reply_feed(p, text + at, size - at < step ? size - at : step, 1))
            break;
    load_reply_end(p, 1);
    if (r->end != LOAD_OK && (r->end != LOAD_FAILED || !*r->why))
        fuzz_fail("a reply has neither ended well nor a reason");
    if (r->end == LOAD_OK && (r->n_pieces < 1 || r->n_pieces > LOAD_PIECES_MAX(100)))
        fuzz_fail("%d pieces", r->n_pieces);
    message = answer_message(&answer);
    if (!message)
        fuzz_fail("an answer is no message");
    answer_free(&answer);
    load_reply_free(p);
    free(p);
    return message;
}

static void read_times(const struct load_texts *texts)
{
    double at_s[8];

    if (!(load_texts_rate(texts) > 0))
        return;
    load_texts_times(texts, at_s, 8, 1);
    for (int i = 0; i < 8; i++)
        if (!(at_s[i] >= (i ? at_s[i - 1] : 0)) || at_s[i] > 8e6)
            fuzz_fail("request %d of a trace is due at %g", i, at_s[i]);
}

static void read_counts(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct server_counts c;

    if (!text)
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    server_counts_read(&c, text);
    for (int i = 0; i < N_COUNTS; i++)
        if (c.v[i] < 0)
            fuzz_fail("a counter is %g", c.v[i]);
    free(text);
}

static void read_reply(const uint8_t *data, size_t size)
{
    struct load_record whole, parts;
    struct load_texts *texts;
    struct err err = ERR_INIT;

    const bool is_vector = size && data[size - 1] == '}';

    json_t *at_once = reply(&whole, data, size, size + 1, is_vector);
    json_t *in_parts = reply(&parts, data, size, 7, is_vector);

    if (!json_equal(at_once, in_parts) || whole.end != parts.end ||
        whole.n_pieces != parts.n_pieces || whole.n_tokens != parts.n_tokens ||
        whole.n_prompt != parts.n_prompt || whole.n_cached != parts.n_cached ||
        whole.http_status != parts.http_status || strcmp(whole.why, parts.why))
        fuzz_fail("in parts it says '%s', whole '%s'", parts.why, whole.why);
    json_decref(at_once);
    json_decref(in_parts);
    load_record_free(&whole);
    load_record_free(&parts);
    read_counts(data, size);
    if (fuzz_accepted(load_texts_read(&texts, fuzz_file("p.jsonl", data, size), &err),
                      &err)) {
        const struct load_text text = load_text_at(texts, 1);

        if (!load_texts_count(texts) || !(text.prompt ? *text.prompt : text.n_prompt) ||
            text.n_known > text.n_blocks || text.n_output < 0 ||
            text.n_output > LOAD_MAX_TOKENS || text.answer_bytes > size ||
            load_texts_count_lengths(texts) > load_texts_count(texts))
            fuzz_fail("a file of prompts without one");
        read_times(texts);
        load_texts_free(texts);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_reply, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"data: ",
                                        "[DONE]",
                                        "\n\n",
                                        "choices",
                                        "delta",
                                        "content",
                                        "text",
                                        "finish_reason",
                                        "usage",
                                        "error",
                                        "message",
                                        "HTTP/1.1 429",
                                        "prompt",
                                        "conversations",
                                        "value",
                                        "from",
                                        "gpt",
                                        "role",
                                        "assistant",
                                        "max_tokens",
                                        "timestamp",
                                        "input_length",
                                        "hash_ids",
                                        "tool_calls",
                                        "function",
                                        "arguments",
                                        "embedding",
                                        "TIMESTAMP,ContextTokens,GeneratedTokens",
                                        "slm_prompt_tokens_total",
                                        "Retry-After: 7",
                                        "prompt_tokens",
                                        "completion_tokens",
                                        NULL};

    return mutate_text(data, size, max_size, seed, words);
}

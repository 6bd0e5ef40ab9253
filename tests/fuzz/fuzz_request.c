/* SPDX-License-Identifier: MIT
 *
 * fuzz_request.c - bodies of requests to `bench serve`
 *
 * The first byte names one of eight kinds. What is read is within its ranges;
 * what is refused has a status and a message that is JSON. A request that is read is
 * the same from its own JSON, in which others' APIs are translated.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "harness/serve/api/api_request.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

#define N_VOCAB 500

/* Messages with a role and a text, unless they are calls; a chat's last one asks. */
static void check_conversation(const struct api_request *r)
{
    const json_t *list = json_object_get(r->conversation, "messages");
    const char *role = "";
    const json_t *m;
    size_t i;

    json_array_foreach(list, i, m)
    {
        role = json_string_value(json_object_get(m, "role"));
        if (!role || (!json_is_string(json_object_get(m, "content")) &&
                      !json_array_size(json_object_get(m, "tool_calls"))))
            fuzz_fail("message %zu has no role or no text", i);
    }
    if (!i ||
        (r->kind == API_CHAT && strcmp(role, "user") != 0 && strcmp(role, "tool") != 0))
        fuzz_fail("a chat without a question");
    if (json_object_get(r->conversation, "chat_template") &&
        !json_is_string(json_object_get(r->conversation, "chat_template")))
        fuzz_fail("a template's name that is no text");
}

static void check_read(const struct api_request *r)
{
    const size_t n = r->kind == API_CHAT ? 1 : r->n_prompts;

    if (n * (size_t)r->n > API_MAX_CHOICES || r->n_stops > COMPLETION_MAX_STOPS ||
        r->n_logprobs > COMPLETION_MAX_LOGPROBS || r->max_tokens < 0)
        fuzz_fail("a limit is exceeded");
    for (size_t i = 0; i < r->n_prompts; i++)
        for (size_t k = 0; k < r->prompts[i].n_ids; k++)
            if (r->prompts[i].ids[k] < 0 || r->prompts[i].ids[k] >= N_VOCAB)
                fuzz_fail("token %d", (int)r->prompts[i].ids[k]);
    if (r->kind == API_CHAT || r->kind == API_TEMPLATE)
        check_conversation(r);
    if ((r->kind == API_TOKENIZE || r->kind == API_DETOKENIZE) &&
        (r->n_prompts != 1 || (r->kind == API_TOKENIZE) == (r->prompts->ids != NULL)))
        fuzz_fail("no text, or no tokens");
}

static void check_refusal(const struct refusal *refusal)
{
    struct textbuf out = {.text = NULL};
    json_error_t why;
    json_t *root;

    refusal_put(&out, refusal);
    root = json_loads(out.text, 0, &why);
    if (refusal->http != 400 || !root)
        fuzz_fail("refused with %d: %s", refusal->http, out.text);
    json_decref(root);
    textbuf_free(&out);
}

static enum api_kind kind_of(uint8_t byte)
{
    if (byte & 8)
        return byte & 2 ? API_RESPONSES : byte & 1 ? API_COUNT : API_MESSAGES;
    if (byte & 4)
        return byte & 1 ? API_DETOKENIZE : API_TOKENIZE;
    return byte & 2 ? API_TEMPLATE : byte & 1 ? API_CHAT : API_COMPLETION;
}

static void read_again(const struct api_request *r)
{
    char *text = json_dumps(r->root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    struct refusal refusal = {0};
    struct api_request again;

    if (!text)
        return; /* jansson writes no U+0000 in keys */
    if (!api_request_read(&again, r->kind, text, strlen(text), N_VOCAB, &refusal))
        fuzz_fail("its own JSON is refused: %s", text);
    if ((r->conversation && !json_equal(r->conversation, again.conversation)) ||
        r->n != again.n || r->n_prompts != again.n_prompts ||
        r->max_tokens != again.max_tokens || r->n_stops != again.n_stops ||
        r->tools.n != again.tools.n || r->tools.n_allowed != again.tools.n_allowed ||
        r->format != again.format || r->tools.choice != again.tools.choice ||
        r->max_thought != again.max_thought)
        fuzz_fail("its own JSON is another request: %s", text);
    api_request_free(&again);
    free(text);
}

static void read_body(const uint8_t *data, size_t size)
{
    struct refusal refusal = {0};
    struct api_request r;

    if (!size)
        return;
    if (api_request_read(&r, kind_of(data[0]), (const char *)data + 1, size - 1,
                         N_VOCAB, &refusal)) {
        check_read(&r);
        read_again(&r);
        api_request_free(&r);
    } else {
        check_refusal(&refusal);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_body, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"prompt",
                                        "messages",
                                        "role",
                                        "content",
                                        "user",
                                        "system",
                                        "assistant",
                                        "text",
                                        "type",
                                        "n",
                                        "stream",
                                        "stop",
                                        "logprobs",
                                        "logit_bias",
                                        "seed",
                                        "temperature",
                                        "max_tokens",
                                        "top_logprobs",
                                        "json_schema",
                                        "schema",
                                        "tools",
                                        "tool_choice",
                                        "parallel_tool_calls",
                                        "tool_call_id",
                                        "parameters",
                                        "required",
                                        "echo",
                                        "response_format",
                                        "tool_calls",
                                        "function",
                                        "arguments",
                                        "tool",
                                        "developer",
                                        "chat_template",
                                        "tool_use",
                                        "tool_result",
                                        "thinking",
                                        "input",
                                        "function_call",
                                        "output",
                                        "chat_template_kwargs",
                                        "add_generation_prompt",
                                        "documents",
                                        "tokens",
                                        "with_pieces",
                                        "enable_thinking",
                                        "reasoning_budget",
                                        NULL};

    if (size < 2 || max_size < 3)
        return LLVMFuzzerMutate(data, size, max_size);
    return 1 + mutate_json(data + 1, size - 1, max_size - 1, seed, words);
}

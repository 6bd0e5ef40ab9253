/* SPDX-License-Identifier: MIT
 *
 * api_fields.c - the fields that a request may have, and those that are refused by name
 *
 * A known field that is not read is a misunderstanding: the client expects something of
 * it. So it is refused, unless it is listed here as one that changes no answer, or its
 * value stands for "not used". A name that resembles a listed one is misspelled, and is
 * refused, too. Others are what clients and gateways add for themselves, and are left
 * alone.
 *
 * Sources: OpenAI's and Anthropic's API references; the READMEs of llama.cpp's server
 * and vLLM's list of extra parameters, for names and for the values that change
 * nothing.
 */
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/base/suggest.h"
#include "harness/serve/api/api_request.h"

#define MIN_MISSPELLED 4 /* letters */

/* Each of them is compared with all that are known. */
#define MAX_UNKNOWN 64

enum {
    P = 1 << API_COMPLETION,
    C = 1 << API_CHAT,
    E = 1 << API_EMBEDDING,
    T = 1 << API_TEMPLATE,
    CT = C | T, /* the prompt of a chat's body, whatever its answer would be */
    PC = P | CT,
    TOKENIZE = 1 << API_TOKENIZE,
    DETOKENIZE = 1 << API_DETOKENIZE,
    M = 1 << API_MESSAGES,
    N = 1 << API_COUNT,
    MN = M | N,
    R = 1 << API_RESPONSES,
    ALL = PC | E | TOKENIZE | DETOKENIZE | MN | R,
};

/* Values with which a field changes nothing where it is not read. */
enum neutral {
    NEVER, /* null alone */
    ANY,
    EMPTY, /* false, 0, "", [], {}, "none", "auto" */
    ONE,   /* EMPTY, or 1 */
    MINUS, /* EMPTY, or -1 */
    SLOT,  /* -1 */
    YES,   /* true */
};

struct field {
    const char *name;
    int read_by; /* kinds of requests */
    enum neutral neutral;
    const char *instead; /* what a client may use, or NULL */
};

static const struct field fields[] = {
    {"model", ALL, NEVER, NULL},
    {"messages", CT | MN, NEVER, NULL},
    {"prompt", P, NEVER, NULL},
    {"input", E | R, NEVER, NULL},
    {"content", TOKENIZE, NEVER, NULL},
    {"add_special", TOKENIZE, NEVER, NULL},
    {"parse_special", TOKENIZE, NEVER, NULL},
    {"with_pieces", TOKENIZE, NEVER, NULL},
    {"tokens", DETOKENIZE, NEVER, NULL},
    {"encoding_format", E, NEVER, NULL},
    {"dimensions", E, NEVER, NULL},
    {"stream", PC | MN | R, EMPTY, NULL},
    {"stream_options", PC, EMPTY, NULL},
    {"max_tokens", PC | MN, NEVER, NULL},
    {"max_completion_tokens", CT, NEVER, "max_tokens"},
    {"ignore_eos", PC, EMPTY, NULL},
    {"cache_prompt", PC, YES, NULL},
    {"n", PC, ONE, NULL},
    {"best_of", PC, ONE, "n"},
    {"stop", PC, NEVER, NULL},
    {"seed", PC, NEVER, NULL},
    {"temperature", PC | MN | R, NEVER, NULL},
    {"top_p", PC | MN | R, NEVER, NULL},
    {"top_k", PC | MN, NEVER, NULL},
    {"min_p", PC, NEVER, NULL},
    {"logit_bias", PC, EMPTY, NULL},
    {"presence_penalty", PC, EMPTY, NULL},
    {"frequency_penalty", PC, EMPTY, NULL},
    {"logprobs", PC, EMPTY, NULL},
    {"top_logprobs", CT, EMPTY, "logprobs"},
    {"response_format", PC, EMPTY, NULL},
    {"modalities", PC, NEVER, NULL},
    {"chat_template", CT, NEVER, NULL},
    {"chat_template_kwargs", CT, EMPTY, NULL},
    {"documents", CT, EMPTY, NULL},
    {"enable_thinking", CT, NEVER, NULL},
    {"reasoning_effort", CT, NEVER, NULL},
    {"reasoning_budget", CT, MINUS, NULL},
    {"thinking_budget", CT, MINUS, NULL},
    {"add_generation_prompt", T, YES, NULL},
    {"tools", CT | MN | R, EMPTY, NULL},
    {"tool_choice", CT | MN | R, EMPTY, NULL},
    {"parallel_tool_calls", CT | R, ANY, NULL},
    {"system", MN, NEVER, "messages"},
    {"stop_sequences", MN, NEVER, "stop"},
    {"thinking", MN, EMPTY, "reasoning_budget"},
    {"output_config", MN, EMPTY, "response_format"},
    {"instructions", R, NEVER, "messages"},
    {"max_output_tokens", R, NEVER, "max_tokens"},
    {"reasoning", R, EMPTY, "reasoning_effort"},
    {"text", R, EMPTY, "response_format"},
    {"truncation", R, NEVER, NULL},

    /* What a service keeps, bills or routes by. */
    {"user", 0, ANY, NULL},
    {"metadata", 0, ANY, NULL},
    {"store", 0, EMPTY, NULL},
    {"service_tier", 0, ANY, NULL},
    {"safety_identifier", 0, ANY, NULL},
    {"prompt_cache_key", 0, ANY, NULL},
    {"prompt_cache_retention", 0, ANY, NULL},
    {"request_id", 0, ANY, NULL},
    {"prediction", 0, ANY, NULL}, /* a draft: it changes how long an answer takes */

    /* OpenAI's API. */
    {"functions", 0, EMPTY, "tools"},
    {"function_call", 0, EMPTY, "tool_choice"},
    {"audio", 0, EMPTY, NULL},
    {"web_search_options", 0, EMPTY, NULL},
    {"suffix", 0, EMPTY, NULL},
    {"echo", 0, EMPTY, NULL},
    {"verbosity", 0, EMPTY, NULL},
    {"previous_response_id", 0, NEVER, "input with the whole conversation"},
    {"conversation", 0, NEVER, "input with the whole conversation"},
    {"background", 0, EMPTY, NULL},
    {"include", 0, EMPTY, NULL},
    {"max_tool_calls", 0, NEVER, NULL},

    /* Anthropic's API. */
    {"container", 0, EMPTY, NULL},
    {"context_management", 0, EMPTY, NULL},
    {"mcp_servers", 0, EMPTY, NULL},

    /* Others' APIs. */
    {"prefix", 0, EMPTY, NULL},
    {"input_type", 0, EMPTY, NULL},

    /* vLLM and its relatives. */
    {"guided_json", 0, EMPTY, "response_format"},
    {"guided_regex", 0, EMPTY, NULL},
    {"guided_choice", 0, EMPTY, "response_format with an enum"},
    {"guided_grammar", 0, EMPTY, NULL},
    {"structured_outputs", 0, EMPTY, "response_format"},
    {"regex", 0, EMPTY, NULL},
    {"ebnf", 0, EMPTY, NULL},
    {"min_tokens", 0, EMPTY, NULL},
    {"stop_token_ids", 0, EMPTY, "stop"},
    {"allowed_token_ids", 0, EMPTY, "logit_bias"},
    {"bad_words", 0, EMPTY, "logit_bias"},
    {"repetition_penalty", 0, ONE, "frequency_penalty"},
    {"length_penalty", 0, ONE, NULL},
    {"early_stopping", 0, EMPTY, NULL},
    {"use_beam_search", 0, EMPTY, NULL},
    {"prompt_logprobs", 0, EMPTY, NULL},
    {"include_stop_str_in_output", 0, EMPTY, NULL},
    {"skip_special_tokens", 0, YES, NULL},
    {"spaces_between_special_tokens", 0, YES, NULL},
    {"truncate_prompt_tokens", 0, MINUS, NULL},
    {"continue_final_message", 0, EMPTY, NULL},
    {"priority", 0, EMPTY, NULL},

    /* llama.cpp's server. What only shapes a sampler that is refused is ANY. */
    {"n_predict", 0, NEVER, "max_tokens"},
    {"grammar", 0, EMPTY, "response_format"},
    {"json_schema", 0, EMPTY, "response_format"},
    {"repeat_penalty", 0, ONE, "frequency_penalty"},
    {"repeat_last_n", 0, ANY, NULL},
    {"typical_p", 0, ONE, NULL},
    {"tfs_z", 0, ONE, NULL},
    {"top_n_sigma", 0, MINUS, NULL},
    {"mirostat", 0, EMPTY, NULL},
    {"mirostat_tau", 0, ANY, NULL},
    {"mirostat_eta", 0, ANY, NULL},
    {"xtc_probability", 0, EMPTY, NULL},
    {"xtc_threshold", 0, ANY, NULL},
    {"dynatemp_range", 0, EMPTY, NULL},
    {"dynatemp_exponent", 0, ANY, NULL},
    {"dry_multiplier", 0, EMPTY, NULL},
    {"dry_base", 0, ANY, NULL},
    {"dry_allowed_length", 0, ANY, NULL},
    {"dry_penalty_last_n", 0, ANY, NULL},
    {"dry_sequence_breakers", 0, ANY, NULL},
    {"samplers", 0, EMPTY, NULL},
    {"min_keep", 0, EMPTY, NULL},
    {"n_keep", 0, EMPTY, NULL},
    {"n_discard", 0, EMPTY, NULL},
    {"n_indent", 0, EMPTY, NULL},
    {"n_probs", 0, EMPTY, "logprobs"},
    {"post_sampling_probs", 0, EMPTY, NULL},
    {"t_max_predict_ms", 0, MINUS, NULL},
    {"id_slot", 0, SLOT, NULL},
    {"return_tokens", 0, EMPTY, NULL},
    {"return_progress", 0, EMPTY, NULL},
    {"timings_per_token", 0, ANY, NULL}, /* more about an answer, and none of it */
    {"response_fields", 0, EMPTY, NULL},
    {"lora", 0, EMPTY, NULL},
};

/* ---- values that change nothing -------------------------------------------------- */

static bool is_number(const json_t *value, double v)
{
    return json_is_number(value) && json_number_value(value) >= v &&
           json_number_value(value) <= v;
}

static bool is_empty(const json_t *value)
{
    const char *text = json_text(value);

    if (json_is_object(value))
        return json_object_size(value) == 0;
    if (json_is_array(value))
        return json_array_size(value) == 0;
    return json_is_false(value) || is_number(value, 0) ||
           (text && (!*text || !strcmp(text, "none") || !strcmp(text, "auto")));
}

static bool is_neutral(enum neutral neutral, const json_t *value)
{
    switch (neutral) {
    case ANY:
        return true;
    case EMPTY:
        return is_empty(value);
    case ONE:
        return is_empty(value) || is_number(value, 1);
    case MINUS:
        return is_empty(value) || is_number(value, -1);
    case SLOT:
        return is_number(value, -1);
    case YES:
        return json_is_true(value);
    default:
        return false;
    }
}

/* ---- the whole ------------------------------------------------------------------- */

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!strcmp(name, fields[i].name))
            return &fields[i];
    return NULL;
}

static bool unsupported(const char *name, const char *instead, struct refusal *refusal)
{
    return refuse(refusal, 400, "unsupported", name,
                  "%s is not supported by this server%s%s", name,
                  instead ? "; use " : "", instead ? instead : "");
}

/* The field that a misspelled one stands for, or NULL. Short names resemble many. */
static const char *misspelled(const char *name)
{
    const char *names[sizeof fields / sizeof *fields];

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        names[i] = fields[i].name;
    return strlen(name) < MIN_MISSPELLED
               ? NULL
               : suggest(name, names, sizeof names / sizeof *names);
}

static bool check_field(enum api_kind kind, const char *name, const json_t *value,
                        int *n_unknown, struct refusal *refusal)
{
    const struct field *f;
    const char *meant;

    if (json_is_null(value))
        return true;
    f = find_field(name);
    if (f && ((f->read_by & (1 << kind)) || is_neutral(f->neutral, value)))
        return true;
    if (f && !f->read_by)
        return unsupported(name, f->instead, refusal);
    if (!f && ++*n_unknown > MAX_UNKNOWN)
        return refuse(refusal, 400, "unknown_parameter", name,
                      "there are more than %d fields that this server does not know",
                      MAX_UNKNOWN);
    if (!f) {
        meant = misspelled(name);
        return !meant ||
               refuse(refusal, 400, "unknown_parameter", name,
                      "there is no field %.80s; did you mean %s?", name, meant);
    }
    return refuse(refusal, 400, "unknown_parameter", name,
                  "a request of this kind has no field %.80s%s%s; null leaves a field "
                  "out",
                  name, f->instead ? ", use " : "", f->instead ? f->instead : "");
}

static bool check_modalities(const json_t *root, struct refusal *refusal)
{
    const json_t *list = api_member(root, "modalities");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_text(json_array_get(list, i));

        if (!name || strcmp(name, "text"))
            return refuse(refusal, 400, NULL, "modalities",
                          "modalities: this model writes text and nothing else");
    }
    return true;
}

static bool check_best_of(const json_t *root, struct refusal *refusal)
{
    const json_t *several = api_member(root, "best_of");
    int64_t best_of = 0, n = 0;

    json_whole(api_member(root, "n"), &n);
    if (several && (!json_whole(several, &best_of) || (best_of > 1 && best_of != n)))
        return unsupported("best_of", "n", refusal);
    return true;
}

/* Usage is the one thing that can be chosen of a stream. */
static bool check_stream_options(const json_t *root, struct refusal *refusal)
{
    json_t *options = api_member(root, "stream_options"), *value;
    const char *name;

    json_object_foreach(options, name, value)
    {
        if (strcmp(name, "include_usage") && strcmp(name, "include_obfuscation") &&
            !json_is_null(value) && !json_is_false(value))
            return refuse(refusal, 400, "unknown_parameter", "stream_options",
                          "stream_options.%.80s is not supported by this server", name);
    }
    return true;
}

bool api_check_fields(const struct api_request *r, struct refusal *refusal)
{
    const char *name;
    json_t *value;
    int n_unknown = 0;

    json_object_foreach(r->root, name, value)
    {
        if (!check_field(r->kind, name, value, &n_unknown, refusal))
            return false;
    }
    return check_best_of(r->root, refusal) && check_modalities(r->root, refusal) &&
           check_stream_options(r->root, refusal);
}

/* SPDX-License-Identifier: MIT
 *
 * api_request.c - fields of a request, each with its type and range
 */
#include "harness/serve/api/api_request.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "harness/serve/api/reply_form.h"
#include "harness/serve/api/translate.h"

json_t *api_member(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

bool api_is_type(const json_t *object, const char *type)
{
    const char *text = json_text(api_member(object, "type"));

    return text && !strcmp(text, type);
}

/* ---- types ----------------------------------------------------------------------- */

/* A missing field leaves *out as it is; so do all of these. */
static bool read_real(const struct api_request *r, const char *key, double least,
                      double most, float *out, struct refusal *refusal)
{
    const json_t *value = api_member(r->root, key);
    char shown[60];
    double v;

    if (!value)
        return true;
    if (!json_finite(value, &v) || !(v >= least && v <= most))
        return refuse(refusal, 400, NULL, key,
                      "%s must be a number from %g to %g, and is %s", key, least, most,
                      json_shown(shown, sizeof shown, value));
    *out = (float)v;
    return true;
}

static bool read_int(const struct api_request *r, const char *key, json_int_t least,
                     json_int_t most, int *out, struct refusal *refusal)
{
    const json_t *value = api_member(r->root, key);
    char shown[60];
    int64_t v;

    if (!value)
        return true;
    if (!json_whole(value, &v) || v < least || v > most)
        return refuse(refusal, 400, NULL, key,
                      "%s must be a whole number from %" JSON_INTEGER_FORMAT
                      " to %" JSON_INTEGER_FORMAT ", and is %s",
                      key, least, most, json_shown(shown, sizeof shown, value));
    *out = (int)v;
    return true;
}

static bool read_bool(const json_t *object, const char *key, bool *out,
                      struct refusal *refusal)
{
    const json_t *value = api_member(object, key);

    if (!value)
        return true;
    if (!json_is_boolean(value))
        return refuse(refusal, 400, NULL, key, "%s must be true or false", key);
    *out = json_is_true(value);
    return true;
}

/* ---- how tokens are drawn -------------------------------------------------------- */

static bool read_sampling(struct api_request *r, struct refusal *refusal)
{
    struct sampler_params *s = &r->sampling;
    const json_t *seed = api_member(r->root, "seed");
    char shown[60];

    if (seed && !json_bits(seed, &s->seed))
        return refuse(refusal, 400, NULL, "seed",
                      "seed must be a whole number of 64 bits, and is %s",
                      json_shown(shown, sizeof shown, seed));
    r->has_seed = seed != NULL;
    if (!read_real(r, "temperature", 0, 2, &s->temperature, refusal) ||
        !read_real(r, "top_p", 0, 1, &s->top_p, refusal) ||
        !read_int(r, "top_k", -1, INT32_MAX, &s->top_k, refusal) ||
        !read_real(r, "min_p", 0, 1, &s->min_p, refusal) ||
        !read_real(r, "presence_penalty", -2, 2, &r->presence_penalty, refusal) ||
        !read_real(r, "frequency_penalty", -2, 2, &r->frequency_penalty, refusal))
        return false;
    if (s->top_k < 0)
        s->top_k = 0; /* other servers write "all" so */
    if (!(s->top_p > 0.0f))
        return refuse(refusal, 400, NULL, "top_p",
                      "top_p 0 leaves no token; temperature 0 takes the likeliest");
    return true;
}

static bool read_bias(struct api_request *r, const char *key, const json_t *value,
                      int n_vocab, struct refusal *refusal)
{
    const double v = json_number_value(value);
    char *end;
    const long id = strtol(key, &end, 10);

    /* "05" would be a second key of token 5 */
    if (key[0] < '0' || key[0] > '9' || (key[0] == '0' && key[1]) || *end ||
        id >= n_vocab)
        return refuse(refusal, 400, NULL, "logit_bias",
                      "logit_bias: \"%.20s\" is no token; they are 0 to %d", key,
                      n_vocab - 1);
    if (!json_is_number(value) || !(v >= -100 && v <= 100))
        return refuse(refusal, 400, NULL, "logit_bias",
                      "logit_bias of token %ld must be a number from -100 to 100", id);
    r->biases[r->n_biases++] = (struct completion_bias){(int32_t)id, (float)v};
    return true;
}

static bool read_biases(struct api_request *r, int n_vocab, struct refusal *refusal)
{
    json_t *object = api_member(r->root, "logit_bias"), *value;
    const size_t n = json_object_size(object);
    const char *key;

    if (!object)
        return true;
    if (!json_is_object(object) || n > API_MAX_BIASES)
        return refuse(refusal, 400, NULL, "logit_bias",
                      "logit_bias must be an object of at most %d tokens",
                      API_MAX_BIASES);
    r->biases = malloc((n + 1) * sizeof *r->biases);
    if (!r->biases)
        return refuse(refusal, 503, NULL, NULL, "no memory for %zu biases", n);
    json_object_foreach(object, key, value)
    {
        if (!read_bias(r, key, value, n_vocab, refusal))
            return false;
    }
    return true;
}

/* A number of alternatives, or in a chat whether there are any and how many. */
static bool read_logprobs(struct api_request *r, struct refusal *refusal)
{
    bool wanted = false;

    r->n_logprobs = -1;
    if (r->kind == API_COMPLETION)
        return read_int(r, "logprobs", 0, COMPLETION_MAX_LOGPROBS, &r->n_logprobs,
                        refusal);
    if (!read_bool(r->root, "logprobs", &wanted, refusal) ||
        !read_int(r, "top_logprobs", 0, COMPLETION_MAX_LOGPROBS, &r->n_logprobs,
                  refusal))
        return false;
    if (!wanted && r->n_logprobs > 0)
        return refuse(refusal, 400, NULL, "top_logprobs",
                      "top_logprobs needs logprobs: true");
    if (!wanted)
        r->n_logprobs = -1;
    else if (r->n_logprobs < 0)
        r->n_logprobs = 0;
    return true;
}

/* ---- where a text ends ----------------------------------------------------------- */

static bool add_stop(struct api_request *r, const json_t *value,
                     struct refusal *refusal)
{
    const size_t len = json_string_length(value);

    if (!json_text(value) || len == 0 || len > API_MAX_STOP)
        return refuse(refusal, 400, NULL, "stop",
                      "a stop string has 1 to %d bytes, none of them zero",
                      API_MAX_STOP);
    if (r->n_stops == COMPLETION_MAX_STOPS)
        return refuse(refusal, 400, NULL, "stop",
                      "at most %d stop strings are possible", COMPLETION_MAX_STOPS);
    r->stops[r->n_stops++] = json_string_value(value);
    return true;
}

static bool read_stops(struct api_request *r, struct refusal *refusal)
{
    const json_t *stop = api_member(r->root, "stop");

    if (!stop)
        return true;
    if (!json_is_array(stop))
        return add_stop(r, stop, refusal);
    for (size_t i = 0; i < json_array_size(stop); i++)
        if (!add_stop(r, json_array_get(stop, i), refusal))
            return false;
    return true;
}

/* -1 is "no limit" for clients of servers that run models, and no number for the API.
 */
static bool read_max(struct api_request *r, const char *key, struct refusal *refusal)
{
    const json_t *value = api_member(r->root, key);

    if (!json_is_integer(value) || json_integer_value(value) != -1)
        return read_int(r, key, 1, SLM_MAX_POSITIONS, &r->max_tokens, refusal);
    r->max_tokens = 0;
    return true;
}

/* Names of two servers for the tokens that a model may think. */
static bool read_thinking(struct api_request *r, struct refusal *refusal)
{
    r->max_thought = -1;
    return r->kind != API_CHAT ||
           (read_int(r, "thinking_budget", -1, SLM_MAX_POSITIONS, &r->max_thought,
                     refusal) &&
            read_int(r, "reasoning_budget", -1, SLM_MAX_POSITIONS, &r->max_thought,
                     refusal));
}

static bool read_length(struct api_request *r, struct refusal *refusal)
{
    /* The API's default for completions. */
    r->max_tokens = r->kind == API_COMPLETION ? 16 : 0;
    r->uses_prefixes = true;
    return read_max(r, "max_tokens", refusal) &&
           (r->kind == API_COMPLETION ||
            read_max(r, "max_completion_tokens", refusal)) &&
           read_bool(r->root, "ignore_eos", &r->ignore_end, refusal) &&
           read_bool(r->root, "cache_prompt", &r->uses_prefixes, refusal);
}

static bool read_schema(struct api_request *r, const json_t *schema,
                        struct refusal *refusal)
{
    if (!json_is_object(schema))
        return refuse(refusal, 400, NULL, "response_format",
                      "response_format.json_schema.schema must be an object");
    r->format = API_SCHEMA;
    r->schema = json_dumps(schema, JSON_COMPACT);
    if (!r->schema)
        return refuse(refusal, 503, NULL, NULL, "no memory for the schema");
    return true;
}

static bool read_format(struct api_request *r, struct refusal *refusal)
{
    const json_t *format = api_member(r->root, "response_format");
    const char *type = json_text(api_member(format, "type"));
    const json_t *schema = api_member(api_member(format, "json_schema"), "schema");
    /* As llama.cpp's server accepts it, also with json_object. */
    const json_t *direct = api_member(format, "schema");

    if (!format)
        return true;
    if (type && !strcmp(type, "json_schema"))
        return read_schema(r, schema ? schema : direct, refusal);
    if (type && !strcmp(type, "json_object") && direct)
        return read_schema(r, direct, refusal);
    if (type && !strcmp(type, "json_object"))
        r->format = API_JSON;
    else if (!type || strcmp(type, "text"))
        return refuse(refusal, 400, NULL, "response_format",
                      "response_format.type must be text, json_object or json_schema");
    return true;
}

/* ---- the whole ------------------------------------------------------------------- */

static bool read_stream(struct api_request *r, struct refusal *refusal)
{
    const json_t *options = api_member(r->root, "stream_options");

    if (!read_bool(r->root, "stream", &r->stream, refusal))
        return false;
    if (options && !json_is_object(options))
        return refuse(refusal, 400, NULL, "stream_options",
                      "stream_options must be an object");
    if (options && !r->stream)
        return refuse(refusal, 400, NULL, "stream_options",
                      "stream_options needs stream: true");
    return read_bool(options, "include_usage", &r->include_usage, refusal);
}

static bool read_model(struct api_request *r, struct refusal *refusal)
{
    const json_t *model = api_member(r->root, "model");
    char shown[60];

    if (model && (!json_is_string(model) || json_no_number(model)))
        return refuse(refusal, 400, NULL, "model", "model must be a string");
    if (model && !json_text(model))
        return refuse(refusal, 404, "model_not_found", "model", "there is no model %s",
                      json_shown(shown, sizeof shown, model));
    r->model = json_text(model);
    return true;
}

static bool read_all(struct api_request *r, int n_vocab, struct refusal *refusal)
{
    const size_t most = API_MAX_CHOICES;

    r->n = 1;
    /* As the API has it. */
    r->sampling = sampler_params_default();
    r->sampling.temperature = 1.0f;
    if (!read_stream(r, refusal) || !read_int(r, "n", 1, (int)most, &r->n, refusal) ||
        !read_sampling(r, refusal) || !read_biases(r, n_vocab, refusal) ||
        !read_logprobs(r, refusal) || !read_stops(r, refusal) ||
        !read_length(r, refusal) || !read_thinking(r, refusal) ||
        !read_format(r, refusal))
        return false;
    if (r->kind == API_CHAT)
        return api_read_tools(r, refusal) && api_read_conversation(r, refusal);
    if (!api_read_prompts(r, n_vocab, refusal))
        return false;
    if (r->n_prompts * (size_t)r->n > most)
        return refuse(refusal, 400, NULL, "n",
                      "%zu prompts times n %d are more than %zu completions",
                      r->n_prompts, r->n, most);
    return true;
}

/* Texts and how their vectors are written. */
static bool read_embedding(struct api_request *r, int n_vocab, struct refusal *refusal)
{
    const json_t *format = api_member(r->root, "encoding_format");
    const char *name = format ? json_text(format) : "float";

    r->n = 1;
    if (!name || (strcmp(name, "float") && strcmp(name, "base64")))
        return refuse(refusal, 400, NULL, "encoding_format",
                      "encoding_format must be \"float\" or \"base64\"");
    r->base64 = !strcmp(name, "base64");
    return read_int(r, "dimensions", 1, 1 << 24, &r->dimensions, refusal) &&
           api_read_prompts(r, n_vocab, refusal);
}

/* One text, or the tokens of one. */
static bool read_tokens(struct api_request *r, int n_vocab, struct refusal *refusal)
{
    r->parse_special = true; /* as llama.cpp's server has it */
    if (!read_bool(r->root, "add_special", &r->add_special, refusal) ||
        !read_bool(r->root, "parse_special", &r->parse_special, refusal) ||
        !read_bool(r->root, "with_pieces", &r->with_pieces, refusal) ||
        !api_read_prompts(r, n_vocab, refusal))
        return false;
    if (r->n_prompts == 1 && (r->kind == API_TOKENIZE) == !r->prompts->ids)
        return true;
    return r->kind == API_TOKENIZE
               ? refuse(refusal, 400, NULL, "content", "content must be a text")
               : refuse(refusal, 400, NULL, "tokens",
                        "tokens must be an array of tokens");
}

/* Another API's body becomes a chat's, which is read in its place. */
static bool translate(struct api_request *r, struct refusal *refusal)
{
    const bool is_count = r->kind == API_COUNT;
    json_t *chat;

    if (r->kind != API_MESSAGES && r->kind != API_RESPONSES && !is_count)
        return true;
    r->form = r->kind == API_RESPONSES ? &reply_responses : &reply_messages;
    chat = r->kind == API_RESPONSES ? translate_responses(r->root, &r->echo, refusal)
                                    : translate_messages(r->root, is_count, refusal);
    if (!chat)
        return false;
    json_decref(r->root);
    r->root = chat;
    r->kind = API_CHAT;
    return true;
}

static bool read_kind(struct api_request *r, int n_vocab, struct refusal *refusal)
{
    switch (r->kind) {
    case API_TEMPLATE:
        return api_read_conversation(r, refusal);
    case API_EMBEDDING:
        return read_embedding(r, n_vocab, refusal);
    case API_TOKENIZE:
    case API_DETOKENIZE:
        return read_tokens(r, n_vocab, refusal);
    default:
        return read_all(r, n_vocab, refusal);
    }
}

bool api_request_read(struct api_request *r, enum api_kind kind, const char *body,
                      size_t len, int n_vocab, struct refusal *refusal)
{
    const struct json_limit limit = {SIZE_MAX, API_MAX_VALUES};
    struct err err = ERR_INIT;
    struct jsonfile file = {.root = NULL};

    *r = (struct api_request){.kind = kind};
    /* A key that occurs twice is refused: a proxy that checked the body may have taken
     * the other value. */
    if (jsonfile_parse(&file, "the body", body, len, limit, JSON_UNIQUE, &err))
        return refuse_err(refusal, &err, NULL);
    r->root = file.root;
    if (api_check_fields(r, refusal) && translate(r, refusal) &&
        read_model(r, refusal) && read_kind(r, n_vocab, refusal))
        return true;
    api_request_free(r);
    return false;
}

void api_request_free(struct api_request *r)
{
    for (size_t i = 0; i < r->n_prompts; i++)
        free(r->prompts[i].ids);
    free(r->prompts);
    json_decref(r->conversation);
    free(r->biases);
    free(r->schema);
    api_free_tools(&r->tools);
    free(r->echo);
    json_decref(r->root);
    *r = (struct api_request){.root = NULL};
}

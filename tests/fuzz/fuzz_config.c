/* SPDX-License-Identifier: MIT
 *
 * fuzz_config.c - the small JSON files of a Hugging Face folder
 *
 * The input is config.json, or an object whose members are files of the folder
 * ("config.json", "tokenizer.json", ...). Next to them is one small safetensors file.
 * An accepted folder's metadata are read, and its vocabulary is used.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/hf/hf_impl.h"
#include "tests/fuzz/support/model_file.h"
#include "tests/fuzz/support/mutate.h"

static const char *const files[] = {"config.json",
                                    "tokenizer.json",
                                    "tokenizer_config.json",
                                    "generation_config.json",
                                    "special_tokens_map.json",
                                    "chat_template.json"};

static void put_tensors(void)
{
    static const char header[] = "\x48\0\0\0\0\0\0\0"
                                 "{\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":["
                                 "8],\"data_offsets\":[0,32]}}"
                                 "                                ";

    fuzz_file("model.safetensors", header, 8 + 0x48 + 32);
}

static void put_folder(const json_t *folder, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const json_t *member = json_object_get(folder, files[i]);
        char *text = member ? json_dumps(member, JSON_ENCODE_ANY) : NULL;

        unlink(fuzz_path(files[i]));
        if (text)
            fuzz_file(files[i], text, strlen(text));
        else if (i == 0)
            fuzz_file(files[i], data, size);
        free(text);
    }
}

static void read_config(void)
{
    struct gguf_kvs kvs = {.n = 0};
    struct err err = ERR_INIT;
    struct hf_config c;

    memset(&c, 0, sizeof c);
    fuzz_accepted(hf_config_load(&c, fuzz_dir(), &kvs, &err), &err);
    hf_config_free(&c);
    free(kvs.bytes.data);
}

static void use_model(const struct gguf *g)
{
    static const char text[] = " the <s> \xc3\xa9 \xff quick";

    image_read_metadata(g);
    image_use_tokenizer(g, text, sizeof text - 1);
}

static void read_folder(const uint8_t *data, size_t size)
{
    json_t *folder = json_loadb((const char *)data, size, 0, NULL);
    struct err err = ERR_INIT;
    struct gguf *g;

    put_folder(folder, data, size);
    fuzz_input_grows(size); /* the harness has it in memory, too */
    read_config();
    if (fuzz_accepted(hf_open(&g, fuzz_dir(), &err), &err)) {
        use_model(g);
        gguf_close(g);
    }
    json_decref(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    put_tensors();
    return fuzz_run(read_folder, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"model_type",
                                        "llama",
                                        "gemma2",
                                        "gemma3",
                                        "gemma3_text",
                                        "qwen2",
                                        "qwen2_moe",
                                        "qwen3",
                                        "qwen3_moe",
                                        "qwen3_5",
                                        "qwen3_5_moe",
                                        "phi",
                                        "phi3",
                                        "stablelm",
                                        "glm4",
                                        "chatglm",
                                        "mistral",
                                        "mixtral",
                                        "bitnet",
                                        "xlm-roberta",
                                        "pad_token_id",
                                        "BitnetForCausalLM",
                                        "text_config",
                                        "architectures",
                                        "num_hidden_layers",
                                        "hidden_size",
                                        "intermediate_size",
                                        "num_attention_heads",
                                        "num_key_value_heads",
                                        "head_dim",
                                        "vocab_size",
                                        "max_position_embeddings",
                                        "rms_norm_eps",
                                        "rope_theta",
                                        "rope_scaling",
                                        "rope_parameters",
                                        "rope_type",
                                        "type",
                                        "linear",
                                        "llama3",
                                        "yarn",
                                        "longrope",
                                        "short_factor",
                                        "long_factor",
                                        "factor",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "original_max_position_embeddings",
                                        "mrope_section",
                                        "partial_rotary_factor",
                                        "sliding_window",
                                        "layer_types",
                                        "full_attention",
                                        "sliding_attention",
                                        "linear_attention",
                                        "num_experts",
                                        "num_local_experts",
                                        "num_experts_per_tok",
                                        "tie_word_embeddings",
                                        "hidden_act",
                                        "silu",
                                        "gelu_pytorch_tanh",
                                        "attention_bias",
                                        "quantization_config",
                                        "tokenizer.json",
                                        "config.json",
                                        "tokenizer_config.json",
                                        "generation_config.json",
                                        "special_tokens_map.json",
                                        "chat_template.json",
                                        "chat_template",
                                        "name",
                                        "template",
                                        "default",
                                        "tool_use",
                                        "truncate",
                                        "beta_fast",
                                        "eos_token_id",
                                        "bos_token",
                                        "eos_token",
                                        "added_tokens_decoder",
                                        "add_bos_token",
                                        NULL};

    return mutate_json(data, size, max_size, seed, words);
}

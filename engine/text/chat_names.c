/* SPDX-License-Identifier: MIT
 *
 * chat_names.c - templates for models that carry none, by name
 *
 * Each writes the plain form of its family: messages with their markers, and the
 * beginning of an answer. Sources: the families' published prompt formats.
 */
#include "engine/text/chat_impl.h"

#include <string.h>

/* Families without a place for a system message put it before the first question. */
#define SYSTEM_IN_USER                                      \
    "{%- set system = namespace(text='') %}"                \
    "{%- if messages[0].role == 'system' %}"                \
    "{%- set system.text = messages[0].content ~ '\n\n' %}" \
    "{%- set messages = messages[1:] %}{% endif %}"

const struct chat_named chat_named[] = {
    {"chatml",
     "{%- for m in messages %}"
     "{{ '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>\n' }}"
     "{%- endfor %}"
     "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"},
    {"gemma", SYSTEM_IN_USER
     "{{ bos_token }}{%- for m in messages %}"
     "{{ '<start_of_turn>' ~ ('model' if m.role == 'assistant' else m.role) ~ '\n' }}"
     "{{- system.text if loop.first }}"
     "{{- m.content | trim ~ '<end_of_turn>\n' }}{%- endfor %}"
     "{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"},
    {"llama-2", "{%- set system = namespace(text='') %}"
                "{%- if messages[0].role == 'system' %}"
                "{%- set system.text = '<<SYS>>\n' ~ messages[0].content | trim ~ "
                "'\n<</SYS>>\n\n' %}"
                "{%- set messages = messages[1:] %}{% endif %}"
                "{%- for m in messages %}{% if m.role == 'user' %}"
                "{{- bos_token ~ '[INST] ' ~ (system.text if loop.first else '') ~ "
                "m.content | trim ~ ' [/INST]' }}"
                "{%- else %}{{- ' ' ~ m.content | trim ~ ' ' ~ eos_token }}{% endif %}"
                "{%- endfor %}"},
    {"llama-3",
     "{{ bos_token }}{%- for m in messages %}"
     "{{ '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\n\n' ~ m.content | trim "
     "~ '<|eot_id|>' }}{%- endfor %}{%- if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"},
    {"mistral", SYSTEM_IN_USER
     "{{ bos_token }}{%- for m in messages %}{% if m.role == 'user' %}"
     "{{- '[INST] ' ~ (system.text if loop.last else '') ~ m.content ~ ' [/INST]' }}"
     "{%- else %}{{- ' ' ~ m.content ~ eos_token }}{% endif %}{%- endfor %}"},
    {"phi-3", "{%- for m in messages %}"
              "{{ '<|' ~ m.role ~ '|>\n' ~ m.content ~ '<|end|>\n' }}{%- endfor %}"
              "{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"},
    {"zephyr",
     "{%- for m in messages %}"
     "{{ '<|' ~ m.role ~ '|>\n' ~ m.content ~ eos_token ~ '\n' }}{%- endfor %}"
     "{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"},
};

const size_t chat_n_named = sizeof chat_named / sizeof chat_named[0];

const char *chat_template_names(void)
{
    return "chatml, gemma, llama-2, llama-3, mistral, phi-3, zephyr";
}

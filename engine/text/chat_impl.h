/* SPDX-License-Identifier: MIT
 *
 * chat_impl.h - templates by name, for chat.c
 */
#ifndef SLM_ENGINE_TEXT_CHAT_IMPL_H
#define SLM_ENGINE_TEXT_CHAT_IMPL_H

#include "engine/text/chat.h"

struct chat_named {
    const char *name, *text;
};

extern const struct chat_named chat_named[];
extern const size_t chat_n_named;

#endif

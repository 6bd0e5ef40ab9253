/* SPDX-License-Identifier: MIT
 *
 * shellword.c - quoting for sh
 */
#include "harness/base/shellword.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"

void shell_word_append(char *buf, size_t cap, const char *word)
{
    static const char harmless[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+=@%";

    if (*word && word[strspn(word, harmless)] == '\0') {
        text_append(buf, cap, " %s", word);
        return;
    }
    text_append(buf, cap, " '");
    for (; *word; word++)
        text_append(buf, cap, "%.*s", *word == '\'' ? 4 : 1,
                    *word == '\'' ? "'\\''" : word);
    text_append(buf, cap, "'");
}

/* SPDX-License-Identifier: MIT
 *
 * shellword.c - quoting for sh
 */
#include "harness/shellword.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static void append(char *buf, size_t cap,
                                                         const char *fmt, ...)
{
    const size_t used = strlen(buf);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf + used, cap - used, fmt, ap);
    va_end(ap);
}

void shell_word_append(char *buf, size_t cap, const char *word)
{
    static const char harmless[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "0123456789_-./:,+=@%";

    if (*word && word[strspn(word, harmless)] == '\0') {
        append(buf, cap, " %s", word);
        return;
    }
    append(buf, cap, " '");
    for (; *word; word++)
        append(buf, cap, "%.*s", *word == '\'' ? 4 : 1, *word == '\'' ? "'\\''" : word);
    append(buf, cap, "'");
}

/* SPDX-License-Identifier: MIT
 *
 * foreign.c - no control of terminals and of workflows by texts of others
 */
#include "harness/base/foreign.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/utf8.h"

/* Texts are wrapped at blanks, and what counts as a blank in Unicode is no ASCII: so
 * any word may begin a line. */
static bool begins_word(const char *text, const char *at)
{
    const unsigned char before = at > text ? (unsigned char)at[-1] : ' ';

    return before <= ' ' || before > '~';
}

const char *foreign_text(char *buf, size_t cap, const char *text)
{
    text = text ? text : "";
    utf8_printable(buf, cap, text, strlen(text));
    for (char *c = buf; *c; c++)
        if ((!strncmp(c, "::", 2) && begins_word(buf, c)) || !strncmp(c, "##[", 3))
            *c = '.';
    return buf;
}

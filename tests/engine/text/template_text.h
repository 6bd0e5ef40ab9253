/* SPDX-License-Identifier: MIT
 *
 * template_text.h - a chat template from its text
 *
 * Threading: any thread.
 */
#ifndef SLM_TESTS_ENGINE_TEXT_TEMPLATE_TEXT_H
#define SLM_TESTS_ENGINE_TEXT_TEMPLATE_TEXT_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/text/chat.h"
#include "tests/support/test.h"

/* For tok's model. NULL: it cannot be opened, and the reason is printed. The caller
 * closes it. */
static inline struct chat_template *open_template(const struct tokenizer *tok,
                                                  const char *source)
{
    char path[] = "template-XXXXXX";
    struct chat_template *c = NULL;
    struct err err = ERR_INIT;
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, source, strlen(source)), (ssize_t)strlen(source));
    close(fd);
    if (chat_template_open(&c, NULL, tok, path, &err))
        print_error("%s\n", err.msg);
    unlink(path);
    return c;
}

#endif

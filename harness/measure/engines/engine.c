/* SPDX-License-Identifier: MIT
 *
 * engine.c - NAME=COMMAND into a struct engine
 */
#include "harness/measure/engines/engine.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/measure/engines/engine_output.h"

#define BY_REGEX " =~ "
#define BY_JSON  " => "

static enum status take_name(struct engine *e, const char *text, const char *what,
                             struct err *err)
{
    const size_t n = strcspn(text, "=");
    bool is_name = n > 0 && n <= ENGINE_MAX_NAME && text[n] == '=';

    for (size_t i = 0; i < n && is_name; i++)
        is_name = isalnum((unsigned char)text[i]) || strchr("._-", text[i]);
    if (!is_name)
        return err_set(err, ST_USAGE,
                       "%s: %s does not begin with a name of up to %d letters, digits, "
                       "'.', '_' or '-' and '='; write llama.cpp=PATH/llama-bench",
                       what, format_path(text).text, ENGINE_MAX_NAME);
    if (n == strlen("slmbench") && !strncmp(text, "slmbench", n))
        return err_set(err, ST_USAGE,
                       "%s: slmbench is this program, which is always measured", what);
    snprintf(e->name, sizeof e->name, "%.*s", (int)n, text);
    return ST_OK;
}

/* The last place of a separator; NULL: none. */
static const char *last_of(const char *text, const char *separator)
{
    const char *found = NULL;

    for (const char *p = text; (p = strstr(p, separator)) != NULL; p++)
        found = p;
    return found;
}

/* Cuts the figure off the command, which then has *n characters. */
static void take_figure(struct engine *e, const char *command, size_t *n)
{
    const char *regex = last_of(command, BY_REGEX), *json = last_of(command, BY_JSON);
    const char *at = regex && (!json || regex > json) ? regex : json;

    *n = strlen(command);
    if (!at || !strstr(command, "{model}"))
        return;
    e->kind = at == regex ? ENGINE_BY_REGEX : ENGINE_BY_JSON;
    *n = (size_t)(at - command);
    snprintf(e->figure, sizeof e->figure, "%s", at + strlen(BY_REGEX));
}

/* One word of text[n] from *at on, without its quotes, to out; false: a quote has no
 * end. */
static bool read_word(const char *text, size_t n, size_t *at, char *out)
{
    char quote = '\0';

    for (; *at < n && (quote || text[*at] != ' '); ++*at) {
        const char c = text[*at];

        if (quote ? c == quote : c == '\'' || c == '"')
            quote = quote ? '\0' : c;
        else if (c == '\\' && quote != '\'' && *at + 1 < n)
            *out++ = text[++*at];
        else
            *out++ = c;
    }
    *out = '\0';
    return !quote;
}

static enum status divide(struct engine *e, const char *text, size_t n,
                          const char *what, struct err *err)
{
    char *out = e->words;

    for (size_t at = 0;;) {
        while (at < n && text[at] == ' ')
            at++;
        if (at == n)
            break;
        if (e->n_words == ENGINE_MAX_WORDS)
            return err_set(err, ST_USAGE, "%s: %s: a command of more than %d words",
                           what, e->name, ENGINE_MAX_WORDS);
        if (!read_word(text, n, &at, out))
            return err_set(err, ST_USAGE, "%s: %s: a quote has no end", what, e->name);
        e->word_at[e->n_words++] = (size_t)(out - e->words);
        out += strlen(out) + 1;
    }
    if (!e->n_words || !*engine_word(e, 0))
        return err_set(err, ST_USAGE, "%s: %s names no program", what, e->name);
    return ST_OK;
}

static bool has_word_with(const struct engine *e, const char *text)
{
    for (int i = 0; i < e->n_words; i++)
        if (strstr(engine_word(e, i), text))
            return true;
    return false;
}

/* Braces of something else stay as they are. */
static enum status check_template(struct engine *e, const char *what, struct err *err)
{
    const bool has_model = has_word_with(e, "{model}");
    const bool has_port = has_word_with(e, "{port}");

    if (has_port && engine_prints(e))
        return err_set(err, ST_USAGE,
                       "%s: %s: a server ({port}) is measured over HTTP: leave out the "
                       "text after '%s'",
                       what, e->name, e->kind == ENGINE_BY_REGEX ? BY_REGEX : BY_JSON);
    if (has_model && has_port)
        e->kind = ENGINE_SERVER;
    else if (has_model && e->kind == ENGINE_LLAMA)
        return err_set(
            err, ST_USAGE,
            "%s: %s: add to the command where its figure is: ' =~ REGEX' with a group "
            "for tokens per second, or ' => MEMBER.INDEX.MEMBER' in its JSON; for a "
            "server, put {port} into the command",
            what, e->name);
    if (!has_model && (has_port || engine_prints(e)))
        return err_set(err, ST_USAGE, "%s: %s: no word of the command has {model}",
                       what, e->name);
    return e->kind == ENGINE_BY_REGEX ? engine_check_regex(e->figure, what, err)
                                      : ST_OK;
}

enum status engine_parse(struct engine *e, const char *text, const char *what,
                         struct err *err)
{
    const char *command;
    size_t n;

    memset(e, 0, sizeof *e);
    if (strlen(text) > ENGINE_MAX_TEXT)
        return err_set(err, ST_USAGE, "%s: %zu characters; at most %d are possible",
                       what, strlen(text), ENGINE_MAX_TEXT);
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ')
            return err_set(err, ST_USAGE, "%s: a control character in %s", what,
                           format_path(text).text);
    if (take_name(e, text, what, err))
        return ST_USAGE;
    command = text + strlen(e->name) + 1;
    take_figure(e, command, &n);
    if (divide(e, command, n, what, err))
        return ST_USAGE;
    return check_template(e, what, err);
}

enum status engine_absolute(const char *text, char *out, size_t cap, const char *what,
                            struct err *err)
{
    const char *begin = strchr(text, '=');
    char file[ENGINE_MAX_TEXT + 1], *path = NULL;
    size_t n, rest;
    int len;

    begin = begin ? begin + 1 : text;
    begin += strspn(begin, " ");
    n = strcspn(begin, " ");
    rest = strcspn(begin, "'\"\\");
    snprintf(file, sizeof file, "%.*s", (int)n, begin);
    if (*begin != '/' && strchr(file, '/') && rest >= n)
        path = realpath(file, NULL);
    len =
        path && !strpbrk(path, " '\"\\")
            ? snprintf(out, cap, "%.*s%s%s", (int)(begin - text), text, path, begin + n)
            : snprintf(out, cap, "%s", text);
    free(path);
    if (len < 0 || (size_t)len >= cap || len > ENGINE_MAX_TEXT)
        return err_set(err, ST_USAGE,
                       "%s: %s has more than %d characters with its whole path", what,
                       format_path(text).text, ENGINE_MAX_TEXT);
    return ST_OK;
}

enum status engine_find(const struct engine *e, char *path, size_t cap, struct err *err)
{
    const char *env = getenv("PATH"), *dir = env ? env : "";

    if (strchr(engine_word(e, 0), '/')) {
        if ((size_t)snprintf(path, cap, "%s", engine_word(e, 0)) < cap &&
            !access(path, X_OK))
            return ST_OK;
        return err_set(err, ST_INPUT, "%s: cannot run %s: %s", e->name,
                       format_path(engine_word(e, 0)).text, strerror(errno));
    }
    for (;; dir++) {
        const size_t n = strcspn(dir, ":");

        if (n && dir[0] == '/' &&
            (size_t)snprintf(path, cap, "%.*s/%s", (int)n, dir, engine_word(e, 0)) <
                cap &&
            !access(path, X_OK))
            return ST_OK;
        dir += n;
        if (!*dir)
            break;
    }
    return err_set(err, ST_INPUT, "%s: no program %s in PATH", e->name,
                   format_path(engine_word(e, 0)).text);
}

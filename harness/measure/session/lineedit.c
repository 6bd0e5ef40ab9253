/* SPDX-License-Identifier: MIT
 *
 * lineedit.c - lines from a person at a terminal, or from a pipe
 */
#include "harness/measure/session/lineedit.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "harness/base/interrupt.h"

#define HISTORY_LINES 1000

struct lineedit {
    bool prompts;       /* standard input is a terminal */
    EditLine *el;       /* NULL: lines as they are */
    History *history;   /* of el */
    const char *prompt; /* of the line that is read */
    char *line;         /* getline()'s; without el */
    size_t cap;
};

static char *prompt_of(EditLine *el)
{
    struct lineedit *l = NULL;

    el_get(el, EL_CLIENTDATA, (void **)&l);
    return (char *)(uintptr_t)l->prompt;
}

/* The character that bytes[*n] are in the locale, 1; invalid bytes are
 * skipped; 0: another byte is needed. */
static int decode(char *bytes, size_t *n, wchar_t *out)
{
    for (;;) {
        mbstate_t state = {0};
        const size_t len = mbrtowc(out, bytes, *n, &state);

        if (len == (size_t)-2 && *n < MB_LEN_MAX)
            return 0;
        if (len != (size_t)-1 && len != (size_t)-2)
            return 1;
        if (*n <= 1) {
            *n = 0;
            return 0;
        }
        bytes[0] = bytes[*n - 1];
        *n = 1;
    }
}

/* libedit's own function continues after the first signal. */
static int read_char(EditLine *el, wchar_t *out)
{
    char bytes[MB_LEN_MAX];
    size_t n = 0;

    (void)el;
    for (;;) {
        ssize_t got;

        errno = EINTR;
        if (interrupted())
            return -1;
        got = read(STDIN_FILENO, bytes + n, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return (int)got;
        n++;
        if (decode(bytes, &n, out))
            return 1;
    }
}

static bool open_editor(struct lineedit *l)
{
    HistEvent event;

    /* Characters of more than one byte are those of the locale; where it knows none, as
     * in most containers, they are UTF-8. */
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    l->el = el_init("bench", stdin, stderr, stderr);
    l->history = history_init();
    if (!l->el || !l->history)
        return false;
    history(l->history, &event, H_SETSIZE, HISTORY_LINES);
    history(l->history, &event, H_SETUNIQUE, 1);
    el_set(l->el, EL_CLIENTDATA, l);
    el_set(l->el, EL_PROMPT, prompt_of);
    el_set(l->el, EL_EDITOR, "emacs");
    el_set(l->el, EL_HIST, history, l->history);
    el_set(l->el, EL_GETCFN, read_char);
    el_set(l->el, EL_SIGNAL, 1); /* the terminal is put right when the program stops */
    el_set(l->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    return true;
}

enum status lineedit_open(struct lineedit **l, struct err *err)
{
    struct lineedit *new = calloc(1, sizeof *new);

    if (new)
        new->prompts = isatty(STDIN_FILENO);
    if (!new || (new->prompts &&isatty(STDERR_FILENO) && !open_editor(new))) {
        lineedit_close(new);
        return err_set(err, ST_NO_MEMORY, "no memory to edit lines");
    }
    *l = new;
    return ST_OK;
}

void lineedit_close(struct lineedit *l)
{
    if (!l)
        return;
    if (l->el)
        el_end(l->el);
    if (l->history)
        history_end(l->history);
    free(l->line);
    free(l);
}

/* What read a line was ended by, without one. */
static enum status no_line(bool *end, bool failed, struct err *err)
{
    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (failed)
        return err_set_errno(err, ST_IO, "cannot read the question");
    *end = true;
    return ST_OK;
}

static enum status keep(struct lineedit *l, const char *text, size_t n, struct err *err)
{
    if (n + 1 > l->cap) {
        char *more = realloc(l->line, n + 1);

        if (!more)
            return err_set(err, ST_NO_MEMORY, "no memory for a line");
        l->line = more;
        l->cap = n + 1;
    }
    memcpy(l->line, text, n);
    l->line[n] = '\0';
    return ST_OK;
}

static enum status edit(struct lineedit *l, bool *end, struct err *err)
{
    HistEvent event;
    const char *text;
    enum status st;
    int n = 0;

    errno = 0;
    text = el_gets(l->el, &n);
    if (!text || n <= 0) {
        if (n == 0 && !interrupted())
            fputc('\n', stderr); /* Ctrl-D leaves the cursor behind the prompt */
        return no_line(end, n < 0, err);
    }
    st = keep(l, text, (size_t)n, err);
    if (!st && text[strspn(text, " \t\r\n")]) {
        l->line[strcspn(l->line, "\r\n")] = '\0';
        history(l->history, &event, H_ENTER, l->line);
    }
    return st;
}

enum status lineedit_read(struct lineedit *l, const char *prompt, const char **line,
                          bool *end, struct err *err)
{
    enum status st = ST_OK;
    size_t n;

    l->prompt = prompt;
    if (l->el) {
        st = edit(l, end, err);
    } else {
        if (l->prompts)
            fputs(prompt, stderr);
        errno = 0;
        if (getline(&l->line, &l->cap, stdin) < 0)
            st = no_line(end, ferror(stdin), err);
    }
    if (st || *end)
        return st;
    n = strlen(l->line);
    while (n && (l->line[n - 1] == '\n' || l->line[n - 1] == '\r'))
        l->line[--n] = '\0';
    *line = l->line;
    return ST_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * format.c - figures and texts as people read them
 */
#include "harness/base/format.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "engine/base/utf8.h"

const char *plural(long long n, const char *ending)
{
    return n == 1 ? "" : ending;
}

void text_append(char *buf, size_t cap, const char *fmt, ...)
{
    const size_t used = strlen(buf);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf + used, cap - used, fmt, ap);
    va_end(ap);
}

const char *format_now(char *buf, size_t cap)
{
    const time_t now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(buf, cap, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return buf;
}

void format_size(char *buf, size_t cap, uint64_t bytes)
{
    static const char suffix[] = "BKMGT";
    int u = 0;

    while (u < 4 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(buf, cap, "%llu%.*s", (unsigned long long)bytes, u > 0, &suffix[u]);
}

const char *format_bytes(char *buf, size_t cap, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int u = 0;

    while (v >= 1024 && u < 4) {
        v /= 1024;
        u++;
    }
    if (u == 0)
        snprintf(buf, cap, "%d B", (int)v);
    else
        snprintf(buf, cap, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[u]);
    return buf;
}

const char *format_duration(char *buf, size_t cap, double seconds)
{
    const long s = lround(seconds);

    if (seconds < 10)
        snprintf(buf, cap, "%.1f s", seconds);
    else if (s < 60)
        snprintf(buf, cap, "%ld s", s);
    else if (s < 3600)
        snprintf(buf, cap, "%ld:%02ld min", s / 60, s % 60);
    else
        snprintf(buf, cap, "%ld h %02ld min", s / 3600, s % 3600 / 60);
    return buf;
}

struct shown_figure bytes_text(uint64_t bytes)
{
    struct shown_figure shown;

    format_bytes(shown.text, sizeof shown.text, bytes);
    return shown;
}

struct shown_figure duration_text(double seconds)
{
    struct shown_figure shown;

    format_duration(shown.text, sizeof shown.text, seconds);
    return shown;
}

const char *format_measured(char *buf, size_t cap, double v, double half,
                            int max_decimals)
{
    double unit = 1;
    int decimals = max_decimals;

    if (half > 0 && isfinite(half)) {
        const int own = v != 0 ? -(int)floor(log10(fabs(v))) : 0; /* its first digit */

        decimals = 1 - (int)floor(log10(half));
        decimals = decimals > own ? decimals : own;
        for (; decimals < 0; decimals++)
            unit *= 10;
        decimals = decimals < max_decimals ? decimals : max_decimals;
    }
    snprintf(buf, cap, "%.*f", decimals, unit > 1 ? round(v / unit) * unit : v);
    return buf;
}

struct shown_figure number_text(double v)
{
    struct shown_figure shown;

    format_measured(shown.text, sizeof shown.text, v, fabs(v) / 10, 4);
    return shown;
}

void format_cpus(char *buf, size_t cap, const int *cpus, int n)
{
    buf[0] = '\0';
    for (int i = 0; i < n;) {
        int last = i;

        while (last + 1 < n && cpus[last + 1] == cpus[last] + 1)
            last++;
        text_append(buf, cap, "%s%d", i ? "," : "", cpus[i]);
        if (last > i)
            text_append(buf, cap, "-%d", cpus[last]);
        i = last + 1;
    }
    if (strlen(buf) == cap - 1 && cap > 4)
        strcpy(buf + cap - 4, "...");
}

const char *text_harmless(char *buf, size_t cap, const char *text)
{
    text = text ? text : "";
    return utf8_harmless(buf, cap, text, strlen(text));
}

void markdown_put(FILE *f, const char *text)
{
    char line[2048];

    utf8_printable(line, sizeof line, text, strlen(text));
    for (const char *c = line; *c; c++)
        if (*c == '<')
            fputs("&lt;", f);
        else if (*c == '&')
            fputs("&amp;", f);
        else if (*c == '@') /* escaped, so that @ mentions nobody */
            fputs("@<!-- -->", f);
        else
            fprintf(f,
                    strchr("\\`*_[]{}#|>~!$", *c) || !strncmp(c, "://", 3) ? "\\%c"
                                                                           : "%c",
                    *c);
}

char *text_squeeze(char *text)
{
    size_t used = 0;

    for (const char *from = text; *from; from++) {
        if (*from != ' ' && *from != '\t')
            text[used++] = *from;
        else if (used && text[used - 1] != ' ')
            text[used++] = ' ';
    }
    if (used && text[used - 1] == ' ')
        used--;
    text[used] = '\0';
    return text;
}

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Bytes of the first n characters of text. */
static size_t bytes_of(const char *text, size_t n)
{
    size_t i = 0;

    for (; text[i]; i++)
        if (begins_character(text[i]) && n-- == 0)
            break;
    return i;
}

const char *text_shorten(char *buf, size_t cap, const char *text, size_t n)
{
    size_t n_characters = 0;

    for (const char *p = text; *p; p++)
        n_characters += begins_character(*p);
    if (n_characters <= n)
        snprintf(buf, cap, "%s", text);
    else
        snprintf(buf, cap, "%.*s\xe2\x80\xa6%s", (int)bytes_of(text, n / 2), text,
                 text + bytes_of(text, n_characters - (n - n / 2 - 1)));
    return buf;
}

struct shown_path format_path(const char *path)
{
    struct shown_path shown;

    text_harmless(shown.text, sizeof shown.text, path);
    return shown;
}

static const char word_chars[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+=@%";

/* $'...', where every character that means anything is written by its number. */
static void append_escaped(char *buf, size_t cap, const char *word)
{
    text_append(buf, cap, " $'");
    for (; *word; word++)
        text_append(buf, cap, strchr(word_chars, *word) ? "%c" : "\\x%02x",
                    (unsigned char)*word);
    text_append(buf, cap, "'");
}

void shell_word_append(char *buf, size_t cap, const char *word)
{
    struct shown_path shown = format_path(word);

    if (strcmp(shown.text, word) != 0) {
        append_escaped(buf, cap, word);
        return;
    }
    if (*word && word[strspn(word, word_chars)] == '\0') {
        text_append(buf, cap, " %s", word);
        return;
    }
    text_append(buf, cap, " '");
    for (; *word; word++)
        text_append(buf, cap, "%.*s", *word == '\'' ? 4 : 1,
                    *word == '\'' ? "'\\''" : word);
    text_append(buf, cap, "'");
}

/* Length of the first word of text; what stands in brackets or backticks is one word.
 */
static size_t word_length(const char *text, bool keep_brackets)
{
    bool is_command = false;
    int depth = 0;
    size_t n = 0;

    for (; text[n] && text[n] != '\n' && (text[n] != ' ' || depth || is_command); n++)
        if (keep_brackets) {
            depth += (text[n] == '[') - (text[n] == ']');
            is_command ^= text[n] == '`';
        }
    return n;
}

void text_wrap(FILE *f, const char *text, int column, int indent, int width,
               bool keep_brackets)
{
    bool is_first = true;

    while (*text) {
        const int len = (int)word_length(text, keep_brackets);

        if (!is_first && column + 1 + len > width) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        } else if (!is_first) {
            fputc(' ', f);
            column++;
        }
        fprintf(f, "%.*s", len, text);
        column += len;
        text += len;
        is_first = false;
        if (*text == '\n' && strchr("\n ", text[1])) {
            for (; *text == '\n'; text++)
                fputc('\n', f);
            column = 0;
            is_first = true;
            for (; *text == ' '; text++, column++)
                fputc(' ', f);
        } else if (*text) {
            text++;
        }
    }
    fputc('\n', f);
}

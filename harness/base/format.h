/* SPDX-License-Identifier: MIT
 *
 * format.h - figures, words of commands and texts of others, as people read them, in
 * the caller's buffers
 *
 * Every function keeps buf[cap] terminated and cuts what does not fit.
 *
 * Cells of a CSV file, members of a JSON file and names of files come from anybody and
 * are printed later, in places that do not know where a text came from. So each becomes
 * harmless once, when it becomes a text of this program.
 *
 * Threading: pure functions.
 * Source: GitHub's documentation of workflow commands; its runner trims blanks before
 * "::" and finds "##[" anywhere in a line.
 */
#ifndef SLM_HARNESS_BASE_FORMAT_H
#define SLM_HARNESS_BASE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What follows the word for n things: "" for one, else ending ("s", "es"), as in
 * printf("%zu launch%s", n, plural(n, "es")). */
const char *plural(long long n, const char *ending);

/* Appends to the text in buf. */
void text_append(char *buf, size_t cap, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "5.3 GiB" in binary units, into buf, which is returned. */
const char *format_bytes(char *buf, size_t cap, uint64_t bytes);

/* "2.4 s", "1:05 min", "1 h 12 min"; returns buf. */
const char *format_duration(char *buf, size_t cap, double seconds);

/* The same as values, for the arguments of a call: bytes_text(n).text. */
struct shown_figure {
    char text[24];
};
struct shown_figure bytes_text(uint64_t bytes);
struct shown_figure duration_text(double seconds);

/* A figure without an interval, in three digits. */
struct shown_figure number_text(double v);

/* The present in UTC, "2026-11-27T13:05:00Z"; returns buf. */
const char *format_now(char *buf, size_t cap);

/* 6442450944 as "6G": the shortest text that parse_bytes() reads back. */
void format_size(char *buf, size_t cap, uint64_t bytes);

/* A measured figure with no more digits than it supports: the last two are those of
 * half, half of its interval (16870, not 16871.230, where it is 843), but at least its
 * own first; with max_decimals at most, and all of them where half is NaN or 0.
 * Returns buf. */
const char *format_measured(char *buf, size_t cap, double v, double half,
                            int max_decimals);

/* CPU numbers as ranges, "0-3,8"; cut with "..." where cap is too small. */
void format_cpus(char *buf, size_t cap, const int *cpus, int n);

/* Print text, which begins in the given column, in lines of `width` characters; all but
 * the first are indented. A line end in the text is a blank, except before a blank or
 * another line end: there it stays. With keep_brackets what stands in brackets or
 * backticks is not divided. */
void text_wrap(FILE *f, const char *text, int column, int indent, int width,
               bool keep_brackets);

/* A text of somebody else as utf8_printable() makes it, so of one line and cut with
 * "..." where cap (>= 8) is too small; and no part of it that can begin a line is a
 * workflow command: the first character of "::" at the start of a word and of "##["
 * becomes a full stop. A text that is harmless and fits stays as it is. text may be
 * NULL: "". Returns buf. */
const char *text_harmless(char *buf, size_t cap, const char *text);

/* A text of somebody else on one line of GitHub's Markdown, escaped character by
 * character, so that no name can be a link, a table's bar, HTML, or mention anybody. */
void markdown_put(FILE *f, const char *text);

/* Take blanks off both ends of text and make one of several between words, in place:
 * names of CPUs are padded. Returns text. */
char *text_squeeze(char *text);

/* text as it is, or where it has more than n characters (>= 3) the same with an
 * ellipsis in its middle: names of models differ at their ends. Returns buf. */
const char *text_shorten(char *buf, size_t cap, const char *text, size_t n);

/* The name of a file or folder as it is printed: text_harmless(). */
struct shown_path {
    char text[4096];
};
struct shown_path format_path(const char *path);

/* Append a blank and one word of a command line to the text in buf[cap]: quoted unless
 * every character is harmless, and as $'...' with \xNN where text_harmless() would
 * change it, so that it is harmless and the same word; cut where buf is full. */
void shell_word_append(char *buf, size_t cap, const char *word);

#endif

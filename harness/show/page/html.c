/* SPDX-License-Identifier: MIT
 *
 * html.c - texts of others in a page
 */
#include "harness/show/page/html.h"

#include <stdarg.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/chart/svg.h"

static void put_char(FILE *f, const char *c, size_t n)
{
    static const char *const escapes['>' + 1] = {['&'] = "&amp;",
                                                 ['<'] = "&lt;",
                                                 ['>'] = "&gt;",
                                                 ['"'] = "&quot;",
                                                 ['\''] = "&#39;"};
    const unsigned char first = (unsigned char)*c;

    /* U+FFFE and U+FFFF are refused by readers of XML */
    if (!strncmp(c, "\xef\xbf\xbe", 3) || !strncmp(c, "\xef\xbf\xbf", 3))
        fputs("\xef\xbf\xbd", f);
    else if (utf8_control(c, (int)n))
        fputc(' ', f);
    else if (first <= '>' && escapes[first])
        fputs(escapes[first], f);
    else
        fwrite(c, 1, n, f);
}

void html_put(FILE *f, const char *text)
{
    svg_each_char(f, text, put_char);
}

void html_put_in(FILE *f, const char *before, const char *text, const char *after)
{
    fputs(before, f);
    html_put(f, text);
    fputs(after, f);
}

void html_printf(FILE *f, const char *fmt, ...)
{
    char text[4000];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    html_put(f, text);
}

static void put_json_char(FILE *f, const char *c, size_t n)
{
    const unsigned control = utf8_control(c, (int)n);

    if (!strncmp(c, "\xef\xbf\xbd", 3))
        fputs("\\ufffd", f);
    else if (control || (n == 1 && strchr("\"\\<>&'/", *c)))
        fprintf(f, "\\u%04x", control ? control : (unsigned)*c);
    else
        fwrite(c, 1, n, f);
}

void html_put_json(FILE *f, const char *text)
{
    fputc('"', f);
    svg_each_char(f, text, put_json_char);
    fputc('"', f);
}

void html_put_base64(FILE *f, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        const uint32_t v = (uint32_t)bytes[i] << 16 |
                           (uint32_t)(i + 1 < n ? bytes[i + 1] : 0) << 8 |
                           (uint32_t)(i + 2 < n ? bytes[i + 2] : 0);

        for (int k = 0; k < 4; k++)
            fputc(i + (size_t)k <= n ? digits[v >> (18 - 6 * k) & 63] : '=', f);
    }
}

void html_put_lines(FILE *f, const char *text)
{
    char line[4096];

    for (const char *end; *text; text = end + (*end == '\n')) {
        end = text + strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(end - text), text);
        html_put(f, line);
        fputc('\n', f);
    }
}

void html_begin(FILE *f, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
          "form-action 'none'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          f);
    html_put(f, title);
    fputs(
        "</title>\n<style>\nbody { font: 15px/1.5 sans-serif; max-width: 70em; "
        "margin: 2em auto; padding: 0 1em; color: #222; background: #fff }\n"
        "table { border-collapse: collapse } td, th { padding: .3em .8em; text-align: "
        "left; border-bottom: 1px solid #ddd }\n"
        ".worse { color: #b00020 } div { overflow-x: auto } svg { min-width: 56em }\n"
        "pre { white-space: pre-wrap; min-width: 68em }\n"
        "@media (prefers-color-scheme: dark) { body { color: #ddd; background: #171a1f "
        "} td, th { border-color: #444 } svg { background: #fff } .worse { color: "
        "#ff8a80 } }\n"
        "</style>\n</head>\n<body>\n<h1>",
        f);
    html_put(f, title);
    fputs("</h1>\n", f);
}

void html_end(FILE *f, const char *command)
{
    fprintf(f, "<p>Written by %s; the page makes no request.</p>\n</body>\n</html>\n",
            command);
}

void html_put_plot(FILE *f, struct plot *p)
{
    if (p)
        plot_lay_out(p, &plot_look_file);
    if (p && !p->is_incomplete) {
        fputs("<div>\n", f);
        svg_write(f, p, &plot_look_file);
        fputs("</div>\n", f);
    } else {
        fputs("<p>There was no memory for a picture.</p>\n", f);
    }
    plot_free(p);
}
